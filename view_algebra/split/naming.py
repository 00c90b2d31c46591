"""Readable and unique names for the columns of cells.

A name depends only on the column's content, so an author may rename a column without changing cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from view_algebra.engines.spark import spark
from view_algebra.language.aggregates import Part
from view_algebra.language.expressions import Call, Case, Constant, Expr
from view_algebra.language.time_windows import BEGINS, BEYOND, HOP_END, SESSION_END, SESSION_START
from view_algebra.language.types import SYSTEM_COLUMNS


class Names:
    """The names in use, including those of the columns that every cell table has."""

    def __init__(self) -> None:
        self._taken = {"touched", "only_one", SESSION_START, SESSION_END, BEGINS, BEYOND, *SYSTEM_COLUMNS}

    def give(self, wanted: str) -> str:
        """Reserves the wanted name, with a number if it is in use, and returns it."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


def slug(expression: Expr) -> str:
    """A readable name for an expression.

    >>> from view_algebra.language.expressions import Field
    >>> from view_algebra.language.types import STRING
    >>> slug(Call("date_trunc", (Constant("hour", STRING), Field("", ("ts",), STRING)), STRING))
    'date_trunc_hour_ts'
    >>> slug(Field("", ("window_end",), STRING))
    'column_window_end'
    """
    if isinstance(expression, Call) and expression.function in ("window_start", "pane_start", "window_end", HOP_END):
        return "window_end" if expression.function == HOP_END else expression.function
    if isinstance(expression, Call) and expression.function == "cast":
        return slug(expression.arguments[0])
    if isinstance(expression, Case) and len(expression.branches) == 1 and expression.otherwise is None:
        when, then = expression.branches[0]
        return _cut(f"{slug(then)}_{slug(when)}")
    words = re.sub(r"[^a-z0-9]+", "_", spark(expression).lower()).strip("_")
    if words == "window_end":  # must differ from the end of a hopping window
        return "column_window_end"
    return _cut(words) or "value"


def _cut(name: str) -> str:
    name = name[:40].strip("_")
    return f"c_{name}" if name[:1].isdigit() else name


def part_name(part: Part) -> str:
    """A readable name for a partial: `count_city`, `sum_amount`."""
    if part.counts:
        names = [slug(e) for e in _conditions(part.input)]
        return _cut("_".join(["count", *names]))
    if isinstance(part.input, Call) and part.input.function == "pane_bits":
        return part.name
    return _cut(f"{part.name}_{slug(part.about or part.input)}")


def _conditions(expression: Expr) -> Iterator[Expr]:
    """The conditions of a count, with `x` in place of `x IS NOT NULL`."""
    if isinstance(expression, Call) and expression.function == "and":
        for argument in expression.arguments:
            yield from _conditions(argument)
    elif isinstance(expression, Call) and expression.function == "is not null":
        yield expression.arguments[0]
    elif not isinstance(expression, Constant) or expression.value != "true":
        yield expression
