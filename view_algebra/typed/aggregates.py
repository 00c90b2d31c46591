"""Aggregate calls, also WITHIN GROUP, whose results do not depend on the order of rows.

Spark leaves some results to the order of rows. Here the order of events or of values decides them, and the SELECT that
Spark runs spells it out:

- `array_agg(x ORDER BY y)` is
  `transform(sort_array(collect_list(struct(y AS y1, x AS x)) FILTER (WHERE x IS NOT NULL), true), e -> e.x)`.
  Of two values with the same y, the lesser x is first.
- `collect_set()` of lists over records keeps their JSON, which tells them apart, and shows them as lists again.
- An estimate is spelled as the registers of HyperLogLog, or as the buckets of a sketch for percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from view_algebra.language.aggregates import (
    ACCURACY,
    AGGREGATES,
    BY_BUCKETS,
    BY_EVENT_ORDER,
    COLLECTED_ONCE,
    aggregate_named,
    is_aggregate,
    not_null,
)
from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Constant,
    Expr,
    NeedsRecords,
    Place,
    Subquery,
    both,
    whole_number,
)
from view_algebra.language.meeting import cast, compare
from view_algebra.language.operators import case, condition, number
from view_algebra.language.overloads import call
from view_algebra.language.quoting import spark_name
from view_algebra.language.structs import by as chosen
from view_algebra.language.structs import extreme, has_order, is_struct, keys_of, order_of
from view_algebra.language.times import aggregated
from view_algebra.language.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    WINDOW,
    Type,
    not_in_json,
    of_scalars,
)
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, not_taken, span
from view_algebra.typed.calls import (
    aggregate,
    call_of,
    refuse_aggregates,
)
from view_algebra.typed.events import event_order, in_the_log, reads_changes
from view_algebra.typed.nested import is_list_key, text_of
from view_algebra.typed.scopes import Scope, resolved
from view_algebra.written.clauses import is_list_in_order
from view_algebra.written.dialect import parsed
from view_algebra.written.tables import IN_THE_LOG


def collected(
    name: str, node: exp.Anonymous, scope: Scope, when: Expr | None, filter_: exp.Filter | None
) -> Expr | None:
    """The typed call of an aggregate, or None if the call is not an aggregate. `when` is its FILTER."""
    if is_list_in_order(node):
        listed = list_in_order(node, filter_)
        scope.edits.put(node if filter_ is None else filter_, listed)
        return resolved(listed, scope)
    row = AGGREGATES.get(name)
    several = row is not None and row.parameter == "shares" and len(node.expressions) == 2
    if several and _is_array(node.expressions[1]):
        return _shares(name, node, scope, when)
    if name == IN_THE_LOG and reads_changes(scope):
        return _last_in_the_log(node, scope)
    if name in BY_EVENT_ORDER or name in BY_EVENT_ORDER.values():
        return _first_or_last(name, node, scope, when)
    if name in BY_BUCKETS:
        return _bucket_percentile(name, node, scope, when, filter_)
    is_set = row is not None and row.settled == "set"
    if is_set and (of_lists := set_of_lists(node, scope, when, filter_)) is not None:
        return of_lists
    if is_aggregate(name):
        return _settled(aggregate(name, node, scope, when), node, scope, filter_)
    return None


def _settled(call_: Aggregate, node: exp.Anonymous, scope: Scope, filter_: exp.Filter | None) -> Expr:
    """The aggregate. If Spark leaves its result to the order of rows, the order of events or values decides it."""
    row = AGGREGATES[call_.function]
    if row.lengths and call_.arguments[0].type.length:
        return aggregated(call_)
    if call_.distinct and "session_window" in scope.windows:
        return _in_a_session(call_, node, filter_, scope)
    if row.settled is None:
        return _from_scalars(call_)
    if call_.distinct:
        way_out = f"Write {COLLECTED_ONCE}(x)." if row.collects else "Write … WITHIN GROUP (ORDER BY x)."
        raise Wrong(call_.place, f"{row.name}() does not take DISTINCT", way_out)
    first = node.expressions[0]
    value = operand(scope, first.expressions[0] if isinstance(first, exp.Distinct) else first)
    counts = f"{value} IS NOT NULL" + of_filter(scope, filter_)
    return _SETTLED[row.settled](call_, _AuthorsCall(value, counts, node, filter_), scope)


@dataclass(frozen=True)
class _AuthorsCall:
    """An aggregate as its author wrote it.

    value: the first argument, as Spark SQL
    counts: the condition under which a value counts
    node: the call
    filter: the FILTER around the call
    """

    value: str
    counts: str
    node: exp.Anonymous
    filter: exp.Filter | None

    @property
    def whole(self) -> exp.Expr:
        """The call with its FILTER."""
        return self.node if self.filter is None else self.filter


def _spelled_estimate(call_: Aggregate, authors_call: _AuthorsCall, scope: Scope) -> Aggregate:
    registers = whole_number(call_.arguments[1])
    scope.edits.spell(authors_call.whole, estimate(authors_call.value, authors_call.counts, registers))
    return call_


def _spelled_mode(call_: Aggregate, authors_call: _AuthorsCall, scope: Scope) -> Aggregate:
    scope.edits.spell(authors_call.node, f"mode({_one_zero(authors_call.value, call_.type)}, true)")
    return call_


def _spelled_set(call_: Aggregate, authors_call: _AuthorsCall, scope: Scope) -> Aggregate:
    kind = call_.arguments[0].type
    values = f"collect_set(CASE WHEN {authors_call.counts} THEN {_one_zero(authors_call.value, kind)} END)"
    if kind in (DOUBLE, FLOAT):  # Spark's own set keeps every NaN
        values = f"array_distinct({values})"
    scope.edits.spell(authors_call.whole, f"sort_array({values})")
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
    scope.edits.spell(authors_call.whole, values)
    return replace(call_, arguments=(call_.arguments[0], *events, *call_.arguments[1:]))


_SETTLED: dict[str, Callable[[Aggregate, _AuthorsCall, Scope], Aggregate]] = {
    "estimate": _spelled_estimate,
    "mode": _spelled_mode,
    "set": _spelled_set,
    "list": _spelled_list,
}
"""The edits that settle what Spark leaves open in the SELECT of `lamina check`, by `AggregateFunction.settled`."""


def _in_a_session(call_: Aggregate, node: exp.Anonymous, filter_: exp.Filter | None, scope: Scope) -> Aggregate:
    """count(DISTINCT …) in a session: Spark would count a value once per piece that it merges into the session."""
    if not AGGREGATES[call_.function].counts:
        way_out = "Leave DISTINCT out, or group by window(ts, …)."
        raise Wrong(call_.place, f"{call_.function}() of a session does not take DISTINCT", way_out)
    texts = [operand(scope, e) for e in node.expressions[0].expressions]
    counts = " AND ".join(f"{value} IS NOT NULL" for value in texts) + of_filter(scope, filter_)
    alike = [_one_zero(value, e.type) for value, e in zip(texts, call_.arguments, strict=True)]
    whole = node if filter_ is None else filter_
    scope.edits.spell(
        whole, f"CAST(size(collect_set(CASE WHEN {counts} THEN struct({', '.join(alike)}) END)) AS BIGINT)"
    )
    return call_


def sorted_list(arguments: Sequence[exp.Expr], scope: Scope) -> Expr | None:
    """sort_array(collect_list(x)) of structs, or of values above the aggregation, in their own order, else None."""
    filter_ = arguments[0] if arguments and isinstance(arguments[0], exp.Filter) else None
    listed = filter_.this if filter_ is not None else arguments[0] if arguments else None
    upwards = [flag.this for flag in arguments[1:] if isinstance(flag, exp.Boolean)]
    if not isinstance(listed, exp.Anonymous) or len(upwards) < len(arguments) - 1:
        return None
    row = aggregate_named(listed.name.lower())
    if row is None or not row.collects:
        return None
    when = None if filter_ is None else condition(resolved(filter_.expression.this, scope), "FILTER")
    aggregate_ = aggregate(row.name, listed, scope, when)
    if aggregate_.distinct or not (is_struct(aggregate_.arguments[0]) or (scope.above and not row.once)):
        return None
    value = aggregate_.arguments[0]
    if value.type.nested and not of_scalars(value.type):
        way_out = "Leave it unsorted: collect_list() is in the order of the events."
        what = f"Postgres sorts values of type {value.type} differently"
        raise Wrong(aggregate_.place, what, way_out)
    once = scope.above or row.once  # else the list holds a value once per record
    events = () if once else event_order(scope, aggregate_.place, of=aggregate_.arguments[:1])[1]
    aggregate_ = replace(aggregate_, arguments=(*aggregate_.arguments[:1] * 2, *events))
    return aggregate_ if all(upwards) else Call("reverse", (aggregate_,), aggregate_.type, place=aggregate_.place)


def _shares(name: str, node: exp.Anonymous, scope: Scope, when: Expr | None) -> Expr:
    """percentile(x, array(0.5, 0.9)): several percentiles of the same values."""
    value, shares = node.expressions
    percentiles = [aggregate(name, call_of(name, value, share), scope, when) for share in shares.expressions]
    return _listed(percentiles, span(node))


def _first_or_last(
    name: str, node: exp.Anonymous, scope: Scope, when: Expr | None, ignores_nulls: bool = False
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
        whole = argument.type == BINARY or (argument.type.nested and not_in_json(argument.type) is None)
        taken = argument is arguments[0] and whole and argument.type != WINDOW
        if not (AGGREGATES[function].accepts(argument.type) or taken):
            way_out = f"Write {name}() of a scalar value, a struct of such, or to_json(…)."
            raise Wrong(argument.place or place, f"{name}() does not take {argument.type}", way_out)
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


def _bucket_percentile(
    name: str, node: exp.Anonymous, scope: Scope, when: Expr | None, filter_: exp.Filter | None
) -> Expr:
    """percentile_approx(x, 0.9), of the values' type, as in Spark. The third argument bounds its relative error."""
    place, nodes = span(node), node.expressions
    if not 2 <= len(nodes) <= 3 or isinstance(nodes[0], exp.Distinct):
        raise Wrong(place, f"{name}() takes a value and a share", f"Write {name}(x, 0.9).")
    accuracy = resolved(nodes[2], scope) if len(nodes) > 2 else Constant(str(ACCURACY), INT)
    if not (isinstance(accuracy, Constant) and accuracy.type == INT and 10 <= int(accuracy.value or 0) <= 10_000):
        raise Wrong(place, f"{name}() takes an accuracy from 10 to 10000", f"Write {name}(x, 0.9, 100).")
    value = resolved(nodes[0], scope)
    refuse_aggregates(value, f"{name}()", "Aggregate in a subquery first.")
    kind = value.type
    if scope.above:
        way_out = "Write percentile(x, 0.9), which is exact."
        needed = NeedsRecords(f"{name}() cannot be computed above the aggregation", way_out, kind, place)
        lacking = Aggregate("max", (needed,), when, False, kind, place)
        return _listed([lacking], place) if _is_array(nodes[1]) else lacking
    if not kind.numeric or kind == FLOAT:
        raise Wrong(place, f"{name}() does not take {kind}", f"Write {name}(CAST(… AS DOUBLE), 0.9).")
    bucket = bucketed(f"({scope.written(nodes[0])})", kind, 1 / int(accuracy.value or ACCURACY))
    where = of_filter(scope, filter_, " FILTER (WHERE ", ")")
    texts, values = [], []
    for share in map(scope.edits.copy, nodes[1].expressions if _is_array(nodes[1]) else [nodes[1]]):
        disc = exp.Anonymous(this="percentile_disc", expressions=[parsed(bucket), share])
        exact = aggregate("percentile_disc", disc, scope, when)
        values.append(cast(replace(exact, place=place), kind))
        disc_text = f"percentile_disc({scope.written(share)}) WITHIN GROUP (ORDER BY {bucket}){where}"
        texts.append(f"CAST({disc_text} AS {kind.spark})")
    several = f"CASE WHEN {texts[0]} IS NOT NULL THEN array({', '.join(texts)}) END"
    scope.edits.spell(node if filter_ is None else filter_, several if _is_array(nodes[1]) else texts[0])
    return _listed(values, place) if _is_array(nodes[1]) else values[0]


