"""A decoder reads a datum by Avro's own rules of schema resolution, for the declared columns."""

from __future__ import annotations

import io
import json
import math
import random
from contextlib import suppress
from typing import Any

import fastavro
import pytest

from interchange.column_types.avro_types import columns_of
from view_algebra.formats import avro
from view_algebra.formats.interface import NoText, Schema

PROMOTED = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "double": ("double",),
    "string": ("string",),
    "boolean": ("boolean",),
}
"""The types that a reader may have for a writer's, by Avro's specification, without bytes, which are base64 in JSON."""


class Schemas:
    """Pairs of a writer's and a reader's schema, with records of the writer's."""

    def __init__(self, seed: int) -> None:
        self.random, self.named = random.Random(seed), 0

    def record(self, depth: int = 0) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """A writer's schema, a reader's of some of its fields and others, and a record."""
        self.named += 1
        head = {"type": "record", "name": f"r{self.named}"}
        written, read, values = list[Any](), list[Any](), dict[str, Any]()
        for number in range(self.random.randint(1, 6)):
            name = f"f{number}"
            writer, reader, value = self.kind(depth)
            written.append({"name": name, "type": writer})
            values[name] = value
            if self.random.random() < 0.8:
                read.append({"name": name, "type": reader})
        read.append({"name": "lacking", "type": ["null", "string"], "default": None})
        self.random.shuffle(read)
        return head | {"fields": written}, head | {"fields": read}, values

    def kind(self, depth: int) -> tuple[Any, Any, Any]:
        """A type of a writer, a reader's, and a value."""
        match self.random.randrange(7 if depth < 3 else 4):
            case 4:
                return self.record(depth + 1)
            case 5:
                writer, reader, value = self.kind(depth + 1)
                several = [value] * self.random.randrange(4)
                return {"type": "array", "items": writer}, {"type": "array", "items": reader}, several
            case 6:
                writer, reader, value = self.kind(depth + 1)
                by_key = {"é": value, "": value}
                return {"type": "map", "values": writer}, {"type": "map", "values": reader}, by_key
        writer = self.random.choice(list(PROMOTED))
        reader = self.random.choice(PROMOTED[writer])
        value = self.scalar(writer)
        if self.random.random() < 0.3:
            some = None if self.random.random() < 0.5 else value
            return ["null", writer], ["null", reader], some
        return writer, reader, value

    def scalar(self, kind: str) -> Any:
        match kind:
            case "int":
                return self.random.randint(-(2**31), 2**31 - 1)
            case "long":
                return self.random.randint(-(2**53), 2**53)
            case "boolean":
                return self.random.random() < 0.5
            case "string":
                return self.random.choice(["", "a", '"\\\n\x01', "ü😀", "null"])
        return self.random.choice([0.0, -0.0, 1.5, 1e300 if kind == "double" else 1e30, math.inf, 0.1])


def in_columns(value: Any, reader: Any) -> Any:
    """The value that a column of the reader's type holds for decoded JSON."""
    if isinstance(reader, list):
        return None if value is None else in_columns(value, reader[1])
    kind = reader["type"] if isinstance(reader, dict) else reader
    match kind:
        case "record":
            return {part["name"]: in_columns(value.get(part["name"]), part["type"]) for part in reader["fields"]}
        case "array":
            return [in_columns(part, reader["items"]) for part in value]
        case "map":
            return {key: in_columns(part, reader["values"]) for key, part in value.items()}
        case "float" | "double":
            return float(value)
    return value


@pytest.mark.parametrize("seed", range(200))
def test_a_record_is_resolved_as_avro_resolves_it(seed: int) -> None:
    writer, reader, record = Schemas(seed).record()
    datum = io.BytesIO()
    fastavro.schemaless_writer(datum, fastavro.parse_schema(writer), record)
    text = avro.decoder({"schema": json.dumps(writer)}, {})(datum.getvalue(), None)
    datum.seek(0)
    expected = fastavro.schemaless_reader(datum, fastavro.parse_schema(writer), fastavro.parse_schema(reader))
    assert in_columns(json.loads(text), reader) == expected
    assert columns_of(Schema("AVRO", json.dumps(writer))).keys() == record.keys()


@pytest.mark.parametrize("seed", range(200))
def test_bytes_that_are_not_a_datum_have_a_reason(seed: int) -> None:
    picked = random.Random(seed)
    writer, _, record = Schemas(seed).record()
    datum = io.BytesIO()
    fastavro.schemaless_writer(datum, fastavro.parse_schema(writer), record)
    torn = bytearray(datum.getvalue())
    for _ in range(picked.randint(1, 4)):
        place = picked.randrange(len(torn))
        torn[place : place + picked.randrange(2)] = picked.randbytes(picked.randrange(3))
        torn = torn or bytearray(b"x")
    decode = avro.decoder({"schema": json.dumps(writer)}, {})
    with suppress(NoText):  # and nothing else is raised
        assert isinstance(json.loads(decode(bytes(torn), None)), dict)


def test_a_datum_that_claims_to_be_huge_is_bad_at_once() -> None:
    lists = {"type": "record", "name": "r", "fields": [{"name": "l", "type": {"type": "array", "items": "long"}}]}
    decode = avro.decoder({"schema": json.dumps(lists)}, {})
    for length in (b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff" * 9 + b"\x01", b"\x80" * 1000):
        with pytest.raises(NoText, match="not Avro: "):
            decode(length + b"\x02" * 10, None)
    strings = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "s", "type": "string"}, {"name": "b", "type": "bytes"}],
    }
    with pytest.raises(NoText, match="not Avro: "):
        avro.decoder({"schema": json.dumps(strings)}, {})(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01ab", None)


def test_a_schema_that_is_nested_too_deep_is_refused() -> None:
    text = "".join(
        f'{{"type": "record", "name": "r{number}", "fields": [{{"name": "f", "type": ' for number in range(3000)
    )
    with pytest.raises(NoText, match="the schema has more than 100 types within each other"):
        avro.parsed(Schema("AVRO", text + '"long"' + "}]}" * 3000))


def test_a_schema_that_repeats_its_types_many_times_is_read_at_once() -> None:
    inner: Any = "int"
    for level in range(80):
        again = [{"name": f"f{n}", "type": f"r{level - 1}"} for n in range(3)] if level else []
        fields = [{"name": "n", "type": "int"}, {"name": "inner", "type": inner}, *again]
        inner = {"type": "record", "name": f"r{level}", "fields": fields}
    assert avro.parsed(Schema("AVRO", json.dumps(inner)))["name"] == "r79"


def test_a_schema_that_expands_few_bytes_to_a_long_text_is_refused() -> None:
    levels: list[dict[str, Any]] = [{"type": "record", "name": "r0", "fields": [{"name": "a", "type": "null"}]}]
    for number in range(1, 40):
        parts = [{"name": name, "type": f"r{number - 1}"} for name in ("a", "b")]
        levels.append({"type": "record", "name": f"r{number}", "fields": parts})
    whole = Schema("AVRO", json.dumps(levels[-1]), tuple((part["name"], json.dumps(part)) for part in levels[:-1]))
    with pytest.raises(NoText, match="a record of more than 1,000 values that take no byte"):
        avro.parsed(whole)
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 300_000_000, "scale": 200_000_000}
    schema = {"type": "record", "name": "r", "fields": [{"name": "d", "type": decimal}]}
    with pytest.raises(NoText, match="a decimal of scale 200000000, and not from 0 to 300"):
        avro.parsed(Schema("AVRO", json.dumps(schema)))
