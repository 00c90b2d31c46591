"""Writes aggregates over rows, values with their counts, partials, or windows of rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from view_algebra.engines.postgres.value_texts import in_json
from view_algebra.engines.postgres.writer import ATOM, CAST, MULTIPLY, Writer, as_text, constant, ordering, typed_text
from view_algebra.language.above import sort_keys
from view_algebra.language.aggregates import AGGREGATES, not_null, only, template_of_distinct
from view_algebra.language.expressions import (
    ONE,
    TRUE,
    Aggregate,
    Call,
    Case,
    Constant,
    Expr,
    Merged,
    Order,
    OverValues,
    Windowed,
)
from view_algebra.language.merges import MERGES
from view_algebra.language.time_windows import by_bounds
from view_algebra.language.types import COLLATED, INT, STRING


def filter_clause(condition: Expr | None, writer: Writer) -> str:
    """The FILTER of an aggregate, or an empty text without a condition."""
    return "" if condition is None else f" FILTER (WHERE {writer.text(condition)})"


def of_counted_values(call: OverValues, writer: Writer) -> str:
    """An aggregate over values that cells keep one by one, with their counts."""
    by_value = AGGREGATES[call.function].by_value
    assert by_value is not None
    over = by_value.over if call.times == ONE else by_value.repeated or by_value.over
    value = _listed(writer.text(call.value, CAST), call)
    return _filled(over, value, writer.text(call.times, CAST), call.order, call.literals, writer)


def _filled(
    template: str, value: str, times: str, order: Iterable[Expr], literals: Sequence[Constant], writer: Writer
) -> str:
    """The template of an aggregate over values, filled with a value, its count, its order, and the literals."""
    by = ", ".join(ordering(Order(e, descending=False, nulls_first=True), writer) for e in order)
    texts = {"0": value, "n": times, "o": by or value}
    texts |= {str(n): constant(literal) for n, literal in enumerate(literals, 1)}
    return re.sub(r"\{(\w)\}", lambda slot: texts[slot[1]], template)


def _listed(value: str, call: OverValues | Aggregate) -> str:
    """A value in the form that the aggregate takes: JSON, if it makes a list."""
    return value if call.type.element is None else in_json(value, call.type.element)


def _of_plain_rows(call: Aggregate, rows: str, writer: Writer) -> str:
    """An aggregate over values, computed from plain rows."""
    value = typed_text(only(call.condition, call.arguments[0]), writer)
    value = f"({value} {COLLATED})" if call.arguments[0].type == STRING else _listed(value, call)
    literals = [e for e in call.arguments[1:] if isinstance(e, Constant)]
    return _filled(rows, value, "1::bigint", sort_keys(call), literals, writer)


def _by_value(call: Aggregate, writer: Writer) -> str:
    """max_by and min_by of plain rows, in a tie the greatest or the least value."""
    value, *by = call.arguments
    last = bool(AGGREGATES[call.function].last)
    keys = ", ".join(ordering(Order(e, descending=last, nulls_first=not last), writer) for e in by)
    return f"(array_agg({typed_text(value, writer)} ORDER BY {keys}){filter_clause(call.condition, writer)})[1]"


def merged(value: Merged, writer: Writer) -> tuple[str, int]:
    """Merges the partials of several cells."""
    above = MERGES[value.merge].above
    if above is not None:
        return above([writer.text(column) for column in value.columns]), ATOM
    return aggregate(Aggregate(value.merge, value.columns, None, False, value.type), "", writer)


def aggregate(call: Aggregate | Windowed, suffix: str, writer: Writer) -> tuple[str, int]:
    """An aggregate over rows. `suffix`: its FILTER or OVER."""
    if isinstance(call, Aggregate) and (text := _without_suffix(call, writer)) is not None:
        return text, ATOM
    row = AGGREGATES[call.function]
    assert row.above is not None
    if len(call.arguments) > 1 and row.arguments[0] < 2:  # count(a, b)
        together = Call("row", call.arguments, STRING)
        call = replace(call, arguments=(Case(((not_null(call.arguments) or TRUE, together),), None, STRING),))
    template = row.above([a.type for a in call.arguments])
    if isinstance(call, Aggregate) and call.distinct:
        template = template_of_distinct(template, call)
    alone = "({0})" in template or "DISTINCT {0})" in template
    texts = {str(n): writer.text(a, 0 if alone and n == 0 else CAST) for n, a in enumerate(call.arguments)}
    text = re.sub(r"\{(\d)\}|@", lambda slot: suffix if slot[0] == "@" else texts[slot[1]], template)
    return text, ATOM if "/" not in template else MULTIPLY


def _without_suffix(call: Aggregate, writer: Writer) -> str | None:
    """An aggregate whose FILTER is part of its arguments, and which is not a window function, or None for others."""
    row = AGGREGATES[call.function]
    if row.last is not None:
        return _by_value(call, writer)
    return None if row.rows is None else _of_plain_rows(call, row.rows, writer)


def window_function(call: Windowed, writer: Writer) -> tuple[str, int]:
    """A function OVER a window of rows."""
    if call.ignore_nulls:
        return _ignoring_nulls(call, writer), ATOM
    suffix = _over_clause(call, writer)
    if call.function in AGGREGATES:
        return aggregate(call, suffix, writer)
    arguments = ", ".join(as_text(a, writer) for a in call.arguments)
    text = f"{call.function}({arguments}){suffix}"
    return (f"{text}::integer", CAST) if call.type == INT and not call.arguments else (text, ATOM)


def _ignoring_nulls(call: Windowed, writer: Writer) -> str:
    """IGNORE NULLS, which Postgres lacks, as an aggregate over the frame.

    lead() is lag() in the opposite direction, so that each frame extends the previous one.
    """
    value, *more = call.arguments
    first = "first" if call.function == "first_value" else "last"
    if call.function == "lead":
        order = tuple(Order(o.expression, not o.descending, not o.nulls_first) for o in call.order)
        call = replace(call, order=order)
    if call.function in ("lag", "lead"):
        call = replace(call, frame="ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
    known_value = f"spark.{first}_known({writer.text(value, CAST)}::{value.type.postgres}){_over_clause(call, writer)}"
    return f"coalesce({known_value}, {writer.text(more[1])})" if len(more) > 1 else known_value


def _over_clause(call: Windowed, writer: Writer) -> str:
    """The OVER of a window function."""
    parts = []
    if call.partition:
        parts.append("PARTITION BY " + ", ".join(writer.text(e) for e in call.partition))
    if call.order:
        parts.append("ORDER BY " + ", ".join(ordering(o, writer) for o in by_bounds(call.order)))
    if call.frame:
        parts.append(call.frame)
    return f" OVER ({' '.join(parts)})"
