"""A value of some kB may have gigabytes of JSON: each record of a list has the names of its fields there."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from view_algebra.formats import avro, protobuf
from view_algebra.formats.as_json import MOST_BYTES
from view_algebra.formats.interface import Decoder, NoText

NAME = "n" * 1_000
MANY = MOST_BYTES // len(NAME) + 1
FEW = MANY // 4


def of_avro() -> tuple[Decoder, Any]:
    item = {"type": "record", "name": "item", "fields": [{"name": NAME, "type": "boolean"}]}
    field = {"name": "items", "type": {"type": "array", "items": item}}
    schema: dict[str, Any] = {"type": "record", "name": "list", "fields": [field]}

    def written(items: int) -> bytes:
        datum = io.BytesIO()
        fastavro.schemaless_writer(datum, schema, {"items": [{NAME: True}] * items})
        return datum.getvalue()

    return avro.decoder({"schema": json.dumps(schema)}, {}), written


def of_protobuf() -> tuple[Decoder, Any]:
    schema = f'syntax = "proto3"; message List {{ repeated Item items = 1; message Item {{ bool {NAME} = 1; }} }}'
    return protobuf.decoder({"schema": schema, "message": "List"}, {}), lambda items: b"\x0a\x00" * items


@pytest.mark.parametrize("made", [of_avro, of_protobuf])
def test_a_value_whose_json_would_be_too_long_is_bad(made: Any) -> None:
    decoder, written = made()
    assert len(json.loads(decoder(written(FEW), None))["items"]) == FEW
    assert len(written(MANY)) < 1_000_000
    with pytest.raises(NoText, match=f"its JSON would be longer than {MOST_BYTES:,} bytes"):
        decoder(written(MANY), None)
