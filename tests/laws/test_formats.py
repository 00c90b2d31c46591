"""Values in formats other than JSON: columns show their content, and malformed values are bad."""

from __future__ import annotations

import csv
import io
import json
import random
import struct
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.fix_registry import in_frame
from tests.laws.engines import Engines, Sent
from tests.laws.formats import avro, columns_read, declared
from view_algebra import compile_catalog
from view_algebra.formats import Decoding
from view_algebra.formats.interface import Schema

COLUMNS = (
    "id BIGINT, name STRING, price DECIMAL(10,2), share DOUBLE, at TIMESTAMP, day DATE, ok BOOLEAN, tags ARRAY<INT>"
)
NO_LINE = "not CSV: one line of 8 fields is expected"

LINES: list[tuple[bytes, tuple[Any, ...] | str]] = [
    (
        b'7,"a, ""b""",12.50,0.1,2026-01-02T03:04:05Z,2026-01-02,true,"[1, 2]"\n',
        (7, 'a, "b"', Decimal("12.50"), 0.1, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), date(2026, 1, 2), True, [1, 2]),
    ),
    (b',"",,,,,,', (None, "", None, None, None, None, None, None)),
    (b"007, a ,+1.5,1e3,,,FALSE,\r\n", (7, " a ", Decimal("1.50"), 1000.0, None, None, False, None)),
    ('-1,"two\nlines é",.5,NaN,,,1,'.encode(), (-1, "two\nlines é", Decimal("0.50"), "NaN", None, None, True, None)),
    (b'1,5" wide,1,1,,,,', (1, '5" wide', Decimal("1.00"), 1.0, None, None, None, None)),
    (b"1,NULL,1,1,,,,", (1, "NULL", Decimal("1.00"), 1.0, None, None, None, None)),
    (
        b"1,12345678901234567890.50,1,1,,,,",
        (1, "12345678901234567890.50", Decimal("1.00"), 1.0, None, None, None, None),
    ),
    (b"1,a,1,1,,,", NO_LINE),
    (b"1,a,1,1,,,,,", NO_LINE),
    (b'1,"a,1,1,,,,', NO_LINE),
    (b'1,"a"b,1,1,,,,', NO_LINE),
    (b"1,a,1,1,,,,\n2,b,1,1,,,,\n", NO_LINE),
    (b"", NO_LINE),
    (b"1,\xff,1,1,,,,", "the value is not UTF-8"),
    ("1,\ue000,1,1,,,,".encode(), (1, "\ue000", Decimal("1.00"), 1.0, None, None, None, None)),
    (b"1,\0,1,1,,,,", "a text holds the character U+0000, which Postgres cannot store"),
    (b"1,a\0b,1,1,,,,", "a text holds the character U+0000, which Postgres cannot store"),
    (b"1.5,a,1,1,,,,", "a field has the wrong type: id is no BIGINT"),
    (b'x,a,"12,50",1,,,,', "a field has the wrong type: id is no BIGINT, price is no DECIMAL(10,2)"),
    (b'1,a,"12,50",1,,,,', "a decimal has a comma: Spark would read 12,50 as 1250"),
    (b"1,a,1,1,03:04,,,", "a field holds a time of day without the day"),
    (b'1,a,1,1,,,,"[1],""x"":[2]"', "a field has the wrong type: tags is no ARRAY<INT>"),
]
"""Values, each with its fields or the reason that it is bad."""


def test_a_line_of_csv_is_its_fields_or_bad(engines: Engines) -> None:
    rows = columns_read(engines, declared(COLUMNS, "format 'csv'"), [line for line, _ in LINES])
    expected = [tuple(_local(v) for v in row) if isinstance(row, tuple) else row for _, row in LINES]
    assert [*zip([line for line, _ in LINES], rows, strict=True)] == [
        *zip([line for line, _ in LINES], expected, strict=True)
    ]


def _local(value: Any) -> Any:
    """A time as PySpark shows it."""
    return datetime.fromtimestamp(value.timestamp()) if isinstance(value, datetime) else value  # noqa: DTZ006


