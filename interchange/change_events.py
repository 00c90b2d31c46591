"""Debezium's change events as rows with types, so that a source can be guessed from them.

The schema in an event says the types, and how times and decimals are written. Without schemas, values are as they are.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from interchange.guessing import of_fields
from view_algebra.language.encodings import DAYS, DECIMAL, PLACEHOLDER, SEMANTIC
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
"""Types of Kafka Connect."""

_TEXTS = ("io.debezium.time.ZonedTimestamp", "io.debezium.time.IsoTimestamp")
_ANY_SCALE = "io.debezium.data.VariableScaleDecimal"

ANY_SCALE = 10
"""Digits behind the point of a column whose values have scales of their own."""

_SINCE = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a TIMESTAMP without a zone is in UTC to the source)


@dataclass(frozen=True)
class Row:
    """The row that an event has set, and the types of its fields as far as the event's schema says them."""

    values: dict[str, Any]
    types: dict[str, Type]
    has_schema: bool


def payload(record: Any) -> Any:
    """A value without the schema that Kafka Connect writes beside it."""
    return record["payload"] if isinstance(record, dict) and record.keys() == {"schema", "payload"} else record


def is_change(record: Any) -> bool:
    """True of Debezium's change events."""
    event = payload(record)
    return isinstance(event, dict) and are_of_change(event.keys())


def are_of_change(names: Collection[str]) -> bool:
    """True of the names of the fields of a change event."""
    return "op" in names and "source" in names and ("before" in names or "after" in names)


def row(record: Mapping[str, Any]) -> Row | None:
    """The row after a change; None for a deletion, a truncation, and what is no object, as a document of MongoDB."""
    after = payload(record).get("after")
    if not isinstance(after, dict):
        return None
    schemas = _fields_of_row(record)
    values = {
        name: None if value == PLACEHOLDER else _decoded(schemas.get(name, {}), value) for name, value in after.items()
    }
    types = {name: _type_of(schema) for name, schema in schemas.items()}
    return Row(values, types, has_schema=bool(schemas))


def _fields_of_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of each field of `after`."""
    fields = (record.get("schema") or {}).get("fields") or []
    after: dict[str, Any] = next((each for each in fields if each.get("field") == "after"), {})
    return {each["field"]: each for each in after.get("fields") or []}


def _type_of(schema: Mapping[str, Any]) -> Type:
    """The type of a column for a field with this schema."""
    name, parameters = schema.get("name") or "", schema.get("parameters") or {}
    if name in DAYS:
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
            return Type("ARRAY", element=_plain(schema.get("items") or {}))
        case "map":
            return Type("MAP", key=STRING, element=_plain(schema.get("values") or {}))
        case "struct":
            return of_fields({each["field"]: _plain(each) for each in schema.get("fields") or []})
        case kind:
            return _KINDS.get(str(kind), STRING)


def _plain(schema: Mapping[str, Any]) -> Type:
    """The type of a part, whose value is shown as it is written."""
    name = schema.get("name") or ""
    is_encoded = name in (*SEMANTIC, DECIMAL, _ANY_SCALE)
    return STRING if is_encoded else _type_of(schema)


def _decoded(schema: Mapping[str, Any], value: Any) -> Any:
    """A value as JSON would have it without a connector: times in ISO 8601, decimals as numbers."""
    name = schema.get("name") or ""
    try:
        match value:
            case int() if name in SEMANTIC:
                time = _SINCE + dt.timedelta(microseconds=int(value * Decimal(SEMANTIC[name])))
                return time.date().isoformat() if name in DAYS else time.isoformat(" ")
            case str() if name == DECIMAL:
                return _unscaled(value, int((schema.get("parameters") or {}).get("scale", 0)))
            case {"scale": int(scale), "value": str(digits)} if name == _ANY_SCALE:
                return _unscaled(digits, scale)
    except (OverflowError, binascii.Error):  # infinity is NULL, too
        return None
    return value


def _unscaled(text: str, scale: int) -> Decimal:
    """A decimal of base64.

    >>> _unscaled("AfQ=", 2)
    Decimal('5.00')
    """
    return Decimal(int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)).scaleb(-scale)
