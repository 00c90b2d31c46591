"""The chart for rows: a line over time if a column is a time, bars if one is a category, otherwise none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

MOST_BARS = 20
"""Bars of one chart, the largest first."""

MOST_ROWS = 1_000
"""Rows of a table that is shown whole."""


ColumnKind = Literal["time", "number", "text", "other"]


@dataclass(frozen=True)
class Choice:
    """A chart of these columns, by their positions: `numbers` along a time or a category.

    `category` is the column with a line for each of its values, or None if each number is a line.
    """

    form: Literal["lines", "bars"]
    along: int
    numbers: tuple[int, ...]
    category: int | None = None


def choose(kinds: Sequence[ColumnKind], are_apart: Callable[[Sequence[int]], bool]) -> Choice | None:
    """The chart for columns of these kinds, or None if they have no number, no time or category, or several rows for
    one point.

    `are_apart` is True if no two rows have the same values in these
    columns.

    >>> choose(["time", "number", "number"], lambda columns: True)
    Choice(form='lines', along=0, numbers=(1, 2), category=None)
    >>> choose(["time", "text", "number"], lambda columns: len(columns) == 2)
    Choice(form='lines', along=0, numbers=(2,), category=1)
    >>> choose(["text", "number"], lambda columns: True)
    Choice(form='bars', along=0, numbers=(1,), category=None)
    """
    numbers = tuple(at for at, kind in enumerate(kinds) if kind == "number")
    time, text = (kinds.index(kind) if kind in kinds else None for kind in ("time", "text"))
    if not numbers:
        return None
    if time is not None:
        if are_apart([time]):
            return Choice("lines", time, numbers)
        return Choice("lines", time, numbers[:1], text) if text is not None and are_apart([time, text]) else None
    return Choice("bars", text, numbers[:1]) if text is not None and are_apart([text]) else None
