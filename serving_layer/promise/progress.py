"""Queries and their progress: the record of what Postgres has counted, and the lock that guards it.

A query's row in `lamina.query` locks everything that depends on its progress: committing a micro-batch, opening a
generation, going live, handing over, registering a version. Locks are taken in one order: queries by name, then
generations. (One exception: a move to a new source locks the replaced source first, `batch_layer/new_sources.py`.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, case, func, literal, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from master_log.kafka.tails import Tails
from master_log.offsets import OffsetRange, Offsets, TopicPartition
from master_log.reading.log_times import LogTimes
from serving_layer.postgres.bookkeeping import archived as archived_table
from serving_layer.postgres.bookkeeping import heartbeat, progress, query
from serving_layer.postgres.states import WriterKind
from view_algebra.errors import LaminaError

WAITS_AFTER = 5.0
"""Seconds after which an uncounted record is waiting: longer than a micro-batch of a stream that keeps up."""


class RecordedQuery(NamedTuple):
    """A streaming query as recorded. `fence` is the token of its newest writer."""

    name: str
    topic: str
    topic_id: str
    fence: int
    writer: str | None
    writer_kind: WriterKind | None
    stopped: str | None
    newest: datetime | None
    committed_at: datetime | None
    duplicates: int
    conflicts: int

    @property
    def is_read(self) -> bool:
        """True if its writer is a speed layer."""
        return self.writer is not None and self.writer_kind is WriterKind.SPEED_LAYER


class Fenced(LaminaError):
    """A newer writer has taken the query over."""


def queries(connection: Connection) -> dict[str, RecordedQuery]:
    """All queries, by name."""
    rows = connection.execute(select(*(query.c[field] for field in RecordedQuery._fields)).order_by(query.c.name))
    return {row.name: RecordedQuery(*row) for row in rows}


def queries_over(connection: Connection, topic: str) -> list[RecordedQuery]:
    """The queries of the sources declared over a topic. A stream and a table may share a topic."""
    declared = set(connection.execute(select(progress.c.query).where(progress.c.topic == topic).distinct()).scalars())
    return [reader for name, reader in queries(connection).items() if name in declared]


def lock(connection: Connection, names: Iterable[str]) -> None:
    """Locks the queries until the transaction ends. Later statements see everything committed before the lock.

    This needs a statement of its own in READ COMMITTED: a statement that locked and read would read the snapshot from
    before it waited.
    """
    for name in sorted(set(names)):
        locked = connection.execute(select(query.c.name).where(query.c.name == name).with_for_update()).scalar()
        if locked is None:
            raise LaminaError(
                f"There is no query named {name}",
                evidence="its source is not in the catalog that was applied last",
                way_out="`lamina status` lists the queries; `lamina apply` deploys a source.",
            )


def take_over(connection: Connection, name: str, writer: str, kind: WriterKind = WriterKind.SPEED_LAYER) -> int:
    """Makes `writer` the only accepted writer of the query and returns its fence token."""
    lock(connection, [name])
    died = (query.c.writer_kind == WriterKind.SPEED_LAYER) & (query.c.writer != writer)
    fence: int = connection.execute(
        update(query)
        .where(query.c.name == name)
        .values(
            fence=query.c.fence + 1,
            writer=writer,
            writer_kind=kind,
            stopped=None,
            deaths=case((died, query.c.deaths + 1), else_=query.c.deaths),
        )
        .returning(query.c.fence)
    ).scalar_one()
    beat = insert(heartbeat).values(query=name, heard_at=func.clock_timestamp())
    connection.execute(
        beat.on_conflict_do_update(index_elements=[heartbeat.c.query], set_={"heard_at": beat.excluded.heard_at})
    )
    return fence


def deaths(connection: Connection, name: str) -> int:
    """Number of consecutive writers that were replaced before they committed anything."""
    return int(connection.execute(select(query.c.deaths).where(query.c.name == name)).scalar_one())


def check_fence(connection: Connection, name: str, fence: int) -> None:
    """Raises `Fenced` unless `fence` is the query's newest token. The caller holds the query's lock."""
    newest, writer = connection.execute(select(query.c.fence, query.c.writer).where(query.c.name == name)).one()
    if newest != fence:
        raise Fenced(
            f"The query {name} was taken over",
            evidence=f"this writer holds token {fence}, {writer} holds token {newest}",
            way_out="Let the newer one continue, or start this one again to take the query back.",
        )


def read(connection: Connection, names: Sequence[str]) -> Offsets:
    """The progress of the queries. Every record below it is in Postgres."""
    return _offsets(connection, names, "next_offset")


def read_by_query(connection: Connection, names: Collection[str]) -> dict[str, Offsets]:
    """The progress of each of these queries, by name."""
    return _offsets_by_query(connection, names, "next_offset")


def starts(connection: Connection, names: Sequence[str]) -> Offsets:
    """The queries' first offsets: Lamina counts every record from there."""
    return _offsets(connection, names, "start_offset")


