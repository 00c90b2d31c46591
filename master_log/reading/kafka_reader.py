"""Reads committed records from Kafka with Spark, over ranges of offsets that the caller names.

Raw records have the columns of Spark's Kafka source (`RAW`). Parsed records have the columns of `Source.parse`, the one
text by which both layers read a record.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql.functions import col, lit

from master_log.causes import SPARK_ERRORS, cause
from master_log.kafka.brokers import Brokers
from master_log.offsets import OffsetRange, Offsets, Skipped, TopicPartition
from master_log.reading.log_times import RAW_LOG_TIME
from master_log.reading.record_decoding import decoded
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError
from view_algebra.formats import Decoding
from view_algebra.formats.interface import NO_ANSWERS, Answers
from view_algebra.language.quoting import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RAW = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
"""The columns of a raw record, which `Source.parse` reads as the view `raw_records`."""

KAFKA_READER = {
    # Measured on two cores, records of 140 bytes: 200–330 k/s with Kafka's defaults, 500–930 k/s with these.
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(16 * 1024 * 1024),
    "kafka.fetch.max.bytes": str(64 * 1024 * 1024),
    "kafka.receive.buffer.bytes": str(1024 * 1024),
    # Spark asks for the ends of a partition after each fetch, and brokers answer this after the next fetch of the same
    # connection. With Kafka's 500 ms, a partition without more records would delay every micro-batch by as much.
    "kafka.fetch.max.wait.ms": "10",
    # Otherwise, records of aborted transactions would count, and the end of a log could still move.
    "kafka.isolation.level": "read_committed",
    "includeHeaders": "true",
    "failOnDataLoss": "true",
}
"""Options of every read of Kafka with Spark."""


class UnpassableRecord(LaminaError):
    """A record that a query cannot pass unless an operator skips it. `at` and `offset` name the record."""

    def __init__(self, what: str, source: Source, at: TopicPartition, offset: int, evidence: str, then: str) -> None:
        super().__init__(
            f"The record at partition {at.partition}, offset {offset} of {at.topic} {what}",
            evidence=evidence,
            way_out=(
                f"`lamina skip {source.name} {at.partition} {offset} --reason TEXT` puts it into quarantine, and"
                f" the query continues after it. {then}"
            ),
        )
        self.at, self.offset = at, offset


class UnreadableRecord(UnpassableRecord):
    """A record that Spark cannot read."""

    def __init__(self, source: Source, at: TopicPartition, offset: int, evidence: str) -> None:
        then = "Repeat the command that met it, and restart the speed layer if it has ended."
        super().__init__("cannot be read", source, at, offset, evidence, then)


def stream(
    spark: SparkSession,
    brokers: Brokers,
    topics: Sequence[str],
    start: Offsets,
    *,
    max_records_per_micro_batch: int | None = None,
) -> DataFrame:
    """The topics as one stream of raw records, from `start` on.

    A partition that `start` does not name begins at its first record (offset 0), even if it is added while the stream
    runs. By Spark's rule, an existing checkpoint wins over `start`. `max_records_per_micro_batch` counts offsets, and
    Spark spreads it over the partitions by their lag.
    """
    begin = Offsets(dict.fromkeys(brokers.latest(*topics), 0)).updated(start)
    reader = (
        spark.readStream.format("kafka")
        .options(**brokers.for_spark(), **KAFKA_READER)
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", begin.json())
    )
    if max_records_per_micro_batch is not None:
        reader = reader.option("maxOffsetsPerTrigger", str(max_records_per_micro_batch))
    return reader.load().select(*RAW)


def kafka_range(
    spark: SparkSession, brokers: Brokers, source: Source, offset_range: OffsetRange, skipped: Skipped = frozenset()
) -> DataFrame:
    """The raw records of a range of the source's topic, except the skipped ones.

    The range must not end above the committed records. Rows of one Spark partition belong to one Kafka partition, in
    the order of their offsets. Spark does not even fetch a skipped record, because it may be unable to read it.
    """
    parts = [_whole_range(spark, brokers, source, part) for part in offset_range.without(skipped)]
    return reduce(lambda whole, part: whole.unionAll(part), parts)


def unreadable(
    spark: SparkSession, brokers: Brokers, source: Source, offset_range: OffsetRange, skipped: Skipped
) -> UnreadableRecord | None:
    """The first record of a range that Spark cannot read. None if it reads them all, or cannot read the topic at all.

    If Java does not trust a certificate, or a worker reaches no broker, Spark reads no record. That is not a record's
    fault, and skipping a record would lose it. Halving finds the record, so about twice the range is read.
    """

    def failure(at: TopicPartition, start: int, end: int) -> str | None:
        """The reason Spark cannot read these offsets, or None if it can."""
        part = OffsetRange.between({at: (start, end)})
        try:
            kafka_range(spark, brokers, source, part, skipped).write.format("noop").mode("overwrite").save()
        except SPARK_ERRORS as error:
            brokers.latest(source.topic)  # raises if the brokers are at fault, not the record
            return cause(str(error))
        return None

    for at, end in offset_range.end.items():
        low, high = offset_range.start[at], end
        if low >= high or failure(at, low, high) is None:
            continue
        if all(failure(*other) is not None for other in _others(brokers, source.topic, at, low, high)):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if failure(at, low, middle) is None else (low, middle)
        if (evidence := failure(at, low, high)) is not None:
            is_gone = brokers.earliest(source.topic)[at] > low  # removed by retention, which has its own error
            return None if is_gone else UnreadableRecord(source, at, low, evidence)
    return None


def _others(
    brokers: Brokers, topic: str, at: TopicPartition, low: int, high: int
) -> Iterator[tuple[TopicPartition, int, int]]:
    """Other single records of a topic than the first of a partition's range, those most likely to be good first."""
    earliest, latest = brokers.earliest(topic), brokers.latest(topic)
    if earliest[at] < low:
        yield at, low - 1, low
    if high < latest[at]:
        yield at, latest[at] - 1, latest[at]
    if low + 1 < high:
        yield at, high - 1, high
    yield from ((other, end - 1, end) for other, end in latest.items() if other != at and earliest[other] < end)


