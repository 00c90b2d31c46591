"""Writes records' values in the format of their source, from their JSON. `view_algebra/formats` reads them."""

from __future__ import annotations

import binascii
import io
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any

from interchange.json_text import Number, as_written, instant
from interchange.judgements import with_written_numbers
from interchange.protobuf_messages import message
from master_log.reading.schema_registry import Registry, RegistryUnavailable
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError
from view_algebra.formats import DECODED_KEYS, Decoding, protobuf
from view_algebra.formats.interface import Schema

Registered = tuple[int, Schema]
"""A registry's schema with its id."""


@dataclass(frozen=True)
class WriterSchemas:
    """The newest schemas of a topic's values and keys in a registry, or None."""

    values: Registered | None = None
    keys: Registered | None = None

    @classmethod
    def of(cls, source: Source, registry: Registry | None) -> WriterSchemas:
        """Fetches the schemas that write a source's records. Raises LaminaError if the registry lacks one."""
        decoding = Decoding.of(source)
        if decoding is None or not decoding.needs_registry:
            return cls()
        if registry is None:
            raise RegistryUnavailable("LAMINA_SCHEMA_REGISTRY is not set")
        needed = {"value": decoding.values_name_schemas, "key": decoding.keys is not None}
        schemas = {part: registry.newest_schema(f"{source.topic}-{part}") if needed[part] else None for part in needed}
        for part, is_needed in needed.items():
            if is_needed and schemas[part] is None:
                raise LaminaError(
                    f"{source.name}: there is no schema for writing a {part}",
                    evidence=f"the registry has no subject {source.topic}-{part}",
                    way_out="Register its schema there, as the producers of the topic do; then repeat the command.",
                )
        return cls(schemas["value"], schemas["key"])


NO_SCHEMAS = WriterSchemas()
"""No schemas: records are written by their declaration or, in a test, as JSON."""


def value_of(source: Source, record: bytes, newest: WriterSchemas = NO_SCHEMAS) -> bytes:
    """Encodes a record's value from its JSON `record`, with every digit.

    A value that needs a registry's schemas stays JSON without them: a test has no registry.
    """
    if newest.values is not None:
        return _framed(source, newest.values, exact_fields(record))
    decoding, write = Decoding.of(source), _WRITERS.get(source.format)
    if write is None or (decoding is not None and decoding.needs_registry):
        return record
    return write(source, exact_fields(record))


def key_of(source: Source, keys: Sequence[str], record: bytes, newest: WriterSchemas = NO_SCHEMAS) -> bytes | None:
    """Kafka's key of a record, made of these fields of its JSON, or None if one of them has no value.

    Records of one key go to one partition, in order. Without a `key_format`, the key is the text of one field, or the
    JSON list of several. Raises LaminaError for a value that the `key_format` cannot hold.
    """
    fields = exact_fields(record) if keys else {}
    parts = [_in_one_form(source, key, fields.get(key)) for key in keys]
    if not parts or None in parts:
        return None
    texts = list(map(as_written, parts))
    text = f"[{', '.join(texts)}]"
    if len(parts) == 1:
        text = parts[0] if isinstance(parts[0], str) else texts[0]
    if (number := _NUMBERS.get(source.key_format)) is not None:
        is_fraction = number in (">f", ">d")
        try:
            return struct.pack(number, float(text) if is_fraction else int(_shortest(text)))
        except (ArithmeticError, ValueError, struct.error):
            is_whole = "" if is_fraction else "whole "
            raise LaminaError(
                f"{source.name}: {keys[0]} is {text}, and its key_format is '{source.key_format}'",
                way_out=f"Send a {is_whole}number of {struct.calcsize(number)} bytes.",
            ) from None
    if source.key_format in ("json", *DECODED_KEYS):
        text = f"{{{', '.join(f'{as_written(key)}: {part}' for key, part in zip(keys, texts, strict=True))}}}"
    # Spark reads half of a surrogate pair, which JSON can name, as the character written here.
    encoded = text.encode(errors="replace")
    return encoded if newest.keys is None else _framed(source, newest.keys, exact_fields(encoded))


_NUMBERS = {"short": ">h", "int": ">i", "long": ">q", "float": ">f", "double": ">d"}
"""Numeric key formats, by their code in `struct`."""


def exact_fields(record: bytes) -> Any:
    """The fields of a record's JSON, with numbers that keep every digit."""
    text = record.decode(errors="replace")
    try:
        return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)
    except json.JSONDecodeError:  # JSON to Spark alone: it has single quotes, or more text after the object
        return exact_fields(as_written(with_written_numbers(text)).encode(errors="replace"))


def _in_one_form(source: Source, field: str, part: Any) -> Any:
    """The part of a key. A number has one form, however it is written, because its text decides the partition.

    A number in a STRING column is its text: 7 and 7.0 are two keys there.
    """
    if not isinstance(part, Number) or part.text.isdecimal() or not Decimal(part.text).is_finite():
        return part
    is_text = any(source.field(column.name) == field and column.spark == "STRING" for column in source.columns)
    return part if is_text else Number(_shortest(part.text))


def _shortest(number: str) -> str:
    """The number without an exponent, unless it is very large or small, and without zeros at its end.

    >>> _shortest("7.0"), _shortest("1e3"), _shortest("0.12345678901234567890"), _shortest("1e300")
    ('7', '1000', '0.1234567890123456789', '1E+300')
    """
    shortest = Decimal(number).normalize(Context(prec=max(1, len(number)))) or Decimal(0)
    return format(shortest, "f") if abs(shortest.adjusted()) <= _PLAIN_DIGITS else str(shortest)


