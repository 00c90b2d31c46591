"""The proof: two live generations of a view hold equal cells in one snapshot. All of them are compared.

One was maintained micro-batch by micro-batch, the other computed anew from the master log. Nothing but a query is
needed to compare them, because both are cells of the same records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select
from sqlalchemy.dialects.postgresql import insert

from serving_layer.catalog import lookup
from serving_layer.catalog.lookup import Generation
from serving_layer.catalog.versions import Shared
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import cell_table, proof, view
from serving_layer.promise.overwriting import both_keep, comparison
from view_algebra.language.quoting import postgres_text, quoted

EXAMPLES = 5
"""How many differing cells are kept with the proof."""


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
    rows = connection.execute(select(cell_table).where(cell_table.c.name.in_(new.tables))).all()
    return _prove(connection, new, old, {row.name: (row, row.name) for row in rows})


def prove_shared(connection: Connection, new: Generation, old: Generation, of: Mapping[str, Shared]) -> Proof:
    """The same of two versions, for what both of them compute."""
    return _prove(connection, new, old, {name: (each, each.old) for name, each in of.items()})


def _prove(connection: Connection, new: Generation, old: Generation, of: Mapping[str, tuple[Any, str]]) -> Proof:
    """Compares two generations: `of` gives for each table of the new one what is compared, and the old one's table."""
    compared, differing = 0, 0
    examples: list[dict[str, Any]] = []
    for name, (row, other) in sorted(of.items()):
        since = both_keep(new, old, row)
        where = "true" if since is None else f"{quoted(row.retained)} >= '{since}'"
        counted = cells.run(connection, _comparison(connection, row, new.places[name], old.places[other], where)).one()
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


def of_rebuild(connection: Connection, id: int) -> list[Proof]:
    """The proofs of a rebuild's generations, of each the last."""
    rows = connection.execute(select(proof).where(proof.c.rebuild == id).order_by(proof.c.proved_at)).all()
    return list({row.view: _read(row) for row in rows}.values())


def _read(row: Row[Any]) -> Proof:
    return Proof(row.view, row.generation, row.against, row.cells, row.differing, row.examples)


def held_back(connection: Connection, new: Sequence[Generation]) -> list[str]:
    """The views whose policy is to hold and whose generation is not proven equal to the one that is read."""
    policy = {row.name: row.on_difference for row in connection.execute(select(view))}
    now = lookup.published(connection)
    proven = set(
        connection.execute(
            select(proof.c.generation, proof.c.against).where(
                proof.c.generation.in_([each.id for each in new]), proof.c.differing == 0
            )
        ).all()
    )
    return [
        each.view
        for each in new
        if policy.get(each.view) == "hold"
        and now.get(each.view, each.id) != each.id
        and (each.id, now[each.view]) not in proven
    ]


def _comparison(connection: Connection, row, new: str, old: str, where: str) -> str:  # type: ignore[no-untyped-def]
    """Counts and shows the groups that differ in the tables `new` and `old`."""
    found = _object({**{name: name for name in row.keys}, "cells": "Sides"})
    sides = f'jsonb_object_agg("Side", {_object({name: name for name in row.partials})}) AS "Sides"'
    return f"""
        WITH {comparison(connection, row, new, old, also=sides, where=where)}
        SELECT ((SELECT count(*) FROM {new} WHERE {where}) + (SELECT count(*) FROM {old} WHERE {where})
                - (SELECT count(*) FROM unequal)) / 2 + (SELECT count(*) FROM groups) AS cells,
            (SELECT count(*) FROM groups WHERE "Differs") AS differing,
            (SELECT jsonb_agg({found})
                FROM (SELECT * FROM groups WHERE "Differs" LIMIT {EXAMPLES}) AS first) AS examples
    """


def _object(columns: Mapping[str, str]) -> str:
    """SQL of a JSON object with columns, by its names; 50 fields at a time, since a function takes 100 arguments."""
    fields = [f"{postgres_text(name)}, {quoted(column)}" for name, column in columns.items()]
    parts = (", ".join(fields[first : first + 50]) for first in range(0, len(fields), 50))
    return " || ".join(["'{}'::jsonb", *(f"jsonb_build_object({part})" for part in parts)])
