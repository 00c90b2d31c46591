"""From the author's syntax to typed scalar expressions: a reader for each kind of node, and for each kind of call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from typing import cast as static_cast

from sqlglot import exp

from view_algebra.language import times as clock
from view_algebra.language.aggregates import ONLY_WITHIN_GROUP, SYNONYMS, is_aggregate
from view_algebra.language.expressions import NULL, Aggregate, Call, Constant, Expr, Place, Subquery
from view_algebra.language.functions import FOREIGN, FUNCTIONS, GENERATORS, WINDOW_FUNCTIONS, instead_of_rows
from view_algebra.language.meeting import compare
from view_algebra.language.operators import BITWISE, bitwise, calculate, case, condition, negative, number
from view_algebra.language.overloads import call
from view_algebra.language.quoting import spark_text
from view_algebra.language.time_windows import TIME_WINDOWS, window_key
from view_algebra.language.times import CLOCK, TIMED, interval, shifted
from view_algebra.language.types import BIGINT, BOOLEAN, STRING, TINYINT, VOID
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, not_taken, span
from view_algebra.typed.aggregation.aggregates import aggregate_call, ignoring_nulls, within_group
from view_algebra.typed.aggregation.calls import refuse_aggregates, time_window
from view_algebra.typed.aggregation.lists import map_from_entries, sorted_list
from view_algebra.typed.aggregation.over import window_function
from view_algebra.typed.expressions import sugar
from view_algebra.typed.expressions.casts import as_type, cast_to, try_cast_to
from view_algebra.typed.expressions.guards import guard
from view_algebra.typed.expressions.likes import escaped_like, like
from view_algebra.typed.expressions.nested import LAMBDAS, over_elements, structured
from view_algebra.typed.names import column_named, refuse_quoted_column
from view_algebra.typed.relations.subqueries import in_list, subquery_value
from view_algebra.typed.scopes import Scope
from view_algebra.typed.spark_refuses import refuse_order_of_operators, refuse_quantified
from view_algebra.written.dialect import is_suffixed
from view_algebra.written.ways_out.replacements import ARROWS, json_field

BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}
"""The signs of binary operators."""


def expression(node: exp.Expr, scope: Scope) -> Expr:
    """One scalar expression."""
    if scope.preferred and _aggregates(node):
        return expression(node, scope.preferring({}))
    refuse_order_of_operators(node)
    reader = _READERS.get(type(node))
    if reader is not None:
        value = guard(node, reader(node, scope), scope)
        if value.type == VOID and not any(isinstance(part, (Aggregate, Subquery)) for part in walk(value)):
            return replace(NULL, place=span(node))
        # sqlglot keeps the NOT of `x NOT LIKE y` in an argument of the node
        return Call("not", (value,), BOOLEAN, place=span(node)) if node.args.get("negate") else value
    operator = BINARY.get(type(node))
    if operator is not None:
        value = _binary(operator, static_cast(exp.Binary, node), scope)
        return guard(node, value, scope)
    if isinstance(node, exp.Func) and not isinstance(node, exp.Binary):
        return call(node.sql_name(), [], span(node))
    other = "Spark does not have this operator" if isinstance(node, exp.Binary) else f"{node.key.upper()} is not served"
    reason, way_out = _NO_SYNTAX.get(type(node), (other, "Write it with the functions in docs/sql.md."))
    if isinstance(node, ARROWS):
        reason, way_out = "Spark has no arrows into JSON", f"Write {json_field(node)}."
    raise Wrong(span(node), reason, way_out)


_NO_SYNTAX: dict[type[exp.Expr], tuple[str, str]] = {
    exp.SimilarTo: ("Spark does not have SIMILAR TO", "Write x RLIKE '^(a|b)$'."),
    exp.Select: ("an argument cannot be a SELECT", "Write (SELECT sort_array(collect_list(x)) FROM s)."),
    exp.Alias: ("arguments do not take AS", "Write CAST(x AS INT), or try_cast(x AS INT)."),
    exp.Star: ("* does not go with other arguments", "Write count(*)."),
    exp.Kwarg: ("arguments cannot be named", "Write the arguments in order: f(a, b)."),
}
"""Reason and way out for syntax of other systems."""


def _several(name: str, nodes: Sequence[exp.Expr | None], scope: Scope, place: Place) -> Expr:
    """A call that its author wrote in special syntax."""
    return call(name, [expression(n, scope) for n in nodes if n is not None], place)


def _negative(node: exp.Neg, scope: Scope) -> Expr:
    """`-x`. Only a literal absorbs the sign, and only one: `- -3` and `-(3)` are calls."""
    operand = expression(node.this, scope)
    literal = isinstance(node.this, exp.Literal) or is_suffixed(node.this)
    if isinstance(operand, Constant) and operand.type.numeric and operand.value is not None and not literal:
        return Call("negative", (operand,), operand.type, place=span(node))
    return negative(operand, span(node))


def _shifted_right(node: exp.BitwiseRightShift, scope: Scope) -> Expr:
    """`x >> n`. After a word such as STRUCT or MAP, Spark's lexer reads `>>` as the end of two types."""
    call_ = _several("shiftright", [node.left, node.right], scope, span(node))
    scope.edits.spell(node, f"shiftright({scope.edited_sql(node.left)}, {scope.edited_sql(node.right)})")
    return call_