_PLAIN_DIGITS = 40
"""Most digits of a number in a key before its point, or zeros behind it, without an exponent: a DECIMAL has 38."""


def _framed(source: Source, registered: Registered, fields: Any) -> bytes:
    """Encodes a datum in a registry's frame. A schema that is not of a record encodes the only field.

    A Protobuf message is of its schema's first type.
    """
    id, schema = registered
    frame = b"\0" + id.to_bytes(4, "big")
    if schema.kind == protobuf.KIND:
        return frame + b"\0" + message(source.name, schema, (0,), fields)
    return frame + _by_schema(source, schema, fields)


def _line(source: Source, fields: Mapping[str, Any]) -> bytes:
    r"""Encodes a line of CSV: NULL is empty, and an empty text is in quotes."""
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
                way_out="Send another text, or declare another text for NULL.",
            )
        if text and not any(special in text for special in (delimiter, quote, "\n", "\r")):
            return text
        return f"{quote}{text.replace(quote, quote * 2)}{quote}"

    return delimiter.join(field(source.field(column.name)) for column in source.columns).encode()


def _text(source: Source, fields: Mapping[str, Any]) -> bytes:
    value = _only_value(source, fields)
    return (value if isinstance(value, str) else as_written(value)).encode()


def _bytes(source: Source, fields: Mapping[str, Any]) -> bytes:
    try:
        return binascii.a2b_base64(str(_only_value(source, fields)))
    except ValueError as error:
        raise LaminaError(
            f"{source.name}: {_value_column(source)} is not base64",
            evidence=str(error),
            way_out="Write the bytes in base64.",
        ) from error


def _datum(source: Source, fields: Mapping[str, Any]) -> bytes:
    """Encodes an Avro datum by the schema in OPTIONS."""
    return _by_schema(source, Schema("AVRO", source.properties["schema"]), fields)


def _by_schema(source: Source, by: Schema, fields: Mapping[str, Any]) -> bytes:
    """Encodes an Avro datum. Raises LaminaError for fields that do not fit its schema.

    A schema that is not of a record encodes the only field.
    """
    import fastavro

    named: dict[str, Any] = {}
    datum = io.BytesIO()
    try:
        for text in [text for _, text in by.references] + [by.text]:
            schema = fastavro.parse_schema(json.loads(text), named)
        is_record = isinstance(schema, dict) and schema.get("type") == "record"
        value = dict(fields) if is_record else next(iter(fields.values()))
        fastavro.schemaless_writer(datum, schema, _avro_value(schema, value, named))
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise LaminaError(
            f"{source.name}: a record does not fit its Avro schema",
            evidence=f"{type(error).__name__}: {error}",
            way_out="Give every field that the schema has no null or default for, as a value of the field's type.",
        ) from error
    return datum.getvalue()


def _avro_value(schema: Any, value: Any, named: Mapping[str, Any]) -> Any:
    """A JSON value in the form that fastavro expects for a type, or for the name of a type."""
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        return None if value is None else _avro_value(others[0], value, named)
    kind = schema if isinstance(schema, str) else schema.get("logicalType", schema["type"])
    if isinstance(kind, (dict, list)):
        return _avro_value(kind, value, named)
    match kind:
        case "record":
            values = {field["name"]: value.get(field["name"], field.get("default")) for field in schema["fields"]}
            return {
                field["name"]: _avro_value(field["type"], values[field["name"]], named) for field in schema["fields"]
            }
        case "array":
            return [_avro_value(schema["items"], element, named) for element in value]
        case "map":
            return {key: _avro_value(schema["values"], element, named) for key, element in value.items()}
    text = value.text if isinstance(value, Number) else value
    return _SCALARS[kind](text) if kind in _SCALARS and isinstance(text, str) else text


_SCALARS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("int", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("bytes", "fixed"), binascii.a2b_base64),
    **dict.fromkeys(("timestamp-millis", "timestamp-micros"), instant),
    **dict.fromkeys(("local-timestamp-millis", "local-timestamp-micros"), datetime.fromisoformat),
    "date": date.fromisoformat,
    "decimal": Decimal,
}


def _only_value(source: Source, fields: Mapping[str, Any]) -> Any:
    """The value of the one column outside of the key. Raises LaminaError for NULL."""
    name = _value_column(source)
    if (value := fields.get(name)) is None:
        raise LaminaError(
            f"{source.name}: {name} is NULL, which format '{source.format}' has no value for",
            evidence="the value of a record is the column itself, and an empty one is an empty text",
            way_out="Give it a value, or leave the record out.",
        )
    return value


def _message(source: Source, fields: Mapping[str, Any]) -> bytes:
    """Encodes a Protobuf message by the schema in OPTIONS."""
    options = source.properties
    return message(source.name, Schema(protobuf.KIND, options["schema"]), options.get("message"), fields)


def _value_column(source: Source) -> str:
    key = source.unique if source.kind == "table" else ()
    return next(source.field(column.name) for column in source.columns if column.name not in key)


_WRITERS: Mapping[str, Callable[[Source, Mapping[str, Any]], bytes]] = {
    "avro": _datum,
    "csv": _line,
    "protobuf": _message,
    "text": _text,
    "bytes": _bytes,
}
