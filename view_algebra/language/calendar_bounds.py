"""Keeps times within the years 1 to 9999, except for Postgres' infinities.

Infinities are times after or before every other time, which a view shows as NULL. Debezium writes Postgres' infinities
as numbers. In Spark they are the first instant after the calendar and the start of the last day before it. In Postgres
they are infinities. `Type.endless` marks types that may have them. Functions that return an argument or compare times
keep them. A time computed from an infinity is the same infinity. For any other function they are NULL.

The texts of views (`engines/spark.py`) and the SELECT of `lamina check` (`typed/expressions/guards.py`) share the
guards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from view_algebra.language.expressions import NOW, Call, Expr
from view_algebra.language.quoting import spark_text, words
from view_algebra.language.types import CALENDAR, FIRST_MICROSECOND, Type

KEEPS = words(
    "coalesce nvl ifnull nullif nvl2 if iff greatest least isnull isnotnull equal_null decode to_timestamp to_date"
    " date timestamp count min max first last any_value first_value last_value nth_value lag lead max_by min_by"
)
"""Functions that return one of their times, or compare them."""

MOVES = words(
    "date_trunc trunc date_add dateadd date_sub add_months last_day next_day from_utc_timestamp to_utc_timestamp"
    " timestampadd"
)
"""Functions that compute a time from a time."""

_GUARDED = words(
    "timestamp_seconds timestamp_millis timestamp_micros date_from_unix_date pane_start session_until hop_beyond lambda"
)
"""Functions whose own text keeps times within the calendar, session functions, and lambdas."""

_STAYS_WITHIN = words(
    "finite endless coalesce nvl ifnull nullif nvl2 if greatest least date_trunc trunc to_date to_timestamp"
    " [] . get element_at try_element_at array_max array_min aggregate reduce"
)
"""Functions that return one of their times, or an earlier one within the calendar."""

TIME_ALONE = r"^[\x00-\x20]*(T|[0-9]{1,2}:)"
"""A text that Spark reads as a time of the current day. Here it is not a time."""

READS_TIMES = words("to_timestamp try_to_timestamp to_date unix_timestamp to_unix_timestamp")
"""Functions that read a text as a time, by a pattern or like a cast."""


def finite(time: Expr) -> Expr:
    """The time, or NULL for an infinity."""
    return Call("finite", (time,), replace(time.type, endless=False), place=time.place)


def moved(call: Call, time: Expr) -> Call:
    """The value of a call on a time, for an infinity the same infinity."""
    arguments = tuple(finite(argument) if argument == time else argument for argument in call.arguments)
    of_finite = replace(call, arguments=arguments, type=replace(call.type, endless=False))
    return Call("endless", (of_finite, time), replace(call.type, endless=True), place=call.place)


def without_infinities(kind: Type) -> Type:
    """The type without infinities, as a view shows it."""
    return replace(kind, endless=False)


def leaves_calendar(call: Expr) -> bool:
    """True if a call can return a time outside of the years 1 to 9999 for arguments inside them."""
    if not isinstance(call, Call) or call.type.name not in CALENDAR or call.implicit or call.function in _GUARDED:
        return False
    if call.function in ("cast", "try_cast") or call.function in _STAYS_WITHIN:
        of = call.arguments[-1 if call.function == "date_trunc" else 0].type
        return of.name not in CALENDAR and not of.nested
    return call.function != NOW


def within_calendar(text: str, kind: Type) -> str:
    """Spark SQL of a time that is NULL outside of the years 1 to 9999.

    The text occurs twice in it, unless it is long: nested guards would grow exponentially.
    """
    first, last = CALENDAR[kind.name]
    if len(text) < 1_000:
        return f"CASE WHEN {text} BETWEEN {first} AND {last} THEN {text} END"
    return f"get(filter(array({text}), t -> t BETWEEN {first} AND {last}), 0)"


def ended_within_calendar(end: str, size: int) -> str:
    """Spark SQL of the end of a window of `size` microseconds, or NULL unless all of it is in the years 1 to 9999.

    Its start, the only bound in cells, is then NULL.
    """
    first, last = f"timestamp_micros({FIRST_MICROSECOND + size})", CALENDAR["TIMESTAMP"][1]
    return f"CASE WHEN {end} BETWEEN {first} AND {last} THEN {end} END"


def or_endless(value: str, time: str, kind: Type, gives: Type) -> str:
    """Spark SQL of a value computed from a time, or the same infinity for an infinite time."""
    first, last = CALENDAR[kind.name]
    return f"CASE WHEN NOT {time} BETWEEN {first} AND {last} THEN CAST({time} AS {gives.name}) ELSE {value} END"


def far_apart(time: str, kind: Type) -> str:
    """Spark SQL of a time with its infinities moved beyond the reach of any RANGE frame."""
    first, last = CALENDAR[kind.name]
    before, after = (f"{kind.name} '{sign}150000-01-01'" for sign in "-+")
    return f"CASE WHEN {time} > {last} THEN {after} WHEN {time} < {first} THEN {before} ELSE {time} END"


def read_time(function: str, arguments: Sequence[str]) -> str:
    """Spark SQL of a text as a time. NULL if Spark raises (from the year 294248 on) or the time has no day."""
    text, *pattern = arguments
    if not pattern and function.endswith("to_timestamp"):
        return f"CAST({not_alone(text)} AS TIMESTAMP)"
    if not pattern and function == "to_date":
        return f"to_date({text})"
    by = pattern[0] if pattern else "'yyyy-MM-dd HH:mm:ss'"
    time = f"try_add(to_timestamp({text}, {by}), INTERVAL 0 SECONDS)"
    return time if function.endswith("to_timestamp") else f"{function}({time})"


def not_alone(text: str) -> str:
    """Spark SQL of a text before it is read as a TIMESTAMP, or NULL for a time without its day."""
    return f"CASE WHEN NOT ({text}) RLIKE {spark_text(TIME_ALONE)} THEN {text} END"