def _logical(node: exp.Connector, scope: Scope) -> Expr:
    word = "and" if isinstance(node, exp.And) else "or"
    sides = (expression(node.left, scope), expression(node.right, scope))
    return Call(word, tuple(condition(s, word.upper()) for s in sides), BOOLEAN, place=span(node))


def _not(node: exp.Not, scope: Scope) -> Expr:
    return Call("not", (condition(expression(node.this, scope), "NOT"),), BOOLEAN, place=span(node))


def _distinct(node: exp.NullSafeNEQ, scope: Scope) -> Expr:
    left, right = expression(node.this, scope), expression(node.expression, scope)
    return Call("not", (compare("<=>", left, right, span(node)),), BOOLEAN, place=span(node))


def _between(node: exp.Between, scope: Scope) -> Expr:
    value, place = expression(node.this, scope), span(node)
    low, high = expression(node.args["low"], scope), expression(node.args["high"], scope)
    sides = (compare(">=", value, low, place), compare("<=", value, high, place))
    return Call("and", sides, BOOLEAN, place=place)


def _binary(operator: str, node: exp.Binary, scope: Scope) -> Expr:
    place = span(node)
    left, right = expression(node.left, scope), expression(node.right, scope)
    if operator in ("+", "-"):
        moved = shifted(operator, left, right, place)
        if moved is not None:
            return moved
        return calculate(operator, left, right, place)
    if operator in ("*", "/", "%", "div"):
        return calculate(operator, left, right, place)
    if operator in BITWISE:
        return bitwise(operator, (left, right), place)
    return compare(operator, left, right, place)


def _is(node: exp.Is, scope: Scope) -> Expr:
    value, place = expression(node.this, scope), span(node)
    target, negated = node.expression, False
    if isinstance(target, exp.Not):
        target, negated = target.this, True
    if isinstance(target, exp.Null):
        result: Expr = Call("is null", (value,), BOOLEAN, place=place)
    elif not isinstance(target, exp.Boolean):
        raise Wrong(place, "Spark rejects IS before a value", "Write … IS NOT DISTINCT FROM ….")
    else:
        result = compare("<=>", value, expression(target, scope), place)
    return Call("not", (result,), BOOLEAN, place=place) if negated else result


def _case(node: exp.Case, scope: Scope) -> Expr:
    operand = expression(node.this, scope) if node.this is not None else None
    branches = []
    for branch in node.args["ifs"]:
        when = expression(branch.this, scope)
        when = compare("=", operand, when, span(branch)) if operand is not None else condition(when, "WHEN")
        branches.append((when, expression(branch.args["true"], scope)))
    default = node.args.get("default")
    return case(branches, expression(default, scope) if default is not None else None, span(node))