@pytest.mark.parametrize(("delimiter", "quote"), [(";", "'"), ("\t", '"'), ("|", "^")])
def test_the_output_of_a_csv_writer_is_read_back(engines: Engines, delimiter: str, quote: str) -> None:
    letters, picked = f"ab {delimiter}{quote}\n\\\"'é,;", random.Random(7)
    rows = [
        tuple("".join(picked.choices(letters, k=picked.randrange(6))) or None for _ in range(3)) for _ in range(200)
    ]
    values = []
    for row in rows:
        line = io.StringIO()
        csv.writer(line, delimiter=delimiter, quotechar=quote, lineterminator="\n").writerow(row)
        values.append(line.getvalue().encode())
    options = f"format 'csv', delimiter '{delimiter}', quote '{quote.replace(chr(39), chr(92) + chr(39))}'"
    assert columns_read(engines, declared("a STRING, b STRING, c STRING", options), values) == rows


def test_a_text_that_says_null_is_null(engines: Engines) -> None:
    sql = declared("a BIGINT, b STRING", "format 'csv', null 'NULL'")
    assert columns_read(engines, sql, [b"NULL,NULL", b"1,null"]) == [(None, None), (1, "null")]


def test_text_and_bytes_are_the_value_itself(engines: Engines) -> None:
    values = [b'{"not": "read"} \\', "é\n".encode(), b"", None, b"\xff"]
    read = ['{"not": "read"} \\', "é\n", "", "the value is null", "the value is not UTF-8"]
    assert columns_read(engines, declared("line STRING", "format 'text'"), values) == [
        text if text.startswith("the value") else (text,) for text in read
    ]
    assert columns_read(engines, declared("b BINARY", "format 'bytes'"), [b"\x00\xff", b""]) == [(b"\x00\xff",), (b"",)]


def test_a_table_has_its_key_from_kafka_and_its_value_from_the_text(engines: Engines) -> None:
    sql = declared("id STRING, note STRING, PRIMARY KEY (id)", "format 'text', key_format 'string'")
    assert columns_read(engines, sql, [(b"k", b"first"), (b"k", None)]) == [("k", "first"), ("k", None)]


ORDER: dict[str, Any] = {
    "type": "record",
    "name": "order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "small", "type": "int"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 10}},
        {"name": "share", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "ok", "type": "boolean"},
        {"name": "raw", "type": {"type": "fixed", "name": "two", "size": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["new", "old"]}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {
            "name": "to",
            "type": {"type": "record", "name": "place", "fields": [{"name": "city", "type": ["null", "string"]}]},
        },
    ],
}
ORDERS = (
    "id BIGINT, small BIGINT, name STRING, price DECIMAL(30,10), share DOUBLE, at TIMESTAMP, seen TIMESTAMP, day DATE,"
    " ok BOOLEAN, raw BINARY, kind STRING, key STRING, `to` STRUCT<city: STRING>, missing STRING"
)
LISTS: dict[str, Any] = {
    "type": "record",
    "name": "lists",
    "fields": [
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
    ],
}


def of_schema(columns: str, schema: dict[str, Any]) -> str:
    return declared(columns, f"format 'avro', schema '{json.dumps(schema)}'")


