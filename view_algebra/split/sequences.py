"""Sequences that a record decides: how long one may be follows from the conditions that hold where it is computed.

A record whose times lie a thousand years apart would make millions of rows. So Spark computes `sequence(a, b)` of a
record only where `b - a` is bounded: by WHERE, by the CASE around it, or by what `b` is (`a + INTERVAL 1 DAY`).
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
    """A block over a stream, its sequences marked that its conditions bound."""
    known = list(conjuncts(block.where))
    change = partial(_bounded, known=known)
    block = rewritten(block, change)
    relation = block.relation
    if isinstance(relation, (Stream, Exploded)):
        made = tuple(replace(each, argument=change(each.argument)) for each in relation.generators)
        block = replace(block, relation=replace(relation, generators=made))
    return block


def _bounded(expression: Expr, known: Sequence[Expr]) -> Expr:
    if isinstance(expression, Case):
        branches = []
        for when, then in expression.branches:
            branches.append((_bounded(when, known), _bounded(then, [*known, *conjuncts(when)])))
        otherwise = None if expression.otherwise is None else _bounded(expression.otherwise, known)
        return replace(expression, branches=tuple(branches), otherwise=otherwise)
    if isinstance(expression, Call) and expression.function == "if":
        when, then, otherwise = expression.arguments
        return replace(
            expression,
            arguments=(_bounded(when, known), _bounded(then, [*known, *conjuncts(when)]), _bounded(otherwise, known)),
        )
    if isinstance(expression, Call) and expression.function == "sequence" and _may_be_long(expression):
        most = _most_elements(expression, known)
        if most is not None and most <= MOST_ELEMENTS:
            return replace(expression, function=BOUNDED)
    return mapped(expression, lambda part: _bounded(part, known))


def _may_be_long(call: Call) -> bool:
    row = overload(call)
    return row is not None and row.above_only


def _most_elements(call: Call, known: Sequence[Expr]) -> Fraction | None:
    """How many elements a sequence has at most, as far as it is known."""
    first, last, *steps = call.arguments
    step = Fraction(str(getattr(steps[0], "value", 1))) if steps else Fraction(1)
    unit = Fraction(MICROSECONDS["second"]) if first.type == TIMESTAMP else Fraction(1)
    upwards = _greatest(last, first, known) if step > 0 else _greatest(first, last, known)
    downwards = None if steps else _greatest(first, last, known)  # without a step it goes down, too
    if upwards is None or (not steps and downwards is None):
        return None
    return max(upwards, downwards or Fraction(0)) / (abs(step) * unit) + 1


def _greatest(high: Expr, low: Expr, known: Sequence[Expr]) -> Fraction | None:
    """The greatest difference of two values, times in microseconds, where conditions hold; None if there is none."""
    found = [
        bound
        for a in _one_of(high, "least")
        for b in _one_of(low, "greatest")
        if (bound := _within(_range(a).minus(_range(b)), known)) is not None
    ]
    return min(found, default=None)


def _one_of(value: Expr, function: str) -> Iterator[Expr]:
    """The values of which the least is no more than each, or the greatest no less."""
    if isinstance(value, Call) and value.function == function:
        for argument in value.arguments:
            yield from _one_of(argument, function)
    else:
        yield value


def _within(wanted: _Range, known: Sequence[Expr]) -> Fraction | None:
    """The most that a value is: by itself, or as conditions say of the same sum of parts, or of a multiple."""
    if not wanted.parts:
        return wanted.most
    bounds = []
    for below, above in (pair for condition in known for pair in _comparisons(condition)):
        told = _range(below).minus(_range(above))  # which is not above 0
        if told.parts.keys() == wanted.parts.keys():
            times, *others = {wanted.parts[part] / told.parts[part] for part in wanted.parts}
            if not others and times > 0:
                bounds.append(wanted.most - told.least * times)
    return min(bounds, default=None)


def _comparisons(condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The pairs of values of which a condition says that the first is no greater than the second."""
    if not isinstance(condition, Call):
        return
    if condition.function in ("<", "<=", "="):
        yield condition.arguments[0], condition.arguments[1]
    if condition.function in (">", ">=", "="):
        yield condition.arguments[1], condition.arguments[0]


