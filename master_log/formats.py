"""What a record is in Kafka: its JSON as the format of its source has it. The readers are `view_algebra/formats`."""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

from view_algebra.compiled import Source
from view_algebra.errors import LaminaError


def value_of(source: Source, record: bytes) -> bytes:
    """The value of a record that `record` is the JSON of, with every digit as it stands there."""
    if (write := _WRITERS.get(source.format)) is None:
        return record
    return write(source, json.loads(record, parse_int=str, parse_float=str, parse_constant=str))


def _line(source: Source, fields: Mapping[str, Any]) -> bytes:
    r"""A line of CSV: NULL is nothing, and an empty text is in quotes."""
    options = source.properties
    delimiter, quote, null = options.get("delimiter", ","), options.get("quote", '"'), options.get("null")

    def field(name: str) -> str:
        value = fields.get(name)
        if value is None:
            return ""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if text == null:
            raise LaminaError(
                f"{source.name}: {name} is {text!r}, which its format reads as NULL",
                evidence=f"null '{null}' in OPTIONS",
                way_out="Send another text, or declare another one for NULL.",
            )
        if text and not any(each in text for each in (delimiter, quote, "\n", "\r")):
            return text
        return f"{quote}{text.replace(quote, quote * 2)}{quote}"

    return delimiter.join(field(source.field(column.name)) for column in source.columns).encode()


def _text(source: Source, fields: Mapping[str, Any]) -> bytes:
    return str(fields.get(_value_column(source)) or "").encode()


def _bytes(source: Source, fields: Mapping[str, Any]) -> bytes:
    return binascii.a2b_base64(str(fields.get(_value_column(source)) or ""))


def _value_column(source: Source) -> str:
    key = source.unique if source.kind == "table" else ()
    return next(source.field(column.name) for column in source.columns if column.name not in key)


_WRITERS: Mapping[str, Callable[[Source, Mapping[str, Any]], bytes]] = {"csv": _line, "text": _text, "bytes": _bytes}
