"""What moved the numbers of views, in the order in which it did: written by the transactions that moved them.

A micro-batch leaves a row with the offsets that it counted, and so does a leap. A view that shows another generation
from now on, or another SELECT, leaves a row, too. Each is written under the lock of the queries concerned, so that for
every query the order of the rows is the order in which readers saw what they tell; two queries may commit at once.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, insert, or_, select, text

from master_log.offsets import OffsetRange, Offsets, TopicPartition
from serving_layer.postgres.bookkeeping import generation, history, proof, query, rebuild
from serving_layer.promise import progress

KEPT_DAYS = 2
"""How long the history is kept: a row of some 200 bytes per micro-batch."""

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
class Moved:
    """The progress of a query moved by this range. leapt: the generation that did it, where it was no micro-batch."""

    at: datetime
    query: str
    range: OffsetRange
    leapt: int | None


@dataclass(frozen=True)
class Shown:
    """From now on a view shows this generation (a derived one has none) by this definition."""

    at: datetime
    view: str
    generation: int | None
    definition: str | None


@dataclass(frozen=True)
class History:
    """What moved some queries and views, oldest first, and where all of them were before.

    begins: progress of each query then. shown: what each view showed then, of those that were shown. known_since: where
    it does not reach back as far as was asked, the time of its first row.
    """

    steps: Sequence[Moved | Shown]
    begins: Mapping[str, Offsets]
    shown: Mapping[str, Shown]
    known_since: datetime | None


@dataclass(frozen=True)
class Made:
    """How a generation was made. rebuild: None where it began with its view, below no record."""

    version: str
    rebuild: int | None
    leap: bool
    since: datetime | None


@dataclass(frozen=True)
class Compared:
    """What the proof of two generations found."""

    cells: int
    differing: int


def moved(connection: Connection, query: str, range: OffsetRange) -> None:
    """Keeps that a micro-batch has moved progress; in its transaction, under the lock of its query."""
    _moved(connection, query, range.start, range.end, at=func.clock_timestamp())


def leapt(
    connection: Connection,
    query: str,
    start: Offsets,
    end: Offsets,
    *,
    leapt_to: int | None,
    lost: Container[TopicPartition],
) -> None:
    """Keeps that a leap has moved progress. Of partitions whose end Kafka has `lost`, offsets are other records' now:
    what led up to them is forgotten; so it is where the query feeds no view, and no generation leapt.
    """
    if leapt_to is None or any(at in lost for at in end):
        forget(connection, query)
    else:
        _moved(connection, query, start, end, generation=leapt_to)


def shown(connection: Connection, views: Sequence[str]) -> None:
    """Keeps what each of these views shows from now on, where it is not what it showed before."""
    connection.execute(_SHOWN, {"views": list(views)})


def forget(connection: Connection, query: str) -> None:
    """Forgets how the progress of a query moved: its offsets are no longer those of the same records."""
    connection.execute(delete(history).where(history.c.query == query))


def trim(connection: Connection) -> None:
    """Removes what is older than `KEPT_DAYS`; of what each view showed before, the last row stays."""
    long_ago = history.c.at < func.now() - func.make_interval(0, 0, 0, KEPT_DAYS)
    last = select(func.max(history.c.id)).where(history.c.view.is_not(None), long_ago).group_by(history.c.view)
    connection.execute(delete(history).where(long_ago, or_(history.c.view.is_(None), history.c.id.not_in(last))))


def read(connection: Connection, queries: Collection[str], views: Collection[str], since: datetime) -> History:
    """What moved these queries and views since then, as far as it leads up to progress without a gap.

    A gap is where progress moved and no row tells how. In one snapshot: what was moved, and how far.
    """
    asked, since = since, max(since, now(connection) - timedelta(days=KEPT_DAYS))
    reached = {name: dict(progress.read(connection, [name])) for name in queries}
    ours = or_(history.c.query.in_(queries), history.c.view.in_(views))
    found: list[Moved | Shown] = []
    first, gap = None, False
    # By id: a hand-over has the time at which its transaction began, and may come after rows that are younger.
    begin = select(func.min(history.c.id)).where(ours, history.c.at >= since).scalar_subquery()
    for row in connection.execute(select(history).where(ours, history.c.id >= begin).order_by(history.c.id.desc())):
        if row.query is None:
            found.append(Shown(row.at, row.view, row.generation, row.definition))
        else:
            step = _step(row, reached[row.query])
            if gap := any(reached[row.query][at] != end for at, end in step.range.end.items()):
                break
            reached[row.query] |= step.range.start
            found.append(step)
        first = row
    begins = {name: Offsets(at) for name, at in reached.items()}
    if gap or not all(_is_whole(connection, name, at, since) for name, at in begins.items()):
        known = now(connection) if first is None else first.at
    else:
        known = since if asked < since else None
    return History(found[::-1], begins, _before(connection, views, None if first is None else first.id), known)


def _is_whole(connection: Connection, name: str, begins: Offsets, since: datetime) -> bool:
    """Is no row about a query missing that was written since then? Those that are there lead back to `begins`."""
    last = connection.execute(select(query.c.committed_at).where(query.c.name == name)).scalar_one()
    if last is None or last < since or begins == progress.starts(connection, [name]):
        return True
    older = select(history.c.id).where(history.c.query == name, history.c.at < since).limit(1)
    return connection.execute(older).one_or_none() is not None


def now(connection: Connection) -> datetime:
    """The time of a snapshot, by Postgres' clock."""
    found: datetime = connection.execute(select(func.now())).scalar_one()
    return found


