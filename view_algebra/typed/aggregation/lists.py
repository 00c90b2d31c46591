"""Lists in an order of their own: array_agg(x ORDER BY y), listagg WITHIN GROUP, and sets and maps made from lists.

`array_agg(x ORDER BY y)` is
`transform(sort_array(collect_list(struct(y AS y1, x AS x)) FILTER (WHERE x IS NOT NULL), true), e -> e.x)`. Values with
the same y are sorted by x. A text of listagg() is joined from such a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from view_algebra.language.aggregates import aggregate_named
from view_algebra.language.expressions import Aggregate, Call, Constant, Expr
from view_algebra.language.meeting import compare
from view_algebra.language.operators import case, condition, number
from view_algebra.language.overloads import call
from view_algebra.language.quoting import spark_name
from view_algebra.language.structs import is_struct
from view_algebra.language.types import STRING, Type, not_in_json, of_scalars
from view_algebra.refusals import Wrong, not_taken, span
from view_algebra.typed.aggregation.calls import aggregate, call_of, refuse_aggregates
from view_algebra.typed.aggregation.spelling import (
    and_filter,
    filter_of,
    in_turn,
    joined_texts,
    operand,
    sorted_by,
    with_filter,
)
from view_algebra.typed.nested_keys import is_list_key, json_of
from view_algebra.typed.order.events import event_order
from view_algebra.typed.scopes import Scope, resolved


def list_in_order(node: exp.Anonymous) -> exp.Expr:
    """The call `array_agg(x ORDER BY y)` in Spark's SQL, with its FILTER."""
    order, name = node.expressions[0], node.name.lower()
    value, keys, place = order.this, order.expressions, span(node)
    if value is None:
        raise Wrong(place, not_taken(name, 0), f"Write {name}(x ORDER BY y).")
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
    if (filter_ := filter_of(node)) is not None:
        kept = exp.And(this=exp.Paren(this=filter_.expression.this.copy()), expression=kept)
    listed = exp.Filter(this=_call("collect_list", _call("struct", *fields)), expression=exp.Where(this=kept))
    element = exp.Dot(this=exp.to_identifier("e"), expression=exp.to_identifier("x"))
    only_x = exp.Lambda(this=element, expressions=[exp.to_identifier("e")])
    return _call("transform", _call("sort_array", listed, exp.Boolean(this=falls == {False})), only_x)


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


@dataclass(frozen=True)
class _Listagg:
    """listagg(value, between) WITHIN GROUP (ORDER BY keys), as its author wrote it.

    between: the separator, if there is one
    when: the condition of its FILTER
    node: the call with WITHIN GROUP
    """

    value: exp.Expr
    between: Sequence[exp.Expr]
    keys: Sequence[exp.Ordered]
    when: Expr | None
    node: exp.WithinGroup

    def counts(self, scope: Scope) -> str:
        """The condition under which a text counts, in Spark SQL."""
        return f"{operand(scope, self.value)} IS NOT NULL{and_filter(scope, self.node)}"

    def sort_keys(self, scope: Scope) -> str:
        """The keys in Spark SQL."""
        return ", ".join(scope.edited_sql(key.this) for key in self.keys)

    def spell(self, scope: Scope, structs: str, texts: str) -> None:
        """Spells the call as texts joined into one, or NULL if the list of structs is empty."""
        scope.edits.spell(with_filter(self.node), joined_texts(scope, structs, texts, self.between))


def joined_within(node: exp.WithinGroup, keys: Sequence[exp.Ordered], scope: Scope, when: Expr | None) -> Expr:
    """listagg(x) WITHIN GROUP (ORDER BY …), by x itself or by other keys."""
    first = node.this.expressions[0]
    value, *between = first.expressions if isinstance(first, exp.Distinct) else node.this.expressions
    listagg = _Listagg(value, between, _nulls_as_usual(keys, value, scope), when, node)
    call_ = aggregate("listagg", node.this, scope, when)
    if not call_.distinct and all(_descends(key) for key in listagg.keys):
        return _joined_downwards(listagg, call_, scope)
    if (by := [resolved(key.this, scope) for key in listagg.keys]) != [resolved(value, scope)]:
        return _joined_by(listagg, by, call_, scope)
    texts = f"CASE WHEN {listagg.counts(scope)} THEN {scope.edited_sql(value)} END"
    list_ = f"sort_array(collect_{'set' if call_.distinct else 'list'}({texts}))"
    if not _descends(listagg.keys[0]):
        listagg.spell(scope, list_, list_)
        return call_
    listagg.spell(scope, list_, f"reverse({list_})")
    return _reversed(aggregate("collect_set", call_of("collect_set", value), scope, when), between, scope)


