"""A micro-batch reads each good record from Kafka once, and parses its JSON once."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from batch_layer.compute import records_that_count
from master_log.reading.kafka_reader import parsed, selected
from serving_layer.postgres.copying import CopyRows, batches
from serving_layer.promise.event_ids import IdLookup
from speed_layer.statements import Statements
from view_algebra import compile_catalog

CATALOG = """
    CREATE TABLE events (id BIGINT UNIQUE, kind STRING, price DECIMAL(10, 2), ts TIMESTAMP)
    USING kafka OPTIONS (topic 'events', format 'json');
    CREATE VIEW totals AS SELECT kind, sum(price) AS price FROM events GROUP BY kind;
    CREATE VIEW dear AS SELECT id, kind, price FROM events WHERE price > 5;
"""
COMPILED = compile_catalog({"catalog.sql": CATALOG})
EVENTS = COMPILED.sources["events"]
RECORDS = 40


def raw_records(spark: SparkSession) -> DataFrame:
    value = """CAST(to_json(named_struct('id', id, 'kind', 'a', 'price', id)) AS BINARY) AS value"""
    headers = "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers"
    at = "timestamp_micros(id) AS timestamp"
    key = "CAST(NULL AS BINARY) AS key"
    return spark.range(RECORDS).selectExpr(
        "'events' AS topic", "0 AS partition", "id AS offset", at, key, value, headers
    )


def no_copies(ids: pa.Table) -> IdLookup:
    assert ids.num_rows == RECORDS
    places = pa.table({"partition": pa.array([], pa.int32()), "offset": pa.array([], pa.int64())})
    return IdLookup(places, 0, CopyRows(), [], CopyRows(), 0, {}, None)


def test_records_with_looked_up_ids_are_read_once(spark: SparkSession) -> None:
    read = spark.sparkContext.accumulator(0)

    @udf("binary", useArrow=False)
    def counted(value: bytes) -> bytes:
        read.add(1)
        return value

    raw = raw_records(spark)
    raw = raw.withColumn("value", counted.asNondeterministic()("value"))
    tables = [table for view in COMPILED.views.values() for table in view.cell_tables]
    effect = Statements.of(EVENTS, tables).compute(raw, no_copies)
    assert sum(staged.rows.size > 0 for staged in effect.staged) == 2
    assert read.value == RECORDS


def test_a_duplicate_found_during_the_computation_is_not_counted(
    spark: SparkSession,
) -> None:
    def find(ids: pa.Table) -> IdLookup:
        copies = pa.table({"partition": pa.array([0], pa.int32()), "offset": pa.array([RECORDS - 1], pa.int64())})
        return replace(no_copies(ids), copies=copies, duplicates=1)

    totals, dear = COMPILED.views["totals"].cell_tables, COMPILED.views["dear"].cell_tables
    effect = Statements.of(EVENTS, [*totals, *dear]).compute(raw_records(spark), find)
    rows, sums = (staged.rows.file().read().decode() for staged in effect.staged)
    assert len(rows.splitlines()) == RECORDS - 1 - len(range(6))  # prices above 5
    assert str(sum(range(RECORDS - 1))) in sums


def test_conditions_do_not_parse_a_record_again(spark: SparkSession) -> None:
    """Spark would copy a column's expression into each condition on it, and parse the JSON once per kind of error."""
    records = parsed(raw_records(spark).repartition(1), EVENTS)
    for frame in (
        selected(records, "records", EVENTS.ids),
        records_that_count(records, EVENTS),
        selected(records, "records", "SELECT kind FROM records WHERE kafka_error IS NULL AND kind = 'a'"),
    ):
        conditions = [line for line in plan_of(frame).split("\n") if "Filter" in line]
        assert conditions
        assert not any("from_json" in line for line in conditions)


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan().toString())


def test_a_limit_of_batches_holds_until_the_last_of_the_results_in_a_session_is_read(spark: SparkSession) -> None:
    option = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(option)
    first, second = (batches(spark.range(3).coalesce(1), at_most=1) for _ in range(2))
    next(first)
    next(second)
    assert [batch.num_rows for batch in first] == [1, 1]
    assert spark.conf.get(option) == "1", "the second result is still being read"
    assert [batch.num_rows for batch in second] == [1, 1]
    assert spark.conf.get(option) == before
