"""Values as JSON text: decimals with every digit, times in ISO 8601, bytes in base64, durations as in Postgres."""

from __future__ import annotations

import binascii
import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Self


def to_json(value: Any) -> str:
    """Encodes a value of Parquet, CSV or Postgres as JSON: decimals keep every digit, bytes become base64.

    >>> to_json({"price": Decimal("1.5"), "at": dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC)})
    '{"price":1.5,"at":"2024-01-02T03:00:00+00:00"}'
    >>> to_json(Decimal("0.12345678901234567890"))
    '0.12345678901234567890'
    """
    try:
        return _encode(value)
    except (ValueError, TypeError):  # a decimal of many digits, or a map whose keys are dates
        return _composed(value, _digit_by_digit)


class Number(float):
    """A JSON number that keeps its text: to Python, `1e5000` is infinity.

    >>> Number("1e5000"), Number("1e5000").text
    (inf, '1e5000')
    """

    text: str

    def __new__(cls, text: str) -> Self:
        """Reads the number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def as_written(value: Any) -> str:
    """Encodes a value as JSON, with the text of each `Number`."""
    return _composed(value, lambda part: part.text if isinstance(part, Number) else to_json(part))


def _composed(value: Any, encode: Callable[[Any], str]) -> str:
    """The JSON of a value whose parts that are not objects or lists are encoded one by one."""
    match value:
        case dict():
            pairs = (f"{_encode(as_text(key))}:{_composed(part, encode)}" for key, part in value.items())
            return "{" + ",".join(pairs) + "}"
        case list() | tuple():
            return "[" + ",".join(_composed(part, encode) for part in value) + "]"
    return encode(value)


def _encodable(value: Any) -> Any:
    """A value that the standard library's encoder can write. Raises ValueError if that would change a number."""
    match value:
        case Decimal():
            near = float(value)
            if Decimal(repr(near)) == value:
                return near
            raise ValueError("more digits than a double has")
    return as_text(value)


def as_text(value: Any) -> str:
    """The text of a value that JSON has no form for: times in ISO 8601, intervals as in Postgres, bytes in base64.

    >>> as_text(dt.date(2024, 1, 2)), as_text(dt.timedelta(hours=26)), as_text(b"ab")
    ('2024-01-02', '1 day 02:00:00', 'YWI=')
    """
    match value:
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return interval(value)
        case bytes() | memoryview():
            return binascii.b2a_base64(bytes(value), newline=False).decode()
    return str(value)


def instant(text: str) -> dt.datetime:
    """The time in an ISO 8601 text, which is UTC's unless it names a zone."""
    time = dt.datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_encodable).encode


def _digit_by_digit(value: Any) -> str:
    """Encodes a decimal of any length, or NaN and infinity by the names that Spark reads."""
    match value:
        case Decimal() if value.is_finite():
            return format(value, "f")
        case float() | Decimal() if not math.isfinite(value):
            return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[str(float(value))]
    return _encode(value)


def interval(length: dt.timedelta) -> str:
    """The duration as Postgres writes and reads it.

    >>> [interval(dt.timedelta(days=days, seconds=seconds)) for days, seconds in ((1, -5400), (0, -0.5), (2, 0))]
    ['22:30:00', '-00:00:00.5', '2 days']
    >>> interval(dt.timedelta(days=-1, seconds=-1)), interval(dt.timedelta(0))
    ('-1 days -00:00:01', '00:00:00')
    """
    sign, size = ("-", -length) if length < dt.timedelta(0) else ("", length)
    days = f"{sign}{size.days} day" + ("" if f"{sign}{size.days}" == "1" else "s") if size.days else ""
    minutes, seconds = divmod(size.seconds, 60)
    fraction = f".{size.microseconds:06d}".rstrip("0").rstrip(".")
    time = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}{fraction}"
    rest = size != dt.timedelta(size.days)
    return " ".join(part for part in (days, time if rest or not days else "") if part)
