"""Tables of cells: how they are named, made, staged into and merged.

A generation's cells are one table, `cells.<cell table>_g<generation>`. It stands alone while the generation is
building, because a partition cannot be made or emptied without stopping the readers of its parent; going live
attaches it to `cells.<cell table>`, which readers know. Its realtime tables are
`realtime.<cell table>_g<generation>_<n>`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, CursorResult

from view_algebra.compiled import CellTable


@dataclass(frozen=True)
class Staged:
    """Cells on their way into Postgres: one COPY, read by the merges of several tables of cells.

    ddl: the temporary table. rows: CSV without a header, NULL as nothing between two commas.
    read: per table of cells, by name, the SELECT of its keys and partials from the temporary table.
    """

    ddl: str
    table: str
    rows: bytes
    read: Mapping[str, str]


def cells_of(cell_table: str, generation: int) -> str:
    """The qualified name of a generation's cells."""
    return f'cells."{cell_table}_g{generation}"'


def realtime_of(cell_table: str, generation: int, number: int) -> str:
    """The qualified name of one of the realtime tables of a generation."""
    return f'realtime."{cell_table}_g{generation}_{number}"'


def parent_of(cell_table: str) -> str:
    """The qualified name of the table that readers know, partitioned by generation."""
    return f'cells."{cell_table}"'


def create_parent(connection: Connection, table: CellTable) -> None:
    """Makes the table that readers know, with no partition and so with no cell."""
    run(connection, table.cells.replace("{table}", parent_of(table.name)) + "\nPARTITION BY LIST (generation)")


def create(connection: Connection, ddl: str, name: str, generation: int | None = None) -> None:
    """Makes a table of cells that stands alone; with `generation`, one that a parent takes without scanning it."""
    run(connection, ddl.replace("{table}", name))
    if generation is not None:
        run(connection, f"ALTER TABLE {name} ADD CHECK (generation = {generation})")


def attach(connection: Connection, cell_table: str, generation: int) -> None:
    """Gives a generation's cells to readers: they read on meanwhile, since only the new partition is locked."""
    run(
        connection,
        f"ALTER TABLE {parent_of(cell_table)} ATTACH PARTITION {cells_of(cell_table, generation)}"
        f" FOR VALUES IN ({generation})",
    )


def stage(connection: Connection, staged: Staged) -> None:
    """Copies cells into a temporary table that lasts until the transaction ends."""
    run(connection, staged.ddl)
    copy(connection, staged.table, staged.rows)


def copy(connection: Connection, table: str, rows: bytes) -> None:
    """COPY of CSV rows (no header, NULL as nothing between two commas) into `table`."""
    cursor = connection.connection.cursor()
    try:
        cursor.copy_expert(f"COPY {table} FROM STDIN (FORMAT csv)", io.BytesIO(rows))
    finally:
        cursor.close()


def merge(connection: Connection, statement: str, *, into: str, generation: int, cells: str) -> None:
    """Folds `cells` (a table, or a SELECT in parentheses) into the table `into`; `statement` is the compiled merge."""
    filled = statement.replace("{into}", into).replace("{generation}", str(generation)).replace("{cells}", cells)
    run(connection, filled)


def drop(connection: Connection, name: str) -> None:
    """Drops a table that no reader knows."""
    run(connection, f"DROP TABLE IF EXISTS {name}")


def run(connection: Connection, statement: str) -> CursorResult[Any]:
    """Executes a compiled text as it is: its colons and percent signs are not parameters."""
    return connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
