"""A value of some kB may become gigabytes of JSON, which repeats the names of fields in each record of a list."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from view_algebra.formats import avro, avro_columns, protobuf
from view_algebra.formats.as_json import MOST_BYTES
from view_algebra.formats.interface import Decoder, DirectColumn, NoText

NAME = "n" * 1_000
MANY = MOST_BYTES // len(NAME) + 1
FEW = MANY // 4


ITEM = {"type": "record", "name": "item", "fields": [{"name": NAME, "type": "boolean"}]}
LIST: dict[str, Any] = {
    "type": "record",
    "name": "list",
    "fields": [{"name": "id", "type": "long"}, {"name": "items", "type": {"type": "array", "items": ITEM}}],
}


def in_avro(items: int) -> bytes:
    datum = io.BytesIO()
    fastavro.schemaless_writer(datum, LIST, {"id": 7, "items": [{NAME: True}] * items})
    return datum.getvalue()


def of_avro() -> tuple[Decoder, Any]:
    return avro.decoder({"schema": json.dumps(LIST)}, {}), in_avro


def of_protobuf() -> tuple[Decoder, Any]:
    schema = f'syntax = "proto3"; message List {{ repeated Item items = 1; message Item {{ bool {NAME} = 1; }} }}'
    return protobuf.decoder({"schema": schema, "message": "List"}, {}), lambda items: b"\x0a\x00" * items


@pytest.mark.parametrize("format_", [of_avro, of_protobuf])
def test_a_value_whose_json_would_be_too_long_is_bad(format_: Any) -> None:
    decoder, written = format_()
    assert len(json.loads(decoder(written(FEW), None))["items"]) == FEW
    assert len(written(MANY)) < 1_000_000
    with pytest.raises(NoText, match=f"its JSON would be longer than {MOST_BYTES:,} bytes"):
        decoder(written(MANY), None)


def test_a_record_is_bad_even_if_no_column_reads_its_list() -> None:
    columns, values = [DirectColumn("id", "id", "BIGINT")], [in_avro(FEW), in_avro(MANY)]
    read = avro_columns.directly(columns, {"schema": json.dumps(LIST)}, {}, values, [None, None])
    assert read.numbers == [0], "the other is read by its JSON, and so is bad"
