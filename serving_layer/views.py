"""What analysts see: one plain SQL view per declared view, in schema `analytics`, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select, text, update

from serving_layer.bookkeeping import generation_cells, publication, view
from serving_layer.cells import run
from serving_layer.database import READER_PATIENCE_MS
from view_algebra.language.quoting import postgres_name, postgres_text

NOT_PUBLISHED_YET = """
CREATE OR REPLACE FUNCTION lamina.not_published_yet(view text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
BEGIN
  RAISE object_not_in_prerequisite_state USING
    MESSAGE = format('%s was published after this transaction began to read', view),
    HINT = 'Begin another transaction: it reads the view as it is then.';
END
$$
"""
"""What a view raises in a snapshot that is older than its first publication."""

ANALYST = "analyst"
"""The read-only role of dashboards and analysts."""


def serve(connection: Connection) -> list[str]:
    """Makes or renews the analyst's view of every declared view that can be read; gives the names of those.

    A view with cells can be read once a generation of it is published, a derived view once all that it reads can.
    Until then it is absent: an empty view would be untrue, and so would be what a snapshot of before shows of it (its
    cells as far as they were loaded), which is why a view asks whether it is published in the reader's snapshot.
    A view that a reader holds is waited for no longer than `READER_PATIENCE_MS`, nor is anything after it in this
    transaction: see `Database.retrying`.
    """
    run(connection, f"SET LOCAL lock_timeout = {READER_PATIENCE_MS}")
    readable: set[str] = set(connection.execute(select(publication.c.view)).scalars())
    places = places_read(connection)
    made = []
    for row in connection.execute(select(view).order_by(view.c.position)).all():
        if row.kind == "derived" and set(row.reads) <= readable:
            readable.add(row.name)
        final = placed(row.final, {name: place for (_, name), place in places.items()})
        final = _published_only(row, final, [place for (of, _), place in places.items() if of == row.name])
        body = json.dumps([final, row.columns, row.comment])
        if row.name not in readable or row.served == body:
            continue
        _create(connection, row, final)
        connection.execute(update(view).where(view.c.name == row.name).values(served=body))
        made.append(row.name)
    return made


def served(connection: Connection) -> set[str]:
    """The declared views that can be read."""
    return set(connection.execute(select(view.c.name).where(view.c.served.is_not(None))).scalars())


def rows(connection: Connection, name: str, columns: str) -> list[tuple[Any, ...]]:
    """The rows of a view as an analyst reads them; `columns` is a list of expressions over its columns."""
    return [tuple(row) for row in run(connection, f"SELECT {columns} FROM analytics.{quoted(name)}")]


def withdraw(connection: Connection, name: str) -> None:
    """Drops the analyst's view; refused by Postgres while somebody's own view reads it."""
    run(connection, f"DROP VIEW IF EXISTS analytics.{quoted(name)}")


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def places_read(connection: Connection) -> dict[tuple[str, str], str]:
    """Where the cells are that readers read, by the names of the view and of the table of cells."""
    shown = select(publication.c.view, generation_cells.c.cell_table, generation_cells.c.place).join(
        publication, publication.c.generation == generation_cells.c.generation
    )
    rows = connection.execute(shown.order_by(generation_cells.c.cell_table))
    return {(row.view, row.cell_table): row.place for row in rows}


def _published_only(row, final: str, places: list[str]) -> str:  # type: ignore[no-untyped-def]
    """The body of a view with cells, which raises in a snapshot in which these are not published.

    Names are found as they are now, rows as they were: a snapshot that is older than the first publication would read
    the part of the cells that was loaded by then. All tables of a view are published at once, so one is asked for.
    """
    if not places:
        return final
    columns = ", ".join(quoted(column["name"]) for column in row.columns)
    name, place = map(postgres_text, (row.name, places[0]))
    return f"""SELECT * FROM (
{final}
) AS served ({columns})
WHERE (SELECT coalesce((
  SELECT true FROM lamina.publication JOIN lamina.generation_cells USING (generation)
  WHERE view = {name} AND place = {place}), lamina.not_published_yet({name})))"""


def placed(final: str, places: Mapping[str, str]) -> str:
    """The body of a view with the tables that hold its cells, by the names of the tables of cells."""
    for name, place in places.items():
        final = re.sub(rf"\bcells\.{re.escape(postgres_name(name))}(?!\w)", place, final)
    return final


def _create(connection: Connection, row, final: str) -> None:  # type: ignore[no-untyped-def]
    name = f"analytics.{quoted(row.name)}"
    columns = ", ".join(quoted(column["name"]) for column in row.columns)
    run(connection, f"CREATE OR REPLACE VIEW {name} ({columns}) AS\n{final}")
    run(connection, f"COMMENT ON VIEW {name} IS {_literal(connection, row.comment)}")
    for column in row.columns:
        comment = _literal(connection, column["comment"])
        run(connection, f"COMMENT ON COLUMN {name}.{quoted(column['name'])} IS {comment}")
    run(connection, f"GRANT SELECT ON {name} TO {ANALYST}")


def _literal(connection: Connection, value: str | None) -> str:
    return str(connection.execute(text("SELECT quote_nullable(:value)"), {"value": value}).scalar_one())
