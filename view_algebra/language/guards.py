"""Guards in Spark SQL: NULL or U+FFFD replaces a value at which Spark raises or which Postgres cannot store.

The texts of views (`engines/spark.py`) and the SELECT of `lamina check` (`typed/scalars.py`) share them.
"""

from __future__ import annotations

from collections.abc import Sequence

from view_algebra.language.long_numbers import bounded
from view_algebra.language.quoting import spark_text, words
from view_algebra.language.types import CALENDAR, FIRST_MICROSECOND, Type
from view_algebra.language.unique_keys import with_unique_keys

TIME_ALONE = r"^[\x00-\x20]*(T|[0-9]{1,2}:)"
"""A text that Spark reads as a time of the current day; here it is not a time."""


def within_calendar(text: str, kind: Type) -> str:
    """Spark SQL of a time that is NULL outside of the years 1 to 9999.

    The text occurs twice in it, unless it is long: nested guards would grow exponentially.
    """
    first, last = CALENDAR[kind.name]
    if len(text) < 1_000:
        return f"CASE WHEN {text} BETWEEN {first} AND {last} THEN {text} END"
    return f"get(filter(array({text}), t -> t BETWEEN {first} AND {last}), 0)"


def ended_within_calendar(end: str, size: int) -> str:
    """Spark SQL of the end of a window of `size` microseconds; NULL unless all of it is in the years 1 to 9999.

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


def as_text(text: str) -> str:
    """Spark SQL of a text without U+0000, in valid UTF-8."""
    return f"replace(make_valid_utf8({text}), '\\u0000', '\\ufffd')"


ZERO = r"(?<!\\)((?:\\\\)*)\\u0000"
"""U+0000 in JSON, which Postgres cannot store, after any escaped backslashes."""

_REPLACED = r"$1\\ufffd"


def refuses_pattern(pattern: str) -> str:
    """The condition, in Spark SQL, that Spark fails at a pattern of LIKE."""
    escapes = f"({pattern}) RLIKE {spark_text(ESCAPES_NOTHING)}"
    return f"char_length({pattern}) > {LONGEST_PATTERN} OR {escapes}"


LONGEST_PATTERN = 10_000
"""Most characters of a LIKE pattern from a record: Java recurses for each `%`."""

ESCAPES_NOTHING = r"(?<!\\)(\\\\)*\\(?![%_\\])"
"""A part of a LIKE pattern at which Spark fails: a backslash before a character that needs none, or at the end."""


READS_TIMES = words("to_timestamp try_to_timestamp to_date unix_timestamp to_unix_timestamp")
"""Functions that read a text as a time, by a pattern or like a cast."""


def read_time(function: str, arguments: Sequence[str]) -> str:
    """Spark SQL of a text as a time; NULL if Spark raises (from the year 294248 on), or for a time without its day."""
    text, *pattern = arguments
    if not pattern and function.endswith("to_timestamp"):
        return f"CAST({not_alone(text)} AS TIMESTAMP)"
    if not pattern and function == "to_date":
        return f"to_date({text})"
    by = pattern[0] if pattern else "'yyyy-MM-dd HH:mm:ss'"
    time = f"try_add(to_timestamp({text}, {by}), INTERVAL 0 SECONDS)"
    return time if function.endswith("to_timestamp") else f"{function}({time})"


def not_alone(text: str) -> str:
    """Spark SQL of a text before it is read as a TIMESTAMP; NULL for a time without its day."""
    return f"CASE WHEN NOT ({text}) RLIKE {spark_text(TIME_ALONE)} THEN {text} END"


def read_json(text: str, schema: str, kind: Type) -> str:
    """Spark SQL of from_json() with a result that Postgres can store."""
    return with_unique_keys(f"from_json({bounded(clean_json(text), kind)}, {schema})", kind)


def clean_json(text: str) -> str:
    """Spark SQL of a JSON text with U+FFFD in place of U+0000, which JSON can only escape."""
    return f"regexp_replace({text}, {spark_text(ZERO)}, {spark_text(_REPLACED)})"
