"""The bytes that `lamina ingest` and `lamina test` write for formats other than JSON."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from interchange.writers import WriterSchemas, key_of, value_of
from view_algebra import Source, compile_catalog
from view_algebra.errors import LaminaError
from view_algebra.formats.interface import Schema
from view_algebra.formats.protobuf import decoder

SCHEMA = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "int"}, "default": []},
    ],
}


def source(columns: str, options: str) -> Source:
    sql = f"CREATE TABLE s ({columns}) USING kafka OPTIONS (topic 's', {options});"
    return compile_catalog({"s.sql": sql}).sources["s"]


@pytest.mark.parametrize(
    ("declared", "record", "value"),
    [
        (("a INT", "format 'json'"), {"a": 1}, b'{"a": 1}'),
        (("a INT, b STRING, c STRING, d BOOLEAN", "format 'csv'"), {"a": 1, "b": "", "d": True}, b'1,"",,true'),
        (("a DECIMAL(30,2), b STRING", "format 'csv', delimiter ';'"), {"a": 1.10, "b": 'x;"'}, b'1.1;"x;"""'),
        (("a ARRAY<INT>", "format 'csv', quote '|'"), {"a": [1, 2]}, b"|[1,2]|"),
        (("line STRING", "format 'text'"), {"line": "é"}, "é".encode()),
        (("line STRING", "format 'text'"), {"line": {"a": [True, 1.50]}}, b'{"a":[true,1.5]}'),
        (
            ("id STRING PRIMARY KEY, b BINARY", "format 'bytes', key_format 'string'"),
            {"id": "k", "b": "AP8="},
            b"\0\xff",
        ),
    ],
)
def test_a_record_is_written_in_the_format_of_its_source(
    declared: tuple[str, str], record: dict[str, Any], value: bytes
) -> None:
    assert value_of(source(*declared), json.dumps(record).encode()) == value


def test_a_record_is_written_by_its_avro_schema() -> None:
    orders = source("id BIGINT, price DECIMAL(20,2)", f"format 'avro', schema '{json.dumps(SCHEMA)}'")
    record = b'{"id": 7, "price": 123456789012345678.10, "at": "2026-01-02T03:04:05.678901Z", "tags": [1]}'
    datum = io.BytesIO(value_of(orders, record))
    decoded = fastavro.schemaless_reader(datum, fastavro.parse_schema(SCHEMA), None)
    assert isinstance(decoded, dict)
    assert (decoded["id"], str(decoded["price"]), decoded["tags"]) == (7, "123456789012345678.10", [1])
    assert decoded["at"].isoformat() == "2026-01-02T03:04:05.678901+00:00"
    with pytest.raises(LaminaError, match="s: a record does not fit its Avro schema"):
        value_of(orders, b'{"price": 1}')


def test_an_avro_type_is_written_wherever_its_name_is_used() -> None:
    amount = {"type": "record", "name": "amount", "fields": [{"name": "cents", "type": "long"}]}
    fields = [{"name": "a", "type": ["null", amount]}, {"name": "b", "type": "shop.amount"}]
    schema = {"type": "record", "name": "pair", "namespace": "shop", "fields": fields}
    pairs = source("b STRUCT<cents: BIGINT>", f"format 'avro', schema '{json.dumps(schema)}'")
    datum = io.BytesIO(value_of(pairs, b'{"b": {"cents": 9007199254740993}}'))
    decoded = fastavro.schemaless_reader(datum, fastavro.parse_schema(schema), None)
    assert decoded == {"a": None, "b": {"cents": 9007199254740993}}


@pytest.mark.parametrize(("column", "format"), [("line STRING", "text"), ("line BINARY", "bytes")])
def test_null_is_refused_if_the_value_is_the_column_itself(column: str, format: str) -> None:
    for record in (b"{}", b'{"line": null}'):
        with pytest.raises(LaminaError, match=f"s: line is NULL, which format '{format}' has no value for"):
            value_of(source(column, f"format '{format}'"), record)
    assert value_of(source(column, f"format '{format}'"), b'{"line": ""}') == b""


def test_a_text_that_would_be_read_as_null_is_refused() -> None:
    with pytest.raises(LaminaError, match="s: a is 'NULL', which its format reads as NULL"):
        value_of(source("a STRING", "format 'csv', null 'NULL'"), b'{"a": "NULL"}')


def test_a_record_of_a_registered_schema_is_framed() -> None:
    row = {"type": "record", "name": "row", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}
    whole = {"type": "record", "name": "all", "fields": [{"name": "row", "type": "shop.row"}]}
    rows = source("id BIGINT, n INT, PRIMARY KEY (id)", "format 'avro', key_format 'avro'")
    values = (17, Schema("AVRO", json.dumps(whole), (("shop.row", json.dumps(row)),)))
    newest = WriterSchemas(values, (4, Schema("AVRO", '"long"')))
    assert value_of(rows, b'{"row": {"id": 5}}', newest) == b"\0\0\0\0\x11\x0a"
    assert key_of(rows, ["id"], b'{"id": 5}', newest) == b"\0\0\0\0\x04\x0a"
    assert (value_of(rows, b'{"id": 5}'), key_of(rows, ["id"], b'{"id": 5}')) == (b'{"id": 5}', b'{"id": 5}')


