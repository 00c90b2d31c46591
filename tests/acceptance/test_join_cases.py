"""Cases of joins and of tables with deletions, written as an author of views would: live, rebuilt, and by Spark."""

from __future__ import annotations

import pytest

from tests.acceptance.cases import DATA, assert_answered, read_cases, read_selects, view_name
from tests.fix_lamina import Deployed

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the cases lie beside the repository")

WAITING = {
    "risingwave/streaming/temporal_join/append_only/temporal_join_non_loopup_cond#1": "looks up at arrival",
    "risingwave/streaming/temporal_join/append_only/temporal_join_non_loopup_cond#2": "looks up at arrival",
}
"""The cases that no SELECT answers, each with what it would have to do."""


def test_every_case_is_answered_or_waits() -> None:
    cases, selects = read_cases("C"), read_selects("joins.sql")
    assert {*selects, *WAITING} == set(cases)
    assert not selects.keys() & WAITING.keys()
    assert len(set(map(view_name, selects))) == len(selects)


def test_cases_of_joins_give_the_rows_of_their_query_over_all_records(deployed: Deployed) -> None:
    assert_answered(deployed, read_cases("C"), read_selects("joins.sql"))
