"""Times in Postgres' SQL: shifts, differences, and the windows that contain them."""

from __future__ import annotations

from collections.abc import Sequence

from view_algebra.engines.postgres.writing import ADD, ATOM, CAST, MULTIPLY, Reading
from view_algebra.language.expressions import Call
from view_algebra.language.quoting import postgres_name
from view_algebra.language.times import MONTHS
from view_algebra.language.types import DAYS, DURATION, Type


def months_apart(call: Call, reading: Reading) -> tuple[str, int]:
    """The number of whole months, quarters or years between two times."""
    unit, *times = call.arguments
    begin, end = (reading.text(each, CAST) for each in times)
    whole = f"spark.months_apart({begin} AT TIME ZONE 'UTC', {end} AT TIME ZONE 'UTC')"
    months = MONTHS[str(getattr(unit, "value", "")).lower()]
    return (whole, ATOM) if months == 1 else (f"{whole} / {months}", MULTIPLY)


def window_start(call: Call, reading: Reading) -> tuple[str, int]:
    """The start of the tumbling window that contains a time."""
    size, offset = (int(str(getattr(a, "value", 0))) for a in call.arguments[1:])
    return f"spark.shown(date_bin({length(size)}, {reading.text(call.arguments[0])}, {origin(offset)}))", ATOM


def hops(window: Call, reading: Reading) -> str:
    """The starts of the hopping windows that contain a time, as rows; no rows for NULL."""
    size, offset, slide = (int(str(getattr(a, "value", 0))) for a in window.arguments[1:])
    time, step = reading.text(window.arguments[0]), length(slide)
    last = f"date_bin({step}, {time}, {origin(offset)})"
    earliest = f"{reading.text(window.arguments[0], ADD)} - {length(size)} + interval '1 microsecond'"
    return f"generate_series({last}, {earliest}, -{step})"


def origin(offset: int) -> str:
    """The time from which windows are counted."""
    return "timestamptz '1970-01-01 00:00:00+00'" + (f" + {length(offset)}" if offset else "")


def window_end(call: Call, reading: Reading) -> tuple[str, int]:
    """The end of a window, from its start."""
    size = int(str(getattr(call.arguments[1], "value", 0)))
    return f"spark.shifted({reading.text(call.arguments[0])}, {length(size)})", ATOM


def whole_end(end: Call, reading: Reading) -> str:
    """The end of a window, even after the end of the calendar."""
    return f"{reading.text(end.arguments[0], ADD)} + {length(int(str(getattr(end.arguments[1], 'value', 0))))}"


def shifted(call: Call, reading: Reading) -> tuple[str, int]:
    """A time shifted by an INTERVAL, with days and months in UTC; NULL outside of the calendar."""
    time, by = call.arguments
    sign = "-" if call.function[0] == "-" else ""
    return f"spark.shifted({reading.text(time)}, {sign}{reading.text(by)})", ATOM


def length(microseconds: int) -> str:
    """A duration as an interval of seconds."""
    whole, rest = divmod(microseconds, 1_000_000)
    return f"interval '{whole}.{rest:06d} seconds'" if rest else f"interval '{whole} seconds'"


def counted(call: Call, reading: Reading) -> tuple[str, int]:
    """The number of days, or of microseconds, of an interval of another view."""
    interval = reading.text(call.arguments[0])
    if call.arguments[0].type == DAYS:
        return f"extract(day FROM {interval})::bigint", CAST
    return f"(extract(epoch FROM {interval}) * 1000000)::bigint", CAST


_INTERVALS = {
    DAYS: "CASE WHEN abs({0}) <= 106751991 THEN make_interval(days => {0}::integer) END",
    DURATION: "make_interval(days => ({0} / 86400000000)::integer, secs => {0} % 86400000000 / 1000000.0)",
}
"""Numbers as intervals: days, within Spark's bound of 2^63 microseconds, or microseconds."""


def with_lengths(final: str, columns: Sequence[tuple[str, Type]]) -> str:
    """The text of a view, with Postgres' intervals in place of numbers that are durations."""
    if not any(kind in _INTERVALS for _, kind in columns):
        return final
    named = ((postgres_name(name), _INTERVALS.get(kind)) for name, kind in columns)
    shown = (name if form is None else f"{form.format(name)} AS {name}" for name, form in named)
    return "SELECT\n  " + ",\n  ".join(shown) + f"\nFROM (\n{final}\n) AS numbers"