def _whole_range(spark: SparkSession, brokers: Brokers, source: Source, offset_range: OffsetRange) -> DataFrame:
    topic = source.topic
    # A range may end before it starts (a cut below the held offsets); it is then empty.
    ends = {at: max(offset_range.start[at], end) for at, end in offset_range.end.items() if at.topic == topic}
    # `assign`, not `subscribe`: only the range's partitions, even if the topic has gained some.
    return (
        spark.read.format("kafka")
        .options(**brokers.for_spark(), **KAFKA_READER)
        .option("assign", json.dumps({topic: [at.partition for at in ends]}))
        .option("startingOffsets", Offsets({at: offset_range.start[at] for at in ends}).json())
        .option("endingOffsets", Offsets(ends).json())
        .option("minPartitions", str(spark.sparkContext.defaultParallelism))
        .load()
        .select(*RAW)
    )


def parsed(raw: DataFrame, source: Source, answers: Answers | None = None) -> DataFrame:
    """Raw records parsed by `Source.parse`, whose `kafka_error` tells good records from bad ones.

    answers: the known schemas of the records, if they have to be decoded. Raw records may be decoded already

    The sample keeps every row, and Spark's optimizer moves no condition below it. Below it, a condition would replace a
    column by its expression, and parse a record's JSON again for each kind of mistake in `kafka_error`. Spark cannot
    sample a stream, so this is for micro-batches and ranges. Without log times, the column is NULL.
    """
    if source.kind == "table" and RAW_LOG_TIME not in raw.columns:
        raw = raw.withColumn(RAW_LOG_TIME, lit(None).cast("timestamp"))
    if (by := Decoding.of(source)) is not None:
        if by.column not in raw.columns:
            assert answers is not None or not by.needs_registry, f"{source.name} is read without its schemas"
            raw = decoded(raw, [source], answers or NO_ANSWERS)
        raw = raw.select("*", f"{by.column}.*")
    return selected(raw, "raw_records", source.parse).sample(1.0, seed=0)


def selected(rows: DataFrame, name: str, select: str) -> DataFrame:
    """The result of a SELECT that reads these rows by this name, as it is written in SQL.

    Works inside `foreachBatch` (it uses the session of `rows`) and from several threads at once. A cache of the rows
    stays: Spark would drop it if a temporary view of theirs were replaced.
    """
    spark = rows.sparkSession
    view = f"rows_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(view)
    try:
        # Spark analyses the text at once, so the view may be dropped afterwards.
        return spark.sql(f"WITH {name} AS (SELECT * FROM {view}) SELECT * FROM (\n{select}\n)")
    finally:
        # `spark.catalog` would also look for a cache of the view, and drop that of the rows.
        spark._jsparkSession.sessionState().catalog().dropTempView(view)  # noqa: SLF001 (not in pyspark)


def named_in(rows: DataFrame, texts: Sequence[str]) -> DataFrame:
    """Only the columns that the texts name, to be cached and then read by `selected`."""
    whole = "\n".join(texts).lower()
    names = [spark_name(name) for name in rows.columns]
    return _without_with(rows.select([name for name in names if name.strip("`").lower() in whole]))


def _without_with(rows: DataFrame) -> DataFrame:
    """The same rows by a plan without WITH, as Spark's optimizer would write it.

    Spark 4.1 numbers the WITHs of a query from the outermost on. A cached plan that contains a WITH therefore no longer
    matches once another WITH reads it, as in `selected`.
    """
    from pyspark.sql import DataFrame

    spark: Any = rows.sparkSession
    inline = spark._jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(False, False)  # noqa: SLF001 (not in pyspark)
    plan: Any = inline.apply(rows._jdf.queryExecution().analyzed())  # noqa: SLF001
    dataset = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)  # noqa: SLF001
    return DataFrame(dataset, rows.sparkSession)


def within(offset_range: OffsetRange) -> str:
    """The Spark SQL condition for records of a range, with a term per partition by which Iceberg prunes files."""
    terms = (
        f"(kafka_partition = {at.partition} AND kafka_offset >= {offset_range.start[at]} AND kafka_offset < {end})"
        for at, end in offset_range.end.items()
    )
    return " OR ".join(terms) or "false"


def without(rows: DataFrame, skipped: Skipped) -> DataFrame:
    """The rows of a log, except those of skipped records."""
    for at, offset in skipped:
        rows = rows.where((col("kafka_partition") != at.partition) | (col("kafka_offset") != offset))
    return rows


def as_raw(rows: DataFrame, source: Source) -> DataFrame:
    """The rows of a log as raw records."""
    return rows.select(lit(source.topic).alias("topic"), *(col(f"kafka_{name}").alias(name) for name in RAW[1:]))
