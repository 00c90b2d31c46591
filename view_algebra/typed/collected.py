"""Calls of aggregates: those whose result Spark leaves to the order of rows go by that of events, or of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from view_algebra.language.aggregates import (
    ACCURACY,
    AGGREGATES,
    BY_BUCKETS,
    BY_EVENT_ORDER,
    SYNONYMS,
    is_aggregate,
    not_null,
)
from view_algebra.language.expressions import Aggregate, Call, Constant, Expr, NeedsRecords, Place, Subquery, both
from view_algebra.language.meeting import cast
from view_algebra.language.operators import condition
from view_algebra.language.structs import by as chosen
from view_algebra.language.structs import extreme, has_order, is_struct, keys_of, order_of
from view_algebra.language.times import OF_LENGTHS, aggregated
from view_algebra.language.types import BINARY, BOOLEAN, DOUBLE, FLOAT, INT, WINDOW, Type, not_in_json, of_scalars
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, span
from view_algebra.typed.calls import aggregate, call_of, refuse_aggregates
from view_algebra.typed.estimates import bucketed, estimate
from view_algebra.typed.events import event_order, in_the_log, reads_changes
from view_algebra.typed.lists_in_order import list_in_order
from view_algebra.typed.lists_in_spark import in_turn, joined_texts, of_filter, operand, sorted_by
from view_algebra.typed.names import Scope, resolved
from view_algebra.typed.sets import set_of_lists
from view_algebra.written.clauses import is_list_in_order
from view_algebra.written.dialect import parsed
from view_algebra.written.oracle import put, spell, written
from view_algebra.written.tables import IN_THE_LOG


def collected(
    name: str, node: exp.Anonymous, scope: Scope, when: Expr | None, filter_: exp.Filter | None
) -> Expr | None:
    """A call of an aggregate, None where it is none; `when`: its FILTER."""
    if is_list_in_order(node):
        listed = list_in_order(node, filter_)
        put(node if filter_ is None else filter_, listed)
        return resolved(listed, scope)
    if name == "percentile" and len(node.expressions) == 2 and _is_array(node.expressions[1]):
        return _shares(node, scope, when)
    if name == IN_THE_LOG and reads_changes(scope):
        return _last_in_the_log(node, scope)
    if name in BY_EVENT_ORDER or name in BY_EVENT_ORDER.values():
        return _by(name, node, scope, when)
    if name in BY_BUCKETS:
        return _of_buckets(name, node, scope, when, filter_)
    if name == "collect_set" and (of_lists := set_of_lists(node, scope, when, filter_)) is not None:
        return of_lists
    if is_aggregate(name):
        read = partial(resolved, scope=scope)
        return _in_order(aggregate(name, node, read, when), node, scope, filter_)
    return None


def _in_order(made: Aggregate, node: exp.Anonymous, scope: Scope, filter_: exp.Filter | None) -> Expr:
    """An aggregate whose result Spark leaves to the order of rows, in the order of their events or their values."""
    name = made.function
    if name in OF_LENGTHS and made.arguments[0].type.length:
        return aggregated(made)
    if name in ("min", "max"):
        return _extreme(made)
    if made.distinct and "session_window" in scope.windows:
        return _in_a_session(made, node, filter_)
    if name not in ("mode", "collect_set", "collect_list", "listagg", "approx_count_distinct"):
        return made
    if made.distinct:
        way_out = "Write collect_set(x)." if name == "collect_list" else "Write … WITHIN GROUP (ORDER BY x)."
        raise Wrong(made.place, f"{name}(DISTINCT …)", way_out)
    first = node.expressions[0]
    value = operand(first.expressions[0] if isinstance(first, exp.Distinct) else first)
    counts = f"{value} IS NOT NULL" + of_filter(filter_)
    whole: exp.Expr = node if filter_ is None else filter_
    if name == "approx_count_distinct":
        spell(whole, estimate(value, counts, int(getattr(made.arguments[1], "value", 0))))
        return made
    if name == "mode":
        spell(node, f"mode({_one_zero(value, made.type)}, true)")
        return made
    if name == "collect_set":
        found = f"collect_set(CASE WHEN {counts} THEN {_one_zero(value, made.arguments[0].type)} END)"
        if made.arguments[0].type in (DOUBLE, FLOAT):  # where Spark's own set has every NaN
            found = f"array_distinct({found})"
        spell(whole, f"sort_array({found})")
        return _by_itself(made)
    order, events = event_order(scope, made.place, name, made.arguments[:1])
    if any(isinstance(part, Subquery) for part in walk(made.arguments[0])):
        raise Wrong(made.place, f"a subquery in {name}()", "Compute it in a subquery in FROM.")
    of_maps = made.arguments[0].type.name == "MAP"  # which Spark sorts as their entries alone
    found = sorted_by(order, f"map_entries({value})" if of_maps else value, counts)
    listed = in_turn(found, "map_from_entries(s.v)" if of_maps else "s.v")
    if name == "listagg":
        listed = joined_texts(found, listed, node.expressions[1:])
    spell(whole, listed)
    return replace(made, arguments=(made.arguments[0], *events, *made.arguments[1:]))


def _in_a_session(made: Aggregate, node: exp.Anonymous, filter_: exp.Filter | None) -> Aggregate:
    """DISTINCT in a session, where Spark counts a value once for each piece that it merges to the session."""
    if made.function != "count":
        way_out = "Leave DISTINCT out, or group by window(ts, …)."
        raise Wrong(made.place, f"{made.function}(DISTINCT …) in a session", way_out)
    values = [operand(e) for e in node.expressions[0].expressions]
    counts = " AND ".join(f"{value} IS NOT NULL" for value in values) + of_filter(filter_)
    alike = [_one_zero(value, e.type) for value, e in zip(values, made.arguments, strict=True)]
    whole = node if filter_ is None else filter_
    spell(whole, f"CAST(size(collect_set(CASE WHEN {counts} THEN struct({', '.join(alike)}) END)) AS BIGINT)")
    return made


def sorted_list(given: Sequence[exp.Expr], scope: Scope) -> Expr | None:
    """sort_array(collect_list(x)): the list in the values' own order, of structs, or where events have none."""
    filter_ = given[0] if given and isinstance(given[0], exp.Filter) else None
    listed = filter_.this if filter_ is not None else given[0] if given else None
    upwards = [flag.this for flag in given[1:] if isinstance(flag, exp.Boolean)]
    if not isinstance(listed, exp.Anonymous) or len(upwards) < len(given) - 1:
        return None
    name = SYNONYMS.get(listed.name.lower(), listed.name.lower())
    if name not in ("collect_list", "collect_set"):
        return None
    when = None if filter_ is None else condition(resolved(filter_.expression.this, scope), "FILTER")
    made = aggregate(name, listed, partial(resolved, scope=scope), when)
    if made.distinct or not (is_struct(made.arguments[0]) or (scope.above and name == "collect_list")):
        return None
    value = made.arguments[0]
    if value.type.nested and not of_scalars(value.type):
        way_out = "Leave it unsorted: collect_list() is in the order of the events."
        what = f"a sorted list of values of type {value.type}, which Postgres sorts differently"
        raise Wrong(made.place, what, way_out)
    once = scope.above or name == "collect_set"  # else a value stands there as often as it came
    events = () if once else event_order(scope, made.place, of=made.arguments[:1])[1]
    made = replace(made, arguments=(*made.arguments[:1] * 2, *events))
    return made if all(upwards) else Call("reverse", (made,), made.type, place=made.place)