def starts_by_query(connection: Connection, names: Collection[str]) -> dict[str, Offsets]:
    """The first offsets of each of these queries, by name."""
    return _offsets_by_query(connection, names, "start_offset")


def begins(connection: Connection, topic: str) -> Offsets:
    """The offsets at which a topic's log begins: the smallest first offsets of the sources over it."""
    by_source = [starts(connection, [reader.name]) for reader in queries_over(connection, topic)]
    shared = [at for at in (by_source[0] if by_source else ()) if all(at in offsets for offsets in by_source)]
    return Offsets({at: min(offsets[at] for offsets in by_source) for at in shared})


def read_with_tails(connection: Connection, name: str) -> tuple[Offsets, Tails]:
    """The progress of a query, and Kafka's tails below it at the time of the commit."""
    rows = connection.execute(
        select(progress.c.topic, progress.c.partition, progress.c.next_offset, progress.c.tail).where(
            progress.c.query == name
        )
    ).all()
    tails = {TopicPartition(row.topic, row.partition): row.tail for row in rows if row.tail is not None}
    return Offsets({TopicPartition(row.topic, row.partition): row.next_offset for row in rows}), tails


def log_times(connection: Connection, name: str) -> dict[TopicPartition, int]:
    """The known log times of a table's records below progress, in microseconds since 1970, by partition."""
    times = select(progress.c.topic, progress.c.partition, progress.c.log_time).where(
        progress.c.query == name, progress.c.log_time.is_not(None)
    )
    return {TopicPartition(row.topic, row.partition): row.log_time for row in connection.execute(times)}


def lacks_log_times(connection: Connection, name: str) -> bool:
    """True if a partition has counted records and no known log time."""
    counted = (progress.c.next_offset > progress.c.start_offset, progress.c.log_time.is_(None))
    unknown = select(progress.c.partition).where(progress.c.query == name, *counted)
    return connection.execute(unknown).first() is not None


def move(
    connection: Connection,
    name: str,
    to: Offsets,
    newest: datetime | None,
    tails: Tails | None = None,
    log_times: LogTimes | None = None,
) -> None:
    """Moves the progress of a query whose lock is held. A new partition begins at offset 0.

    `tails` are Kafka's tails below `to`, for the partitions that move. `log_times` are those that a table's records
    have reached below `to`. If they are missing, the next reader asks the log for them.

    `newest` is capped at the clock. Otherwise a producer with a fast clock would make the view look fresh until then.
    """
    no_later_than_now = None if newest is None else func.least(newest, func.clock_timestamp())
    statement = insert(progress).values(
        [
            {
                "query": name,
                "topic": at.topic,
                "partition": at.partition,
                "start_offset": 0,
                "next_offset": offset,
                "tail": (tails or {}).get(at),
                "log_time": (log_times or {}).get(at),
            }
            for at, offset in to.items()
        ]
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[progress.c.query, progress.c.topic, progress.c.partition],
            set_={column: statement.excluded[column] for column in ("next_offset", "tail", "log_time")},
            where=(progress.c.next_offset != statement.excluded.next_offset) | statement.excluded.tail.is_not(None),
        )
    )
    connection.execute(
        update(query)
        .where(query.c.name == name)
        .values(committed_at=func.clock_timestamp(), newest=func.greatest(query.c.newest, no_later_than_now), deaths=0)
    )


def record_backlog(connection: Connection, ends: Mapping[str, Sequence[tuple[float, Offsets]]]) -> dict[str, int]:
    """Records how far behind queries are. `ends` are past ends of their topics, newest last, each with its age in s.

    Returns for each query how many of the ends progress has reached. Those need no further look. Skips a query that is
    locked.
    """
    free = select(query.c.name).where(query.c.name.in_(ends)).order_by(query.c.name).with_for_update(skip_locked=True)
    return {name: _record_backlog(connection, name, ends[name]) for name in connection.execute(free).scalars().all()}