def test_a_datum_of_avro_is_its_fields_or_bad(engines: Engines) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    order = {"id": 2**62, "small": -5, "name": "é\n", "price": Decimal("12345678901234567890.0123456789")}
    order |= {"share": 0.1, "at": at, "seen": at.replace(microsecond=678000), "day": date(2026, 1, 2), "ok": True}
    order |= {"raw": b"\x00\xff", "kind": "old", "key": uuid.UUID(int=7), "to": {"city": "Kraków"}}
    none = order | {"name": None, "share": float("nan"), "to": {"city": None}}
    whole = avro(ORDER, order)
    values = [whole, avro(ORDER, none), whole[:-1], whole + b"\x00", b"", avro(ORDER, order | {"name": "a\0b"})]
    shown = [_local(v) for v in (at, order["seen"])]
    rest = (date(2026, 1, 2), True, b"\x00\xff", "old", str(uuid.UUID(int=7)))
    price = order["price"]
    assert columns_read(engines, of_schema(ORDERS, ORDER), values) == [
        (2**62, -5, "é\n", price, 0.1, *shown, *rest, ("Kraków",), None),
        (2**62, -5, None, price, "NaN", *shown, *rest, (None,), None),
        *[
            "not Avro: the value ends too early",
            "not Avro: 1 bytes follow the datum",
            "not Avro: the value ends too early",
        ],
        "a text holds the character U+0000, which Postgres cannot store",
    ]


def test_lists_of_avro_are_read_and_endless_ones_are_bad(engines: Engines) -> None:
    sql = of_schema("tags ARRAY<STRING>, counts MAP<STRING, BIGINT>", LISTS)
    whole = avro(LISTS, {"tags": ["a", None], "counts": {"x": 2**40}})
    endless = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" + b"\x00" * 20  # a list of 2 ** 63 - 1 elements, all null
    long = b"\x02\x02" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" + b"a" * 20  # a text of as many bytes
    bad = "not Avro: the value ends too early"
    assert columns_read(engines, sql, [whole, endless, long]) == [(["a", None], {"x": 2**40}), bad, bad]


TORN: dict[str, Any] = {
    "type": "record",
    "name": "torn",
    "fields": [
        {"name": "ok", "type": "boolean"},
        {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["new", "old"]}},
        {"name": "name", "type": ["null", "boolean", "kind"]},
        {"name": "kinds", "type": {"type": "array", "items": ["null", "kind"]}},
        {"name": "flags", "type": {"type": "map", "values": {"type": "boolean"}}},
    ],
}


def test_bytes_that_no_avro_writer_writes_are_a_bad_record(engines: Engines) -> None:
    none = {"ok": False, "kind": "new", "name": None, "kinds": [None], "flags": {}}
    some = {"ok": True, "kind": "old", "name": "old", "kinds": ["old", None], "flags": {"x": True}}
    values: list[tuple[bytes, Any]] = [
        (avro(TORN, none), (False, "new", None, [None], {})),
        (avro(TORN, some), (True, "old", "old", ["old", None], {"x": True})),
        (avro(TORN, none | {"name": True}), (False, "new", "true", [None], {})),
        (b"\2\0\0\0\0", "not Avro: a boolean is the byte 0x02"),
        (b"\xff\0\0\0\0", "not Avro: a boolean is the byte 0xff"),
        (b"\1\1\0\0\0", "not Avro: an enum has no symbol -1"),
        (b"\1\4\0\0\0", "not Avro: an enum has no symbol 2"),
        (b"\1\0\1\0\0\0", "not Avro: a union has no branch below 0"),
        (b"\1\0\3\1\0\0", "not Avro: a union has no branch below 0"),
        (b"\1\0\6\0\0", "not Avro: list index out of range"),
        (b"\1\0\2\x80\0\0", "not Avro: a boolean is the byte 0x80"),
        (b"\1\0\4\1\0\0", "not Avro: an enum has no symbol -1"),
        (b"\1\0\0\2\1\2\0\0", "not Avro: a union has no branch below 0"),
        (b"\1\0\0\2\2\3\0\0", "not Avro: an enum has no symbol -2"),
        (b"\1\0\0\0\2\2x\3\0", "not Avro: a boolean is the byte 0x03"),
    ]
    columns = "ok BOOLEAN, kind STRING, name STRING, kinds ARRAY<STRING>, flags MAP<STRING, BOOLEAN>"
    rows = columns_read(engines, of_schema(columns, TORN), [value for value, _ in values])
    assert [*zip([value for value, _ in values], rows, strict=True)] == values


