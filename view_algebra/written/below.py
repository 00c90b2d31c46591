"""Rewrites a function of an aggregate as an aggregate of the function, if both are equal."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from view_algebra.refusals import Span, span
from view_algebra.written.dialect import readable

_TAKES_ONE_VALUE = ("last", "last_value", "first", "first_value", "any_value", "max_by", "min_by")
_BY_ITSELF = {"max": "max_by", "min": "min_by"}
_OF_NULL = ("hash", "xxhash64", "concat_ws", "coalesce", "nvl", "ifnull", "to_json", "struct", "named_struct")
"""Functions that may return a value for NULL, which an aggregate of no values or no previous row returns."""

_OF_ROWS = ("lag", "lead", "first_value", "last_value", "nth_value")


def below(select: exp.Expr, place: Span | None) -> tuple[str, exp.Expr] | None:
    """The replacement for a function that Postgres lacks, and the SELECT with it; None if there is none.

    An aggregate that takes a value of one record may take the function of this value instead.

    >>> from view_algebra.written.dialect import parse
    >>> from view_algebra.refusals import File
    >>> (v,) = parse(File("", "SELECT k, initcap(max(x)) AS h FROM s GROUP BY k"))
    >>> text, made = below(v.tree, Span(10, 17))
    >>> text, readable(made)
    ('max_by(initcap(x), x)', 'SELECT k, max_by(initcap(x), x) AS h FROM s GROUP BY k')
    """
    whole = select.copy()
    for call in whole.find_all(exp.Anonymous, exp.Cast):
        if span(call) != place or isinstance(call.parent, exp.Window) or call.name.lower() in _OF_NULL:
            continue
        parts = [*_outermost(call)]
        if len(parts) == 1:
            moved = _over(call, parts[0]) if isinstance(parts[0], exp.Window) else _of_function(call, parts[0])
            if moved is not None:
                text = readable(moved)
                call.replace(moved)
                return text, whole
    return None


def _outermost(call: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates, windows and columns in a call, without those inside them."""
    for part in call.walk(prune=lambda node: node is not call and _is_leaf(node)):
        if part is not call and _is_leaf(part):
            yield part


def _is_leaf(node: exp.Expr) -> bool:
    taken = isinstance(node, exp.Anonymous) and node.name.lower() in (*_TAKES_ONE_VALUE, *_BY_ITSELF)
    return taken or isinstance(node, (exp.Column, exp.Query, exp.Window, exp.Filter, exp.IgnoreNulls, exp.WithinGroup))


def _over(call: exp.Expr, window: exp.Window) -> exp.Expr | None:
    """f(lag(x) OVER (…)) as lag(f(x)) OVER (…)."""
    picked = window.this
    if not isinstance(picked, exp.Anonymous) or picked.name.lower() not in _OF_ROWS or len(picked.expressions) > 2:
        return None
    value, *others = picked.expressions
    inner = _with(call, window, value)
    moved = window.copy()
    moved.set("this", exp.Anonymous(this=picked.name, expressions=[inner, *(other.copy() for other in others)]))
    return moved


def _with(call: exp.Expr, part: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A call with a value in place of one of its parts."""
    changed = call.copy()
    next(inner for inner in changed.find_all(type(part)) if inner is not changed and inner == part).replace(
        value.copy()
    )
    return changed


def _of_function(call: exp.Expr, aggregate: exp.Expr) -> exp.Expr | None:
    if not isinstance(aggregate, exp.Anonymous):
        return None
    value, *others = aggregate.expressions or [exp.Null()]
    if isinstance(value, (exp.Distinct, exp.Star, exp.Null)):
        return None
    name = aggregate.name.lower()
    inner = _with(call, aggregate, value)
    arguments = [inner, value.copy()] if name in _BY_ITSELF else [inner, *(other.copy() for other in others)]
    return exp.Anonymous(this=_BY_ITSELF.get(name, name), expressions=arguments)