def ignoring_nulls(node: exp.IgnoreNulls, scope: Scope) -> Expr:
    """first_value(x) IGNORE NULLS, and the other functions of BY_EVENT_ORDER."""
    filter_ = node.this if isinstance(node.this, exp.Filter) else None
    inner = node.this if filter_ is None else filter_.this
    if not isinstance(inner, exp.Anonymous) or inner.name.lower() not in BY_EVENT_ORDER:
        raise Wrong(span(node), "IGNORE NULLS does not go here", "It goes after first_value(x) and last_value(x).")
    when = None if filter_ is None else condition(resolved(filter_.expression.this, scope), "FILTER")
    result = _first_or_last(inner.name.lower(), inner, scope, when, ignores_nulls=True)
    where = of_filter(scope, filter_, " FILTER (WHERE ", ")")
    scope.edits.spell(node, f"{scope.written(inner)}{where}")
    return result


def _from_scalars(call_: Aggregate) -> Expr:
    """The aggregate. The greatest or the least of structs is put together from scalars."""
    return extreme(call_) if call_.type.nested else call_


def _sorted_by_itself(call_: Aggregate) -> Aggregate:
    """The aggregate. Structs are sorted by their fields, not by their JSON."""
    return replace(call_, arguments=call_.arguments[:1] * 2) if is_struct(call_.arguments[0]) else call_


