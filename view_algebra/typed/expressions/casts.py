"""CAST, TRY_CAST and literals with a suffix, such as `2L`.

A literal is cast while its view is compiled, so that both engines have the same value.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from view_algebra.language.expressions import Call, Constant, Expr, Place
from view_algebra.language.long_numbers import short_number
from view_algebra.language.meeting import cast, instead_of, is_untried, tries
from view_algebra.language.operators import number
from view_algebra.language.storable import text_of_bytes
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
from view_algebra.typed.scopes import Scope, resolved
from view_algebra.written.dialect import is_suffixed, readable


def cast_to(node: exp.Cast, scope: Scope) -> Expr:
    """CAST(x AS type), and `2L`."""
    kind = read_type(node.args["to"])
    if kind is None:
        raise _cast_to_unknown(node, scope)
    if kind.nested:
        raise Wrong(
            span(node), f"CAST cannot give {node.args['to'].sql('spark')}", "Cast to a scalar type of docs/sql.md."
        )
    if is_suffixed(node) and kind.integral:
        return suffixed_number(node, kind)
    return as_type(kind, node, node.this, scope)


def _cast_to_unknown(node: exp.Cast, scope: Scope) -> Wrong:
    """The refusal of a cast to an unknown type, with a text as the way out for a time of day."""
    word, similar = unknown(node.args["to"])
    way_out = f"Write {similar}." if instead(node.args["to"]) else "Cast to a scalar type of docs/sql.md."
    if word.upper().partition("(")[0] in TIMES_OF_DAY:
        value, time = resolved(node.this, scope), readable(node.this)
        text = f"date_format({time}, 'HH:mm:ss')" if value.type in (TIMESTAMP, TIMESTAMP_NTZ) else time
        way_out = f"Write {text}. Texts such as '09:30:00' have the order of the times."
    if word.upper() == "INTERVAL" and isinstance(node.this, exp.Literal):
        way_out = f"Write INTERVAL {readable(node.this)}."
    return Wrong(span(node), f"CAST cannot give {word}", way_out)


def try_cast_to(node: exp.TryCast, scope: Scope) -> Expr:
    """CAST and TRY_CAST: sqlglot parses both as TryCast, and sets `safe` for TRY_CAST alone."""
    cast_, value = cast_to(node, scope), resolved(node.this, scope)
    if node.args.get("safe") and is_untried(value.type, cast_.type):
        what = f"Spark refuses TRY_CAST of {value.type} to {cast_.type}"
        raise Wrong(span(node), what, f"Write CAST(… AS {cast_.type}), which raises nothing.")
    differs = node.args.get("safe") and tries(value.type, cast_.type)
    return Call("try_cast", (value,), cast_.type, place=span(node)) if differs else cast_


def as_type(kind: Type, node: exp.Expr, operand: exp.Expr, scope: Scope) -> Expr:
    """The operand cast to the type that the author names. `node`: the cast, which an edit may replace."""
    value = resolved(operand, scope)
    if value.type.length:
        return cast_of(value, kind, span(node))
    if (way_out := instead_of(value.type, kind)) is not None:
        raise Wrong(span(node), f"Spark refuses CAST of {value.type} to {kind}", way_out)
    if value.type.name == "BINARY" and kind == STRING:
        scope.edits.spell(node, text_of_bytes(scope.edited_sql(operand)))
    if value.type == STRING and kind.name == "DECIMAL":
        scope.edits.spell(node, f"CAST({short_number(scope.edited_sql(operand))} AS {kind.spark})")
    if isinstance(value, Constant) and (literal := _literal_as(kind, value, span(node))) is not None:
        return literal
    return replace(cast_, place=span(node)) if isinstance(cast_ := cast(value, kind), Call) else cast_


def _literal_as(kind: Type, value: Constant, place: Place) -> Expr | None:
    """A literal cast to a type, or None if the cast has no rule for literals."""
    if value.type == STRING and kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        literal = cast(value, kind)
        if isinstance(literal, Call):
            what = f"{value.value!r} is not a {kind} that both engines read alike"
            raise Wrong(place, what, "Write it as '2024-01-31 12:30:00'.")
        return literal
    if value.type == STRING and kind.numeric and re.fullmatch(r"-?\d+(\.\d+)?", text := value.value or ""):
        if kind.integral and not -(2 ** BITS[kind.name]) <= int(text.partition(".")[0]) < 2 ** BITS[kind.name]:
            return Constant(None, kind, place)  # a number would wrap
        read = number(text)
        plain = read.type == kind and not kind.integral
        return read if plain else Call("cast", (read,), kind, place=place)
    if value.type == kind and kind.integral:
        return Call("cast", (value,), kind, place=place)  # not a literal: only its digits would count
    return None


def suffixed_number(node: exp.Cast, kind: Type) -> Constant:
    """`2L`, which is a literal. The least BIGINT has digits one above the greatest's."""
    digits = node.this.name
    if not digits.isdigit() or int(digits) > 2 ** BITS[kind.name]:
        raise Wrong(span(node), f"{digits} is not a {kind}", "Write it without a letter, or with another.")
    return Constant(str(int(digits)), kind, span(node), suffixed=True)
