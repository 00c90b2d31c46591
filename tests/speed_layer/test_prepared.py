"""Statements that are planned once: over each micro-batch they give what they give when they are planned for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from serving_layer.copying import Rows
from serving_layer.duplicates import Found
from speed_layer.computation import Computation, Computed
from speed_layer.prepared import STATELESS, Prepared, few_of, operators
from view_algebra import compile_catalog
from view_algebra.compiled import Catalog

CATALOG = """
    CREATE TABLE events (id BIGINT UNIQUE, kind STRING, price DECIMAL(10, 2), ts TIMESTAMP, tags ARRAY<STRING>)
    USING kafka OPTIONS (topic 'events', format 'json');
    CREATE TABLE newest (kind STRING PRIMARY KEY, price DECIMAL(10, 2))
    USING kafka OPTIONS (topic 'newest', format 'json');
    CREATE VIEW totals AS SELECT count(*) AS n, sum(price) AS price, max_by(kind, ts) AS last FROM events;
    CREATE VIEW hourly AS SELECT window(ts, '1 hour').start AS hour, kind, count(*) AS n, avg(price) AS mean
      FROM events GROUP BY window(ts, '1 hour'), kind;
    CREATE VIEW tagged AS SELECT tag, count(*) AS n, collect_set(kind) AS kinds
      FROM events LATERAL VIEW explode(tags) AS tag GROUP BY tag;
    CREATE VIEW dear AS SELECT id, kind, price FROM events WHERE price > 5;
    CREATE VIEW keys AS SELECT hex(kafka_key) AS k, max(kafka_timestamp) AS newest FROM events GROUP BY hex(kafka_key);
"""

RAW = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key STRING, value BINARY>>"
)

Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]


def event(number: int) -> bytes:
    at, tags = f"2024-03-01T{number % 24:02d}:00:00Z", ["x", f"t{number % 2}"][: number % 3]
    return json.dumps(
        {"id": number, "kind": "abc"[number % 3], "price": f"{number}.50", "ts": at, "tags": tags}
    ).encode()


MICRO_BATCHES: list[list[Record]] = [
    [(None, event(n), None) for n in range(7)],
    [(None, event(6), None), (b"k", event(8), [("h", b"\xff\x00"), ("none", None)]), (None, event(8), [("h", b"one")])],
    [(None, b"", None), (None, None, None), (None, b"\x00\xff", []), (None, b"no JSON", None), (b"", event(9), None)],
    [(None, b'{"id": "nine"}', None)],
    [],
    [(None, event(n), None) for n in range(20, 45)],
]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return compile_catalog({"catalog.sql": CATALOG})


def computation(catalog: Catalog, name: str) -> Computation:
    tables = [table for view in catalog.views.values() for table in view.cell_tables if table.source == name]
    return Computation.of(catalog.sources[name], tables)


def raw_of(spark: SparkSession, topic: str, records: list[Record], begin: int) -> DataFrame:
    rows = [(topic, 0, begin + n, None, key, value, headers) for n, (key, value, headers) in enumerate(records)]
    at = "timestamp_micros(1700000000000001 + 1000 * offset) AS timestamp"
    return spark.createDataFrame(rows, RAW).selectExpr("topic", "partition", "offset", at, "key", "value", "headers")


class Known:
    """Ids that were counted, as Postgres knows them."""

    def __init__(self) -> None:
        self.ids: set[bytes] = set()

    def __call__(self, ids: pa.Table) -> Found:
        ids = ids.rename_columns(["id", "at", "partition", "offset", "content"])
        copies: list[dict[str, int]] = []
        fresh: set[bytes] = set()
        for row in sorted(ids.to_pylist(), key=lambda row: row["offset"]):
            if row["id"] in self.ids | fresh:
                copies.append({"partition": row["partition"], "offset": row["offset"]})
            fresh.add(row["id"])
        self.ids |= fresh
        places = pa.Table.from_pylist(copies, pa.schema([("partition", pa.int32()), ("offset", pa.int64())]))
        return Found(places, len(copies), Rows(), [], Rows(), 0, {}, None)


def told(computed: Computed) -> object:
    """All that a micro-batch's effect holds, in no order."""
    bad = computed.bad
    return (
        [(each.table, each.read, sorted(each.rows.file().read().splitlines())) for each in computed.staged],
        None if bad is None else (sorted(bad.rows.file().read().splitlines()), bad.counts),
        computed.newest,
        None if computed.ids is None else computed.ids.copies.to_pylist(),
    )


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield spark
    spark.conf.unset("spark.sql.adaptive.enabled")


@pytest.mark.parametrize("name", ["events", "newest"])
def test_a_prepared_computation_gives_what_one_that_is_planned_anew_gives(
    session: SparkSession, tmp_path: Path, catalog: Catalog, name: str
) -> None:
    planned = computation(catalog, name)
    prepared = Prepared(session, planned, tmp_path)
    assert not prepared.stateful
    begin, counted_anew, counted = 0, Known(), Known()
    for records in MICRO_BATCHES:
        raw = raw_of(session, name, records, begin)
        few = few_of(raw)
        assert (few is None) == (not records)
        if few is not None:
            assert told(prepared.compute(few, counted)) == told(planned.compute(raw, counted_anew))
        begin += len(records)


def test_a_plan_that_keeps_what_it_shuffled_is_not_run_again(
    session: SparkSession, tmp_path: Path, catalog: Catalog
) -> None:
    prepared = Prepared(session, computation(catalog, "events"), tmp_path)
    records = prepared.records
    for statement in (
        "SELECT kind, count(*) FROM records GROUP BY ROLLUP (kind)",
        "SELECT kind, (SELECT max(price) FROM records) FROM records",
        "SELECT * FROM records JOIN records AS others USING (id)",
    ):
        records.createOrReplaceTempView("records")
        assert not operators(session.sql(statement)) <= STATELESS, statement
