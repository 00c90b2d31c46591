"""Runs that change a log: they add newer or older records, cut it back, or maintain it.

**One of two concurrent runs is refused**, although Iceberg itself lets any number of appends succeed. A run writes to a
branch that starts at the snapshot whose `held` it read, and then fast-forwards the table to that branch. Iceberg
refuses this if the table has changed.

**An operator may run** `rewrite_data_files`, `rewrite_manifests`, `expire_snapshots` and `remove_orphan_files` at any
time, also during `maintain`, and `rollback_to_snapshot` to an older archive run (the records after it are then archived
again). The snapshot of the last run has its own branch (`archive_…`), so it does not expire before `maintain` has
recorded the held offsets in a later one. An archive run that meets one of these operations fails and changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from master_log import log_refusals, log_table
from master_log.causes import warehouse_errors
from master_log.iceberg import Snapshot, Table
from master_log.kafka.brokers import Brokers
from master_log.kafka.tails import ChangedTail, Tails
from master_log.log import MasterLog, check_reached, check_topic, positions, removed_from
from master_log.log_table import HELD, LOST, PARSED_BY, PROPERTIES, RECORD_COLUMNS, REPLACED, START, LogEnd, fingerprint
from master_log.offsets import Cut, OffsetRange, Offsets, TopicPartition
from master_log.reading.kafka_reader import kafka_range, unreadable, within, without
from view_algebra.compiled import Source

_BRANCH = "archive_"
"""Prefix of the branch that an archive run writes to."""

_NOTHING = OffsetRange.between({})


@dataclass(frozen=True)
class ArchiveResult:
    """The result of one archive run: it added `records` over `range`. Kafka had removed the part `lost`.

    cut_off: the range whose records the log dropped because Kafka has others there now. The tag `kept_as` keeps them
    """

    records: int
    range: OffsetRange
    lost: OffsetRange
    cut_off: OffsetRange | None = None
    kept_as: str = ""

    @property
    def held(self) -> Offsets:
        """The offsets that the log holds after the run."""
        return self.range.end


@dataclass(frozen=True)
class ArchiveRun:
    """Adds records of a source's topic to its log. The caller's lock excludes other runs.

    A run is refused if the topic was recreated, or if another run is active after all. It is also refused if Kafka
    removed records before they were archived, unless `accept_loss` records them as lost.
    """

    log: MasterLog
    source: Source
    brokers: Brokers
    accept_loss: bool = False

    def archive(self, to: Cut, tails: Tails | None = None) -> ArchiveResult:
        """Adds the records of `[held, to)` in one commit that records `to`. A run that dies before it changes nothing.

        A partition whose `to` is not above its held offset gets no records. If a range holds only transaction markers,
        `held` still advances. The run is refused if `to` is above the committed records in Kafka.

        If Kafka has lost records that the log holds and gave their offsets to others, nothing is added. With
        `accept_loss`, the log is first cut back to where it agrees with Kafka, and a tag keeps the dropped records
        readable. `tails` are the caller's tails below `to`: a run against different ones is refused.
        """
        held = log_table.held_in(self._table, self.source)
        to = Offsets.of(self.source.topic, to.on(self.source.topic))
        reached = {at: max(end, held.offsets.get(at, 0)) for at, end in to.items()}
        wanted = OffsetRange.since(held.offsets, held.offsets.updated(reached))
        check_topic(self._table, self.source, self.brokers)
        if differing := self.brokers.differing(to, tails or {}):
            raise log_refusals.kafka_lost_counted_records(self.source, differing)
        if differing := self._differing(held) or _beyond(held.offsets, self.brokers.latest(self.source.topic)):
            if not self.accept_loss:
                raise log_refusals.kafka_lost_archived_records(self.source, differing)
            cut_off, tag = self._cut_back(held.offsets, differing)
            return replace(self.archive(to), cut_off=cut_off, kept_as=tag)
        if wanted.end == held.offsets:
            return ArchiveResult(0, wanted, _NOTHING)
        check_reached(self.source, wanted, self.brokers)
        unmoved = {at: tail for at, tail in held.tails.items() if wanted.end[at] == held.offsets[at]}
        after = replace(held, offsets=wanted.end, tails=unmoved | self.brokers.tails(wanted.end))
        lost = self._lost(wanted)
        with warehouse_errors(f"{self.source.name}: its records were not archived"):
            onto = held.newest or self._table.append_nothing({HELD: held.offsets.json()})  # an empty log has no tails
            return ArchiveResult(self._add(wanted, lost, onto, held, after), wanted, lost)

    def reach_back(self, start: Offsets) -> int:
        """Extends the log down to `start`, for a source that begins lower. Returns the number of records added.

        A run that dies before the log begins there changes nothing that is read.
        """
        held = log_table.held_in(self._table, self.source)
        first = log_table.start_of(self._table)
        lower = {at: offset for at, offset in start.items() if at in first and offset < first[at]}
        wanted = OffsetRange.between({at: (offset, first[at]) for at, offset in lower.items()})
        if held.newest is None or wanted.empty:
            return 0
        check_topic(self._table, self.source, self.brokers)
        if differing := self._differing(held):
            raise log_refusals.kafka_lost_archived_records(self.source, differing)
        lost = self._lost(wanted)
        with warehouse_errors(f"{self.source.name}: its records were not archived"):
            # Records of a dropped source, or of a run that died.
            self._delete(wanted, held.newest, held.offsets, held.summary)
            records = self._add(wanted, lost, next(self._table.lineage()), held, held)
            self._table.set_properties({START: first.updated(lower).json()})
        return records

    @cached_property
    def _table(self) -> Table:
        return self.log.table(self.source)

    def _differing(self, held: LogEnd) -> list[ChangedTail]:
        return self.brokers.differing(held.offsets, held.tails)

    def _lost(self, wanted: OffsetRange) -> OffsetRange:
        lost = removed_from(wanted, self.brokers)
        if lost.end and not self.accept_loss:
            raise log_refusals.removed_by_retention(self.source, lost)
        return lost

    def _add(self, wanted: OffsetRange, lost: OffsetRange, onto: Snapshot, before: LogEnd, after: LogEnd) -> int:
        """Publishes the records of a range in one commit on top of a snapshot. Returns their number.

        Raises `UnreadableRecord`, and LaminaError if the topic changed while its records were read.
        """
        self._record_parse()
        present = OffsetRange(wanted.start.updated(lost.end), wanted.end)
        summary = after.summary | ({LOST: log_table.ranges_json(lost)} if lost.end else {})
        branch, spark, skipped = _new_branch(), self.log.spark, self.log.skipped()
        try:
            raw = kafka_range(spark, self.brokers, self.source, present, skipped)
            rows = log_table.fitted(self._table, self.source, self.log.parsed(raw, self.source))
            snapshot = self._table.append(rows, onto.id, branch, summary)
        except (Py4JError, PySparkException) as error:
            raise unreadable(spark, self.brokers, self.source, present, skipped) or error from error
        # Check again after the last record was read: it may have come from another topic of that name.
        check_topic(self._table, self.source, self.brokers)
        # Unchanged tails mean that all records that were read come from one log.
        if differing := self._differing(after) or self._differing(before):
            raise log_refusals.kafka_lost_archived_records(self.source, differing)
        self._publish(branch, before.offsets)
        return int(snapshot.summary.get("added-records", "0"))

    def _record_parse(self) -> None:
        """Records that several texts parsed the log's rows, before a row of another text is added."""
        if self._table.properties()[PARSED_BY] not in (fingerprint(self.source), "several"):
            self._table.set_properties({PARSED_BY: "several"})

    def _delete(self, dropped: OffsetRange, onto: Snapshot, held: Offsets, summary: Mapping[str, str]) -> None:
        branch = _new_branch()
        self._table.delete(within(dropped), onto.id, branch, summary)
        self._publish(branch, held)

    def _publish(self, branch: str, held: Offsets) -> None:
        if not self._table.publish(branch):
            evidence = f"Found another commit on top of {held or 'an empty log'}."
            raise log_refusals.changed_meanwhile(self.source, evidence)

    def _cut_back(self, held: Offsets, differing: Sequence[ChangedTail]) -> tuple[OffsetRange, str]:
        """Cuts the log back to where it agrees with Kafka, in one commit. Returns the range cut off.

        The returned tag keeps the old state.
        """
        ends = held.updated(self._agreed(held, differing))
        cut_off = OffsetRange.between(
            {partition.at: (ends[partition.at], held[partition.at]) for partition in differing}
        )
        newest = next(self._table.lineage())
        tag = f"replaced_{newest.id}"
        after = LogEnd(newest, ends, self.brokers.tails(ends))
        with warehouse_errors(f"{self.source.name}: its log was not cut back"):
            self._table.tag(tag, newest.id)
            self._delete(cut_off, newest, held, after.summary | {REPLACED: log_table.ranges_json(cut_off)})
        return cut_off, tag

    def _agreed(self, held: Offsets, differing: Sequence[ChangedTail]) -> dict[TopicPartition, int]:
        """For each differing partition, the first offset at which the log's record is not Kafka's."""
        topic = self.source.topic
        first, last = self.brokers.earliest(topic), self.brokers.latest(topic)
        floor = log_table.agreeing(self._table, differing, self.brokers)
        start = {
            partition.at: min(held[partition.at], max(floor.get(partition.at, 0), first.get(partition.at, 0)))
            for partition in differing
        }
        ends = {at: max(begin, min(held[at], last.get(at, 0))) for at, begin in start.items()}
        common = OffsetRange(Offsets(start), Offsets(ends))
        columns, skipped = (*RECORD_COLUMNS[:4], "kafka_value"), self.log.skipped()
        stored = self._table.read(next(self._table.lineage()).id).where(within(common))
        in_log = without(stored, common.holds(skipped)).select(*columns)
        raw = kafka_range(self.log.spark, self.brokers, self.source, common, skipped)
        in_kafka = positions(raw, self.source).select(*columns)
        both = in_log.exceptAll(in_kafka).unionAll(in_kafka.exceptAll(in_log))
        rows = both.groupBy("kafka_partition").agg({"kafka_offset": "min"}).collect()
        return ends | {TopicPartition(topic, int(partition)): int(offset) for partition, offset in rows}


