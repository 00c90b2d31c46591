"""Guards for the SELECT that `lamina check` runs.

Spark raises for some values, or returns a value that Postgres cannot hold. Below the aggregation and above it, both are
NULL, or U+FFFD in a text (`engines/spark.py`, `engines/postgres/`). A guard gives the author's SELECT the same meaning
at the same place.
"""

from __future__ import annotations

from sqlglot import exp

from view_algebra.language.calendar_bounds import (
    KEEPS,
    MOVES,
    READS_TIMES,
    ended_within_calendar,
    finite,
    leaves_calendar,
    moved,
    or_endless,
    read_time,
    within_calendar,
)
from view_algebra.language.expressions import Call, Constant, Expr
from view_algebra.language.overloads import overload
from view_algebra.language.storable import as_text, makes_any_text, read_json
from view_algebra.language.types import CALENDAR, STRING
from view_algebra.language.types import read as read_type
from view_algebra.typed.expressions.likes import guarded_like
from view_algebra.typed.scopes import Scope, resolved


def guard(node: exp.Expr, value: Expr, scope: Scope) -> Expr:
    """The expression as the syntax around the node takes it. If Spark needs a guard, the node is edited."""
    already, result = scope.edits.of(node).guarded, value
    if isinstance(value, Call) and not isinstance(node, exp.Paren) and _is_call(node, value):
        if not already and (text := _guarded(node, value, scope)) is not None:
            scope.edits.guard(node, text)
        if (at := _moves(value)) is not None:
            time, result = value.arguments[at], moved(value, value.arguments[at])
            if not already:
                scope.edits.guard(
                    node,
                    or_endless(
                        scope.edited_sql(node), scope.edited_sql(_argument(node, value, at)), time.type, value.type
                    ),
                )
    if result.type.endless and not isinstance(node, exp.Paren) and not _takes_infinities(node, scope):
        if not already:
            scope.edits.guard(node, within_calendar(scope.edited_sql(node), result.type))
        return finite(result)
    return result


def _guarded(node: exp.Expr, call_: Call, scope: Scope) -> str | None:
    """The text of a call with its guard, or None if Spark needs none."""
    text = None
    if isinstance(node, (exp.Like, exp.ILike)):
        text = guarded_like(node, scope)
    elif isinstance(node, exp.Anonymous):
        text = _guarded_call(node, call_, scope)
    if (size := _length(call_)) is not None:
        return ended_within_calendar(scope.edited_sql(node), size)
    if leaves_calendar(call_):
        return within_calendar(text or scope.edited_sql(node), call_.type)
    return as_text(text or scope.edited_sql(node)) if makes_any_text(call_) else text


def _length(call_: Call) -> int | None:
    """The length of a window in microseconds if the call is its end, else None."""
    start = call_.arguments[0] if call_.function == "window_end" else None
    of_window = isinstance(start, Call) and start.function == "window_start"
    size = call_.arguments[1] if of_window else None
    return int(size.value or 0) if isinstance(size, Constant) else None


def _moves(call_: Call) -> int | None:
    """The position of the argument that the call shifts in time and that may be an infinity, else None."""
    if call_.function not in MOVES and call_.function not in ("+ interval", "- interval"):
        return None
    return next((n for n, argument in enumerate(call_.arguments) if argument.type.endless), None)


def _argument(node: exp.Expr, call_: Call, at: int) -> exp.Expr:
    """The syntax of an argument."""
    if isinstance(node, exp.Binary):
        return node.right if isinstance(node.left, exp.Interval) else node.left
    nodes: list[exp.Expr] = node.expressions
    return nodes[at] if len(nodes) == len(call_.arguments) else nodes[-1]


_TAKE_INFINITIES = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Is),
    *(exp.Case, exp.If, exp.Select, exp.Alias, exp.Group, exp.Order, exp.Window, exp.Tuple, exp.Subquery, exp.Where),
    *(exp.Having, exp.Join, exp.Not, exp.And, exp.Or),
)
"""Syntax that compares times, or passes them on."""


def _takes_infinities(node: exp.Expr, scope: Scope) -> bool:
    """True if the syntax around the node compares times, passes them on, or moves them."""
    inner, around = node, node.parent
    while isinstance(around, (exp.Paren, exp.Distinct, exp.Ordered, exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        inner, around = around, around.parent
    if isinstance(around, exp.Anonymous):
        name = around.name.lower()
        return name in KEEPS or name in MOVES
    if isinstance(around, (exp.Add, exp.Sub)):
        other = around.right if inner is around.left else around.left
        return isinstance(other, exp.Interval) or resolved(other, scope).type.integral
    if isinstance(around, exp.Cast):
        kind = read_type(around.args["to"])
        return kind is not None and kind.name in CALENDAR
    return around is None or isinstance(around, _TAKE_INFINITIES)


def _is_call(node: exp.Expr, call_: Call) -> bool:
    """True unless the node names an output: its own definition has the guard. A window's bound is computed here."""
    if not isinstance(node, (exp.Column, exp.Identifier)):
        return True
    bound = isinstance(node, exp.Column) and len(node.parts) > 1 and node.name.lower() in ("start", "end")
    return bound and call_.function.startswith(("window_", "session"))


def _guarded_call(node: exp.Anonymous, call_: Call, scope: Scope) -> str | None:
    """A function with the guard that it has below the aggregation, or None if it has none."""
    if node.name.lower() != call_.function or len(node.expressions) != len(call_.arguments):
        return None
    texts = [*map(scope.edited_sql, node.expressions)]
    if call_.function == "from_json":
        return read_json(texts[0], texts[1], call_.type)
    if call_.function in READS_TIMES and call_.arguments[0].type == STRING:
        return read_time(call_.function, [f"({texts[0]})", *texts[1:]])
    row = overload(call_)
    if row is None or row.below is None:
        return None
    pairs = zip(texts, call_.arguments, strict=True)
    # below, a literal length is a number of seconds or days
    operands = (
        a.value if isinstance(a, Constant) and a.type.integral and a.value else f"({text})" for text, a in pairs
    )
    return row.below.format(*operands)
