"""Messages of Protobuf through Spark: the columns show what google.protobuf wrote, and other values are bad."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from tests.fix_protobuf import ORDER, order
from tests.fix_registry import in_frame
from tests.laws.engines import Engines
from tests.laws.formats import columns_read, declared
from view_algebra.formats.interface import Schema

COLUMNS = (
    "id BIGINT, most DECIMAL(20,0), share DOUBLE, part FLOAT, ok BOOLEAN, userName STRING, raw BINARY, kind STRING,"
    " given INT, place STRUCT<city: STRING, floors: MAP<STRING, INT>>, numbers ARRAY<INT>, at TIMESTAMP, day DATE,"
    " price DECIMAL(30,10), took DECIMAL(20,9), any_json STRING, missing STRING"
)
ZERO: tuple[Any, ...] = (
    0,
    Decimal(0),
    0.0,
    0.0,
    False,
    "",
    b"",
    "NONE",
    None,
    None,
    [],
    None,
    None,
    None,
    None,
    None,
    None,
)


def test_a_message_of_protobuf_is_its_fields_or_bad(engines: Engines) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    full = order(
        id=-(2**63), most=2**64 - 1, share=0.1, part=0.5, ok=True, userName="é\n", raw=b"\0\xff", kind=1, given=0
    )
    full.place.city, full.place.floors["b"], full.place.floors["a"] = "Kraków", 2, 1
    full.numbers.extend([1, -2])
    full.at.FromDatetime(at)
    full.day.year, full.day.month, full.day.day = 2026, 1, 2
    full.price.value, full.price.scale = (12345678901234567890).to_bytes(9, "big"), 10
    full.took.FromNanoseconds(-1_500_000_000)
    full.any_json.update({"b": [1, None], "a": 0.5})
    shown: tuple[Any, ...] = (-(2**63), Decimal(2**64 - 1), 0.1, 0.5, True, "é\n", b"\0\xff", "NEW", 0)
    shown += (("Kraków", {"a": 1, "b": 2}), [1, -2], datetime.fromtimestamp(at.timestamp()), date(2026, 1, 2))  # noqa: DTZ006
    shown += (Decimal("1234567890.1234567890"), Decimal("-1.5"), '{"a":0.5,"b":[1,null]}', None)
    whole = full.SerializeToString()
    values = [
        (whole, shown),
        (b"", ZERO),
        (order(share=float("nan")).SerializeToString(), (*ZERO[:2], "NaN", *ZERO[3:])),
        (whole[:-1], "not Protobuf: not a message of type shop.Order"),
        (whole + b"\0", "not Protobuf: not a message of type shop.Order"),
        (b"\x42" + b"\xff" * 8 + b"\x0f", "not Protobuf: not a message of type shop.Order"),
        (order(userName="a\0b").SerializeToString(), "a text holds the character U+0000, which Postgres cannot store"),
        (order(at={"seconds": 2**62}).SerializeToString(), "a field has the wrong type: at is no TIMESTAMP"),
        (order(day={"year": 2026}).SerializeToString(), "a field has the wrong type: day is no DATE"),
        (None, "the value is null"),
    ]
    sql = declared(COLUMNS, f"format 'protobuf', schema '{ORDER}', message 'shop.Order'")
    assert columns_read(engines, sql, [value for value, _ in values]) == [row for _, row in values]


def test_a_framed_message_is_read_by_the_schema_that_wrote_it(engines: Engines) -> None:
    second = 'syntax = "proto3"; message Other { int32 n = 1; } message Order { string note = 1; sint32 id = 2; }'
    engines.schemas |= {"11": Schema("PROTOBUF", ORDER), "12": Schema("PROTOBUF", second), "13": Schema("AVRO", "{}")}
    values = [
        (in_frame(11, b"\0" + order(id=2**40).SerializeToString()), (2**40, None)),
        (in_frame(12, b"\2\2" + b"\x0a\1a\x10\5"), (-3, "a")),
        (in_frame(12, b"\2\4"), "the schema has no message [2] (schema 12)"),
        (in_frame(12, b"\2\2\x0a"), "not Protobuf: not a message of type Order (schema 12)"),
        (in_frame(13, b"\0"), "the schema 13 is AVRO, not PROTOBUF"),
        (in_frame(14, b"\0"), "the schema 14 is not known yet"),
        (b"\x0a\1a", "no frame of a schema registry: it begins with the byte 0x0a"),
    ]
    sql = declared("id BIGINT, note STRING", "format 'protobuf'")
    assert columns_read(engines, sql, [value for value, _ in values]) == [row for _, row in values]
    by_key = [
        ((in_frame(12, b"\2\2\x10\6"), in_frame(12, b"\2\2\x0a\1a\x10\6")), (3, "a")),
        ((in_frame(12, b"\2\2\x10\6"), None), (3, None)),
        ((in_frame(12, b"\2\2\x10\6"), in_frame(12, b"\2\2\x10\x0a")), "the primary key differs from Kafka's key: id"),
        ((b"\x10\6", None), "the key: no frame of a schema registry: it begins with the byte 0x10"),
    ]
    sql = declared("id BIGINT, note STRING, PRIMARY KEY (id)", "format 'protobuf', key_format 'protobuf'")
    assert columns_read(engines, sql, [record for record, _ in by_key]) == [row for _, row in by_key]
