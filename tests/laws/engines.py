"""Runs the texts of a compiled catalog in the engines that run them: partial in Spark, merge and final in Postgres.

The oracle is the author's SELECT, run by Spark over all good records.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import psycopg2.extensions
from pyarrow import csv
from pyspark.sql import DataFrame, SparkSession

from batch_layer.compute import records_that_count
from batch_layer.selects import set_clock
from lamina.testing.runner import QUICK, raw_records
from master_log.offsets import TopicPartition
from master_log.reading import log_times
from master_log.reading.log_times import LogTimes
from master_log.reading.record_decoding import decoded
from serving_layer.postgres.copying import with_infinities
from view_algebra import SPARK_FUNCTIONS, Catalog, CellTable, Fused, Source, View, fuse, rows
from view_algebra.compiled import JSON_TIMES
from view_algebra.formats import Decoding
from view_algebra.formats.interface import Schema

Row = tuple[Any, ...]
TOGETHER = 40
"""Cell tables that one query computes. With more, planning in Spark dominates."""


@dataclass(frozen=True)
class Sent:
    """A record as it was sent: its key and value, its partition, its Kafka timestamp, and its headers."""

    key: bytes
    value: bytes | None
    partition: int
    timestamp: datetime
    headers: list[tuple[str, bytes | None]] | None = None


Record = bytes | None | tuple[bytes, bytes | None] | Sent
"""A record's value, its key and its value, or all that Kafka has of it."""

Batches = Sequence[Sequence[Record]]
"""The records of a source, in the micro-batches in which they come."""

PARTITIONS = 2


def quick(spark: SparkSession) -> SparkSession:
    """The session, made quick for little data."""
    for key, value in QUICK.items():
        spark.conf.set(key, value)
    return spark


