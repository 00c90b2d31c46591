"""The proof: two live generations of a view hold equal cells in one snapshot. All of them are compared.

One was maintained micro-batch by micro-batch, the other computed anew from the master log. Nothing but a query is
needed to compare them, because both are cells of the same records.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert

from serving_layer import cells
from serving_layer.bookkeeping import cell_table, proof
from serving_layer.generations import Generation
from serving_layer.views import quoted

EXAMPLES = 5
"""How many differing cells are kept with the proof."""

DOUBLE_TOLERANCE = 1e-9
"""Relative. Sums of doubles depend on their order; those of integers and decimals are compared exactly."""


@dataclass(frozen=True)
class Proof:
    """How many groups the two generations hold, how many differ, and the first of those."""

    view: str
    generation: int
    against: int
    cells: int
    differing: int
    examples: list[dict[str, Any]]


def prove(connection: Connection, new: Generation, old: Generation) -> Proof:
    """Compares every cell of two live generations of one version, in the snapshot of this transaction."""
    compared, differing = 0, 0
    examples: list[dict[str, Any]] = []
    for name in new.tables:
        row = connection.execute(select(cell_table).where(cell_table.c.name == name)).one()
        doubles = _doubles(connection, name)
        counted = cells.run(connection, _comparison(row, new.id, old.id, doubles)).one()
        compared += counted.cells
        differing += counted.differing
        examples += counted.examples or []
    return Proof(new.view, new.id, old.id, compared, differing, examples[:EXAMPLES])


def record(connection: Connection, proved: Proof, rebuild: int | None) -> None:
    """Keeps a proof, in place of an earlier one of the same two generations."""
    values = {**vars(proved), "examples": json.loads(json.dumps(proved.examples, default=str)), "rebuild": rebuild}
    statement = insert(proof).values(values)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[proof.c.generation, proof.c.against],
            set_={
                name: statement.excluded[name] for name in ("cells", "differing", "examples", "proved_at", "rebuild")
            },
        )
    )


def _comparison(row, new: int, old: int, doubles: set[str]) -> str:  # type: ignore[no-untyped-def]
    """Counts and shows the groups that differ.

    A row that both generations hold alike comes twice and falls out of one GROUP BY over all columns, which takes
    NULLs as equal (a join does not); only what is left is looked at closely.
    """
    keys = [quoted(name) for name in row.keys]
    partials = [quoted(name) for name in row.partials]
    columns = ", ".join([*keys, *partials]) or "generation"
    tables = {"new": cells.cells_of(row.name, new), "old": cells.cells_of(row.name, old)}
    both = " UNION ALL ".join(f"SELECT {columns}, '{side}' AS side FROM {table}" for side, table in tables.items())
    differs = " OR ".join(
        ["count(*) <> 2"]
        + [_differs(column, tolerant=name in doubles) for name, column in zip(row.partials, partials, strict=True)]
    )
    by_key = f"GROUP BY {', '.join(keys)}" if keys else "HAVING count(*) > 0"
    shown = ", ".join(f"{_text(name)}, {quoted(name)}" for name in row.partials)
    found = ", ".join([*(f"{_text(name)}, {quoted(name)}" for name in row.keys), "'cells', sides"])
    return f"""
        WITH unequal AS (
            SELECT {columns}, min(side) AS side FROM ({both}) AS both_sides GROUP BY {columns} HAVING count(*) = 1
        ), groups AS (
            SELECT {"".join(key + ", " for key in keys)} {differs} AS differs,
                jsonb_object_agg(side, jsonb_build_object({shown})) AS sides
            FROM unequal {by_key}
        )
        SELECT ((SELECT count(*) FROM {tables["new"]}) + (SELECT count(*) FROM {tables["old"]})
                - (SELECT count(*) FROM unequal)) / 2 + (SELECT count(*) FROM groups) AS cells,
            (SELECT count(*) FROM groups WHERE differs) AS differing,
            (SELECT jsonb_agg(jsonb_build_object({found}))
                FROM (SELECT * FROM groups WHERE differs LIMIT {EXAMPLES}) AS first) AS examples
    """


def _differs(column: str, *, tolerant: bool) -> str:
    new, old = (f"(array_agg({column}) FILTER (WHERE side = '{side}'))[1]" for side in ("new", "old"))
    unequal = f"{new} IS DISTINCT FROM {old}"
    if not tolerant:
        return unequal
    within = f"abs({new} - {old}) <= {DOUBLE_TOLERANCE} * greatest(abs({new}), abs({old}))"
    return f"({unequal} AND {within} IS NOT TRUE)"


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _doubles(connection: Connection, name: str) -> set[str]:
    return set(
        connection.execute(
            text(
                "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(:table)"
                " AND atttypid IN ('float8'::regtype, 'float4'::regtype) AND NOT attisdropped"
            ),
            {"table": cells.parent_of(name)},
        ).scalars()
    )
