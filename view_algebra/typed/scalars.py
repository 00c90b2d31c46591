"""From the author's syntax to typed scalar expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from typing import cast as typed

from sqlglot import exp

from view_algebra.language import clock
from view_algebra.language.aggregates import BY_BUCKETS, BY_EVENT_ORDER, SYNONYMS, is_aggregate
from view_algebra.language.clock import CLOCK
from view_algebra.language.expressions import NULL, Aggregate, Call, Constant, Expr, Place, Subquery
from view_algebra.language.functions import FOREIGN, FUNCTIONS, GENERATORS, WINDOW_FUNCTIONS, instead_of_rows
from view_algebra.language.meeting import compare
from view_algebra.language.operators import BITWISE, bitwise, calculate, case, condition, negative, number
from view_algebra.language.overloads import call
from view_algebra.language.quoting import spark_text
from view_algebra.language.time_windows import TIME_WINDOWS, window_key
from view_algebra.language.times import TIMED, interval, shifted
from view_algebra.language.types import BIGINT, BOOLEAN, STRING, TINYINT, VOID
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, span
from view_algebra.typed import sugar
from view_algebra.typed.calls import refuse_aggregates, time_window
from view_algebra.typed.collected import collected, ignoring_nulls, sorted_list
from view_algebra.typed.conversions import as_type, cast_to, try_cast_to
from view_algebra.typed.dotted_names import column_named
from view_algebra.typed.double_quotes import refuse_quoted_column
from view_algebra.typed.entries import map_from_entries
from view_algebra.typed.guards import guard
from view_algebra.typed.names import Scope
from view_algebra.typed.nested import LAMBDAS, over_elements, structured
from view_algebra.typed.patterns import escaped_like, like
from view_algebra.typed.spark_refuses import refuse_order_of_operators, refuse_quantified
from view_algebra.typed.subqueries import among_values, asked_of_a_query
from view_algebra.typed.windowed import window_function
from view_algebra.typed.within_group import within_group
from view_algebra.written.dialect import is_suffixed
from view_algebra.written.oracle import spell, written
from view_algebra.written.ways_out import ARROWS, json_field

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
"""The signs of operators with two sides."""


def expression(node: exp.Expr, scope: Scope) -> Expr:
    """One scalar expression."""
    if scope.preferred and _aggregates(node):
        with scope.preferring({}):
            return expression(node, scope)
    refuse_order_of_operators(node)
    reader = _READERS.get(type(node))
    if reader is not None:
        made = guard(node, reader(node, scope), partial(expression, scope=scope))
        if made.type == VOID and not any(isinstance(part, (Aggregate, Subquery)) for part in walk(made)):
            return replace(NULL, place=span(node))
        # sqlglot notes the NOT of `x NOT LIKE y` beside the rest
        return Call("not", (made,), BOOLEAN, place=span(node)) if node.args.get("negate") else made
    operator = BINARY.get(type(node))
    if operator is not None:
        made = _binary(operator, typed(exp.Binary, node), scope)
        return guard(node, made, partial(expression, scope=scope))
    if isinstance(node, exp.Func) and not isinstance(node, exp.Binary):
        return call(node.sql_name(), [], span(node))
    other = (
        "an operator that Spark does not have" if isinstance(node, exp.Binary) else f"{node.key.upper()} is not served"
    )
    said, way_out = _NO_SYNTAX.get(type(node), (other, "Write it with the functions in docs/sql.md."))
    if isinstance(node, ARROWS):
        said, way_out = "an arrow into JSON, which Spark does not have", f"Write {json_field(node)}."
    raise Wrong(span(node), said, way_out)


_NO_SYNTAX: dict[type[exp.Expr], tuple[str, str]] = {
    exp.SimilarTo: ("SIMILAR TO, which Spark does not have", "Write x RLIKE '^(a|b)$'."),
    exp.Select: ("a SELECT among arguments", "Write (SELECT sort_array(collect_list(x)) FROM s)."),
    exp.Alias: ("AS among arguments", "Write CAST(x AS INT), or try_cast(x AS INT)."),
    exp.Star: ("* beside other arguments", "Write count(*)."),
    exp.Kwarg: ("an argument by its name", "Write the arguments in order: f(a, b)."),
}
"""What is said of syntax that other systems have, and what to write instead."""


def _several(name: str, nodes: Sequence[exp.Expr | None], scope: Scope, place: Place) -> Expr:
    """A call whose syntax is special."""
    return call(name, [expression(n, scope) for n in nodes if n is not None], place)


def _negative(node: exp.Neg, scope: Scope) -> Expr:
    """`-x`; a literal has one sign at most, so that `- -3` and `-(3)` are none."""
    operand = expression(node.this, scope)
    literal = isinstance(node.this, exp.Literal) or is_suffixed(node.this)
    if isinstance(operand, Constant) and operand.type.numeric and operand.value is not None and not literal:
        return Call("negative", (operand,), operand.type, place=span(node))
    return negative(operand, span(node))


def _shifted_right(node: exp.BitwiseRightShift, scope: Scope) -> Expr:
    """`x >> n`, of which Spark's lexer makes the end of two types after a word such as STRUCT or MAP."""
    made = _several("shiftright", [node.left, node.right], scope, span(node))
    spell(node, f"shiftright({written(node.left)}, {written(node.right)})")
    return made


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
        raise Wrong(place, "IS before a value, which Spark does not read", "Write … IS NOT DISTINCT FROM ….")
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
    given = [node.this] if node.expression is None else [node.expression, node.this]
    return call(name, [expression(each, scope) for each in given], span(node))


