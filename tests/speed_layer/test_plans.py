"""Kept plans have the same effect over every micro-batch as newly planned statements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from serving_layer.postgres.copying import CopyRows
from serving_layer.promise.event_ids import IdLookup
from speed_layer.plans import COMPILED, INTERPRETED, STATELESS, Plans, operators
from speed_layer.records import fetch_few
from speed_layer.statements import Effect, Statements
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_lamina import Deployed
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


def record(number: int) -> bytes:
    at, tags = f"2024-03-01T{number % 24:02d}:00:00Z", ["x", f"t{number % 2}"][: number % 3]
    return json.dumps(
        {"id": number, "kind": "abc"[number % 3], "price": f"{number}.50", "ts": at, "tags": tags}
    ).encode()


MICRO_BATCHES: list[list[Record]] = [
    [(None, record(n), None) for n in range(7)],
    [
        (None, record(6), None),
        (b"k", record(8), [("h", b"\xff\x00"), ("none", None)]),
        (None, record(8), [("h", b"one")]),
    ],
    [(None, b"", None), (None, None, None), (None, b"\x00\xff", []), (None, b"no JSON", None), (b"", record(9), None)],
    [(None, b'{"id": "nine"}', None)],
    [],
    [(None, record(n), None) for n in range(20, 45)],
]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return compile_catalog({"catalog.sql": CATALOG})


def statements(catalog: Catalog, name: str) -> Statements:
    """The statements of all views of a source, and those of its first view by an earlier declaration of the source."""
    tables = [table for view in catalog.views.values() for table in view.cell_tables if table.source == name]
    before = compile_catalog({"catalog.sql": CATALOG.replace("price DECIMAL(10, 2)", "price DECIMAL(9, 1)")})
    older = next(table for view in before.views.values() for table in view.cell_tables if table.source == name)
    return Statements.of_all([(catalog.sources[name], tables), (before.sources[name], [older])])


def raw_of(spark: SparkSession, topic: str, records: list[Record], begin: int) -> DataFrame:
    rows = [(topic, 0, begin + n, None, key, value, headers) for n, (key, value, headers) in enumerate(records)]
    at = "timestamp_micros(1700000000000001 + 1000 * offset) AS timestamp"
    return spark.createDataFrame(rows, RAW).selectExpr("topic", "partition", "offset", at, "key", "value", "headers")


class CountedIds:
    """Counted ids, looked up as in Postgres."""

    def __init__(self) -> None:
        self.ids: set[bytes] = set()

    def __call__(self, ids: pa.Table) -> IdLookup:
        ids = ids.rename_columns(["id", "at", "partition", "offset", "content"])
        copies: list[dict[str, int]] = []
        fresh: set[bytes] = set()
        for row in sorted(ids.to_pylist(), key=lambda row: row["offset"]):
            if row["id"] in self.ids | fresh:
                copies.append({"partition": row["partition"], "offset": row["offset"]})
            fresh.add(row["id"])
        self.ids |= fresh
        places = pa.Table.from_pylist(copies, pa.schema([("partition", pa.int32()), ("offset", pa.int64())]))
        return IdLookup(places, len(copies), CopyRows(), [], CopyRows(), 0, {}, None)


def contents(effect: Effect | None) -> object:
    """Everything that a micro-batch's effect holds, without its order."""
    assert effect is not None
    bad = effect.bad
    return (
        [(staged.table, staged.read, sorted(staged.rows.file().read().splitlines())) for staged in effect.staged],
        None if bad is None else (sorted(bad.rows.file().read().splitlines()), bad.counts),
        effect.newest,
        None if effect.ids is None else effect.ids.copies.to_pylist(),
    )


@pytest.mark.parametrize("planning", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("name", ["events", "newest"])
def test_kept_plans_and_new_ones_have_the_same_effect(
    spark: SparkSession, tmp_path: Path, catalog: Catalog, name: str, planning: Mapping[str, str]
) -> None:
    planned_again = statements(catalog, name)
    plans = Plans(spark, planned_again, tmp_path, planning)
    assert not plans.stateful
    begin, counted, counted_again = 0, CountedIds(), CountedIds()
    for records in MICRO_BATCHES:
        raw = raw_of(spark, name, records, begin)
        few = fetch_few(raw)
        assert (few is None) == (not records)
        if few is not None:
            assert contents(plans.compute(few, counted)) == contents(planned_again.compute(raw, counted_again))
        begin += len(records)


@pytest.mark.parametrize("damage", [b"", b"[]", b"null", b"no JSON", None])
def test_records_that_a_disk_has_lost_are_noticed(
    spark: SparkSession, tmp_path: Path, catalog: Catalog, damage: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the file is not what was written, nothing is computed. Otherwise progress would pass the lost records."""
    plans = Plans(spark, statements(catalog, "newest"), tmp_path, INTERPRETED)
    few = fetch_few(raw_of(spark, "newest", MICRO_BATCHES[0], 0))
    assert few is not None
    written = Path.write_bytes

    def damaged(file: Path, data: bytes) -> int:
        return written(file, data[: len(data) // 2] if damage is None else damage)

    monkeypatch.setattr(Path, "write_bytes", damaged)
    with pytest.raises(PySparkException, match="is not what was written"):
        plans.compute(few, CountedIds())
    monkeypatch.undo()
    assert contents(plans.compute(few, CountedIds()))


def test_a_plan_with_a_shuffle_is_not_run_again(spark: SparkSession, tmp_path: Path, catalog: Catalog) -> None:
    plans = Plans(spark, statements(catalog, "events"), tmp_path, INTERPRETED)
    records = plans.records
    for statement in (
        "SELECT kind, count(*) FROM records GROUP BY ROLLUP (kind)",
        "SELECT kind, (SELECT max(price) FROM records) FROM records",
        "SELECT * FROM records JOIN records AS others USING (id)",
    ):
        records.createOrReplaceTempView("records")
        assert not operators(records.sparkSession.sql(statement)) <= STATELESS, statement


def test_kept_plans_are_run_again_on_the_same_day_only(deployed: Deployed) -> None:
    days, planned_on = [date(2024, 3, 1)], list[date]()

    def note(place: str) -> None:
        if place.startswith("planned "):
            planned_on.append(days[-1])

    deployed.deployment.at = note
    deployed.apply(events=EVENTS, totals=TOTALS)
    with deployed.speed(today=lambda: days[-1]):
        for number, day in enumerate((1, 1, 2)):
            days.append(date(2024, 3, day))
            deployed.send("events", event(number))
            deployed.wait_for("events")
    assert planned_on == [date(2024, 3, 1), date(2024, 3, 2)]
    assert deployed.rows("SELECT events FROM totals") == [(3,)]
