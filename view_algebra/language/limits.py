"""Values that Postgres or its clients cannot hold, and the calls that can produce them: times and invalid texts."""

from __future__ import annotations

from view_algebra.language.expressions import NOW, Call, Expr
from view_algebra.language.quoting import words
from view_algebra.language.types import CALENDAR, STRING

_GUARDED = words(
    "timestamp_seconds timestamp_millis timestamp_micros date_from_unix_date pane_start session_until hop_beyond lambda"
)
"""Functions whose own text keeps times within the calendar, session functions, and lambdas."""

_STAYS_WITHIN = words(
    "finite endless coalesce nvl ifnull nullif nvl2 if greatest least date_trunc trunc to_date to_timestamp"
    " [] . get element_at try_element_at array_max array_min aggregate reduce"
)
"""Functions that return one of their times, or an earlier one within the calendar."""


def leaves_calendar(call: Expr) -> bool:
    """True if a call can return a time outside of the years 1 to 9999 for arguments inside them."""
    if not isinstance(call, Call) or call.type.name not in CALENDAR or call.implicit or call.function in _GUARDED:
        return False
    if call.function in ("cast", "try_cast") or call.function in _STAYS_WITHIN:
        of = call.arguments[-1 if call.function == "date_trunc" else 0].type
        return of.name not in CALENDAR and not of.nested
    return call.function != NOW


def makes_any_text(call: Call) -> bool:
    """True if a call can return a text with U+0000 or invalid UTF-8 for valid texts.

    A cast of bytes uses `text_of_bytes` instead.
    """
    return call.type == STRING and call.function in _MAKES_CHARACTERS


def text_of_bytes(value: str) -> str:
    """Spark SQL of bytes as a text that Postgres can store: U+FFFD replaces invalid UTF-8 and U+0000."""
    return f"replace(make_valid_utf8(CAST({value} AS STRING)), chr(0), '\ufffd')"


_MAKES_CHARACTERS = words("chr char get_json_object try_url_decode")
