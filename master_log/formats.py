"""Values of records in the format of their source, written from their JSON; `view_algebra/formats` reads them."""

from __future__ import annotations

import binascii
import io
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from master_log.values import Number, as_written
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError


def value_of(source: Source, record: bytes) -> bytes:
    """The value of a record that `record` is the JSON of, with every digit as it stands there."""
    if (write := _WRITERS.get(source.format)) is None:
        return record
    return write(source, json.loads(record, parse_int=Number, parse_float=Number, parse_constant=Number))


def _line(source: Source, fields: Mapping[str, Any]) -> bytes:
    r"""A line of CSV: NULL is nothing, and an empty text is in quotes."""
    options = source.properties
    delimiter, quote, null = options.get("delimiter", ","), options.get("quote", '"'), options.get("null")

    def field(name: str) -> str:
        value = fields.get(name)
        if value is None:
            return ""
        text = value if isinstance(value, str) else as_written(value)
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
    value = fields.get(_value_column(source))
    return (value if isinstance(value, str) else "" if value is None else as_written(value)).encode()


def _bytes(source: Source, fields: Mapping[str, Any]) -> bytes:
    name = _value_column(source)
    try:
        return binascii.a2b_base64(str(fields.get(name) or ""))
    except ValueError as error:
        raise LaminaError(
            f"{source.name}: {name} is not base64", evidence=str(error), way_out="Write the bytes in base64."
        ) from error


def _datum(source: Source, fields: Mapping[str, Any]) -> bytes:
    """A datum of Avro; raises LaminaError for fields that its schema has no place for."""
    import fastavro

    named: dict[str, Any] = {}
    schema = fastavro.parse_schema(json.loads(source.properties["schema"]), named)
    datum = io.BytesIO()
    try:
        fastavro.schemaless_writer(datum, schema, _of_type(schema, dict(fields), named))
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise LaminaError(
            f"{source.name}: a record does not fit its Avro schema",
            evidence=f"{type(error).__name__}: {error}",
            way_out="Give every field that the schema has no null or default for, as a value of the field's type.",
        ) from error
    return datum.getvalue()


def _of_type(schema: Any, value: Any, named: Mapping[str, Any]) -> Any:
    """A value of JSON as the writer of Avro takes it for a type, which may be the name of one."""
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        return None if value is None else _of_type(others[0], value, named)
    kind = schema if isinstance(schema, str) else schema.get("logicalType", schema["type"])
    if isinstance(kind, (dict, list)):
        return _of_type(kind, value, named)
    match kind:
        case "record":
            given = {field["name"]: value.get(field["name"], field.get("default")) for field in schema["fields"]}
            return {field["name"]: _of_type(field["type"], given[field["name"]], named) for field in schema["fields"]}
        case "array":
            return [_of_type(schema["items"], each, named) for each in value]
        case "map":
            return {key: _of_type(schema["values"], each, named) for key, each in value.items()}
    text = value.text if isinstance(value, Number) else value
    return _SCALARS[kind](text) if kind in _SCALARS and isinstance(text, str) else text


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


_SCALARS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("int", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("bytes", "fixed"), binascii.a2b_base64),
    **dict.fromkeys(("timestamp-millis", "timestamp-micros"), _instant),
    **dict.fromkeys(("local-timestamp-millis", "local-timestamp-micros"), datetime.fromisoformat),
    "date": date.fromisoformat,
    "decimal": Decimal,
}


def _value_column(source: Source) -> str:
    key = source.unique if source.kind == "table" else ()
    return next(source.field(column.name) for column in source.columns if column.name not in key)


_WRITERS: Mapping[str, Callable[[Source, Mapping[str, Any]], bytes]] = {
    "avro": _datum,
    "csv": _line,
    "text": _text,
    "bytes": _bytes,
}