@dataclass(frozen=True)
class MaintenanceCounts:
    """Numbers of small files compacted, snapshots expired and files removed by maintenance of one log."""

    compacted: int
    expired: int
    removed: int


def maintain(log: MasterLog, source: Source, before: datetime) -> MaintenanceCounts:
    """Removes everything that the log no longer needs, while the caller's lock excludes archive runs.

    Everything that a backup since `before` names stays: replaced files, superseded snapshots and old metadata go
    only if they were replaced before it. The commits of maintenance also record the held offsets, which therefore
    do not depend on the snapshots of archive runs. Snapshots that record losses stay permanently.
    """
    table = log.table(source)
    newest = log_table.held_in(table, source).newest
    until = int(before.timestamp() * 1000)
    with warehouse_errors(f"{source.name}: its log was not maintained"):
        properties = table.properties()
        if lacking := {key: value for key, value in PROPERTIES.items() if properties.get(key) != value}:
            table.set_properties(lacking)
        if newest is None:
            return MaintenanceCounts(0, 0, table.remove_orphans(until))
        compacted = table.compact("kafka_offset")
        if HELD not in next(table.lineage()).summary:
            _record_held(table, source)
        table.forget_branches(_BRANCH)
        expired = table.expire(until, log_table.records_loss)
        return MaintenanceCounts(compacted, expired, table.remove_orphans(until))


def _record_held(table: Table, source: Source) -> None:
    """Records the held offsets on top of a commit without them, unless an archive run has published meanwhile.

    Such a run is possible only if the lock was lost, and its own offsets must then stand.
    """
    newest, branch = next(table.lineage()), _new_branch()
    table.append_nothing(log_table.held_in(table, source).summary, branch, newest.id)
    table.publish(branch)


def _new_branch() -> str:
    return f"{_BRANCH}{uuid.uuid4().hex}"


def _beyond(held: Offsets, latest: Offsets) -> list[ChangedTail]:
    """The partitions that end below their held offset in Kafka, even if no tail is known."""
    ends = {at: (end, latest.get(at, 0)) for at, end in held.items()}
    return [
        ChangedTail(at, end, "a record", f"the end of the topic at {now}")
        for at, (end, now) in ends.items()
        if now < end
    ]
