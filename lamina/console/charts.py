"""Charts of rows for the pages, and drawings of an hour: sparklines and stacked columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from statistics import median
from typing import Any

from lamina.reports.chart_choice import MOST_BARS, Choice, ColumnKind, choose
from lamina.terminal.render import cell

MOST_LINES = 6
"""Lines of one chart. Colours cannot distinguish more."""

CUT = 4
"""Greatest height of a stacked column, as a multiple of the median."""

GAP = 150.0
"""Seconds without a minute's freshness after which its line is broken, because the speed layer wrote none."""


@dataclass(frozen=True)
class Lines:
    """Numbers over time, for uPlot. `data` is JSON with times (Unix seconds) and, by name, a value or null for each."""

    data: str


@dataclass(frozen=True)
class Bar:
    """A category with its number. `share` is the percentage of the largest number."""

    label: str
    value: str
    share: float


@dataclass(frozen=True)
class Bars:
    """Numbers by category, in the order of the rows. `what` is the name of the number."""

    what: str
    bars: Sequence[Bar]


def chart_of(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[Lines | Bars | None, set[int]]:
    """The chart of rows, and the positions of the columns that hold numbers.

    The chart is None if the rows have no number, no time or category, or several rows for one point.

    >>> chart_of(["city", "n"], [("Kyiv", 4), ("Lviv", 1)])
    (Bars(what='n', bars=[Bar(label='Kyiv', value='4', share=100.0), Bar(label='Lviv', value='1', share=25.0)]), {1})
    >>> chart_of(["day", "n"], [(date(2024, 1, 2), 5), (date(2024, 1, 1), 3)])
    (Lines(data='{"times": [1704067200.0, 1704153600.0], "lines": {"n": [3.0, 5.0]}}'), {1})
    >>> chart_of(["n"], [(3,)])
    (None, {0})
    >>> chart_of(["day", "city", "kind", "n"], [(date(2024, 1, 1), "Kyiv", kind, 1) for kind in ("tea", "milk")])
    (None, {3})
    """
    kinds = [_kind([row[at] for row in rows]) for at in range(len(columns))]
    return _chart(columns, rows, kinds), {at for at, kind in enumerate(kinds) if kind == "number"}


def _chart(columns: Sequence[str], rows: Sequence[Sequence[Any]], kinds: Sequence[ColumnKind]) -> Lines | Bars | None:
    if len(rows) < 2:
        return None

    def are_apart(positions: Sequence[int]) -> bool:
        with_time = [row for row in rows if row[positions[0]] is not None or kinds[positions[0]] != "time"]
        return len({tuple(row[at] for at in positions) for row in with_time}) == len(with_time)

    chosen = choose(kinds, are_apart)
    if chosen is None:
        return None
    if chosen.form == "lines":
        return _lines(columns, rows, chosen)
    return _bars(columns[chosen.numbers[0]], [(row[chosen.along], row[chosen.numbers[0]]) for row in rows])


_TYPES: dict[ColumnKind, tuple[type, ...]] = {"time": (date,), "number": (int, float, Decimal), "text": (str,)}


def _kind(values: Sequence[Any]) -> ColumnKind:
    """The kind of a column with these values."""
    present = [value for value in values if value is not None]
    for kind, types in _TYPES.items():
        if present and all(isinstance(value, types) and not isinstance(value, bool) for value in present):
            return kind
    return "other"


def _lines(columns: Sequence[str], rows: Sequence[Sequence[Any]], chosen: Choice) -> Lines:
    """A line per number or, for a single number with a category, a line per category, the largest first."""
    time, category = chosen.along, chosen.category
    with_time = [row for row in rows if row[time] is not None]
    lines: dict[str, dict[float, float | None]] = {}
    if category is not None:
        for row in with_time:
            lines.setdefault(cell(row[category]), {})[_seconds(row[time])] = _float(row[chosen.numbers[0]])
        lines = dict(sorted(lines.items(), key=lambda line: -sum(abs(value or 0) for value in line[1].values())))
    else:
        lines = {columns[at]: {_seconds(row[time]): _float(row[at]) for row in with_time} for at in chosen.numbers}
    shown = dict(list(lines.items())[:MOST_LINES])
    times = sorted({at for line in shown.values() for at in line})
    data = {"times": times, "lines": {name: [line.get(at) for at in times] for name, line in shown.items()}}
    return Lines(json.dumps(data))


def _bars(what: str, pairs: Sequence[tuple[Any, Any]]) -> Bars:
    labelled = [(cell(label), value) for label, value in pairs if value is not None][:MOST_BARS]
    most = max((abs(float(value)) for _, value in labelled), default=0.0) or 1.0
    return Bars(what, [Bar(label, cell(value), round(100 * abs(float(value)) / most, 1)) for label, value in labelled])


def _seconds(value: date) -> float:
    at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)


