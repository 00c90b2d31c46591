"""Debezium's change events as typed rows, from which `lamina init` guesses a source.

The schema in an event gives the types and the encoding of times and decimals. Without a schema, values stay as written.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from interchange.column_types.nested_types import struct_or_map
from view_algebra.language.encodings import DATE_SCHEMAS, DECIMAL, PLACEHOLDER, SEMANTIC
from view_algebra.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    Type,
)

_KINDS = {
    **dict.fromkeys(("int8", "int16", "int32"), INT),
    "int64": BIGINT,
    **dict.fromkeys(("float", "double", "float32", "float64"), DOUBLE),
    "boolean": BOOLEAN,
    "bytes": Type("BINARY"),
}
"""Column types for Kafka Connect's types."""

_TEXTS = ("io.debezium.time.ZonedTimestamp", "io.debezium.time.IsoTimestamp")
_ANY_SCALE = "io.debezium.data.VariableScaleDecimal"

ANY_SCALE = 10
"""Digits after the decimal point in a column whose values each carry their own scale."""

_SINCE = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a TIMESTAMP without a zone is in UTC to the source)


@dataclass(frozen=True)
class ChangedRow:
    """The row after an event, with the types that the event's schema gives for its fields."""

    values: dict[str, Any]
    types: dict[str, Type]
    has_schema: bool


def payload(record: Any) -> Any:
    """The value without the schema that Kafka Connect writes next to it."""
    return record["payload"] if isinstance(record, dict) and record.keys() == {"schema", "payload"} else record


def is_change(record: Any) -> bool:
    """True if the record is a Debezium change event."""
    event = payload(record)
    return isinstance(event, dict) and has_event_fields(event.keys())


def has_event_fields(names: Collection[str]) -> bool:
    """True if these are the field names of a change event."""
    return "op" in names and "source" in names and ("before" in names or "after" in names)


def changed_row(record: Mapping[str, Any]) -> ChangedRow | None:
    """The row after a change. None for a deletion, a truncation, or a value that is not an object (MongoDB)."""
    after = payload(record).get("after")
    if not isinstance(after, dict):
        return None
    schemas = _row_fields(record)
    values = {
        name: None if value == PLACEHOLDER else _decoded(schemas.get(name, {}), value) for name, value in after.items()
    }
    types = {name: _type_of(schema) for name, schema in schemas.items()}
    return ChangedRow(values, types, has_schema=bool(schemas))


def _row_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of each field of `after`."""
    fields = (record.get("schema") or {}).get("fields") or []
    after: dict[str, Any] = next((field for field in fields if field.get("field") == "after"), {})
    return {field["field"]: field for field in after.get("fields") or []}


def _type_of(schema: Mapping[str, Any]) -> Type:
    """The column type for a field with this schema."""
    name, parameters = schema.get("name") or "", schema.get("parameters") or {}
    if name in DATE_SCHEMAS:
        return DATE
    if name in SEMANTIC or name in _TEXTS:
        return TIMESTAMP
    if name == DECIMAL:
        precision = min(MAX_PRECISION, int(parameters.get("connect.decimal.precision", MAX_PRECISION)))
        return Type("DECIMAL", precision, int(parameters.get("scale", 0)))
    if name == _ANY_SCALE:
        return Type("DECIMAL", MAX_PRECISION, ANY_SCALE)
    match schema.get("type"):
        case "array":
            return Type("ARRAY", element=_type_as_written(schema.get("items") or {}))
        case "map":
            return Type("MAP", key=STRING, element=_type_as_written(schema.get("values") or {}))
        case "struct":
            return struct_or_map({field["field"]: _type_as_written(field) for field in schema.get("fields") or []})
        case kind:
            return _KINDS.get(str(kind), STRING)


def _type_as_written(schema: Mapping[str, Any]) -> Type:
    """The type of an element or nested field, whose value stays as written."""
    name = schema.get("name") or ""
    is_encoded = name in (*SEMANTIC, DECIMAL, _ANY_SCALE)
    return STRING if is_encoded else _type_of(schema)


def _decoded(schema: Mapping[str, Any], value: Any) -> Any:
    """The value as JSON would hold it without a connector: times in ISO 8601, decimals as numbers."""
    name = schema.get("name") or ""
    try:
        match value:
            case int() if name in SEMANTIC:
                time = _SINCE + dt.timedelta(microseconds=int(value * Decimal(SEMANTIC[name])))
                return time.date().isoformat() if name in DATE_SCHEMAS else time.isoformat(" ")
            case str() if name == DECIMAL:
                return _unscaled(value, int((schema.get("parameters") or {}).get("scale", 0)))
            case {"scale": int(scale), "value": str(digits)} if name == _ANY_SCALE:
                return _unscaled(digits, scale)
    except (OverflowError, ValueError):  # infinity, and a text that is not base64
        return None
    return value


def _unscaled(text: str, scale: int) -> Decimal:
    """The decimal that base64 text encodes.

    >>> _unscaled("AfQ=", 2)
    Decimal('5.00')
    """
    return Decimal(int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)).scaleb(-scale)
