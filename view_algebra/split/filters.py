"""Computes aggregates with conditions on other records, one block over the stream for each condition.

The condition may be in FILTER (WHERE u IN (SELECT …)) or in a CASE inside the aggregate.
`SELECT k, count(*), sum(x) FILTER (WHERE u IN (SELECT …)) FROM s GROUP BY k` is read as

    SELECT k, max(count), max(sum_x) FROM (
      SELECT k, count(*) AS count, NULL AS sum_x FROM s GROUP BY k
      UNION ALL
      SELECT k, NULL, sum(x) FROM s WHERE u IN (SELECT …) GROUP BY k)
    GROUP BY k

so that the condition is part of WHERE, which cells can answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from view_algebra.language.aggregates import AGGREGATES, COUNTS, WIDE
from view_algebra.language.expressions import (
    TRUE,
    Aggregate,
    Call,
    Case,
    Constant,
    Expr,
    Field,
    Output,
    Select,
    both,
    ungrouped,
)
from view_algebra.language.meeting import cast
from view_algebra.language.operators import calculate
from view_algebra.language.time_windows import is_session
from view_algebra.language.types import BIGINT, BOOLEAN
from view_algebra.language.walks import above_group, asks, over_branches, rewritten, walk
from view_algebra.refusals import Wrong

_APART = "apart"
"""Alias of the subquery in place of the stream."""


def by_filters(block: Select, kept: Callable[[Select], Select]) -> Select:
    """Splits a block over a stream into one per condition on other records, and applies `kept` to all of them."""
    block = rewritten(block, _as_filter)
    aggregates = list(dict.fromkeys(e for x in above_group(block) for e in walk(x) if isinstance(e, Aggregate)))
    conditions = dict.fromkeys(a.condition for a in aggregates if _asked(a.condition))
    if block.group is None or not conditions:
        return kept(block)
    _refuse(block, aggregates)
    keys = {key: f"key_{n}" for n, key in enumerate(dict.fromkeys(block.group))}
    names = {aggregate: f"aggregate_{n}" for n, aggregate in enumerate(aggregates)}

    def branch(condition: Expr | None) -> Select:
        own = {a for a in aggregates if (a.condition if _asked(a.condition) else None) == condition}
        outputs = [Output(name, key) for key, name in keys.items()]
        for aggregate, name in names.items():
            alone = aggregate if condition is None else replace(aggregate, condition=None)
            outputs.append(Output(name, alone if aggregate in own else Constant(None, aggregate.type)))
        where = both(block.where, condition)
        plain = replace(block, having=None, order=(), limit=None, offset=None, distinct=False)
        return kept(replace(plain, outputs=tuple(outputs), where=where))

    def read(expression: Expr) -> Expr | None:
        if expression in keys:
            return Field(_APART, (keys[expression],), expression.type, place=expression.place)
        if isinstance(expression, Aggregate):
            only = Aggregate(
                "max", (Field(_APART, (names[expression],), expression.type),), None, False, expression.type
            )
            zero = Constant("0", BIGINT)
            return Call("coalesce", (only, zero), BIGINT) if expression.function in COUNTS else only
        if isinstance(expression, Field) and expression.relation == "":
            raise ungrouped(expression)
        return None

    plain = [None] if block.group or any(not _asked(a.condition) for a in aggregates) else []
    return over_branches(block, [branch(condition) for condition in (*plain, *conditions)], _APART, keys, read)


def _asked(condition: Expr | None) -> bool:
    return condition is not None and any(map(asks, walk(condition)))


def _refuse(block: Select, aggregates: list[Aggregate]) -> None:
    what = "a condition cannot read other records in"
    if any(map(is_session, block.group or ())):
        way_out = "Put conditions on the records alone there, or filter the sessions in a view over this one."
        raise Wrong(block.place, f"{what} an aggregate of sessions", way_out)
    for aggregate in aggregates:
        if aggregate.type.nested:
            raise Wrong(
                aggregate.place, f"{what} an aggregate next to a list", "Put the condition into WHERE of another view."
            )
        if _asked(aggregate.condition) and AGGREGATES[aggregate.function].lambdas:
            place = aggregate.place
            raise Wrong(place, f"{what} {aggregate.function}()", "Put the condition into WHERE of another view.")


def _as_filter(part: Expr) -> Expr | None:
    """The aggregate with its CASE as a FILTER, or None if it has no such CASE."""
    if not isinstance(part, Aggregate) or not part.arguments:
        return None
    (value, *more), row = part.arguments, AGGREGATES[part.function]
    if row.counts == "conditions" and _asked(value):
        return replace(part, function="count", arguments=(), condition=both(part.condition, value))
    if isinstance(value, Call) and value.function == "if":
        value = Case((value.arguments[:2],), value.arguments[2], value.type)  # type: ignore[arg-type]
    if not isinstance(value, Case) or len(value.branches) > 1 or row.last is not None:
        return None
    ((when, then),) = value.branches
    if not _asked(when):
        return None
    where = replace(part, arguments=(then, *more), condition=both(part.condition, when))
    other = value.otherwise
    if other is None or (isinstance(other, Constant) and other.value is None):
        return where
    is_sum = row.adds and row.additive
    if not is_sum or part.distinct or then.type.precision > WIDE:  # a sum may leave its type, and be NULL
        return None
    is_not = Call("not", (Call("<=>", (when, TRUE), BOOLEAN),), BOOLEAN)
    elsewhere = replace(part, arguments=(other,), condition=both(part.condition, is_not))
    return Call("coalesce", (cast(calculate("+", where, elsewhere), part.type), where, elsewhere), part.type)
