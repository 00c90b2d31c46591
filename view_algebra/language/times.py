"""Intervals, and their arithmetic with times.

The clock: `now()` and similar functions return the moment at which a view is read. No record decides it, so Postgres
computes them, as the time of the reader's transaction. Dates and local times are in UTC, as in Spark's session.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile

from sqlglot import exp

from view_algebra.language.aggregates import AGGREGATES
from view_algebra.language.expressions import NOW, Aggregate, Call, Constant, Expr, Place
from view_algebra.language.lengths import MICROSECONDS, is_length, length, microseconds_of
from view_algebra.language.lengths import number as number_of
from view_algebra.language.meeting import TIME_TYPES, cast, text_as
from view_algebra.language.operators import calculate, number, quotient
from view_algebra.language.overloads import call
from view_algebra.language.quoting import words
from view_algebra.language.types import (
    BIGINT,
    DATE,
    DAYS,
    DOUBLE,
    DURATION,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Type,
    decimal,
)
from view_algebra.refusals import Wrong, span

CLOCK: dict[str, Type] = {
    "now": TIMESTAMP,
    "current_timestamp": TIMESTAMP,
    "localtimestamp": TIMESTAMP_NTZ,
    "current_date": DATE,
    "curdate": DATE,
}
"""Functions that return the current time, with their types."""

NOW_IN_SPARK = "system.session.lamina_now"
"""A variable of Spark's session: the time of the snapshot that the oracle is compared with."""


def clock_call(name: str, place: Place) -> Expr:
    """The expression of a function of the clock."""
    return cast(Call(NOW, (), TIMESTAMP, place=place), CLOCK[name.lower()])


def in_spark(name: str) -> str:
    """The function in the SELECT that Spark runs."""
    kind = CLOCK[name.lower()]
    return NOW_IN_SPARK if kind == TIMESTAMP else f"CAST({NOW_IN_SPARK} AS {kind.spark})"


TIMED = words("timestampdiff timestampadd datediff date_diff dateadd date_add")
"""Functions whose first argument may be a unit of time: `timestampdiff(MINUTE, a, b)`."""

LONGEST_SHIFT = 9_999
"""Most years of a shift: Spark raises if the result leaves its own calendar."""


ONE_UNIT = "Write INTERVAL 90 MINUTES; of a column, ts + n * INTERVAL 1 MINUTE."
"""The way out for an interval that the engines would read differently."""


def interval(node: exp.Interval) -> Constant:
    """The constant of an INTERVAL with a whole number of one unit. Raises `Wrong` for others."""
    value, unit = node.this, (node.args.get("unit") or exp.Var(this="")).name.lower().rstrip("s")
    text = value.name if isinstance(value, exp.Literal) else ""
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        text = f"-{value.this.name}"
    if unit == "quarter":
        raise Wrong(span(node), "Spark rejects an interval of quarters", "Write INTERVAL 6 MONTHS.")
    if not re.fullmatch(r"-?\d{1,9}", text) or unit not in (*MICROSECONDS, "month", "year"):
        raise Wrong(span(node), "an interval is a whole number of one unit", ONE_UNIT)
    longest = {"year": LONGEST_SHIFT, "month": LONGEST_SHIFT * 12}.get(
        unit, LONGEST_SHIFT * 365 * MICROSECONDS["day"] // MICROSECONDS.get(unit, 1)
    )
    if abs(int(text)) > longest:
        raise Wrong(span(node), "the interval is longer than 9,999 years", "Choose a shorter one.")
    return Constant(f"{int(text)} {unit}", INTERVAL, span(node))


def microseconds(argument: Expr, place: Place, of: str = "window") -> int:
    """The microseconds of a window's length, written as '1 hour 30 minutes'."""
    text = argument.value if isinstance(argument, Constant) and argument.type in (STRING, INTERVAL) else None
    if text is None:
        what = f"{of}() takes a length known when it is declared"
        raise Wrong(argument.place or place, what, f"Write {of}(ts, '1 hour').")
    total, pieces = 0, re.findall(r"(-?\d+)\s*([a-z]+)", text.lower().removeprefix("interval").strip())
    for count, unit in pieces:
        factor = MICROSECONDS.get(unit.rstrip("s") if unit.rstrip("s") in MICROSECONDS else unit)
        if factor is None:
            way_out = "Write date_trunc('month', ts)." if of == "window" else "Write the gap in days."
            raise Wrong(argument.place or place, f"{of}() does not take a {unit}, whose length varies", way_out)
        total += int(count) * factor
    if not pieces or re.sub(r"(-?\d+)\s*([a-z]+)", "", text.lower().removeprefix("interval")).strip():
        raise Wrong(argument.place or place, f"{text!r} is not a length of time", f"Write {of}(ts, '1 hour').")
    return total


