"""The alarms of one query: each function looks at a `WatchedQuery` and returns a sentence, or None."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, func, select, text

from master_log.offsets import Offsets, TopicPartition
from serving_layer.catalog.deployed import kinds_of_sources
from serving_layer.monitoring import delays
from serving_layer.narration import age, amount, size
from serving_layer.postgres.bookkeeping import archived, query
from serving_layer.postgres.states import WriterKind
from serving_layer.promise import progress, quarantine, rebuilds

if TYPE_CHECKING:
    from master_log.kafka.brokers import Retention
    from master_log.kafka.transactions import OpenTransaction

ARCHIVES_MISSED = 7200.0
"""Seconds without an archive run: an hourly schedule has missed two."""

NEWEST = 100
"""Offsets at the end of each partition that are searched for a majority of bad records."""

FEW_BAD = 10
"""Bad records among the newest that raise no alarm, however few records there are."""


@dataclass(frozen=True)
class TopicState:
    """A topic as the brokers hold it now. `retention` is None if they do not report it.

    undecided: the records that open transactions hold back
    """

    end: Offsets
    earliest: Offsets
    retention: Retention | None = None
    undecided: Sequence[OpenTransaction] = ()


@dataclass(frozen=True)
class Thresholds:
    """Limits beyond which an alarm is raised.

    after: seconds that records may wait without one being counted
    rebuild_within: hours between two rebuilds, or None if no rebuild is expected
    bad_an_hour: records that may go to quarantine in an hour
    """

    after: float = 60.0
    rebuild_within: float | None = None
    bad_an_hour: int = 1000


@dataclass(frozen=True)
class WatchedQuery:
    """The query of a deployed source, as alarms see it.

    archived: the offset up to which each partition is archived
    archived_ago: seconds since the partition that waits longest was archived. Without a topic, neither is read
    topic: None if the brokers gave no answer
    is_stale: this server is a standby that lags too far to know the present state
    """

    query: progress.RecordedQuery
    is_table: bool
    reached: Offsets
    archived: Offsets
    archived_ago: float
    topic: TopicState | None
    thresholds: Thresholds
    is_stale: bool


def watched_queries(
    connection: Connection, topics: Mapping[str, TopicState], thresholds: Thresholds
) -> Iterator[WatchedQuery]:
    """The queries of deployed sources. `apply` itself reports on the sources that it awaits."""
    kinds = kinds_of_sources(connection)
    is_stale = (delays.behind_primary(connection) or 0) > thresholds.after
    for name, state in progress.queries(connection).items():
        if name in kinds and (reached := progress.read(connection, [name])):
            topic, is_table = topics.get(name), kinds[name] == "table"
            archived_to, seconds = _archived(connection, name) if topic else (reached, 0.0)
            yield WatchedQuery(state, is_table, reached, archived_to, seconds, topic, thresholds, is_stale)


def stands_still(connection: Connection, watched: WatchedQuery) -> str | None:
    """The alarm that a query has stopped, or that its topic is not read fast enough, with the reason."""
    state, topic, limit = watched.query, watched.topic, watched.thresholds.after
    if state.stopped or watched.is_stale:
        return state.stopped
    ages = delays.ages(connection, state.name)
    if (gone := delays.gone_for(state, ages.since_heard)) is not None:
        return f"its speed layer ({state.writer}) was last heard of {age(gone)} ago: start it again (`lamina up`)"
    if topic is None and ages.since_moved > limit:
        return (
            f"Kafka does not answer for its topic, and no record was counted for {age(ages.since_moved)}: make sure"
            " that its brokers run"
        )
    behind = delays.lag(topic.end, watched.reached) if topic else 0
    records = amount(behind, "record")
    if behind and ages.since_moved > limit:
        return f"{records} behind, and none was counted for {age(ages.since_moved)}{_why(connection, state)}"
    if behind and ages.backlog and ages.since_shrunk is not None and ages.since_shrunk > limit:
        return (
            f"{records} behind, and the backlog has not shrunk for {age(ages.since_shrunk)}: the speed layer"
            " is slower than the producers (more cores, fewer views of the source, or"
            f" `lamina rebuild --leap {state.name}`)"
        )
    return None


def open_transaction(_: Connection, watched: WatchedQuery) -> str | None:
    """The alarm that a producer left a transaction open. Later records are not read, yet nothing lags."""
    undecided = watched.topic.undecided if watched.topic else ()
    transactions = [transaction for transaction in undecided if transaction.seconds > watched.thresholds.after]
    if not transactions:
        return None
    longest = max(transactions, key=lambda transaction: (not transaction.by_record, transaction.seconds))
    since = "" if longest.by_record else f" for {age(longest.seconds)}"
    unreported = "; the brokers do not report when it began" if longest.by_record else ""
    return (
        f"a producer has had a transaction open{since} in partition {longest.at.partition}{unreported}, and"
        f" nothing from offset {longest.start} on is counted or archived ({longest.offsets:,} offsets so far): see why"
        " it does not end, or abort it (Kafka's `kafka-transactions.sh`)"
    )


def lost_records(_: Connection, watched: WatchedQuery) -> str | None:
    """The alarm that records left Kafka before they were archived. A rebuild would lack those that were counted."""
    topic = watched.topic
    if topic is None:
        return None
    earliest = topic.earliest
    gone = [(at, end, earliest[at]) for at, end in watched.archived.items() if earliest.get(at, 0) > end]
    if not gone:
        return None
    at, archived_to, present = gone[0]
    counted = min(watched.reached.get(at, 0), present)
    if counted <= archived_to:
        effect = "no view counts them, and no rebuild can"
    elif counted < present:
        effect = f"views count those below {counted}, a rebuild could not"
    else:
        effect = "views still count them, a rebuild could not"
    return (
        f"records of {at.topic} partition {at.partition} from {archived_to} to {present} were removed by retention"
        f" before they were archived: {effect} (`lamina archive {watched.query.name} --accept-loss` records the loss)"
    )


def unarchived(_: Connection, watched: WatchedQuery) -> str | None:
    """The alarm that Kafka may soon drop records that are not archived: because of their age, or of their size."""
    return _nearly_expired(watched) or _crowded_out(watched)


def _nearly_expired(watched: WatchedQuery) -> str | None:
    """The alarm that the oldest unarchived records may be half as old as Kafka's retention."""
    topic = watched.topic
    keeps = topic.retention.milliseconds if topic and topic.retention else None
    if topic is None or keeps is None or watched.archived.reaches(topic.end) or watched.archived_ago < keeps / 2000:
        return None
    return (
        f"nothing was archived for {age(watched.archived_ago)}, and Kafka keeps records for {age(keeps / 1000)}:"
        " run `lamina archive`, and see why its schedule does not"
    )


