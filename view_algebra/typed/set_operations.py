"""UNION, INTERSECT and EXCEPT: their columns of one type, and ORDER BY and LIMIT around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from view_algebra.language.expressions import Combined, Constant, Query, Select
from view_algebra.language.meeting import cast, meet
from view_algebra.language.types import STRING, VOID, WINDOW, Type
from view_algebra.refusals import Wrong, span
from view_algebra.typed.calls import refuse_aggregates
from view_algebra.typed.names import Outside, Scope
from view_algebra.typed.orders import limit_of, refuse_windows_in_order, sort_keys
from view_algebra.typed.spark_refuses import OVERLAPPING
from view_algebra.typed.ties import settled_set


def combined(node: exp.SetOperation, outside: Outside) -> Query:
    """Two queries as one: their columns are brought to one type each, under the names of the first."""
    left, right = (outside.context.query(side, outside.of_a_part()) for side in (node.this, node.expression))
    place = span(node.expression)
    if len(left.columns) != len(right.columns):
        raise Wrong(
            place,
            f"{node.key.upper()} of {len(left.columns)} and {len(right.columns)} columns",
            "Give both sides the same columns.",
        )
    if node.args.get("by_name"):
        raise Wrong(place, f"{node.key.upper()} BY NAME", "Put the columns in the same order on both sides.")
    sides = zip(_kinds(left), _kinds(right), strict=True)
    met = [meet((Constant("", a), Constant("", b)), place, node.key.upper(), texts=True) for a, b in sides]
    kinds = [column[0].type for column in met]
    kinds = [STRING if kind == VOID else kind for kind in kinds]
    left, right = _cast_outputs(left, kinds), _cast_outputs(right, kinds)
    operator = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}[type(node)]
    if not node.args.get("distinct", True):
        operator += " ALL"
    if not operator.endswith("ALL") and any(kind.nested and kind != WINDOW for kind in kinds):
        raise Wrong(place, f"{operator} of nested values", f"Take to_json(…) of them, or {operator} ALL.")
    if not operator.endswith("ALL") and any(kind.session for kind in _kinds(left) + _kinds(right)):
        raise Wrong(place, f"{operator} of sessions", OVERLAPPING)
    return modified(Combined(operator, left, right, left.columns, place=span(node)), node, outside)


def modified(query: Query, node: exp.Expr, outside: Outside) -> Query:
    """ORDER BY and LIMIT after a set operation or around a query in parentheses."""
    if not node.args.get("order") and not node.args.get("limit") and not node.args.get("offset"):
        return query
    scope = Scope(outside.alone(), {"": query.columns})
    order = tuple(sort_keys(node, scope, query.columns))
    for key in order:
        way_out = "Put the set operation into a subquery in FROM, and compute and order around it."
        refuse_aggregates(key.expression, "ORDER BY of a set operation", way_out)
    limit, offset = limit_of(node)
    if isinstance(query, Combined):
        refuse_windows_in_order(order, node)
    if query.order or query.limit is not None:
        raise Wrong(span(node), "ORDER BY or LIMIT twice", "Put the inner query into a subquery in FROM.")
    place = span(node.args.get("limit") or node)
    query = replace(query, order=order, limit=limit, offset=offset, limit_place=place)
    return settled_set(query, node) if isinstance(query, Combined) else query


def _kinds(query: Query) -> list[Type]:
    """The types of a query's columns; one of NULLs alone takes any."""
    if isinstance(query, Combined):
        sides = zip(_kinds(query.left), _kinds(query.right), strict=True)
        return [right if left == VOID else left for left, right in sides]
    columns = [output.expression for output in query.outputs]
    return [VOID if isinstance(e, Constant) and e.value is None else e.type for e in columns]


def _cast_outputs(query: Query, kinds: Sequence[Type]) -> Query:
    if isinstance(query, Select):
        outputs = tuple(
            replace(o, expression=cast(o.expression, kind, implicit=kind != STRING or o.expression.type == VOID))
            for o, kind in zip(query.outputs, kinds, strict=True)
        )
        return replace(query, outputs=outputs)
    columns = tuple((name, kind) for (name, _), kind in zip(query.columns, kinds, strict=True))
    return replace(
        query, left=_cast_outputs(query.left, kinds), right=_cast_outputs(query.right, kinds), columns=columns
    )
