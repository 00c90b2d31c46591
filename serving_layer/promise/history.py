"""The history: what changed the numbers of views, in order, written by the transactions that changed them.

A micro-batch or a leap adds a row with the offsets that it counted. A view that starts to show another generation or
another SELECT adds a row too. Each row is written under the lock of its queries, so for each query the rows are in the
order in which readers saw the changes. Two queries may commit at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, or_, select, text

from master_log.offsets import OffsetRange, Offsets, TopicPartition
from serving_layer.postgres.bookkeeping import generation, history, proof, query, rebuild
from serving_layer.promise import progress

KEPT_DAYS = 2
"""Days for which the history is kept. It has a row of some 200 bytes per micro-batch."""

_SHOWN = text("""
    INSERT INTO lamina.history (view, generation, definition)
    SELECT v.name, p.generation, c.definition
    FROM lamina.view AS v
    LEFT JOIN lamina.publication AS p ON p.view = v.name
    LEFT JOIN lamina.compiled AS c ON c.kind = 'view' AND c.name = v.name
    LEFT JOIN LATERAL (
        SELECT h.id, h.generation, h.definition
        FROM lamina.history AS h WHERE h.view = v.name ORDER BY h.id DESC LIMIT 1
    ) AS before ON true
    WHERE v.name = ANY(:views) AND (v.kind = 'derived' OR p.generation IS NOT NULL)
        AND (before.id IS NULL OR (before.generation, before.definition) IS DISTINCT FROM (p.generation, c.definition))
    ORDER BY v.position
""")


@dataclass(frozen=True)
class ProgressMove:
    """A move of a query's progress.

    leapt: the generation of the leap, or None for a micro-batch
    """

    at: datetime
    query: str
    range: OffsetRange
    leapt: int | None


@dataclass(frozen=True)
class ViewTurn:
    """A change of the generation or definition that a view shows, valid from `at`. A derived view has no generation."""

    at: datetime
    view: str
    generation: int | None
    definition: str | None


@dataclass(frozen=True)
class History:
    """The changes of some queries and views, oldest first, and the state of each before the first change.

    begins: the progress of each query then
    shown: the generation and definition of each view that was shown then
    known_since: the time of the first row, if the history does not reach back as far as requested
    """

    steps: Sequence[ProgressMove | ViewTurn]
    begins: Mapping[str, Offsets]
    shown: Mapping[str, ViewTurn]
    known_since: datetime | None


@dataclass(frozen=True)
class Origin:
    """The origin of a generation.

    rebuild: None if it was opened with its view, below no record
    """

    version: str
    rebuild: int | None
    leap: bool
    since: datetime | None


@dataclass(frozen=True)
class ProofCounts:
    """The result of the proof of two generations."""

    cells: int
    differing: int


def record_micro_batch(connection: Connection, query: str, range: OffsetRange) -> None:
    """Adds the move of a micro-batch, in its transaction and under the lock of its query."""
    _record_move(connection, query, range.start, range.end, at=func.clock_timestamp())


def record_leap(
    connection: Connection,
    query: str,
    start: Offsets,
    end: Offsets,
    *,
    leapt_to: int | None,
    lost: Container[TopicPartition],
) -> None:
    """Adds the move of a leap, or deletes the query's moves.

    They are deleted if Kafka has `lost` the end of one of the partitions, because their offsets now belong to other
    records, and if the query feeds no view, so no generation leapt.
    """
    if leapt_to is None or any(at in lost for at in end):
        forget(connection, query)
    else:
        _record_move(connection, query, start, end, generation=leapt_to)


def record_shown(connection: Connection, views: Sequence[str]) -> None:
    """Adds a row for each of these views that shows another generation or definition than before."""
    connection.execute(_SHOWN, {"views": list(views)})


def forget(connection: Connection, query: str) -> None:
    """Deletes the moves of a query whose offsets no longer belong to the same records."""
    connection.execute(delete(history).where(history.c.query == query))


def trim(connection: Connection) -> None:
    """Deletes rows older than `KEPT_DAYS`, except the last row of each view."""
    long_ago = history.c.at < func.now() - func.make_interval(0, 0, 0, KEPT_DAYS)
    last = select(func.max(history.c.id)).where(history.c.view.is_not(None), long_ago).group_by(history.c.view)
    connection.execute(delete(history).where(long_ago, or_(history.c.view.is_(None), history.c.id.not_in(last))))


def read(connection: Connection, queries: Collection[str], views: Collection[str], since: datetime) -> History:
    """The changes of these queries and views since a time, as far back as they lead to progress without a gap.

    A gap is a move of progress without a row. The caller reads in one snapshot, so rows and progress agree.
    """
    reach = max(since, snapshot_time(connection) - timedelta(days=KEPT_DAYS))
    reached = {name: dict(progress.read(connection, [name])) for name in queries}
    scope = or_(history.c.query.in_(queries), history.c.view.in_(views))
    changes: list[ProgressMove | ViewTurn] = []
    first, gap = None, False
    # By id: a hand-over's row has the time at which its transaction began, and may follow rows with later times.
    begin = select(func.min(history.c.id)).where(scope, history.c.at >= reach).scalar_subquery()
    for row in connection.execute(select(history).where(scope, history.c.id >= begin).order_by(history.c.id.desc())):
        if row.query is None:
            changes.append(ViewTurn(row.at, row.view, row.generation, row.definition))
        else:
            step = ProgressMove(
                row.at, row.query, _range(row.partitions, row.first, row.next, reached[row.query]), row.generation
            )
            if gap := any(reached[row.query][at] != end for at, end in step.range.end.items()):
                break
            reached[row.query] |= step.range.start
            changes.append(step)
        first = row
    begins = {name: Offsets(at) for name, at in reached.items()}
    if gap or not all(_is_whole(connection, name, at, reach) for name, at in begins.items()):
        known_since = snapshot_time(connection) if first is None else first.at
    else:
        known_since = reach if since < reach else None
    return History(changes[::-1], begins, _before(connection, views, None if first is None else first.id), known_since)


def _is_whole(connection: Connection, name: str, begins: Offsets, since: datetime) -> bool:
    """True if the query's rows since that time are complete. The rows lead back to the progress `begins`."""
    last = connection.execute(select(query.c.committed_at).where(query.c.name == name)).scalar_one()
    if last is None or last < since or begins == progress.starts(connection, [name]):
        return True
    older = select(history.c.id).where(history.c.query == name, history.c.at < since).limit(1)
    return connection.execute(older).one_or_none() is not None


