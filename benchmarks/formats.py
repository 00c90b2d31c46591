"""Reading records of each format, against reading the same records as JSON.

The records are those of the catch-up figure, as raw records in a file. Each side reads the whole file through the text
by which both layers read, and writes nowhere. Neither Kafka nor Postgres takes part.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from time import monotonic
from typing import Any

import click
import fastavro
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from benchmarks import events
from benchmarks.figures import Figure, benchmark, in_turns, median_ratio
from benchmarks.running import deployment, nowhere
from lamina.terminal.render import Output
from master_log.reading.kafka_reader import parsed
from view_algebra import Source, compile_catalog
from view_algebra.formats.interface import Schema
from view_algebra.formats.protobuf import message_class

AT_LEAST = {"avro": 1.0, "protobuf": 0.6}

SCHEMA = {
    "type": "record",
    "name": "event",
    "fields": [
        *({"name": name, "type": "long"} for name in ("seq", "user_id")),
        *({"name": name, "type": "string"} for name in ("kind", "country", "city")),
        {"name": "product_id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "quantity", "type": "int"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
"""The events in Avro."""

PROTO = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
message Event { int64 seq = 1; int64 user_id = 2; string kind = 3; string country = 4; string city = 5;
  int64 product_id = 6; string price = 7; int32 quantity = 8; google.protobuf.Timestamp ts = 9; }"""
"""The events in Protobuf."""

SCHEMAS = {"avro": json.dumps(SCHEMA), "protobuf": PROTO}

VALUES = {
    "json": "to_json(event)",
    "avro": "avro_of(to_json(event))",
    "protobuf": "protobuf_of(to_json(event))",
    "csv": "to_csv(event, map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\"))",
}
"""The value of a record, as Spark SQL over the event."""

EVENTS = """named_struct(
  'seq', id, 'user_id', CAST(pmod(hash(id, 1), 50000) AS BIGINT), 'kind', if(pmod(hash(id, 2), 8) = 0, 'buy', 'view'),
  'country', concat('C', pmod(hash(id, 3), 20)), 'city', concat('city ', pmod(hash(id, 3), 500)),
  'product_id', CAST(pmod(hash(id, 4), 3000) AS BIGINT), 'price', CAST(pmod(hash(id, 5), 10000) / 100 AS DECIMAL(8,2)),
  'quantity', 1 + pmod(hash(id, 6), 5), 'ts', timestamp_micros(1767225600000000 + id * 86400))"""


@click.command()
@click.option("--records", default=1_000_000, show_default=True, help="Number of records.")
@click.option("--turns", default=3, show_default=True, help="Turns of each format.")
@benchmark
def main(output: Output, records: int, turns: int) -> list[Figure]:
    """Measures the rate at which records of each format are read."""
    with deployment(output) as opened, tempfile.TemporaryDirectory() as folder:
        sides = {name: _side(opened.spark(), folder, name, records) for name in VALUES}
        took = in_turns(output, sides, turns)
    figures = [
        Figure(f"reading {name}, of JSON's rate", median_ratio(took["json"], took[name]), "", AT_LEAST.get(name))
        for name in VALUES
        if name != "json"
    ]
    return [Figure("reading JSON", records / min(took["json"]), "records/s"), *figures]


def _side(spark: SparkSession, folder: str, name: str, records: int) -> Callable[[int], float]:
    """Returns a function that reads the records of a format once, and returns the seconds it took."""
    source, path = _source(name), f"{folder}/{name}"
    udf: Any = arrow_udf  # its stub wants a number for a function of arrays
    spark.udf.register("avro_of", udf(_avro, "binary"))
    spark.udf.register("protobuf_of", udf(_protobuf, "binary"))
    raw = spark.range(0, records, 1, 4).selectExpr("id % 4 AS partition_of", f"{EVENTS} AS event")
    raw.selectExpr(
        f"'{name}' AS topic",
        "CAST(partition_of AS INT) AS partition",
        "monotonically_increasing_id() AS offset",
        "current_timestamp() AS timestamp",
        "CAST(NULL AS BINARY) AS key",
        f"CAST({VALUES[name]} AS BINARY) AS value",
        "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers",
    ).write.parquet(path)

    def read(_turn: int) -> float:
        began = monotonic()
        rows: DataFrame = parsed(spark.read.parquet(path), source)
        nowhere(rows.where("kafka_error IS NULL").drop("kafka_value"))
        return monotonic() - began

    bad = parsed(spark.read.parquet(path), source).where("kafka_error IS NOT NULL").select("kafka_error").first()
    assert bad is None, bad
    return read


def _avro(events: pa.Array) -> pa.Array:
    """The events in Avro, from their JSON."""
    schema = fastavro.parse_schema(SCHEMA)
    values = []
    for text in events.to_pylist():
        event, datum = json.loads(text), io.BytesIO()
        typed = {"price": Decimal(str(event["price"])), "ts": datetime.fromisoformat(event["ts"])}
        fastavro.schemaless_writer(datum, schema, event | typed)
        values.append(datum.getvalue())
    return pa.array(values, pa.binary())


def _protobuf(events: pa.Array) -> pa.Array:
    """The events in Protobuf, from their JSON."""
    message, values = message_class(Schema("PROTOBUF", PROTO), None), []
    for text in events.to_pylist():
        event = json.loads(text, parse_float=str)
        values.append(message(**event | {"ts": datetime.fromisoformat(event["ts"])}).SerializeToString())
    return pa.array(values, pa.binary())


def _source(name: str) -> Source:
    options = f"format '{name}'" + (f", schema '{SCHEMAS[name]}'" if name in SCHEMAS else "")
    sql = f"CREATE TABLE s ({events.COLUMNS}) USING kafka OPTIONS (topic 's', {options});"
    return compile_catalog({"s.sql": sql}).sources["s"]


if __name__ == "__main__":
    main()
