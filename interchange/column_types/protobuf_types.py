"""Column types for the fields of a message. `lamina init` declares them, and `lamina plan` compares them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from interchange.column_types.nested_types import struct_or_map
from view_algebra.formats.interface import Schema
from view_algebra.formats.protobuf import message_class, schema_types
from view_algebra.language.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Type


def columns_of(schema: Schema, message: str | tuple[int, ...]) -> dict[str, Type]:
    """The fields of the message with this name or these indexes. Raises `NoText` if it does not exist."""
    kind = message_class(schema, message).DESCRIPTOR
    return {field.name: _field_type(field, (kind.full_name,)) for field in kind.fields}


def columns_like(declared: Collection[str], schema: Schema) -> dict[str, Type]:
    """The fields of the message that has most of the declared fields: a schema does not say which message is used."""
    candidates = [columns_of(schema, name) for name in schema_types(schema).names()]
    return max(candidates, key=lambda fields: len(fields.keys() & set(declared)), default={})


def _field_type(field: Any, within: tuple[str, ...]) -> Type:
    """The column type for a field. A message that is nested too deep or in itself is a STRING of JSON."""
    if field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry:
        return Type("MAP", key=STRING, element=_element_type(field.message_type.fields_by_name["value"], within))
    one = _element_type(field, within)
    return Type("ARRAY", element=one) if field.is_repeated else one


def _element_type(field: Any, within: tuple[str, ...]) -> Type:
    kind = field.message_type
    if kind is None:
        return _SCALARS.get(field.type, STRING)
    if kind.full_name in _WELL_KNOWN:
        return _WELL_KNOWN[kind.full_name]
    if kind.full_name in within or len(within) > _DEEPEST:
        return STRING
    return struct_or_map({part.name: _field_type(part, (*within, kind.full_name)) for part in kind.fields})


_DEEPEST = 6
"""Most levels of messages that become STRUCTs: the messages of a schema may refer to one another."""

_UINT64 = Type("DECIMAL", 20, 0)
_SCALARS = {
    **dict.fromkeys((1, 2), DOUBLE),  # double, float
    **dict.fromkeys((3, 16, 18), BIGINT),  # int64, sfixed64, sint64
    **dict.fromkeys((4, 6), _UINT64),  # uint64, fixed64
    **dict.fromkeys((5, 15, 17), INT),  # int32, sfixed32, sint32
    **dict.fromkeys((7, 13), BIGINT),  # fixed32, uint32
    8: BOOLEAN,
    12: BINARY,
}
"""Types by their number in Google's `descriptor.proto`. Any other type is STRING."""

_WRAPPED = {
    **dict.fromkeys(("Double", "Float"), DOUBLE),
    **dict.fromkeys(("Int64", "UInt32"), BIGINT),
    "UInt64": _UINT64,
    "Int32": INT,
    "Bool": BOOLEAN,
    "String": STRING,
    "Bytes": BINARY,
}
_WELL_KNOWN = {
    **{f"google.protobuf.{name}Value": kind for name, kind in _WRAPPED.items()},
    **{f"google.protobuf.{name}": STRING for name in ("Struct", "Value", "ListValue")},
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Duration": Type("DECIMAL", 20, 9),
    "google.type.Date": DATE,
    "google.type.TimeOfDay": STRING,
    "confluent.type.Decimal": Type("DECIMAL", 38, 10),
}
