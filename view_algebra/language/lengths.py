"""Intervals as numbers: `a - b` of two times, an INTERVAL in Spark, becomes a number of microseconds or days.

A query is resolved with Spark's intervals. Before it is split, `as_numbers` converts all of them to whole numbers:
functions that return their arguments, such as `max` or `coalesce`, treat numbers the same way. Only the columns of a
view become intervals again (Postgres' `interval`), which another view converts to numbers when it reads them.
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
from view_algebra.language.types import BIGINT, DAYS, DURATION, INTERVAL, Type
from view_algebra.language.walks import mapped, over_inputs, rewritten
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
"""Microseconds of a unit of time. Months and years have no fixed length."""

LENGTHS = (DURATION, DAYS)

_LENGTH, _NUMBER = "as length", "as number"
"""Internal calls, which `as_numbers` removes."""

COUNTED = "count of interval"
"""Internal call: the number of an interval in another view's column."""


def length(number: Expr, kind: Type) -> Expr:
    """An interval of `number` microseconds or days."""
    return Call(_LENGTH, (number,), kind, place=number.place)


def number(of: Expr, place: Place = None) -> Expr:
    """The number of days of a DAYS value, or of microseconds of another interval."""
    if isinstance(of, Call) and of.function == _LENGTH:
        return of.arguments[0]
    if not isinstance(of, Constant):
        if of.type == INTERVAL:
            way_out = "Write CASE WHEN … THEN a - b > INTERVAL 1 DAY … END, each with an INTERVAL of its own."
            raise Wrong(of.place or place, "an INTERVAL cannot be chosen among several", way_out)
        return Call(_NUMBER, (of,), BIGINT, place=of.place)
    count, unit = (of.value or "0 day").split(" ")
    if of.value is None:
        return Constant(None, BIGINT, of.place)
    if unit not in MICROSECONDS:
        what = f"an interval of {unit}s, which vary in length, does not go with a number or a difference of two times"
        way_out = (
            "Write a > b - INTERVAL 1 MONTH for a comparison, and add_months(ts, n) + (ts - date_trunc('day', ts))"
            " for a number of months. Or write days: INTERVAL 30 DAYS."
        )
        raise Wrong(of.place or place, what, way_out)
    return Constant(str(int(count) * MICROSECONDS[unit]), BIGINT, of.place)


def microseconds_of(of: Expr, place: Place = None) -> Expr:
    """The number of microseconds of an interval."""
    count = number(of, place)
    day = Constant(str(MICROSECONDS["day"]), BIGINT)
    return Call("*", (count, day), BIGINT, place=place) if of.type == DAYS else count


def in_days_or_microseconds(of: Expr, kind: Type, place: Place = None) -> Expr:
    """The number of an interval in the unit of another kind, in whole days for DAYS."""
    if kind != DAYS:
        return microseconds_of(of, place)
    count = number(of, place)
    if of.type == DAYS or not isinstance(count, Constant) or count.value is None:
        return count
    return replace(count, value=str(int(count.value) // MICROSECONDS["day"]))


def common_length(lengths: Iterable[Expr], place: Place) -> Type:
    """Spark's common type of several intervals, with their largest and smallest unit."""
    intervals = [value for value in lengths if is_length(value)]
    kinds = {value.type for value in intervals}
    units = {(value.value or "").split(" ")[-1] for value in intervals if isinstance(value, Constant)}
    if DURATION in kinds:
        return DURATION
    if kinds == {INTERVAL}:
        raise Wrong(
            place or intervals[0].place,
            "the INTERVAL has several units",
            "Write one of them: INTERVAL 90 MINUTES.",
        )
    if units & {"hour", "minute"}:
        raise Wrong(
            place,
            "the days between two dates do not go with hours or minutes",
            "Write INTERVAL 7200 SECONDS for 2 hours.",
        )
    return DAYS if units <= {"day", "week"} else DURATION


def is_length(value: Expr) -> bool:
    """True for an interval, from a difference of times or from INTERVAL."""
    return value.type in (*LENGTHS, INTERVAL)


def as_numbers(query: Query) -> Query:
    """The query with whole numbers in place of intervals."""
    if isinstance(query, Combined):
        columns = tuple((name, _kept(kind)) for name, kind in query.columns)
        order = tuple(replace(key, expression=_bare(key.expression)) for key in query.order)
        sides = (as_numbers(query.left), as_numbers(query.right))
        return replace(query, left=sides[0], right=sides[1], columns=columns, order=order)
    block = rewritten(query, _bare)
    return block if block.relation is None else replace(block, relation=_counted(block.relation))


def _counted(relation: Relation) -> Relation:
    """A relation with numbers in place of intervals. Another view is wrapped in a subquery that converts them."""
    if isinstance(relation, Nested):
        return replace(relation, query=as_numbers(relation.query))
    if isinstance(relation, Read) and any(kind in LENGTHS for _, kind in relation.columns):
        return Nested(_counted_view(relation), relation.alias, relation.place)
    return over_inputs(relation, _counted)


def _counted_view(read: Read) -> Select:
    fields = (Field(read.alias, (name,), kind, place=read.place) for name, kind in read.columns)
    numbers = (
        Call(COUNTED, (column,), BIGINT, place=read.place) if column.type in LENGTHS else column for column in fields
    )
    return Select(tuple(Output(name, column) for (name, _), column in zip(read.columns, numbers, strict=True)), read)


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