@dataclass
class Engines:
    """A Spark session and a connection to an empty Postgres database.

    compiling: true if Spark generates code for micro-batches, as in the speed layer. The oracle never does.
    types: by view, the types of its columns in Spark, known once `oracle` has read its SELECT
    counted: by stream with UNIQUE, the ids of the events that were fed
    schemas: by id, the schemas of records in the frame of a registry
    """

    spark: SparkSession
    connection: psycopg2.extensions.connection
    compiling: bool = True
    types: dict[str, list[str]] = field(default_factory=dict)
    counted: dict[str, set[str]] = field(default_factory=dict)
    schemas: dict[str, Schema | None] = field(default_factory=dict)

    def prepare(self) -> None:
        """Creates the schemas that the texts name."""
        self.connection.autocommit = True
        with self.connection.cursor() as cursor:
            cursor.execute(SPARK_FUNCTIONS)
            for schema in ("cells", "analytics", "lamina"):
                cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            cursor.execute("SET TIME ZONE 'America/St_Johns'")  # final may not depend on it
            cursor.execute("SET default_transaction_isolation = 'read committed'")

    def deploy(self, catalog: Catalog, generations: int = 1) -> None:
        """Creates empty generations of every view, and the analysts' views, which read the first."""
        self.counted = {}
        with self.connection.cursor() as cursor:
            for view in in_order(catalog):
                cursor.execute(f"DROP VIEW IF EXISTS analytics.{view.name} CASCADE")
                for table in view.cell_tables:
                    for number in range(1, generations + 1):
                        cursor.execute(f"DROP TABLE IF EXISTS {cells_table(table, number)}")
                        cursor.execute(table.cells.format(table=cells_table(table, number)))
                cursor.execute(f"CREATE VIEW analytics.{view.name} AS {view.final}")

    def feed(self, catalog: Catalog, batches: Mapping[str, Batches], generation: int = 1, offset: int = 0) -> None:
        """Puts every micro-batch through Spark and into the cells, as the speed layer does."""
        if not self.compiling:
            quick(self.spark)
        for key in QUICK if self.compiling else ():
            self.spark.conf.unset(key)
        for name, source in catalog.sources.items():
            at, reached = offset, dict[TopicPartition, int]()
            for batch in batches.get(name, ()):
                reached = self.records(source, batch, at, reached)
                self._leave_copies_out(source)
                at += len(batch)
                self._merge(catalog, source, generation)

    def _leave_copies_out(self, source: Source) -> None:
        """Leaves out records whose id was counted before, as a stream with UNIQUE does (test_duplicates is real)."""
        if not source.ids:
            return
        counted, copies = self.counted.setdefault(source.name, set()), []
        for row in self.spark.sql(source.ids).orderBy("at", "kafka_partition", "kafka_offset").collect():
            copies += [row.kafka_offset] if row.id in counted else []
            counted.add(row.id)
        records = self.spark.sql(source.parse).sample(1.0, seed=0)
        records.where(~records.kafka_offset.isin(copies)).createOrReplaceTempView("records")

    def _merge(self, catalog: Catalog, source: Source, generation: int) -> None:
        tables = [t for v in catalog.views.values() for t in v.cell_tables if t.source == source.name]
        for kind, make in (("aggregate", fuse), ("row", rows)):
            of_kind = [t for t in tables if t.kind == kind]
            for some in (of_kind[i : i + TOGETHER] for i in range(0, len(of_kind), TOGETHER)):
                self._merge_together(make(source, some), some, generation)

    def _merge_together(self, fused: Fused, tables: Sequence[CellTable], generation: int) -> None:
        staged = self.spark.sql(fused.sql).drop("newest").toArrow()
        assert tuple(staged.column_names) == tuple(c.name for c in fused.columns)
        text = io.BytesIO()
        csv.write_csv(with_infinities(staged), text, csv.WriteOptions(include_header=False))
        text.seek(0)
        with self.connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(fused.staged)
            cursor.copy_expert(f"COPY {fused.table} FROM STDIN (FORMAT csv)", text)
            for table in tables:
                into = cells_table(table, generation)
                cursor.execute(table.merge.format(cells=fused.read[table.name], into=into, generation=generation))
            cursor.execute("COMMIT")

    def records(
        self, source: Source, values: Sequence[Record], offset: int = 0, reached: LogTimes = MappingProxyType({})
    ) -> dict[TopicPartition, int]:
        """Makes the views `raw_records`, `records` and the source's own (good records only).

        `reached` are the log times of the records before these. Returns the log times after them.
        """
        raw = [raw_of(value, number) for number, value in enumerate(values, offset)]
        in_kafka = log_times.with_log_times(raw_records(self.spark, raw), "t", reached)
        by = Decoding.of(source)
        readable = decoded(in_kafka, [source], {0: self.schemas}).select("*", *([f"{by.column}.*"] if by else []))
        readable.createOrReplaceTempView("raw_records")
        self.spark.sql(source.parse).sample(1.0, seed=0).createOrReplaceTempView("records")  # as `parsed` does
        good = self.spark.sql("SELECT * FROM records WHERE kafka_error IS NULL")
        good.createOrReplaceTempView(source.name)
        good.createOrReplaceTempView(f"`{source.records}`")
        for _, partition, _, at, *_ in raw:
            since = {TopicPartition("t", partition): int(at.timestamp() * 1_000_000)}
            reached = log_times.later(reached, since)
        return dict(reached)

    def from_memory(self, source: Source, values: Sequence[Record]) -> None:
        """Makes the source's view of rows in memory, so that they are parsed once and Spark's plans stay small."""
        self.records(source, values)
        parsed = self.spark.table(f"`{source.records}`")
        good = self.spark.createDataFrame(parsed.toArrow(), parsed.schema).coalesce(1)  # so that nothing is shuffled
        good.createOrReplaceTempView(f"`copies of {source.name}`")
        for name in (source.name, f"`{source.records}`"):
            records_that_count(good, source).createOrReplaceTempView(name)

    def oracle(self, catalog: Catalog, batches: Mapping[str, Batches]) -> None:
        """Makes Spark views of all records, and of every view's whole SELECT over them."""
        quick(self.spark)
        set_clock(self.spark, catalog.views.values(), datetime.now(UTC))
        for name, source in catalog.sources.items():
            self.from_memory(source, [value for batch in batches.get(name, ()) for value in batch])
        for view in in_order(catalog):
            names = [c.name for c in view.columns]
            frame = self.spark.sql(view.spelled).toDF(*names)
            self.types[view.name] = types_in(frame)
            frame.createOrReplaceTempView(view.name)

    def expected(self, view: View) -> list[Row]:
        """The rows of the author's SELECT."""
        columns = ", ".join(_readable(c.name, c.spark) for c in view.columns)
        rows = self.spark.sql(f"SELECT {columns} FROM {view.name}").collect()
        return ordered([tuple(map(_as_held, row)) for row in rows])

    def all_expected(self, catalog: Catalog) -> Iterator[tuple[View, list[Row]]]:
        """Every view and its rows."""
        yield from self.expected_of(in_order(catalog))

    def expected_of(self, views: Sequence[View]) -> Iterator[tuple[View, list[Row]]]:
        """These views and their rows, two at a time: Spark plans each on one processor."""
        with ThreadPoolExecutor(2) as pool:
            yield from zip(views, pool.map(self.expected, views), strict=True)

    def actual(self, view: View) -> list[Row]:
        """The rows that an analyst reads, each column of exactly the declared type."""
        names = [c.name for c in view.columns]
        with self.connection.cursor() as cursor:
            cursor.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
                (f"analytics.{view.name}",),
            )
            attributes = cursor.fetchall()
            assert attributes == [(c.name, _full(c.postgres)) for c in view.columns], view.final
            columns = ", ".join(_text_of_time(n, c.postgres) for n, c in zip(names, view.columns, strict=True))
            cursor.execute(f"SELECT {columns} FROM analytics.{view.name}")
            return ordered([tuple(row) for row in cursor.fetchall()])

    def differing(self, catalog: Catalog, batches: Mapping[str, Batches]) -> dict[str, str]:
        """The differences, by view, after these micro-batches. Every SELECT gives some rows."""
        self.deploy(catalog)
        self.feed(catalog, batches)
        self.oracle(catalog, batches)
        wrong = {}
        for view, expected in self.all_expected(catalog):
            actual = self.actual(view)
            assert expected, view.select
            assert_proved(view, actual)
            if not same(expected, actual):
                wrong[view.name] = difference(view, expected, actual)
        return wrong

    def cells(self, table: CellTable, generation: int) -> list[Row]:
        """The cells of a generation, in the order of their keys."""
        columns = [*table.keys, *(partial.column for partial in table.partials)]
        names = [f"{c.name}::text" if c.postgres in ("timestamptz", "date") else c.name for c in columns]
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(names)} FROM {cells_table(table, generation)}")
            rows = cursor.fetchall()
        return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row[: len(table.keys)]])

    def merge_cells(self, table: CellTable, into: int, come_from: int) -> None:
        """Merges the cells of one generation into another's."""
        texts = {"cells": cells_table(table, come_from), "into": cells_table(table, into)}
        with self.connection.cursor() as cursor:
            cursor.execute(table.merge.format(generation=into, **texts))

    def types_of(self, view: View) -> list[str]:
        """Spark's own types of the author's SELECT."""
        return self.types[view.name]


