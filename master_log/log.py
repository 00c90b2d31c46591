"""The master log: Kafka's committed records, kept in Iceberg, one table per topic.

A row holds one record: its position in Kafka, its key, headers and raw value, and the parsed declared columns, so that
a rebuild reads only columns. A stream and a table over one topic share its log, and each of them parses the raw
values. This module creates and reads logs. `archive_runs` adds to them, and `log_table` defines their tables.

**The held offsets** of a topic are the vector `lamina.held`, which each archive run writes into the summary of its own
commit, so the commit that adds the records also says how far they reach. A reader walks from the newest snapshot to
its ancestors until it meets this vector. The greatest offset in the table would not do: it stays below the end
permanently if a partition ends in a transaction's marker.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql.functions import col, expr

from master_log import durable, log_refusals, log_table
from master_log.causes import warehouse_errors
from master_log.iceberg import Table, Warehouse
from master_log.kafka.brokers import Brokers
from master_log.kafka.tails import Tails
from master_log.log_table import PARSED_BY, PROPERTIES, RECORD, RECORD_COLUMNS, START, TOPIC_ID, fingerprint
from master_log.offsets import Cut, OffsetRange, Offsets, Skipped, TopicPartition
from master_log.reading import log_times
from master_log.reading.kafka_reader import as_raw, kafka_range, parsed, within, without
from master_log.reading.log_times import LogTimes
from master_log.reading.record_decoding import named_schemas
from master_log.reading.schema_registry import KnownSchemas
from view_algebra.compiled import Source
from view_algebra.formats import Decoding, frames
from view_algebra.formats.interface import NO_ANSWERS
from view_algebra.language.quoting import spark_path, spark_text
from view_algebra.record_columns import LOG_TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class MasterLog:
    """The logs of all topics, in one Iceberg catalog of the Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: str = "lamina",
        skipped: Callable[[], Skipped] = frozenset,
        schemas: KnownSchemas | None = None,
    ) -> None:
        """The logs in a catalog.

        skipped: returns the records that an operator skipped: the log neither archives nor returns them
        schemas: None for a reader that parses no record by the schemas of a registry
        """
        self.spark = spark
        self._catalog = catalog
        self.skipped = skipped
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
        begin = Offsets.of(source.topic, start.on(source.topic))
        if table.exists() and table.properties()[TOPIC_ID] != topic_id:
            with warehouse_errors(f"{source.name}: the log of the previous topic was not renamed"):
                table.rename(spark_path("log", f"{source.topic}-{table.properties()[TOPIC_ID]}"))
        if table.exists():
            self._move_start(table, source, begin)
        else:
            self._create(table, source, topic_id, begin)

    def _move_start(self, table: Table, source: Source, begin: Offsets) -> None:
        first = log_table.start_of(table)
        if first != begin:
            held = log_table.held_in(table, source)
            moved = {
                at: offset for at, offset in begin.items() if held.newest is None or offset > held.offsets.get(at, 0)
            }
            if (start := first.updated(moved)) != first:
                table.set_properties({START: start.json()})

    def _create(self, table: Table, source: Source, topic_id: str, begin: Offsets) -> None:
        declared = "".join(f", {spark_path(column.name)} {column.spark}" for column in source.read)
        properties = PROPERTIES | {START: begin.json(), TOPIC_ID: topic_id, PARSED_BY: fingerprint(source)}
        listed = ", ".join(f"{spark_text(key)} = {spark_text(value)}" for key, value in properties.items())
        # A folder per topic id, not per name: a topic deleted and created again never shares a folder with the old one.
        folder = f"{self.warehouse.location}/log/{source.topic}-{topic_id}"
        with warehouse_errors(f"{source.name}: its log was not created"):
            self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {spark_path(self._catalog, 'log')}")
            began = durable.sync_start()
            self.spark.sql(
                f"CREATE TABLE IF NOT EXISTS {table.name} ({RECORD}{declared}) USING iceberg "
                f"PARTITIONED BY (kafka_partition) LOCATION {spark_text(folder)} TBLPROPERTIES ({listed})"
            )
            durable.sync_changed_since(folder, began)

    def opened(self, source: Source) -> bool:
        """True if the source's topic has a log."""
        return self._table(source).exists()

    def topic_id(self, source: Source) -> str:
        """Kafka's id of the log's topic."""
        return self.table(source).properties()[TOPIC_ID]

    def start(self, source: Source) -> Offsets:
        """The offsets at which the log begins: no record below them is held, and none is needed."""
        return log_table.start_of(self.table(source))

    def held(self, source: Source) -> Offsets:
        """The vector below which the log has every record since `start`. A partition that it omits is at 0."""
        return log_table.held_in(self.table(source), source).offsets

    def size(self, source: Source) -> int:
        """Bytes of the log's files, or 0 before the first run."""
        newest = next(self.table(source).lineage(), None)
        return 0 if newest is None else int(newest.summary["total-files-size"])

    def tails(self, source: Source, held: Offsets) -> Tails:
        """The tails below `held` when it was archived, for the partitions whose held offset is still the same."""
        current = log_table.held_in(self.table(source), source)
        return {at: tail for at, tail in current.tails.items() if current.offsets.get(at) == held.get(at)}

    def lost(self, source: Source, wanted: OffsetRange) -> list[OffsetRange]:
        """The ranges of lost records that overlap the wanted range."""
        return [
            loss
            for loss in log_table.losses(self.table(source))
            if any(loss.start[at] < wanted.end.get(at, 0) and wanted.start.get(at, 0) < loss.end[at] for at in loss.end)
        ]

    def parsed(self, raw: DataFrame, source: Source) -> DataFrame:
        """Raw records, parsed by the source's declaration and by the schemas that they name.

        The speed layer has fetched the schemas of the records that it counted. Records from before the source was
        declared, or from before its declaration changed, may name schemas that this method has to fetch first.
        """
        by, answers = Decoding.of(source), NO_ANSWERS
        if by is not None and by.needs_registry:
            assert self._schemas is not None, f"{source.name} is read without its schemas"
            answers = self._schemas.of(source.topic)
            if unknown := frames.missing(named_schemas(raw, by), by.schemas(answers)):
                answers = self._schemas.learn(source.topic, by.ask_again, unknown)
        return parsed(raw, source, answers)

    def records_below(self, source: Source, cut: Cut, *, since: Offsets | None = None) -> DataFrame:
        """All records of the log from `since` up to the cut, good and bad, with the columns of `Source.parse`.

        They come from the parsed columns. Rows archived under another declaration are parsed again from the raw
        values. A table's log times count its records from `since` on.
        """
        return log_times.with_log_times_of_tables(self._stored(source, cut, since), source)

    def _stored(self, source: Source, cut: Cut, since: Offsets | None) -> DataFrame:
        table = self.table(source)
        held = log_table.held_in(table, source)
        wanted = Offsets.of(source.topic, cut.on(source.topic))
        if not held.offsets.reaches(wanted.positive):
            raise log_refusals.too_short(source, held.offsets, wanted)
        if held.newest is None:
            return self._nothing(source)
        first = log_table.start_of(table)
        stored = OffsetRange.since(since or first, wanted)
        if late := {at: first[at] for at, end in wanted.items() if stored.start[at] < min(first.get(at, 0), end)}:
            raise log_refusals.begins_after(source, Offsets(late), stored.start)
        rows = table.read(held.newest.id).where(within(stored))
        rows = without(rows, stored.holds(self.skipped()))
        if table.properties()[PARSED_BY] == fingerprint(source):
            return rows.select(
                *RECORD_COLUMNS,
                # Iceberg has no TINYINT or SMALLINT: widened columns are cast back to the declared type.
                *(col(spark_path(column.name)).cast(column.spark).alias(column.name) for column in source.read),
            )
        return self.parsed(as_raw(rows, source), source)

    def records(self, source: Source, end: Offsets, brokers: Brokers, *, since: Offsets | None = None) -> DataFrame:
        """All records from `start` up to `end`, good and bad: from the log, and from Kafka beyond the log's end.

        `since` is the source's own start, if it differs from the log's.
        """
        table = self.table(source)
        wanted = Offsets.of(source.topic, end.on(source.topic))
        stored, lacking = self._split(source, OffsetRange.since(since or log_table.start_of(table), wanted))
        rows = self._stored(source, stored.end, stored.start)
        for missing in lacking:
            check_topic(table, source, brokers)
            check_reached(source, missing, brokers)
            if (lost := removed_from(missing, brokers)).end:
                raise log_refusals.removed_by_retention(source, lost)
            records = self.parsed(self.in_kafka(source, missing, brokers), source)
            rows = rows.drop(LOG_TIME).unionByName(records.drop(LOG_TIME))
        return log_times.with_log_times_of_tables(rows, source)

    def raw(self, source: Source, wanted: OffsetRange, brokers: Brokers) -> DataFrame:
        """The raw records of a range, from the log and from Kafka beyond the log's end, without any check."""
        table = self.table(source)
        newest = log_table.held_in(table, source).newest
        stored, lacking = self._split(source, wanted)
        parts = [self.in_kafka(source, missing, brokers) for missing in lacking]
        if newest is not None and not stored.empty:
            rows = without(table.read(newest.id).where(within(stored)), stored.holds(self.skipped()))
            parts.insert(0, as_raw(rows, source))
        parts = parts or [self.in_kafka(source, OffsetRange(wanted.start, wanted.start), brokers)]
        return reduce(lambda whole, part: whole.unionByName(part), parts)

    def log_times_below(self, source: Source, end: Offsets, brokers: Brokers, *, since: Offsets) -> LogTimes:
        """A table's log time per partition below `end`, over the records that the log or Kafka still has."""
        first = brokers.earliest(source.topic)
        stored, lacking = self._split(source, OffsetRange.since(since, end))
        times = self._stored(source, stored.end, stored.start).select("kafka_partition", "kafka_timestamp")
        for missing in lacking:
            begin = Offsets({at: max(offset, first.get(at, 0)) for at, offset in missing.start.items()})
            present = OffsetRange(begin, missing.end)
            if not present.empty:
                records = positions(self.in_kafka(source, present, brokers), source)
                times = times.unionAll(records.select("kafka_partition", "kafka_timestamp"))
        newest = times.groupBy("kafka_partition").agg(expr("unix_micros(max(kafka_timestamp)) AS newest")).collect()
        return {TopicPartition(source.topic, row.kafka_partition): row.newest for row in newest}

    def in_kafka(self, source: Source, wanted: OffsetRange, brokers: Brokers) -> DataFrame:
        """The raw records of a range in Kafka, except skipped ones."""
        return kafka_range(self.spark, brokers, source, wanted, self.skipped())

    def _split(self, source: Source, wanted: OffsetRange) -> tuple[OffsetRange, list[OffsetRange]]:
        """The part of a range that the log holds, and the parts that it lacks."""
        table = self.table(source)
        return wanted.parted(log_table.start_of(table), log_table.held_in(table, source).offsets)

    def table(self, source: Source) -> Table:
        """The Iceberg table of the source's log. Raises LaminaError if there is none."""
        table = self._table(source)
        if not table.exists():
            raise log_refusals.no_log(source)
        return table

    def _table(self, source: Source) -> Table:
        self.warehouse.reach()
        return Table(self.spark, spark_path(self._catalog, "log", source.topic))

    def _nothing(self, source: Source) -> DataFrame:
        raw = "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY"
        headers = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
        return positions(self.spark.createDataFrame([], f"{raw}, {headers}"), source)


def positions(raw: DataFrame, source: Source) -> DataFrame:
    """Raw records parsed without any schema: only Kafka's own columns are right."""
    return parsed(raw, source, NO_ANSWERS)


def check_topic(table: Table, source: Source, brokers: Brokers) -> None:
    """Raises LaminaError if Kafka's topic is not the one that the log was archived from."""
    topic_id, wanted = brokers.topic_id(source.topic), table.properties()[TOPIC_ID]
    if topic_id != wanted:
        raise log_refusals.another_topic(source, topic_id, wanted)


def check_reached(source: Source, wanted: OffsetRange, brokers: Brokers) -> None:
    """Raises LaminaError if a range ends above the committed records."""
    latest = brokers.latest(source.topic)
    if not latest.reaches(wanted.end):
        raise log_refusals.ends_before(source, latest, wanted.end)


def removed_from(wanted: OffsetRange, brokers: Brokers) -> OffsetRange:
    """The beginnings of a range that Kafka has removed."""
    removed = brokers.removed(wanted.start).end
    lost = {at: (start, min(removed.get(at, 0), wanted.end[at])) for at, start in wanted.start.items()}
    return OffsetRange.between({at: span for at, span in lost.items() if span[0] < span[1]})
