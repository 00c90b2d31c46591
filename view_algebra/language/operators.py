"""Builds operators with Spark's implicit casts and result types (ANSI mode off)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from view_algebra.language.expressions import Call, Case, Constant, Expr, Place
from view_algebra.language.lengths import common_length, in_days_or_microseconds, is_length, length, microseconds_of
from view_algebra.language.lengths import number as number_of
from view_algebra.language.meeting import cast, compare, meet, text_as
from view_algebra.language.types import (
    BIGINT,
    BOOLEAN,
    DAYS,
    DOUBLE,
    DURATION,
    INT,
    INTEGRAL,
    INTERVAL,
    STRING,
    VOID,
    arithmetic,
    as_decimal,
    decimal,
)
from view_algebra.refusals import Wrong

BITWISE = ("&", "|", "^")


def condition(expression: Expr, of: str) -> Expr:
    """A condition. Raises `Wrong` unless the expression is BOOLEAN."""
    if expression.type == VOID and of in ("WHERE", "ON", "WHEN", "FILTER"):
        raise Wrong(expression.place, f"Spark refuses {of} NULL", "Write CAST(NULL AS BOOLEAN).")
    if expression.type in (BOOLEAN, VOID):
        return cast(expression, BOOLEAN, implicit=True)
    raise Wrong(expression.place, f"{of} takes a condition, not {expression.type}", "Compare it with a value.")


def calculate(operator: str, left: Expr, right: Expr, place: Place = None) -> Expr:
    """`left operator right` for numbers. The operator is one of + - * / % div.

    >>> calculate("/", Constant("1", INT), Constant("2", INT)).type.spark
    'DOUBLE'
    """
    if is_length(left) or is_length(right):
        return _length_arithmetic(operator, left, right, place)
    left, right = (text_as(side, DOUBLE) if side.type == STRING else side for side in (left, right))
    for side in (left, right):
        if not side.type.numeric and side.type != VOID:
            raise Wrong(
                side.place or place,
                f"{operator} takes numbers, not {side.type}",
                "Write CAST(decode(…, 'UTF-8') AS BIGINT) if the bytes are a number as a text."
                if side.type.name == "BINARY"
                else "Write CAST(… AS DECIMAL(18, 2)), or the type of number that it holds.",
            )
    typed_side = next((side.type for side in (left, right) if side.type != VOID), DOUBLE)
    left, right = (cast(side, typed_side, implicit=True) if side.type == VOID else side for side in (left, right))
    exact = {left.type.name, right.type.name} <= {"DECIMAL", *INTEGRAL}
    if exact and "DECIMAL" in (left.type.name, right.type.name):
        left, right = _exact(left), _exact(right)
        if operator == "div":
            return Call("div", (left, right), BIGINT, place=place)
        return Call(operator, (left, right), arithmetic(operator, left.type, right.type), place=place)
    if operator == "/":
        left, right = cast(left, DOUBLE, implicit=True), cast(right, DOUBLE, implicit=True)
        return Call("/", (left, right), DOUBLE, place=place)
    left, right = meet((left, right), place, operator)
    if operator == "div":
        if not left.type.integral:
            raise Wrong(place, f"div takes whole numbers, not {left.type}", "Write floor(a / b).")
        left, right = cast(left, BIGINT, implicit=True), cast(right, BIGINT, implicit=True)
    return Call(operator, (left, right), left.type, place=place)


def _length_arithmetic(operator: str, left: Expr, right: Expr, place: Place) -> Expr:
    """The sum of intervals, or an interval times or divided by a whole number, to the nearest microsecond."""
    if operator in ("+", "-") and is_length(left) and is_length(right):
        kind = common_length((left, right), place)
        a, b = (in_days_or_microseconds(side, kind, place) for side in (left, right))
        return length(calculate(operator, a, b, place), kind)
    if operator == "*" and is_length(right):
        left, right = right, left
    if operator not in ("*", "/") or not is_length(left) or not right.type.integral:
        what = f"{operator} does not take {left.type} and {right.type}"
        way_out = "Compute with CAST(… AS BIGINT) of a difference, which is its seconds, or its days, of two dates."
        raise Wrong(place, what, way_out)
    whole = microseconds_of(left, place)
    return length(calculate("*", whole, right, place) if operator == "*" else quotient(whole, right, place), DURATION)


def quotient(total: Expr, count: Expr, place: Place) -> Expr:
    """The quotient rounded to the nearest whole number, with halves away from 0."""
    a, b = (cast(side, as_decimal(side.type)) for side in (total, count))
    half = case([(compare("<", a, number("0"), place), negative(b, place))], b, place)
    twice = [calculate("*", side, number("2"), place) for side in (a, b)]
    return calculate("div", calculate("+", twice[0], half, place), twice[1], place)


def bitwise(operator: str, sides: Sequence[Expr], place: Place = None) -> Expr:
    """`left & right`, `left | right`, `left ^ right` or `~ operand` for whole numbers."""
    for side in sides:
        if not side.type.integral and side.type != VOID:
            what = f"{operator} takes whole numbers, not {side.type}"
            raise Wrong(side.place or place, what, "Cast it to BIGINT.")
    met = meet(sides, place, operator)
    if met[0].type == VOID:
        raise Wrong(place, f"{operator} does not take NULL", "Write CAST(NULL AS INT).")
    return Call(operator, met, met[0].type, place=place)


def _exact(side: Expr) -> Expr:
    counted = isinstance(side, Constant) and side.type.integral and side.type.name != "TINYINT"
    literal = side.value if isinstance(side, Constant) and counted else None
    return cast(side, as_decimal(side.type, literal), implicit=True)


def negative(operand: Expr, place: Place = None) -> Expr:
    """`-x`, a literal for a literal."""
    if isinstance(operand, Constant) and operand.type.numeric and operand.value is not None:
        value = operand.value[1:] if operand.value.startswith("-") else f"-{operand.value}"
        if operand.suffixed or operand.type.name not in (*INTEGRAL, "DECIMAL") or "." in value:
            return replace(operand, value=value, place=place)
        return number(value, place)  # without its sign, the least BIGINT would not be one
    operand = text_as(operand, DOUBLE) if operand.type == STRING else operand
    if isinstance(operand, Constant) and operand.type == INTERVAL:
        return replace(operand, value=f"-{operand.value}".removeprefix("--"), place=place)
    if is_length(operand):
        return length(negative(number_of(operand), place), operand.type if operand.type == DAYS else DURATION)
    if not operand.type.numeric:
        raise Wrong(place or operand.place, f"- takes a number, not {operand.type}", "Cast it to a number first.")
    return Call("negative", (operand,), operand.type, place=place)


def number(text: str, place: Place = None) -> Constant:
    """A literal number with its Spark type.

    >>> [number(t).type.spark for t in ("1", "3000000000", "0.05", "1e3")]
    ['INT', 'BIGINT', 'DECIMAL(2,2)', 'DOUBLE']
    """
    if "e" in text.lower():
        return Constant(text, DOUBLE, place)
    if "." in text:
        whole, fraction = text.lstrip("-").split(".")
        whole = whole.lstrip("0")
        digits = len(whole) + len(fraction)
        if digits > 38:
            raise Wrong(place, "the number has more than 38 digits", "Write it with an exponent, for example 1e39.")
        return Constant(
            text if whole or text.startswith("0") else text.replace(".", "0.", 1), decimal(digits, len(fraction)), place
        )
    value = int(text)
    if -(2**31) <= value < 2**31:
        return Constant(str(value), INT, place)
    if -(2**63) <= value < 2**63:
        return Constant(str(value), BIGINT, place)
    return Constant(str(value), decimal(len(str(abs(value))), 0), place)


def case(branches: Sequence[tuple[Expr, Expr]], otherwise: Expr | None, place: Place = None) -> Expr:
    """CASE with its results cast to one type."""
    values = [then for _, then in branches] + ([] if otherwise is None else [otherwise])
    met = meet(values, place, "CASE", texts=True)
    pairs = tuple((when, then) for (when, _), then in zip(branches, met, strict=False))
    kind = next((e.type for e in met if e.type.endless), met[0].type)
    return Case(pairs, None if otherwise is None else met[-1], kind, place)