def snapshot_time(connection: Connection) -> datetime:
    """The time of the transaction's snapshot, by Postgres' clock."""
    time: datetime = connection.execute(select(func.now())).scalar_one()
    return time


def origins(connection: Connection, ids: Iterable[int]) -> dict[int, Origin]:
    """The origins of these generations, by id."""
    rows = connection.execute(
        select(generation.c.id, generation.c.version, generation.c.rebuild, rebuild.c.leap, generation.c.since)
        .join_from(generation, rebuild, generation.c.rebuild == rebuild.c.id, isouter=True)
        .where(generation.c.id.in_(list(ids)))
    )
    return {row.id: Origin(row.version, row.rebuild, bool(row.leap), row.since) for row in rows}


def proofs(connection: Connection, ids: Collection[int]) -> dict[tuple[int, int], ProofCounts]:
    """The results of the proofs of these generations, by the newer and the older of the two."""
    rows = connection.execute(select(proof).where(proof.c.generation.in_(ids), proof.c.against.in_(ids)))
    return {
        (max(row.generation, row.against), min(row.generation, row.against)): ProofCounts(row.cells, row.differing)
        for row in rows
    }


def _range(
    partitions: Sequence[int], first: Sequence[int], next: Sequence[int], reached: Mapping[TopicPartition, int]
) -> OffsetRange:
    """The range of a move. The partitions belong to the topic of `reached`, the query's progress."""
    [topic] = {at.topic for at in reached}
    return OffsetRange(*(Offsets.of(topic, dict(zip(partitions, side, strict=True))) for side in (first, next)))


def _before(connection: Connection, views: Collection[str], id: int | None) -> dict[str, ViewTurn]:
    """The last row of each view before the row with this id, or its last row if the id is None."""
    older = history.c.view.in_(views) if id is None else history.c.view.in_(views) & (history.c.id < id)
    last = select(func.max(history.c.id)).where(older).group_by(history.c.view)
    rows = connection.execute(select(history).where(history.c.id.in_(last)))
    return {row.view: ViewTurn(row.at, row.view, row.generation, row.definition) for row in rows}


def _record_move(connection: Connection, query: str, start: Offsets, end: Offsets, **values: object) -> None:
    advanced = [at for at in end if end[at] > start.get(at, 0)]
    if not advanced:
        return
    connection.execute(
        insert(history).values(
            query=query,
            partitions=[at.partition for at in advanced],
            first=[start.get(at, 0) for at in advanced],
            next=[end[at] for at in advanced],
            **values,
        )
    )
