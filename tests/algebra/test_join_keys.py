"""Comparisons that only look like a join of a text with a number compile."""

from __future__ import annotations

import pytest

from tests.algebra.refused import BASE
from view_algebra import compile_catalog

NO_JOINS = {
    "one relation": "SELECT count(*) AS n FROM events WHERE event_id = user_id",
    "its own parts": "SELECT t.part, count(*) AS n FROM events e LATERAL VIEW explode(tags) t AS part"
    " WHERE t.part = e.user_id GROUP BY t.part",
    "a literal": "SELECT count(*) AS n FROM events e JOIN users u ON e.user_id = u.user_id AND u.name = 5",
    "a cast": "SELECT count(*) AS n FROM events e JOIN users u ON CAST(e.event_id AS BIGINT) = u.user_id",
    "texts": "SELECT count(*) AS n FROM events e JOIN users u ON e.kind = u.name",
    "numbers": "SELECT count(*) AS n FROM events e JOIN prices p ON e.user_id = p.user_id AND e.amount = p.price",
    "an order": "SELECT count(*) AS n FROM events e JOIN users u ON e.user_id = u.user_id AND e.event_id > u.user_id",
}


@pytest.mark.parametrize("select", NO_JOINS.values(), ids=NO_JOINS)
def test_comparing_a_text_with_a_number_outside_a_join_compiles(select: str) -> None:
    compile_catalog({"base.sql": BASE, "v.sql": f"CREATE VIEW v AS {select};"})
