"""Tables of cells: their names, and how they are created, staged and merged.

A generation's cells are computed into a table of its own, `cells.<cell table>_g<generation>`. Its realtime tables are
`realtime.<cell table>_g<generation>_<n>`. `lamina.generation_cells.place` names the table that holds the cells now. A
hand-over exchanges the places of two generations and moves only the cells that differ, so readers always read the same
table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, CursorResult, select

from serving_layer.postgres.bookkeeping import cell_table
from serving_layer.postgres.copying import CopyRows
from view_algebra.compiled import CellTable

ESTIMATED = """\
CASE WHEN bool_and(t.reltuples >= 0 OR pg_stat_get_live_tuples(t.oid) > 0)
  THEN sum(greatest(t.reltuples, pg_stat_get_live_tuples(t.oid)))::bigint END"""
"""SQL of Postgres' estimate of the cells in the tables `t` of pg_class, or NULL until it has estimated each."""


class CellColumns(NamedTuple):
    """The columns of a table of cells.

    noise: for each partial, the column whose rounding it may hold, or ''
    retained: the column that dates a cell, if old cells are dropped
    longer: microseconds for which cells are kept beyond what the view retains
    """

    keys: Sequence[str]
    partials: Sequence[str]
    noise: Sequence[str]
    retained: str | None
    longer: int


def columns_of(connection: Connection, name: str) -> CellColumns:
    """The columns of a registered table of cells."""
    columns = [cell_table.c[field] for field in CellColumns._fields]
    return CellColumns(*connection.execute(select(*columns).where(cell_table.c.name == name)).one())


@dataclass(frozen=True)
class StagedCells:
    """Cells on their way into Postgres: one COPY, read by the merges of several tables of cells.

    ddl: creates the temporary table if it does not exist
    rows: the rows copied into it
    read: for each table of cells, the SELECT of its keys and partials from the temporary table
    """

    ddl: str
    table: str
    rows: CopyRows
    read: Mapping[str, str]


def cells_of(cell_table: str, generation: int) -> str:
    """The qualified name of the table that a generation's cells are computed into."""
    return f'cells."{cell_table}_g{generation}"'


def realtime_of(cell_table: str, generation: int, number: int) -> str:
    """The qualified name of a realtime table of a generation."""
    return f'realtime."{cell_table}_g{generation}_{number}"'


def create(connection: Connection, ddl: str, name: str) -> None:
    """Creates a table of cells."""
    run(connection, ddl.replace("{table}", name))


def stage(connection: Connection, staged: StagedCells) -> None:
    """Copies cells into the session's temporary table, creating it if needed. The commit empties it."""
    run(connection, staged.ddl)
    copy(connection, staged.table, staged.rows)


def copy(connection: Connection, table: str, rows: CopyRows) -> None:
    """Copies rows into `table`, which may end with a list of columns."""
    if rows.size == 0:
        return
    with closing(connection.connection.cursor()) as cursor:
        cursor.copy_expert(f"COPY {table} FROM STDIN (FORMAT {rows.format})", rows.file())


def kept_since(table: CellColumns | CellTable, since: datetime | None) -> datetime | None:
    """The time from which a table keeps cells, by its `retained` column, for groups from `since`. None: all cells."""
    return None if since is None or not table.retained else since - timedelta(microseconds=table.longer)


def merge(connection: Connection, statement: str, *, into: str, stamp: int, cells: str, since: datetime | None) -> None:
    """Folds `cells` (a table, or a SELECT in parentheses) into the table `into`. `statement` is the compiled merge."""
    filled = statement.replace("{into}", into).replace("{generation}", str(stamp)).replace("{cells}", cells)
    run(connection, filled.replace("{since}", str(since)))


def drop(connection: Connection, name: str) -> None:
    """Drops a table that no reader has a right to."""
    run(connection, f"DROP TABLE IF EXISTS {name}")


def run(connection: Connection, statement: str) -> CursorResult[Any]:
    """Executes a compiled text verbatim: its colons and percent signs are not parameters."""
    return connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
