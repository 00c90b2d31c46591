"""Aggregates WITHIN GROUP (ORDER BY …): percentiles, the mode, and texts as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial

from sqlglot import exp

from view_algebra.language.aggregates import SYNONYMS
from view_algebra.language.expressions import Aggregate, Call, Constant, Expr
from view_algebra.language.meeting import compare
from view_algebra.language.operators import case, number
from view_algebra.language.overloads import call
from view_algebra.language.types import STRING
from view_algebra.refusals import Wrong, span
from view_algebra.typed.calls import aggregate, call_of
from view_algebra.typed.events import event_order
from view_algebra.typed.lists_in_spark import in_turn, joined_texts, of_filter, operand, sorted_by
from view_algebra.typed.names import Scope, resolved
from view_algebra.written.oracle import spell, written


def within_group(
    node: exp.WithinGroup, scope: Scope, when: Expr | None = None, filter_: exp.Filter | None = None
) -> Expr:
    """percentile_cont(0.5) WITHIN GROUP (ORDER BY x), and its like."""
    call_, place = node.this, span(node.this)
    keys = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    name = SYNONYMS.get(call_.name.lower(), call_.name.lower()) if isinstance(call_, exp.Anonymous) else ""
    given, read = call_.expressions, partial(resolved, scope=scope)
    texts = given[0].expressions if given and isinstance(given[0], exp.Distinct) else given
    if name == "listagg" and texts:
        return _listed_within(keys, call_, texts, scope, when, node if filter_ is None else filter_)
    if not name or len(keys) != 1:
        raise Wrong(place, "WITHIN GROUP of another order than one column", "Write WITHIN GROUP (ORDER BY x).")
    value = keys[0].this
    if name in ("mode", "percentile", "percentile_disc"):
        made = aggregate(name, exp.Anonymous(this=name, expressions=[value, *given]), read, when)
        made = replace(made, place=place)
    else:
        raise Wrong(place, f"{name}() WITHIN GROUP", "It goes with percentile_cont, percentile_disc, mode and listagg.")
    if keys[0].args.get("desc"):
        if name != "percentile":
            raise Wrong(place, f"{name}() in descending order", _FROM_THE_TOP[name])
        share = Decimal(1) - Decimal(str(getattr(made.arguments[1], "value", 0)))
        made = replace(made, arguments=(made.arguments[0], number(str(share))))
    return made


_FROM_THE_TOP = {
    "mode": "Count where x IS NOT NULL, GROUP BY x, and take the first by row_number() OVER (ORDER BY n DESC, x DESC).",
    "percentile_disc": "Of rows whose x is not NULL, take max(x) WHERE cume_dist() OVER (ORDER BY x DESC) >= 0.25.",
}
"""What to write instead of descending order."""


def _listed_within(
    keys: Sequence[exp.Ordered],
    node: exp.Anonymous,
    texts: Sequence[exp.Expr],
    scope: Scope,
    when: Expr | None,
    whole: exp.Expr,
) -> Expr:
    """listagg(x) WITHIN GROUP (ORDER BY …), by x itself or by something else."""
    read, (value, *between) = partial(resolved, scope=scope), texts
    keys = _nulls_as_usual(keys, value)
    made = aggregate("listagg", node, read, when)
    if not made.distinct and all(_descends(key) for key in keys):
        return _listed_downwards(keys, node, scope, when, whole)
    if (by := [read(key.this) for key in keys]) != [read(value)]:
        return _listed_by(keys, by, made, node, whole)
    where = of_filter(whole) if isinstance(whole, exp.Filter) else ""
    listed = f"CASE WHEN {operand(value)} IS NOT NULL{where} THEN {written(value)} END"
    found = f"sort_array({'collect_set' if made.distinct else 'collect_list'}({listed}))"
    if not _descends(keys[0]):
        spell(whole, joined_texts(found, found, between))
        return made
    spell(whole, joined_texts(found, f"reverse({found})", between))
    return _reversed(aggregate("collect_set", call_of("collect_set", value), read, when), between, scope)


def _listed_downwards(
    keys: Sequence[exp.Ordered], node: exp.Anonymous, scope: Scope, when: Expr | None, whole: exp.Expr
) -> Expr:
    """listagg(x) WITHIN GROUP (ORDER BY y DESC): upwards, by y and by x of the same y; then reversed."""
    read, (value, *between), place = partial(resolved, scope=scope), node.expressions, span(node)
    text = aggregate("listagg", node, read, when).arguments[0]
    events = () if scope.above else event_order(scope, place, of=(text,))[1]
    upwards = aggregate("collect_list", call_of("collect_list", value), read, when)
    upwards = replace(upwards, arguments=(text, *(read(key.this) for key in keys), text, *events))
    counts = f"{operand(value)} IS NOT NULL" + (of_filter(whole) if isinstance(whole, exp.Filter) else "")
    found = sorted_by(", ".join(written(key.this) for key in keys), written(value), counts)
    spell(whole, joined_texts(found, f"reverse({in_turn(found)})", between))
    return _reversed(upwards, between, scope)


def _reversed(upwards: Aggregate, between: Sequence[exp.Expr], scope: Scope) -> Expr:
    """The texts of a list from its last to its first as one; of none it is NULL."""
    place = upwards.place
    downwards = Call("reverse", (upwards,), upwards.type, place=place)
    separator = resolved(between[0], scope) if between else Constant("", STRING)
    joined = call("array_join", [downwards, separator], place)
    return case([(compare(">", call("size", [upwards], place), number("0"), place), joined)], None, place)


def _listed_by(
    keys: Sequence[exp.Ordered], by: Sequence[Expr], made: Aggregate, node: exp.Anonymous, whole: exp.Expr
) -> Aggregate:
    """listagg(x) WITHIN GROUP (ORDER BY y), and by x where several have the same y."""
    if made.distinct:
        raise Wrong(
            made.place, "listagg(DISTINCT …) in another order than its own", "Write … WITHIN GROUP (ORDER BY x)."
        )
    for key in keys:
        if key.args.get("desc"):
            way_out = "Order by what ascends, or all descends: by -n for n DESC, where n is not NULL."
            raise Wrong(made.place, "listagg() in mixed order", way_out)
    value = operand(node.expressions[0])
    counts = f"{value} IS NOT NULL" + (of_filter(whole) if isinstance(whole, exp.Filter) else "")
    found = sorted_by(", ".join(written(key.this) for key in keys), value, counts)
    spell(whole, joined_texts(found, in_turn(found), node.expressions[1:]))
    text, *between = made.arguments
    return replace(made, arguments=(text, *by, text, *between))


def _nulls_as_usual(keys: Sequence[exp.Ordered], listed: exp.Expr) -> list[exp.Ordered]:
    """Keys with NULL where Spark has it, before all or after all that descends: where it is not, a key says so."""
    usual: list[exp.Ordered] = []
    for key in keys:
        down = bool(key.args.get("desc"))
        if down == bool(key.args.get("nulls_first", not down)) and key.this != listed:
            usual.append(
                exp.Ordered(this=exp.Is(this=exp.Paren(this=key.this.copy()), expression=exp.Null()), desc=down)
            )
        usual.append(exp.Ordered(this=key.this, desc=down, nulls_first=not down))
    return usual


def _descends(key: exp.Ordered) -> bool:
    return bool(key.args.get("desc"))
