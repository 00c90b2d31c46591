"""Spark's rules for reading JSON values into columns, checked before anything is sent.

A record whose value breaks them goes to quarantine when it is read. `lamina ingest` reports it before it is sent.
"""

from __future__ import annotations

import binascii
import datetime as dt
import json
import math
import re
import zoneinfo
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from interchange.json_text import Number
from view_algebra.compiled import Source
from view_algebra.language.encodings import UNITS
from view_algebra.language.types import STRING, Type, rewritten_type, type_named
from view_algebra.records.fields import THOUSANDS

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
"""Bits of the whole-number types."""

_NOT_FINITE = ("NaN", "Infinity", "+Infinity", "-Infinity", "+INF", "-INF")
_TIMESTAMP = re.compile(
    r"""(?P<year>\d{4}) (?: -(?P<month>\d{1,2}) (?: -(?P<day>\d{1,2}) (?: (?P<rest>[T\ ].*) )? )? )?""", re.VERBOSE
)
_TIME = re.compile(
    r"""[T\ ] (?P<hour>\d{1,2}) (?: : (?P<minute>\d{1,2}) (?: : (?P<second>\d{1,2}) (?: \.\d* )? )? )?
        \ ? (?P<zone>[A-Za-z+-].*)?""",
    re.VERBOSE,
)
_USUAL = re.compile(
    r"(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"(?:[T ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d*)?(Z)?)?"
)
"""Times that are valid for certain. The group is a zone, which only a TIMESTAMP has."""

_OFFSET = re.compile(r"Z|(?:UTC|GMT|UT)?(?:[+-](?P<hours>\d{1,2})(?::?(?P<minutes>[0-5]?\d)(?::?[0-5]?\d)?)?)?")
_EXACT = Context(prec=100, rounding=ROUND_HALF_UP)


def columns(source: Source) -> dict[str, Type]:
    """The type of each declared column by its field name in JSON. Times carry the declared unit of numbers."""
    unit = UNITS.get(source.properties.get("epoch", ""), "")
    kinds = {source.field(column.name): type_named(column.spark) or STRING for column in source.columns}
    return {name: rewritten_type(kind, lambda part: replace(part, unit=unit)) for name, kind in kinds.items()}


def fits(kind: Type, value: Any) -> bool:
    """True if the JSON value can be read as this type. NULL fits every type.

    >>> fits(Type("INT"), 7), fits(Type("INT"), 7.5), fits(Type("INT"), "7"), fits(Type("TINYINT"), 200)
    (True, False, True, False)
    """
    return value is None or _FITS[kind.name](kind, value)


def rule(kind: Type) -> Callable[[Type, Any], bool]:
    """The check of `fits` for a type, on values that are not NULL."""
    return _FITS[kind.name]


def from_text(kind: Type, text: str) -> Any:
    """The JSON value of a CSV field, NULL if it is empty. A text that does not fit the type stays a text.

    >>> [from_text(Type("INT"), text) for text in ("7", "", "x")], from_text(Type("STRING"), "7")
    ([7, None, 'x'], '7')
    >>> [from_text(Type("DOUBLE"), text) for text in ("1.5", "1_5")], from_text(Type("DECIMAL"), "sNaN")
    ([1.5, '1_5'], 'sNaN')
    """
    if text == "":
        return None
    stripped = text.strip()
    match kind.name:
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return int(stripped) if re.fullmatch(r"[+-]?\d{1,19}", stripped) else text
        case "FLOAT" | "DOUBLE" | "DECIMAL" if "_" in stripped:  # Python would ignore the underscore
            return text
        case "FLOAT" | "DOUBLE":
            try:
                return stripped if stripped in _NOT_FINITE else float(stripped)
            except ValueError:
                return text
        case "DECIMAL":
            try:
                number = Decimal("NaN" if _LONG.search(stripped) else stripped)
            except InvalidOperation:
                return text
            return number if number.is_finite() else text
        case "BOOLEAN":
            return {"true": True, "false": False}.get(stripped.lower(), text)
        case "TIMESTAMP" | "TIMESTAMP_NTZ" | "DATE":
            return Decimal(stripped) if kind.unit and _BARE.fullmatch(stripped) else stripped
        case "STRUCT" | "ARRAY" | "MAP":
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                return text
    return text


def _nested(kind: Type, value: Any) -> bool:
    if kind.name == "ARRAY":
        return isinstance(value, list) and all(fits(kind.element or STRING, element) for element in value)
    if not isinstance(value, dict):
        return False
    if kind.name == "MAP":
        return all("\0" not in key and fits(kind.element or STRING, element) for key, element in value.items())
    return all(fits(inner, value.get(name)) for name, inner in kind.fields)


