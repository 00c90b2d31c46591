"""Subqueries about the row that they are asked for: which ones are served, and SEMI and ANTI joins as such.

`SELECT k FROM v WHERE EXISTS (SELECT 1 FROM w WHERE w.k = v.k)` names a column of the block around the subquery. To
that block the column is a part of the expression, as an argument of a call is (`expressions.children`), so whatever is
done to a block's columns is done to it: it may be kept in cells, and read from them.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Literal

from view_algebra.expressions import (
    ONE,
    Call,
    Expr,
    Field,
    Output,
    Place,
    Query,
    Relation,
    Select,
    Subquery,
    Windowed,
    as_outer,
    conjuncts,
    outer_fields,
    parts,
    rewrite,
    walk,
)
from view_algebra.refusals import Wrong
from view_algebra.types import BOOLEAN

JOINS = ("SEMI", "ANTI", "LEFT SEMI", "LEFT ANTI")
"""Joins that ask whether there is a row on the other side."""

BY_AN_AGGREGATE = "Select an aggregate, as max(x) or max_by(x, y), and nothing after WHERE; or LEFT JOIN aggregates."
_BY_KEYS = "Write it as k IN (SELECT k …), or as a LEFT JOIN of aggregates."


def asked(kind: Literal["scalar", "exists", "in"], query: Query, operand: Expr | None, place: Place) -> Subquery:
    """A subquery as a part of an expression; refuses those about a row that Spark does not answer either."""
    if kind == "exists" and isinstance(query, Select):
        query = _any_row(query)
    of = BOOLEAN if kind != "scalar" else query.columns[0][1]
    if not any(True for _ in outer_fields(query)):
        return Subquery(kind, query, operand, of, place)
    _refuse_more_than_conditions(query, place, BY_AN_AGGREGATE if kind == "scalar" else _BY_KEYS)
    assert isinstance(query, Select)
    if kind == "scalar":
        for part in conjuncts(query.where):
            equality = isinstance(part, Call) and part.function in ("=", "<=>")
            if not equality and any(isinstance(e, Field) and e.outer for e in walk(part)):
                way_out = "Compare the column by = alone, or join a subquery that is grouped by it."
                raise Wrong(place, "a value of the rows that meet another condition than equality", way_out)
    return Subquery(kind, query, operand, of, place, correlated=True)


def _any_row(query: Select) -> Select:
    """A query that has a row where the given one has: the first of some are some, and there are groups of some."""
    if query.limit == 0 or query.offset:
        return query
    query = replace(query, limit=None, offset=None, order=())
    if query.group == () or query.having is not None:
        return query
    return replace(query, outputs=(Output("one", ONE),), group=None, distinct=False)


def _refuse_more_than_conditions(query: Query, place: Place, way_out: str) -> None:
    if not isinstance(query, Select) or query.group or query.limit is not None or query.having is not None:
        what = "a subquery about a row, with more than SELECT, FROM and WHERE"
        raise Wrong(place, what, way_out)
    for part in parts(query):
        if isinstance(part, Windowed):
            raise Wrong(part.place or place, "a window function in a subquery about a row", way_out)
        if isinstance(part, Subquery) and part.correlated:
            raise Wrong(part.place or place, "a subquery about a row of a subquery about a row", way_out)


def refuse_elsewhere(block: Select) -> None:
    """A subquery about a row stands in WHERE, or among the columns of a block that groups nothing."""
    elsewhere = [o.expression for o in block.order] + ([] if block.having is None else [block.having])
    if block.group is not None or block.distinct:
        elsewhere += [o.expression for o in block.outputs] + list(block.group or ())
    for expression in elsewhere:
        for part in walk(expression):
            if isinstance(part, Subquery) and part.correlated:
                way_out = "Put it into WHERE, or among the columns of a subquery in FROM."
                raise Wrong(part.place, "a subquery about a row beside GROUP BY, HAVING or ORDER BY", way_out)


def semi_join(kind: str, right: Relation, aliases: Container[str], condition: Expr, place: Place) -> Expr:
    """The condition that SEMI or ANTI JOIN is on a row of its left side; `aliases` are those of the right one."""

    def of_left(part: Expr) -> Expr | None:
        return as_outer(part) if isinstance(part, Field) and part.relation not in aliases else None

    inner = Select((Output("one", ONE),), right, where=rewrite(condition, of_left), place=place)
    found = asked("exists", inner, None, place)
    return Call("not", (found,), BOOLEAN, place=place) if kind.endswith("ANTI") else found