def assert_proved(view: View, rows: Sequence[Row]) -> None:
    """The columns of a view that are proved to be unique, or never NULL, are so in these rows."""
    values = {column.name: [row[at] for row in rows] for at, column in enumerate(view.columns)}
    for key in view.unique:
        keys = list(zip(*(values[name] for name in key), strict=True)) if key else [()] * len(rows)
        assert len(set(map(repr, keys))) == len(rows), (view.select, key)
    for name in view.never_null:
        assert None not in values[name], (view.select, name)


def types_in(frame: DataFrame) -> list[str]:
    """Spark's own types of the columns of a SELECT."""
    return [column.dataType.simpleString().upper() for column in frame.schema.fields]


def raw_of(record: Record, number: int) -> tuple[Any, ...]:
    """A raw record. Without a key it gets b'k', and its number in µs as its time."""
    if isinstance(record, Sent):
        return ("t", record.partition, number, record.timestamp, record.key, record.value, record.headers)
    key, value = record if isinstance(record, tuple) else (b"k", record)
    at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=number)
    return ("t", number % PARTITIONS, number, at, key, value, None)


def cells_table(table: CellTable, generation: int) -> str:
    """The table of a generation's cells. The analysts' views read the cells of the first."""
    return f"cells.{table.name}" + (f"_g{generation}" if generation > 1 else "")


