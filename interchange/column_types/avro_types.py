"""Column types for the fields of an Avro schema. `lamina init` declares them, and `lamina plan` compares them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interchange.column_types.nested_types import struct_or_map
from view_algebra.formats import avro
from view_algebra.formats.interface import Schema
from view_algebra.language.encodings import DATE_SCHEMAS, SEMANTIC
from view_algebra.language.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Type,
)


def columns_of(schema: Schema) -> dict[str, Type]:
    """The fields of a record with their types. Empty for any other schema. Raises `NoText` if it cannot be read."""
    named: dict[str, Any] = {}
    record = avro.parsed(schema, named)
    if not isinstance(record, dict) or "fields" not in record:
        return {}
    return {field["name"]: _type(field["type"], named) for field in record["fields"]}


def row_of(columns: Mapping[str, Type]) -> dict[str, Type]:
    """The columns of the row in a Debezium change event."""
    after = columns.get("after")
    return dict(after.fields) if after is not None else {}


def _type(schema: Any, named: Mapping[str, Any]) -> Type:
    """The column type for an Avro type, or STRING if no column type fits."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        return _type(others[0], named) if len(others) == 1 else STRING
    if isinstance(schema, str):
        return _SCALARS.get(schema) or (_type(named[schema], named) if schema in named else STRING)
    kind, logical = schema["type"], str(schema.get("logicalType", "")).removeprefix(avro.OWN)
    match kind:
        case "record" | "error":
            return struct_or_map({field["name"]: _type(field["type"], named) for field in schema["fields"]})
        case "array":
            return Type("ARRAY", element=_type(schema["items"], named))
        case "map":
            return Type("MAP", key=STRING, element=_type(schema["values"], named))
        case dict() | list():
            return _type(kind, named)
    if logical == "decimal":
        precision, scale = schema.get("precision", MAX_PRECISION + 1), schema.get("scale", 0)
        return Type("DECIMAL", precision, scale) if precision <= MAX_PRECISION else STRING
    return _LOGICAL.get(logical) or _SCALARS.get(kind, STRING)


_SCALARS = {
    "boolean": BOOLEAN,
    "int": INT,
    "long": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "bytes": BINARY,
    "fixed": BINARY,
    "string": STRING,
}
_UNITS = ("millis", "micros", "nanos")
_LOGICAL = {
    **{f"timestamp-{unit}": TIMESTAMP for unit in _UNITS},
    **{f"local-timestamp-{unit}": TIMESTAMP_NTZ for unit in _UNITS},
    **{name: DATE if name in DATE_SCHEMAS else TIMESTAMP for name in SEMANTIC},
    **dict.fromkeys(("time-millis", "time-micros", "uuid"), STRING),
    "date": DATE,
}
