"""The table of a log: its columns, its properties, and the state that its snapshots' summaries record.

- Partitioned by `kafka_partition`. An archive run writes each Kafka partition in the order of its offsets, so a file
  spans a range of offsets, and Iceberg's minimum and maximum of `kafka_offset` per file prune the files beyond a cut
  or outside a range. Days or hours would prune nothing here, because cuts are offsets.
- `kafka_value` and `kafka_key` carry no such statistics: nobody searches by them, and they would swell the manifests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.functions import col, lit

from master_log.iceberg import Snapshot, Table
from master_log.kafka.brokers import Brokers
from master_log.kafka.tails import ChangedTail, Tails
from master_log.log_refusals import no_held_offsets
from master_log.offsets import OffsetRange, Offsets, TopicPartition, from_json, to_json
from view_algebra.compiled import Source
from view_algebra.language.quoting import spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMNS = {
    "kafka_partition": "INT",
    "kafka_offset": "BIGINT",
    "kafka_timestamp": "TIMESTAMP",
    "kafka_key": "BINARY",
    "kafka_headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "kafka_value": "BINARY",
    "kafka_error": "STRING",
}
RECORD = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
RECORD_COLUMNS = tuple(_COLUMNS)
PROPERTIES = {
    "format-version": "2",
    "write.distribution-mode": "none",
    "write.metadata.metrics.column.kafka_value": "none",
    "write.metadata.metrics.column.kafka_key": "none",
    # A backup of the catalog names the metadata file of its time. A commit would remove these files by their number,
    # so only `maintain` removes them, by age.
    "write.metadata.delete-after-commit.enabled": "false",
    "write.metadata.previous-versions-max": "20",
    "write.metadata.compression-codec": "gzip",
}


HELD = "lamina.held"
"""Snapshot summary: the vector below which every record is in the log, in Spark's JSON form."""

LOST = "lamina.lost"
"""Snapshot summary: ranges whose records Kafka removed before they were archived, as `{"orders": {"0": [5, 9]}}`."""

TAILS = "lamina.tails"
"""Snapshot summary: the tail below `held` in Kafka, per partition (`master_log/kafka/tails.py`)."""

REPLACED = "lamina.replaced"
"""Snapshot summary: ranges that the log held and Kafka lost, as `{"orders": {"0": [90, 100]}}`."""

START = "lamina.start"
"""Table property: the offsets at which the log begins, the earliest ones when its first source was applied."""

TOPIC_ID = "lamina.topic-id"
"""Table property: Kafka's id of the topic."""

PARSED_BY = "lamina.parsed-by"
"""Table property: fingerprint of the `Source.parse` that parsed all rows, or `several`."""


@dataclass(frozen=True)
class LogEnd:
    """The offsets below which a log has every record since its start, and the known tails below them.

    newest: the snapshot that readers see, or None before the first archive run
    """

    newest: Snapshot | None
    offsets: Offsets
    tails: Tails

    @property
    def summary(self) -> dict[str, str]:
        """The summary of a commit after which the log holds these offsets."""
        return {HELD: self.offsets.json(), TAILS: to_json(self.tails)}


def fingerprint(source: Source) -> str:
    """The fingerprint of the text that parses the source's records."""
    return hashlib.sha256(source.parse.encode()).hexdigest()[:16]


def fitted(table: Table, source: Source, rows: DataFrame) -> DataFrame:
    """The rows with the table's columns. A column that is no longer declared with its type is NULL."""
    columns = table.columns()
    if table.properties()[PARSED_BY] == fingerprint(source):
        return rows.select(*(col(spark_path(name)) for name in columns))
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema}
    return rows.select(
        *(
            col(spark_path(name)) if kinds.get(name) == kind else lit(None).cast(kind).alias(name)
            for name, kind in columns.items()
        )
    )


def start_of(table: Table) -> Offsets:
    """The offsets at which the log begins."""
    return Offsets.parse(table.properties()[START])


def held_in(table: Table, source: Source) -> LogEnd:
    """The state that the newest snapshot with one records. Before the first run, the log holds `start`."""
    newest: Snapshot | None = None
    start = start_of(table)
    for snapshot in table.lineage():
        newest = newest or snapshot
        if HELD in snapshot.summary:
            stated = Offsets.parse(snapshot.summary[HELD])
            held = stated.updated({at: max(begin, stated.get(at, 0)) for at, begin in start.items()})
            tails = {at: tail for at, tail in _tails(snapshot).items() if stated.get(at) == held.get(at)}
            return LogEnd(newest, held, tails)
    if newest is None:
        return LogEnd(None, start, {})
    raise no_held_offsets(source, f"No snapshot that {table.name} still keeps carries {HELD}.")


def agreeing(table: Table, differing: Sequence[ChangedTail], brokers: Brokers) -> dict[TopicPartition, int]:
    """For each differing partition, the newest recorded offset below which log and Kafka agree."""
    agreed: dict[TopicPartition, int] = {}
    for snapshot in table.lineage():
        undecided = [partition.at for partition in differing if partition.at not in agreed]
        held, tails = Offsets.parse(snapshot.summary.get(HELD, "{}")), _tails(snapshot)
        comparable = Offsets({at: held[at] for at in undecided if at in held and at in tails})
        other = {partition.at for partition in brokers.differing(comparable, tails)}
        agreed |= {at: offset for at, offset in comparable.items() if at not in other}
        if not undecided:
            break
    return agreed


def records_loss(snapshot: Snapshot) -> bool:
    """True if the run continued without records that Kafka had lost or removed."""
    return bool({LOST, REPLACED} & set(snapshot.summary))


def losses(table: Table) -> Iterator[OffsetRange]:
    """The ranges of lost records: the log lacks them, or holds others in their place."""
    for snapshot in table.snapshots():
        for name in {LOST, REPLACED} & set(snapshot.summary):
            yield OffsetRange.between(from_json(snapshot.summary[name]))


def ranges_json(offsets: OffsetRange) -> str:
    """The range in the form of the summaries LOST and REPLACED."""
    return to_json({at: (offsets.start[at], end) for at, end in offsets.end.items()})


def _tails(snapshot: Snapshot) -> Tails:
    return from_json(snapshot.summary.get(TAILS, "{}"))
