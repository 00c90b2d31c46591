"""The result of each pass for the same views, one file per pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.algebra.outline import leaf_outline, outline
from view_algebra import compile_catalog
from view_algebra.compile import stages

FOLDER = Path(__file__).parent / "passes"
CASES = {"cases.sql": (FOLDER / "cases.sql").read_text(encoding="utf-8")}
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def typed() -> Mapping[str, str]:
    return {name: outline(whole.split.typed.query) for name, whole in stages(CASES).items()}


def split() -> Mapping[str, str]:
    return {
        name: "\n\n".join([*map(leaf_outline, whole.split.leaves), outline(whole.split.above)])
        for name, whole in stages(CASES).items()
    }


def texts() -> Mapping[str, str]:
    return {
        name: "\n\n".join([*(table.partial for table in view.cell_tables), view.final])
        for name, view in compile_catalog(CASES).views.items()
    }


@pytest.mark.parametrize("outlines", [typed, split, texts])
def test_a_pass_turns_each_view_into_exactly_this(outlines: Callable[[], Mapping[str, str]]) -> None:
    golden = FOLDER / f"{outlines.__name__}.txt"
    views = compile_catalog(CASES).views
    pages = (f"{views[name].sql}\n\n{text}\n" for name, text in outlines().items())
    page = f"\n{'=' * 100}\n".join(pages)
    if UPDATE:
        golden.write_text(page, encoding="utf-8")
    assert page == golden.read_text(encoding="utf-8")
