"""Views over joins and tables show the known rows of their cases: live, rebuilt, and in Spark over all records."""

from __future__ import annotations

import pytest

from tests.acceptance.cases import DATA, assert_answered, read_cases, read_selects, view_name
from tests.fix_lamina import Deployed

pytestmark = pytest.mark.skipif(
    not DATA.exists(), reason=f"the published cases of joins and tables were not compared: {DATA} is missing"
)

WAITING = {
    "risingwave/streaming/temporal_join/append_only/temporal_join_non_loopup_cond#1": "looks up at arrival",
    "risingwave/streaming/temporal_join/append_only/temporal_join_non_loopup_cond#2": "looks up at arrival",
}
"""Cases that no SELECT answers, each with the feature that it needs."""


def test_every_case_is_answered_or_waits() -> None:
    cases, selects = read_cases("C"), read_selects("joins.sql")
    assert {*selects, *WAITING} == set(cases)
    assert not selects.keys() & WAITING.keys()
    assert len(set(map(view_name, selects))) == len(selects)


def test_cases_of_joins_give_the_rows_of_their_query_over_all_records(deployed: Deployed) -> None:
    assert_answered(deployed, read_cases("C"), read_selects("joins.sql"))
