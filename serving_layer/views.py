"""What analysts see: one plain SQL view per declared view, in schema `analytics`, and nothing else."""

from __future__ import annotations

import json

from sqlalchemy import Connection, select, text, update

from serving_layer.bookkeeping import publication, view
from serving_layer.cells import run

ANALYST = "analyst"
"""The read-only role of dashboards and analysts."""


def serve(connection: Connection) -> list[str]:
    """Makes or renews the analyst's view of every declared view that can be read; gives the names of those.

    A view with cells can be read once a generation of it is published, a derived view once all that it reads can.
    Until then it is absent: an empty view would be untrue.
    """
    readable: set[str] = set(connection.execute(select(publication.c.view)).scalars())
    served = []
    for row in connection.execute(select(view).order_by(view.c.position)).all():
        if row.kind == "derived" and set(row.reads) <= readable:
            readable.add(row.name)
        if row.name not in readable or row.served == _body(row):
            continue
        _create(connection, row)
        connection.execute(update(view).where(view.c.name == row.name).values(served=_body(row)))
        served.append(row.name)
    return served


def withdraw(connection: Connection, name: str) -> None:
    """Drops the analyst's view; refused by Postgres while somebody's own view reads it."""
    run(connection, f"DROP VIEW IF EXISTS analytics.{quoted(name)}")


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _body(row) -> str:  # type: ignore[no-untyped-def]
    return json.dumps([row.final, row.columns, row.comment])


def _create(connection: Connection, row) -> None:  # type: ignore[no-untyped-def]
    name = f"analytics.{quoted(row.name)}"
    columns = ", ".join(quoted(column["name"]) for column in row.columns)
    run(connection, f"CREATE OR REPLACE VIEW {name} ({columns}) AS\n{row.final}")
    run(connection, f"COMMENT ON VIEW {name} IS {_literal(connection, row.comment)}")
    for column in row.columns:
        comment = _literal(connection, column["comment"])
        run(connection, f"COMMENT ON COLUMN {name}.{quoted(column['name'])} IS {comment}")
    run(connection, f"GRANT SELECT ON {name} TO {ANALYST}")


def _literal(connection: Connection, value: str | None) -> str:
    return str(connection.execute(text("SELECT quote_nullable(:value)"), {"value": value}).scalar_one())
