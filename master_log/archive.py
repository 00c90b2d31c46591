"""The master log: Kafka's committed records, kept in Iceberg, one table per topic.

A row holds one record: its position in Kafka, its key, headers and raw value, and the parsed declared columns, so that
a rebuild reads only columns. A stream and a table over one topic share its log, and each of them parses the raw
values. `layout` defines the table, `summaries` the state that a log records about itself, and `refusals` the errors of
a run.

**The held offsets** of a topic are the vector `lamina.held`, which each archive run writes into the summary of its own
commit, so the commit that adds the records also says how far they reach. A reader walks from the newest snapshot to
its ancestors until it meets this vector. The greatest offset in the table would not do: it stays below the end
permanently if a partition ends in a transaction's marker.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.functions import col, expr

from master_log import durable, log_times, refusals, summaries
from master_log.decoding import named_schemas
from master_log.iceberg import Snapshot, Table, Warehouse, telling
from master_log.kafka import Brokers
from master_log.layout import PROPERTIES, RECORD, RECORD_COLUMNS, fingerprint, fitted
from master_log.log_times import LogTimes
from master_log.offsets import Cut, OffsetRange, Offsets, Skipped, TopicPartition
from master_log.reading import as_kafka_gave, below, kafka_range, parsed, unreadable, within, without
from master_log.schema_registry import NO_REGISTRY, KnownSchemas
from master_log.summaries import HELD, LOST, PARSED_BY, REPLACED, START, TAILS, TOPIC_ID
from master_log.tails import Differs, Tails, to_json
from view_algebra.compiled import LOG_TIME, Source
from view_algebra.formats import Decoding, frames
from view_algebra.formats.interface import NO_ANSWERS
from view_algebra.language.quoting import spark_path, spark_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BRANCH = "archive_"
"""Prefix of the branch that an archive run writes to."""


@dataclass(frozen=True)
class Maintained:
    """Numbers of small files compacted, snapshots expired and files removed by maintenance of one log."""

    compacted: int
    expired: int
    removed: int


@dataclass(frozen=True)
class Archived:
    """The result of one archive run: the number of `records` added over `range`, of which Kafka had removed `lost`.

    cut_off: the range whose records the log dropped because Kafka has others there now; the tag `kept_as` keeps them.
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


