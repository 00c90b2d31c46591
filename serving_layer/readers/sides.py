"""The body of an analyst's view while its version moves, with a *side* for each version that a snapshot may need.

A query finds relations by their current names but rows as of its snapshot. A snapshot from before a move therefore runs
the new view over the old publication, and needs the old text and the old cells. So each side is guarded by a question
to `lamina.publication`. Postgres evaluates it once per query and skips the other sides entirely. All publications of a
move are rows of one transaction, so no snapshot sees two versions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select, text

from serving_layer.postgres.bookkeeping import generation_cells, publication
from view_algebra.language.quoting import postgres_text, quoted
from view_algebra.text_relations import reading


@dataclass(frozen=True)
class Side:
    """The form of a view in the snapshots in which certain views are read from certain places.

    at: the place of each of these views: its own cells', or those of views below it. None if the view had no cells
    final: the text, with the places of its cells
    columns: name and type of each column
    reads: the views it reads
    readers: the transactions that may have a snapshot from before the move, or None until they were looked up
    """

    at: dict[str, str | None]
    final: str
    columns: list[dict[str, Any]]
    reads: list[str] = field(default_factory=list)
    readers: list[str] | None = None


def body(name: str, now: Side, before: Sequence[Side] = ()) -> str:
    """The body of a view that shows `now`, and in older snapshots its older sides. In still older ones it raises.

    >>> print(body("v", Side({"v": 'cells."v_g1"'}, "SELECT 1", [{"name": "n", "type": "bigint"}])))
    SELECT * FROM (
    SELECT 1
    ) AS served ("n")
    WHERE (SELECT coalesce((
      SELECT true FROM lamina.publication JOIN lamina.generation_cells USING (generation)
      WHERE view = 'v' AND place = 'cells."v_g1"'), lamina.not_published_yet('v')))
    """
    older = _distinguishable(now, before)
    questions = [f"(\n  SELECT true {_holds(now)})", *(f"(\n  SELECT false {_holds(side)})" for side in older)]
    conditions = ", ".join([*questions, f"lamina.not_published_yet({postgres_text(name)})"])
    whole = [f"SELECT * FROM (\n{now.final}\n) AS served ({_names(now)})\nWHERE (SELECT coalesce({conditions}))"]
    for side in older:
        mapped = ", ".join(_column_of(column, side) for column in now.columns)
        whole.append(
            f"SELECT {mapped} FROM (\n{side.final}\n) AS before ({_names(side)})\n"
            f"WHERE (SELECT EXISTS (\n  SELECT {_holds(side)}))"
        )
    return "\nUNION ALL\n".join(whole)


def _distinguishable(now: Side, before: Sequence[Side]) -> list[Side]:
    """The older sides that `now` can show, except those that hold only in snapshots in which a newer side holds too."""
    apart: list[Side] = []
    for side in before:
        if _fits(side, now.columns) and not any(side.at.items() <= newer.at.items() for newer in (now, *apart)):
            apart.append(side)
    return apart


def _fits(side: Side, columns: Sequence[Mapping[str, Any]]) -> bool:
    """True if a view with these columns can show this side. A missing column is NULL, but a type cannot change."""
    types = {column["name"]: column["type"] for column in side.columns}
    return all(types.get(column["name"], column["type"]) == column["type"] for column in columns)


def places(connection: Connection) -> dict[tuple[str, str], str]:
    """The places of the published cells, by view and table of cells."""
    shown = select(publication.c.view, generation_cells.c.cell_table, generation_cells.c.place).join(
        publication, publication.c.generation == generation_cells.c.generation
    )
    rows = connection.execute(shown.order_by(generation_cells.c.cell_table))
    return {(row.view, row.cell_table): row.place for row in rows}


def with_places(final: str, where: Mapping[tuple[str, str], str]) -> str:
    """A final text with its tables of cells replaced by their places."""
    return reading(final, "cells", {table: place for (_, table), place in where.items()}.get)


def in_schema(text: str, names: Collection[str], schema: str) -> str:
    """A text that reads these views from another schema than `analytics`.

    >>> print(in_schema("SELECT 'analytics.v' FROM analytics.v JOIN analytics.w", ["v"], "dev"))
    SELECT 'analytics.v' FROM "dev"."v" JOIN analytics.w
    """
    return reading(text, "analytics", {name: f"{quoted(schema)}.{quoted(name)}" for name in names}.get)


def place_of(view: str, where: Mapping[tuple[str, str], str]) -> str | None:
    """A place that identifies the publication of a view with cells. All tables of a view are published together."""
    return next((place for (name, _), place in where.items() if name == view), None)


def needed_sides(connection: Connection, stored: Sequence[Mapping[str, Any]]) -> list[Side]:
    """The stored older sides of a view that a snapshot may still need."""
    sides = [Side(**side) for side in stored]
    open_now = set(transactions(connection)) if sides else set[str]()
    return [side for side in sides if side.readers is None or open_now & set(side.readers)]


def transactions(connection: Connection) -> list[str]:
    """The other transactions of this database that are open and may have a snapshot.

    They are found by the locks on their own ids, which every role may see. Snapshots of other roles are hidden from an
    owner who is not a superuser. A transaction that is seen without a snapshot (it only holds a lock) will take a newer
    one. Autovacuum, which belongs to no role, reads no view.
    """
    query = text(
        "SELECT DISTINCT l.virtualtransaction FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)"
        " WHERE l.locktype = 'virtualxid' AND a.datname = current_database() AND l.pid <> pg_backend_pid()"
        " AND (a.state IS NULL OR a.backend_xmin IS NOT NULL) AND a.usesysid IS NOT NULL"
    )
    return list(connection.execute(query).scalars())


def _holds(side: Side) -> str:
    """The end of a SELECT that returns one row if the side holds in the reader's snapshot, else none."""
    published = "FROM lamina.publication JOIN lamina.generation_cells USING (generation)\n  WHERE"
    at = [(postgres_text(view), postgres_text(place)) for view, place in sorted(side.at.items()) if place is not None]
    without = [postgres_text(view) for view, place in sorted(side.at.items()) if place is None]
    none = f"NOT EXISTS (SELECT FROM lamina.publication WHERE view IN ({', '.join(without)}))"
    if not at:
        return f"WHERE {none}"
    more = f" AND {none}" if without else ""
    if len(at) == 1:
        return f"{published} view = {at[0][0]} AND place = {at[0][1]}{more}"
    listed = ", ".join(f"({view}, {place})" for view, place in at)
    return f"{published} (view, place) IN ({listed}){more} HAVING count(*) = {len(at)}"


def _names(side: Side) -> str:
    return ", ".join(quoted(column["name"]) for column in side.columns)


def _column_of(column: Mapping[str, Any], side: Side) -> str:
    exists = any(shown["name"] == column["name"] for shown in side.columns)
    return quoted(column["name"]) if exists else f"NULL::{column['type']}"
