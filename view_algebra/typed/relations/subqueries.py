"""Scalar subqueries, EXISTS and IN, and correlated subqueries, which SEMI and ANTI joins become.

`SELECT k FROM v WHERE EXISTS (SELECT 1 FROM w WHERE w.k = v.k)` names a column of the outer block. To that block the
column is a part of the expression, like an argument of a call (`walks.children`). So every rewrite of the block's
columns applies to it too: it may be kept in cells, and read from them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from view_algebra.language.aggregates import AGGREGATES, COUNTS
from view_algebra.language.expressions import (
    ONE,
    VARIABLE,
    Aggregate,
    Call,
    Combined,
    Constant,
    Expr,
    Field,
    NeedsRecords,
    Nested,
    Output,
    Place,
    Query,
    Relation,
    Select,
    Subquery,
    conjuncts,
)
from view_algebra.language.meeting import among, meet
from view_algebra.language.types import BOOLEAN, FLOAT, Type
from view_algebra.language.walks import as_outer, outer_fields, parts, rewrite, walk
from view_algebra.refusals import Wrong, span
from view_algebra.typed.order.keys import unique_keys
from view_algebra.typed.order.literal_rows import rows_of
from view_algebra.typed.scopes import Scope, resolved


def in_list(node: exp.In, scope: Scope) -> Expr:
    """X IN (…): values, or a query."""
    query = node.args.get("query")
    if query is not None and isinstance(query.this, exp.Subquery):
        what = "Spark reads the SELECT of IN ((SELECT …)) as one value"
        raise Wrong(span(query), what, "Write one pair of parentheses: IN (SELECT …).")
    if isinstance(node.this, exp.Tuple):
        return _row_in(node, scope)
    value, place = resolved(node.this, scope), span(node)
    if query is not None:
        inner = _inner(query, scope)
        if len(inner.columns) != 1:
            raise Wrong(place, f"IN compares one value with {len(inner.columns)} columns", "Select one column.")
        value = _comparable(value, inner.columns[0][1], place)
        _refuse_as_value(node, [value], inner, scope)
        if (rows := rows_of(inner)) is not None:
            return Call("in", among([value, *(row[0] for row in rows)], place), BOOLEAN, place=place)
        return subquery("in", inner, value, place)
    if not node.expressions:
        raise Wrong(place, "IN () is empty", "Name a value, or a subquery.")
    items = [value, *(resolved(e, scope) for e in node.expressions)]
    return Call("in", among(items, place), BOOLEAN, place=place)


def _row_in(node: exp.In, scope: Scope) -> Expr:
    """(a, b) IN (SELECT x, y …)."""
    values, place = [resolved(e, scope) for e in node.this.expressions], span(node)
    query = node.args.get("query")
    if query is None:  # Spark compares them as structs: NULL equals NULL
        raise Wrong(place, "IN over a list compares one value", "Write (a = 1 AND b = 2) OR (a = 3 AND b = 4).")
    inner = _inner(query, scope)
    if len(inner.columns) != len(values):
        raise Wrong(place, f"IN compares {len(values)} values with {len(inner.columns)} columns", "Select as many.")
    values = [_comparable(value, kind, place) for value, (_, kind) in zip(values, inner.columns, strict=True)]
    _refuse_as_value(node, values, inner, scope)
    return subquery("in", inner, Call("row", tuple(values), Type("STRUCT", fields=inner.columns)), place)


def subquery_value(node: exp.Expr, scope: Scope) -> Expr:
    """(SELECT …) as a value, and EXISTS (SELECT …)."""
    place = span(node)
    inner = _inner(node.this, scope)
    if isinstance(node, exp.Exists):
        above = node.parent
        compared = isinstance(above, exp.Binary) and not isinstance(above, exp.Connector)
        if compared or (isinstance(above, (exp.In, exp.Between)) and above.this is node):
            raise Wrong(place, "EXISTS (…) stands next to an operator", "Put it into parentheses: (EXISTS (…)).")
        return subquery("exists", inner, None, place)
    if len(inner.columns) != 1:
        raise Wrong(place, f"a subquery as a value has {len(inner.columns)} columns", "Select one column.")
    one = isinstance(inner, Select) and (inner.limit == 1 or inner.relation is None)
    if not one and not _is_one_aggregate(inner) and not _is_one_row(inner, scope):
        about_a_row = any(outer_fields(inner))
        way_out = BY_AN_AGGREGATE if about_a_row else "Aggregate it, or end it with ORDER BY … LIMIT 1."
        raise Wrong(place, "a subquery as a value must give one row", way_out)
    return subquery("scalar", inner, None, place)


def _inner(node: exp.Expr, scope: Scope) -> Query:
    """A query inside an expression, which may name columns of the outer block."""
    return scope.context.query(node, scope.subquery())


def _is_one_row(query: Query, scope: Scope) -> bool:
    """True if the query provably returns at most one row per outer row."""
    return frozenset() in unique_keys(query, scope.context.keys)


def _is_one_aggregate(query: Query) -> bool:
    """True if the query is one aggregate of all rows, or reads such a query."""
    if not isinstance(query, Select) or query.group is not None:
        return isinstance(query, Select) and query.group == ()
    return isinstance(query.relation, Nested) and _is_one_aggregate(query.relation.query)


def _refuse_as_value(node: exp.In, values: Sequence[Expr], query: Query, scope: Scope) -> None:
    """Refuses IN over a query as a value that may be NULL, and NULL IN over a query.

    Depending on its plan, Spark reads an IN that is NULL as false, or its NOT as true. For NULL IN, Spark never checks
    whether the query has rows.
    """
    if all(map(_is_null, values)):
        raise Wrong(span(node), "NULL IN (SELECT …) is not served", "Leave it out, or compare a column.")
    below: exp.Expr = node
    above = node.parent
    while isinstance(above, (exp.Paren, exp.And, exp.Or, exp.Not)):
        below, above = above, above.parent
    call = above.name.lower() if isinstance(above, exp.Anonymous) else ""
    counted = call == "if" or (call in AGGREGATES and AGGREGATES[call].counts == "conditions")
    decides = above is not None and (
        isinstance(above, (exp.Where, exp.Having, exp.Join))
        or (isinstance(above, exp.If) and above.this is below)
        or (counted and above.expressions[0] is below)
    )
    block = node.parent_select
    group = None if block is None else block.args.get("group")
    whole = group is None or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None  # these make keys NULL
    no_nulls = all(is_never_null(value, scope.rows.where, scope.rows.relation) for value in values) and gives_no_null(
        query
    )
    if not decides and not (whole and no_nulls):
        way_out = (
            "Write EXISTS (SELECT 1 FROM … WHERE k = x), which is never NULL, or put it into WHERE. It is also served "
            "if neither side can be NULL: add IS NOT NULL to both WHERE clauses."
        )
        raise Wrong(span(node), "IN (SELECT …) as a value must not be NULL", way_out)


def _is_null(value: Expr) -> bool:
    """True if the value reads no column and contains a NULL literal, so that it is NULL in all but a few functions."""
    parts = list(walk(value))
    return any(isinstance(e, Constant) and e.value is None for e in parts) and not any(
        isinstance(e, Field) for e in parts
    )


def _comparable(value: Expr, kind: Type, place: Place) -> Expr:
    """The value that IN compares with values of this type: a value of the type, or a number in the wider type.

    The engines disagree on which times are equal, and on which side to widen if FLOAT meets another number.
    """
    met = meet((value, Constant("", kind)), place, "IN")[0]
    if value.type != kind and (not met.type.numeric or FLOAT in (value.type, kind)):
        raise Wrong(place, f"IN mixes {value.type} with {kind}", "Cast one of them.")
    return met


JOINS = ("SEMI", "ANTI", "LEFT SEMI", "LEFT ANTI")
"""Joins that only test for a row on the other side."""

BY_AN_AGGREGATE = (
    "Select an aggregate, such as max(x) or max_by(x, y), end it with ORDER BY … LIMIT 1, or LEFT JOIN aggregates."
)


def subquery(kind: Literal["scalar", "exists", "in"], query: Query, operand: Expr | None, place: Place) -> Subquery:
    """A subquery as a part of an expression."""
    if kind == "exists" and isinstance(query, Select):
        query = _any_row(query)
    of = BOOLEAN if kind != "scalar" else query.columns[0][1]
    return Subquery(kind, query, operand, of, place, correlated=any(outer_fields(query)))


def _any_row(query: Select) -> Select:
    """A query that has rows exactly if this one has, without its outputs and its order, which do not matter."""
    if query.limit == 0 or query.offset or any(isinstance(part, NeedsRecords) for part in parts(query)):
        return query
    query = replace(query, limit=None, offset=None, order=())
    if query.group == () or query.having is not None:
        return query
    return replace(query, outputs=(Output("one", ONE),), group=None, distinct=False)


def semi_join(kind: str, right: Relation, aliases: Container[str], condition: Expr, place: Place) -> Expr:
    """The condition that a SEMI or ANTI JOIN puts on a row of its left side. `aliases` are the right side's."""

    def of_left(part: Expr) -> Expr | None:
        of_right = isinstance(part, Field) and (part.relation in aliases or part.relation == VARIABLE)
        return as_outer(part) if isinstance(part, Field) and not of_right else None

    inner = Select((Output("one", ONE),), right, where=rewrite(condition, of_left), place=place)
    exists = subquery("exists", inner, None, place)
    return Call("not", (exists,), BOOLEAN, place=place) if kind.endswith("ANTI") else exists


