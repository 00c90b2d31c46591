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


def prove(connection: Connection, new: Generation, old: Generation, *, rebuild: int | None) -> Proof:
    """Compares every cell of two live generations of one version, in the snapshot of this transaction."""
    compared, differing, examples = 0, 0, []
    for name in new.tables:
        row = connection.execute(select(cell_table).where(cell_table.c.name == name)).one()
        doubles = _doubles(connection, name)
        counted = connection.execute(text(_comparison(row, new.id, old.id, doubles))).one()
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
            set_={name: statement.excluded[name] for name in ("cells", "differing", "examples", "proved_at", "rebuild")},
        )
    )


def _comparison(row, new: int, old: int, doubles: set[str]) -> str:  # type: ignore[no-untyped-def]
    """One row per group of either generation: GROUP BY takes NULL keys as equal, which a join does not."""
    keys = [quoted(name) for name in row.keys]
    partials = [quoted(name) for name in row.partials]
    sides = []
    for side, id in (("new", new), ("old", old)):
        given = ", ".join([*keys, f"'{side}' AS side", f"ROW({', '.join(partials)}) AS partials", *partials])
        sides.append(f"SELECT {given} FROM {cells.cells_of(row.name, id)}")
    differs = ["count(*) <> 2"] + [
        _differs(column, tolerant=name in doubles) for name, column in zip(row.partials, partials, strict=True)
    ]
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    example = (
        "jsonb_build_object("
        + "".join(f"'{name}', {key}, ".replace("%", "%%") for name, key in zip(row.keys, keys, strict=True))
        + "'cells', sides)"
    )
    kept = ", ".join([*keys, "differs", "sides"])
    return (
        f"WITH compared AS (SELECT {', '.join([*keys, ' OR '.join(differs) + ' AS differs'])},"
        f" CASE WHEN {' OR '.join(differs)} THEN jsonb_object_agg(side, to_jsonb(partials)) END AS sides"
        f" FROM ({' UNION ALL '.join(sides)}) AS both_sides {group}),"
        f" examples AS (SELECT {kept} FROM compared WHERE differs LIMIT {EXAMPLES})"
        " SELECT count(*) AS cells, count(*) FILTER (WHERE differs) AS differing,"
        f" (SELECT jsonb_agg({example}) FROM examples) AS examples FROM compared"
    ).replace(":", "\\:")


def _differs(column: str, *, tolerant: bool) -> str:
    new, old = (f"(array_agg({column}) FILTER (WHERE side = '{side}'))[1]" for side in ("new", "old"))
    if tolerant:
        return (
            f"({new} IS DISTINCT FROM {old} AND coalesce(abs({new} - {old}) >"
            f" {DOUBLE_TOLERANCE} * greatest(abs({new}), abs({old})), true))"
        )
    return f"{new} IS DISTINCT FROM {old}"


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
