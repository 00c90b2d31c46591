"""Lengths of time and what they do to times."""

from __future__ import annotations

import re

from sqlglot import exp

from view_algebra.dialect import span
from view_algebra.expressions import Call, Constant, Expr, Place
from view_algebra.operators import call, cast
from view_algebra.refusals import Wrong
from view_algebra.types import DATE, INTERVAL, STRING, TIMESTAMP, TIMESTAMP_NTZ

MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
"""Microseconds of a unit of time; months and years have no fixed length."""

LONGEST_SHIFT = 9_999
"""Years by which a time may be moved; Spark raises where the result leaves its own calendar."""


def interval(node: exp.Interval) -> Constant:
    """INTERVAL and a whole number of one unit."""
    value, unit = node.this, (node.args.get("unit") or exp.Var(this="")).name.lower().rstrip("s")
    text = value.name if isinstance(value, exp.Literal) else ""
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        text = f"-{value.this.name}"
    if not re.fullmatch(r"-?\d{1,9}", text) or unit not in (*MICROSECONDS, "month", "quarter", "year"):
        raise Wrong(span(node), "an interval that is no whole number of one unit", "Write INTERVAL 90 MINUTES.")
    longest = {"year": LONGEST_SHIFT, "quarter": LONGEST_SHIFT * 4, "month": LONGEST_SHIFT * 12}.get(
        unit, LONGEST_SHIFT * 365 * MICROSECONDS["day"] // MICROSECONDS.get(unit, 1)
    )
    if abs(int(text)) > longest:
        raise Wrong(span(node), "an interval of more than 9,999 years", "Choose a shorter one.")
    return Constant(f"{int(text)} {unit}", INTERVAL, span(node))


def microseconds(argument: Expr, place: Place, of: str = "window") -> int:
    """The length of a window that an argument says, as '1 hour 30 minutes'."""
    text = argument.value if isinstance(argument, Constant) and argument.type in (STRING, INTERVAL) else None
    if text is None:
        raise Wrong(
            argument.place or place, "window() takes a length known when it is declared", "Write window(ts, '1 hour')."
        )
    total, pieces = 0, re.findall(r"(-?\d+)\s*([a-z]+)", text.lower().removeprefix("interval").strip())
    for count, unit in pieces:
        factor = MICROSECONDS.get(unit.rstrip("s") if unit.rstrip("s") in MICROSECONDS else unit)
        if factor is None:
            way_out = "Write date_trunc('month', ts)." if of == "window" else "Write the gap in days."
            raise Wrong(argument.place or place, f"{of}() of a {unit}, whose length varies", way_out)
        total += int(count) * factor
    if not pieces or re.sub(r"(-?\d+)\s*([a-z]+)", "", text.lower().removeprefix("interval")).strip():
        raise Wrong(argument.place or place, f"{text!r} is no length of time", "Write window(ts, '1 hour').")
    return total


def shifted(operator: str, left: Expr, right: Expr, place: Place) -> Expr | None:
    """A time plus or minus an interval or days; None for plain numbers."""
    if operator == "+" and left.type == INTERVAL:
        left, right = right, left
    if right.type == INTERVAL and isinstance(right, Constant):
        months = (right.value or "").split(" ")[1] in ("month", "quarter", "year")
        whole_days = (right.value or "").split(" ")[1] in ("day", "week")
        if left.type == DATE and not (months or whole_days):
            left = cast(left, TIMESTAMP, implicit=True)
        if left.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
            raise Wrong(place, f"{left.type} {operator} an interval", "Add intervals to times.")
        return Call(f"{operator} interval", (left, right), left.type, place=place)
    times = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    if left.type in times and right.type in times:
        difference = "datediff(a, b)" if left.type == right.type == DATE else "timestampdiff(SECOND, b, a)"
        raise Wrong(
            place,
            "the difference of two times is an interval",
            f"Write {difference}, or compare: a > b + INTERVAL 7 DAYS.",
        )
    if left.type == DATE and right.type.integral:
        return call("date_add" if operator == "+" else "date_sub", [left, right], place)
    if left.type in times or right.type in times:
        raise Wrong(place, f"{left.type} {operator} {right.type}", "Write ts + INTERVAL 5 MINUTES.")
    return None
