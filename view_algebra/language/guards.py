"""Spark SQL of guards: where Spark raises, or makes what Postgres cannot hold, the text has NULL, or U+FFFD, instead.

The texts that views are computed by (`engines/spark.py`) and the SELECT of `lamina check` (`typed/guards.py`) share it.
"""

from __future__ import annotations

from collections.abc import Sequence

from view_algebra.language.long_numbers import bounded
from view_algebra.language.quoting import spark_text, words
from view_algebra.language.types import CALENDAR, FIRST_MICROSECOND, Type
from view_algebra.language.unique_keys import with_unique_keys

TIME_ALONE = r"^[\x00-\x20]*(T|[0-9]{1,2}:)"
"""A text that Spark takes for a time of the day on which it is read; here it is no time at all."""


def within_calendar(text: str, kind: Type) -> str:
    """Spark SQL of a time that is NULL outside of the years 1 to 9999.

    The text stands in it twice, unless it is long: guards in guards would grow without end.
    """
    first, last = CALENDAR[kind.name]
    if len(text) < 1_000:
        return f"CASE WHEN {text} BETWEEN {first} AND {last} THEN {text} END"
    return f"get(filter(array({text}), t -> t BETWEEN {first} AND {last}), 0)"


def ended_within_calendar(end: str, size: int) -> str:
    """Spark SQL of the end of a window of so many microseconds, NULL if the window is not all in the years 1 to 9999.

    The start is then NULL, and the start is all that cells keep of a window.
    """
    first, last = f"timestamp_micros({FIRST_MICROSECOND + size})", CALENDAR["TIMESTAMP"][1]
    return f"CASE WHEN {end} BETWEEN {first} AND {last} THEN {end} END"


def or_endless(made: str, time: str, kind: Type, gives: Type) -> str:
    """Spark SQL of what is made of a time; of an infinity the same infinity."""
    first, last = CALENDAR[kind.name]
    return f"CASE WHEN NOT {time} BETWEEN {first} AND {last} THEN CAST({time} AS {gives.name}) ELSE {made} END"


def far_apart(time: str, kind: Type) -> str:
    """Spark SQL of a time whose infinities are further from the calendar than any frame of RANGE reaches."""
    first, last = CALENDAR[kind.name]
    before, after = (f"{kind.name} '{sign}150000-01-01'" for sign in "-+")
    return f"CASE WHEN {time} > {last} THEN {after} WHEN {time} < {first} THEN {before} ELSE {time} END"


def as_text(text: str) -> str:
    """Spark SQL of a text without U+0000, in valid UTF-8."""
    return f"replace(make_valid_utf8({text}), '\\u0000', '\\ufffd')"


ZERO = r"(?<!\\)((?:\\\\)*)\\u0000"
"""U+0000 in JSON, which Postgres cannot hold, behind backslashes that are escaped."""

_REPLACED = r"$1\\ufffd"


def refuses_pattern(pattern: str) -> str:
    """The condition, in Spark SQL, under which Spark stops at a pattern of LIKE."""
    escapes = f"({pattern}) RLIKE {spark_text(ESCAPES_NOTHING)}"
    return f"char_length({pattern}) > {LONGEST_PATTERN} OR {escapes}"


LONGEST_PATTERN = 10_000
"""Characters of a pattern of LIKE that a record holds: Java recurses for each of its `%`."""

ESCAPES_NOTHING = r"(?<!\\)(\\\\)*\\(?![%_\\])"
"""What a pattern of LIKE holds at which Spark stops: a backslash before what needs none, or at its end."""


READS_TIMES = words("to_timestamp try_to_timestamp to_date unix_timestamp to_unix_timestamp")
"""Functions that read a text as a time, by a pattern or as a cast does."""


def read_time(function: str, arguments: Sequence[str]) -> str:
    """A text as a time, in Spark SQL: where Spark raises, as of the year 294248, NULL; a time of day alone is NULL."""
    text, *pattern = arguments
    if not pattern and function.endswith("to_timestamp"):
        return f"CAST({not_alone(text)} AS TIMESTAMP)"
    if not pattern and function == "to_date":
        return f"to_date({text})"
    by = pattern[0] if pattern else "'yyyy-MM-dd HH:mm:ss'"
    time = f"try_add(to_timestamp({text}, {by}), INTERVAL 0 SECONDS)"
    return time if function.endswith("to_timestamp") else f"{function}({time})"


def not_alone(text: str) -> str:
    """A text that is read as a TIMESTAMP; NULL for a time without its day."""
    return f"CASE WHEN NOT ({text}) RLIKE {spark_text(TIME_ALONE)} THEN {text} END"


def read_json(text: str, schema: str, kind: Type) -> str:
    """from_json(), of which Postgres holds what it gives."""
    return with_unique_keys(f"from_json({bounded(clean_json(text), kind)}, {schema})", kind)


def clean_json(text: str) -> str:
    """Spark SQL of a JSON text, U+FFFD in the place of U+0000, which JSON can only escape."""
    return f"regexp_replace({text}, {spark_text(ZERO)}, {spark_text(_REPLACED)})"
