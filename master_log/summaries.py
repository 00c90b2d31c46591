"""What a log says of itself: in the properties of its table, and in the summaries of its snapshots."""

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
"""Snapshot summary: what stood last below `held` in Kafka, per partition: see `master_log/tails.py`."""

REPLACED = "lamina.replaced"
"""Snapshot summary: ranges of which Kafka lost the records that the log held, as `{"orders": {"0": [90, 100]}}`."""

START = "lamina.start"
"""Table property: where the log begins, the earliest offsets when the first of its sources was applied."""

TOPIC_ID = "lamina.topic-id"
"""Table property: Kafka's id of the topic."""

PARSED_BY = "lamina.parsed-by"
"""Table property: fingerprint of the one `Source.parse` by which all rows were parsed, or `several`."""


def start_of(table: Table) -> Offsets:
    """Where the log begins."""
    return Offsets.parse(table.properties()[START])


def held_in(table: Table, source: Source) -> tuple[Snapshot | None, Offsets]:
    """The newest snapshot and what is held in it; the one is None and the other `start` before the first run."""
    newest: Snapshot | None = None
    start = start_of(table)
    for snapshot in table.lineage():
        newest = newest or snapshot
        if HELD in snapshot.summary:
            held = Offsets.parse(snapshot.summary[HELD])
            return newest, held.updated({at: max(begin, held.get(at, 0)) for at, begin in start.items()})
    if newest is None:
        return None, start
    raise says_nothing(source, f"No snapshot since the oldest that is kept of {table.name} carries {HELD}.")


def tails_in(table: Table, held: Offsets) -> Tails:
    """The tails of what is held, as the run that said so wrote them."""
    for snapshot in table.lineage():
        if HELD in snapshot.summary:
            said = Offsets.parse(snapshot.summary[HELD])
            return {at: tail for at, tail in _tails(snapshot).items() if said.get(at) == held.get(at)}
    return {}


def agreeing(table: Table, differing: Sequence[Differs], brokers: Brokers) -> dict[TopicPartition, int]:
    """What the newest run had archived that agrees with Kafka, of each partition: below it nothing differs."""
    found: dict[TopicPartition, int] = {}
    for snapshot in table.lineage():
        left = [each.at for each in differing if each.at not in found]
        held, tails = Offsets.parse(snapshot.summary.get(HELD, "{}")), _tails(snapshot)
        asked = Offsets({at: held[at] for at in left if at in held and at in tails})
        other = {each.at for each in brokers.differing(asked, tails)}
        found |= {at: offset for at, offset in asked.items() if at not in other}
        if not left:
            break
    return found


def tells_of_loss(snapshot: Snapshot) -> bool:
    """True of a run that went on without records that Kafka had lost or removed."""
    return bool({LOST, REPLACED} & set(snapshot.summary))


def losses(table: Table) -> Iterator[OffsetRange]:
    """The ranges that `tells_of_loss` is about: the log lacks their records, or holds others in their place."""
    for snapshot in table.snapshots():
        for said in {LOST, REPLACED} & set(snapshot.summary):
            ranges = {
                TopicPartition(topic, int(partition)): bounds
                for topic, partitions in json.loads(snapshot.summary[said]).items()
                for partition, bounds in partitions.items()
            }
            starts, ends = ({at: bounds[side] for at, bounds in ranges.items()} for side in (0, 1))
            yield OffsetRange(Offsets(starts), Offsets(ends))


def ranges_json(rng: OffsetRange) -> str:
    """A range as the summaries LOST and REPLACED hold it."""
    told: dict[str, dict[str, list[int]]] = {}
    for at, end in rng.end.items():
        told.setdefault(at.topic, {})[str(at.partition)] = [rng.start[at], end]
    return json.dumps(told)


def _tails(snapshot: Snapshot) -> Tails:
    return from_json(snapshot.summary.get(TAILS, "{}"))