def _integer(kind: Type, value: Any) -> bool:
    if isinstance(value, str):
        if not _WHOLE.fullmatch(text := value.strip(BLANK)):
            return False
        value = Decimal(text)
    if isinstance(value, (float, Decimal)):
        if isinstance(value, Number):
            return _integer(kind, value.text)
        if not math.isfinite(value) or value != int(value):
            return False
        value = int(value)
    return _whole(value) and -(1 << BITS[kind.name] - 1) <= value < 1 << BITS[kind.name] - 1


BLANK = "".join(map(chr, range(0x21)))
"""Characters that Spark strips from a text before it reads a number."""

_WHOLE = re.compile(r"[+-]?(?:[0-9]{1,20}(?:\.0*)?|[0-9]{1,18}(?:\.[0-9]{1,9})?[eE](?:\+?[0-9]{1,2}|-[0-9]))")
_DOUBLE = re.compile(r"(?i:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,5})?|NaN|[+-]?Inf(?:inity)?)")
"""Texts that a second reading accepts as a whole number, or as a double."""


def _double(_: Type, value: Any) -> bool:
    return bool(_DOUBLE.fullmatch(value.strip(BLANK))) if isinstance(value, str) else _number(value)


def _boolean(_: Type, value: Any) -> bool:
    if isinstance(value, str):
        return value.strip(BLANK).lower() in ("true", "false", "0", "1")
    return isinstance(value, bool) or (_whole(value) and value in (0, 1))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _since_1970(kind: Type, value: Any) -> bool:
    """True if a number in the declared unit is a time of the years 1 to 9999. Without a unit, no number is."""
    number = Decimal(value) if _number(value) else Decimal("NaN")
    if not kind.unit or not number.is_finite() or number.adjusted() > 20:  # its product may exceed even a Decimal
        return False
    unit = Decimal(kind.unit)
    return -62_135_596_800 <= number * unit / 1_000_000 < 253_402_300_800 or _infinite(abs(number), unit)


def _infinite(number: Decimal, unit: Decimal) -> bool:
    """True if a number means infinity, which is NULL."""
    if unit == 1000:
        return 9223372036825200 <= number <= 9223372036854776
    return unit <= 1 and 9223372036825200000 <= number <= 9223372036854775808


def _base64(text: str) -> bool:
    if not text.strip(BLANK):
        return True
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return len(text) % 4 == 0


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


_LONG = re.compile(r"[eE][+-]?[0-9]{4}|^.{1001}", re.DOTALL)
"""Numbers that quarantine calls too long for a DECIMAL, because their zeros would be written out."""


_BARE = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_THOUSANDS = re.compile(THOUSANDS)
"""A decimal in a text: commas only between thousands, and no underscores."""


def _decimal(kind: Type, value: Any) -> bool:
    if isinstance(value, Number):
        value = value.text
    if isinstance(value, str):
        value = value.strip(BLANK)
        if _LONG.search(value) or not (_BARE.fullmatch(value) or _THOUSANDS.fullmatch(value)):
            return False
        value = value.replace(",", "")
    try:
        rounded = Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    except InvalidOperation:
        return False
    return rounded.is_finite() and len(rounded.as_tuple().digits) <= kind.precision


def _timestamp(kind: Type, text: str) -> bool:
    """True if Spark reads the text, which may be more than ISO 8601. A DATE's time of day is not read."""
    usual = _USUAL.fullmatch(text)
    if usual and (usual[1] is None or kind.name == "TIMESTAMP"):
        return True
    date = _TIMESTAMP.fullmatch(text.strip())
    time = _TIME.fullmatch((date and date["rest"]) or " 0") if kind.name != "DATE" else None
    if not date or (kind.name != "DATE" and not time):
        return False
    hour, minute, second = (int((time and time[part]) or 0) for part in ("hour", "minute", "second"))
    try:
        dt.datetime(
            int(date["year"]), int(date["month"] or 1), int(date["day"] or 1), hour, minute, second, tzinfo=dt.UTC
        )
    except ValueError:
        return False
    zone = time["zone"] if time else None
    return zone is None or (kind.name == "TIMESTAMP" and _zone(zone))


def _zone(name: str) -> bool:
    offset = _OFFSET.fullmatch(name)
    if offset:
        return int(offset["hours"] or 0) * 60 + int(offset["minutes"] or 0) <= 18 * 60
    return name in zoneinfo.available_timezones()


_FITS: dict[str, Callable[[Type, Any], bool]] = {
    # Spark keeps any value's JSON as text. Postgres has no character U+0000.
    "STRING": lambda _, value: not (isinstance(value, str) and "\0" in value),
    "BOOLEAN": _boolean,
    **dict.fromkeys(BITS, _integer),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _double),
    "DECIMAL": lambda kind, value: (isinstance(value, str) or _number(value)) and _decimal(kind, value),
    "BINARY": lambda _, value: isinstance(value, str) and _base64(value),
    **dict.fromkeys(
        ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"),
        lambda kind, value: _timestamp(kind, value) if isinstance(value, str) else _since_1970(kind, value),
    ),
    **dict.fromkeys(("STRUCT", "ARRAY", "MAP"), _nested),
}
