"""Loading a batch view: each part of a Spark result is copied once, even if its task runs several times."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import closing

import psycopg2
from sqlalchemy import Connection, delete, select

from serving_layer.catalog import lookup
from serving_layer.postgres import cells, courtesy
from serving_layer.postgres.bookkeeping import cell_table, generation_cells, load
from serving_layer.postgres.database import CONNECTION
from serving_layer.postgres.states import GenerationState
from serving_layer.promise import generations
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import quoted


class _Chunks(io.RawIOBase):
    """A file of CSV that `COPY` reads while the chunks are being produced."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks: Iterator[bytes] = iter(chunks)
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int) -> bytes:  # type: ignore[override]
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._left = chunk
        part, self._left = self._left[:size], self._left[size:]
        return part


def begin_attempt(connection: Connection, generation: int, name: str) -> int:
    """Empties a generation's cells before they are loaded (again). Returns the number of this attempt."""
    row = connection.execute(generations.cells_row(generation, name).with_for_update()).one_or_none()
    state = lookup.get(connection, generation).state
    if row is None or state is not GenerationState.BUILDING or row.absorbed > 0:
        raise LaminaError(
            f"Generation {generation} is {state} and its cells are complete",
            way_out="Compute only a generation that is building; begin another with `lamina rebuild`.",
        )
    ddl = connection.execute(select(cell_table.c.ddl).where(cell_table.c.name == name)).scalar_one()
    if row.attempt:  # a first attempt meets an empty table, so it need not wait for a backup that reads all tables
        cells.drop(connection, row.place)
        cells.create(connection, ddl, row.place)
    connection.execute(delete(load).where(load.c.generation == generation, load.c.cell_table == name))
    this = generations.update_cells(generation, name)
    connection.execute(this.values(loaded_at=None, attempt=row.attempt + 1))
    return int(row.attempt + 1)


def not_loaded(connection: Connection, generation: int) -> set[str]:
    """A generation's tables of cells that are not loaded yet."""
    todo = select(generation_cells.c.cell_table).where(
        generation_cells.c.generation == generation, generation_cells.c.loaded_at.is_(None)
    )
    return set(connection.execute(todo).scalars())


def load_part(
    dsn: str, *, generation: int, name: str, attempt: int, part: int, columns: tuple[str, ...], rows: Iterable[bytes]
) -> int:
    """Copies one part of a batch view and records the part in the same transaction. Returns the number of cells.

    Does nothing if another run of the task has loaded the part, or if the attempt is over (the driver died and the
    view is being recomputed). `rows` are chunks of CSV.
    """
    with closing(psycopg2.connect(dsn, **CONNECTION)) as connection:
        courtesy.backend_stands_back(connection)
        with connection, connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO lamina.load (generation, cell_table, part)"
                " SELECT generation, cell_table, %s FROM lamina.generation_cells"
                " WHERE generation = %s AND cell_table = %s AND attempt = %s FOR SHARE"
                " ON CONFLICT DO NOTHING",
                (part, generation, name, attempt),
            )
            if cursor.rowcount == 0:
                return 0
            named = ", ".join(quoted(column) for column in columns)
            cursor.copy_expert(
                f"COPY {cells.cells_of(name, generation)} ({named}) FROM STDIN (FORMAT csv)", _Chunks(rows)
            )
            return int(cursor.rowcount)


def complete(connection: Connection, generation: int, name: str, attempt: int, computed: AbstractSet[int]) -> None:
    """Records that the batch view is complete, and updates the planner's statistics.

    `computed` are the parts that have cells, as the tasks reported them. Raises if other parts are loaded.
    """
    generations.record_loaded(connection, generation, name, attempt)
    parts = select(load.c.part).where(load.c.generation == generation, load.c.cell_table == name)
    loaded = set(connection.execute(parts).scalars())
    if loaded != computed:
        raise LaminaError(
            f"The cells of generation {generation} are not complete",
            evidence=f"{name}: {len(computed)} parts were computed, {len(loaded)} are loaded;"
            f" unmatched: {', '.join(map(str, sorted(loaded ^ computed)))}",
            way_out="Compute them again: `lamina step compute`, or begin another with `lamina rebuild`.",
        )
    cells.run(connection, f"ANALYZE {cells.cells_of(name, generation)}")