def _extract(node: exp.Extract, scope: Scope, place: Place = None) -> Expr:
    return sugar.extracted(node.this.name.upper(), expression(node.expression, scope), place or span(node))


def _in_zone(node: exp.AtTimeZone, scope: Scope) -> Expr:
    """AT TIME ZONE, which Spark does not read."""
    time, zone = node.this, node.args["zone"]
    text, made = sugar.in_zone(expression(time, scope), expression(zone, scope), span(node))
    spell(node, text.format(time=written(time), zone=written(zone)))
    return made


def _bracket(node: exp.Bracket, scope: Scope) -> Expr:
    value, key = expression(node.this, scope), expression(node.expressions[0], scope)
    if value.type.name == "ARRAY" and key.type.integral and value.type.element is not None:
        return Call("[]", (value, key), value.type.element, place=span(node))
    if value.type.name == "MAP" and key.type == value.type.key and value.type.element is not None:
        return Call("[]", (value, key), value.type.element, place=span(node))
    raise Wrong(span(node), f"{value.type}[{key.type}]", "Index an array by a whole number, a map by its key.")


def _call(node: exp.Anonymous, scope: Scope, condition_: Expr | None = None, filter_: exp.Filter | None = None) -> Expr:
    name, place = node.name.lower(), span(node)
    if name in ("percentile_cont", "percentile_disc"):
        raise Wrong(place, f"{name}() without its order", f"Write {name}(0.9) WITHIN GROUP (ORDER BY x).")
    name = SYNONYMS.get(name, name)
    read = partial(expression, scope=scope)
    if name in TIME_WINDOWS:
        return time_window(name, node, read)
    if name in WINDOW_FUNCTIONS and not is_aggregate(name):
        raise Wrong(place, f"{name}() without OVER", f"Write {name}() OVER (ORDER BY …).")
    if name in GENERATORS:
        raise Wrong(place, f"{name}() gives several rows for one", instead_of_rows(name))
    if name in ("grouping", "grouping_id"):
        read_ = [read(a) for a in node.expressions]
        if isinstance(node.find_ancestor(exp.Join, exp.Lateral, exp.Select), (exp.Join, exp.Lateral)):
            raise Wrong(place, f"{name}() in FROM", "Select it in a subquery that groups, and use it outside.")
        if name == "grouping" and len(read_) != 1:
            raise Wrong(place, f"grouping() with {len(read_)} arguments", "Write grouping(a), or grouping_id().")
        return Call(name, tuple(map(window_key, read_)), TINYINT if name == "grouping" else BIGINT, place=place)
    made = collected(name, node, scope, condition_, filter_)
    return _scalar(name, node, scope) if made is None else made


