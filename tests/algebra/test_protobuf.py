"""Messages of Protobuf as JSON, and the reasons that other values are bad."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tests.fix_protobuf import ORDER, message, order
from tests.fix_registry import in_frame
from view_algebra.formats import protobuf
from view_algebra.formats.interface import NoText, Schema
from view_algebra.formats.protobuf import decoder, schema_types

OLD = """
syntax = "proto2";
enum Kind { NEW = 1; OLD = 2; }
message Old {
  required int32 id = 1;
  optional string name = 2 [default = "none"];
  optional Kind kind = 3;
  repeated group Line = 4 { optional int32 amount = 5; }
  optional string more = 6;
}
"""
NOTHING: dict[str, Any] = {
    **dict.fromkeys(("id", "most", "less", "fixed", "share", "part"), 0),
    **dict.fromkeys(("userName", "raw", "HasField"), ""),
    **{name: [] for name in ("numbers", "places", "kinds")},
    **{name: {} for name in ("by_number", "by_truth")},
    **dict.fromkeys(("given", "place", "cash", "card", "at", "took", "wrapped", "any_json", "any", "day", "price")),
    **dict.fromkeys(("within", "wrapped_bytes", "wrapped_float")),
    "ok": False,
    "kind": "NONE",
}
"""The JSON of an order without any value."""

PLACE = {"city": "a", "floors": {}}


def read(value: bytes, schema: str = ORDER, name: str | None = "shop.Order") -> Any:
    options = {"schema": schema} | ({"message": name} if name else {})
    return json.loads(decoder(options, {})(value, None), parse_float=Decimal)


def reason(value: bytes, schema: str = ORDER, name: str | None = "shop.Order") -> str:
    with pytest.raises(NoText) as raised:
        read(value, schema, name)
    return str(raised.value)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {}),
        ({"id": -(2**63), "most": 2**64 - 1, "less": -5, "fixed": 2**63}, {}),
        ({"share": 0.1, "part": 0.5, "ok": True}, {"share": Decimal("0.1"), "part": Decimal("0.5")}),
        ({"share": float("nan"), "part": float("-inf")}, {"share": "NaN", "part": "-Infinity"}),
        ({"userName": 'é\n"\0', "raw": b"\0\xff", "HasField": "x"}, {"raw": "AP8="}),
        ({"kind": 1, "kinds": [0, 1, 7]}, {"kind": "NEW", "kinds": ["NONE", "NEW", 7]}),
        ({"given": 0, "place": {}}, {"place": {"city": "", "floors": {}}}),
        ({"place": {"city": "Kraków", "floors": {"b": 2, "a": 1}}}, {}),
        ({"numbers": [1, -2], "places": [{"city": "a"}, {}]}, {"places": [PLACE, {"city": "", "floors": {}}]}),
        ({"by_number": {7: {"city": "a"}, -3: {"city": "a"}}}, {"by_number": {"-3": PLACE, "7": PLACE}}),
        ({"by_truth": {True: 1.5, False: 0.5}}, {"by_truth": {"false": Decimal("0.5"), "true": Decimal("1.5")}}),
        ({"cash": 0}, {}),
        ({"card": ""}, {}),
        ({"at": {"seconds": 1_767_323_045, "nanos": 678_901_234}}, {"at": "2026-01-02T03:04:05.678901234Z"}),
        ({"at": {"seconds": -1, "nanos": 5}}, {"at": "1969-12-31T23:59:59.000000005Z"}),
        ({"at": {"seconds": 2**62}}, {"at": f"{2**62 * 10**9} since 1970"}),
        ({"took": {"seconds": 90}}, {"took": 90}),
        ({"took": {"seconds": -1, "nanos": -500_000_000}}, {"took": Decimal("-1.500000000")}),
        ({"wrapped": {}, "wrapped_bytes": {"value": b"a"}}, {"wrapped": 0, "wrapped_bytes": "YQ=="}),
        ({"wrapped_float": {"value": float("inf")}}, {"wrapped_float": "Infinity"}),
        ({"wrapped": {"value": 2**53 + 1}}, {"wrapped": 2**53 + 1}),
        ({"any": {"type_url": "t/x", "value": b"a"}}, {"any": {"type_url": "t/x", "value": "YQ=="}}),
        ({"day": {"year": 2026, "month": 1, "day": 2}}, {"day": "2026-01-02"}),
        ({"price": {"value": (12345).to_bytes(2, "big"), "scale": 2}}, {"price": Decimal("123.45")}),
        ({"price": {"value": (-5).to_bytes(9, "big", signed=True), "scale": 3}}, {"price": Decimal("-0.005")}),
        ({"price": {"value": b"\x05", "scale": -2}}, {"price": 500}),
    ],
)  # fmt: skip
def test_a_message_is_the_json_of_its_fields(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert read(order(**fields).SerializeToString()) == {**NOTHING, **fields, **expected}


def test_a_struct_is_the_json_that_it_holds() -> None:
    written = order()
    written.any_json.update({"whole": 7, "part": 7.5, "big": 1e300, "no": None, "list": [True, {"b": "x", "a": []}]})
    text = decoder({"schema": ORDER, "message": "shop.Order"}, {})(written.SerializeToString(), None)
    assert '"any_json":{"big":1e+300,"list":[true,{"a":[],"b":"x"}],"no":null,"part":7.5,"whole":7}' in text


def test_the_entries_of_a_map_have_one_order_in_every_process() -> None:
    names = [f"floor {n:03}" for n in range(200)]
    floors = read(order(place={"floors": dict.fromkeys(reversed(names), 1)}).SerializeToString())["place"]["floors"]
    assert list(floors) == names


def test_an_unset_field_of_proto2_is_null() -> None:
    old = message(OLD, "Old")
    assert read(old(id=7, kind=2, line=[{"amount": 5}]).SerializeToString(), OLD, None) == {
        "id": 7,
        "name": None,
        "kind": "OLD",
        "line": [{"amount": 5}],
        "more": None,
    }
    assert read(old(id=1).SerializeToString() + b"\x18\x09", OLD, None)["kind"] is None  # an enum that it lacks
    assert reason(b"\x08\x01\x32\x01\xff", OLD, None) == "not Protobuf: not a message of type Old: a text is not UTF-8"


def test_a_field_that_the_schema_lacks_is_ignored() -> None:
    newer = message(OLD.replace("more = 6", "more = 6; optional int32 newer = 7"), "Old")
    assert read(newer(id=1, newer=5).SerializeToString(), OLD, None)["id"] == 1


def test_messages_nested_too_deep_are_bad() -> None:
    written = order(id=99)
    for number in range(98, 0, -1):
        written = order(id=number, within=written)
    inner = read(written.SerializeToString())
    for number in range(1, 100):
        assert inner["id"] == number
        inner = inner["within"]
    assert inner is None
    assert (
        reason(order(within=order(within=order(within=written))).SerializeToString())
        == "not Protobuf: not a message of type shop.Order"
    )


@pytest.mark.parametrize(
    "value",
    [
        b"\0",
        b"garbage",
        b"\x08",
        b"\x42\x03ab",
        b"\x42\x01\xff",
        b"\x42" + b"\xff" * 8 + b"\x0f",  # a text of 2 ** 60 bytes
        b"\x6a" + b"\xff" * 8 + b"\x0f",  # a list of as many
        b"\x42" + b"\xff" * 11,
        order(id=7).SerializeToString() + b"\0",
        b"\x73" * 10_000,  # groups that do not end
    ],
)
def test_bytes_that_are_not_a_message_are_bad(value: bytes) -> None:
    assert reason(value) == "not Protobuf: not a message of type shop.Order"


def test_a_million_keys_are_read_and_a_million_wide_messages_are_bad() -> None:
    keys = [b"%06d" % n for n in range(1_000_000)]
    floors = b"".join(b"\x12\x0a\x0a\6" + key + b"\x10\1" for key in keys)
    text = decoder({"schema": ORDER, "message": "shop.Order.Place"}, {})(floors, None)
    assert text.startswith('{"city":"","floors":{"000000":1,"000001":1,')
    assert text.count(":1") == 1_000_000
    wide = "message Wide { repeated Wide of = 100; " + " ".join(f"int32 f{n} = {n};" for n in range(1, 99)) + "}"
    expected = "not Protobuf: its messages have more than 2000000 fields"
    assert reason(b"\xa2\x06\0" * 1_000_000, f'syntax = "proto3"; {wide}', None) == expected


TWO = "8d3b1c86-0bb4-4a49-a3ae-5e7b5f0a2b11"
SCHEMAS = {
    "1": Schema("PROTOBUF", ORDER),
    TWO: Schema("PROTOBUF", ORDER),
    "3": Schema(
        "PROTOBUF",
        'syntax = "proto3"; import "geo/place.proto"; import "confluent/meta.proto"; message R { geo.Place at = 1; }',
        (
            ("geo/city.proto", 'syntax = "proto3"; package geo; message City { string name = 1; }'),
            (
                "geo/place.proto",
                'syntax = "proto3"; package geo; import "geo/city.proto"; message Place { City city = 1; }',
            ),
        ),
    ),
    "4": Schema("PROTOBUF", 'syntax = "proto3"; message R { int65 a = 1; }'),
    "5": Schema("PROTOBUF", 'syntax = "proto3"; import "lost.proto"; message R { int64 a = 1; }'),
    "6": Schema("PROTOBUF", 'syntax = "proto3"; message R {}', (("../out.proto", ""),)),
    "7": Schema("AVRO", '"string"'),
    "8": None,
    "9": Schema("PROTOBUF", 'syntax = "proto3"; message R {}', (("a", ""), ("a/b", ""))),
}


def of_registry(value: bytes, header: bytes | None = None) -> Any:
    try:
        return json.loads(decoder({}, SCHEMAS)(value, header))
    except NoText as reason:
        return str(reason)


def test_a_framed_message_is_read_by_the_schema_and_the_type_that_wrote_it() -> None:
    whole = order(id=7).SerializeToString()
    assert of_registry(in_frame(1, b"\0" + whole))["id"] == 7
    assert of_registry(in_frame(1, b"\2\0" + whole))["id"] == 7
    assert of_registry(in_frame(1, b"\2\2\x0a\1a")) == {"name": "a"}
    assert of_registry(in_frame(1, b"\4\0\0\x0a\1a")) == {"city": "a", "floors": {}}
    assert of_registry(in_frame(1, b"\6\0\0\0\x08\1")) == {"number": 1}, "a map's entry is not a message of the schema"
    header = b"\1" + bytes.fromhex(TWO.replace("-", ""))
    assert of_registry(whole, header + b"\0")["id"] == 7
    assert of_registry(b"\x0a\1a", header + b"\2\2") == {"name": "a"}
    assert of_registry(in_frame(3, b"\0\x0a\5\x0a\3\x0a\1a")) == {"at": {"city": {"name": "a"}}}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (in_frame(1, b""), "not Protobuf: no message indexes follow the frame (schema 1)"),
        (in_frame(1, b"\xff" * 20), "not Protobuf: no message indexes follow the frame (schema 1)"),
        (in_frame(1, b"\xfe\xff\xff\xff\x0f\0"), "not Protobuf: no message indexes follow the frame (schema 1)"),
        (in_frame(1, b"\xca\1" + b"\0" * 101), "not Protobuf: no message indexes follow the frame (schema 1)"),
        (in_frame(1, b"\1"), "not Protobuf: no message indexes follow the frame (schema 1)"),
        (in_frame(1, b"\2\4"), "the schema has no message [2] (schema 1)"),
        (in_frame(1, b"\4\0\x7f"), "the schema has no message [0, -64] (schema 1)"),
        (in_frame(1, b"\0\0"), "not Protobuf: not a message of type shop.Order (schema 1)"),
        (in_frame(2, b"\0"), "the schema 2 is not known yet"),
        (in_frame(4, b"\0"), 'the schema is not one of Protobuf: 1:32: "int65" is not defined. (schema 4)'),
        (in_frame(5, b"\0"), "the schema is not one of Protobuf: lost.proto: File not found. (schema 5)"),
        (in_frame(6, b"\0"), "the schema is not one of Protobuf: a file cannot be called '../out.proto' (schema 6)"),
        (in_frame(7, b"\0"), "the schema 7 is AVRO, not PROTOBUF"),
        (in_frame(8, b"\0"), "the registry had no schema 8: if it has by now, raise ask_again in OPTIONS and apply"),
        (in_frame(9, b"\0"), "the schema is not one of Protobuf: a file is called as the folder of another (schema 9)"),
        (b"\x0a\1a", "no frame of a schema registry: it begins with the byte 0x0a"),
    ],
)
def test_a_framed_value_without_a_message_is_bad(value: bytes, reason: str) -> None:
    assert of_registry(value) == reason


def test_a_descriptor_in_base64_is_a_schema_like_its_text() -> None:
    files = FileDescriptorSet()
    types = schema_types(SCHEMAS["3"])  # type: ignore[arg-type]
    for name in ("geo/city.proto", "geo/place.proto"):
        types.pool.FindFileByName(name).CopyToProto(files.file.add())
    value = b"\x0a\3\x0a\1a"
    text = base64.b64encode(files.SerializeToString()).decode()
    assert read(value, text, None) == {"city": {"name": "a"}}
    # As confluent-kafka registers them: a descriptor for each file, without those of google.protobuf.
    one = [base64.b64encode(file.SerializeToString()).decode() for file in files.file]
    place = Schema("PROTOBUF", one[1], (("geo/city.proto", one[0]),) * 2)
    assert json.loads(decoder({}, {"1": place})(in_frame(1, b"\0" + value), None)) == {"city": {"name": "a"}}
    whole = base64.b64encode(schema_types(Schema("PROTOBUF", ORDER)).main.SerializeToString()).decode()
    assert read(order(id=7).SerializeToString(), whole)["id"] == 7


def test_a_schema_is_compiled_once_even_if_it_leaves_the_cache() -> None:
    runs = protobuf._described.cache_info().misses
    schemas = {
        "1": Schema("PROTOBUF", 'syntax = "proto3"; message Once { int64 once = 1; }'),
        "2": Schema("PROTOBUF", 'syntax = "proto3"; message Once {'),
    }
    for _ in range(2):
        assert decoder({}, schemas)(in_frame(1, b"\0\x08\x07"), None) == '{"once":7}'
        with pytest.raises(NoText, match="the schema is not one of Protobuf"):
            decoder({}, schemas)(in_frame(2, b"\0\x08\x07"), None)
        for cache in (protobuf._compiled, protobuf._message_decoder):  # as if schemas of other records had filled them
            cache.cache_clear()
    assert protobuf._described.cache_info().misses == runs + 2
