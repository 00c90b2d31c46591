"""Comparisons compile that read no text of a join as a number, as `text = number` would."""

from __future__ import annotations

import pytest

from tests.algebra.refused import BASE
from view_algebra import compile_catalog

COMPARISONS = {
    "one relation": "SELECT count(*) AS n FROM events WHERE event_id = user_id",
    "its own parts": "SELECT t.part, count(*) AS n FROM events e LATERAL VIEW explode(tags) t AS part"
    " WHERE t.part = e.user_id GROUP BY t.part",
    "a literal": "SELECT count(*) AS n FROM events e JOIN users u ON e.user_id = u.user_id AND u.name = 5",
    "a cast": "SELECT count(*) AS n FROM events e JOIN users u ON CAST(e.event_id AS BIGINT) = u.user_id",
    "texts": "SELECT count(*) AS n FROM events e JOIN users u ON e.kind = u.name",
    "numbers": "SELECT count(*) AS n FROM events e JOIN prices p ON e.user_id = p.user_id AND e.amount = p.price",
    "an order": "SELECT count(*) AS n FROM events e JOIN users u ON e.user_id = u.user_id AND e.event_id > u.user_id",
}


@pytest.mark.parametrize("select", COMPARISONS.values(), ids=COMPARISONS)
def test_a_comparison_that_reads_no_text_of_a_join_as_a_number_compiles(select: str) -> None:
    compile_catalog({"base.sql": BASE, "v.sql": f"CREATE VIEW v AS {select};"})
