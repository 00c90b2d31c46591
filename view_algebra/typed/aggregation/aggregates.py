"""Aggregate calls, also WITHIN GROUP, whose results do not depend on the order of rows.

Spark leaves some results to the order of rows. Here the order of events or of values decides them, and the SELECT that
Spark runs spells it out:

- `collect_list(x)` is a list sorted by the order of events, `collect_set(x)` one sorted by its values.
- `first(x)` and `last(x)` are `min_by` and `max_by` of the order of events.
- Lists with an order of their own are in `lists.py`, estimates in `estimates.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from view_algebra.language.aggregates import (
    AGGREGATES,
    BY_BUCKETS,
    BY_EVENT_ORDER,
    COLLECTED_ONCE,
    aggregate_named,
    is_aggregate,
    not_null,
)
from view_algebra.language.expressions import Aggregate, Call, Expr, Subquery, both, whole_number
from view_algebra.language.operators import condition, number
from view_algebra.language.structs import by as chosen
from view_algebra.language.structs import extreme, has_order, is_struct, keys_of, order_of
from view_algebra.language.times import aggregated
from view_algebra.language.types import BINARY, BOOLEAN, DOUBLE, FLOAT, STRING, WINDOW, not_in_json
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, not_taken, span
from view_algebra.typed.aggregation.calls import aggregate, call_of, is_array, percentile_list, refuse_aggregates
from view_algebra.typed.aggregation.estimates import approximate_percentile, estimate
from view_algebra.typed.aggregation.lists import joined_within, list_in_order, set_of_lists
from view_algebra.typed.aggregation.spelling import (
    and_filter,
    filter_clause,
    in_turn,
    joined_texts,
    one_zero,
    operand,
    sorted_by,
    with_filter,
)
from view_algebra.typed.order.events import event_order, in_the_log, reads_changes
from view_algebra.typed.scopes import Scope, resolved
from view_algebra.written.clauses import is_list_in_order
from view_algebra.written.tables import IN_THE_LOG


def aggregate_call(name: str, node: exp.Anonymous, scope: Scope, when: Expr | None) -> Expr | None:
    """The typed call of an aggregate, or None if the call is not an aggregate. `when` is its FILTER.

    `node` stands in its author's tree, where its FILTER is next to it.
    """
    if is_list_in_order(node):
        listed = list_in_order(node)
        scope.edits.put(with_filter(node), listed)
        return resolved(listed, scope)
    row = AGGREGATES.get(name)
    several = row is not None and row.syntax.parameter == "shares" and len(node.expressions) == 2
    if several and is_array(node.expressions[1]):
        return _shares(name, node, scope, when)
    if name == IN_THE_LOG and reads_changes(scope):
        return _last_in_the_log(node, scope)
    if name in BY_EVENT_ORDER or name in BY_EVENT_ORDER.values():
        return _first_or_last(name, node, scope, when)
    if name in BY_BUCKETS:
        return approximate_percentile(name, node, scope, when)
    is_set = row is not None and row.settled == "set"
    if is_set and (of_lists := set_of_lists(node, scope, when)) is not None:
        return of_lists
    if is_aggregate(name):
        return _settled(aggregate(name, node, scope, when), node, scope)
    return None


def _settled(call_: Aggregate, node: exp.Anonymous, scope: Scope) -> Expr:
    """The aggregate. If Spark leaves its result to the order of rows, the order of events or values decides it."""
    row = AGGREGATES[call_.function]
    if row.lengths and call_.arguments[0].type.length:
        return aggregated(call_)
    if call_.distinct and "session_window" in scope.windows:
        return _in_a_session(call_, node, scope)
    if row.settled is None:
        return _from_scalars(call_)
    if call_.distinct:
        way_out = f"Write {COLLECTED_ONCE}(x)." if row.collects else "Write … WITHIN GROUP (ORDER BY x)."
        raise Wrong(call_.place, f"{row.name}() does not take DISTINCT", way_out)
    first = node.expressions[0]
    value = operand(scope, first.expressions[0] if isinstance(first, exp.Distinct) else first)
    counts = f"{value} IS NOT NULL" + and_filter(scope, node)
    return _SETTLED[row.settled](call_, _AuthorsCall(value, counts, node), scope)


@dataclass(frozen=True)
class _AuthorsCall:
    """An aggregate as its author wrote it.

    value: the first argument, as Spark SQL
    counts: the condition under which a value counts
    node: the call
    """

    value: str
    counts: str
    node: exp.Anonymous


def _spelled_estimate(call_: Aggregate, authors_call: _AuthorsCall, scope: Scope) -> Aggregate:
    registers = whole_number(call_.arguments[1])
    scope.edits.spell(with_filter(authors_call.node), estimate(authors_call.value, authors_call.counts, registers))
    return call_


def _spelled_mode(call_: Aggregate, authors_call: _AuthorsCall, scope: Scope) -> Aggregate:
    scope.edits.spell(authors_call.node, f"mode({one_zero(authors_call.value, call_.type)}, true)")
    return call_


def _spelled_set(call_: Aggregate, authors_call: _AuthorsCall, scope: Scope) -> Aggregate:
    kind = call_.arguments[0].type
    values = f"collect_set(CASE WHEN {authors_call.counts} THEN {one_zero(authors_call.value, kind)} END)"
    if kind in (DOUBLE, FLOAT):  # Spark's own set keeps every NaN
        values = f"array_distinct({values})"
    scope.edits.spell(with_filter(authors_call.node), f"sort_array({values})")
    return _sorted_by_itself(call_)


def _spelled_list(call_: Aggregate, authors_call: _AuthorsCall, scope: Scope) -> Aggregate:
    """A list, or the text joined from it, in the order of events."""
    name, value = call_.function, authors_call.value
    order, events = event_order(scope, call_.place, name, call_.arguments[:1])
    if any(isinstance(part, Subquery) for part in walk(call_.arguments[0])):
        raise Wrong(call_.place, f"{name}() cannot contain a subquery", "Compute it in a subquery in FROM.")
    of_maps = call_.arguments[0].type.name == "MAP"  # Spark sorts maps only as their entries
    in_order = sorted_by(order, f"map_entries({value})" if of_maps else value, authors_call.counts)
    values = in_turn(in_order, "map_from_entries(s.v)" if of_maps else "s.v")
    if call_.type == STRING:
        values = joined_texts(scope, in_order, values, authors_call.node.expressions[1:])
    scope.edits.spell(with_filter(authors_call.node), values)
    return replace(call_, arguments=(call_.arguments[0], *events, *call_.arguments[1:]))


_SETTLED: dict[str, Callable[[Aggregate, _AuthorsCall, Scope], Aggregate]] = {
    "estimate": _spelled_estimate,
    "mode": _spelled_mode,
    "set": _spelled_set,
    "list": _spelled_list,
}
"""The edits that settle what Spark leaves open in the SELECT of `lamina check`, by `AggregateFunction.settled`."""


def _in_a_session(call_: Aggregate, node: exp.Anonymous, scope: Scope) -> Aggregate:
    """count(DISTINCT …) in a session: Spark would count a value once per piece that it merges into the session."""
    if not AGGREGATES[call_.function].counts_records:
        way_out = "Leave DISTINCT out, or group by window(ts, …)."
        raise Wrong(call_.place, f"{call_.function}() of a session does not take DISTINCT", way_out)
    texts = [operand(scope, e) for e in node.expressions[0].expressions]
    counts = " AND ".join(f"{value} IS NOT NULL" for value in texts) + and_filter(scope, node)
    alike = [one_zero(value, e.type) for value, e in zip(texts, call_.arguments, strict=True)]
    values = f"collect_set(CASE WHEN {counts} THEN struct({', '.join(alike)}) END)"
    scope.edits.spell(with_filter(node), f"CAST(size({values}) AS BIGINT)")
    return call_


def _shares(name: str, node: exp.Anonymous, scope: Scope, when: Expr | None) -> Expr:
    """percentile(x, array(0.5, 0.9)): several percentiles of the same values."""
    value, shares = node.expressions
    percentiles = [aggregate(name, call_of(name, value, share), scope, when) for share in shares.expressions]
    return percentile_list(percentiles, span(node))


def _first_or_last(
    name: str, node: exp.Anonymous, scope: Scope, when: Expr | None, *, ignores_nulls: bool = False
) -> Expr:
    """The value with the least or greatest order. The order of events breaks ties, and decides if no order is given."""
    place, nodes = span(node), list(node.expressions)
    if nodes and isinstance(nodes[0], exp.Distinct) and name in BY_EVENT_ORDER:
        nodes[:1] = nodes[0].expressions  # the first of the distinct values is the first value
    function = BY_EVENT_ORDER.get(name, name)
    if name in BY_EVENT_ORDER and len(nodes) == 2 and isinstance(nodes[1], exp.Boolean):
        ignores_nulls = bool(nodes.pop().this)
    if len(nodes) != 1 + (name == function):
        way_out = f"Write {name}(x, y)." if name == function else f"Write {name}(x)."
        raise Wrong(place, not_taken(name, len(nodes)), way_out)
    arguments = [resolved(a, scope) for a in nodes]
    for argument in arguments:
        refuse_aggregates(argument, f"{name}()", "Aggregate in a subquery first.")
        kind = argument.type
        in_cells = kind == BINARY or (kind.nested and kind != WINDOW and not_in_json(kind) is None)
        if not (AGGREGATES[function].accepts(kind) or (argument is arguments[0] and in_cells)):
            way_out = f"Write {name}() of a scalar value, a struct of such, or to_json(…)."
            raise Wrong(argument.place or place, f"{name}() does not take {kind}", way_out)
    texts, chosen_by_value = [operand(scope, a) for a in nodes], scope.above and has_order(arguments[0].type)
    if chosen_by_value and name == "any_value":
        scope.edits.spell(node, f"min({texts[0]})")
        return _from_scalars(Aggregate("min", (arguments[0],), when, False, arguments[0].type, place))
    of_rows = name if name in BY_EVENT_ORDER and name != "any_value" else ""
    by_value: tuple[str, tuple[Expr, ...]] = (texts[0], keys_of(arguments[0]))
    order, events = (
        by_value if chosen_by_value and function == name else event_order(scope, place, of_rows, arguments[:1])
    )
    struct = f"struct({', '.join([*texts[1:], order])})"
    for text in [*texts[1:], *texts[: int(ignores_nulls)]]:
        struct = f"CASE WHEN {text} IS NOT NULL THEN {struct} END"
    scope.edits.spell(node, f"{function}({texts[0]}, {struct})")
    if ignores_nulls:
        when = both(when, Call("is not null", (arguments[0],), BOOLEAN))
    value, *keys = arguments
    keys = [key for argument in keys for key in order_of(argument)]
    return chosen(function, value, (*keys, *events), both(when, not_null(arguments[1:])), place)


def _last_in_the_log(node: exp.Anonymous, scope: Scope) -> Expr:
    """The value of the last record in the log. Only a table asks for it."""
    value = resolved(node.expressions[0], scope)
    texts, order = in_the_log(scope, span(node))
    scope.edits.spell(node, f"max_by({operand(scope, node.expressions[0])}, struct({', '.join(texts)}))")
    return chosen("max_by", value, order, None, span(node))


def ignoring_nulls(node: exp.IgnoreNulls, scope: Scope) -> Expr:
    """first_value(x) IGNORE NULLS, and the other functions of BY_EVENT_ORDER."""
    filter_ = node.this if isinstance(node.this, exp.Filter) else None
    inner = node.this if filter_ is None else filter_.this
    if not isinstance(inner, exp.Anonymous) or inner.name.lower() not in BY_EVENT_ORDER:
        raise Wrong(span(node), "IGNORE NULLS does not go here", "It goes after first_value(x) and last_value(x).")
    when = None if filter_ is None else condition(resolved(filter_.expression.this, scope), "FILTER")
    result = _first_or_last(inner.name.lower(), inner, scope, when, ignores_nulls=True)
    scope.edits.spell(node, f"{scope.edited_sql(inner)}{filter_clause(scope, inner)}")
    return result


def _from_scalars(call_: Aggregate) -> Expr:
    """The aggregate. The greatest or the least of structs is put together from scalars."""
    return extreme(call_) if call_.type.nested else call_


def _sorted_by_itself(call_: Aggregate) -> Aggregate:
    """The aggregate. Structs are sorted by their fields, not by their JSON."""
    return replace(call_, arguments=call_.arguments[:1] * 2) if is_struct(call_.arguments[0]) else call_


def within_group(node: exp.WithinGroup, scope: Scope, when: Expr | None = None) -> Expr:
    """percentile_cont(0.5) WITHIN GROUP (ORDER BY x), and the other functions with WITHIN GROUP."""
    call_, place = node.this, span(node.this)
    keys = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    row = aggregate_named(call_.name.lower()) if isinstance(call_, exp.Anonymous) else None
    nodes = call_.expressions
    texts = nodes[0].expressions if nodes and isinstance(nodes[0], exp.Distinct) else nodes
    if row is not None and row.syntax.parameter == "separator" and texts:
        return joined_within(node, keys, scope, when)
    if not isinstance(call_, exp.Anonymous) or len(keys) != 1:
        raise Wrong(place, "WITHIN GROUP takes one column", "Write WITHIN GROUP (ORDER BY x).")
    if row is None or not row.syntax.within_group:
        way_out = "It goes with percentile_cont, percentile_disc, mode and listagg."
        raise Wrong(place, f"{call_.name.lower()}() does not take WITHIN GROUP", way_out)
    value, name = keys[0].this, row.name
    with scope.edits.copies(value, *nodes) as operands:
        result = replace(aggregate(name, exp.Anonymous(this=name, expressions=operands), scope, when), place=place)
    if keys[0].args.get("desc"):
        if row.syntax.from_the_top:
            raise Wrong(place, f"{name}() does not take a descending order", row.syntax.from_the_top)
        share = Decimal(1) - Decimal(str(getattr(result.arguments[1], "value", 0)))
        result = replace(result, arguments=(result.arguments[0], number(str(share))))
    return result