def shifted(operator: str, left: Expr, right: Expr, place: Place) -> Expr | None:
    """A time plus or minus an interval or days, or the difference of two times, or None for plain numbers."""
    if operator == "-" and left.type == STRING and right.type == DATE:
        left = text_as(left, DATE)
    if is_length(left) and is_length(right):
        return None
    if operator == "+" and is_length(left):
        left, right = right, left
    if right.type == INTERVAL and isinstance(right, Constant):
        unit = (right.value or "").split(" ")[1]
        if left.type == DATE and unit not in ("day", "week", "month", "year"):
            left = cast(left, TIMESTAMP, implicit=True)
        if left.type not in TIME_TYPES:
            raise Wrong(place, f"{operator} does not take {left.type} and an interval", "Add intervals to times.")
        return Call(f"{operator} interval", (left, right), left.type, place=place)
    if left.type in TIME_TYPES and right.type in TIME_TYPES and operator == "-":
        return _apart(left, right, place)
    right = cast(number_of(right), INT) if left.type == DATE and right.type == DAYS else right
    if left.type == DATE and right.type.integral:
        return call("date_add" if operator == "+" else "date_sub", [left, right], place)
    if left.type in (DATE, TIMESTAMP) and right.type == DURATION:
        micros = call("unix_micros", [cast(left, TIMESTAMP)], place)
        moved = call("timestamp_micros", [calculate(operator, micros, number_of(right), place)], place)
        return replace(moved, type=TIMESTAMP)
    if left.type in TIME_TYPES or right.type in TIME_TYPES:
        way_out = "Write CAST(… AS TIMESTAMP)." if right.type == DURATION else "Write ts + INTERVAL 5 MINUTES."
        if STRING in (left.type, right.type):
            way_out = "Write CAST(… AS TIMESTAMP), or AS DATE."
        raise Wrong(place, f"{operator} does not take {left.type} and {right.type}", way_out)
    return None


def _apart(end: Expr, begin: Expr, place: Place) -> Expr:
    """The interval between two times."""
    if end.type == begin.type == DATE:
        return length(cast(call("datediff", [end, begin], place), BIGINT), DAYS)
    until, since = (call("unix_micros", [cast(time, TIMESTAMP)], place) for time in (end, begin))
    return length(calculate("-", until, since, place), DURATION)


def cast_of(of: Expr, kind: Type, place: Place) -> Expr:
    """CAST of an interval to a number: its days, if it is a difference of dates, or its seconds."""
    _refuse_written(of, place)
    count = number_of(of, place)
    if kind.integral:
        second = Constant(str(MICROSECONDS["second"]), BIGINT)
        return cast(count if of.type == DAYS else Call("div", (count, second), BIGINT, place=place), kind)
    if kind.name != "DECIMAL":
        way_out = (
            "Write CAST(… AS BIGINT), which is its seconds, or the days between two dates. Or write AS DECIMAL(20, 6)."
        )
        raise Wrong(place, f"{of.type} cannot be cast to {kind}", way_out)
    return cast(count if of.type == DAYS else calculate("*", count, number("0.000001"), place), kind)


def _refuse_written(of: Expr, place: Place) -> None:
    if of.type == INTERVAL:
        raise Wrong(of.place or place, "a literal INTERVAL cannot be cast to a number", "Write the number itself.")


_FIELDS = {
    "day": (None, "day", INT),
    "hour": ("day", "hour", TINYINT),
    "minute": ("hour", "minute", TINYINT),
    "second": ("minute", "microsecond", decimal(8, 6)),
}
"""Fields of an interval: the enclosing unit, the field's own unit, and its type."""


def field_of(of: Expr, field: str, place: Place) -> Expr:
    """EXTRACT(field FROM interval)."""
    _refuse_written(of, place)
    if field not in _FIELDS or (of.type == DAYS and field != "day"):
        way_out = "Write CAST(a - b AS BIGINT), which is its seconds, or its days, of two dates."
        raise Wrong(place, f"EXTRACT({field.upper()} …) does not take {of.type}", way_out)
    if of.type == DAYS:
        return cast(number_of(of), INT)
    within, unit, kind = _FIELDS[field]
    rest = microseconds_of(of)
    if within is not None:
        rest = calculate("%", rest, number(str(MICROSECONDS[within])), place)
    if field == "second":
        return cast(calculate("*", rest, number("0.000001"), place), kind)
    return cast(Call("div", (rest, Constant(str(MICROSECONDS[unit]), BIGINT)), BIGINT, place=place), kind)