def _is_array(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "array" and bool(node.expressions)


def _listed(shares: Sequence[Expr], place: Place) -> Expr:
    """Several percentiles of the same values as a list."""
    return Call("shares", tuple(shares), Type("ARRAY", element=shares[0].type), place=place)


def _one_zero(value: str, kind: Type) -> str:
    """A value in Spark SQL. The fractions 0.0 and -0.0 become one value."""
    return f"CASE WHEN {value} = 0 THEN CAST(0 AS {kind.spark}) ELSE {value} END" if kind in (DOUBLE, FLOAT) else value


def within_group(
    node: exp.WithinGroup, scope: Scope, when: Expr | None = None, filter_: exp.Filter | None = None
) -> Expr:
    """percentile_cont(0.5) WITHIN GROUP (ORDER BY x), and the other functions with WITHIN GROUP."""
    call_, place = node.this, span(node.this)
    keys = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    row = aggregate_named(call_.name.lower()) if isinstance(call_, exp.Anonymous) else None
    nodes = call_.expressions
    texts = nodes[0].expressions if nodes and isinstance(nodes[0], exp.Distinct) else nodes
    if row is not None and row.parameter == "separator" and texts:
        return _listed_within(keys, call_, texts, scope, when, node if filter_ is None else filter_)
    if not isinstance(call_, exp.Anonymous) or len(keys) != 1:
        raise Wrong(place, "WITHIN GROUP takes one column", "Write WITHIN GROUP (ORDER BY x).")
    if row is None or not row.within_group:
        way_out = "It goes with percentile_cont, percentile_disc, mode and listagg."
        raise Wrong(place, f"{call_.name.lower()}() does not take WITHIN GROUP", way_out)
    value, name = keys[0].this, row.name
    operands = [scope.edits.copy(part) for part in (value, *nodes)]
    result = replace(aggregate(name, _call(name, *operands), scope, when), place=place)
    for part, copy in zip((value, *nodes), operands, strict=True):
        scope.edits.adopt(part, copy)
    if keys[0].args.get("desc"):
        if row.from_the_top:
            raise Wrong(place, f"{name}() does not take a descending order", row.from_the_top)
        share = Decimal(1) - Decimal(str(getattr(result.arguments[1], "value", 0)))
        result = replace(result, arguments=(result.arguments[0], number(str(share))))
    return result


def _listed_within(
    keys: Sequence[exp.Ordered],
    node: exp.Anonymous,
    texts: Sequence[exp.Expr],
    scope: Scope,
    when: Expr | None,
    whole: exp.Expr,
) -> Expr:
    """listagg(x) WITHIN GROUP (ORDER BY …), by x itself or by other keys."""
    value, *between = texts
    keys = _nulls_as_usual(keys, value, scope)
    call_ = aggregate("listagg", node, scope, when)
    if not call_.distinct and all(_descends(key) for key in keys):
        return _listed_downwards(keys, node, scope, when, whole)
    if (by := [resolved(key.this, scope) for key in keys]) != [resolved(value, scope)]:
        return _listed_by(keys, by, call_, node, whole, scope)
    where = of_filter(scope, whole) if isinstance(whole, exp.Filter) else ""
    listed = f"CASE WHEN {operand(scope, value)} IS NOT NULL{where} THEN {scope.written(value)} END"
    list_ = f"sort_array(collect_{'set' if call_.distinct else 'list'}({listed}))"
    if not _descends(keys[0]):
        scope.edits.spell(whole, joined_texts(scope, list_, list_, between))
        return call_
    scope.edits.spell(whole, joined_texts(scope, list_, f"reverse({list_})", between))
    return _reversed(aggregate("collect_set", call_of("collect_set", value), scope, when), between, scope)


def _listed_downwards(
    keys: Sequence[exp.Ordered], node: exp.Anonymous, scope: Scope, when: Expr | None, whole: exp.Expr
) -> Expr:
    """listagg(x) WITHIN GROUP (ORDER BY y DESC): a list sorted upwards by y, then by x, and reversed."""
    (value, *between), place = node.expressions, span(node)
    text = aggregate("listagg", node, scope, when).arguments[0]
    events = () if scope.above else event_order(scope, place, of=(text,))[1]
    upwards = aggregate("collect_list", call_of("collect_list", value), scope, when)
    upwards = replace(upwards, arguments=(text, *(resolved(key.this, scope) for key in keys), text, *events))
    counts = f"{operand(scope, value)} IS NOT NULL" + (of_filter(scope, whole) if isinstance(whole, exp.Filter) else "")
    list_ = sorted_by(", ".join(scope.written(key.this) for key in keys), scope.written(value), counts)
    scope.edits.spell(whole, joined_texts(scope, list_, f"reverse({in_turn(list_)})", between))
    return _reversed(upwards, between, scope)


def _reversed(upwards: Aggregate, between: Sequence[exp.Expr], scope: Scope) -> Expr:
    """The texts of a list, joined from the last to the first, or NULL if the list is empty."""
    place = upwards.place
    downwards = Call("reverse", (upwards,), upwards.type, place=place)
    separator = resolved(between[0], scope) if between else Constant("", STRING)
    joined = call("array_join", [downwards, separator], place)
    return case([(compare(">", call("size", [upwards], place), number("0"), place), joined)], None, place)


def _listed_by(
    keys: Sequence[exp.Ordered],
    by: Sequence[Expr],
    call_: Aggregate,
    node: exp.Anonymous,
    whole: exp.Expr,
    scope: Scope,
) -> Aggregate:
    """listagg(x) WITHIN GROUP (ORDER BY y). Rows with the same y are ordered by x."""
    if call_.distinct:
        raise Wrong(call_.place, "listagg(DISTINCT x) sorts by x only", "Write … WITHIN GROUP (ORDER BY x).")
    for key in keys:
        if key.args.get("desc"):
            way_out = "Sort all keys in one direction. For n DESC next to ascending keys, write -n."
            raise Wrong(call_.place, "listagg() sorts all keys in one direction", way_out)
    value = operand(scope, node.expressions[0])
    counts = f"{value} IS NOT NULL" + (of_filter(scope, whole) if isinstance(whole, exp.Filter) else "")
    list_ = sorted_by(", ".join(scope.written(key.this) for key in keys), value, counts)
    scope.edits.spell(whole, joined_texts(scope, list_, in_turn(list_), node.expressions[1:]))
    text, *between = call_.arguments
    return replace(call_, arguments=(text, *by, text, *between))


def _nulls_as_usual(keys: Sequence[exp.Ordered], listed: exp.Expr, scope: Scope) -> list[exp.Ordered]:
    """The keys, with NULL where Spark sorts it: first when ascending, last when descending.

    A key that puts NULL elsewhere gets a key `… IS NULL` in front of it.
    """
    usual: list[exp.Ordered] = []
    for key in keys:
        down = bool(key.args.get("desc"))
        if down == bool(key.args.get("nulls_first", not down)) and key.this != listed:
            is_null = exp.Is(this=exp.Paren(this=scope.edits.copy(key.this)), expression=exp.Null())
            usual.append(exp.Ordered(this=is_null, desc=down))
        usual.append(exp.Ordered(this=scope.edits.copy(key.this), desc=down, nulls_first=not down))
    return usual


def _descends(key: exp.Ordered) -> bool:
    return bool(key.args.get("desc"))


def map_from_entries(node: exp.Anonymous, scope: Scope) -> Expr:
    """`map_from_entries(collect_list(struct(kind, n)))`: of two entries with one name, the last one counts.

    Spark fails at an entry without a name. Such entries are left out, in the author's SELECT too.
    """
    place = span(node)
    if len(node.expressions) != 1:
        raise Wrong(place, not_taken("map_from_entries", len(node.expressions)), "Give it one list of structs.")
    (list_,) = node.expressions
    of_groups = sorted_list([list_], scope) if scope.above else None  # groups have no order of events
    listed = resolved(list_, scope) if of_groups is None else of_groups
    fields = () if listed.type.element is None else listed.type.element.fields
    if len(fields) != 2 or fields[0][1] != STRING or not_in_json(fields[1][1]) is not None:
        way_out = "Write map_from_entries(collect_list(struct(name, x))), where the name is a STRING."
        raise Wrong(place, f"map_from_entries() does not take {listed.type}", way_out)
    name = spark_name(fields[0][0])
    text = scope.written(list_) if of_groups is None else f"sort_array({scope.written(list_)})"
    scope.edits.spell(node, f"map_from_entries(filter({text}, e -> e.{name} IS NOT NULL))")
    return Call("map_from_entries", (listed,), Type("MAP", key=STRING, element=fields[1][1]), place=place)


def set_of_lists(node: exp.Anonymous, scope: Scope, when: Expr | None, filter_: exp.Filter | None) -> Expr | None:
    """`collect_set(tags)` in the order of the lists' JSON, or None if its values are not lists."""
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Distinct):
        return None
    value = resolved(node.expressions[0], scope)
    if not is_list_key(value.type):
        return None
    refuse_aggregates(value, "collect_set()", "Aggregate in a subquery first.")
    listed = Type("ARRAY", element=value.type)
    texts = Aggregate("collect_set", (text_of(value),), when, False, Type("ARRAY", element=STRING), span(node))
    of = scope.written(node.expressions[0])
    where = f"{of} IS NOT NULL" + ("" if filter_ is None else f" AND ({scope.written(filter_.expression.this)})")
    pairs = f"collect_set(CASE WHEN {where} THEN struct(to_json({of}) AS text, {of} AS list) END)"
    scope.edits.spell(node if filter_ is None else filter_, f"transform(sort_array({pairs}), pair -> pair.list)")
    return Call("from_texts", (texts,), listed, place=span(node))


