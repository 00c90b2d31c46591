"""The expected rows: every record by partition and offset, as Kafka holds it, and DuckDB's answer over those below."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from benchmarks.chaos.world import SentRecord, WorldSource, WorldView
from view_algebra.errors import LaminaError

ARROW = {
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "VARCHAR": pa.string(),
    "DOUBLE": pa.float64(),
    "DECIMAL(12, 2)": pa.decimal128(12, 2),
    "TIMESTAMP": pa.timestamp("us"),
    "BOOLEAN": pa.bool_(),
}

LOOK_EVERY = 0.5
"""Seconds between two looks at Kafka. All records since the last look are inserted together, in the time of one."""

PATIENCE = 120.0
"""Seconds that a comparison waits for our own reader of Kafka, which is down if Kafka is."""

Below = Mapping[tuple[int, int], int]
Offsets = Mapping[tuple[str, int], tuple[int, int]]
"""By source and partition: the first offset, and the end of the counted offsets."""


@dataclass
class ChaosOracle:
    """Every record that a topic holds, identified by its key, which is the number under which it was sent."""

    sent: dict[bytes, SentRecord] = field(default_factory=dict)
    reached: dict[tuple[str, int], int] = field(default_factory=dict)
    _sources: dict[str, WorldSource] = field(default_factory=dict)
    _duck: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._duck.execute("SET TimeZone = 'UTC'; SET threads = 1")
        self._duck.execute(
            "CREATE TABLE bad (source VARCHAR, kafka_partition INTEGER, kafka_offset BIGINT, kafka_ms BIGINT)"
        )

    def declare(self, sources: Iterable[WorldSource]) -> None:
        """Follows the topics of these sources from now on."""
        with self._lock:
            for source in sources:
                columns = ", ".join(f'"{name}" {kind}' for name, kind in source.columns.items())
                self._duck.execute(
                    f"CREATE TABLE IF NOT EXISTS all_{source.name}"
                    f" (kafka_partition INTEGER, kafka_offset BIGINT, kafka_ms BIGINT, {columns})"
                )
                self._sources[source.name] = source

    def forget(self, source: str) -> None:
        """Stops following a topic. Later records under the same name belong to another topic."""
        with self._lock:
            self._sources.pop(source, None)

    def topics(self) -> dict[str, str]:
        """The followed sources, by topic."""
        with self._lock:
            return {source.topic: source.name for source in self._sources.values()}

    def take(self, source: str, records: Sequence[tuple[int, int, int, bytes]]) -> None:
        """Adds records as Kafka holds them: partition, offset, timestamp in milliseconds and key."""
        columns = self._sources[source].columns
        good, bad = [], []
        for partition, offset, ms, key in records:
            row, where = self.sent[key].row, {"kafka_partition": partition, "kafka_offset": offset, "kafka_ms": ms}
            if row is None:
                bad.append({"source": source, **where})
            else:
                good.append({**where, **{c: row.get(c) for c in columns}})
        kinds = _WHERE | {c: ARROW[k] for c, k in columns.items()}
        with self._lock:
            self._insert(f"all_{source}", pa.Table.from_pylist(good, pa.schema(kinds.items())))
            self._insert("bad", pa.Table.from_pylist(bad, _BAD))
            for partition, offset, *_ in records:
                self.reached[source, partition] = offset + 1

    def _insert(self, table: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self._duck.register("arrived", rows)
            self._duck.execute(f"INSERT INTO {table} SELECT * FROM arrived")
            self._duck.unregister("arrived")

    def lose(self, source: str, partition: int, end: int) -> None:
        """Removes the records at `end` and above, which Kafka has lost. Other records will get their offsets."""
        with self._lock:
            for table, of in ((f"all_{source}", ""), ("bad", f"source = '{source}' AND ")):
                self._duck.execute(
                    f"DELETE FROM {table} WHERE {of} kafka_partition = {partition} AND kafka_offset >= {end}"
                )
            self.reached[source, partition] = min(end, self.reached.get((source, partition), 0))

    def await_reached(self, offsets: Offsets) -> None:
        """Returns once every record below these offsets is known here."""
        deadline = time.monotonic() + PATIENCE
        while not all(self.reached.get(at, 0) >= end or end == first for at, (first, end) in offsets.items()):
            if time.monotonic() > deadline:
                raise LaminaError("Kafka was not read in time", evidence=f"{dict(offsets)}, read {self.reached}")
            time.sleep(0.05)

    def rows(self, view: WorldView, offsets: Offsets, since: datetime | None) -> Counter[Row]:
        """The rows that a view must show over exactly these records."""
        with self._lock:
            below = ", ".join(
                f"{source} AS (SELECT * FROM all_{source} WHERE {_condition(source, offsets)})"
                for source in self._names()
            )
            kept = f" WHERE {view.kept_by} >= '{since:%Y-%m-%d %H:%M:%S}'" if since and view.kept_by else ""
            rows = self._duck.execute(f"WITH {below} SELECT * FROM ({view.duck}){kept}").fetchall()
        return Counter(map(comparable, rows))

    def bad(self, source: str, offsets: Offsets) -> int:
        """The number of a source's records that must be in quarantine."""
        with self._lock:
            [row] = self._duck.execute(
                f"SELECT count(*) FROM bad WHERE source = '{source}' AND {_condition(source, offsets)}"
            ).fetchall()
        return int(row[0])

    def counts(self) -> tuple[int, int]:
        """Good and bad records among all that Kafka ever held."""
        with self._lock:
            good = sum(
                self._duck.execute(f"SELECT count(*) FROM all_{name}").fetchall()[0][0] for name in self._names()
            )
            return good, self._duck.execute("SELECT count(*) FROM bad").fetchall()[0][0]

    def _names(self) -> list[str]:
        tables = self._duck.execute(
            "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'all\\_%' ESCAPE '\\'"
        )
        return [name.removeprefix("all_") for (name,) in tables.fetchall()]


