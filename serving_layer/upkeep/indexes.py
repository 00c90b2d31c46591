"""Builds and drops the indexes that views declare (`'index'`), next to readers and micro-batches.

Indexes are not part of a view's version, so changing them computes nothing. A new generation gets its indexes before it
is handed over.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import suppress

from sqlalchemy import Connection, text

from serving_layer.catalog import versions
from serving_layer.catalog.deployed import deployed
from serving_layer.postgres import courtesy
from serving_layer.postgres.cells import run
from serving_layer.postgres.database import Database, PostgresError, is_lock_timeout

log = logging.getLogger("lamina.serving")

PREFIX = "asked_"
"""Prefix of the names of declared indexes."""

LONGEST_WAIT = "1min"
"""Longest wait of an index for transactions that began before it. The next `renew` builds the rest."""

_PLACES = """
SELECT g.view, g.version, c.cell_table, c.place
FROM lamina.generation_cells AS c JOIN lamina.generation AS g ON g.id = c.generation
WHERE g.state <> 'retired' AND c.loaded_at IS NOT NULL AND to_regclass(c.place) IS NOT NULL
ORDER BY c.place
"""

_EXISTING = """
SELECT c.relname AS name, i.indisvalid AS valid
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(:place) AND starts_with(c.relname, :prefix)
  AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE index_relid = i.indexrelid)
"""


_UNBUILT = """
SELECT DISTINCT ON (g.view) g.view, obj_description(i.indexrelid, 'pg_class')
FROM lamina.generation_cells AS c
JOIN lamina.generation AS g ON g.id = c.generation
JOIN pg_index AS i ON i.indrelid = to_regclass(c.place)
JOIN pg_class AS k ON k.oid = i.indexrelid
WHERE NOT i.indisvalid AND starts_with(k.relname, :prefix) AND g.state <> 'retired'
  AND NOT EXISTS (SELECT FROM pg_locks
                  WHERE relation IN (i.indexrelid, i.indrelid) AND mode = 'ShareUpdateExclusiveLock')
ORDER BY g.view
"""

_CREATE = "CREATE INDEX CONCURRENTLY IF NOT EXISTS "


def renew(database: Database) -> None:
    """Builds the declared indexes of every loaded table of cells, and drops those that are no longer declared.

    If a transaction stays open for longer than `LONGEST_WAIT`, the rest is logged and left to the next call. Until then
    an alarm reports it (`monitoring/deployment_alarms.py`).
    """
    with database.begin() as connection:
        todo = list(_todo(connection))
    if not todo:
        return
    with database.autocommit() as connection:
        courtesy.stand_back(connection)
        connection.exec_driver_sql(f"SET lock_timeout = '{LONGEST_WAIT}'")
        for statement in todo:
            try:
                connection.exec_driver_sql(statement)
            except PostgresError as error:
                reason = str(error.orig).strip()
                log.warning("%s: %s", statement, reason)
                _note(connection, statement, reason)
                if is_lock_timeout(error):  # the same transaction would delay the others too
                    return


def _note(connection: Connection, statement: str, reason: str) -> None:
    """Stores the reason why an index was not built as its comment, for `unbuilt`. Some failures leave no index."""
    name = statement.removeprefix(_CREATE).partition(" ")[0]
    if not statement.startswith(_CREATE):
        return
    literal = connection.execute(text("SELECT quote_literal(:reason)"), {"reason": reason}).scalar_one()
    with suppress(PostgresError):
        run(connection, f"COMMENT ON INDEX cells.{name} IS {literal}")


def unbuilt(connection: Connection) -> dict[str, str]:
    """The views with a declared index that is not built and that no session is building or dropping, and the reason."""
    rows = connection.execute(text(_UNBUILT), {"prefix": PREFIX})
    return {view: reason or "its build was interrupted" for view, reason in rows}


def _todo(connection: Connection) -> Iterator[str]:
    """The statements, each to run in a transaction of its own."""
    views = [*deployed(connection).views.values(), *(version.view for version in versions.stored_versions(connection))]
    declared = {(view.name, view.version): view.indexes for view in reversed(views)}
    for row in connection.execute(text(_PLACES)).all():
        indexes = declared.get((row.view, row.version), {}).get(row.cell_table, ())
        names = {_name(row.place, index): index for index in indexes}
        existing = connection.execute(text(_EXISTING), {"place": row.place, "prefix": PREFIX}).all()
        built = {old.name for old in existing if old.valid and old.name in names}
        yield from (f"DROP INDEX CONCURRENTLY IF EXISTS cells.{old.name}" for old in existing if old.name not in built)
        for name in names.keys() - built:
            yield f"{_CREATE}{name} ON {row.place} USING {names[name]}"


def _name(place: str, index: str) -> str:
    """A unique name for an index. A hash, because Postgres allows 63 bytes and a column's name may take them all."""
    return PREFIX + hashlib.sha256(f"{place} {index}".encode()).hexdigest()[:16]
