"""Subqueries as values and conditions: scalar ones, EXISTS, and IN, which may list values too."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from view_algebra.language.expressions import Call, Constant, Expr, Field, Nested, Place, Query, Select
from view_algebra.language.meeting import among, meet
from view_algebra.language.types import BOOLEAN, FLOAT, Type
from view_algebra.language.walks import outer_fields, walk
from view_algebra.refusals import Wrong, span
from view_algebra.typed.constants import rows_of
from view_algebra.typed.correlated import BY_AN_AGGREGATE, asked, gives_no_null, is_never_null
from view_algebra.typed.determinism import unique_keys
from view_algebra.typed.names import Scope, resolved


def among_values(node: exp.In, scope: Scope) -> Expr:
    """X IN (…): values, or a query."""
    query = node.args.get("query")
    if query is not None and isinstance(query.this, exp.Subquery):
        what = "IN ((SELECT …)), whose SELECT is one value to Spark"
        raise Wrong(span(query), what, "Write one pair of parentheses: IN (SELECT …).")
    if isinstance(node.this, exp.Tuple):
        return _row_in(node, scope)
    value, place = resolved(node.this, scope), span(node)
    if query is not None:
        inner = _inner(query, scope)
        if len(inner.columns) != 1:
            raise Wrong(place, f"IN over {len(inner.columns)} columns", "Select one column.")
        value = _beside(value, inner.columns[0][1], place)
        _refuse_as_value(node, [value], inner, scope)
        if (rows := rows_of(inner)) is not None:
            return Call("in", among([value, *(row[0] for row in rows)], place), BOOLEAN, place=place)
        return asked("in", inner, value, place)
    if not node.expressions:
        raise Wrong(place, "IN of nothing", "Name a value, or a subquery.")
    items = [value, *(resolved(e, scope) for e in node.expressions)]
    return Call("in", among(items, place), BOOLEAN, place=place)


def _row_in(node: exp.In, scope: Scope) -> Expr:
    """(a, b) IN (SELECT x, y …)."""
    values, place = [resolved(e, scope) for e in node.this.expressions], span(node)
    query = node.args.get("query")
    if query is None:  # which Spark compares as structs: a NULL in both is equal
        raise Wrong(place, "several values IN a list", "Write (a = 1 AND b = 2) OR (a = 3 AND b = 4).")
    inner = _inner(query, scope)
    if len(inner.columns) != len(values):
        raise Wrong(place, f"{len(values)} values IN over {len(inner.columns)} columns", "Select as many.")
    values = [_beside(value, kind, place) for value, (_, kind) in zip(values, inner.columns, strict=True)]
    _refuse_as_value(node, values, inner, scope)
    return asked("in", inner, Call("row", tuple(values), Type("STRUCT", fields=inner.columns)), place)


def asked_of_a_query(node: exp.Expr, scope: Scope) -> Expr:
    """(SELECT …) as a value, and EXISTS (SELECT …)."""
    place = span(node)
    inner = _inner(node.this, scope)
    if isinstance(node, exp.Exists):
        above = node.parent
        compared = isinstance(above, exp.Binary) and not isinstance(above, exp.Connector)
        if compared or (isinstance(above, (exp.In, exp.Between)) and above.this is node):
            raise Wrong(place, "EXISTS (…) beside an operator", "Put it into parentheses: (EXISTS (…)).")
        return asked("exists", inner, None, place)
    if len(inner.columns) != 1:
        raise Wrong(place, f"a subquery of {len(inner.columns)} columns as a value", "Select one column.")
    one = isinstance(inner, Select) and (inner.limit == 1 or inner.relation is None)
    if not one and not _is_one_aggregate(inner) and not _is_one_row(inner, scope):
        about_a_row = any(True for _ in outer_fields(inner))
        way_out = BY_AN_AGGREGATE if about_a_row else "Aggregate it, or end it with ORDER BY … LIMIT 1."
        raise Wrong(place, "a subquery as a value must give one row", way_out)
    return asked("scalar", inner, None, place)


def _inner(node: exp.Expr, scope: Scope) -> Query:
    """A query inside an expression, which may name columns of the block around it."""
    return scope.context.query(node, scope.subquery())


def _is_one_row(query: Query, scope: Scope) -> bool:
    """Is it sure that a query gives one row at most, for each row around it?"""
    return frozenset() in unique_keys(query, scope.context.keys)


def _is_one_aggregate(query: Query) -> bool:
    """Does a query give one aggregate of all rows, or a part of a query that does?"""
    if not isinstance(query, Select) or query.group is not None:
        return isinstance(query, Select) and query.group == ()
    return isinstance(query.relation, Nested) and _is_one_aggregate(query.relation.query)


def _refuse_as_value(node: exp.In, values: Sequence[Expr], query: Query, scope: Scope) -> None:
    """IN over a query that is NULL is false to Spark, or the NOT of it true, as it happens to plan it: where that
    matters, it is refused. So is NULL in a query, whatever it decides: Spark never looks whether the query has rows.
    """
    if all(map(_is_null, values)):
        raise Wrong(span(node), "NULL IN (SELECT …)", "Leave it out, or compare a column.")
    below: exp.Expr = node
    above = node.parent
    while isinstance(above, (exp.Paren, exp.And, exp.Or, exp.Not)):
        below, above = above, above.parent
    counted = isinstance(above, exp.Anonymous) and above.name.lower() in ("count_if", "if")
    decides = above is not None and (
        isinstance(above, (exp.Where, exp.Having, exp.Join))
        or (isinstance(above, exp.If) and above.this is below)
        or (counted and above.expressions[0] is below)
    )
    block = node.parent_select
    group = None if block is None else block.args.get("group")
    whole = group is None or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None  # which leave keys out, as NULL
    no_nulls = all(is_never_null(value, scope.where, scope.relation) for value in values) and gives_no_null(query)
    if not decides and not (whole and no_nulls):
        way_out = (
            "Write EXISTS (SELECT 1 FROM … WHERE k = x), which is never NULL, or put it into WHERE. Where it cannot be "
            "NULL it is served: with IS NOT NULL in both WHEREs."
        )
        raise Wrong(span(node), "IN (SELECT …) as a value", way_out)


def _is_null(value: Expr) -> bool:
    """Is it NULL for whatever is read?"""
    given = list(walk(value))
    return any(isinstance(e, Constant) and e.value is None for e in given) and not any(
        isinstance(e, Field) for e in given
    )


def _beside(value: Expr, kind: Type, place: Place) -> Expr:
    """What IN compares with values of a type: one of it, or numbers, in the wider type.

    Of times, each engine has its own idea of which is the same, and of FLOAT and another number, of which to widen.
    """
    met = meet((value, Constant("", kind)), place, "IN")[0]
    if value.type != kind and (not met.type.numeric or FLOAT in (value.type, kind)):
        raise Wrong(place, f"IN meets {value.type} with {kind}", "Cast one of them.")
    return met
