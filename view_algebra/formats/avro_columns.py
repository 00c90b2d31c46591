"""Reads Avro directly into the declared columns if JSON in between would change nothing.

A `long` declared BIGINT, or a `string` declared STRING, is the same value with JSON and without it, and most fields of
most topics are like that. So a record is read directly if every declared column has a type of `TYPES`, and its field a
kind that fits. JSON and its rules decide everything else: another kind, a number that is too large, a time beyond the
calendar, a text that Postgres cannot store, a value that is not a datum. The same holds for a record with an undeclared
field that may have no JSON, such as a decimal of thousands of digits. `tests/laws/test_avro_columns.py` reads the same
records both ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from view_algebra.formats import as_json, frames
from view_algebra.formats.avro import KIND, OWN, datum_reader, inner_types, names_length, parsed
from view_algebra.formats.interface import DirectColumn, NoText, Schema, Schemas

if TYPE_CHECKING:
    import pyarrow as pa

TYPES = re.compile(r"(?:BOOLEAN|INT|BIGINT|DOUBLE|STRING|DATE|TIMESTAMP|DECIMAL\(\d+,\d+\))")
"""Spark SQL types of columns that may be read directly."""

ColumnReader = Callable[[Sequence[Any]], "tuple[pa.Array, pa.Array | None]"]
"""Makes an array of a field's values, and a mask of the values left to JSON, or None if there are none."""

MOST_BYTES = 1_000_000
"""Bytes of a datum that may be read directly: Spark's reader limits the JSON of a larger one, as of one whose JSON may
be too long."""

MOST_BYTES_OF_A_DECIMAL, MOST_DIGITS_BEHIND = 100, 300
"""Spark's reader of JSON takes numbers of at most 1,000 digits."""

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The days of the years 0001 to 9999, since 1970."""

_DAY = 86_400_000_000
"""Microseconds of a day."""


class Directly(NamedTuple):
    """Records read directly: an array for each column, and the records' positions in the input, in the same order."""

    arrays: Sequence[pa.Array]
    numbers: Sequence[int]


Reader = Callable[
    [Sequence[DirectColumn], Mapping[str, str], Schemas, Sequence[bytes | None], Sequence[bytes | None]], Directly
]
"""Reads records directly from values and headers, by the columns, the format's options and the known schemas."""


def directly(
    columns: Sequence[DirectColumn],
    options: Mapping[str, str],
    schemas: Schemas,
    values: Sequence[bytes | None],
    headers: Sequence[bytes | None],
) -> Directly:
    """Reads the records that can be read directly, which depends on no other record."""
    by_schema = _by_schema(options, schemas, values, headers)
    return _together(columns, [_read_schema(tuple(columns), *data) for data in by_schema])


def _together(columns: Sequence[DirectColumn], parts: Sequence[Directly]) -> Directly:
    import pyarrow as pa

    some = [part for part in parts if part.numbers]
    if len(some) == 1:
        return some[0]
    arrays = [
        pa.concat_arrays([pa.array([], arrow_type(column.type)), *(part.arrays[place] for part in some)])
        for place, column in enumerate(columns)
    ]
    return Directly(arrays, [number for part in some for number in part.numbers])


