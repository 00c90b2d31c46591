"""What the SELECT of `lamina check` is told where Spark raises, or makes what Postgres cannot hold.

Below the aggregation and above it, both are NULL, or U+FFFD in a text (`engines/spark.py`, `engines/postgres/`). The
author's SELECT gets the same meaning at the same place, so that what is computed of the value agrees.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from view_algebra.language.endless import KEEPS, MOVES, finite, moved
from view_algebra.language.expressions import Call, Constant, Expr
from view_algebra.language.guards import (
    READS_TIMES,
    as_text,
    ended_within_calendar,
    or_endless,
    read_json,
    read_time,
    refuses_pattern,
    within_calendar,
)
from view_algebra.language.limits import leaves_calendar, makes_any_text
from view_algebra.language.overloads import overload
from view_algebra.language.types import CALENDAR, STRING
from view_algebra.language.types import read as read_type
from view_algebra.written.oracle import guarded, is_guarded, written


def guard(node: exp.Expr, made: Expr, read: Callable[[exp.Expr], Expr]) -> Expr:
    """Edits a node, if Spark needs to be told; gives its expression as what the node is an argument of takes it."""
    known, kept = is_guarded(node), made
    if isinstance(made, Call) and not isinstance(node, exp.Paren) and _is_call(node, made):
        if not known and (text := _guarded(node, made)) is not None:
            guarded(node, text)
        if (at := _moves(made)) is not None:
            time, kept = made.arguments[at], moved(made, made.arguments[at])
            if not known:
                guarded(node, or_endless(written(node), written(_argument(node, made, at)), time.type, made.type))
    if kept.type.endless and not isinstance(node, exp.Paren) and not _takes_infinities(node, read):
        if not known:
            guarded(node, within_calendar(written(node), kept.type))
        return finite(kept)
    return kept


def _guarded(node: exp.Expr, made: Call) -> str | None:
    """The text of a call with its guard; None if Spark does without."""
    text = None
    if isinstance(node, (exp.Like, exp.ILike)):
        text = _like(node)
    elif isinstance(node, exp.Anonymous):
        text = _called(node, made)
    if (size := _length(made)) is not None:
        return ended_within_calendar(written(node), size)
    if leaves_calendar(made):
        return within_calendar(text or written(node), made.type)
    return as_text(text or written(node)) if makes_any_text(made) else text


def _length(made: Call) -> int | None:
    """The microseconds of a window, if the call is its end."""
    start = made.arguments[0] if made.function == "window_end" else None
    of_window = isinstance(start, Call) and start.function == "window_start"
    size = made.arguments[1] if of_window else None
    return int(size.value or 0) if isinstance(size, Constant) else None


def _moves(made: Call) -> int | None:
    """Which argument of a call is a time that may be an infinity, and of which the call makes another time."""
    if made.function not in MOVES and made.function not in ("+ interval", "- interval"):
        return None
    return next((n for n, each in enumerate(made.arguments) if each.type.endless), None)


def _argument(node: exp.Expr, made: Call, at: int) -> exp.Expr:
    """The syntax of an argument."""
    if isinstance(node, exp.Binary):
        return node.right if isinstance(node.left, exp.Interval) else node.left
    given: list[exp.Expr] = node.expressions
    return given[at] if len(given) == len(made.arguments) else given[-1]


_TAKE_INFINITIES = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Is),
    *(exp.Case, exp.If, exp.Select, exp.Alias, exp.Group, exp.Order, exp.Window, exp.Tuple, exp.Subquery, exp.Where),
    *(exp.Having, exp.Join, exp.Not, exp.And, exp.Or),
)
"""Syntax that compares times, or passes them on."""


def _takes_infinities(node: exp.Expr, read: Callable[[exp.Expr], Expr]) -> bool:
    """True if what a node is an argument of compares times, passes them on, or moves them."""
    inner, around = node, node.parent
    while isinstance(around, (exp.Paren, exp.Distinct, exp.Ordered, exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        inner, around = around, around.parent
    if isinstance(around, exp.Anonymous):
        name = around.name.lower()
        return name in KEEPS or name in MOVES
    if isinstance(around, (exp.Add, exp.Sub)):
        other = around.right if inner is around.left else around.left
        return isinstance(other, exp.Interval) or read(other).type.integral
    if isinstance(around, exp.Cast):
        kind = read_type(around.args["to"])
        return kind is not None and kind.name in CALENDAR
    return around is None or isinstance(around, _TAKE_INFINITIES)


def _is_call(node: exp.Expr, made: Call) -> bool:
    """True unless the node names an output, which is guarded where it is made; a bound of a window is made of it."""
    if not isinstance(node, (exp.Column, exp.Identifier)):
        return True
    bound = isinstance(node, exp.Column) and len(node.parts) > 1 and node.name.lower() in ("start", "end")
    return bound and made.function.startswith(("window_", "session"))


def _like(node: exp.Like | exp.ILike) -> str | None:
    """A condition of which a record decides the pattern: NULL where Spark would refuse it."""
    several = node.expression
    inner = several.this.unnest() if isinstance(several, (exp.Any, exp.All)) else several
    patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
    if all(isinstance(pattern, exp.Literal) for pattern in patterns):
        return None
    sign = "LIKE" if isinstance(node, exp.Like) else "ILIKE"
    negated = bool(node.args.get("negate"))
    each = (_like_one(f"({written(node.this)}) {sign} ({written(pattern)})", pattern) for pattern in patterns)
    word = " OR " if isinstance(several, exp.Any) != negated else " AND "
    return f"NOT ({word.join(each)})" if negated else f"({word.join(each)})"


def _like_one(text: str, pattern: exp.Expr) -> str:
    if isinstance(pattern, exp.Literal):
        return text
    return f"CASE WHEN NOT ({refuses_pattern(written(pattern))}) THEN {text} END"


def _called(node: exp.Anonymous, made: Call) -> str | None:
    """A function with the guard that it has below the aggregation."""
    if node.name.lower() != made.function or len(node.expressions) != len(made.arguments):
        return None
    texts = [*map(written, node.expressions)]
    if made.function == "from_json":
        return read_json(texts[0], texts[1], made.type)
    if made.function in READS_TIMES and made.arguments[0].type == STRING:
        return read_time(made.function, [f"({texts[0]})", *texts[1:]])
    row = overload(made)
    if row is None or row.below is None:
        return None
    pairs = zip(texts, made.arguments, strict=True)
    # a length that is a literal is a number of seconds or days there
    told = (a.value if isinstance(a, Constant) and a.type.integral and a.value else f"({text})" for text, a in pairs)
    return row.below.format(*told)