def _scalar(name: str, node: exp.Anonymous, scope: Scope) -> Expr:
    """A call of a function of one row."""
    place, given = span(node), node.expressions
    if not given and (told := _of_the_clock(name, node)) is not None:
        return told
    if name in ("sort_array", "array_sort") and (listed := sorted_list(given, scope)) is not None:
        return listed
    if name in ("struct", "named_struct", "map"):
        return structured(node, scope, expression)
    if name == "map_from_entries":
        return map_from_entries(node, scope, expression)
    if name in LAMBDAS:
        return over_elements(node, scope, expression)
    if name in ("date_part", "datepart"):
        if len(given) != 2 or not isinstance(given[0], exp.Literal):
            raise Wrong(place, f"{name}() of a field that is not a literal", f"Write {name}('year', ts).")
        return _extract(exp.Extract(this=exp.Var(this=given[0].name), expression=given[1]), scope, place)
    if name in TIMED and len(given) == 3 and isinstance(given[0], exp.Column):
        return sugar.timed(name, given[0].name, [expression(a, scope) for a in given[1:]], place)
    if name in TIMED and len(given) == 3 and isinstance(given[0], exp.Literal):
        raise Wrong(place, f"{name}() of a unit in quotes", f"Write {name}({given[0].name.upper()}, a, b).")
    if name in sugar.CASTS and len(given) == 1:
        return as_type(sugar.CASTS[name], node, given[0], scope)
    if len(given) == 2 and name in sugar.CHARACTERS:
        sugar.refuse_other_characters(name, given[1])
        return as_type(sugar.CHARACTERS[name], node, given[0], scope)
    arguments = _arguments(name, node, scope)
    return sugar.made(name, arguments, place) or call(name, arguments, place)


def _arguments(name: str, node: exp.Anonymous, scope: Scope) -> list[Expr]:
    """The arguments of a call; one that only another system's function takes is not what is wrong with it."""
    try:
        return [expression(argument, scope) for argument in node.expressions]
    except Wrong as wrong:
        if name in FOREIGN and name not in (*FUNCTIONS, *sugar.MADE):
            raise Wrong(span(node), f"no function {name}()", f"Write {FOREIGN[name]}.") from wrong
        raise


def _of_the_clock(name: str, node: exp.Anonymous) -> Expr | None:
    """What a call without arguments says of the time; None if it is of another function."""
    if name in CLOCK:
        spell(node, clock.in_spark(name))
        return clock.told(name, span(node))
    if name in ("unix_timestamp", "to_unix_timestamp"):
        spell(node, f"unix_timestamp({clock.in_spark('now')})")
        return call("unix_timestamp", [clock.told("now", span(node))], span(node))
    return None


def _filtered(node: exp.Filter, scope: Scope) -> Expr:
    when = condition(expression(node.expression.this, scope), "FILTER")
    refuse_aggregates(when, "FILTER", "Filter by columns of the records.")
    if isinstance(node.this, exp.WithinGroup):
        return within_group(node.this, scope, when, node)
    if not isinstance(node.this, exp.Anonymous) or not is_aggregate(node.this.name.lower()):
        expression(node.this, scope)  # what else is wrong with it is said first
        raise Wrong(span(node), "FILTER after something that is not an aggregate", "Use CASE WHEN … THEN … END.")
    return _call(node.this, scope, when, node)


