"""Functions OVER a window of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from view_algebra.language.aggregates import AGGREGATES, SYNONYMS
from view_algebra.language.expressions import Expr, Order, Place, Windowed
from view_algebra.language.functions import FOREIGN, WINDOW_FUNCTIONS
from view_algebra.language.guards import far_apart
from view_algebra.language.types import Type
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, span, suggestion
from view_algebra.typed.calls import VALUE_BOUND, aggregate_over, frame, refuse_nulls_left_out, window_arguments
from view_algebra.typed.names import Scope, resolved
from view_algebra.typed.orders import sort_keys
from view_algebra.typed.spark_refuses import refuse_frame, refuse_partition_by_maps
from view_algebra.written.dialect import parsed
from view_algebra.written.oracle import put, written
from view_algebra.written.ways_out import filtered_over

_NAMED_OVER = {"first": "first_value", "any_value": "first_value", "last": "last_value"}
"""What functions of the order of events are called where OVER says the order."""


def window_function(node: exp.Window, scope: Scope) -> Expr:
    """f(x) OVER (…)."""
    place = span(node.this)
    if isinstance(node.args.get("alias"), exp.Identifier) or node.args.get("over") is None:
        raise Wrong(
            place,
            "OVER with a window that is not named in this block, or with more than its name",
            "Write it out: OVER (ORDER BY …).",
        )
    inner: exp.Expr = node.this
    ignores_nulls = isinstance(inner, exp.IgnoreNulls)
    if isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls)):
        inner = inner.this
    if isinstance(inner, exp.Filter):
        raise Wrong(place, "FILTER before OVER, which Spark does not run", f"Write {filtered_over(node)}.")
    if isinstance(inner, exp.WithinGroup):
        inner = _share_of(inner, place)
    if not isinstance(inner, exp.Anonymous):
        raise Wrong(place, "OVER after something that is not a function", "Write f(x) OVER (…).")
    name = SYNONYMS.get(inner.name.lower(), inner.name.lower())
    name, given = _NAMED_OVER.get(name, name), inner.expressions
    if name in ("first_value", "last_value") and len(given) == 2 and isinstance(given[1], exp.Boolean):
        ignores_nulls, given = ignores_nulls or bool(given[1].this), given[:1]
    arguments, kind = _arguments(name, inner, given, scope)
    partition = tuple(resolved(e, scope) for e in node.args.get("partition_by") or [])
    order = tuple(sort_keys(node, scope, ()))
    if name in WINDOW_FUNCTIONS and name not in ("first_value", "last_value") and not order:
        raise Wrong(place, f"{name}() without ORDER BY", f"Write {name}() OVER (ORDER BY …).")
    refuse_partition_by_maps(partition, place)
    _refuse_inside(arguments, partition, order, place)
    if ignores_nulls:
        refuse_nulls_left_out(name, arguments, place)
    rows = frame(node, order)
    _spell_infinities(node, rows, order)
    refuse_frame(name, rows, order, place, of_all=name == "median" or isinstance(node.this, exp.WithinGroup))
    call_ = Windowed(name, arguments, partition, order, rows, kind, place, ignores_nulls)
    scope.windowed.append((call_, node))
    return call_


def _spell_infinities(node: exp.Window, rows: str, order: Sequence[Order]) -> None:
    """Puts Spark's infinities where no frame reaches them from a time of the calendar, nor such a time from them."""
    if VALUE_BOUND.search(rows) and (kind := order[0].expression.type).endless:
        (key,) = node.args["order"].expressions
        far = key.copy()
        far.set("this", parsed(far_apart(written(key.this), kind)))
        put(key, far)


def _arguments(
    name: str, node: exp.Anonymous, given: Sequence[exp.Expr], scope: Scope
) -> tuple[tuple[Expr, ...], Type]:
    """What a function OVER rows takes, and the type that it gives."""
    if name in AGGREGATES:
        folded = aggregate_over(name, node, partial(resolved, scope=scope))
        return folded.arguments, folded.type
    if name in WINDOW_FUNCTIONS:
        return window_arguments(name, tuple(resolved(a, scope) for a in given), span(node))
    way_out = f"Write {FOREIGN[name]}." if name in FOREIGN else suggestion(name, [*WINDOW_FUNCTIONS, *AGGREGATES])
    raise Wrong(span(node), f"{name}() OVER (…)", way_out)


def _refuse_inside(arguments: Sequence[Expr], partition: Sequence[Expr], order: Sequence[Order], place: Place) -> None:
    """Refuses what Spark computes in two steps, and Postgres not at all."""
    inside = (*arguments, *partition, *(key.expression for key in order))
    if any(isinstance(part, Windowed) for each in inside for part in walk(each)):
        raise Wrong(place, "a window function inside another", "Compute the inner one in a subquery in FROM.")


def _share_of(node: exp.WithinGroup, place: Place) -> exp.Expr:
    """percentile_cont(0.9) WITHIN GROUP (ORDER BY x) as percentile(x, 0.9)."""
    key, *more = node.expression.expressions
    if more or key.args.get("desc") or node.this.name.lower() != "percentile_cont":
        raise Wrong(place, "WITHIN GROUP before OVER", "Compute it with GROUP BY in a subquery, and join that.")
    return exp.Anonymous(this="percentile", expressions=[key.this, *node.this.expressions])
