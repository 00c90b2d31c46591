"""The one transaction of a micro-batch. It keeps every promise of the speed layer.

After `commit` of a micro-batch of the records in `[start, end)`, either nothing has changed, or its cells are merged
into every generation that its query feeds, its bad records are in quarantine, its ids are among the counted ones, and
progress is `end`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from sqlalchemy import Connection, func, select

from master_log.kafka.tails import Tails
from master_log.offsets import OffsetRange, Offsets
from master_log.reading.log_times import LogTimes
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import cell_table, generation, generation_cells
from serving_layer.postgres.phases import Timer
from serving_layer.postgres.states import GenerationState
from serving_layer.promise import event_ids, history, progress, quarantine
from serving_layer.promise.event_ids import IdLookup
from serving_layer.promise.quarantine import BadRecords


@dataclass(frozen=True)
class MicroBatch:
    """The result of computing the records of one offset range of one query.

    cell_tables: the tables of cells it was computed for
    newest: the greatest Kafka timestamp of its records
    tails: Kafka's tails below its end, as of before its records were read
    ids: the result of looking up its ids, for a stream with UNIQUE
    log_times: the log times that a table's records have reached below its end
    timer: counts the seconds of its phases
    """

    query: str
    fence: int
    range: OffsetRange
    cell_tables: frozenset[str]
    staged: Sequence[cells.StagedCells]
    bad: BadRecords | None
    newest: datetime | None
    tails: Tails = field(default_factory=dict)
    ids: IdLookup | None = None
    log_times: LogTimes = field(default_factory=dict)
    timer: Timer = field(default_factory=Timer, compare=False)


class Outcome(Enum):
    """The result of committing a micro-batch."""

    APPLIED = "applied"
    ALREADY_COUNTED = "its records were counted before"
    OTHER_TABLES = "other tables of cells are maintained: compute it again"
    NOT_CONTIGUOUS = "it does not begin at progress: start again from progress"


@dataclass(frozen=True)
class MaintainedTable:
    """A table of cells that a query maintains, of a generation that is building or live.

    stamp: the view's newest generation, written to every merged cell
    since: the beginning of the oldest groups that the generation keeps
    """

    cell_table: str
    generation: int
    stamp: int
    live: bool
    place: str
    realtime: int
    merge: str
    since: datetime | None

    @property
    def target(self) -> str:
        """The table to merge into: a live generation's cells, or a building generation's newest realtime table."""
        if self.live:
            return self.place
        return cells.realtime_of(self.cell_table, self.generation, self.realtime)


def commit(connection: Connection, batch: MicroBatch) -> Outcome:
    """Writes the effect of a micro-batch and its progress, both or neither. Raises `Fenced`.

    The cells are copied in before the lock is taken, so a process that freezes while sending them blocks nobody. The
    lock is a statement of its own: every later statement sees all that was committed before the lock.
    """
    read: dict[str, str] = {}
    with batch.timer.phase("stage"):
        for staged in batch.staged:
            cells.stage(connection, staged)
            read |= staged.read
        quarantine.stage(connection, batch.bad)
        event_ids.stage(connection, batch.ids)
    progress.lock(connection, [batch.query])
    progress.check_fence(connection, batch.query, batch.fence)
    fed = maintained(connection, batch.query)
    if {table.cell_table for table in fed} != batch.cell_tables:
        return Outcome.OTHER_TABLES
    outcome = contiguity(progress.read(connection, [batch.query]), batch.range)
    if outcome is not Outcome.APPLIED:
        return outcome

    with batch.timer.phase("merge"):
        for table in fed:
            fresh = read[table.cell_table]
            cells.merge(connection, table.merge, into=table.target, stamp=table.stamp, cells=fresh, since=table.since)
        quarantine.write(connection, batch.bad)
        progress.move(connection, batch.query, batch.range.end, batch.newest, batch.tails, batch.log_times)
        history.record_micro_batch(connection, batch.query, batch.range)
        event_ids.write(connection, batch.query, batch.ids)
    return Outcome.APPLIED


def contiguity(reached: Offsets, range: OffsetRange) -> Outcome:
    """Compares a range with progress (`reached`): apply it, skip it, or refuse it as not contiguous.

    A partition without progress is new and begins at offset 0.
    >>> at = Offsets.of("t", {0: 5})
    >>> contiguity(at, OffsetRange(at, Offsets.of("t", {0: 9}))).name
    'APPLIED'
    >>> contiguity(at, OffsetRange(Offsets.of("t", {0: 3}), at)).name
    'ALREADY_COUNTED'
    >>> contiguity(at, OffsetRange(Offsets.of("t", {0: 3}), Offsets.of("t", {0: 9}))).name
    'NOT_CONTIGUOUS'
    """
    if all(range.start[at] == reached.get(at, 0) for at in range.end):
        return Outcome.APPLIED
    if reached.reaches(range.end):
        return Outcome.ALREADY_COUNTED
    return Outcome.NOT_CONTIGUOUS


def maintained(connection: Connection, query: str) -> list[MaintainedTable]:
    """The tables of the building and live generations that a query's micro-batches merge into now.

    They are ordered by generation, so two transactions never wait for each other.
    """
    rows = connection.execute(
        select(
            generation_cells.c.cell_table,
            generation.c.id,
            func.max(generation.c.id).over(partition_by=generation.c.view),
            generation.c.state == GenerationState.LIVE,
            generation_cells.c.place,
            generation_cells.c.realtime,
            cell_table.c.merge,
            generation.c.since,
        )
        .join_from(generation_cells, generation, generation_cells.c.generation == generation.c.id)
        .join(cell_table, generation_cells.c.cell_table == cell_table.c.name)
        .where(cell_table.c.query == query, generation.c.state.in_([GenerationState.BUILDING, GenerationState.LIVE]))
        .order_by(generation.c.id, cell_table.c.name)
    )
    return [MaintainedTable(*row) for row in rows]