def _respecting_nulls(node: exp.RespectNulls, scope: Scope) -> Expr:
    if not isinstance(node.this, (exp.Anonymous, exp.Filter)):
        raise Wrong(
            span(node), "RESPECT NULLS after something that is not a call", "Write first_value(x) RESPECT NULLS."
        )
    return expression(node.this, scope)


def _tuple(node: exp.Tuple, _: Scope) -> Expr:
    raise Wrong(
        span(node),
        "several values in parentheses",
        "Write a = 1 AND b = 2; for a larger pair, a > 1 OR (a = 1 AND b > 2).",
    )


def _literal_in(node: exp.Literal, scope: Scope) -> Expr:
    refuse_quoted_column(node, scope)
    return _literal(node)


def _lambda(node: exp.Lambda, _: Scope) -> Expr:
    name = node.parent.name.lower() if isinstance(node.parent, exp.Anonymous) else ""
    way_out = f"Write {FOREIGN[name]}." if name in FOREIGN else f"These take one: {', '.join(LAMBDAS)}."
    if name == "array_sort":
        way_out = "Write array_sort(transform(x, e -> struct(e.ts, e.name))), of structs whose first field it goes by."
    raise Wrong(span(node), "a lambda, where none is taken", way_out)


_READERS: dict[type[exp.Expr], Callable[[Any, Scope], Expr]] = {
    exp.Paren: lambda node, scope: expression(node.this, scope),
    exp.Column: column_named,
    exp.Identifier: column_named,
    exp.Dot: column_named,
    exp.Literal: _literal_in,
    exp.Boolean: lambda node, _: _literal(node),
    exp.Null: lambda node, _: _literal(node),
    exp.Neg: _negative,
    exp.Not: _not,
    exp.NullSafeNEQ: _distinct,
    exp.And: _logical,
    exp.Or: _logical,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: among_values,
    exp.Like: like,
    exp.Escape: escaped_like,
    exp.BitwiseNot: lambda node, scope: bitwise("~", [expression(node.this, scope)], span(node)),
    exp.BitwiseLeftShift: lambda n, scope: _several("shiftleft", [n.left, n.right], scope, span(n)),
    exp.BitwiseRightShift: _shifted_right,
    exp.ILike: like,
    exp.RawString: lambda node, _: _text(node, node.name),
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
    exp.Subquery: asked_of_a_query,
    exp.Exists: asked_of_a_query,
    exp.Anonymous: _call,
    exp.Interval: lambda node, _: interval(node),
    exp.All: refuse_quantified,
    exp.Any: refuse_quantified,
    exp.Tuple: _tuple,
    exp.Lambda: _lambda,
}


WITH_RULES_OF_THEIR_OWN = frozenset(
    (
        *("struct", "named_struct", "map", "map_from_entries", "date_part", "datepart", "grouping", "grouping_id"),
        *(*sugar.MADE, *sugar.CASTS, *sugar.CHARACTERS, *TIMED, *LAMBDAS, *TIME_WINDOWS, *CLOCK),
    )
) - {*FOREIGN}
"""Functions of Spark's that no table of functions has a row for."""


def _aggregates(node: exp.Expr) -> bool:
    """Is it an aggregate, without OVER?"""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return is_aggregate(name) or name in BY_EVENT_ORDER or name in BY_BUCKETS or name in SYNONYMS
    return isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls))


def _text(node: exp.Expr, value: str) -> Constant:
    """A literal text; U+0000, which Postgres cannot hold, is U+FFFD."""
    if "\0" in value:
        value = value.replace("\0", "\ufffd")
        spell(node, spark_text(value))
    return Constant(value, STRING, span(node))


def _literal(node: exp.Expr) -> Expr:
    place = span(node)
    if isinstance(node, exp.Literal):
        return _text(node, node.name) if node.is_string else number(node.name, place)
    return (
        Constant(None, VOID, place) if isinstance(node, exp.Null) else Constant(str(node.this).lower(), BOOLEAN, place)
    )
