"""An Avro datum that is read directly equals the datum that is read through JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lamina.testing.runner import raw_records
from master_log.reading.kafka_reader import parsed
from master_log.reading.record_decoding import decoded_in_memory
from speed_layer import record_file
from speed_layer.records import fetch_few
from tests.fix_registry import in_frame
from tests.laws.engines import Engines, raw_of
from tests.laws.formats import avro, declared
from view_algebra import compile_catalog
from view_algebra.formats import decodings
from view_algebra.formats.avro_columns import directly
from view_algebra.formats.interface import DirectColumn, Schema

NUMBERS = [0, 1, -1, 100, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)]
SMALL = [number for number in NUMBERS if -(2**31) <= number < 2**31]
TEXTS = [
    "",
    " ",
    "a",
    "é",
    "0",
    "-0",
    "00",
    "1.50",
    "12,50",
    "1e3",
    "NaN",
    "Infinity",
    "true",
    "null",
    "{}",
    "[]",
    '{"a":1}',
]
TEXTS += ["T10:00", "10:00", "2026-01-02", "\\", '"', "'", "\\u0000", '\\"', "}{", "9" * 1_001, "1" * 40, "a\n\t"]
TEXTS += ["a\0b", "\uf8ff", "\ue000\uf8fft", "\U0001f600", "\ufeff"]
DOUBLES = [0.0, -0.0, 0.1, -1.5, 1e22, 1e308, 5e-324, 3.0, float("nan"), float("inf"), float("-inf")]
FLOATS = [number for number in DOUBLES if abs(number) < 1e38 or number != number or abs(number) == float("inf")]
DAY = 86_400_000_000
FIRST, LAST = -719_162 * DAY, 2_932_897 * DAY - 1
TIMES = [0, 1, -1, 1_767_323_045_678_901, FIRST, FIRST - 1, LAST, LAST + 1, 2**62, -(2**62), -12_219_292_800_000_001]
DAYS = [0, -1, 20_000, -719_162, -719_163, 2_932_896, 2_932_897, 2**31 - 1, -(2**31), -141_428, -141_427]
UNSCALED = [0, 1, -1, 1250, -1250, 99_999_999, 100_000_000, -99_999_999, 10**17, 10**18 - 1, 10**18, 2**70, -(2**70)]


def logical(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "logicalType": name}


def decimal(scale: int) -> dict[str, Any]:
    return {**logical("bytes", "decimal"), "precision": 38, "scale": scale}


def unscaled(number: int) -> bytes:
    return number.to_bytes(12, "big", signed=True)


KINDS: dict[str, tuple[Any, list[Any]]] = {
    "int": ("int", SMALL),
    "long": ("long", NUMBERS),
    "float": ("float", FLOATS),
    "double": ("double", DOUBLES),
    "boolean": ("boolean", [True, False]),
    "string": ("string", TEXTS),
    "enum": ({"type": "enum", "name": "color", "symbols": ["RED", "GREEN"]}, ["RED", "GREEN"]),
    "day": (logical("int", "date"), DAYS),
    "day in a type of its own": ({"type": logical("int", "date")}, DAYS),
    "millis": (logical("long", "timestamp-millis"), [at // 1000 for at in TIMES]),
    "micros": (logical("long", "timestamp-micros"), TIMES),
    "local": (logical("long", "local-timestamp-micros"), TIMES),
    "connect": ({"type": "long", "connect.name": "org.apache.kafka.connect.data.Timestamp"}, TIMES),
    "cents": (decimal(2), [unscaled(digits) for digits in UNSCALED]),
    "whole": (decimal(0), [unscaled(digits) for digits in UNSCALED]),
    "fine": (decimal(6), [unscaled(digits) for digits in UNSCALED]),
    "fixed": ({**decimal(4), "type": "fixed", "name": "f", "size": 12}, list(map(unscaled, UNSCALED))),
}
"""Kinds of fields, each with values as Avro writes them."""

TYPES = ("BOOLEAN", "INT", "BIGINT", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "DECIMAL(10,2)", "DECIMAL(38,6)")


def schema_of(kind: Any) -> dict[str, Any]:
    """A record with a field `x` of a kind, which may also be null."""
    fields = [{"name": "x", "type": ["null", kind]}, {"name": "unread", "type": "string"}]
    return {"type": "record", "name": "r", "fields": fields}


def as_written(kind: Any) -> Any:
    """The kind without its logical type, so that fastavro writes values unchanged, and without a type around it."""
    if isinstance(kind, dict) and isinstance(kind["type"], dict):
        return as_written(kind["type"])
    return {**kind, "logicalType": "none"} if isinstance(kind, dict) else kind


@pytest.mark.parametrize("type", TYPES)
def test_a_column_that_is_read_directly_equals_the_one_in_json(engines: Engines, type: str, tmp_path: Path) -> None:
    values = []
    for id, (kind, of_kind) in enumerate(KINDS.values(), 1):
        engines.schemas[str(id)] = Schema("AVRO", json.dumps(schema_of(kind)))
        written = schema_of(as_written(kind))
        values += [in_frame(id, avro(written, {"x": value, "unread": "u"})) for value in [None, *of_kind]]
    columns = [DirectColumn("x", "x", type), DirectColumn("missing", "missing", type)]
    direct = directly(columns, {}, engines.schemas, values, [None] * len(values)).numbers
    assert 0 < len(direct) < len(values), "some are read directly, and some are not"
    lists = f"x {type}, missing {type}, more ARRAY<INT>"  # a record with a list is read as JSON
    read = texts(engines, f"x {type}, missing {type}", values)
    assert read == texts(engines, lists, values)
    assert read == texts(engines, f"x {type}, missing {type}", values, tmp_path / "records"), "a small micro-batch"


def nested(levels: int) -> dict[str, Any]:
    """A record in a record, this many times. Each also has a number."""
    inner: Any = "int"
    for level in range(levels):
        fields = [{"name": "n", "type": "int"}, {"name": "inner", "type": inner}]
        inner = {"type": "record", "name": f"r{level}", "fields": fields}
    return dict(inner)


UNREAD: dict[str, tuple[Any, bytes]] = {
    "short decimal": (decimal(2), b"\x04\x01\x02"),
    "long decimal": (decimal(2), b"\xa0\x1f" + b"\x01" * 2_000),
    "decimal of many digits behind the point": (decimal(250), b"\x04\x01\x02"),
    "decimal of half a digit": ({**logical("bytes", "decimal"), "precision": 9, "scale": 1.5}, b"\x04\x01\x02"),
    "scale of a temperature": ({"type": "long", "scale": "celsius"}, b"\x02"),
    "uuid of four bytes": ({**logical("fixed", "uuid"), "type": "fixed", "name": "u", "size": 4}, b"\x01\x02\x03\x04"),
    "long key": ({"type": "map", "values": "int"}, b"\x02" + b"\xc0\xa9\x07" + b"k" * 60_000 + b"\x02\x00"),
    "list in a list": ({"type": "array", "items": {"type": "array", "items": "string"}}, b"\x02\x02\x02a\x00\x00"),
    "nested": (nested(90), b"\x02" * 91),
    "too deep": (nested(150), b"\x02" * 151),
    "null or bytes": (["null", "bytes"], b"\x02\x04\x00\xff"),
    "byte that is not a boolean": ("boolean", b"\x02"),
    "decimal of too many digits behind the point": (decimal(900), b"\x04\x01\x02"),
}
"""Kinds of fields that no column reads, each with a value."""


def test_an_undeclared_field_makes_the_same_records_bad_both_ways(engines: Engines) -> None:
    values = []
    for id, (kind, written) in enumerate(UNREAD.values(), 1):
        fields = [{"name": "x", "type": "long"}, {"name": "unread", "type": kind}]
        schema = {"type": "record", "name": "whole", "fields": fields}
        engines.schemas[str(id)] = Schema("AVRO", json.dumps(schema))
        values.append(in_frame(id, b"\x0e" + written))
    direct = directly([DirectColumn("x", "x", "BIGINT")], {}, engines.schemas, values, [None] * len(values)).numbers
    assert {0, 4, 7, 8, 10} <= set(direct), "what JSON cannot refuse is read directly"
    read = texts(engines, "x BIGINT, missing INT", values)
    assert read == texts(engines, "x BIGINT, missing INT, more ARRAY<INT>", values)
    assert [row[1] for row in read].count("7") >= 6


def texts(engines: Engines, columns: str, values: list[bytes], few: Path | None = None) -> list[tuple[str, ...]]:
    """The two columns of each record as texts, after the reason if it is bad.

    few: the file that takes the records of a small micro-batch to Spark.
    """
    source = compile_catalog({"s.sql": declared(columns, "format 'avro'")}).sources["s"]
    if few is None:
        engines.records(source, values)
        records = engines.spark.table("records")
    else:
        at_hand = fetch_few(raw_records(engines.spark, [raw_of(value, number) for number, value in enumerate(values)]))
        few.write_bytes(
            record_file.file_of(record_file.rows_of(decoded_in_memory(at_hand, [source], {0: engines.schemas})))
        )
        records = parsed(record_file.records_in(engines.spark, few, "t", decodings([source])), source)
    of_good = [f"CASE WHEN kafka_error IS NULL THEN CAST({name} AS STRING) END" for name in ("x", "missing")]
    return list(map(tuple, records.orderBy("kafka_offset").selectExpr("kafka_error", *of_good).collect()))