def _float(value: Any) -> float | None:
    """The number, or None if it is NaN or infinite. JSON has no form for these, and a None breaks the line."""
    number = None if value is None else float(value)
    return number if number is not None and abs(number) < float("inf") else None


def sparkline(points: Sequence[tuple[float, float]], width: int, height: int, span: float) -> list[str]:
    """The paths of a line through (seconds ago, value). The newest point is on the right, and 0 at the bottom.

    >>> sparkline([(60, 0.0), (30, 2.0), (0, 1.0)], 60, 10, 60)
    ['M0.0 10.0L30.0 0.0L60.0 5.0']
    >>> sparkline([(600, 1.0), (0, 1.0)], 60, 10, 600)
    ['M0.0 0.0h.1', 'M60.0 0.0h.1']
    """
    most = max((value for _, value in points), default=0.0) or 1.0
    placed = [(ago, width * (1 - ago / span), height * (1 - value / most)) for ago, value in points if ago <= span]
    lines: list[list[tuple[float, float]]] = [[(x, y) for _, x, y in placed[:1]]]
    for (before, _, _), (ago, x, y) in pairwise(placed):
        if before - ago > GAP:
            lines.append([])
        lines[-1].append((x, y))
    return [
        "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line) + ("h.1" if len(line) == 1 else "")
        for line in lines
        if line
    ]


@dataclass(frozen=True)
class Rectangle:
    """A rectangle of a column, in pixels. `name` is its value's name."""

    name: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Stack:
    """Columns of parts. `most` is the value as high as the chart. `slowest` is the largest sum, which may be cut."""

    parts: Sequence[Rectangle]
    most: float
    slowest: float


def stack_of(columns: Sequence[tuple[float, Mapping[str, float]]], width: int, height: int, span: float) -> Stack:
    """Columns of (seconds ago, values by name), each a minute wide. The newest is on the right, the first value at the
    bottom.

    A column of more than `CUT` times the median is cut, so that the others stay readable.

    >>> for part in stack_of([(60, {"a": 1, "b": 3}), (0, {"a": 2})], 60, 40, 60).parts[1:]:
    ...     print(part)
    Rectangle(name='b', x=0.0, y=0.0, width=59.0, height=30.0)
    Rectangle(name='a', x=60.0, y=20.0, width=59.0, height=20.0)
    >>> stack_of([(0, {"a": 900})] + [(60, {"a": 1})] * 2, 60, 40, 60).most
    4
    """
    sums = [sum(values.values()) for _, values in columns]
    slowest = max(sums, default=0.0)
    most = min(slowest, CUT * median(sums or [0.0])) or 1.0
    parts = []
    for ago, values in columns:
        top = float(height)
        for name, value in values.items():
            size = height * value / most
            top -= size
            x, wide = width * (1 - ago / span), width * 60 / span - 1
            parts.append(Rectangle(name, round(x, 1), round(top, 1), round(wide, 1), round(size, 1)))
    return Stack(parts, most, slowest)
