"""Types for Arrow's types, which a Parquet file has."""

from __future__ import annotations

from typing import Any

from interchange.guessing import of_fields
from interchange.values import BITS
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


def type_of(given: Any) -> Type:
    """The type for a type of Arrow's; STRING for what JSON has no form for."""
    import pyarrow.types as at

    if at.is_dictionary(given):
        return type_of(given.value_type)
    if at.is_struct(given):
        parts = [given.field(number) for number in range(given.num_fields)]
        return of_fields({part.name: type_of(part.type) for part in parts})
    if at.is_list(given) or at.is_large_list(given) or at.is_fixed_size_list(given):
        return Type("ARRAY", element=type_of(given.value_type))
    if at.is_map(given):
        return Type("MAP", key=STRING, element=type_of(given.item_type))
    if at.is_decimal(given) and 0 <= given.scale <= given.precision <= MAX_PRECISION:
        return Type("DECIMAL", given.precision, given.scale)
    if at.is_integer(given):
        return _INTEGERS.get(str(given), BIGINT)
    tests = {
        at.is_boolean: BOOLEAN,
        at.is_floating: DOUBLE,
        at.is_timestamp: TIMESTAMP,
        at.is_date: DATE,
        at.is_binary: BINARY,
        at.is_large_binary: BINARY,
    }
    return next((kind for is_one, kind in tests.items() if is_one(given)), STRING)


_INTEGERS = {
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), INT),
    "uint64": Type("DECIMAL", 20, 0),
}
"""Types of whole numbers in Arrow, other than those that are BIGINT."""


def surely(given: Any, kind: Type) -> bool:
    """True if every value of the Arrow type is one of the declared type."""
    import pyarrow.types as at

    match kind.name:
        case "STRING":
            return True
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return bool(at.is_signed_integer(given)) and given.bit_width <= BITS[kind.name]
        case "DOUBLE" | "FLOAT":
            return bool(at.is_floating(given))
        case "TIMESTAMP":
            return bool(at.is_timestamp(given))
        case "BOOLEAN":
            return bool(at.is_boolean(given))
        case "DECIMAL":
            whole = kind.precision - kind.scale
            return bool(at.is_decimal(given)) and given.scale <= kind.scale and given.precision - given.scale <= whole
    return False
