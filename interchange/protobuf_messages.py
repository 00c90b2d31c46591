"""Protobuf messages, written from the same JSON that they are read as."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from interchange.json_text import Number, instant
from view_algebra.errors import LaminaError
from view_algebra.formats.interface import Schema
from view_algebra.formats.protobuf import message_class


def message(
    source: str, schema: Schema, message_type: str | tuple[int, ...] | None, fields: Mapping[str, Any]
) -> bytes:
    """Encodes a message of a schema, of the type with this name or these indexes, or of the only type.

    Raises LaminaError for fields that the type does not have.
    """
    from google.protobuf.json_format import ParseDict, ParseError

    kind = message_class(schema, message_type)
    try:
        written = ParseDict(_message_json(kind.DESCRIPTOR, fields), kind())
    except (ParseError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise LaminaError(
            f"{source}: a record does not fit its Protobuf schema",
            evidence=f"{type(error).__name__}: {error}",
            way_out=f"Give the fields of {kind.DESCRIPTOR.full_name}, each a value of the field's type.",
        ) from error
    return bytes(written.SerializeToString(deterministic=True))


def _message_json(kind: Any, value: Any) -> Any:
    """A message in Google's JSON form, from our JSON."""
    name = kind.full_name
    if name in _WRITTEN:
        return value if value is None or isinstance(value, dict) else _WRITTEN[name](value)
    if isinstance(value, Mapping) and not name.startswith("google.protobuf."):
        return {field: _field_json(kind.fields_by_name.get(field), part) for field, part in value.items()}
    return value if name in _ANY_JSON else _without_messages(value)


def _field_json(field: Any, value: Any) -> Any:
    """The value of a field, or every element or map value of it, in Google's JSON form."""
    kind = None if field is None else field.message_type
    if kind is None:
        return _without_messages(value)
    if kind.GetOptions().map_entry and isinstance(value, dict):
        return {key: _field_json(kind.fields_by_name["value"], part) for key, part in value.items()}
    if isinstance(value, list) and kind.full_name not in _ANY_JSON:
        return [_message_json(kind, part) for part in value]
    return _message_json(kind, value)


def _without_messages(value: Any) -> Any:
    """A value that holds no message, with numbers as texts that keep all digits."""
    if isinstance(value, list):
        return [_without_messages(part) for part in value]
    return value.text if isinstance(value, Number) else value


def _duration(value: Any) -> str:
    return f"{Decimal(_without_messages(value)):f}s"


def _day(value: Any) -> dict[str, int]:
    return dict(zip(("year", "month", "day"), map(int, value.split("-")), strict=True))


def _decimal(value: Any) -> dict[str, Any]:
    sign, digits, exponent = Decimal(_without_messages(value)).as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    written = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    return {"value": base64.b64encode(written).decode(), "precision": len(digits), "scale": -int(exponent)}


_ANY_JSON = tuple(f"google.protobuf.{kind}" for kind in ("Struct", "Value", "ListValue"))

_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "google.protobuf.Timestamp": lambda value: instant(value).isoformat(),
    "google.protobuf.Duration": _duration,
    "google.type.Date": _day,
    "confluent.type.Decimal": _decimal,
}
"""Types whose JSON form here differs from Google's."""