def test_a_topic_of_several_types_has_a_union_as_its_schema(engines: Engines) -> None:
    writer = {"type": "record", "name": "Made", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}
    gone = {"type": "record", "name": "Gone", "namespace": "shop", "fields": [{"name": "why", "type": "string"}]}
    references = (("shop.Made", json.dumps(writer)), ("shop.Gone", json.dumps(gone)))
    engines.schemas |= {"40": Schema("AVRO", '["shop.Made", "shop.Gone"]', references)}
    values = [
        (in_frame(40, b"\0\x0e"), (7, None)),
        (in_frame(40, b"\2\2x"), (None, "x")),
        (in_frame(40, b"\1\2x"), "not Avro: a union has no branch below 0 (schema 40)"),
    ]
    sql = declared("id BIGINT, why STRING", "format 'avro'")
    assert columns_read(engines, sql, [value for value, _ in values]) == [row for _, row in values]


def test_a_framed_datum_is_read_by_the_schema_that_wrote_it(engines: Engines) -> None:
    def record(**fields: Any) -> dict[str, Any]:
        return {"type": "record", "name": "r", "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}

    first, second = record(id="int", amount="int"), record(amount="double", note=["null", "string"], id="long")
    place = {"type": "record", "name": "place", "namespace": "geo", "fields": [{"name": "city", "type": "string"}]}
    third = record(id="long", to="geo.place", at={"type": "long", "logicalType": "timestamp-nanos"})
    of_third = {"id": 3, "to": {"city": "Zürich"}, "at": 1_767_323_045_678_901_234}
    engines.schemas |= {
        "1": Schema("AVRO", json.dumps(first)),
        "2": Schema("AVRO", json.dumps(second)),
        "3": Schema("AVRO", json.dumps(third), (("geo.place", json.dumps(place)),)),
        "4": None,
        "5": Schema("PROTOBUF", 'syntax = "proto3"; message R { int32 id = 1; }'),
        "6": Schema("AVRO", json.dumps(record(id="int", next=["null", "r"]))),
        "7": Schema("AVRO", json.dumps(record(id="int", none={"type": "array", "items": "null"}))),
    }
    whole = json.loads(json.dumps(third))
    whole["fields"][1]["type"] = place
    values = [
        (in_frame(1, avro(first, {"id": 1, "amount": 5})), (1, 5.0, None, None, None)),
        (in_frame(2, avro(second, {"id": 2**40, "amount": 0.5, "note": "é"})), (2**40, 0.5, "é", None, None)),
        (
            in_frame(3, avro(whole, of_third)),
            (3, None, None, ("Zürich",), _local(datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC))),
        ),
        (in_frame(4, b""), "the registry had no schema 4: if it has by now, raise ask_again in OPTIONS and apply"),
        (in_frame(5, b""), "the schema 5 is PROTOBUF, not AVRO"),
        (in_frame(6, b"\0\0"), "the schema is recursive: r contains itself (schema 6)"),
        (in_frame(7, b"\0\0"), "the schema has an array of values that take no byte, which may have no end (schema 7)"),
        (in_frame(8, b""), "the schema 8 is not known yet"),
        (in_frame(1, b"\x02"), "not Avro: the value ends too early (schema 1)"),
        (b'{"id": 1}', "no frame of a schema registry: it begins with the byte 0x7b"),
        (b"\0\0\0", "no frame of a schema registry: 3 bytes are too short for one"),
        (b"\x03" + bytes(20), "no frame of a schema registry: it is one of AWS Glue, which Lamina does not read"),
        (None, "the value is null"),
    ]
    sql = declared("id BIGINT, amount DOUBLE, note STRING, `to` STRUCT<city: STRING>, at TIMESTAMP", "format 'avro'")
    assert columns_read(engines, sql, [value for value, _ in values]) == [row for _, row in values]


