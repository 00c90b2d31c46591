"""Arithmetic in Postgres' SQL that wraps or returns NULL or Infinity as Spark's does."""

from __future__ import annotations

from view_algebra.engines.postgres.writing import ADD, ATOM, CAST, MULTIPLY, Reading, bare_value
from view_algebra.language.expressions import Call, Constant, Expr, Field
from view_algebra.language.types import BIGINT, DOUBLE, MAX_PRECISION

EXACT = 2**63
"""Whole numbers below this fit a bigint."""


def average(call: Call, reading: Reading) -> tuple[str, int]:
    """A sum divided by a count, with the digits of Spark's average."""
    total, count = call.arguments
    if call.type == DOUBLE:
        return f"{reading.text(total, MULTIPLY)} / {reading.text(count, CAST)}", MULTIPLY
    sides = f"{reading.text(total)}, {reading.text(count)}"
    return f"spark.average({sides}, {call.type.precision}, {call.type.scale})", ATOM


def wide_sum(call: Call, reading: Reading) -> tuple[str, int]:
    """A sum stored in two parts, because Spark's decimals have at most 38 digits."""
    high, low, unit = (reading.text(a, MULTIPLY) for a in call.arguments)
    return f"spark.decimal({high} * {unit} + {low}, {call.type.precision}, {call.type.scale})", ATOM


def bitwise(operator: str, call: Call, reading: Reading) -> tuple[str, int]:
    """A bitwise operator, in parentheses because Postgres gives all of them one precedence."""
    left, right = (reading.text(a, ATOM) for a in call.arguments)
    return f"({left} {operator} {right})", ATOM


def arithmetic(call: Call, reading: Reading) -> tuple[str, int]:
    """Arithmetic that wraps or returns NULL or Infinity as Spark's does; plain operators where neither can happen."""
    name, kind = call.function, call.type
    operands = [reading.text(a) for a in call.arguments]
    if name == "negative":
        if kind.integral:
            return arithmetic(Call("-", (Constant("0", kind), call.arguments[0]), kind, place=call.place), reading)
        return f"-{reading.text(call.arguments[0], ATOM)}", MULTIPLY
    if name == "div":
        if call.arguments[0].type.name == "DECIMAL":
            return f"spark.wrap_bigint(div({operands[0]}, nullif({operands[1]}, 0)))", ATOM
        return f"spark.div({operands[0]}, {operands[1]})", ATOM
    if kind.name == "DECIMAL":
        return _decimal(call, operands, reading)
    if kind.integral:
        return _whole(call, operands, reading)
    if name == "/" and all(_was_integral(a) for a in call.arguments):
        left = reading.text(call.arguments[0], CAST)
        return f"{left}::double precision / nullif({operands[1]}, 0)", MULTIPLY
    sides = ", ".join(_double(a, text) for a, text in zip(call.arguments, operands, strict=True))
    return f"spark.{_WORDS[name]}({sides})", ATOM


_WORDS = {"+": "plus", "-": "minus", "*": "times", "/": "divide"}


def _plain(call: Call, reading: Reading, right: str | None = None) -> tuple[str, int]:
    binds = ADD if call.function in ("+", "-") else MULTIPLY
    left = reading.text(call.arguments[0], binds)
    return f"{left} {call.function} {right or reading.text(call.arguments[1], binds + 1)}", binds


def _whole(call: Call, operands: list[str], reading: Reading) -> tuple[str, int]:
    name, kind = call.function, call.type
    if name == "%":
        return _plain(call, reading, f"nullif({operands[1]}, 0)")
    if kind == BIGINT:
        bound = magnitude(call)
        if bound is not None and bound < EXACT:
            return _plain(call, reading)
        sides = ", ".join(_bigint(a, text) for a, text in zip(call.arguments, operands, strict=True))
        return f"spark.{_WORDS[name]}({sides})", ATOM
    left, right = (reading.text(a, CAST) for a in call.arguments)
    return f"spark.wrap_{kind.name.lower()}({left}::bigint {name} {right})", ATOM


def _decimal(call: Call, operands: list[str], reading: Reading) -> tuple[str, int]:
    name, kind = call.function, call.type
    p1, s1, p2, s2 = (n for a in call.arguments for n in (a.type.precision, a.type.scale))
    if name == "/":
        return f"spark.divide({operands[0]}, {operands[1]}, {kind.precision}, {kind.scale})", ATOM
    written = _plain(call, reading, f"nullif({operands[1]}, 0)" if name == "%" else None)
    digits = p1 + p2 + 1 if name == "*" else max(p1 - s1, p2 - s2) + max(s1, s2) + 1
    if digits <= MAX_PRECISION or (name == "%" and kind.precision < MAX_PRECISION):
        return written
    return f"spark.decimal({written[0]}, {kind.precision}, {kind.scale})", ATOM


def _was_integral(value: Expr) -> bool:
    if isinstance(value, Call) and value.function == "cast":
        return value.arguments[0].type.integral
    return False


def _bigint(value: Expr, text: str) -> str:
    bare = bare_value(value)
    return f"{text}::bigint" if isinstance(bare, Constant) and not bare.suffixed else text


def _double(value: Expr, text: str) -> str:
    inner = bare_value(value)
    if inner.type == DOUBLE:
        return text
    return f"{text}::double precision" if isinstance(inner, (Constant, Field)) else f"({text})::double precision"


def magnitude(value: Expr) -> int | None:
    """The greatest absolute value of a whole number, if known: of counts and of expressions over counts."""
    match value:
        case Field():
            return value.bound
        case Constant() if value.type.integral and value.value is not None:
            return abs(int(value.value))
        case Call(function="cast") if value.type.integral:
            return magnitude(value.arguments[0])
        case Call(function="coalesce"):
            bounds = [magnitude(a) for a in value.arguments]
            return None if None in bounds else max(b for b in bounds if b is not None)
        case Call(function="+" | "-" | "*") if len(value.arguments) == 2:
            left, right = (magnitude(a) for a in value.arguments)
            if left is None or right is None or all(isinstance(bare_value(a), Constant) for a in value.arguments):
                return None
            return left * right if value.function == "*" else left + right
    return None