def _shares(node: exp.Anonymous, scope: Scope, when: Expr | None) -> Expr:
    """percentile(x, array(0.5, 0.9)): several percentiles of the same values."""
    value, shares = node.expressions
    read = partial(resolved, scope=scope)
    each = [aggregate("percentile", call_of("percentile", value, share), read, when) for share in shares.expressions]
    return _listed(each, span(node))


def _by(name: str, node: exp.Anonymous, scope: Scope, when: Expr | None, ignores_nulls: bool = False) -> Expr:
    """The value with the least or greatest order, ties and all decided by the order of the events."""
    place, given = span(node), list(node.expressions)
    if given and isinstance(given[0], exp.Distinct) and name in BY_EVENT_ORDER:
        given[:1] = given[0].expressions  # of different values, too, it is the first
    function = BY_EVENT_ORDER.get(name, name)
    if name in BY_EVENT_ORDER and len(given) == 2 and isinstance(given[1], exp.Boolean):
        ignores_nulls = bool(given.pop().this)
    if len(given) != 1 + (name == function):
        way_out = f"Write {name}(x, y)." if name == function else f"Write {name}(x)."
        raise Wrong(place, f"{name}() with {len(given)} arguments", way_out)
    arguments = [resolved(a, scope) for a in given]
    for argument in arguments:
        refuse_aggregates(argument, f"{name}()", "Aggregate in a subquery first.")
        whole = argument.type == BINARY or (argument.type.nested and not_in_json(argument.type) is None)
        taken = argument is arguments[0] and whole and argument.type != WINDOW
        if not (AGGREGATES[function].accepts(argument.type) or taken):
            way_out = f"Write {name}() of a scalar value, a struct of such, or to_json(…)."
            raise Wrong(argument.place or place, f"{name}() of {argument.type}", way_out)
    texts, chosen_by_value = [operand(a) for a in given], scope.above and has_order(arguments[0].type)
    if chosen_by_value and name == "any_value":
        spell(node, f"min({texts[0]})")
        return _extreme(Aggregate("min", (arguments[0],), when, False, arguments[0].type, place))
    of_rows = name if name in BY_EVENT_ORDER and name != "any_value" else ""
    by_value: tuple[str, tuple[Expr, ...]] = (texts[0], keys_of(arguments[0]))
    order, events = (
        by_value if chosen_by_value and function == name else event_order(scope, place, of_rows, arguments[:1])
    )
    struct = f"struct({', '.join([*texts[1:], order])})"
    for text in [*texts[1:], *texts[: int(ignores_nulls)]]:
        struct = f"CASE WHEN {text} IS NOT NULL THEN {struct} END"
    spell(node, f"{function}({texts[0]}, {struct})")
    if ignores_nulls:
        when = both(when, Call("is not null", (arguments[0],), BOOLEAN))
    value, *keys = arguments
    keys = [key for each in keys for key in order_of(each)]
    return chosen(function, value, (*keys, *events), both(when, not_null(arguments[1:])), place)


