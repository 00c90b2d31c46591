from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.algebra.refusals import EVENTS, REFUSALS, Refusal
from view_algebra import Refused, compile_catalog

GOLDEN = Path(__file__).parent / "refusals.txt"
LINE = "=" * 100
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def error(refusal: Refusal) -> str:
    with pytest.raises(Refused) as caught:
        compile_catalog({"catalog/base.sql": EVENTS, "catalog/v.sql": refusal.sql})
    return str(caught.value)


def golden() -> dict[str, str]:
    pages = GOLDEN.read_text(encoding="utf-8").split(f"{LINE}\n")
    return dict(page.split("\n\n", 1) for page in pages if page)


def test_every_refusal_is_written_down() -> None:
    if UPDATE:
        pages = [f"{r.name}\n\n{r.sql}\n\n{error(r)}\n" for r in REFUSALS]
        GOLDEN.write_text("".join(f"{LINE}\n{page}" for page in pages), encoding="utf-8")
    assert list(golden()) == [r.name for r in REFUSALS]
    assert len(REFUSALS) >= 60


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda r: r.name)
def test_a_refusal_shows_the_place_the_reason_and_the_way_out(refusal: Refusal) -> None:
    assert golden()[refusal.name] == f"{refusal.sql}\n\n{error(refusal)}\n"


@pytest.mark.parametrize("refusal", [r for r in REFUSALS if r.rewrite], ids=lambda r: r.name)
def test_the_way_out_compiles(refusal: Refusal) -> None:
    compile_catalog({"catalog/base.sql": EVENTS, "catalog/v.sql": refusal.rewrite})