def aggregated(aggregate: Aggregate) -> Expr:
    """An aggregate of intervals, computed from their numbers."""
    (value, *more), row = aggregate.arguments, AGGREGATES[aggregate.function]
    if row.additive:
        return length(replace(aggregate, arguments=(number_of(value),), type=BIGINT), value.type)
    micros = replace(aggregate, arguments=(microseconds_of(value), *more))
    if not row.adds:
        return length(cast(replace(micros, type=DOUBLE), BIGINT), DURATION)
    exact = cast(microseconds_of(value), decimal(20, 0))  # no sum of these is too large
    total = replace(micros, function="sum", arguments=(exact,), type=decimal(30, 0))
    return length(quotient(total, replace(micros, function="count", type=BIGINT), aggregate.place), DURATION)


MONTHS = {"month": 1, "quarter": 3, "year": 12}

MOST_ELEMENTS = 10_000
"""Most elements of a record's sequence, or of one spelled out in the view's texts: the days of 27 years."""

BOUNDED = "bounded sequence"
"""Internal call: a sequence that conditions bound to MOST_ELEMENTS. If their sums wrap around, it may be longer. Beyond
LONGEST_SEQUENCE it is NULL, like every sequence."""


def sequence(arguments: Sequence[Expr], place: Place) -> Expr | None:
    """The array of `sequence(DATE '2024-01-01', DATE '2024-12-31', INTERVAL 1 DAY)`, or None for other arguments."""
    kind = arguments[0].type if arguments else STRING
    if kind not in (DATE, TIMESTAMP) or not 2 <= len(arguments) <= 3 or arguments[1].type != kind:
        return None
    step = arguments[2] if len(arguments) == 3 else Constant("1 day", INTERVAL)
    values = [
        argument.value
        for argument in (*arguments[:2], step)
        if isinstance(argument, Constant) and argument.value is not None
    ]
    if len(values) < 3 and (length := _length_of(step, kind)):
        return call("sequence", [*arguments[:2], *([Constant(str(length), INT)] if len(arguments) == 3 else [])], place)
    if len(values) < 3 or step.type != INTERVAL:
        way_out = "Write sequence(a, b, INTERVAL 1 DAY): forward by days or weeks, or of times by hours to seconds."
        if step.type == INTERVAL and isinstance(step, Constant) and str(step.value).split()[-1] in MONTHS:
            days = "sequence(CAST(a AS DATE), CAST(b AS DATE), INTERVAL 1 DAY)"
            way_out = f"Write filter({days}, d -> day(d) = 1) for the first day of each month."
        raise Wrong(place, "sequence() takes literal times", way_out)
    begin, end = map(datetime.fromisoformat, values[:2])
    number, unit = int(values[2].split()[0]), values[2].split()[1]
    if number <= 0 or end < begin or (kind == DATE and unit not in (*MONTHS, "day", "week")):
        raise Wrong(place, "sequence() must go forward by days", "Begin with the first, and step by days.")
    elements = [*takewhile(lambda at: at <= end, _steps(begin, number, unit, place))]
    return Call("array", tuple(_literal(at, kind) for at in elements), Type("ARRAY", element=kind), place=place)


def _length_of(step: Expr, kind: Type) -> int:
    """Days (for dates) or seconds (for times) of a step forward, or 0 for any other step."""
    if not isinstance(step, Constant) or step.type != INTERVAL:
        return 0
    number, unit = (step.value or "0 ").split(" ")
    length, rest = divmod(int(number) * MICROSECONDS.get(unit, 0), MICROSECONDS["day" if kind == DATE else "second"])
    return length if length > 0 and not rest else 0


def _steps(begin: datetime, number: int, unit: str, place: Place) -> Iterator[datetime]:
    """The elements from the first on. Steps of months keep the day, or use the last day of a shorter month."""
    with suppress(OverflowError, ValueError):  # after the year 9999
        for many in range(MOST_ELEMENTS):
            year, month = divmod(begin.month - 1 + many * number * MONTHS.get(unit, 0), 12)
            moved = begin.replace(year=begin.year + year, month=1)
            day = min(begin.day, monthrange(moved.year, month + 1)[1])
            moved = moved.replace(month=month + 1, day=day)
            yield moved + timedelta(microseconds=many * number * MICROSECONDS.get(unit, 0))
        raise Wrong(place, f"sequence() has more than {MOST_ELEMENTS:,} elements", "Take longer steps.")


def _literal(at: datetime, kind: Type) -> Constant:
    return Constant(str(at.date()) if kind == DATE else at.isoformat(" "), kind)