def test_a_message_of_a_registered_schema_has_its_first_type_and_is_framed() -> None:
    newest = (5, Schema("PROTOBUF", 'syntax = "proto3"; message Row { int64 id = 1; } message Other {}'))
    rows = source("id BIGINT, PRIMARY KEY (id)", "format 'protobuf', key_format 'protobuf'")
    assert value_of(rows, b'{"id": 7}', WriterSchemas(newest)) == b"\0\0\0\0\x05\0\x08\7"
    assert key_of(rows, ["id"], b'{"id": 7}', WriterSchemas(None, newest)) == b"\0\0\0\0\x05\0\x08\7"


def test_a_numeric_key_is_written_as_kafka_writes_it() -> None:
    for kind, format, number, key in (
        ("SMALLINT", "short", -5, b"\xff\xfb"),
        ("FLOAT", "float", -0.5, b"\xbf\0\0\0"),
        ("DOUBLE", "double", 0.1, b"\x3f\xb9\x99\x99\x99\x99\x99\x9a"),
    ):
        numbers = source(f"id {kind} PRIMARY KEY", f"format 'json', key_format '{format}'")
        assert key_of(numbers, ["id"], b'{"id": %s}' % str(number).encode()) == key
    with pytest.raises(LaminaError, match=r"s: id is 1E\+300, and its key_format is 'float'"):
        key_of(source("id FLOAT PRIMARY KEY", "format 'json', key_format 'float'"), ["id"], b'{"id": 1e300}')
    longs = source("id BIGINT PRIMARY KEY", "format 'json', key_format 'long'")
    for written in (b"-2", b"-2.0", b'"-2"', b"-20e-1"):
        assert key_of(longs, ["id"], b'{"id": %s}' % written) == b"\xff" * 7 + b"\xfe"
    for wrong, shown in ((b'"x"', "x"), (b"1.5", "1.5"), (b"1e300", r"1E\+300"), (b"9223372036854775808", "9223")):
        with pytest.raises(LaminaError, match=f"s: id is {shown}.*, and its key_format is 'long'"):
            key_of(longs, ["id"], b'{"id": %s}' % wrong)


def test_a_key_keeps_every_digit_in_one_form() -> None:
    long, longer = b"0.12345678901234567891", b"0.12345678901234567890"
    for kind, format, key in (
        ("DECIMAL(38,20)", "json", b'{"id": %s}'),
        ("DECIMAL(38,20)", "string", b"%s"),
    ):
        decimals = source(f"id {kind} PRIMARY KEY", f"format 'json', key_format '{format}'")
        assert key_of(decimals, ["id"], b'{"id": %s}' % long) == key % long
        assert key_of(decimals, ["id"], b'{"id": %s}' % longer) == key % longer.removesuffix(b"0")
        assert {key_of(decimals, ["id"], b'{"id": %s}' % one) for one in (b"1.5", b"1.50", b"15e-1")} == {key % b"1.5"}
    texts = source("id STRING PRIMARY KEY", "format 'json', key_format 'string'")
    assert [key_of(texts, ["id"], b'{"id": %s}' % one) for one in (b"7.0", b"1.10", b'"x"')] == [b"7.0", b"1.10", b"x"]
    two = source("a BOOLEAN, b STRING", "format 'json'")
    assert key_of(two, ["a"], b'{"a": true}') == b"true"
    assert key_of(two, ["a", "b"], b'{"a": true, "b": "\xc3\xa9"}') == b'[true, "\xc3\xa9"]'
    assert key_of(two, ["b"], b"{'b': 'x'}}") == b"x"


PROTO = """syntax = "proto3"; package shop;
import "confluent/type/decimal.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto"; import "google/type/date.proto";
message Order {
  int64 id = 1; confluent.type.Decimal price = 2; google.protobuf.Timestamp at = 3; google.protobuf.Duration took = 4;
  repeated Place places = 5; map<string, Place> by_name = 6; google.protobuf.Struct anything = 7; bytes raw = 8;
  optional string note = 9; google.protobuf.Int64Value wrapped = 10; google.type.Date day = 11; Kind kind = 12;
  double share = 13; repeated google.protobuf.Timestamp times = 14; map<string, uint64> counts = 15; bool ok = 16;
}
message Place { string city = 1; google.protobuf.Timestamp since = 2; }
enum Kind { NONE = 0; NEW = 1; }
"""


def test_a_record_is_written_by_its_protobuf_schema() -> None:
    options = f"format 'protobuf', schema '{PROTO}', message 'shop.Order'"
    orders = source("id BIGINT", options)
    place = {"city": "Kraków", "since": "2026-01-02T03:04:05.678901000Z"}
    fields = {"id": 2**62 + 1, "at": place["since"], "took": -1.5, "places": [place], "by_name": {"a": place}}
    fields |= {"anything": {"a": [1, None, {"b": 0.5}]}, "raw": "AP8=", "note": "", "wrapped": 7, "day": "2026-01-02"}
    fields |= {"kind": "NEW", "share": 0.1, "times": [place["since"]], "counts": {"a": 2**64 - 1}, "ok": True}
    record = json.dumps(fields)[:-1] + ', "price": -123456789012345678.10}'
    read = decoder(orders.properties, {})(value_of(orders, record.encode()), None)
    shown = json.loads(read, parse_float=Decimal)
    assert shown == json.loads(record, parse_float=Decimal)
    assert json.loads(decoder(orders.properties, {})(value_of(orders, b'{"note": null}'), None))["note"] is None
    with pytest.raises(LaminaError, match="s: a record does not fit its Protobuf schema"):
        value_of(orders, b'{"lost": 1}')
    with pytest.raises(LaminaError, match="s: a record does not fit its Protobuf schema"):
        value_of(orders, b'{"at": "yesterday"}')