def _crowded_out(watched: WatchedQuery) -> str | None:
    """The alarm that Kafka, which drops the oldest records by size, is halfway to the unarchived ones.

    Not before two runs of the schedule were missed: the archive also lacks a burst that follows a quiet time.
    """
    topic = watched.topic
    keeps = topic.retention.bytes if topic and topic.retention else None
    if topic is None or keeps is None or watched.archived_ago < ARCHIVES_MISSED:
        return None
    for at, end in topic.end.items():
        earliest = topic.earliest.get(at, 0)
        if earliest and end - watched.archived.get(at, 0) > (end - earliest) / 2:
            return (
                f"nothing was archived for {age(watched.archived_ago)}, and more than half of the records that Kafka"
                f" keeps of partition {at.partition} ({size(keeps)} at most) are not archived:"
                " run `lamina archive`, and see why its schedule does not"
            )
    return None


def unarchived_deletions(_: Connection, watched: WatchedQuery) -> str | None:
    """The alarm that Kafka may drop deletions of a table before they are archived. A rebuild would bring rows back."""
    topic, seconds = watched.topic, watched.archived_ago
    retention = topic.retention if topic else None
    if not watched.is_table or topic is None or retention is None or not retention.compacted:
        return None
    if watched.archived.reaches(topic.end) or seconds < retention.deletions / 2000:
        return None
    return (
        f"nothing was archived for {age(seconds)}, and Kafka drops deletions from a compacted topic"
        f" {age(retention.deletions / 1000)} after they came: run `lamina archive`, and see why its schedule does not"
    )


