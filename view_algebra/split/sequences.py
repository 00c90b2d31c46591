"""Bounds the length of a record's sequences by the conditions under which they are computed.

A record whose times lie a thousand years apart would make millions of rows. So Spark computes a record's
`sequence(a, b)` only if `b - a` is bounded by WHERE, by an enclosing CASE, or by `b` itself (`a + INTERVAL 1 DAY`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from view_algebra.language.expressions import Call, Case, Constant, Exploded, Expr, Select, Stream, conjuncts
from view_algebra.language.lengths import MICROSECONDS
from view_algebra.language.overloads import overload
from view_algebra.language.times import BOUNDED, MOST_ELEMENTS
from view_algebra.language.types import BITS, DATE, TIMESTAMP, TIMESTAMP_NTZ
from view_algebra.language.walks import mapped, rewritten


def with_bounded_sequences(block: Select) -> Select:
    """The block over a stream with a mark on the sequences that its conditions bound."""
    conditions = list(conjuncts(block.where))
    change = partial(_bounded, conditions=conditions)
    block = rewritten(block, change)
    relation = block.relation
    if isinstance(relation, (Stream, Exploded)):
        generators = tuple(replace(generator, argument=change(generator.argument)) for generator in relation.generators)
        block = replace(block, relation=replace(relation, generators=generators))
    return block


def _bounded(expression: Expr, conditions: Sequence[Expr]) -> Expr:
    """The expression with a mark on its bounded sequences. The branches of CASE and if() also meet their condition."""

    def bounded(part: Expr, when: Expr | None = None) -> Expr:
        return _bounded(part, [*conditions, *conjuncts(when)])

    if isinstance(expression, Case):
        branches = tuple((bounded(when), bounded(then, when)) for when, then in expression.branches)
        otherwise = None if expression.otherwise is None else bounded(expression.otherwise)
        return replace(expression, branches=branches, otherwise=otherwise)
    if isinstance(expression, Call) and expression.function == "if":
        when, then, otherwise = expression.arguments
        return replace(expression, arguments=(bounded(when), bounded(then, when), bounded(otherwise)))
    if isinstance(expression, Call) and expression.function == "sequence" and _may_be_long(expression):
        most = _most_elements(expression, conditions)
        if most is not None and most <= MOST_ELEMENTS:
            return replace(expression, function=BOUNDED)
    return mapped(expression, bounded)


def _may_be_long(call: Call) -> bool:
    row = overload(call)
    return row is not None and row.above_only


def _most_elements(call: Call, conditions: Sequence[Expr]) -> Fraction | None:
    """The most elements that a sequence may have, or None if it is unknown."""
    first, last, *steps = call.arguments
    step = Fraction(str(getattr(steps[0], "value", 1))) if steps else Fraction(1)
    unit = Fraction(MICROSECONDS["second"]) if first.type == TIMESTAMP else Fraction(1)
    upwards = _greatest(last, first, conditions) if step > 0 else _greatest(first, last, conditions)
    downwards = None if steps else _greatest(first, last, conditions)  # without a step, it may also go down
    if upwards is None or (not steps and downwards is None):
        return None
    return max(upwards, downwards or Fraction(0)) / (abs(step) * unit) + 1


def _greatest(high: Expr, low: Expr, conditions: Sequence[Expr]) -> Fraction | None:
    """The greatest difference of two values (of times in microseconds) under the conditions, or None if unbounded."""
    bounds = [
        bound
        for a in _operands(high, "least")
        for b in _operands(low, "greatest")
        if (bound := _within(_range(a).minus(_range(b)), conditions)) is not None
    ]
    return min(bounds, default=None)


def _operands(value: Expr, function: str) -> Iterator[Expr]:
    """The arguments of nested `least` or `greatest`, which bound the value from above or below."""
    if isinstance(value, Call) and value.function == function:
        for argument in value.arguments:
            yield from _operands(argument, function)
    else:
        yield value


def _within(wanted: _Range, conditions: Sequence[Expr]) -> Fraction | None:
    """The greatest value, by itself or by a condition on the same sum of parts or a multiple of it."""
    if not wanted.parts:
        return wanted.most
    bounds = []
    for below, above in (pair for condition in conditions for pair in _comparisons(condition)):
        at_most = _range(below).minus(_range(above))  # at most 0
        if at_most.parts.keys() == wanted.parts.keys():
            times, *others = {wanted.parts[part] / at_most.parts[part] for part in wanted.parts}
            if not others and times > 0:
                bounds.append(wanted.most - at_most.least * times)
    return min(bounds, default=None)


def _comparisons(condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The pairs of values whose first is at most the second if the condition holds."""
    if not isinstance(condition, Call):
        return
    if condition.function in ("<", "<=", "="):
        yield condition.arguments[0], condition.arguments[1]
    if condition.function in (">", ">=", "="):
        yield condition.arguments[1], condition.arguments[0]


