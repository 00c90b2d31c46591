"""CAST, TRY_CAST, and literals that say their type."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from view_algebra.language.casts import instead_of, is_untried, tries
from view_algebra.language.expressions import Call, Constant, Expr
from view_algebra.language.long_numbers import short_number
from view_algebra.language.meeting import cast
from view_algebra.language.operators import number
from view_algebra.language.times import cast_of
from view_algebra.language.types import BITS, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type, as_written, instead
from view_algebra.language.types import read as read_type
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import Scope, resolved
from view_algebra.written.dialect import is_suffixed
from view_algebra.written.oracle import spell, written


def cast_to(node: exp.Cast, scope: Scope) -> Expr:
    """CAST(x AS type), and `2L`."""
    kind = read_type(node.args["to"])
    if kind is None or kind.nested:
        known = instead(node.args["to"])
        way_out = f"Write {known}." if known else "Cast to a scalar type of docs/sql.md."
        what = node.args["to"].sql("spark") if known is None else as_written(node.args["to"])
        raise Wrong(span(node), f"CAST to {what}", way_out)
    if is_suffixed(node) and kind.integral:
        return whole_number(node, kind)
    return as_type(kind, node, node.this, scope)


def try_cast_to(node: exp.TryCast, scope: Scope) -> Expr:
    """TRY_CAST, which alone is `safe` to sqlglot."""
    made, value = cast_to(node, scope), resolved(node.this, scope)
    if node.args.get("safe") and is_untried(value.type, made.type):
        what = f"TRY_CAST of {value.type} to {made.type}, which Spark refuses"
        raise Wrong(span(node), what, f"Write CAST(… AS {made.type}), which raises nothing.")
    differs = node.args.get("safe") and tries(value.type, made.type)
    return Call("try_cast", (value,), made.type, place=span(node)) if differs else made


def as_type(kind: Type, node: exp.Expr, what: exp.Expr, scope: Scope) -> Expr:
    """A value as another type, as the author says."""
    value = resolved(what, scope)
    if value.type.length:
        return cast_of(value, kind, span(node))
    if (way_out := instead_of(value.type, kind)) is not None:
        raise Wrong(span(node), f"CAST of {value.type} to {kind}, which Spark refuses", way_out)
    if value.type == STRING and kind.name == "DECIMAL":
        spell(node, f"CAST({short_number(written(what))} AS {kind.spark})")
    if isinstance(value, Constant) and value.type == STRING and kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        literal = cast(value, kind)
        if isinstance(literal, Call):
            raise Wrong(
                span(node),
                f"{value.value!r} is not a {kind} that both engines read alike",
                "Write it as '2024-01-31 12:30:00'.",
            )
        return literal
    if (
        isinstance(value, Constant)
        and value.type == STRING
        and kind.numeric
        and re.fullmatch(r"-?\d+(\.\d+)?", text := value.value or "")
    ):
        if kind.integral and not -(2 ** BITS[kind.name]) <= int(text.partition(".")[0]) < 2 ** BITS[kind.name]:
            return Constant(None, kind, span(node))  # a number would wrap
        read = number(text)
        plain = read.type == kind and not kind.integral
        return read if plain else Call("cast", (read,), kind, place=span(node))
    if isinstance(value, Constant) and value.type == kind and kind.integral:
        return Call("cast", (value,), kind, place=span(node))  # no literal, whose digits alone would count
    return replace(made, place=span(node)) if isinstance(made := cast(value, kind), Call) else made


def whole_number(node: exp.Cast, kind: Type) -> Constant:
    """`2L`, which is a literal; the least one's digits are one more than the greatest's."""
    digits = node.this.name
    if not digits.isdigit() or int(digits) > 2 ** BITS[kind.name]:
        raise Wrong(span(node), f"{digits}, which is not a {kind}", "Write it without a letter, or with another.")
    return Constant(str(int(digits)), kind, span(node), suffixed=True)