def compacted(_: Connection, watched: WatchedQuery) -> str | None:
    """The alarm that the topic of a stream has been compacted since it was deployed."""
    retention = watched.topic.retention if watched.topic else None
    if watched.is_table or retention is None or not retention.compacted:
        return None
    return (
        f"topic {watched.query.topic} has been compacted since it was deployed: Kafka drops a record of it when a newer"
        " one has its key, also before it is archived (set its cleanup.policy to delete; `lamina rebuild` says what"
        " differs)"
    )


def bad_records(connection: Connection, watched: WatchedQuery) -> str | None:
    """The alarm that too many records went to quarantine within an hour."""
    name, limit = watched.query.name, watched.thresholds.bad_an_hour
    counted = text(f"SELECT ({quarantine.BAD_LATELY}) FROM lamina.query AS q WHERE q.name = :name")
    lately = connection.execute(counted, {"name": name, "most": limit + 1}).scalar_one()
    if lately > limit:
        many = f"more than {limit:,} records"
    elif quarantine.has_overflowed_within_an_hour(connection, name):
        many = "more records than it keeps"
    elif lately > FEW_BAD and (most := _most_of_the_newest(connection, name)):
        many = most
    else:
        return None
    some = " (or count without a field)" if quarantine.bad_field_count(connection, name) else ""
    return (
        f"{many} went to quarantine{some} within an hour: SELECT * FROM lamina.bad_records"
        " says why (correct the producer, or correct the declaration and run `lamina apply`, which then counts them)"
    )


def _most_of_the_newest(connection: Connection, name: str) -> str | None:
    """The share of bad records among a query's newest, in words, if more than half are bad."""
    bad, newest = connection.execute(
        text("""
            SELECT sum(b.records), sum(least(:newest, p.next_offset - p.start_offset))
            FROM lamina.progress AS p
            CROSS JOIN LATERAL (
                SELECT count(*) AS records FROM lamina.quarantine AS r
                WHERE r.source = p.query AND r.topic = p.topic AND r.partition = p.partition
                    AND r."offset" >= p.next_offset - :newest AND r."offset" < p.next_offset
                    AND r.quarantined_at > clock_timestamp() - interval '1 hour'
            ) AS b
            WHERE p.query = :query
        """),
        {"query": name, "newest": NEWEST},
    ).one()
    return f"{bad:,} of its newest {newest:,} records" if bad > FEW_BAD and 2 * bad > newest else None


def _why(connection: Connection, state: progress.RecordedQuery) -> str:
    if state.writer_kind is WriterKind.LEAP and rebuilds.is_leaping(connection):
        leap = rebuilds.get(connection)
        return (
            f": rebuild {leap.id}, a leap, holds its progress, and its last step was `{leap.step}` (continue its"
            f" steps, or `lamina step abandon --rebuild {leap.id}`)"
        )
    if not state.is_read:
        return ": no speed layer runs (`lamina up`, or `lamina speed`)"
    return f": the log of its speed layer ({state.writer}) says why"


def _archived(connection: Connection, name: str) -> tuple[Offsets, float]:
    """The offsets up to which a query is archived, and the seconds since the partition that waits longest was."""
    rows = connection.execute(
        select(archived.c.topic, archived.c.partition, archived.c.held).where(archived.c.query == name)
    ).all()
    since = func.coalesce(
        select(func.min(archived.c.archived_at)).where(archived.c.query == name).scalar_subquery(),
        select(query.c.created_at).where(query.c.name == name).scalar_subquery(),
    )
    seconds = connection.execute(select(func.extract("epoch", func.clock_timestamp() - since))).scalar_one()
    held = {TopicPartition(topic, partition): offset for topic, partition, offset in rows}
    return progress.starts(connection, [name]).updated(held), float(seconds)