def gives_no_null(query: Query) -> bool:
    """True if no column of the query can be NULL."""
    if isinstance(query, Combined):
        return gives_no_null(query.left) and gives_no_null(query.right)
    return all(is_never_null(output.expression, query.where, query.relation) for output in query.outputs)


def is_never_null(value: Expr, where: Expr | None, relation: Relation | None) -> bool:
    """True if the value cannot be NULL in a row that meets the condition."""
    if any(value in _not_null_where(part) for part in conjuncts(where)):
        return True
    match value:
        case Constant():
            return value.value is not None
        case Aggregate():
            return value.function in COUNTS
        case Call(function="+" | "-" | "*") if value.type.integral:
            return all(is_never_null(argument, where, relation) for argument in value.arguments)
        case Call(function="coalesce"):
            return any(is_never_null(argument, where, relation) for argument in value.arguments)
        case Call(function="cast", implicit=True, arguments=(inner,)):
            return inner.type.integral and value.type.numeric and is_never_null(inner, where, relation)
        case Field(path=(name,), relation=alias) if isinstance(relation, Nested) and relation.alias == alias:
            below = relation.query
            if not isinstance(below, Select):
                return False
            named = [column.expression for column in below.outputs if column.name == name]
            return bool(named) and all(is_never_null(e, below.where, below.relation) for e in named)
    return False


def _not_null_where(condition: Expr) -> tuple[Expr, ...]:
    """The expressions that cannot be NULL in a row that meets the condition."""
    match condition:
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">="):
            return condition.arguments
        case Call(function="not", arguments=(Call(function="is null") as inner,)):
            return inner.arguments
    return ()
