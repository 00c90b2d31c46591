"""What Postgres cannot hold, and which calls can make it: times beyond its clients, and texts that are not texts."""

from __future__ import annotations

from view_algebra.language.expressions import NOW, Call, Expr
from view_algebra.language.quoting import words
from view_algebra.language.types import CALENDAR, STRING

_GUARDED = words(
    "timestamp_seconds timestamp_millis timestamp_micros date_from_unix_date pane_start session_until hop_beyond lambda"
)
"""Functions whose own text keeps them within the calendar, what a session is merged by, and lambdas."""

_STAYS_WITHIN = words(
    "finite endless coalesce nvl ifnull nullif nvl2 if greatest least date_trunc trunc to_date to_timestamp"
    " [] . get element_at try_element_at array_max array_min aggregate reduce"
)
"""Functions that give a time of those that they take, or one before it that is within the calendar."""


def leaves_calendar(call: Expr) -> bool:
    """True if a call can make a time outside of the years 1 to 9999 of arguments that are within them."""
    if not isinstance(call, Call) or call.type.name not in CALENDAR or call.implicit or call.function in _GUARDED:
        return False
    if call.function in ("cast", "try_cast") or call.function in _STAYS_WITHIN:
        of = call.arguments[-1 if call.function == "date_trunc" else 0].type
        return of.name not in CALENDAR and not of.nested
    return call.function != NOW


def makes_any_text(call: Call) -> bool:
    """True if a call can make a text with U+0000, or one that is not UTF-8, of texts that are neither.

    A cast of bytes gives `text_of_bytes`.
    """
    return call.type == STRING and call.function in _MAKES_CHARACTERS


def text_of_bytes(value: str) -> str:
    """Spark SQL of bytes as a text that Postgres can hold: what is no UTF-8 among them, and U+0000, is U+FFFD."""
    return f"replace(make_valid_utf8(CAST({value} AS STRING)), chr(0), '\ufffd')"


_MAKES_CHARACTERS = words("chr char get_json_object try_url_decode")