def _trim(node: exp.Trim, scope: Scope) -> Expr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    nodes = [node.this] if node.expression is None else [node.expression, node.this]
    return call(name, [expression(argument, scope) for argument in nodes], span(node))


def _extract(node: exp.Extract, scope: Scope, place: Place = None) -> Expr:
    return sugar.extracted(node.this.name.upper(), expression(node.expression, scope), place or span(node))


def _in_zone(node: exp.AtTimeZone, scope: Scope) -> Expr:
    """AT TIME ZONE, which Spark cannot parse."""
    time, zone = node.this, node.args["zone"]
    text, value = sugar.in_zone(expression(time, scope), expression(zone, scope), span(node))
    scope.edits.spell(node, text.format(time=scope.edited_sql(time), zone=scope.edited_sql(zone)))
    return value


def _bracket(node: exp.Bracket, scope: Scope) -> Expr:
    value, key = expression(node.this, scope), expression(node.expressions[0], scope)
    fits = key.type.integral if value.type.name == "ARRAY" else key.type == value.type.key
    if fits and value.type.element is not None:
        return Call("[]", (value, key), value.type.element, place=span(node))
    raise Wrong(
        span(node), f"{value.type} is not indexed by {key.type}", "Index an array by a whole number, a map by its key."
    )


def _call(node: exp.Anonymous, scope: Scope, when: Expr | None = None) -> Expr:
    """A call. `when`: the condition of its FILTER."""
    name, place = node.name.lower(), span(node)
    if name in ONLY_WITHIN_GROUP:
        raise Wrong(place, f"{name}() needs its order", f"Write {name}(0.9) WITHIN GROUP (ORDER BY x).")
    name = SYNONYMS.get(name, name)
    if name in TIME_WINDOWS:
        return time_window(name, node, scope)
    if name in WINDOW_FUNCTIONS and not is_aggregate(name):
        raise Wrong(place, f"{name}() needs OVER", f"Write {name}() OVER (ORDER BY …).")
    if name in GENERATORS:
        raise Wrong(place, f"{name}() gives several rows for one", instead_of_rows(name))
    if name in ("grouping", "grouping_id"):
        keys = [expression(a, scope) for a in node.expressions]
        if isinstance(node.find_ancestor(exp.Join, exp.Lateral, exp.Select), (exp.Join, exp.Lateral)):
            raise Wrong(
                place, f"FROM does not take {name}()", "Select it in a subquery that groups, and use it outside."
            )
        if name == "grouping" and len(keys) != 1:
            raise Wrong(place, not_taken("grouping", len(keys)), "Write grouping(a), or grouping_id().")
        return Call(name, tuple(map(window_key, keys)), TINYINT if name == "grouping" else BIGINT, place=place)
    aggregate_ = aggregate_call(name, node, scope, when)
    return _scalar(name, node, scope) if aggregate_ is None else aggregate_


