"""The digest of rows in Postgres is equal for equal rows in any order, and differs for other rows."""

from __future__ import annotations

import json
from typing import Any

from tests.serving_layer.world import World

TYPES = {
    "text": "STRING",
    "bigint": "BIGINT",
    "numeric": "DECIMAL(38,18)",
    "double precision": "DOUBLE",
    "real": "FLOAT",
}


def digest(world: World, values: str, **kinds: str) -> dict[str, Any]:
    """The digest of rows with columns of these types."""
    ddl = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    columns = [{"name": name, "postgres": kind, "spark": TYPES.get(kind, kind)} for name, kind in kinds.items()]
    with world.database.begin() as connection:
        connection.exec_driver_sql(f"CREATE TEMPORARY TABLE given ({ddl}) ON COMMIT DROP")
        if values:
            connection.exec_driver_sql(f"INSERT INTO given VALUES {values}", execution_options={"no_parameters": True})
        asked = f"SELECT lamina.digest('pg_temp.given', '{json.dumps(columns)}')"
        fields = connection.exec_driver_sql(asked, execution_options={"no_parameters": True}).scalar_one()
    assert isinstance(fields, dict)
    return fields


def test_a_digest_ignores_the_order_of_rows_and_counts_their_copies(world: World) -> None:
    of = {"a": "text", "b": "bigint"}
    some = digest(world, "('x', 1), ('y', 2), ('x', 1)", **of)
    assert some == digest(world, "('y', 2), ('x', 1), ('x', 1)", **of)
    assert some["rows"] == 3
    others = ("('x', 1), ('y', 2)", "('x', 1), ('y', 2), ('y', 2)", "('x', 2), ('y', 1), ('x', 1)", "('x', NULL)", "")
    assert len({digest(world, values, **of)["digest"] for values in others} | {some["digest"]}) == 6
    crossed = digest(world, "('x', 2), ('y', 1), ('x', 1)", **of)
    assert crossed["columns"] == some["columns"]
    assert crossed["digest"] != some["digest"], "each column holds the same values in other rows"


def test_equal_values_have_one_digest_in_any_notation(world: World) -> None:
    assert digest(world, "(1.50), (0)", a="numeric") == digest(world, "(1.5), (0.000)", a="numeric")
    nested = digest(world, """('{"a": 1.50, "b": [1, null]}')""", a="jsonb")
    assert nested == digest(world, """('{"b": [1.0, null], "a": 1.5}')""", a="jsonb")
    assert nested != digest(world, """('{"a": 1.50, "b": [null, 1]}')""", a="jsonb")
    for one, other in (("(NULL)", "('')"), ("('NULL')", "(NULL)"), ("('a')", "('A')")):
        assert digest(world, one, a="text")["digest"] != digest(world, other, a="text")["digest"]


def test_a_shortened_text_has_the_digest_of_the_whole_text(world: World) -> None:
    whole = "(repeat('long', 1000))"
    shown = "(left(repeat('long', 1000), 100) || '… sha256 ' || encode(sha256(repeat('long', 1000)::bytea), 'hex'))"
    assert digest(world, whole, a="text") == digest(world, shown, a="text")


def test_doubles_are_compared_by_their_sum_and_nan_and_infinity_by_the_digest(world: World) -> None:
    of = {"a": "bigint", "x": "double precision"}
    some = digest(world, "(1, 0.1), (2, 3.0), (3, 'NaN'), (4, NULL), (5, 1e300)", **of)
    near = digest(world, "(1, 0.10000000000000002), (2, 3.0), (3, 'NaN'), (4, NULL), (5, 1e300)", **of)
    assert some["digest"] == near["digest"]
    assert some["columns"] == near["columns"]
    changed = digest(world, "(1, 0.1), (2, 3.0), (3, 'Infinity'), (4, NULL), (5, 1e300)", **of)
    assert changed["digest"] != some["digest"]
    crossed = digest(world, "(1, 3.0), (2, 0.1), (3, 'NaN'), (4, NULL), (5, 1e300)", **of)
    assert crossed["digest"] == some["digest"]
    assert crossed["doubles"] != some["doubles"], "each number is weighted by its row"


def test_a_view_may_have_many_columns_of_any_name(world: World) -> None:
    names = [f"c{n}" for n in range(150)]
    digested = digest(world, "(" + ", ".join("1" for _ in names) + ")", **dict.fromkeys(names, "double precision"))
    assert len(digested["columns"]) == len(digested["doubles"]) == 150
