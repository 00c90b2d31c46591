"""Column types for the Arrow types of a Parquet file."""

from __future__ import annotations

from typing import Any

from interchange.column_types.nested_types import struct_or_map
from interchange.json_values import BITS
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
    Type,
)


def type_of(arrow: Any) -> Type:
    """The column type for an Arrow type, or STRING if JSON has no form for it."""
    import pyarrow.types as at

    if at.is_dictionary(arrow):
        return type_of(arrow.value_type)
    if at.is_struct(arrow):
        return struct_or_map({part.name: type_of(part.type) for part in arrow})
    if at.is_list(arrow) or at.is_large_list(arrow) or at.is_fixed_size_list(arrow):
        return Type("ARRAY", element=type_of(arrow.value_type))
    if at.is_map(arrow):
        return Type("MAP", key=STRING, element=type_of(arrow.item_type))
    if at.is_decimal(arrow) and 0 <= arrow.scale <= arrow.precision <= MAX_PRECISION:
        return Type("DECIMAL", arrow.precision, arrow.scale)
    if at.is_integer(arrow):
        return _INTEGERS.get(str(arrow), BIGINT)
    tests = {
        at.is_boolean: BOOLEAN,
        at.is_floating: DOUBLE,
        at.is_timestamp: TIMESTAMP,
        at.is_date: DATE,
        at.is_binary: BINARY,
        at.is_large_binary: BINARY,
    }
    return next((kind for is_one, kind in tests.items() if is_one(arrow)), STRING)


_INTEGERS = {
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), INT),
    "uint64": Type("DECIMAL", 20, 0),
}
"""Arrow's whole-number types that do not become BIGINT."""


def always_fits(arrow: Any, kind: Type) -> bool:
    """True if every value of the Arrow type fits the declared type."""
    import pyarrow.types as at

    match kind.name:
        case "STRING":
            return True
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return bool(at.is_signed_integer(arrow)) and arrow.bit_width <= BITS[kind.name]
        case "DOUBLE" | "FLOAT":
            return bool(at.is_floating(arrow))
        case "TIMESTAMP":
            return bool(at.is_timestamp(arrow))
        case "BOOLEAN":
            return bool(at.is_boolean(arrow))
        case "DECIMAL":
            whole = kind.precision - kind.scale
            return bool(at.is_decimal(arrow)) and arrow.scale <= kind.scale and arrow.precision - arrow.scale <= whole
    return False