def estimate(value: str, counts: str, registers: int) -> str:
    """The number of distinct values for which `counts` holds, estimated from this many registers, as Spark SQL.

    The hash's remainder picks the register. A register keeps the greatest position of a highest bit among its values:
    sorted, the greatest comes last and replaces those before it. If most registers are empty, the number of empty ones
    gives the estimate (Flajolet, Fusy, Gandouet, Meunier, 2007).
    """
    bits = registers.bit_length() - 1
    hashed = f"xxhash64({value})"
    position = f"{65 - bits} - length(bin(shiftrightunsigned({hashed}, {bits})))"
    kept = f"array_sort(collect_set(CASE WHEN {counts} THEN pmod({hashed}, {registers}L) * 64 + {position} END))"
    same, gone = "e DIV 64 = a.last DIV 64", "pow(2D, -(a.last % 64))"
    added = (
        f"(a, e) -> named_struct('z', a.z + pow(2D, -(e % 64)) - CASE WHEN {same} THEN {gone} ELSE 0D END,"
        f" 'n', a.n + CASE WHEN {same} THEN 0 ELSE 1 END, 'last', e)"
    )
    raw = f"{_alpha(registers) * registers * registers!r}D / (a.z + {registers} - a.n)"
    few = f"a.n < {registers} AND {raw} <= {2.5 * registers!r}D"
    linear = f"{registers}D * ln({registers}D / ({registers} - a.n))"
    rounded = f"a -> CAST(floor(CASE WHEN {few} THEN {linear} ELSE {raw} END + 0.5D) AS BIGINT)"
    return f"aggregate({kept}, named_struct('z', 0D, 'n', 0, 'last', -64L), {added}, {rounded})"


