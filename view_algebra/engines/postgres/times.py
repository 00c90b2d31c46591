"""Times in Postgres' SQL: moved by a length, apart from each other, and the windows that they are in."""

from __future__ import annotations

from view_algebra.engines.postgres.writing import ADD, ATOM, CAST, MULTIPLY, Reading, constant
from view_algebra.language.expressions import Call, Constant
from view_algebra.language.times import MONTHS
from view_algebra.language.types import DATE, TIMESTAMP
from view_algebra.refusals import Wrong


def months_apart(call: Call, reading: Reading) -> tuple[str, int]:
    """Whole months, quarters or years between two times."""
    unit, *times = call.arguments
    begin, end = (reading.text(each, CAST) for each in times)
    whole = f"spark.months_apart({begin} AT TIME ZONE 'UTC', {end} AT TIME ZONE 'UTC')"
    months = MONTHS[str(getattr(unit, "value", "")).lower()]
    return (whole, ATOM) if months == 1 else (f"{whole} / {months}", MULTIPLY)


def window_start(call: Call, reading: Reading) -> tuple[str, int]:
    """The start of the tumbling window that a time is in."""
    size, offset, *slide = (int(str(getattr(a, "value", 0))) for a in call.arguments[1:])
    if slide:
        way_out = "Hop over the records, or add up by sum(x) OVER (ORDER BY t RANGE BETWEEN INTERVAL … PRECEDING …)."
        raise Wrong(call.place, "a hopping window above the aggregation", way_out)
    return f"date_bin({length(size)}, {reading.text(call.arguments[0])}, {origin(offset)})", ATOM


def origin(offset: int) -> str:
    """When windows are counted from."""
    return "timestamptz '1970-01-01 00:00:00+00'" + (f" + {length(offset)}" if offset else "")


def window_end(call: Call, reading: Reading) -> tuple[str, int]:
    """The end of a window, from its start."""
    size = int(str(getattr(call.arguments[1], "value", 0)))
    return f"{reading.text(call.arguments[0], ADD)} + {length(size)}", ADD


def shifted(call: Call, reading: Reading) -> tuple[str, int]:
    """A time moved by an INTERVAL; days and months are those of UTC, whatever a reader's time zone."""
    time, by = call.arguments
    sign, text = call.function[0], reading.text(time, ADD)
    unit = str(getattr(by, "value", "")).split(" ")[-1]
    interval = constant(by) if isinstance(by, Constant) else ""
    if time.type == DATE:
        return f"({text} {sign} {interval})::date", CAST
    if time.type == TIMESTAMP and unit in ("day", "week", "month", "quarter", "year"):
        return f"({reading.text(time, CAST)} AT TIME ZONE 'UTC' {sign} {interval}) AT TIME ZONE 'UTC'", 0
    return f"{text} {sign} {interval}", ADD


def length(microseconds: int) -> str:
    """A length of time as an interval of seconds."""
    whole, rest = divmod(microseconds, 1_000_000)
    return f"interval '{whole}.{rest:06d} seconds'" if rest else f"interval '{whole} seconds'"