def _joined_downwards(listagg: _Listagg, call_: Aggregate, scope: Scope) -> Expr:
    """listagg(x) WITHIN GROUP (ORDER BY y DESC): a list sorted upwards by y, then by x, and reversed."""
    text, value = call_.arguments[0], listagg.value
    events = () if scope.above else event_order(scope, call_.place, of=(text,))[1]
    upwards = aggregate("collect_list", call_of("collect_list", value), scope, listagg.when)
    upwards = replace(upwards, arguments=(text, *(resolved(key.this, scope) for key in listagg.keys), text, *events))
    list_ = sorted_by(listagg.sort_keys(scope), scope.edited_sql(value), listagg.counts(scope))
    listagg.spell(scope, list_, f"reverse({in_turn(list_)})")
    return _reversed(upwards, listagg.between, scope)


def _reversed(upwards: Aggregate, between: Sequence[exp.Expr], scope: Scope) -> Expr:
    """The texts of a list, joined from the last to the first, or NULL if the list is empty."""
    place = upwards.place
    downwards = Call("reverse", (upwards,), upwards.type, place=place)
    separator = resolved(between[0], scope) if between else Constant("", STRING)
    joined = call("array_join", [downwards, separator], place)
    return case([(compare(">", call("size", [upwards], place), number("0"), place), joined)], None, place)


def _joined_by(listagg: _Listagg, by: Sequence[Expr], call_: Aggregate, scope: Scope) -> Aggregate:
    """listagg(x) WITHIN GROUP (ORDER BY y). Rows with the same y are ordered by x."""
    if call_.distinct:
        raise Wrong(call_.place, "listagg(DISTINCT x) sorts by x only", "Write … WITHIN GROUP (ORDER BY x).")
    if any(_descends(key) for key in listagg.keys):
        way_out = "Sort all keys in one direction. For n DESC next to ascending keys, write -n."
        raise Wrong(call_.place, "listagg() sorts all keys in one direction", way_out)
    list_ = sorted_by(listagg.sort_keys(scope), operand(scope, listagg.value), listagg.counts(scope))
    listagg.spell(scope, list_, in_turn(list_))
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
    text = scope.edited_sql(list_) if of_groups is None else f"sort_array({scope.edited_sql(list_)})"
    scope.edits.spell(node, f"map_from_entries(filter({text}, e -> e.{name} IS NOT NULL))")
    return Call("map_from_entries", (listed,), Type("MAP", key=STRING, element=fields[1][1]), place=place)


def set_of_lists(node: exp.Anonymous, scope: Scope, when: Expr | None) -> Expr | None:
    """`collect_set(tags)` in the order of the lists' JSON, or None if its values are not lists."""
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Distinct):
        return None
    value = resolved(node.expressions[0], scope)
    if not is_list_key(value.type):
        return None
    refuse_aggregates(value, "collect_set()", "Aggregate in a subquery first.")
    listed = Type("ARRAY", element=value.type)
    texts = Aggregate("collect_set", (json_of(value),), when, False, Type("ARRAY", element=STRING), span(node))
    of = scope.edited_sql(node.expressions[0])
    counts = f"{of} IS NOT NULL{and_filter(scope, node)}"
    pairs = f"collect_set(CASE WHEN {counts} THEN struct(to_json({of}) AS text, {of} AS list) END)"
    scope.edits.spell(with_filter(node), f"transform(sort_array({pairs}), pair -> pair.list)")
    return Call("from_texts", (texts,), listed, place=span(node))


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[*arguments])
