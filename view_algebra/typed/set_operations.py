"""UNION, INTERSECT and EXCEPT, whose sides get columns of one type, with the ORDER BY and LIMIT that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from view_algebra.language.expressions import Combined, Constant, Expr, Query, Select, Stream, Subquery
from view_algebra.language.meeting import cast, meet
from view_algebra.language.types import STRING, VOID, WINDOW, Type
from view_algebra.language.walks import every_relation, walk
from view_algebra.refusals import Wrong, span
from view_algebra.typed.aggregation.calls import refuse_aggregates
from view_algebra.typed.order.ties import limit_of, refuse_windows_in_order, set_in_total_order, sort_keys
from view_algebra.typed.scopes import Outside, Scope
from view_algebra.typed.spark_refuses import OVERLAPPING


def combined(node: exp.SetOperation, outside: Outside) -> Query:
    """Two queries as one: each column gets a common type, and the name that the first query gives it."""
    left, right = (outside.context.query(side, outside.of_a_part()) for side in (node.this, node.expression))
    place = span(node.expression)
    if len(left.columns) != len(right.columns):
        raise Wrong(
            place,
            f"the sides of {node.key.upper()} have {len(left.columns)} and {len(right.columns)} columns",
            "Give both sides the same columns.",
        )
    if node.args.get("by_name"):
        raise Wrong(place, f"{node.key.upper()} BY NAME is not served", "Order the columns alike on both sides.")
    sides = zip(_kinds(left), _kinds(right), strict=True)
    met = [meet((Constant("", a), Constant("", b)), place, node.key.upper(), texts=True) for a, b in sides]
    kinds = [column[0].type for column in met]
    kinds = [STRING if kind == VOID else kind for kind in kinds]
    left, right = _cast_outputs(left, kinds), _cast_outputs(right, kinds)
    operator = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}[type(node)]
    if not node.args.get("distinct", True):
        operator += " ALL"
    if not operator.endswith("ALL") and any(kind.nested and kind != WINDOW for kind in kinds):
        raise Wrong(place, f"{operator} does not take nested values", f"Take to_json(…) of them, or {operator} ALL.")
    if not operator.endswith("ALL") and any(kind.session for kind in _kinds(left) + _kinds(right)):
        raise Wrong(place, f"{operator} does not take sessions", OVERLAPPING)
    return modified(Combined(operator, left, right, left.columns, place=span(node)), node, outside)


def modified(query: Query, node: exp.Expr, outside: Outside) -> Query:
    """ORDER BY and LIMIT after a set operation or around a query in parentheses."""
    if not node.args.get("order") and not node.args.get("limit") and not node.args.get("offset"):
        return query
    scope = Scope(outside.without_outer(), {"": query.columns})
    order = tuple(sort_keys(node, scope, query.columns))
    for key in order:
        way_out = "Put the set operation into a subquery in FROM, and compute and order outside."
        refuse_aggregates(key.expression, "ORDER BY of a set operation", way_out)
        _refuse_records(key.expression, way_out)
    limit, offset = limit_of(node)
    if isinstance(query, Combined):
        refuse_windows_in_order(order, node)
    if query.order or query.limit is not None:
        raise Wrong(span(node), "the query has ORDER BY or LIMIT twice", "Put the inner query into a subquery in FROM.")
    place = span(node.args.get("limit") or node)
    query = replace(query, order=order, limit=limit, offset=offset, limit_place=place)
    return set_in_total_order(query, node, scope.edits) if isinstance(query, Combined) else query


def _refuse_records(key: Expr, way_out: str) -> None:
    """Refuses a subquery over records in ORDER BY of a set operation: it belongs to no block that could keep cells."""
    for part in walk(key):
        if isinstance(part, Subquery) and any(isinstance(read, Stream) for read in every_relation(part.query)):
            raise Wrong(part.place, "ORDER BY of a set operation cannot read records in a subquery", way_out)


def _kinds(query: Query) -> list[Type]:
    """The types of a query's columns. A column of NULLs takes any type."""
    if isinstance(query, Combined):
        sides = zip(_kinds(query.left), _kinds(query.right), strict=True)
        return [right if left == VOID else left for left, right in sides]
    columns = [output.expression for output in query.outputs]
    return [VOID if isinstance(e, Constant) and e.value is None else e.type for e in columns]


def _cast_outputs(query: Query, kinds: Sequence[Type]) -> Query:
    """A query with its columns cast to these types."""
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
