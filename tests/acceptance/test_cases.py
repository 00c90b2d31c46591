"""Views over one stream show the known rows of their cases: live, rebuilt, and in Spark over all records."""

from __future__ import annotations

import pytest

from tests.acceptance.cases import DATA, assert_answered, read_cases, read_selects, view_name
from tests.fix_lamina import Deployed

pytestmark = pytest.mark.skipif(
    not DATA.exists(), reason=f"the published cases over one stream were not compared: {DATA} is missing"
)


def test_every_case_is_answered() -> None:
    cases, selects = read_cases("B"), read_selects("cases.sql")
    assert {name.partition(" ")[0] for name in selects} == set(cases)
    assert len({view_name(name) for name in selects}) == len(selects)


def test_cases_give_the_rows_of_their_query_over_all_records(deployed: Deployed) -> None:
    assert_answered(deployed, read_cases("B"), read_selects("cases.sql"))
