"""An order that decides a result is completed by the smallest key of the joined rows."""

from __future__ import annotations

import pytest

from view_algebra import compile_catalog

TABLES = "".join(
    f"CREATE TABLE {name} (k BIGINT PRIMARY KEY, n BIGINT) USING kafka OPTIONS (topic '{name}', format 'json');"
    for name in "abc"
)
COMPLETED = {
    "FROM a JOIN b ON b.k = a.k": "a.n, a.k",
    "FROM a JOIN b ON b.k = a.n": "a.n, a.k",
    "FROM a JOIN b ON b.n = a.n": "a.n, a.k, b.k",
    "FROM a JOIN b ON b.k = a.k JOIN c ON c.k = b.n": "a.n, a.k",
    # A condition between two relations of one side binds no row of the other side.
    "FROM a CROSS JOIN b JOIN c ON a.k = b.k": "a.n, a.k, b.k, c.k",
}


@pytest.mark.parametrize("relations", COMPLETED)
def test_a_row_number_goes_by_a_key_of_the_joined_rows(relations: str) -> None:
    view = f"CREATE VIEW v AS SELECT a.n, row_number() OVER (ORDER BY a.n) AS r {relations};"
    final = compile_catalog({"v.sql": TABLES + view}).views["v"].final
    order = ", ".join(f"{column} NULLS FIRST" for column in COMPLETED[relations].split(", "))
    assert f"row_number() OVER (ORDER BY {order})" in final
