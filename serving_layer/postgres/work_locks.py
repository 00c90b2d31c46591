"""Locks for work that one process at a time does: running a whole rebuild, and writing the master log.

A session holds such a lock on an empty table until it ends. A reader has no right to lock these tables. An advisory
lock would not do: by default, any role can take it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from sqlalchemy import Connection, Table, text
from sqlalchemy.exc import DBAPIError

from serving_layer.postgres.bookkeeping import archiving as archiving_table
from serving_layer.postgres.cells import run
from serving_layer.postgres.database import Database, is_lock_timeout
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.serving")

ARCHIVING_WITHIN = "1 h"
"""Longest wait for another process that writes the master log. That process may be waiting for what this one holds."""


@contextlib.contextmanager
def attempt(database: Database, table: Table) -> Iterator[bool]:
    """Holds the lock of a table during the block. Yields False if another session holds it."""
    with _session(database) as connection:
        yield _lock(connection, table)


@contextlib.contextmanager
def archiving(database: Database) -> Iterator[None]:
    """Excludes other writers of the master log. Waits for a present writer, but not forever."""
    with _session(database) as connection:
        if not _lock(connection, archiving_table):
            log.info("waiting for another process that writes the master log")
            if not _lock(connection, archiving_table, within=ARCHIVING_WITHIN):
                raise LaminaError(
                    f"Another process has been writing the master log for {ARCHIVING_WITHIN}",
                    evidence="it may be frozen, or wait for cores of Spark that this one holds",
                    way_out="Repeat the command; `pg_locks` shows who holds lamina.archiving.",
                )
        yield


def is_held(connection: Connection, table: Table) -> bool:
    """True if a session holds the lock of this table."""
    held = text(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = to_regclass(:name) AND mode = 'ExclusiveLock'"
        " AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
    )
    return connection.execute(held, {"name": str(table)}).scalar_one() is True


def _lock(connection: Connection, table: Table, *, within: str | None = None) -> bool:
    """Locks an empty table until the session ends. False if another session holds it (for longer than `within`).

    The transaction that holds it has neither an id nor a snapshot, so it delays no vacuum. It stays idle for as long as
    the work takes.
    """
    run(connection, "BEGIN ISOLATION LEVEL READ COMMITTED")
    run(connection, "SET LOCAL idle_in_transaction_session_timeout = 0")
    run(connection, "SET LOCAL transaction_timeout = 0")
    if within is not None:
        run(connection, f"SET LOCAL lock_timeout = '{within}'")
    try:
        run(connection, f"LOCK TABLE {table} IN EXCLUSIVE MODE" + (" NOWAIT" if within is None else ""))
    except DBAPIError as error:
        if not is_lock_timeout(error):
            raise
        run(connection, "ROLLBACK")
        return False
    return True


@contextlib.contextmanager
def _session(database: Database) -> Iterator[Connection]:
    """A session that ends with the block, and releases its lock: if it is broken, the pool would keep its lock.

    A statement that Ctrl-C interrupted has ended the session already.
    """
    with database.autocommit() as connection:
        try:
            yield connection
        finally:
            if not connection.invalidated:
                with contextlib.suppress(DBAPIError):
                    run(connection, "ROLLBACK")
            connection.invalidate()
