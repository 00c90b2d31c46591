"""Records that an operator skips by name, because nothing can read or count them: known for ever.

The promise is then about every record below progress but these. A record can be skipped only before it is counted, so
progress is where the two meet: a skip locks the query and takes it over, and a micro-batch that was computed with the
record is fenced.
"""

from __future__ import annotations

import re

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from master_log.offsets import Skipped, TopicPartition
from serving_layer import progress, quarantine, rebuilds
from serving_layer.bookkeeping import query, skipped
from serving_layer.quarantine import BadRecord
from view_algebra.errors import LaminaError

SKIPPED = "skipped by name"
"""What quarantine gives as the error of such a record."""


def read(connection: Connection) -> Skipped:
    """All that was skipped, of the topics that queries read now."""
    rows = connection.execute(
        select(query.c.topic, skipped.c.partition, skipped.c.offset)
        .join_from(skipped, query, skipped.c.topic_id == query.c.topic_id)
        .distinct()
    )
    return frozenset((TopicPartition(topic, partition), offset) for topic, partition, offset in rows)


def skip(connection: Connection, name: str, bad: BadRecord, reason: str) -> bool:
    """Skips a record of a query; False when it was skipped before. Refused below progress, and while a leap runs."""
    progress.lock(connection, [name])
    at = TopicPartition(bad.topic, bad.partition)
    named = f"Partition {at.partition}, offset {bad.offset} of {at.topic}"
    if (at, bad.offset) in read(connection):
        return False
    reached = progress.read(connection, [name]).get(at, 0)
    if bad.offset < reached:
        raise LaminaError(
            f"{named} was read already",
            evidence=f"progress is {reached}: views have counted it, or quarantine holds it",
            way_out="Only a record at or above progress can be skipped.",
        )
    if rebuilds.leaping(connection):
        raise LaminaError(f"{named} cannot be skipped while a leap runs", way_out="Skip it when the leap has ended.")
    topic_id = progress.queries(connection)[name].topic_id
    connection.execute(
        insert(skipped).values(
            topic_id=topic_id, partition=at.partition, offset=bad.offset, topic=at.topic, reason=reason
        )
    )
    quarantine.keep(connection, bad)
    progress.take_over(connection, name, f"skip of {at.topic} {at.partition}:{bad.offset}")
    return True


def is_skip(writer: str | None) -> bool:
    """Is it a skip that took a query over? It does not read on.

    >>> is_skip("skip of orders 0:7"), is_skip("process 7 on skip"), is_skip(None)
    (True, False, False)
    """
    return re.fullmatch(r"skip of \S+ \d+:\d+", writer or "") is not None