def in_order(catalog: Catalog) -> list[View]:
    """The views, each after those that it reads."""
    return list(catalog.views.values())


def _as_held(value: Any) -> Any:
    """A value as Postgres holds it, without U+0000."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def _readable(name: str, kind: str) -> str:
    """A column, with times as texts: Python's datetime lacks some of Spark's years, and its time zone."""
    if kind in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"):
        return f"date_format(`{name}`, 'yyyy-MM-dd HH:mm:ss.SSSSSS') AS `{name}`"
    if kind == "BINARY":
        return f"lower(hex(`{name}`)) AS `{name}`"
    if not kind.startswith(("STRUCT", "ARRAY", "MAP")):
        return f"`{name}`"
    options = ", ".join(f'"{text}"' for pair in JSON_TIMES.items() for text in pair)
    return f"to_json(`{name}`, map({options})) AS `{name}`"


def _text_of_time(name: str, kind: str) -> str:
    time = f"\"{name}\" AT TIME ZONE 'UTC'" if kind == "timestamptz" else f'"{name}"'
    if kind in ("timestamptz", "timestamp", "date"):
        return f"to_char({time}, 'YYYY-MM-DD HH24:MI:SS.US')"
    return f"encode(\"{name}\", 'hex')" if kind == "bytea" else f'"{name}"'


def _full(kind: str) -> str:
    return {"timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone"}.get(kind, kind)


def ordered(rows: list[Row]) -> list[Row]:
    """Rows in a fixed order, so that two sets of rows can be compared."""
    return sorted(rows, key=lambda row: ([(v is None, _key(v)) for v in row], [v for v in row if _is_number(v)]))


def _is_number(value: Any) -> bool:
    """True for a double that is not NaN. Doubles that `_key` rounds alike are ordered by all their digits."""
    return isinstance(value, float) and not math.isnan(value)


def _key(value: Any) -> str:
    if isinstance(value, float):
        return f"{0.0 if value == 0 else value:.6e}"
    if isinstance(value, Decimal):
        return f"{value:.12f}"
    if isinstance(value, str) and value[:1] in ("{", "["):  # from Spark: jsonb orders fields differently
        with suppress(ValueError):
            value = json.loads(value)
    return json.dumps(_in_json(value), sort_keys=True) if isinstance(value, (dict, list)) else str(value)


def _in_json(value: Any) -> Any:
    """A nested value in which 0, 0.0 and -0.0 are one number."""
    if isinstance(value, list):
        return [_in_json(item) for item in value]
    if isinstance(value, dict):
        return {name: _in_json(item) for name, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def same(expected: Sequence[Row], actual: Sequence[Row], rounding: float = 0) -> bool:
    """True for equal rows. Doubles may differ by the order in which they were added."""
    return len(expected) == len(actual) and all(
        len(a) == len(b) and all(_same(x, y, rounding) for x, y in zip(a, b, strict=True))
        for a, b in zip(expected, actual, strict=True)
    )


def difference(view: View, expected: Sequence[Row], actual: Sequence[Row]) -> str:
    """The differences by column, as text for a failure."""
    pairs = zip(expected, actual, strict=False)
    names = [c.name for c in view.columns]
    wrong = {n: (x, y) for a, b in pairs for n, x, y in zip(names, a, b, strict=True) if not _same(x, y)}
    return f"{view.select}\n{view.final}\n{len(expected)} rows, {len(actual)} rows; {wrong}"


def _same(a: Any, b: Any, rounding: float = 0) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=rounding)
    if isinstance(a, (date, datetime)) or isinstance(b, (date, datetime)):
        return str(a) == str(b)
    if isinstance(a, str) and isinstance(b, (dict, list)):
        return _same(json.loads(a), b, rounding)  # a nested value: JSON on both sides
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y, rounding) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(value, b[name], rounding) for name, value in a.items())
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and type(a) is not type(b):
        return not isinstance(a, bool) and _same(float(a), float(b), rounding)  # JSON has one kind of number
    return type(a) is type(b) and bool(a == b)
