"""What Postgres cannot hold, and which expressions can make it: times beyond its clients, texts that are none."""

from __future__ import annotations

from view_algebra.language.expressions import Call, Constant, Expr, Field
from view_algebra.language.quoting import words
from view_algebra.language.types import CALENDAR
from view_algebra.language.walks import walk

_STAYS_WITHIN = words("coalesce nvl ifnull nullif nvl2 if greatest least date_trunc trunc to_date to_timestamp")


def leaves_calendar(part: Expr) -> bool:
    """Is it a time, or a day, that may be outside of the years 1 to 9999, other than by what it is made of?"""
    if part.type.name not in CALENDAR:
        return False
    if isinstance(part, Field):
        return part.path[0].startswith(MADE)
    if isinstance(part, Call) and (part.function == "cast" or part.function in _STAYS_WITHIN):
        return part.arguments[-1 if part.function == "date_trunc" else 0].type.name not in CALENDAR
    return isinstance(part, Call)


MADE = "made "
"""Begins the names of a generator's columns where it may give what Postgres cannot hold."""


def prefix(argument: Expr) -> str:
    """What begins the names of the columns of a generator."""
    return MADE if any(can_make_any_text(part) or leaves_calendar(part) for part in walk(argument)) else ""


def text_of_bytes(value: str) -> str:
    """Spark SQL of bytes as a text that Postgres can hold: what is no UTF-8 among them, and U+0000, is U+FFFD."""
    return f"replace(make_valid_utf8(CAST({value} AS STRING)), chr(0), '\ufffd')"


def can_make_any_text(part: Expr) -> bool:
    """Can it make a text that no record holds: one with U+0000, or that is no UTF-8?"""
    if isinstance(part, Field):
        return part.path[0].startswith(MADE)
    if not isinstance(part, Call):
        return isinstance(part, Constant) and "\0" in (part.value or "")
    return part.function in words("chr char get_json_object try_url_decode from_json json_tuple")