def arrow_type(type: str) -> pa.DataType:
    """The Arrow type of one of `TYPES`."""
    import pyarrow as pa

    if digits := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", type):
        return pa.decimal128(int(digits[1]), int(digits[2]))
    return {
        "BOOLEAN": pa.bool_(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "STRING": pa.string(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us", "UTC"),
    }[type]


def _by_schema(
    options: Mapping[str, str], schemas: Schemas, values: Sequence[bytes | None], headers: Sequence[bytes | None]
) -> Iterable[tuple[Schema, list[bytes], list[int]]]:
    """Each schema with its data and the numbers of their records, without the records that have no schema."""
    only = Schema(KIND, options["schema"]) if "schema" in options else None
    by_id: dict[str, tuple[Schema, list[bytes], list[int]]] = {}
    for number, (value, header) in enumerate(zip(values, headers, strict=True)):
        if value is None:
            continue
        try:
            id, _, datum = ("", b"", value) if only is not None else frames.unframed(value, header)
            if id not in by_id:
                by_id[id] = (only or frames.find_schema(id, schemas, KIND), [], [])
        except NoText:
            continue
        _, data, numbers = by_id[id]
        data.append(datum)
        numbers.append(number)
    return by_id.values()


def _read_schema(
    columns: tuple[DirectColumn, ...], schema: Schema, data: Sequence[bytes], numbers: Sequence[int]
) -> Directly:
    """Reads the data of one schema."""
    if (plan := _plan(schema, columns)) is None:
        return Directly([], [])
    rows, row_numbers = [], []
    for datum, number in zip(data, numbers, strict=True):
        if len(datum) <= plan.most_bytes:
            try:
                rows.append(plan.read(datum))
            except NoText:
                continue
            row_numbers.append(number)
    return _columns(plan, columns, rows, row_numbers)


def _columns(plan: _Plan, columns: Sequence[DirectColumn], rows: Sequence[Any], numbers: Sequence[int]) -> Directly:
    """The columns of fastavro's rows, without the records that have a column left to JSON."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pairs = [
        column([row.get(declared.field) for row in rows]) for column, declared in zip(plan.makers, columns, strict=True)
    ]
    arrays, left = [array for array, _ in pairs], [left for _, left in pairs if left is not None]
    left += [
        pa.array([len(row[name] or b"") > MOST_BYTES_OF_A_DECIMAL for row in rows], pa.bool_()) for name in plan.unread
    ]
    if not any(pc.any(mask).as_py() for mask in left):
        return Directly(arrays, numbers)
    kept = pc.invert(reduce(pc.or_, left))
    kept_numbers = [number for number, is_kept in zip(numbers, kept.to_pylist(), strict=True) if is_kept]
    return Directly([array.filter(kept) for array in arrays], kept_numbers)


class _Plan(NamedTuple):
    """The plan for a schema: the reader of a datum without logical types, and the maker of each column.

    unread: the decimal fields that no column reads
    most_bytes: a larger datum is left to JSON
    """

    read: Callable[[bytes], Any]
    makers: Sequence[ColumnReader]
    unread: Sequence[str]
    most_bytes: int


@lru_cache(maxsize=1_000)
def _plan(schema: Schema, columns: tuple[DirectColumn, ...]) -> _Plan | None:
    """The plan for reading a schema into these columns, or None if the kind of a field does not fit."""
    named: dict[str, Any] = {}
    try:
        fields = {field["name"]: field["type"] for field in parsed(schema, named)["fields"]}
        read = datum_reader(schema, bare=True)
    except (NoText, KeyError, TypeError):
        return None
    makers = [_column(fields.get(column.field, "null"), column.type, named) for column in columns]
    unread = {name: kind for name, kind in fields.items() if name not in {column.field for column in columns}}
    decimals = [name for name, kind in unread.items() if _is_decimal(kind)]
    if None in makers or not all(_has_json(unread[name], named) for name in unread.keys() - set(decimals)):
        return None
    most_bytes = min(MOST_BYTES, as_json.surely_short(names_length(schema)))
    return _Plan(read, [maker for maker in makers if maker is not None], decimals, most_bytes)


def _is_decimal(kind: Any) -> bool:
    """True for a decimal, which may be nullable, with few enough digits after the point that every value has JSON."""
    alone = [branch for branch in (kind if isinstance(kind, list) else [kind]) if branch != "null"]
    return len(alone) == 1 and isinstance(alone[0], dict) and _is_short_decimal(alone[0])


def _is_short_decimal(kind: Mapping[str, Any]) -> bool:
    is_decimal = kind["type"] in ("bytes", "fixed") and kind.get("logicalType") == f"{OWN}decimal"
    return is_decimal and kind.get("scale", 0) <= MOST_DIGITS_BEHIND


def _has_json(kind: Any, named: Mapping[str, Any]) -> bool:
    """True if every value of this kind in a datum of at most `MOST_BYTES` has JSON, and Spark reads it."""
    match kind:
        case {"type": "map"}:  # Spark's reader rejects keys of more than 50,000 characters
            return False
        case {"type": "bytes" | "fixed" as name, "logicalType": logical} if logical == f"{OWN}decimal":
            return name == "fixed" and kind["size"] <= MOST_BYTES_OF_A_DECIMAL and _is_short_decimal(kind)
        case {"type": "fixed", "logicalType": logical} if logical == f"{OWN}uuid":
            return bool(kind["size"] == 16)
    return all(_has_json(inner, named) for inner in inner_types(kind, named))


def _column(kind: Any, type: str, named: Mapping[str, Any]) -> ColumnReader | None:
    """The maker of a column of this type from a field of this kind, or None if they do not fit."""
    if isinstance(kind, list):
        kinds = [branch for branch in kind if branch != "null"]
        return _column(kinds[0] if kinds else "null", type, named) if len(kinds) <= 1 else None
    if isinstance(kind, str) and kind in named:
        kind = named[kind]
    if isinstance(kind, dict) and isinstance(kind["type"], dict | list):
        return _column(kind["type"], type, named)
    name = kind["type"] if isinstance(kind, dict) else kind
    logical = kind.get("logicalType", "").removeprefix(OWN) if isinstance(kind, dict) else ""
    match name, logical, type.partition("(")[0]:
        case ("null", _, _) | ("int" | "long", "", "BIGINT") | ("boolean", "", "BOOLEAN"):
            return _typed(type)
        case "int" | "long", "", "INT":
            return _whole(-(2**31), 2**31 - 1, type)
        case "double" | "float", "plain", "DOUBLE":
            return _finite
        case "string" | "enum", "", "STRING":
            return _text
        case "int", "date", "DATE":
            return _whole(_FIRST_DAY, _LAST_DAY, type)
        case "long", "timestamp-millis" | "timestamp-micros", "TIMESTAMP":
            return _time(1_000 if logical == "timestamp-millis" else 1)
        case "bytes" | "fixed", "decimal", "DECIMAL":
            return _decimal(kind.get("scale", 0), type)
    return None


def _typed(type: str) -> ColumnReader:
    import pyarrow as pa

    arrow = arrow_type(type)
    return lambda values: (pa.array(values, arrow), None)


def _whole(first: int, last: int, type: str) -> ColumnReader:
    """Makes whole numbers within bounds."""
    import pyarrow as pa

    arrow = arrow_type(type)

    def make(values: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
        numbers, outside = _bounded(values, first, last)
        return numbers.cast(pa.int32()).cast(arrow), outside

    return make


def _time(micros: int) -> ColumnReader:
    """Makes times since 1970 from numbers of units of `micros` microseconds."""
    import pyarrow.compute as pc

    first, last = (bound // micros for bound in (_FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1))

    def make(values: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
        numbers, outside = _bounded(values, first, last)
        return pc.multiply(numbers, micros).cast(arrow_type("TIMESTAMP")), outside

    return make


def _decimal(scale: int, type: str) -> ColumnReader | None:
    """Makes decimals from a scale that is at most the column's, or None for a larger one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow = arrow_type(type)
    if not 0 <= scale <= arrow.scale:
        return None
    limit = 10 ** min(arrow.precision - arrow.scale + scale, 18)  # a number of 18 digits has 64 bits

    def make(values: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
        unscaled = [None if digits is None else int.from_bytes(digits, "big", signed=True) for digits in values]
        fit = [number is None or -limit < number < limit for number in unscaled]
        whole = pa.array([number if fits else None for number, fits in zip(unscaled, fit, strict=True)], pa.int64())
        decimals = whole.cast(pa.decimal128(38, 0)).view(pa.decimal128(38, scale)).cast(arrow)
        return decimals, pc.invert(pa.array(fit, pa.bool_()))

    return make


def _text(values: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(values, pa.string())
    return texts, pc.fill_null(pc.match_substring(texts, "\0"), False)


def _finite(values: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pa.array(values, pa.float64())
    return numbers, pc.fill_null(pc.invert(pc.is_finite(numbers)), False)


def _bounded(values: Sequence[Any], first: int, last: int) -> tuple[pa.Array, pa.Array]:
    """The numbers within bounds, with 0 in place of the others, and the mask of the others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pa.array(values, pa.int64())
    outside = pc.fill_null(pc.or_(pc.less(numbers, first), pc.greater(numbers, last)), False)
    return pc.if_else(outside, 0, numbers), outside
