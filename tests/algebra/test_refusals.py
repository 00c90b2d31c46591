"""Every refusal in `refusals/` has the error next to it, and its way out compiles."""

from __future__ import annotations

import doctest
import os
from functools import cache
from pathlib import Path

import pytest

from tests.algebra import refused
from tests.algebra.refused import BASE, SUBJECTS, Refusal, printed_sql, refusals
from view_algebra import Refused, compile_catalog

ALL = [refusal for subject in SUBJECTS for refusal in refusals(subject)]
LINE = "=" * 100
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


@cache
def error(refusal: Refusal) -> Refused:
    with pytest.raises(Refused) as raised:
        compile_catalog({"catalog/base.sql": BASE, "catalog/v.sql": refusal.sql})
    return raised.value


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda path: path.stem)
def test_a_refusal_shows_the_place_the_reason_and_the_way_out(subject: Path) -> None:
    golden = subject.with_suffix(".txt")
    pages = "".join(f"{LINE}\n{refusal.name}\n\n{error(refusal)}\n" for refusal in refusals(subject))
    if UPDATE:
        golden.write_text(pages, encoding="utf-8")
    assert pages == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("refusal", [refusal for refusal in ALL if refusal.instead], ids=lambda refusal: refusal.name)
def test_the_way_out_compiles_with_the_sql_that_the_error_prints(refusal: Refusal) -> None:
    compile_catalog({"catalog/base.sql": BASE, "catalog/v.sql": refusal.instead})
    assert bool(printed_sql(error(refusal).way_out, refusal.sql, refusal.instead)) == refusal.as_printed


def test_no_two_refusals_have_one_name() -> None:
    names = [refusal.name for refusal in ALL]
    assert sorted(set(names)) == sorted(names)


def test_the_examples_of_printed_sql_are_true() -> None:
    examples = doctest.testmod(refused)
    assert (examples.failed, examples.attempted) == (0, 4)
