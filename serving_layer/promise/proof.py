"""The proof: two live generations of a view hold equal cells in one snapshot. Every cell is compared.

One generation was maintained micro-batch by micro-batch, the other was recomputed from the master log. A single query
compares them, because both are cells of the same records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from serving_layer.catalog import lookup, versions
from serving_layer.catalog.lookup import Generation
from serving_layer.catalog.versions import SharedCells
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import proof, view
from serving_layer.postgres.cells import CellColumns
from serving_layer.promise.overwriting import both_keep, comparison
from view_algebra.language.quoting import postgres_text, quoted

EXAMPLES = 5
"""Number of differing cells that are stored with a proof."""

NEWEST_PROOFS = """
SELECT DISTINCT ON (view) view, cells, differing, proved_at FROM lamina.proof ORDER BY view, proved_at DESC"""
"""SQL of the newest proof of each view."""


@dataclass(frozen=True)
class Proof:
    """The result of comparing two generations: groups compared, groups that differ, and the first that differ.

    shared: the partials that were compared, if the generations are of two versions
    """

    view: str
    generation: int
    against: int
    cells: int
    differing: int
    examples: list[dict[str, Any]]
    shared: tuple[str, ...] = ()


def prove(connection: Connection, generation: int) -> Proof | None:
    """Compares every cell of a live generation with the published one, in this transaction's snapshot.

    Generations of two versions are compared in the columns that both compute. Returns None if there are none, or if the
    generation is the published one.
    """
    new = lookup.get(connection, generation)
    published = lookup.published(connection).get(new.view, new.id)
    if published == new.id:
        return None
    old = lookup.get(connection, published)
    if new.version != old.version:
        common = versions.shared_partials(*(versions.get(connection, side.view, side.version) for side in (new, old)))
        if not common:
            return None
        shared = tuple(name for table in common.values() for name in table.columns.partials)
        return replace(_compare(connection, new, old, common), shared=shared)
    whole = {name: SharedCells(name, cells.columns_of(connection, name)) for name in new.tables}
    return _compare(connection, new, old, whole)


def _compare(connection: Connection, new: Generation, old: Generation, tables: Mapping[str, SharedCells]) -> Proof:
    """Compares the shared columns of two generations. `tables` has them for each table of the new one."""
    compared, differing = 0, 0
    examples: list[dict[str, Any]] = []
    for name, table in sorted(tables.items()):
        since = both_keep(new, old, table.columns)
        where = "true" if since is None else f"{quoted(table.columns.retained or '')} >= '{since}'"
        places = (new.places[name], old.places[table.old])
        counted = cells.run(connection, _comparison(connection, table.columns, *places, where)).one()
        compared += counted.cells
        differing += counted.differing
        examples += counted.examples or []
    return Proof(new.view, new.id, old.id, compared, differing, examples[:EXAMPLES])


def record(connection: Connection, proved: Proof, rebuild: int | None) -> None:
    """Stores a proof, replacing an earlier proof of the same two generations."""
    values = {**vars(proved), "examples": json.loads(json.dumps(proved.examples, default=str)), "rebuild": rebuild}
    del values["shared"]
    statement = insert(proof).values(values)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[proof.c.generation, proof.c.against],
            set_={
                name: statement.excluded[name] for name in ("cells", "differing", "examples", "proved_at", "rebuild")
            },
        )
    )


def proofs_of_rebuild(connection: Connection, id: int) -> list[Proof]:
    """The latest proof of each view that a rebuild computed."""
    rows = connection.execute(select(proof).where(proof.c.rebuild == id).order_by(proof.c.proved_at)).all()
    proofs = (Proof(row.view, row.generation, row.against, row.cells, row.differing, row.examples) for row in rows)
    return list({proved.view: proved for proved in proofs}.values())


def unproven_views(connection: Connection, new: Sequence[Generation]) -> list[str]:
    """The views with `on_difference = 'hold'` whose new generation is not proven equal to the published one."""
    policy = {row.name: row.on_difference for row in connection.execute(select(view))}
    now = lookup.published(connection)
    proven = set(
        connection.execute(
            select(proof.c.generation, proof.c.against).where(
                proof.c.generation.in_([opened.id for opened in new]), proof.c.differing == 0
            )
        ).all()
    )
    return [
        opened.view
        for opened in new
        if policy.get(opened.view) == "hold"
        and now.get(opened.view, opened.id) != opened.id
        and (opened.id, now[opened.view]) not in proven
    ]


def _comparison(connection: Connection, table: CellColumns, new: str, old: str, where: str) -> str:
    """A query that counts the groups of the tables `new` and `old` and shows the first that differ."""
    example = _object({**{name: name for name in table.keys}, "cells": "Sides"})
    sides = f'jsonb_object_agg("Side", {_object({name: name for name in table.partials})}) AS "Sides"'
    return f"""
        WITH {comparison(connection, table, new, old, extra_column=sides, condition=where)}
        SELECT ((SELECT count(*) FROM {new} WHERE {where}) + (SELECT count(*) FROM {old} WHERE {where})
                - (SELECT count(*) FROM unequal)) / 2 + (SELECT count(*) FROM groups) AS cells,
            (SELECT count(*) FROM groups WHERE "Differs") AS differing,
            (SELECT jsonb_agg({example})
                FROM (SELECT * FROM groups WHERE "Differs" LIMIT {EXAMPLES}) AS first) AS examples
    """


def _object(columns: Mapping[str, str]) -> str:
    """SQL of a JSON object of columns by name, 50 fields a call, because a Postgres function takes 100 arguments."""
    fields = [f"{postgres_text(name)}, {quoted(column)}" for name, column in columns.items()]
    parts = (", ".join(fields[first : first + 50]) for first in range(0, len(fields), 50))
    return " || ".join(["'{}'::jsonb", *(f"jsonb_build_object({part})" for part in parts)])