def _alpha(registers: int) -> float:
    return 0.7213 / (1 + 1.079 / registers)


def bucketed(value: str, kind: Type, error: float) -> str:
    """The value that represents a bucket. No value in the bucket differs from it by more than `error`, relatively.

    Bucket bounds grow by a constant factor from 0 on (DDSketch: Masson, Rim, Lee, 2019). A greater value is never in a
    smaller bucket, so the percentile of the representatives represents the percentile of the values.
    """
    growth = (1 + error) / (1 - error)
    x = f"CAST({value} AS DOUBLE)"
    bucket = f"pow({growth!r}D, ceil(ln(abs({x})) / {math.log(growth)!r}D))"
    stands = f"sign({x}) * {2 / (1 + growth)!r}D * {bucket}"
    if not (kind.integral or kind.name == "DECIMAL"):
        own = f"isnan({x}) OR abs({x}) = CAST('Infinity' AS DOUBLE)"
        return f"CASE WHEN {x} = 0 THEN 0D WHEN {own} THEN {x} ELSE {stands} END"
    rounded = f"CAST(round({stands}, {kind.scale if kind.name == 'DECIMAL' else 0}) AS {kind.spark})"
    return f"CASE WHEN {x} = 0 THEN {value} ELSE coalesce({rounded}, {value}) END"


