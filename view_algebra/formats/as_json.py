"""Converts values of binary formats to JSON that the reader of JSON reads as the same values."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

from view_algebra.formats.interface import NoText

MOST_BYTES = 64 * 1024 * 1024
"""Most bytes, approximately, of one value's JSON. Every record in a list repeats its field names there, but may take
only one byte in Avro and two in Protobuf, so 1 MB could become gigabytes."""

_OF_A_BYTE = 1_000
"""Most bytes of JSON per byte of a value, besides names. Also most values that take no byte."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (UTC, like all times here)


def surely_short(names: int) -> int:
    """Bytes up to which a datum's JSON is never too long. names: the total length of its schema's names."""
    return max(0, MOST_BYTES // (names + _OF_A_BYTE) - _OF_A_BYTE)


def text(value: Any, datum: bytes, names: int) -> str:
    """The JSON of a datum's value. Raises `NoText` if it would be too long. names: as in `surely_short`."""
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
            case str() as characters:
                left -= len(characters)
            case _:
                left -= 10
    return left < 0


def instant(per_second: int, zone: str) -> Callable[[int], str]:
    """Returns the function from a number of units since 1970 to its text. Beyond the calendar, it shows the number.

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
    """The text of a day since 1970. Beyond the calendar, it shows the number."""
    try:
        return date.fromordinal(_EPOCH.toordinal() + number).isoformat()
    except (OverflowError, ValueError):
        return f"day {number} since 1970"


def time_of_day(per_second: int) -> Callable[[int], str]:
    """Returns the function from a number of units since midnight to its text."""
    digits = len(str(per_second)) - 1

    def text(number: int) -> str:
        seconds, part = divmod(number, per_second)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{part:0{digits}}"

    return text


def decimal(unscaled: int, scale: int) -> Any:
    """A JSON number with `scale` digits after the point."""
    import orjson

    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    point = len(digits) - scale
    text = f"{digits[:point]}.{digits[point:]}" if scale else digits
    return orjson.Fragment(f"-{text}" if unscaled < 0 else text)


def in_base64(value: bytes) -> str:
    """Bytes in the form that is read as BINARY."""
    return base64.b64encode(value).decode("ascii")


def number(value: float) -> float | str:
    """The number, or Spark's word for infinity and NaN, which JSON lacks."""
    return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