def _record_backlog(connection: Connection, name: str, ends: Sequence[tuple[float, Offsets]]) -> int:
    reached = read(connection, [name])
    done = max((n for n, (_, end) in enumerate(ends, 1) if reached.reaches(end)), default=0)
    due = [end for ago, end in ends if ago >= WAITS_AFTER]
    waiting = OffsetRange.since(reached, due[-1]).size if due else 0
    now = func.clock_timestamp()
    if done:
        at = now - func.make_interval(0, 0, 0, 0, 0, 0, ends[done - 1][0])
        connection.execute(update(query).where(query.c.name == name).values(caught_up_at=at))
    fewer = query.c.waiting.is_(None) | (query.c.waiting > waiting) | ((query.c.waiting == 0) & literal(waiting > 0))
    connection.execute(update(query).where(query.c.name == name, fewer).values(waiting=waiting, waiting_at=now))
    return done


BUSY = timedelta(seconds=10)
"""A writer that has committed within this time is about to commit again."""


def are_busy(connection: Connection, names: Collection[str]) -> bool:
    """True if the writer of at least one of these queries is committing micro-batches."""
    lately = query.c.committed_at > func.clock_timestamp() - BUSY
    committing = select(query.c.name).where(query.c.name.in_(names), query.c.writer.is_not(None), lately)
    return connection.execute(committing).first() is not None


def are_read(connection: Connection) -> bool:
    """True if a speed layer that writes some query has sent a heartbeat recently."""
    lately = heartbeat.c.heard_at > func.clock_timestamp() - BUSY
    by_speed_layer = query.c.writer_kind == WriterKind.SPEED_LAYER
    alive = select(query.c.name).join(heartbeat).where(query.c.writer.is_not(None), by_speed_layer, lately)
    return connection.execute(alive).first() is not None


def record_heartbeat(connection: Connection, fences: Mapping[str, int]) -> None:
    """Records a heartbeat of the queries' writer. Waits for no lock, and skips queries with a newer writer."""
    beats = select(heartbeat.c.query).join(query).where(tuple_(query.c.name, query.c.fence).in_(list(fences.items())))
    free = beats.with_for_update(of=heartbeat, skip_locked=True).scalar_subquery()
    connection.execute(update(heartbeat).where(heartbeat.c.query.in_(free)).values(heard_at=func.clock_timestamp()))


def limit_lock_waits(connection: Connection) -> None:
    """Limits lock waits in this transaction to 2 seconds, so that a lock delays few heartbeats."""
    connection.execute(text("SET LOCAL lock_timeout = '2s'"))


def release(connection: Connection, fences: Mapping[str, int]) -> None:
    """Records that the writer of these queries has ended normally. Waits at most 3 seconds for each lock, because it
    must not delay a process that is ending.
    """
    connection.execute(text("SET LOCAL lock_timeout = '3s'"))
    is_own = tuple_(query.c.name, query.c.fence).in_(list(fences.items()))
    lock(connection, connection.execute(select(query.c.name).where(is_own)).scalars())
    connection.execute(update(query).where(is_own).values(writer=None, writer_kind=None, deaths=0))


def record_archived(connection: Connection, name: str, held: Offsets) -> None:
    """Records the offsets that the master log holds, so `status` needs no Spark to ask the log."""
    for at, offset in held.items():
        statement = insert(archived_table).values(query=name, topic=at.topic, partition=at.partition, held=offset)
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=[archived_table.c.query, archived_table.c.topic, archived_table.c.partition],
                set_={"held": offset, "archived_at": func.clock_timestamp()},
            )
        )


def record_stop(connection: Connection, name: str, why: str | None, fence: int | None = None) -> None:
    """Records the reason why a query has stopped, or None once it runs again.

    Raises `Fenced` if `fence` is not its newest token.
    """
    if fence is not None:
        lock(connection, [name])
        check_fence(connection, name, fence)
    connection.execute(update(query).where(query.c.name == name).values(stopped=why))


def _offsets(connection: Connection, names: Sequence[str], column: str) -> Offsets:
    rows = connection.execute(
        select(progress.c.topic, progress.c.partition, progress.c[column]).where(progress.c.query.in_(names))
    )
    return Offsets({TopicPartition(topic, partition): offset for topic, partition, offset in rows})


def _offsets_by_query(connection: Connection, names: Collection[str], column: str) -> dict[str, Offsets]:
    rows = connection.execute(
        select(progress.c.query, progress.c.topic, progress.c.partition, progress.c[column]).where(
            progress.c.query.in_(names)
        )
    )
    by_query: dict[str, dict[TopicPartition, int]] = {}
    for name, topic, partition, offset in rows:
        by_query.setdefault(name, {})[TopicPartition(topic, partition)] = offset
    return {name: Offsets(offsets) for name, offsets in by_query.items()}