def list_in_order(node: exp.Anonymous, filter_: exp.Filter | None) -> exp.Expr:
    """The call `array_agg(x ORDER BY y)` in Spark's SQL, with its FILTER."""
    order, name = node.expressions[0], node.name.lower()
    value, keys, place = order.this, order.expressions, span(node)
    if isinstance(value, exp.Distinct):
        raise Wrong(place, f"{name}() does not take DISTINCT with ORDER BY", "Write sort_array(collect_set(x)).")
    falls = {bool(key.args.get("desc")) for key in keys}
    if len(falls) > 1 or any(bool(key.args.get("nulls_first")) == bool(key.args.get("desc")) for key in keys):
        way_out = (
            "Sort by columns that all ascend with NULL first, or all descend with NULL last, which are the defaults."
        )
        raise Wrong(place, "sort_array() sorts all keys in one direction, NULL first when ascending", way_out)
    named = [(f"y{number}", key.this) for number, key in enumerate(keys, 1)] + [("x", value)]
    fields = [exp.alias_(node.copy(), alias) for alias, node in named]
    kept: exp.Expr = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    if filter_ is not None:
        kept = exp.And(this=exp.Paren(this=filter_.expression.this.copy()), expression=kept)
    listed = exp.Filter(this=_call("collect_list", _call("struct", *fields)), expression=exp.Where(this=kept))
    element = exp.Dot(this=exp.to_identifier("e"), expression=exp.to_identifier("x"))
    only_x = exp.Lambda(this=element, expressions=[exp.to_identifier("e")])
    return _call("transform", _call("sort_array", listed, exp.Boolean(this=falls == {False})), only_x)


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[*arguments])


