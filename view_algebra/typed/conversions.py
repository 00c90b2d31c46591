"""CAST, TRY_CAST, and literals that say their type."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from view_algebra.language.casts import instead_of, is_untried, tries
from view_algebra.language.expressions import Call, Constant, Expr
from view_algebra.language.limits import text_of_bytes
from view_algebra.language.long_numbers import short_number
from view_algebra.language.meeting import cast
from view_algebra.language.operators import number
from view_algebra.language.times import cast_of
from view_algebra.language.types import (
    BITS,
    DATE,
    STRING,
    TIMES_OF_DAY,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Type,
    instead,
    unknown,
)
from view_algebra.language.types import read as read_type
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import Scope, resolved
from view_algebra.written.dialect import is_suffixed, readable
from view_algebra.written.oracle import spell, written


def cast_to(node: exp.Cast, scope: Scope) -> Expr:
    """CAST(x AS type), and `2L`."""
    kind = read_type(node.args["to"])
    if kind is None:
        raise _cast_to_unknown(node, scope)
    if kind.nested:
        raise Wrong(span(node), f"CAST to {node.args['to'].sql('spark')}", "Cast to a scalar type of docs/sql.md.")
    if is_suffixed(node) and kind.integral:
        return whole_number(node, kind)
    return as_type(kind, node, node.this, scope)


def _cast_to_unknown(node: exp.Cast, scope: Scope) -> Wrong:
    """The refusal of a cast to a type that Lamina does not know; of a time, the time of its day is a text."""
    word, known = unknown(node.args["to"])
    way_out = f"Write {known}." if instead(node.args["to"]) else "Cast to a scalar type of docs/sql.md."
    if word.upper().partition("(")[0] in TIMES_OF_DAY:
        value, kept = resolved(node.this, scope), readable(node.this)
        shown = f"date_format({kept}, 'HH:mm:ss')" if value.type in (TIMESTAMP, TIMESTAMP_NTZ) else kept
        way_out = f"Write {shown}. Texts such as '09:30:00' have the order of the times."
    if word.upper() == "INTERVAL" and isinstance(node.this, exp.Literal):
        way_out = f"Write INTERVAL {readable(node.this)}."
    return Wrong(span(node), f"CAST to {word}", way_out)


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
    if value.type.name == "BINARY" and kind == STRING:
        spell(node, text_of_bytes(written(what)))
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