@dataclass(frozen=True)
class _Range:
    """A value as a sum of multiples of parts, plus a number from `least` to `most`."""

    parts: Mapping[Expr, Fraction]
    least: Fraction
    most: Fraction

    def plus(self, other: _Range) -> _Range:
        parts = {part: self.parts.get(part, 0) + other.parts.get(part, 0) for part in {**self.parts, **other.parts}}
        kept = {part: Fraction(times) for part, times in parts.items() if times}
        return _Range(kept, self.least + other.least, self.most + other.most)

    def times(self, factor: Fraction) -> _Range:
        ends = sorted((self.least * factor, self.most * factor))
        return _Range({part: times * factor for part, times in self.parts.items()}, *ends)

    def minus(self, other: _Range) -> _Range:
        return self.plus(other.times(Fraction(-1)))

    def rounded(self, least: int, most: int) -> _Range:
        return replace(self, least=self.least + least, most=self.most + most)


def _range(value: Expr) -> _Range:
    """The range of a value. Times are in microseconds, and a day counts as its beginning."""
    if isinstance(value, Constant) and value.value is not None and (value.type.numeric or value.type.name == "DECIMAL"):
        number = Fraction(value.value)
        return _Range({}, number, number)
    if isinstance(value, Call):
        size = _call_range(value)
        if size is not None:
            return size
    return _Range({value: Fraction(1)}, Fraction(0), Fraction(0))


def _call_range(call: Call) -> _Range | None:
    name, arguments = call.function, call.arguments
    second, day = MICROSECONDS["second"], MICROSECONDS["day"]
    if name in ("+", "-"):
        left, right = map(_range, arguments)
        return left.plus(right) if name == "+" else left.minus(right)
    if name in ("*", "div", "/") and isinstance(arguments[1], Constant) and arguments[1].value not in (None, "0"):
        factor = Fraction(arguments[1].value or 1)
        if name == "*":
            return _range(arguments[0]).times(factor)
        return _range(arguments[0]).times(1 / factor).rounded(-1, 1)
    if name in ("+ interval", "- interval"):
        length = _length(arguments[1])
        moved = _Range({}, length, length) if length is not None else None
        return moved and _range(arguments[0]).plus(moved.times(Fraction(1 if name[0] == "+" else -1)))
    if name == "date_trunc" and isinstance(arguments[0], Constant):
        longest = MICROSECONDS.get(arguments[0].value or "", _LONGEST.get(arguments[0].value or "", 0))
        return _range(arguments[1]).rounded(-longest, 0) if longest else None
    if name in ("cast", "to_date"):
        return _cast_range(call, day)
    if name == "datediff":
        return _range(arguments[0]).minus(_range(arguments[1])).times(Fraction(1, day)).rounded(-1, 1)
    if name in ("unix_micros", "negative", "finite", "endless"):  # the last two give the time, or NULL: no elements
        return _range(arguments[0]).times(Fraction(-1 if name == "negative" else 1))
    if name in ("unix_timestamp", "unix_seconds") and arguments[0].type in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
        return _range(arguments[0]).times(Fraction(1, second)).rounded(-1, 1)
    if name == "unix_millis":
        return _range(arguments[0]).times(Fraction(1, 1000)).rounded(-1, 1)
    if name == "date_add":
        return _range(arguments[0]).plus(_range(arguments[1]).times(Fraction(day)))
    return None


_LONGEST = {"month": 31 * MICROSECONDS["day"], "quarter": 92 * MICROSECONDS["day"], "year": 366 * MICROSECONDS["day"]}


def _cast_range(call: Call, day: int) -> _Range | None:
    argument, kind = call.arguments[0], call.type
    if kind == DATE and argument.type in (TIMESTAMP, TIMESTAMP_NTZ):
        return _range(argument).rounded(-day, 0)
    if argument.type == kind or (argument.type == DATE and kind in (TIMESTAMP, TIMESTAMP_NTZ)):
        return _range(argument)
    longer = argument.type.integral and kind.integral and BITS[argument.type.name] <= BITS[kind.name]
    wider = argument.type.integral and kind.name in ("DECIMAL", "DOUBLE") and call.implicit
    return _range(argument) if longer or wider else None


def _length(interval: Expr) -> Fraction | None:
    """The microseconds of an INTERVAL of a fixed length."""
    count, _, unit = str(getattr(interval, "value", "")).partition(" ")
    return Fraction(int(count) * MICROSECONDS[unit]) if unit in MICROSECONDS else None
