"""Dropping unneeded tables, in transactions of their own that nobody waits for.

A drop waits for every reader of the table, pg_dump among them, and later readers wait behind the drop. So no
transaction that holds a query's lock drops anything, and a table that is being read is left for the next run.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, func, select, text, update
from sqlalchemy.exc import DBAPIError

from serving_layer.catalog import lookup, versions
from serving_layer.catalog.lookup import Generation
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import cell_table, generation, generation_cells, history, proof, view
from serving_layer.postgres.database import (
    Database,
    has_readers,
    is_deadlock,
    is_lock_timeout,
    wait_shortly_for_readers,
)
from serving_layer.postgres.states import GenerationState
from serving_layer.promise import overwriting, quarantine
from serving_layer.readers import views

FORGOTTEN_DAYS = 7
"""Days for which the origin and the proofs of a dropped generation are kept."""


def drop_unused(database: Database) -> list[int]:
    """Drops the tables of retired generations, folded realtime tables, notes and ids, except those that are being read.

    Returns the generations whose tables are all dropped.
    """
    views.settle(database)
    with database.begin() as connection:
        retired = lookup.find(
            connection, generation.c.state == GenerationState.RETIRED, generation.c.dropped_at.is_(None)
        )
    dropped = [candidate.id for candidate in retired if _drop_generation(database, candidate)]
    with database.begin() as connection:
        unused = [*_folded_tables(connection), *_exchanged_notes(connection), *_forgotten_ids(connection)]
    for name in unused:
        _drop(database, [name])
    database.retrying(_forget)
    return dropped


def _forget(connection: Connection) -> None:
    """Deletes the records of dropped tables from the bookkeeping."""
    quarantine.forget_undeclared(connection)
    versions.lock(connection)
    _forget_unused_cell_tables(connection)
    versions.forget_unused(connection)


def _drop_generation(database: Database, retired: Generation) -> bool:
    with database.begin() as connection:
        overwriting.forget(connection, retired.id)
        rows = connection.execute(select(generation_cells).where(generation_cells.c.generation == retired.id)).all()
    tables = [row.place for row in rows]
    tables += [cells.realtime_of(row.cell_table, retired.id, n) for row in rows for n in range(row.realtime + 1)]
    if not _drop(database, tables):
        return False
    with database.begin() as connection:
        connection.execute(
            update(generation).where(generation.c.id == retired.id).values(dropped_at=func.clock_timestamp())
        )
    return True


def _drop(database: Database, tables: Iterable[str]) -> bool:
    """Drops all of these tables, or none if one of them is being read. True if they were dropped."""
    try:
        with database.begin() as connection:
            wait_shortly_for_readers(connection)
            for table in tables:
                cells.drop(connection, table)
    except DBAPIError as error:
        if not is_lock_timeout(error) and not is_deadlock(error) and not has_readers(error):
            raise
        return False
    return True


def forget_dropped(connection: Connection) -> None:
    """Deletes generations dropped days ago with their cuts, parts and proofs, except those that the history names."""
    long_ago = generation.c.dropped_at < func.now() - func.make_interval(0, 0, 0, FORGOTTEN_DAYS)
    in_history = select(history.c.generation).where(history.c.generation.is_not(None))
    connection.execute(delete(generation).where(long_ago, generation.c.id.not_in(in_history)))
    connection.execute(delete(proof).where(proof.c.generation.not_in(select(generation.c.id))))


def _folded_tables(connection: Connection) -> list[str]:
    """The realtime tables that were merged into the cells of their generation."""
    rows = connection.execute(select(generation_cells).join(generation).where(generation.c.dropped_at.is_(None))).all()
    names = [cells.realtime_of(row.cell_table, row.generation, n) for row in rows for n in range(row.absorbed)]
    existing = text("SELECT name FROM unnest(CAST(:names AS text[])) AS name WHERE to_regclass(name) IS NOT NULL")
    return list(connection.execute(existing, {"names": names}).scalars())


def _exchanged_notes(connection: Connection) -> list[str]:
    """The tables of notes for exchanges that are done or will not happen."""
    return _unknown_tables(
        connection, r"^differing_[0-9]+(_[0-9]+_[0-9a-f]{8})?$", "SELECT 'differing_' || id FROM lamina.noted"
    )


def _forgotten_ids(connection: Connection) -> list[str]:
    """The tables of ids of forgotten periods and dropped sources."""
    return _unknown_tables(connection, "^ids_[0-9]+$", "SELECT 'ids_' || id FROM lamina.ids")


def _unknown_tables(connection: Connection, pattern: str, names: str) -> list[str]:
    """The tables in schema `realtime` whose names match a pattern and are not in the result of the SELECT `names`."""
    tables = text(
        "SELECT format('realtime.%I', relname) FROM pg_class"
        " WHERE relnamespace = 'realtime'::regnamespace AND relkind = 'r'"
        f" AND relname ~ :pattern AND relname NOT IN ({names})"
    )
    return list(connection.execute(tables, {"pattern": pattern}).scalars())


def _forget_unused_cell_tables(connection: Connection) -> None:
    """Deletes tables of cells without a generation and without a declared view."""
    in_use = select(generation_cells.c.cell_table).join(generation).where(generation.c.dropped_at.is_(None))
    declared = select(view.c.version).where(view.c.name == cell_table.c.view)
    unused = select(cell_table.c.name).where(cell_table.c.name.not_in(in_use), cell_table.c.version.not_in(declared))
    for name in connection.execute(unused).scalars().all():
        connection.execute(delete(generation_cells).where(generation_cells.c.cell_table == name))
        connection.execute(delete(cell_table).where(cell_table.c.name == name))