def test_change_events_in_avro_are_read_as_the_rows_of_their_changes(engines: Engines) -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 20}},
        {"name": "at", "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}},
        {"name": "day", "type": {"type": "int", "connect.name": "io.debezium.time.Date"}},
    ]
    row = {"type": "record", "name": "Value", "namespace": "shop", "fields": fields}
    source = {"type": "record", "name": "Source", "fields": [{"name": "ts_ms", "type": "long"}]}
    parts = {"before": ["null", row], "after": ["null", "shop.Value"], "source": source, "op": "string"}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop",
        "fields": [{"name": n, "type": t} for n, t in parts.items()],
    }
    key = {"type": "record", "name": "Key", "fields": [fields[0]]}
    engines.schemas |= {"20": Schema("AVRO", json.dumps(envelope)), "21": Schema("AVRO", json.dumps(key))}
    price = Decimal("1234567890.12345678901234567890")
    first = {"id": 7, "price": price, "at": 1_767_323_045_678_901, "day": 20_455}
    second = first | {"price": Decimal(0), "id": 8}

    def event(op: str, before: Any, after: Any, of: int = 7) -> tuple[bytes, bytes]:
        event = {"op": op, "before": before, "after": after, "source": {"ts_ms": 5}}
        return in_frame(21, avro(key, {"id": of})), in_frame(20, avro(envelope, event))

    values: list[Any] = [
        event("c", None, first),
        event("u", first, second, of=8),
        event("d", second, None, of=8),
        (in_frame(21, avro(key, {"id": 8})), None),
        event("c", None, first, of=9),
        (in_frame(22, b""), None),
        (b"7", event("c", None, first)[1]),
    ]
    at = _local(datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC))
    sql = declared(
        "id BIGINT PRIMARY KEY, price DECIMAL(30,20), at TIMESTAMP, day DATE",
        "format 'debezium-avro'",
    )
    assert columns_read(engines, sql, values) == [
        (7, price, at, date(2026, 1, 2)),
        (8, Decimal("0E-20"), at, date(2026, 1, 2)),
        (8, None, None, None),
        (8, None, None, None),
        "the primary key differs from Kafka's key: id",
        "the key: the schema 22 is not known yet",
        "the key: no frame of a schema registry: it begins with the byte 0x37",
    ]


def test_a_key_is_read_as_a_serializer_of_numbers_or_avro_wrote_it(engines: Engines) -> None:
    engines.schemas |= {"30": Schema("AVRO", '"string"')}
    of = "id {}, n INT, PRIMARY KEY (id)"
    longs = [((-(2**40)).to_bytes(8, "big", signed=True), b'{"n": 1}'), (b"1", b'{"n": 1}')]
    lacks = "the primary key is null: id"
    assert columns_read(engines, declared(of.format("BIGINT"), "format 'json', key_format 'long'"), longs) == [
        (-(2**40), 1),
        lacks,
    ]
    ints = [((-5).to_bytes(4, "big", signed=True), b'{"n": 1}'), ((7).to_bytes(4, "big"), None)]
    assert columns_read(engines, declared(of.format("INT"), "format 'json', key_format 'int'"), ints) == [
        (-5, 1),
        (7, None),
    ]
    shorts = [((-5).to_bytes(2, "big", signed=True), b'{"n": 1}'), ((2**15 - 1).to_bytes(2, "big"), None), (b"1", None)]
    assert columns_read(engines, declared(of.format("INT"), "format 'json', key_format 'short'"), shorts) == [
        (-5, 1),
        (2**15 - 1, None),
        "a deletion, and its key is no short of id INT",
    ]
    picked = random.Random(7)
    doubles = [
        0.1,
        -0.0,
        1e308,
        -1e-300,
        5e-324,
        2.0**-1022,
        123456789.0,
        1.7976931348623157e308,
        *map(float, ("inf", "-inf")),
    ]
    doubles += [struct.unpack(">d", picked.randbytes(8))[0] for _ in range(200)]
    sql = declared(of.format("DOUBLE"), "format 'json', key_format 'double'")
    keys = [(struct.pack(">d", number), None) for number in doubles]
    expected = [(number if number == number else "NaN", None) for number in doubles]
    assert columns_read(engines, sql, keys) == expected
    floats = [struct.unpack(">f", picked.randbytes(4))[0] for _ in range(200)] + [2.0**-149, -0.5, float("inf")]
    keys = [(struct.pack(">f", number), None) for number in floats]
    expected = [(number if number == number else "NaN", None) for number in floats]
    assert columns_read(engines, sql.replace("'double'", "'float'"), keys) == expected
    assert columns_read(engines, sql.replace("id DOUBLE", "id FLOAT").replace("'double'", "'float'"), keys) == expected
    texts = [(in_frame(30, b'\x06a"b'), b'{"n": 1}')]
    assert columns_read(engines, declared(of.format("STRING"), "format 'json', key_format 'avro'"), texts) == [
        ('a"b', 1)
    ]


