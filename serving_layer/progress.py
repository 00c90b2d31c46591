"""Queries and their progress: the truth about what is in Postgres, and the lock that guards it.

A query's row in `lamina.query` is the lock of everything that depends on its progress: committing a micro-batch,
opening a generation, going live, handing over, registering a version. Locks are taken in one order: queries by name,
then generations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert

from master_log.offsets import Offsets, TopicPartition
from serving_layer.bookkeeping import archived as archived_table
from serving_layer.bookkeeping import progress, query
from view_algebra.errors import LaminaError


@dataclass(frozen=True)
class Query:
    """A streaming query as it is recorded: `fence` is the token of its newest writer."""

    name: str
    topic: str
    topic_id: str
    fence: int
    writer: str | None
    stopped: str | None
    newest: datetime | None
    committed_at: datetime | None


class Fenced(LaminaError):
    """A newer writer has taken the query over."""


def queries(connection: Connection) -> dict[str, Query]:
    """All queries, by name."""
    rows = connection.execute(
        select(
            query.c.name,
            query.c.topic,
            query.c.topic_id,
            query.c.fence,
            query.c.writer,
            query.c.stopped,
            query.c.newest,
            query.c.committed_at,
        ).order_by(query.c.name)
    )
    return {row.name: Query(*row) for row in rows}


def lock(connection: Connection, names: Iterable[str]) -> None:
    """Holds the queries until the transaction ends; what is read after it is what was committed before.

    A statement of its own, in READ COMMITTED: a statement that both locks and reads would read what was there when
    it began to wait.
    """
    for name in sorted(set(names)):
        locked = connection.execute(select(query.c.name).where(query.c.name == name).with_for_update()).scalar()
        if locked is None:
            raise LaminaError(
                f"There is no query named {name}",
                evidence="its source is not in the catalog that was applied last",
                way_out="`lamina status` lists the queries; `lamina apply` deploys a source.",
            )


def take_over(connection: Connection, name: str, writer: str) -> int:
    """Makes `writer` the only one whose micro-batches are accepted, and gives it its fence token."""
    lock(connection, [name])
    fence: int = connection.execute(
        update(query)
        .where(query.c.name == name)
        .values(fence=query.c.fence + 1, writer=writer, stopped=None)
        .returning(query.c.fence)
    ).scalar_one()
    return fence


def check_fence(connection: Connection, name: str, fence: int) -> None:
    """Raises `Fenced` unless `fence` is the newest token of the query, whose lock is held."""
    newest, writer = connection.execute(select(query.c.fence, query.c.writer).where(query.c.name == name)).one()
    if newest != fence:
        raise Fenced(
            f"The query {name} was taken over",
            evidence=f"this writer holds token {fence}, {writer} holds token {newest}",
            way_out="Let the newer one go on, or start this one again to take the query back.",
        )


def read(connection: Connection, names: Sequence[str]) -> Offsets:
    """The progress of the queries: every record below it is in Postgres."""
    return _offsets(connection, names, "next_offset")


def starts(connection: Connection, names: Sequence[str]) -> Offsets:
    """The first offsets that Lamina answers for."""
    return _offsets(connection, names, "start_offset")


def write(connection: Connection, name: str, to: Offsets, newest: datetime | None) -> None:
    """Moves the progress of a query whose lock is held; a partition that is new begins at its first record.

    A producer may set times ahead of the clock: such a record is of now, or a view would seem fresh until then.
    """
    now_at_the_latest = None if newest is None else func.least(newest, func.clock_timestamp())
    statement = insert(progress).values(
        [
            {"query": name, "topic": at.topic, "partition": at.partition, "start_offset": 0, "next_offset": offset}
            for at, offset in to.items()
        ]
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[progress.c.query, progress.c.topic, progress.c.partition],
            set_={"next_offset": statement.excluded.next_offset},
            where=progress.c.next_offset != statement.excluded.next_offset,
        )
    )
    connection.execute(
        update(query)
        .where(query.c.name == name)
        .values(committed_at=func.clock_timestamp(), newest=func.greatest(query.c.newest, now_at_the_latest))
    )


def caught_up(connection: Connection, name: str, ends: Offsets, seconds_ago: float) -> None:
    """Notes that a query had counted everything, when its progress has reached the ends the topic had so long ago."""
    if read(connection, [name]).reaches(ends):
        at = func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, seconds_ago)
        connection.execute(update(query).where(query.c.name == name).values(caught_up_at=at))


def archived(connection: Connection, name: str, held: Offsets) -> None:
    """Notes what the master log holds, for `status`: the log itself is asked only by those who have Spark at hand."""
    for at, offset in held.items():
        statement = insert(archived_table).values(query=name, topic=at.topic, partition=at.partition, held=offset)
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=[archived_table.c.query, archived_table.c.topic, archived_table.c.partition],
                set_={"held": offset, "archived_at": func.clock_timestamp()},
            )
        )


def stop(connection: Connection, name: str, why: str | None) -> None:
    """Records why a query refuses to go on, for `status`."""
    connection.execute(update(query).where(query.c.name == name).values(stopped=why))


def _offsets(connection: Connection, names: Sequence[str], column: str) -> Offsets:
    rows = connection.execute(
        select(progress.c.topic, progress.c.partition, progress.c[column]).where(progress.c.query.in_(names))
    )
    return Offsets({TopicPartition(topic, partition): offset for topic, partition, offset in rows})
