"""Values of binary formats as JSON has them, so that the reader of JSON takes them for the same values."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (UTC, as all times here are)


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