def test_json_is_read_behind_the_frame_of_a_registry(engines: Engines) -> None:
    values: list[Any] = [
        in_frame(1, b'{"id": 1}'),
        in_frame(2, b"x"),
        in_frame(3, b'{"id": 1} {"id": 2}'),
        in_frame(4, b"[1]"),
        b"\0",
    ]
    expected = [
        (1,),
        "not JSON",
        "more text follows the object",
        "a JSON array, not an object: send each element as a record",
    ]
    expected += [
        "the value is empty",
        (5,),
        "no frame of a schema registry stands before the value",
        "the value is null",
    ]
    values += [in_frame(5, b'{"id": 5, "b": [{"c": 1}]}'), b'{"id": 6}', None]
    assert columns_read(engines, declared("id BIGINT", "format 'json', frame 'registry'"), values) == expected
    engines.records(
        compile_catalog({"s.sql": declared("id INT", "format 'json', frame 'registry'")}).sources["s"], values
    )
    kept = engines.spark.sql("SELECT kafka_value FROM records ORDER BY kafka_offset").collect()
    assert [row[0] if row[0] is None else bytes(row[0]) for row in kept] == values
    event = b'{"op": "c", "before": null, "after": {"id": 7}, "source": {"ts_ms": 1}}'
    sql = declared("id BIGINT PRIMARY KEY", "format 'debezium-json', key_format 'none', frame 'registry'")
    assert columns_read(engines, sql, [in_frame(1, event)]) == [(7,)]


def test_json_whose_schema_a_header_names_has_no_frame(engines: Engines) -> None:
    at, id = datetime(2026, 1, 2, tzinfo=UTC), b"\0\0\0\0\1"
    of_value, of_key = [("__value_schema_id", id)], [("__key_schema_id", id)]
    values = [
        Sent(b"k", b'{"id": 1}', 0, at, [*of_value]),
        Sent(b"k", b'{"id": 2}', 0, at, [*of_key]),
        Sent(b"k", b'{"id": 3}', 0, at),
        Sent(b"k", in_frame(1, b'{"id": 4}'), 0, at, [*of_value]),
        Sent(b"k", None, 0, at, [*of_value]),
    ]
    no_frame = "no frame of a schema registry stands before the value"
    assert columns_read(engines, declared("id BIGINT", "format 'json', frame 'registry'"), values) == [
        (1,),
        no_frame,
        no_frame,
        (4,),
        "the value is null",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("format 'avro'", "format 'protobuf'"),
        ("format 'avro'", f"format 'avro', schema '{json.dumps(LISTS)}'"),
        (f"format 'avro', schema '{json.dumps(ORDER)}'", f"format 'avro', schema '{json.dumps(LISTS)}'"),
        ("format 'json', key_format 'avro'", "format 'json', key_format 'protobuf'"),
    ],
)
def test_sources_that_need_different_decoders_do_not_share_one(one: str, other: str) -> None:
    columns = "id BIGINT PRIMARY KEY, tags ARRAY<STRING>"
    sources = [compile_catalog({"s.sql": declared(columns, options)}).sources["s"] for options in (one, other)]
    assert not sources[0].reads_as(sources[1])
    assert Decoding.of(sources[0]) != Decoding.of(sources[1])
