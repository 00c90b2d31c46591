"""The log time of a record is the greatest Kafka timestamp in its partition at or below its offset.

A producer sets a record's timestamp, so timestamps may fall within a partition. Log times never fall, so
(log time, partition, offset) orders all records of a topic and agrees with the offsets within each partition. A log
time depends only on the records below it, so both layers compute the same: the batch layer from all records, the speed
layer from those of a micro-batch and one number per partition that is stored with progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from master_log.offsets import TopicPartition
from view_algebra.compiled import Source
from view_algebra.record_columns import LOG_TIME

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

LogTimes = Mapping[TopicPartition, int]
"""The log time reached by each partition, in microseconds since 1970. A partition without records is left out."""

RAW_LOG_TIME = "log_time"
"""The extra column of raw records that a table's `Source.parse` reads."""


def later(reached: LogTimes, since: LogTimes) -> dict[TopicPartition, int]:
    """The log times after records whose greatest timestamps are `since`.

    >>> at = TopicPartition("t", 0)
    >>> later({at: 5}, {at: 3})[at], later({at: 5}, {at: 7})[at], later({}, {at: 3})[at]
    (5, 7, 3)
    """
    return {**reached, **{at: max(time, reached.get(at, time)) for at, time in since.items()}}


def with_log_times(raw: DataFrame, topic: str, reached: LogTimes) -> DataFrame:
    """Raw records of a topic with their log times. `reached` holds the log times of the records below them."""
    reached_sql = ", ".join(
        f"{at.partition}, timestamp_micros({time})" for at, time in reached.items() if at.topic == topic
    )
    below = f", map({reached_sql})[partition]" if reached_sql else ""
    highest = f"max(timestamp) OVER (PARTITION BY partition ORDER BY offset){below}"
    return raw.selectExpr("*", f"{f'greatest({highest})' if below else highest} AS {RAW_LOG_TIME}")


def with_log_times_in_memory(table: pa.Table, reached: LogTimes) -> pa.Table:
    """`with_log_times` for records in memory."""
    import numpy as np
    import pyarrow as pa

    partitions, offsets = table["partition"].to_numpy(), table["offset"].to_numpy()
    times = table["timestamp"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    log_times = np.empty_like(times)
    for partition in np.unique(partitions):
        (rows,) = np.nonzero(partitions == partition)
        rows = rows[np.argsort(offsets[rows])]
        below = [time for at, time in reached.items() if at.partition == partition]
        log_times[rows] = np.maximum(np.maximum.accumulate(times[rows]), max(below, default=times[rows[0]]))
    return table.append_column(RAW_LOG_TIME, pa.array(log_times, pa.timestamp("us", "UTC")))


def with_log_times_of_tables(records: DataFrame, source: Source) -> DataFrame:
    """Parsed records of a source from its first record on, with log times if it is a table."""
    if source.kind != "table":
        return records
    highest = "max(kafka_timestamp) OVER (PARTITION BY kafka_partition ORDER BY kafka_offset)"
    return records.drop(LOG_TIME).selectExpr("*", f"{highest} AS {LOG_TIME}")
