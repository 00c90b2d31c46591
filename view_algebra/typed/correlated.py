"""Subqueries about the row that they are asked for: which ones are served, and SEMI and ANTI joins as such.

`SELECT k FROM v WHERE EXISTS (SELECT 1 FROM w WHERE w.k = v.k)` names a column of the block around the subquery. To
that block the column is a part of the expression, as an argument of a call is (`walks.children`), so whatever is
done to a block's columns is done to it: it may be kept in cells, and read from them.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Literal

from view_algebra.language.expressions import (
    ONE,
    Aggregate,
    Call,
    Combined,
    Constant,
    Expr,
    Field,
    Nested,
    Output,
    Place,
    Query,
    Relation,
    Select,
    Subquery,
    conjuncts,
)
from view_algebra.language.fields import VARIABLE
from view_algebra.language.types import BOOLEAN
from view_algebra.language.walks import as_outer, outer_fields, rewrite

JOINS = ("SEMI", "ANTI", "LEFT SEMI", "LEFT ANTI")
"""Joins that ask whether there is a row on the other side."""

BY_AN_AGGREGATE = (
    "Select an aggregate, such as max(x) or max_by(x, y), end it with ORDER BY … LIMIT 1, or LEFT JOIN aggregates."
)


def asked(kind: Literal["scalar", "exists", "in"], query: Query, operand: Expr | None, place: Place) -> Subquery:
    """A subquery as a part of an expression."""
    if kind == "exists" and isinstance(query, Select):
        query = _any_row(query)
    of = BOOLEAN if kind != "scalar" else query.columns[0][1]
    return Subquery(kind, query, operand, of, place, correlated=any(True for _ in outer_fields(query)))


def _any_row(query: Select) -> Select:
    """A query that has a row where the given one has: the first of some are some, and there are groups of some."""
    if query.limit == 0 or query.offset:
        return query
    query = replace(query, limit=None, offset=None, order=())
    if query.group == () or query.having is not None:
        return query
    return replace(query, outputs=(Output("one", ONE),), group=None, distinct=False)


def semi_join(kind: str, right: Relation, aliases: Container[str], condition: Expr, place: Place) -> Expr:
    """The condition that SEMI or ANTI JOIN is on a row of its left side; `aliases` are those of the right one."""

    def of_left(part: Expr) -> Expr | None:
        of_right = isinstance(part, Field) and (part.relation in aliases or part.relation == VARIABLE)
        return as_outer(part) if isinstance(part, Field) and not of_right else None

    inner = Select((Output("one", ONE),), right, where=rewrite(condition, of_left), place=place)
    found = asked("exists", inner, None, place)
    return Call("not", (found,), BOOLEAN, place=place) if kind.endswith("ANTI") else found


def gives_no_null(query: Query) -> bool:
    """Is it sure that no column of a query is NULL?"""
    if isinstance(query, Combined):
        return gives_no_null(query.left) and gives_no_null(query.right)
    return all(is_never_null(output.expression, query.where, query.relation) for output in query.outputs)


def is_never_null(value: Expr, where: Expr | None, relation: Relation | None) -> bool:
    """Is it sure that a value of rows that meet a condition is not NULL?"""
    if any(value in _not_null_where(part) for part in conjuncts(where)):
        return True
    match value:
        case Constant():
            return value.value is not None
        case Aggregate(function="count" | "count_if"):
            return True
        case Call(function="+" | "-" | "*") if value.type.integral:
            return all(is_never_null(each, where, relation) for each in value.arguments)
        case Call(function="coalesce"):
            return any(is_never_null(each, where, relation) for each in value.arguments)
        case Call(function="cast", implicit=True, arguments=(inner,)):
            return inner.type.integral and value.type.numeric and is_never_null(inner, where, relation)
        case Field(path=(name,), relation=alias) if isinstance(relation, Nested) and relation.alias == alias:
            below = relation.query
            columns = below.outputs if isinstance(below, Select) else ()
            named = [column.expression for column in columns if column.name == name]
            return (
                isinstance(below, Select)
                and all(is_never_null(e, below.where, below.relation) for e in named)
                and bool(named)
            )
    return False


def _not_null_where(condition: Expr) -> tuple[Expr, ...]:
    """What is not NULL where a condition holds."""
    match condition:
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">="):
            return condition.arguments
        case Call(function="not", arguments=(Call(function="is null") as inner,)):
            return inner.arguments
    return ()
