"""The body of an analyst's view while its version moves: it has a side for each version that a snapshot may need.

Names are found as they are now, rows as they were. A snapshot that is older than the move reads the new view, and in
it the cells of before: it needs their text, too. So each side stands behind a question to `lamina.publication`, which
Postgres asks once per query; the other sides are then skipped whole. All publications of a move are rows of one
transaction, so that no snapshot sees two versions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select, text

from serving_layer.postgres.bookkeeping import generation_cells, publication
from view_algebra.language.quoting import postgres_name, postgres_text, quoted


@dataclass(frozen=True)
class Side:
    """What a view is in the snapshots in which views are read from certain places.

    at: the place of each of these views: its own cells', or those of views below it; None of one that had no cells.
    final: its text, with the places of its cells. columns: name and type of each. reads: the views it reads. readers:
    the transactions that may still have a snapshot of then; None until they were looked for, which is after the move.
    """

    at: dict[str, str | None]
    final: str
    columns: list[dict[str, Any]]
    reads: list[str] = field(default_factory=list)
    readers: list[str] | None = None


def body(name: str, now: Side, before: Sequence[Side] = ()) -> str:
    """The body of a view that shows `now`, and in older snapshots what was before; in the oldest it raises.

    >>> print(body("v", Side({"v": 'cells."v_g1"'}, "SELECT 1", [{"name": "n", "type": "bigint"}])))
    SELECT * FROM (
    SELECT 1
    ) AS served ("n")
    WHERE (SELECT coalesce((
      SELECT true FROM lamina.publication JOIN lamina.generation_cells USING (generation)
      WHERE view = 'v' AND place = 'cells."v_g1"'), lamina.not_published_yet('v')))
    """
    older = _apart(now, before)
    asked = [f"(\n  SELECT true {_holds(now)})", *(f"(\n  SELECT false {_holds(side)})" for side in older)]
    conditions = ", ".join([*asked, f"lamina.not_published_yet({postgres_text(name)})"])
    whole = [f"SELECT * FROM (\n{now.final}\n) AS served ({_names(now)})\nWHERE (SELECT coalesce({conditions}))"]
    for side in older:
        mapped = ", ".join(_mapped(column, side) for column in now.columns)
        whole.append(
            f"SELECT {mapped} FROM (\n{side.final}\n) AS before ({_names(side)})\n"
            f"WHERE (SELECT EXISTS (\n  SELECT {_holds(side)}))"
        )
    return "\nUNION ALL\n".join(whole)


def _apart(now: Side, before: Sequence[Side]) -> list[Side]:
    """The older sides that `now` can show, and that hold in no snapshot in which a newer one does."""
    found: list[Side] = []
    for side in before:
        if _fits(side, now.columns) and not any(side.at.items() <= newer.at.items() for newer in (now, *found)):
            found.append(side)
    return found


def _fits(side: Side, columns: Sequence[Mapping[str, Any]]) -> bool:
    """Can a view with these columns show this side? What it lacks is NULL there; of another type it cannot be."""
    types = {column["name"]: column["type"] for column in side.columns}
    return all(types.get(column["name"], column["type"]) == column["type"] for column in columns)


def places(connection: Connection) -> dict[tuple[str, str], str]:
    """Where the cells are that readers read, by the names of the view and of the table of cells."""
    shown = select(publication.c.view, generation_cells.c.cell_table, generation_cells.c.place).join(
        publication, publication.c.generation == generation_cells.c.generation
    )
    rows = connection.execute(shown.order_by(generation_cells.c.cell_table))
    return {(row.view, row.cell_table): row.place for row in rows}


def placed(final: str, where: Mapping[tuple[str, str], str]) -> str:
    """A final with the names of its tables of cells as the places where these are now."""
    for (_, name), place in where.items():
        final = re.sub(rf"\bcells\.{re.escape(postgres_name(name))}(?!\w)", place, final)
    return final


def moved(text: str, names: Collection[str], schema: str) -> str:
    """A text with the views that it reads in another schema than `analytics`; a text within it stays what it is.

    >>> print(moved("SELECT 'analytics.v' FROM analytics.v JOIN analytics.w", ["v"], "dev"))
    SELECT 'analytics.v' FROM "dev".v JOIN analytics.w
    """
    for start, _, name in relations(text, "analytics"):
        if name in names:
            text = text[:start] + quoted(schema) + text[start + len("analytics") :]
    return text


def relations(text: str, schema: str) -> Iterator[tuple[int, int, str]]:
    """Where a text reads relations of a schema, the last first: from where on, until where, and which.

    >>> list(relations("SELECT published.a, 'published.b' FROM (published.c AS published)", "published"))
    [(40, 51, 'c')]
    """
    from sqlglot import tokenize
    from sqlglot.tokenizer_core import TokenType

    tokens = tokenize(text, read="postgres")
    for place in reversed(range(1, len(tokens) - 2)):
        first, dot, name = tokens[place : place + 3]
        if (first.text, dot.text) != (schema, "."):
            continue
        before = [each for each in tokens[:place] if each.token_type != TokenType.L_PAREN]
        of_a_value = [each.text.lower() for each in before[-3:-1]]  # extract(year FROM x), a IS DISTINCT FROM x
        reads = before[-1:] and before[-1].token_type in (TokenType.FROM, TokenType.JOIN)
        if reads and of_a_value[-1:] != ["distinct"] and of_a_value[:1] not in (["extract"], ["substring"], ["trim"]):
            yield first.start, name.end + 1, name.text


def place_of(view: str, where: Mapping[tuple[str, str], str]) -> str | None:
    """The place by which a view with cells is known to be published: all tables of a view are published at once."""
    return next((place for (of, _), place in where.items() if of == view), None)


def needed(connection: Connection, before: Sequence[Mapping[str, Any]]) -> list[Side]:
    """Of the older sides of a view, as they are kept, those that a snapshot may still need."""
    sides = [Side(**side) for side in before]
    open_now = set(transactions(connection)) if sides else set[str]()
    return [side for side in sides if side.readers is None or open_now & set(side.readers)]


def transactions(connection: Connection) -> list[str]:
    """The transactions of this database that are open now and may have a snapshot, but for this one.

    By their locks on themselves, which everybody may see: a snapshot of another role's is hidden from an owner that is
    no superuser. One that is seen to have none, as of a process that only holds a lock, takes a newer one if any; and
    autovacuum, which is nobody's, reads no view.
    """
    found = text(
        "SELECT DISTINCT l.virtualtransaction FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)"
        " WHERE l.locktype = 'virtualxid' AND a.datname = current_database() AND l.pid <> pg_backend_pid()"
        " AND (a.state IS NULL OR a.backend_xmin IS NOT NULL) AND a.usesysid IS NOT NULL"
    )
    return list(connection.execute(found).scalars())


def _holds(side: Side) -> str:
    """Rows of one where the side holds in the reader's snapshot, else none."""
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


def _mapped(column: Mapping[str, Any], side: Side) -> str:
    there = any(each["name"] == column["name"] for each in side.columns)
    return quoted(column["name"]) if there else f"NULL::{column['type']}"
