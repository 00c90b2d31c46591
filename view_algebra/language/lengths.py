"""Lengths of time: `a - b` of two times is an INTERVAL to Spark, and here the number of its microseconds, or days.

A query is resolved with lengths as Spark has them. Before it is split, `as_numbers` makes whole numbers of them all:
what takes two lengths as they are, as `max` or `coalesce`, takes two numbers alike. Only the columns of a view are
lengths again: Postgres' `interval`, which another view that reads them takes as numbers once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from view_algebra.language.expressions import (
    Call,
    Combined,
    Constant,
    Expr,
    Field,
    Nested,
    Output,
    Place,
    Query,
    Read,
    Relation,
    Select,
    Subquery,
)
from view_algebra.language.relations import over_inputs
from view_algebra.language.types import BIGINT, DAYS, DURATION, INTERVAL, Type
from view_algebra.language.walks import mapped, rewritten
from view_algebra.refusals import Wrong

MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
"""Microseconds of a unit of time; months and years have no fixed length."""

LENGTHS = (DURATION, DAYS)

_LENGTH, _NUMBER = "as length", "as number"
"""Calls, no functions, of which a query has none once its lengths are numbers."""

COUNTED = "count of interval"
"""A call, no function: the number that the column of another view is, an interval there."""


def length(number: Expr, kind: Type) -> Expr:
    """So many microseconds, or days, as a length."""
    return Call(_LENGTH, (number,), kind, place=number.place)


def number(of: Expr, place: Place = None) -> Expr:
    """The number of days that DAYS are, or of microseconds that another length is."""
    if isinstance(of, Call) and of.function == _LENGTH:
        return of.arguments[0]
    if not isinstance(of, Constant):
        if of.type == INTERVAL:
            way_out = "Write CASE WHEN … THEN a - b > INTERVAL 1 DAY … END, each with an INTERVAL of its own."
            raise Wrong(of.place or place, "an INTERVAL that is chosen among several", way_out)
        return Call(_NUMBER, (of,), BIGINT, place=of.place)
    count, unit = (of.value or "0 day").split(" ")
    if of.value is None:
        return Constant(None, BIGINT, of.place)
    if unit not in MICROSECONDS:
        what = f"an interval of {unit}s, which are of different lengths, beside a number or a difference of two times"
        way_out = (
            "Write a > b - INTERVAL 1 MONTH for a comparison, and add_months(ts, n) + (ts - date_trunc('day', ts))"
            " for a number of months; or write days: INTERVAL 30 DAYS."
        )
        raise Wrong(of.place or place, what, way_out)
    return Constant(str(int(count) * MICROSECONDS[unit]), BIGINT, of.place)


def microseconds_of(of: Expr, place: Place = None) -> Expr:
    """The number of microseconds that a length is."""
    found = number(of, place)
    day = Constant(str(MICROSECONDS["day"]), BIGINT)
    return Call("*", (found, day), BIGINT, place=place) if of.type == DAYS else found


def in_days_or_microseconds(of: Expr, kind: Type, place: Place = None) -> Expr:
    """The number that a length is as one of another kind; one as DAYS is a whole number of them."""
    if kind != DAYS:
        return microseconds_of(of, place)
    found = number(of, place)
    if of.type == DAYS or not isinstance(found, Constant) or found.value is None:
        return found
    return replace(found, value=str(int(found.value) // MICROSECONDS["day"]))


def beside(lengths: Iterable[Expr], place: Place) -> Type:
    """The type that Spark gives what is one of several lengths, or their sum: its largest and its smallest unit."""
    given = [each for each in lengths if is_length(each)]
    kinds = {each.type for each in given}
    units = {(each.value or "").split(" ")[-1] for each in given if isinstance(each, Constant)}
    if DURATION in kinds:
        return DURATION
    if kinds == {INTERVAL}:
        raise Wrong(
            place or given[0].place, "a sum of INTERVALs as they are written", "Write one of them: INTERVAL 90 MINUTES."
        )
    if units & {"hour", "minute"}:
        raise Wrong(place, "days of two dates beside hours or minutes", "Write INTERVAL 7200 SECONDS for 2 hours.")
    return DAYS if units <= {"day", "week"} else DURATION


def is_length(value: Expr) -> bool:
    """Is it a length, as of a difference, or an INTERVAL?"""
    return value.type in (*LENGTHS, INTERVAL)


def as_numbers(query: Query) -> Query:
    """A query with a whole number in the place of each length."""
    if isinstance(query, Combined):
        columns = tuple((name, _kept(kind)) for name, kind in query.columns)
        order = tuple(replace(key, expression=_bare(key.expression)) for key in query.order)
        sides = (as_numbers(query.left), as_numbers(query.right))
        return replace(query, left=sides[0], right=sides[1], columns=columns, order=order)
    block = rewritten(query, _bare)
    return block if block.relation is None else replace(block, relation=_counted(block.relation))


def _counted(relation: Relation) -> Relation:
    """What is read, each of its lengths as a number: in subqueries, and of other views in a subquery of its own."""
    if isinstance(relation, Nested):
        return replace(relation, query=as_numbers(relation.query))
    if isinstance(relation, Read) and any(kind in LENGTHS for _, kind in relation.columns):
        return Nested(_of_view(relation), relation.alias, relation.place)
    return over_inputs(relation, _counted)


def _of_view(read: Read) -> Select:
    fields = (Field(read.alias, (name,), kind, place=read.place) for name, kind in read.columns)
    numbers = (Call(COUNTED, (each,), BIGINT, place=read.place) if each.type in LENGTHS else each for each in fields)
    return Select(tuple(Output(name, each) for (name, _), each in zip(read.columns, numbers, strict=True)), read)


def _bare(expression: Expr) -> Expr:
    if isinstance(expression, Call) and expression.function in (_LENGTH, _NUMBER):
        return _bare(expression.arguments[0])
    if isinstance(expression, Subquery):
        expression = replace(expression, query=as_numbers(expression.query))
    inner = mapped(expression, _bare)
    kind = _kept(inner.type)
    return inner if kind == inner.type else replace(inner, type=kind)


def _kept(kind: Type) -> Type:
    if kind in LENGTHS:
        return BIGINT
    fields = tuple((name, _kept(field)) for name, field in kind.fields)
    return replace(kind, fields=fields, element=None if kind.element is None else _kept(kind.element))