@dataclass(frozen=True)
class _Range:
    """A value as a sum of parts, each so many times, and of something from `least` to `most`."""

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
    """What a value is at least and at most; times are counted in microseconds, and days as their beginnings."""
    if isinstance(value, Constant) and value.value is not None and (value.type.numeric or value.type.name == "DECIMAL"):
        number = Fraction(value.value)
        return _Range({}, number, number)
    if isinstance(value, Call):
        found = _range_of_call(value)
        if found is not None:
            return found
    return _Range({value: Fraction(1)}, Fraction(0), Fraction(0))


def _range_of_call(call: Call) -> _Range | None:
    name, given = call.function, call.arguments
    second, day = MICROSECONDS["second"], MICROSECONDS["day"]
    if name in ("+", "-"):
        left, right = map(_range, given)
        return left.plus(right) if name == "+" else left.minus(right)
    if name in ("*", "div", "/") and isinstance(given[1], Constant) and given[1].value not in (None, "0"):
        factor = Fraction(given[1].value or 1)
        if name == "*":
            return _range(given[0]).times(factor)
        return _range(given[0]).times(1 / factor).rounded(-1, 1)
    if name in ("+ interval", "- interval"):
        length = _length(given[1])
        moved = _Range({}, length, length) if length is not None else None
        return moved and _range(given[0]).plus(moved.times(Fraction(1 if name[0] == "+" else -1)))
    if name == "date_trunc" and isinstance(given[0], Constant):
        longest = MICROSECONDS.get(given[0].value or "", _LONGEST.get(given[0].value or "", 0))
        return _range(given[1]).rounded(-longest, 0) if longest else None
    if name in ("cast", "to_date"):
        return _range_of_cast(call, day)
    if name == "datediff":
        return _range(given[0]).minus(_range(given[1])).times(Fraction(1, day)).rounded(-1, 1)
    if name in (
        "unix_micros",
        "negative",
        "finite",
        "endless",
    ):  # these two are the time, or NULL: then nothing is made
        return _range(given[0]).times(Fraction(-1 if name == "negative" else 1))
    if name in ("unix_timestamp", "unix_seconds") and given[0].type in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
        return _range(given[0]).times(Fraction(1, second)).rounded(-1, 1)
    if name == "unix_millis":
        return _range(given[0]).times(Fraction(1, 1000)).rounded(-1, 1)
    if name == "date_add":
        return _range(given[0]).plus(_range(given[1]).times(Fraction(day)))
    return None


_LONGEST = {"month": 31 * MICROSECONDS["day"], "quarter": 92 * MICROSECONDS["day"], "year": 366 * MICROSECONDS["day"]}


def _range_of_cast(call: Call, day: int) -> _Range | None:
    of, kind = call.arguments[0], call.type
    if kind == DATE and of.type in (TIMESTAMP, TIMESTAMP_NTZ):
        return _range(of).rounded(-day, 0)
    if of.type == kind or (of.type == DATE and kind in (TIMESTAMP, TIMESTAMP_NTZ)):
        return _range(of)
    longer = of.type.integral and kind.integral and BITS[of.type.name] <= BITS[kind.name]
    wider = of.type.integral and kind.name in ("DECIMAL", "DOUBLE") and call.implicit
    return _range(of) if longer or wider else None


def _length(interval: Expr) -> Fraction | None:
    """The microseconds of an INTERVAL of a fixed length."""
    count, _, unit = str(getattr(interval, "value", "")).partition(" ")
    return Fraction(int(count) * MICROSECONDS[unit]) if unit in MICROSECONDS else None
