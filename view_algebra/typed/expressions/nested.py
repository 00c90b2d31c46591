"""Nested values: structs, maps, and functions that take a lambda over elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from view_algebra.language.expressions import (
    VARIABLE,
    Aggregate,
    Call,
    Constant,
    Expr,
    Field,
    Place,
    Subquery,
    Windowed,
)
from view_algebra.language.meeting import meet
from view_algebra.language.operators import condition
from view_algebra.language.types import BOOLEAN, INT, MAX_PRECISION, STRING, VOID, Type, decimal
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, not_taken, span
from view_algebra.typed.scopes import Scope, resolved
from view_algebra.written.ways_out.replacements import folded_as

LAMBDAS = (
    "aggregate",
    "exists",
    "filter",
    "forall",
    "map_filter",
    "reduce",
    "transform",
    "transform_values",
    "zip_with",
)
"""Functions that take a lambda."""

_WINDOWS = ("window", "window_start", "window_end", "session", "session_start", "session_end")


def structured(node: exp.Anonymous, scope: Scope) -> Expr:
    """struct(a, b AS c), named_struct('a', x) and map('a', x): a value with names."""
    name, nodes, place = node.name.lower(), node.expressions, span(node)
    if name == "map" and not nodes:
        return Call(name, (), Type("MAP", key=STRING, element=VOID), place=place)
    if name == "struct":
        names = [_name(item, number) for number, item in enumerate(nodes, 1)]
        values = [
            resolved(item.this if isinstance(item, (exp.Alias, exp.PropertyEQ)) else item, scope) for item in nodes
        ]
    else:
        names, values = _pairs([resolved(item, scope) for item in nodes], name, place)
    for value in values:
        if value.type.name in ("VOID", "INTERVAL"):
            raise Wrong(value.place or place, f"{name}() does not take {value.type}", "Cast it: CAST(NULL AS STRING).")
    if not values or len({name.lower() for name in names}) < len(names):
        raise Wrong(
            place, f"{name}() has {'two values of one name' if values else 'no values'}", "Name each value once."
        )
    if name == "map":
        values = list(meet(values, place, "map()", texts=True))
        kind = Type("MAP", key=STRING, element=values[0].type)
    else:
        kind = Type("STRUCT", fields=tuple((n, value.type) for n, value in zip(names, values, strict=True)))
    pairs = [part for n, value in zip(names, values, strict=True) for part in (Constant(n, STRING), value)]
    return Call("map" if name == "map" else "named_struct", tuple(pairs), kind, place=place)


def _name(item: exp.Expr, number: int) -> str:
    """The name that Spark gives a field of struct()."""
    if isinstance(item, exp.PropertyEQ):
        return str(item.this.name)
    if isinstance(item, exp.Paren):
        return _name(item.this, number)
    if isinstance(item, exp.Bracket) and isinstance(item.expressions[0], exp.Literal) and item.expressions[0].is_string:
        return str(item.expressions[0].name)
    return item.alias_or_name if isinstance(item, (exp.Alias, exp.Column, exp.Dot, exp.Identifier)) else f"col{number}"


def _pairs(arguments: Sequence[Expr], name: str, place: Place) -> tuple[list[str], list[Expr]]:
    """The names and the values of named_struct('a', x) and map('a', x)."""
    keys = [key.value for key in arguments[::2] if isinstance(key, Constant) and key.type == STRING]
    if len(arguments) % 2 or len(keys) * 2 != len(arguments) or None in keys:
        raise Wrong(place, f"{name}() takes only literal texts as keys", f"Write {name}('a', x, 'b', y).")
    return [key for key in keys if key is not None], list(arguments[1::2])


def over_elements(node: exp.Anonymous, scope: Scope) -> Expr:
    """A function of an array and a lambda."""
    name, nodes, place = node.name.lower(), node.expressions, span(node)
    folds, zips = name in ("aggregate", "reduce"), name == "zip_with"
    if not (3 <= len(nodes) <= 4 if folds else len(nodes) == 2 + zips):
        way_out = "Write aggregate(x, 0, (a, e) -> a + e)." if folds else f"Write {name}(x, e -> …)."
        way_out = "Write zip_with(x, y, (a, b) -> a + b)." if zips else way_out
        raise Wrong(place, not_taken(name, len(nodes)), way_out)
    array = resolved(nodes[0], scope)
    if name in ("map_filter", "transform_values"):
        return _over_entries(name, array, nodes[1], scope, place)
    arrays = [array, *(resolved(argument, scope) for argument in nodes[1 : 1 + zips])]
    for element in arrays:
        if element.type.element is None or element.type.name != "ARRAY":
            raise Wrong(
                element.place or place, f"{name}() does not take {element.type}", "It takes an array: split(line, ' ')."
            )
    if zips:
        lambda_ = _lambda(nodes[2], [argument.type.element or VOID for argument in arrays], scope, fewest=2)
        return Call(name, (*arrays, lambda_), Type("ARRAY", element=lambda_.type), place=place)
    assert array.type.element is not None
    if folds:
        return _folded(array, node, scope)
    lambda_ = _lambda(nodes[1], [array.type.element, INT], scope)
    if name == "transform":
        return Call(name, (array, lambda_), Type("ARRAY", element=lambda_.type), place=place)
    condition(lambda_.arguments[-1], f"{name}()")
    return Call(name, (array, lambda_), array.type if name == "filter" else BOOLEAN, place=place)


def _over_entries(name: str, of: Expr, node: exp.Expr, scope: Scope, place: Place) -> Expr:
    """A function of a map and a lambda of a key and its value."""
    if of.type.key is None or of.type.element is None:
        raise Wrong(of.place or place, f"{name}() does not take {of.type}", "It takes a map: map('a', x).")
    lambda_ = _lambda(node, [of.type.key, of.type.element], scope, fewest=2)
    if name == "transform_values":
        return Call(name, (of, lambda_), replace(of.type, element=lambda_.type), place=place)
    condition(lambda_.arguments[-1], f"{name}()")
    return Call(name, (of, lambda_), of.type, place=place)


def _folded(array: Expr, node: exp.Anonymous, scope: Scope) -> Expr:
    """aggregate(array, start, merge), and with a fourth argument that finishes the result."""
    nodes, place = node.expressions[1:], span(node)
    start = resolved(nodes[0], scope)
    assert array.type.element is not None
    merge = _lambda(nodes[1], [start.type, array.type.element], scope, fewest=2)
    if merge.type != start.type:
        of_decimals = merge.type.name == "DECIMAL"  # these widen with any start value
        kind = decimal(MAX_PRECISION, max(start.type.scale, merge.type.scale)) if of_decimals else merge.type
        reason = f"{node.name.lower()}() starts with {start.type} and continues with {merge.type}"
        raise Wrong(place, reason, f"Write {folded_as(node, kind.spark)}.")
    finish = [_lambda(node, [start.type], scope) for node in nodes[2:]]
    return Call("aggregate", (array, start, merge, *finish), finish[0].type if finish else start.type, place=place)


def _lambda(node: exp.Expr, types: Sequence[Type], scope: Scope, fewest: int = 1) -> Call:
    """The lambda in an argument, whose variables have these types."""
    place = span(node)
    if not isinstance(node, exp.Lambda) or not fewest <= len(node.expressions) <= len(types):
        raise Wrong(place, "this argument must be a lambda", "Write x -> …." if fewest == 1 else "Write (a, x) -> ….")
    if node.this.find(exp.Query) is not None:
        raise Wrong(place, "a lambda cannot contain a subquery", "Compute it outside.")
    depth = len(scope.variables) + 1  # a unique name hides no column
    variables = {
        variable.name.lower(): Field(VARIABLE, (f"{variable.name} {depth}",), kind)
        for variable, kind in zip(node.expressions, types, strict=False)
    }
    body = resolved(node.this, replace(scope, variables={**scope.variables, **variables}))
    for part in walk(body):
        of_time = isinstance(part, Call) and part.function in _WINDOWS
        if of_time or isinstance(part, (Aggregate, Windowed, Subquery)):
            raise Wrong(part.place or place, "a lambda contains only columns and functions", "Compute it outside.")
    return Call("lambda", (*variables.values(), body), body.type, place=place)