def _last_in_the_log(node: exp.Anonymous, scope: Scope) -> Expr:
    """The value of the last record in the log, of which only a table asks."""
    value = resolved(node.expressions[0], scope)
    texts, order = in_the_log(scope, span(node))
    spell(node, f"max_by({operand(node.expressions[0])}, struct({', '.join(texts)}))")
    return chosen("max_by", value, order, None, span(node))


def _of_buckets(name: str, node: exp.Anonymous, scope: Scope, when: Expr | None, filter_: exp.Filter | None) -> Expr:
    """percentile_approx(x, 0.9): of the values' type, as Spark's, and by so much off as the third argument says."""
    place, given = span(node), node.expressions
    if not 2 <= len(given) <= 3 or isinstance(given[0], exp.Distinct):
        raise Wrong(place, f"{name}() of other arguments than a value and a share", f"Write {name}(x, 0.9).")
    accuracy = resolved(given[2], scope) if len(given) > 2 else Constant(str(ACCURACY), INT)
    if not (isinstance(accuracy, Constant) and accuracy.type == INT and 10 <= int(accuracy.value or 0) <= 10_000):
        raise Wrong(place, f"{name}() with another accuracy than 10 to 10000", f"Write {name}(x, 0.9, 100).")
    value = resolved(given[0], scope)
    refuse_aggregates(value, f"{name}()", "Aggregate in a subquery first.")
    kind = value.type
    if scope.above:
        result = Type("ARRAY", element=kind) if _is_array(given[1]) else kind
        return NeedsRecords(
            f"{name}() above the aggregation", "Write percentile(x, 0.9), which is exact.", result, place
        )
    if not kind.numeric or kind == FLOAT:
        raise Wrong(place, f"{name}() of {kind}", f"Write {name}(CAST(… AS DOUBLE), 0.9).")
    bucket = bucketed(f"({written(given[0])})", kind, 1 / int(accuracy.value or ACCURACY))
    where = of_filter(filter_, " FILTER (WHERE ", ")")
    texts, made = [], []
    for share in given[1].expressions if _is_array(given[1]) else [given[1]]:
        disc = exp.Anonymous(this="percentile_disc", expressions=[parsed(bucket), share])
        exact = aggregate("percentile_disc", disc, partial(resolved, scope=scope), when)
        made.append(cast(replace(exact, place=place), kind))
        disc_text = f"percentile_disc({written(share)}) WITHIN GROUP (ORDER BY {bucket}){where}"
        texts.append(f"CAST({disc_text} AS {kind.spark})")
    several = f"CASE WHEN {texts[0]} IS NOT NULL THEN array({', '.join(texts)}) END"
    spell(node if filter_ is None else filter_, several if _is_array(given[1]) else texts[0])
    return _listed(made, place) if _is_array(given[1]) else made[0]


def ignoring_nulls(node: exp.IgnoreNulls, scope: Scope) -> Expr:
    """first_value(x) IGNORE NULLS, and its like."""
    filter_ = node.this if isinstance(node.this, exp.Filter) else None
    inner = node.this if filter_ is None else filter_.this
    if not isinstance(inner, exp.Anonymous) or inner.name.lower() not in BY_EVENT_ORDER:
        raise Wrong(span(node), "IGNORE NULLS", "It goes after first_value(x) and last_value(x).")
    when = None if filter_ is None else condition(resolved(filter_.expression.this, scope), "FILTER")
    result = _by(inner.name.lower(), inner, scope, when, ignores_nulls=True)
    where = of_filter(filter_, " FILTER (WHERE ", ")")
    spell(node, f"{written(inner)}{where}")
    return result


def _extreme(made: Aggregate) -> Expr:
    return extreme(made) if made.type.nested else made


def _by_itself(made: Aggregate) -> Aggregate:
    """A list of structs in their own order, which is not that of their JSON."""
    return replace(made, arguments=made.arguments[:1] * 2) if is_struct(made.arguments[0]) else made


def _is_array(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "array" and bool(node.expressions)


def _listed(shares: Sequence[Expr], place: Place) -> Expr:
    """Several percentiles of the same values as a list."""
    return Call("shares", tuple(shares), Type("ARRAY", element=shares[0].type), place=place)


def _one_zero(value: str, kind: Type) -> str:
    """A value in Spark SQL; the two zeros of fractions are one value."""
    return f"CASE WHEN {value} = 0 THEN CAST(0 AS {kind.spark}) ELSE {value} END" if kind in (DOUBLE, FLOAT) else value