def made(connection: Connection, ids: Iterable[int]) -> dict[int, Made]:
    """How these generations were made."""
    rows = connection.execute(
        select(generation.c.id, generation.c.version, generation.c.rebuild, rebuild.c.leap, generation.c.since)
        .join_from(generation, rebuild, generation.c.rebuild == rebuild.c.id, isouter=True)
        .where(generation.c.id.in_(list(ids)))
    )
    return {row.id: Made(row.version, row.rebuild, bool(row.leap), row.since) for row in rows}


def compared(connection: Connection, ids: Collection[int]) -> dict[tuple[int, int], Compared]:
    """What the proofs of these generations found, by the newer and the older of the two."""
    rows = connection.execute(select(proof).where(proof.c.generation.in_(ids), proof.c.against.in_(ids)))
    return {
        (max(row.generation, row.against), min(row.generation, row.against)): Compared(row.cells, row.differing)
        for row in rows
    }


def _step(row: Any, known: Mapping[TopicPartition, int]) -> Moved:
    """A row about a query, whose partitions are those of the topic that it reads."""
    [topic] = {at.topic for at in known}
    starts, ends = (Offsets.of(topic, dict(zip(row.partitions, side, strict=True))) for side in (row.first, row.next))
    return Moved(row.at, row.query, OffsetRange(starts, ends), row.generation)


def _before(connection: Connection, views: Collection[str], id: int | None) -> dict[str, Shown]:
    """What views showed before the row with this id; the last that they showed, where it is None."""
    older = history.c.view.in_(views) if id is None else history.c.view.in_(views) & (history.c.id < id)
    last = select(func.max(history.c.id)).where(older).group_by(history.c.view)
    rows = connection.execute(select(history).where(history.c.id.in_(last)))
    return {row.view: Shown(row.at, row.view, row.generation, row.definition) for row in rows}


def _moved(connection: Connection, query: str, start: Offsets, end: Offsets, **values: object) -> None:
    places = [at for at in end if end[at] > start.get(at, 0)]
    if not places:
        return
    connection.execute(
        insert(history).values(
            query=query,
            partitions=[at.partition for at in places],
            first=[start.get(at, 0) for at in places],
            next=[end[at] for at in places],
            **values,
        )
    )