def _scalar(name: str, node: exp.Anonymous, scope: Scope) -> Expr:
    """A call of a function of one row."""
    place, nodes = span(node), node.expressions
    if not nodes and (now := _clock_call(name, node, scope)) is not None:
        return now
    if name in ("sort_array", "array_sort") and (listed := sorted_list(nodes, scope)) is not None:
        return listed
    if name in ("struct", "named_struct", "map"):
        return structured(node, scope)
    if name == "map_from_entries":
        return map_from_entries(node, scope)
    if name in LAMBDAS:
        return over_elements(node, scope)
    if name in ("date_part", "datepart"):
        if len(nodes) != 2 or not isinstance(nodes[0], exp.Literal):
            raise Wrong(place, f"{name}() takes only a literal field", f"Write {name}('year', ts).")
        with scope.edits.copies(nodes[1]) as (time,):
            return _extract(exp.Extract(this=exp.Var(this=nodes[0].name), expression=time), scope, place)
    if name in TIMED and len(nodes) == 3 and isinstance(nodes[0], exp.Column):
        return sugar.timed(name, nodes[0].name, [expression(a, scope) for a in nodes[1:]], place)
    if name in TIMED and len(nodes) == 3 and isinstance(nodes[0], exp.Literal):
        raise Wrong(place, f"{name}() takes a unit without quotes", f"Write {name}({nodes[0].name.upper()}, a, b).")
    if name in sugar.CASTS and len(nodes) == 1:
        return as_type(sugar.CASTS[name], node, nodes[0], scope)
    if len(nodes) == 2 and name in sugar.CHARACTERS:
        sugar.refuse_other_characters(name, nodes[1])
        return as_type(sugar.CHARACTERS[name], node, nodes[0], scope)
    arguments = _arguments(name, node, scope)
    return sugar.spelled_out(name, arguments, place) or call(name, arguments, place)


def _arguments(name: str, node: exp.Anonymous, scope: Scope) -> list[Expr]:
    """The arguments of a call. A mistake in them is reported as an unknown function if only other systems have it."""
    try:
        return [expression(argument, scope) for argument in node.expressions]
    except Wrong as wrong:
        if name in FOREIGN and name not in (*FUNCTIONS, *sugar.MAKERS):
            raise Wrong(span(node), f"there is no function {name}()", f"Write {FOREIGN[name]}.") from wrong
        raise


def _clock_call(name: str, node: exp.Anonymous, scope: Scope) -> Expr | None:
    """The value that a function of the clock returns, or None for another function."""
    if name in CLOCK:
        scope.edits.spell(node, clock.in_spark(name))
        return clock.clock_call(name, span(node))
    if name in ("unix_timestamp", "to_unix_timestamp"):
        scope.edits.spell(node, f"unix_timestamp({clock.in_spark('now')})")
        return call("unix_timestamp", [clock.clock_call("now", span(node))], span(node))
    return None


def _filtered(node: exp.Filter, scope: Scope) -> Expr:
    when = condition(expression(node.expression.this, scope), "FILTER")
    refuse_aggregates(when, "FILTER", "Filter by columns of the records.")
    if isinstance(node.this, exp.WithinGroup):
        return within_group(node.this, scope, when)
    if not isinstance(node.this, exp.Anonymous) or not is_aggregate(node.this.name.lower()):
        expression(node.this, scope)  # reports other mistakes in it first
        raise Wrong(span(node), "FILTER follows something that is not an aggregate", "Use CASE WHEN … THEN … END.")
    return _call(node.this, scope, when)


def _respecting_nulls(node: exp.RespectNulls, scope: Scope) -> Expr:
    if not isinstance(node.this, (exp.Anonymous, exp.Filter)):
        raise Wrong(
            span(node), "RESPECT NULLS follows something that is not a call", "Write first_value(x) RESPECT NULLS."
        )
    return expression(node.this, scope)


def _tuple(node: exp.Tuple, _: Scope) -> Expr:
    raise Wrong(
        span(node),
        "parentheses hold several values",
        "Write a = 1 AND b = 2. To compare pairs, write a > 1 OR (a = 1 AND b > 2).",
    )


def _literal_in(node: exp.Literal, scope: Scope) -> Expr:
    refuse_quoted_column(node, scope)
    return _literal(node, scope)


def _lambda(node: exp.Lambda, _: Scope) -> Expr:
    name = node.parent.name.lower() if isinstance(node.parent, exp.Anonymous) else ""
    way_out = f"Write {FOREIGN[name]}." if name in FOREIGN else f"These take one: {', '.join(LAMBDAS)}."
    if name == "array_sort":
        way_out = "Write array_sort(transform(x, e -> struct(e.ts, e.name))), of structs whose first field it goes by."
    raise Wrong(span(node), "this argument cannot be a lambda", way_out)