def operand(scope: Scope, node: exp.Expr) -> str:
    """The text of an expression in Spark SQL, in parentheses unless IS NOT NULL can follow it directly."""
    alone = isinstance(node, (exp.Column, exp.Literal, exp.Anonymous, exp.Cast, exp.Paren))
    return scope.written(node) if alone else f"({scope.written(node)})"


def of_filter(scope: Scope, filter_: exp.Filter | None, before: str = " AND (", after: str = ")") -> str:
    """The condition of a FILTER in Spark SQL. Empty without a FILTER."""
    return "" if filter_ is None else f"{before}{scope.written(filter_.expression.this)}{after}"


def sorted_by(order: str, value: str, counts: str) -> str:
    """The values for which `counts` holds, in Spark SQL, each in a struct with its sort keys."""
    return f"array_sort(collect_list(CASE WHEN {counts} THEN struct({order}, {value} AS v) END))"


def in_turn(structs: str, value: str = "s.v") -> str:
    """The values in the list that `sorted_by` returns, in its order."""
    return f"transform({structs}, s -> {value})"


def joined_texts(scope: Scope, structs: str, texts: str, between: Sequence[exp.Expr]) -> str:
    """Texts joined into one, in Spark SQL, or NULL if there are none, as with listagg()."""
    separator = scope.written(between[0]) if between else "''"
    return f"CASE WHEN size({structs}) > 0 THEN array_join({texts}, {separator}) END"
