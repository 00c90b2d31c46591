"""The state that a log records about itself, in its table's properties and its snapshots' summaries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from master_log.iceberg import Snapshot, Table
from master_log.kafka import Brokers
from master_log.offsets import OffsetRange, Offsets, TopicPartition
from master_log.refusals import says_nothing
from master_log.tails import Differs, Tails, from_json
from view_algebra.compiled import Source

HELD = "lamina.held"
"""Snapshot summary: the vector below which every record is in the log, in Spark's JSON form."""

LOST = "lamina.lost"
"""Snapshot summary: ranges whose records Kafka removed before they were archived, as `{"orders": {"0": [5, 9]}}`."""

TAILS = "lamina.tails"
"""Snapshot summary: the tail below `held` in Kafka, per partition (`master_log/tails.py`)."""

REPLACED = "lamina.replaced"
"""Snapshot summary: ranges that the log held and Kafka lost, as `{"orders": {"0": [90, 100]}}`."""

START = "lamina.start"
"""Table property: the offsets at which the log begins, the earliest ones when its first source was applied."""

TOPIC_ID = "lamina.topic-id"
"""Table property: Kafka's id of the topic."""

PARSED_BY = "lamina.parsed-by"
"""Table property: fingerprint of the `Source.parse` that parsed all rows, or `several`."""


def start_of(table: Table) -> Offsets:
    """The offsets at which the log begins."""
    return Offsets.parse(table.properties()[START])


def held_in(table: Table, source: Source) -> tuple[Snapshot | None, Offsets]:
    """The newest snapshot and the offsets it holds; None and `start` before the first run."""
    newest: Snapshot | None = None
    start = start_of(table)
    for snapshot in table.lineage():
        newest = newest or snapshot
        if HELD in snapshot.summary:
            held = Offsets.parse(snapshot.summary[HELD])
            return newest, held.updated({at: max(begin, held.get(at, 0)) for at, begin in start.items()})
    if newest is None:
        return None, start
    raise says_nothing(source, f"No snapshot that {table.name} still keeps carries {HELD}.")


def tails_in(table: Table, held: Offsets) -> Tails:
    """The tails below `held`, as the run that stated it recorded them."""
    for snapshot in table.lineage():
        if HELD in snapshot.summary:
            stated = Offsets.parse(snapshot.summary[HELD])
            return {at: tail for at, tail in _tails(snapshot).items() if stated.get(at) == held.get(at)}
    return {}


def agreeing(table: Table, differing: Sequence[Differs], brokers: Brokers) -> dict[TopicPartition, int]:
    """For each differing partition, the newest recorded offset below which log and Kafka agree."""
    agreed: dict[TopicPartition, int] = {}
    for snapshot in table.lineage():
        left = [partition.at for partition in differing if partition.at not in agreed]
        held, tails = Offsets.parse(snapshot.summary.get(HELD, "{}")), _tails(snapshot)
        asked = Offsets({at: held[at] for at in left if at in held and at in tails})
        other = {partition.at for partition in brokers.differing(asked, tails)}
        agreed |= {at: offset for at, offset in asked.items() if at not in other}
        if not left:
            break
    return agreed


def tells_of_loss(snapshot: Snapshot) -> bool:
    """True if the run continued without records that Kafka had lost or removed."""
    return bool({LOST, REPLACED} & set(snapshot.summary))


def losses(table: Table) -> Iterator[OffsetRange]:
    """The ranges of lost records: the log lacks them, or holds others in their place."""
    for snapshot in table.snapshots():
        for name in {LOST, REPLACED} & set(snapshot.summary):
            ranges = {
                TopicPartition(topic, int(partition)): bounds
                for topic, partitions in json.loads(snapshot.summary[name]).items()
                for partition, bounds in partitions.items()
            }
            starts, ends = ({at: bounds[side] for at, bounds in ranges.items()} for side in (0, 1))
            yield OffsetRange(Offsets(starts), Offsets(ends))


def ranges_json(rng: OffsetRange) -> str:
    """The range in the form of the summaries LOST and REPLACED."""
    topics: dict[str, dict[str, list[int]]] = {}
    for at, end in rng.end.items():
        topics.setdefault(at.topic, {})[str(at.partition)] = [rng.start[at], end]
    return json.dumps(topics)


def _tails(snapshot: Snapshot) -> Tails:
    return from_json(snapshot.summary.get(TAILS, "{}"))
