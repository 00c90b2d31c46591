"""Skips: records that an operator excludes by name, because nothing can read or count them.

The promise then covers every other record below progress. A record can be skipped only before it is counted, so
progress decides: a skip locks the query and takes it over, and a micro-batch that was computed with the record is
fenced.

A skip applies to a record, not to an offset. It is stored with the record batch that holds the record. If Kafka loses
that batch, the offset will belong to another record, and the next reader deletes the skip first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.postgresql import insert

from master_log.offsets import Offsets, Skipped, TopicPartition
from serving_layer.postgres.bookkeeping import query, skipped
from serving_layer.postgres.database import Database
from serving_layer.postgres.states import WriterKind
from serving_layer.promise import progress, quarantine, rebuilds
from serving_layer.promise.quarantine import BadRecord
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from master_log.kafka.brokers import Brokers

SKIPPED = "skipped by name"
"""The error of a skipped record in quarantine."""


def read(connection: Connection) -> Skipped:
    """All skipped records of the topics that queries read now."""
    rows = connection.execute(
        select(query.c.topic, skipped.c.partition, skipped.c.offset)
        .join_from(skipped, query, skipped.c.topic_id == query.c.topic_id)
        .distinct()
    )
    return frozenset((TopicPartition(topic, partition), offset) for topic, partition, offset in rows)


def forget_lost(database: Database, brokers: Brokers, topic: str) -> list[tuple[TopicPartition, int]]:
    """Deletes and returns the skips of a topic whose records Kafka has lost. Skips of expired records stay."""
    with database.begin() as connection:
        of_topic = select(skipped.c.partition, skipped.c.offset, skipped.c.tail).where(
            skipped.c.topic_id.in_(select(query.c.topic_id).where(query.c.topic == topic)), skipped.c.tail.is_not(None)
        )
        skips = [(TopicPartition(topic, row.partition), row.offset, row.tail) for row in connection.execute(of_topic)]
    lost = [(at, offset) for at, offset, tail in skips if brokers.differing(Offsets({at: offset + 1}), {at: tail})]
    if lost:

        def step(connection: Connection) -> None:
            for at, offset in lost:
                is_skip = (skipped.c.topic == topic, skipped.c.partition == at.partition, skipped.c.offset == offset)
                if connection.execute(delete(skipped).where(*is_skip)).rowcount:
                    quarantine.take_back(connection, at, offset, SKIPPED)

        database.retrying(step)
    return lost


def skip(connection: Connection, name: str, bad: BadRecord, tail: str | None, reason: str) -> bool:
    """Skips a record for every source of its topic. False if it was skipped before.

    Raises below progress, and while a leap runs. `name` is the query that requests the skip. `tail` describes the
    record batch that holds the record, as the broker reports it.
    """
    progress.lock(connection, progress.queries(connection))  # so no source of the topic is declared meanwhile
    at = TopicPartition(bad.topic, bad.partition)
    named = f"Partition {at.partition}, offset {bad.offset} of {at.topic}"
    if (at, bad.offset) in read(connection):
        return False
    sources = [source.name for source in progress.queries_over(connection, at.topic)]
    progress.lock(connection, sources)
    for source in (name, *sources):
        reached = progress.read(connection, [source]).get(at, 0)
        if bad.offset < reached:
            raise LaminaError(
                f"{named} was read already" if source == name else f"{named} was read by {source} already",
                evidence=f"progress is {reached}: views have counted it, or quarantine holds it",
                way_out="Only a record at or above progress can be skipped."
                if source == name
                else f"A skip applies to every source of the topic: drop {source} first (`lamina apply --prune`).",
            )
    if rebuilds.is_leaping(connection):
        raise LaminaError(f"{named} cannot be skipped while a leap runs", way_out="Skip it when the leap has ended.")
    topic_id = progress.queries(connection)[name].topic_id
    connection.execute(
        insert(skipped).values(
            topic_id=topic_id, partition=at.partition, offset=bad.offset, topic=at.topic, reason=reason, tail=tail
        )
    )
    for source in sources:
        quarantine.keep(connection, source, bad)
        progress.take_over(connection, source, f"skip of {at.topic} {at.partition}:{bad.offset}", WriterKind.SKIP)
    return True
