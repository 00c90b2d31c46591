"""Values of binary formats as JSON has them, so that the reader of JSON takes them for the same values."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

from view_algebra.formats.interface import NoText

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of the JSON of one value, about. Each record in a list has the names of its fields there, and takes one byte in
Avro and two in Protobuf: a value of 1 MB could have gigabytes."""

_OF_A_BYTE = 1_000
"""Bytes of JSON that a byte of a value has at most, besides names; and values that take no byte."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (UTC, as all times here are)


def surely_short(names: int) -> int:
    """Bytes up to which a datum has no JSON that is too long, whatever it holds. names: the length of all names that
    its schema has.
    """
    return max(0, MOST_BYTES // (names + _OF_A_BYTE) - _OF_A_BYTE)


def text(value: Any, datum: bytes, names: int) -> str:
    """The JSON of the value that a datum is; raises `NoText` if it would be too long. names: as `surely_short` says."""
    import orjson

    if len(datum) > surely_short(names) and _is_too_long(value):
        raise NoText(f"its JSON would be longer than {MOST_BYTES:,} bytes")
    return orjson.dumps(value).decode()


def _is_too_long(value: Any) -> bool:
    left, rest = MOST_BYTES, [value]
    while rest and left >= 0:
        match rest.pop():
            case dict() as fields:
                left -= sum(map(len, fields)) + 6 * len(fields)
                rest += fields.values()
            case list() as items:
                left -= len(items)
                rest += items
            case str() as written:
                left -= len(written)
            case _:
                left -= 10
    return left < 0


def instant(per_second: int, zone: str) -> Callable[[int], str]:
    """Gives the text of a time since 1970, with the digits that its unit has; of one beyond the calendar, its number.

    >>> instant(1_000, "Z")(1_500)
    '1970-01-01T00:00:01.500Z'
    """
    digits = len(str(per_second)) - 1

    def text(number: int) -> str:
        seconds, part = divmod(number, per_second)
        try:
            return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat()}.{part:0{digits}}{zone}"
        except OverflowError:
            return f"{number} since 1970"

    return text


def day(number: int) -> str:
    """The text of a day since 1970; of one beyond the calendar, its number."""
    try:
        return date.fromordinal(_EPOCH.toordinal() + number).isoformat()
    except (OverflowError, ValueError):
        return f"day {number} since 1970"


def time_of_day(per_second: int) -> Callable[[int], str]:
    """Gives the text of a time since midnight, with the digits that its unit has."""
    digits = len(str(per_second)) - 1

    def text(number: int) -> str:
        seconds, part = divmod(number, per_second)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{part:0{digits}}"

    return text


def decimal(unscaled: int, scale: int) -> Any:
    """A number with as many digits behind the point as its scale says."""
    import orjson

    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    point = len(digits) - scale
    text = f"{digits[:point]}.{digits[point:]}" if scale else digits
    return orjson.Fragment(f"-{text}" if unscaled < 0 else text)


def in_base64(value: bytes) -> str:
    """Bytes as the reader of BINARY takes them."""
    return base64.b64encode(value).decode("ascii")


def number(value: float) -> float | str:
    """JSON has no infinity and no NaN: the words that Spark reads for them."""
    return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
