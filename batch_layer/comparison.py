"""Comparison of the rows of a view with those of its SELECT. Doubles may differ within a tolerance."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from serving_layer.promise.overwriting import DOUBLE_TOLERANCE, ROUNDING
from view_algebra.compiled import SHORTENED, View
from view_algebra.language.quoting import quoted

if TYPE_CHECKING:
    from view_algebra.language.types import Type

FLOAT = "real"
"""The column type of a FLOAT in Postgres."""

FLOAT_TOLERANCE = 2**-23
"""The relative distance between neighbouring floats: the last digit of a double may decide which one it rounds to."""

_SHORTENED = re.compile(rf"{SHORTENED}(?P<digest>[0-9a-f]{{64}})$")

Row = tuple[Any, ...]
"""The values of a row, in the order of the view's columns."""


def shown_columns(view: View) -> str:
    """SQL of the view's columns: a FLOAT as a double, since its text has fewer digits, and bytes as base64."""
    shown = {FLOAT: "{}::float8", "bytea": "translate(encode({}, 'base64'), E'\\n', '')"}
    return ", ".join(shown.get(column.postgres, "{}").format(quoted(column.name)) for column in view.columns)


@dataclass(frozen=True)
class RowDifference:
    """The difference of two multisets of rows: `missing` rows are in the first only, `surplus` rows in the second."""

    missing: Sequence[Row]
    surplus: Sequence[Row]

    def __bool__(self) -> bool:
        return bool(self.missing or self.surplus)


def compare(view: View, wanted: list[Row], shown: list[Row]) -> RowDifference:
    """Compares multisets of rows: equal rows cancel, and the others are paired within the tolerance of doubles."""
    inside = {n: kind for n, column in enumerate(view.columns) if (kind := _with_fractions(column.spark)) is not None}
    if inside:
        wanted, shown = ([_row_as_held(row, inside) for row in rows] for rows in (wanted, shown))
    left, right = Counter(map(exact, wanted)), Counter(map(exact, shown))
    missing, surplus = list((left - right).elements()), list((right - left).elements())
    tolerances = [FLOAT_TOLERANCE if column.postgres == FLOAT else DOUBLE_TOLERANCE for column in view.columns]
    unmatched = []
    candidates: dict[Row, list[Row]] = {}
    for row in surplus:
        candidates.setdefault(tuple(map(_as_shown, row)), []).append(row)
    for row in missing:
        near = candidates.get(tuple(map(_as_selected, row)), [])
        match = next((other for other in near if _near(row, other, tolerances, ROUNDING if view.rounded else 0)), None)
        if match is None:
            unmatched.append(row)
        else:
            near.remove(match)
    return RowDifference(unmatched, [row for rows in candidates.values() for row in rows])


def _with_fractions(spark: str) -> Type | None:
    """The type of a column, if it is nested and has a FLOAT or a DOUBLE inside."""
    if spark in ("FLOAT", "DOUBLE") or not any(kind in spark for kind in ("FLOAT", "DOUBLE")):
        return None
    from view_algebra.language.types import type_named

    return type_named(spark)


def _row_as_held(row: Row, inside: Mapping[int, Type]) -> Row:
    """A row with its nested fractions as numbers, which the engines print differently.

    Spark prints a FLOAT as 1.4E-45 and Postgres as 1e-45, and jsonb prints all digits of the DOUBLE 1e39.
    """
    return tuple(_as_held(value, inside[n]) if n in inside else value for n, value in enumerate(row))


def _as_held(value: Any, kind: Type) -> Any:
    if kind.name == "FLOAT" and isinstance(value, (int, float)):
        [held] = struct.unpack("f", struct.pack("f", value))
        return held
    if kind.name == "DOUBLE" and isinstance(value, int):
        return float(value)
    if isinstance(value, list) and kind.element is not None:
        return [_as_held(item, kind.element) for item in value]
    if isinstance(value, dict) and kind.name == "MAP" and kind.element is not None:
        return {key: _as_held(item, kind.element) for key, item in value.items()}
    if isinstance(value, dict):
        fields = dict(kind.fields)
        return {key: _as_held(item, fields[key]) if key in fields else item for key, item in value.items()}
    return value


def exact(row: Row) -> Row:
    """A hashable row that equals every row with the same values, NaN and nested ones included."""
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else _hashable(value) for value in row)


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((key, _hashable(item)) for key, item in value.items()))
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value  # which Postgres cannot hold


def _as_selected(value: Any) -> Any:
    """The same value for all values within the tolerances: the type of a double, the digest of a text."""
    if isinstance(value, str):
        return hashlib.sha256(value.encode()).hexdigest()
    if isinstance(value, list):
        return tuple(_as_selected(float(item) if isinstance(item, int) else item) for item in value)
    return float if isinstance(value, float) else _hashable(value)


def _as_shown(value: Any) -> Any:
    if isinstance(value, str) and (shortened := _SHORTENED.search(value)):
        return shortened["digest"]
    return _as_selected(value)


def _near(row: Row, other: Row, tolerances: Sequence[float], rounding: float) -> bool:
    return all(_close(a, b, tolerance, rounding) for a, b, tolerance in zip(row, other, tolerances, strict=True))


def _close(a: Any, b: Any, tolerance: float, rounding: float) -> bool:
    """True if two values with the same `_as_selected` are within the tolerance."""
    if isinstance(a, list):
        return len(a) == len(b) and all(_close(x, y, tolerance, rounding) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=rounding)
    return bool(a == b) if isinstance(a, int) else True  # other values are equal if `_as_selected` is