WITH_RULES_OF_THEIR_OWN = frozenset(
    (
        *("struct", "named_struct", "map", "map_from_entries", "date_part", "datepart", "grouping", "grouping_id"),
        *(*sugar.MAKERS, *sugar.CASTS, *sugar.CHARACTERS, *TIMED, *LAMBDAS, *TIME_WINDOWS, *CLOCK),
    )
) - {*FOREIGN}
"""Spark's functions without a row in the tables of functions."""


def _aggregates(node: exp.Expr) -> bool:
    """True for an aggregate without OVER."""
    if isinstance(node, exp.Anonymous):
        return is_aggregate(node.name.lower())
    return isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls))


def _text(node: exp.Expr, value: str, scope: Scope) -> Constant:
    """A literal text, in which U+0000, which Postgres cannot hold, becomes U+FFFD."""
    if "\0" in value:
        value = value.replace("\0", "\ufffd")
        scope.edits.spell(node, spark_text(value))
    return Constant(value, STRING, span(node))


def _literal(node: exp.Expr, scope: Scope) -> Expr:
    place = span(node)
    if isinstance(node, exp.Literal):
        return _text(node, node.name, scope) if node.is_string else number(node.name, place)
    return (
        Constant(None, VOID, place) if isinstance(node, exp.Null) else Constant(str(node.this).lower(), BOOLEAN, place)
    )


_READERS: dict[type[exp.Expr], Callable[[Any, Scope], Expr]] = {
    exp.Paren: lambda node, scope: expression(node.this, scope),
    exp.Column: column_named,
    exp.Identifier: column_named,
    exp.Dot: column_named,
    exp.Literal: _literal_in,
    exp.Boolean: _literal,
    exp.Null: _literal,
    exp.Neg: _negative,
    exp.Not: _not,
    exp.NullSafeNEQ: _distinct,
    exp.And: _logical,
    exp.Or: _logical,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: in_list,
    exp.Like: like,
    exp.Escape: escaped_like,
    exp.BitwiseNot: lambda node, scope: bitwise("~", [expression(node.this, scope)], span(node)),
    exp.BitwiseLeftShift: lambda n, scope: _several("shiftleft", [n.left, n.right], scope, span(n)),
    exp.BitwiseRightShift: _shifted_right,
    exp.ILike: like,
    exp.RawString: lambda node, scope: _text(node, node.name, scope),
    exp.RegexpLike: lambda n, scope: _several("rlike", [n.this, n.expression], scope, span(n)),
    exp.DPipe: lambda n, scope: _several("concat", [n.left, n.right], scope, span(n)),
    exp.Concat: lambda n, scope: _several("concat", n.expressions, scope, span(n)),
    exp.Substring: lambda n, scope: _several(
        "substring", [n.this, n.args.get("start"), n.args.get("length")], scope, span(n)
    ),
    exp.Overlay: lambda n, scope: _several(
        "overlay", [n.this, n.expression, n.args.get("from_"), n.args.get("for_")], scope, span(n)
    ),
    exp.StrPosition: lambda n, scope: _several("position", [n.args["substr"], n.this], scope, span(n)),
    exp.Cast: cast_to,
    exp.TryCast: try_cast_to,
    exp.Case: _case,
    exp.Trim: _trim,
    exp.Extract: _extract,
    exp.AtTimeZone: _in_zone,
    exp.Bracket: _bracket,
    exp.Filter: _filtered,
    exp.Window: window_function,
    exp.IgnoreNulls: ignoring_nulls,
    exp.RespectNulls: _respecting_nulls,
    exp.WithinGroup: within_group,
    exp.Subquery: subquery_value,
    exp.Exists: subquery_value,
    exp.Anonymous: _call,
    exp.Interval: lambda node, _: interval(node),
    exp.All: refuse_quantified,
    exp.Any: refuse_quantified,
    exp.Tuple: _tuple,
    exp.Lambda: _lambda,
}