_WHERE = {"kafka_partition": pa.int32(), "kafka_offset": pa.int64(), "kafka_ms": pa.int64()}
_BAD = pa.schema({"source": pa.string(), **_WHERE}.items())

Row = tuple[Any, ...]


def comparable(row: Sequence[Any]) -> Row:
    """A row in the form that both engines share: instants as UTC's wall clock, doubles to nine digits.

    >>> from decimal import Decimal
    >>> comparable([datetime(2024, 1, 1, tzinfo=UTC), 0.1 + 0.2, Decimal("1.50"), float("nan")])
    (datetime.datetime(2024, 1, 1, 0, 0), '0.3', Decimal('1.50'), 'nan')
    """
    return tuple(_comparable(value) for value in row)


def _comparable(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return f"{value + 0.0:.9g}" if isinstance(value, float) else value


def _condition(source: str, offsets: Offsets) -> str:
    ranges = [
        f"(kafka_partition = {partition} AND kafka_offset >= {first} AND kafka_offset < {end})"
        for (name, partition), (first, end) in offsets.items()
        if name == source
    ]
    return f"({' OR '.join(ranges) or 'false'})"


def follow(oracle: ChaosOracle, brokers: str, stopping: threading.Event) -> None:
    """Reads every topic with Kafka's own client, until it is stopped."""
    consumer: KafkaConsumer | None = None
    while not stopping.wait(LOOK_EVERY):
        try:
            if consumer is None:
                consumer = KafkaConsumer(
                    bootstrap_servers=brokers,
                    isolation_level="read_committed",
                    max_partition_fetch_bytes=8 * 1024 * 1024,
                    max_poll_records=5_000,
                    request_timeout_ms=20_000,
                    fetch_max_wait_ms=100,
                    metadata_max_age_ms=2_000,  # partitions are added
                )
            _follow(oracle, consumer)
        except (KafkaError, OSError, AssertionError, ValueError, LookupError):
            if consumer is not None:
                consumer.close()
            consumer = None
    if consumer is not None:
        consumer.close()


def _follow(oracle: ChaosOracle, consumer: KafkaConsumer) -> None:
    """One look. Reads new partitions from their first record, and drops those that are not followed any more."""
    topics = oracle.topics()
    wanted = {TopicPartition(t, p) for t in topics for p in consumer.partitions_for_topic(t) or ()}
    if wanted - consumer.assignment() or consumer.assignment() - wanted:
        consumer.assign(sorted(wanted))
    for at in wanted:
        reached = oracle.reached.get((topics[at.topic], at.partition), 0)
        if consumer.position(at) != reached:
            consumer.seek(at, reached)
    polled = consumer.poll(timeout_ms=200)
    for topic, source in topics.items():
        new = [
            (at.partition, record.offset, record.timestamp, record.key)
            for at, records in polled.items()
            if at.topic == topic
            for record in records
            if record.offset >= oracle.reached.get((source, at.partition), 0)
        ]
        if new:
            oracle.take(source, new)
    for at in polled:  # a marker of a transaction takes an offset
        source = topics[at.topic]  # a topic that was dropped since then raises, and we begin again
        oracle.reached[source, at.partition] = max(oracle.reached.get((source, at.partition), 0), consumer.position(at))
