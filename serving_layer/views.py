"""What analysts see: one plain SQL view per declared view, in schema `analytics`, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from sqlalchemy import Connection, select, text, update

from serving_layer.bookkeeping import generation_cells, publication, view
from serving_layer.cells import run
from view_algebra.types import postgres_name

ANALYST = "analyst"
"""The read-only role of dashboards and analysts."""


def serve(connection: Connection) -> list[str]:
    """Makes or renews the analyst's view of every declared view that can be read; gives the names of those.

    A view with cells can be read once a generation of it is published, a derived view once all that it reads can.
    Until then it is absent: an empty view would be untrue.
    """
    readable: set[str] = set(connection.execute(select(publication.c.view)).scalars())
    places = _places(connection)
    served = []
    for row in connection.execute(select(view).order_by(view.c.position)).all():
        if row.kind == "derived" and set(row.reads) <= readable:
            readable.add(row.name)
        final = _placed(row.final, places)
        body = json.dumps([final, row.columns, row.comment])
        if row.name not in readable or row.served == body:
            continue
        _create(connection, row, final)
        connection.execute(update(view).where(view.c.name == row.name).values(served=body))
        served.append(row.name)
    return served


def withdraw(connection: Connection, name: str) -> None:
    """Drops the analyst's view; refused by Postgres while somebody's own view reads it."""
    run(connection, f"DROP VIEW IF EXISTS analytics.{quoted(name)}")


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _places(connection: Connection) -> dict[str, str]:
    """Where the cells are that readers read, by the name of the table of cells."""
    shown = select(generation_cells.c.cell_table, generation_cells.c.place).join(
        publication, publication.c.generation == generation_cells.c.generation
    )
    return {row.cell_table: row.place for row in connection.execute(shown)}


def _placed(final: str, places: Mapping[str, str]) -> str:
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