class MasterLog:
    """The logs of all topics, in one Iceberg catalog of the Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: str = "lamina",
        skipped: Callable[[], Skipped] = frozenset,
        schemas: KnownSchemas = NO_REGISTRY,
    ) -> None:
        """`skipped` returns the records that an operator skipped: the log neither archives nor returns them."""
        self._spark = spark
        self._catalog = catalog
        self._skipped = skipped
        self._schemas = schemas
        self.warehouse = Warehouse(spark, catalog)

    def create(self, source: Source, topic_id: str, start: Offsets) -> None:
        """Creates the log of the source's topic at `start`.

        An existing log moves its beginning to `start` if it holds nothing yet or ends before `start`, because a source
        that was dropped and declared again only needs the records since then. If `start` is below its beginning, the
        next archive run adds the records between them (`reach_back`). If the topic was recreated before it was
        declared again, the old topic's log is renamed to the old topic's id.
        """
        table = self._table(source)
        if table.exists() and table.properties()[TOPIC_ID] != topic_id:
            with telling(f"{source.name}: the log of the previous topic was not renamed"):
                table.rename(spark_path("log", f"{source.topic}-{table.properties()[TOPIC_ID]}"))
        if table.exists():
            first, begin = summaries.start_of(table), Offsets.of(source.topic, start.on(source.topic))
            if first != begin:
                newest, held = summaries.held_in(table, source)
                moved = {at: offset for at, offset in begin.items() if newest is None or offset > held.get(at, 0)}
                if (now := first.updated(moved)) != first:
                    table.set_properties({START: now.json()})
            return
        declared = "".join(f", {spark_path(column.name)} {column.spark}" for column in source.read)
        properties = PROPERTIES | {
            START: Offsets.of(source.topic, start.on(source.topic)).json(),
            TOPIC_ID: topic_id,
            PARSED_BY: fingerprint(source),
        }
        listed = ", ".join(f"{spark_text(key)} = {spark_text(value)}" for key, value in properties.items())
        # A folder per topic id, not per name: a topic deleted and created again never shares a folder with the old one.
        folder = f"{self.warehouse.location}/log/{source.topic}-{topic_id}"
        with telling(f"{source.name}: its log was not created"):
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {spark_path(self._catalog, 'log')}")
            began = durable.now()
            self._spark.sql(
                f"CREATE TABLE IF NOT EXISTS {table.name} ({RECORD}{declared}) USING iceberg "
                f"PARTITIONED BY (kafka_partition) LOCATION {spark_text(folder)} TBLPROPERTIES ({listed})"
            )
            durable.newer(folder, began)

    def opened(self, source: Source) -> bool:
        """True if the source's topic has a log."""
        return self._table(source).exists()

    def topic_id(self, source: Source) -> str:
        """Kafka's id of the log's topic."""
        return self._opened(source).properties()[TOPIC_ID]

    def start(self, source: Source) -> Offsets:
        """The offsets at which the log begins: no record below them is held, and none is needed."""
        return summaries.start_of(self._opened(source))

    def held(self, source: Source) -> Offsets:
        """The vector below which the log has every record since `start`; a partition that it omits is at 0."""
        return summaries.held_in(self._opened(source), source)[1]

    def size(self, source: Source) -> int:
        """Bytes of the log's files; 0 before the first run."""
        newest = next(self._opened(source).lineage(), None)
        return 0 if newest is None else int(newest.summary["total-files-size"])

    def tails(self, source: Source, held: Offsets) -> Tails:
        """The tails below `held` when it was archived, for the partitions whose held offset is still the same."""
        table = self._opened(source)
        now = summaries.held_in(table, source)[1]
        return {at: tail for at, tail in summaries.tails_in(table, now).items() if now.get(at) == held.get(at)}

    def lost(self, source: Source, of: OffsetRange) -> list[OffsetRange]:
        """The ranges of lost records that overlap a range."""

        def meets(other: OffsetRange) -> bool:
            return any(
                other.start[at] < of.end.get(at, 0) and of.start.get(at, 0) < end for at, end in other.end.items()
            )

        return [loss for loss in summaries.losses(self._opened(source)) if meets(loss)]

    def archive(
        self,
        source: Source,
        to: Cut,
        brokers: Brokers,
        *,
        accept_loss: bool = False,
        tails: Tails | None = None,
    ) -> Archived:
        """Adds the records of `[held, to)` in one commit that records `to`; a run that dies before it changes nothing.

        A partition whose `to` is not above its held offset gets no records. If a range holds only transaction markers,
        `held` advances all the same. The run is refused if Kafka removed records before they were archived, unless
        `accept_loss` records them as lost. It is also refused if the topic was recreated, if `to` is above the
        committed records in Kafka, and if another run is active (which the caller's lock prevents).

        If Kafka has lost records that the log holds and gave their offsets to others, nothing is added. With
        `accept_loss`, the log is first cut back to where it agrees with Kafka, and a tag keeps the dropped records
        readable. `tails` are the caller's tails below `to`: a run against different ones is refused.
        """
        table = self._opened(source)
        onto, held = summaries.held_in(table, source)
        reached = {at: max(end, held.get(at, 0)) for at, end in to.items() if at.topic == source.topic}
        whole = below(held.updated(reached), held)
        nothing = OffsetRange(Offsets({}), Offsets({}))
        self._same_topic(table, source, brokers.topic_id(source.topic))
        if differing := brokers.differing(to, tails or {}):
            raise refusals.counted_others(source, differing)
        known_tails = summaries.tails_in(table, held)
        if differing := brokers.differing(held, known_tails) or _beyond(held, brokers.latest(source.topic)):
            if not accept_loss:
                raise refusals.holds_others(source, differing)
            cut, tag = self._cut_back(table, source, held, differing, brokers)
            again = {at: end for at, end in to.items() if at.topic == source.topic}
            archived = self.archive(source, Offsets(again), brokers, accept_loss=True)
            return replace(archived, cut_off=cut, kept_as=tag)
        if whole.end == held:
            return Archived(0, whole, nothing)
        self._reaches(source, whole, brokers)
        ends = {at: tail for at, tail in known_tails.items() if whole.end[at] == held[at]} | brokers.tails(whole.end)
        lost = self._lost(whole, brokers)
        if lost.end and not accept_loss:
            raise refusals.gone(source, lost)
        self._one_parse(table, source)
        summary = {HELD: whole.end.json(), TAILS: to_json(ends)}
        if lost.end:
            summary[LOST] = summaries.ranges_json(lost)
        with telling(f"{source.name}: its records were not archived"):
            onto = onto or table.append_nothing({HELD: held.json()})  # an empty log has no tails
            present = OffsetRange(whole.start.updated(lost.end), whole.end)
            branch, written = self._append(table, source, brokers, present, onto, summary)
            # Check again after the last record was read: it may have come from another topic of that name.
            self._same_topic(table, source, brokers.topic_id(source.topic))
            # Unchanged tails mean that all records that were read come from one log.
            if differing := brokers.differing(whole.end, ends) or brokers.differing(held, known_tails):
                raise refusals.holds_others(source, differing)
            if not table.publish(branch):
                raise refusals.changed_meanwhile(source, f"Found another commit on top of {held or 'an empty log'}.")
        return Archived(int(written.summary.get("added-records", "0")), whole, lost)

    def reach_back(self, source: Source, start: Offsets, brokers: Brokers, *, accept_loss: bool = False) -> int:
        """Extends the log down to `start`, for a source that begins lower; returns the number of records added.

        A run that dies before the log begins there changes nothing that is read.
        """
        table = self._opened(source)
        onto, held = summaries.held_in(table, source)
        first = summaries.start_of(table)
        lower = Offsets({at: offset for at, offset in start.items() if at in first and offset < first[at]})
        rng = OffsetRange(lower, Offsets({at: first[at] for at in lower}))
        if onto is None or rng.empty:
            return 0
        self._same_topic(table, source, brokers.topic_id(source.topic))
        known_tails = summaries.tails_in(table, held)
        if differing := brokers.differing(held, known_tails):
            raise refusals.holds_others(source, differing)
        lost = self._lost(rng, brokers)
        if lost.end and not accept_loss:
            raise refusals.gone(source, lost)
        self._one_parse(table, source)
        summary = {HELD: held.json(), TAILS: to_json(known_tails)}
        branch = f"{_BRANCH}{uuid.uuid4().hex}"
        with telling(f"{source.name}: its records were not archived"):
            # Records of a dropped source, or of a run that died.
            table.delete(within(rng), onto.id, branch, summary)
            if not table.publish(branch):
                raise refusals.changed_meanwhile(source, "Found another commit on top of the one before.")
            if lost.end:
                summary[LOST] = summaries.ranges_json(lost)
            present = OffsetRange(rng.start.updated(lost.end), rng.end)
            branch, written = self._append(table, source, brokers, present, next(table.lineage()), summary)
            self._same_topic(table, source, brokers.topic_id(source.topic))
            if differing := brokers.differing(held, known_tails):
                raise refusals.holds_others(source, differing)
            if not table.publish(branch):
                raise refusals.changed_meanwhile(source, "Found another commit on top of the one before.")
            table.set_properties({START: first.updated(lower).json()})
        return int(written.summary.get("added-records", "0"))

    def _append(
        self,
        table: Table,
        source: Source,
        brokers: Brokers,
        rng: OffsetRange,
        onto: Snapshot,
        summary: Mapping[str, str],
    ) -> tuple[str, Snapshot]:
        """Writes the records of a range to a branch that nobody reads yet. Raises `Unreadable`."""
        branch, skipped = f"{_BRANCH}{uuid.uuid4().hex}", self._skipped()
        try:
            rows = self._parsed(kafka_range(self._spark, brokers, source, rng, skipped), source)
            return branch, table.append(fitted(table, source, rows), onto.id, branch, summary)
        except (Py4JError, PySparkException) as error:
            raise unreadable(self._spark, brokers, source, rng, skipped) or error from error

    def _parsed(self, raw: DataFrame, source: Source) -> DataFrame:
        """Raw records, parsed by the source's declaration and by the schemas that they name.

        The speed layer has fetched the schemas of the records that it counted. Records from before the source was
        declared, or from before its declaration changed, may name schemas that this method has to fetch first.
        """
        by, answers = Decoding.of(source), NO_ANSWERS
        if by is not None and by.needs_registry:
            answers = self._schemas.of(source.topic)
            if unknown := frames.missing(named_schemas(raw, by), by.schemas(answers)):
                answers = self._schemas.learn(source.topic, by.ask_again, unknown)
        return parsed(raw, source, answers)

    def maintain(self, source: Source, before: datetime) -> Maintained:
        """Removes everything that the log no longer needs; the caller's lock excludes archive runs meanwhile.

        Everything that a backup since `before` names stays: replaced files, superseded snapshots and old metadata go
        only if they were replaced before it. The commits of maintenance also record the held offsets, which therefore
        do not depend on the snapshots of archive runs. Snapshots that record losses stay permanently.
        """
        table = self._opened(source)
        newest, _ = summaries.held_in(table, source)
        until = int(before.timestamp() * 1000)
        with telling(f"{source.name}: its log was not maintained"):
            properties = table.properties()
            if lacking := {key: value for key, value in PROPERTIES.items() if properties.get(key) != value}:
                table.set_properties(lacking)
            if newest is None:
                return Maintained(0, 0, table.remove_orphans(until))
            compacted = table.compact("kafka_offset")
            if HELD not in next(table.lineage()).summary:
                self._record_held(table, source)
            table.forget_branches(_BRANCH)
            expired = table.expire(until, summaries.tells_of_loss)
            return Maintained(compacted, expired, table.remove_orphans(until))

    def _record_held(self, table: Table, source: Source) -> None:
        """Records the held offsets on top of a commit without them, unless an archive run has published meanwhile.

        Such a run is possible only if the lock was lost, and its own offsets must then stand.
        """
        onto = next(table.lineage())
        held = summaries.held_in(table, source)[1]
        branch = f"{_BRANCH}{uuid.uuid4().hex}"
        table.append_nothing({HELD: held.json(), TAILS: to_json(summaries.tails_in(table, held))}, branch, onto.id)
        table.publish(branch)

    def records_below(self, source: Source, cut: Cut, *, since: Offsets | None = None) -> DataFrame:
        """All records of the log from `since` up to the cut, good and bad, with the columns of `Source.parse`.

        They come from the parsed columns; rows archived under another declaration are parsed again from the raw
        values. A table's log times count its records from `since` on.
        """
        return log_times.of_records(self._kept(source, cut, since), source)

    def _kept(self, source: Source, cut: Cut, since: Offsets | None) -> DataFrame:
        table = self._opened(source)
        snapshot, held = summaries.held_in(table, source)
        wanted = Offsets.of(source.topic, cut.on(source.topic))
        if not held.reaches({at: end for at, end in wanted.items() if end > 0}):
            raise refusals.too_short(source, held, wanted)
        if snapshot is None:
            return self._nothing(source)
        first = summaries.start_of(table)
        range = below(wanted, since or first)
        if late := {at: first[at] for at, end in wanted.items() if range.start[at] < min(first.get(at, 0), end)}:
            raise refusals.begins_after(source, Offsets(late), range.start)
        rows = table.read(snapshot.id).where(within(range))
        rows = without(rows, range.holds(self._skipped()))
        if table.properties()[PARSED_BY] == fingerprint(source):
            return rows.select(
                *RECORD_COLUMNS,
                # Iceberg has no TINYINT or SMALLINT: widened columns are cast back to the declared type.
                *(col(spark_path(column.name)).cast(column.spark).alias(column.name) for column in source.read),
            )
        return self._parsed(as_kafka_gave(rows, source), source)

    def records(self, source: Source, end: Offsets, brokers: Brokers, *, since: Offsets | None = None) -> DataFrame:
        """All records from `start` up to `end`, good and bad: from the log, and from Kafka beyond the log's end.

        `since` is the source's own start, if it differs from the log's.
        """
        table = self._opened(source)
        wanted = Offsets.of(source.topic, end.on(source.topic))
        kept, lacking = self._parts(source, below(wanted, since or summaries.start_of(table)))
        rows = self._kept(source, kept.end, kept.start)
        for rest in lacking:
            self._in_kafka(table, source, rest, brokers)
            lost = self._lost(rest, brokers)
            if lost.end:
                raise refusals.gone(source, lost)
            raw = kafka_range(self._spark, brokers, source, rest, self._skipped())
            rows = rows.drop(LOG_TIME).unionByName(self._parsed(raw, source).drop(LOG_TIME))
        return log_times.of_records(rows, source)

    def raw(self, source: Source, range: OffsetRange, brokers: Brokers) -> DataFrame:
        """The raw records of a range, from the log and from Kafka beyond the log's end, without any check."""
        table = self._opened(source)
        snapshot, _ = summaries.held_in(table, source)
        kept, lacking = self._parts(source, range)
        parts = [kafka_range(self._spark, brokers, source, rest, self._skipped()) for rest in lacking]
        if snapshot is not None and not kept.empty:
            rows = without(table.read(snapshot.id).where(within(kept)), kept.holds(self._skipped()))
            parts.insert(0, as_kafka_gave(rows, source))
        empty = OffsetRange(range.start, range.start)
        parts = parts or [kafka_range(self._spark, brokers, source, empty, self._skipped())]
        return reduce(lambda whole, part: whole.unionByName(part), parts)

    def newest(self, source: Source, end: Offsets, brokers: Brokers, *, since: Offsets) -> LogTimes:
        """A table's log time per partition below `end`, over the records that the log or Kafka still has."""
        first = brokers.earliest(source.topic)
        kept, lacking = self._parts(source, below(end, since))
        times = self._kept(source, kept.end, kept.start).select("kafka_partition", "kafka_timestamp")
        for part in lacking:
            present = Offsets({at: max(begin, first.get(at, 0)) for at, begin in part.start.items()})
            rest = OffsetRange(present, part.end)
            if not rest.empty:
                raw = kafka_range(self._spark, brokers, source, rest, self._skipped())
                times = times.unionAll(_of_kafka(raw, source).select("kafka_partition", "kafka_timestamp"))
        newest = times.groupBy("kafka_partition").agg(expr("unix_micros(max(kafka_timestamp)) AS newest")).collect()
        return {TopicPartition(source.topic, row.kafka_partition): row.newest for row in newest}

    def _parts(self, source: Source, wanted: OffsetRange) -> tuple[OffsetRange, list[OffsetRange]]:
        """The part of a range that the log holds, and the parts that it lacks."""
        table = self._opened(source)
        return wanted.parted(summaries.start_of(table), summaries.held_in(table, source)[1])

    def _table(self, source: Source) -> Table:
        self.warehouse.reach()
        return Table(self._spark, spark_path(self._catalog, "log", source.topic))

    def _opened(self, source: Source) -> Table:
        table = self._table(source)
        if not table.exists():
            raise refusals.no_log(source)
        return table

    def _in_kafka(self, table: Table, source: Source, rng: OffsetRange, brokers: Brokers) -> None:
        """Raises LaminaError for a topic that is not the log's, or a range beyond the committed records."""
        self._same_topic(table, source, brokers.topic_id(source.topic))
        self._reaches(source, rng, brokers)

    def _reaches(self, source: Source, rng: OffsetRange, brokers: Brokers) -> None:
        latest = brokers.latest(source.topic)
        if not latest.reaches(rng.end):
            raise refusals.ends_before(source, latest, rng.end)

    def _cut_back(
        self, table: Table, source: Source, held: Offsets, differing: Sequence[Differs], brokers: Brokers
    ) -> tuple[OffsetRange, str]:
        """Cuts the log back to where it agrees with Kafka, in one commit; a tag keeps the old state.

        Returns the range cut off, and the tag.
        """
        ends = held.updated(self._agreed(table, source, held, differing, brokers))
        cut = OffsetRange(
            Offsets({partition.at: ends[partition.at] for partition in differing}),
            Offsets({partition.at: held[partition.at] for partition in differing}),
        )
        branch, now = f"{_BRANCH}{uuid.uuid4().hex}", next(table.lineage())
        tag = f"replaced_{now.id}"
        summary = {HELD: ends.json(), TAILS: to_json(brokers.tails(ends)), REPLACED: summaries.ranges_json(cut)}
        with telling(f"{source.name}: its log was not cut back"):
            table.tag(tag, now.id)
            table.delete(within(cut), now.id, branch, summary)
            if not table.publish(branch):
                raise refusals.changed_meanwhile(source, "Found another commit on top of the one that was cut back.")
        return cut, tag

    def _agreed(
        self, table: Table, source: Source, held: Offsets, differing: Sequence[Differs], brokers: Brokers
    ) -> dict[TopicPartition, int]:
        """For each differing partition, the first offset at which the log's record is not Kafka's."""
        first, last = brokers.earliest(source.topic), brokers.latest(source.topic)
        floor = summaries.agreeing(table, differing, brokers)
        start = {
            partition.at: min(held[partition.at], max(floor.get(partition.at, 0), first.get(partition.at, 0)))
            for partition in differing
        }
        ends = {at: max(begin, min(held[at], last.get(at, 0))) for at, begin in start.items()}
        common = OffsetRange(Offsets(start), Offsets(ends))
        columns, skipped = (*RECORD_COLUMNS[:4], "kafka_value"), self._skipped()
        held_now = table.read(next(table.lineage()).id).where(within(common))
        mine = without(held_now, common.holds(skipped)).select(*columns)
        theirs = _of_kafka(kafka_range(self._spark, brokers, source, common, skipped), source).select(*columns)
        both = mine.exceptAll(theirs).unionAll(theirs.exceptAll(mine))
        rows = both.groupBy("kafka_partition").agg({"kafka_offset": "min"}).collect()
        return ends | {TopicPartition(source.topic, int(partition)): int(offset) for partition, offset in rows}

    def _same_topic(self, table: Table, source: Source, topic_id: str | None) -> None:
        wanted = table.properties()[TOPIC_ID]
        if topic_id != wanted:
            raise refusals.another_topic(source, topic_id, wanted)

    def _lost(self, rng: OffsetRange, brokers: Brokers) -> OffsetRange:
        gone = brokers.removed(rng.start)
        ends = {at: min(end, rng.end[at]) for at, end in gone.end.items() if at in rng.end}
        lost = {at: end for at, end in ends.items() if end > rng.start[at]}
        return OffsetRange(Offsets({at: rng.start[at] for at in lost}), Offsets(lost))

    def _one_parse(self, table: Table, source: Source) -> None:
        """Records that several texts parsed the log's rows, before a row of another text is added."""
        if table.properties()[PARSED_BY] not in (fingerprint(source), "several"):
            table.set_properties({PARSED_BY: "several"})

    def _nothing(self, source: Source) -> DataFrame:
        raw = "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY"
        headers = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
        return _of_kafka(self._spark.createDataFrame([], f"{raw}, {headers}"), source)


def _of_kafka(raw: DataFrame, source: Source) -> DataFrame:
    """Parsed records of which only Kafka's own columns are read, which needs no schema."""
    return parsed(raw, source, NO_ANSWERS)


def _beyond(held: Offsets, latest: Offsets) -> list[Differs]:
    """The partitions that end below their held offset in Kafka, even if no tail is known."""
    ends = {at: (end, latest.get(at, 0)) for at, end in held.items()}
    return [
        Differs(at, end, "a record", f"the end of the topic at {now}") for at, (end, now) in ends.items() if now < end
    ]
