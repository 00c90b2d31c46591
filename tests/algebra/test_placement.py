"""The placement of a view, the rows or the records of what it reads, is decided before its texts are written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from view_algebra import Refused, compile_catalog
from view_algebra.compile import avoided, stages
from view_algebra.engines.postgres.expressions import FORMS
from view_algebra.language.above import WRITTEN

CASES = Path(__file__).parent / "placement.sql"
GOLDEN = CASES.with_suffix(".txt")
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def test_the_placement_of_each_view_is_this_one_for_this_reason() -> None:
    splits = stages({"placement.sql": CASES.read_text(encoding="utf-8")})
    lines = [
        f"{name}: over rows" if split.avoided is None else f"{name}: over records, because of {split.avoided.reason}"
        for name, split in splits.items()
    ]
    placements = "\n".join(lines) + "\n"
    if UPDATE:
        GOLDEN.write_text(placements, encoding="utf-8")
    assert placements == GOLDEN.read_text(encoding="utf-8")


def test_a_catalog_that_is_compiled_tells_its_placements() -> None:
    catalog = compile_catalog({"placement.sql": CASES.read_text(encoding="utf-8")})
    obstacle = avoided(catalog, "last_of_view")
    assert obstacle is not None
    assert obstacle.reason == "the order of events, where the block reads no source"
    assert avoided(catalog, "count_of_view") is None


@pytest.mark.parametrize("call", sorted(WRITTEN - {"lambda", "to_json"}))
def test_every_call_that_needs_no_template_has_a_form_in_postgres(call: str) -> None:
    assert call in FORMS


def test_every_form_in_postgres_is_known_to_the_placement() -> None:
    assert FORMS.keys() <= WRITTEN


def test_an_obstacle_that_records_leave_too_is_refused_in_the_words_of_the_first() -> None:
    sql = CASES.read_text(encoding="utf-8")
    with pytest.raises(Refused, match=r"initcap\(\) above the aggregation") as refused:
        compile_catalog({"c.sql": f"{sql}CREATE VIEW v AS SELECT initcap(max(kind)) AS kind FROM by_user GROUP BY n;"})
    assert "initcap(max(kind))" in str(refused.value)
