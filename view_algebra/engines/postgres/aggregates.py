"""Aggregates above the aggregation, in Postgres' SQL: over rows, values, partials, and windows of rows."""

from __future__ import annotations

import re
from dataclasses import replace

from view_algebra.engines.postgres.nested import in_json
from view_algebra.engines.postgres.writing import ATOM, CAST, MULTIPLY, Reading, as_text, constant, ordering, typed_text
from view_algebra.language.above import sort_keys
from view_algebra.language.aggregates import AGGREGATES, not_null, of_different, only
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


def filter_of(condition: Expr | None, reading: Reading) -> str:
    """The FILTER of an aggregate; empty without a condition."""
    return "" if condition is None else f" FILTER (WHERE {reading.text(condition)})"


def over_values(call: OverValues, reading: Reading) -> str:
    """An aggregate over values that cells keep one by one, with their counts."""
    row = AGGREGATES[call.function]
    over = row.over if call.times == ONE else row.repeated or row.over
    assert over is not None
    value = _listed(reading.text(call.value, CAST), call)
    texts = {"0": value, "n": reading.text(call.times, CAST)}
    texts["o"] = ", ".join(ordering(Order(e, descending=False, nulls_first=True), reading) for e in call.order) or value
    texts |= {str(n): constant(literal) for n, literal in enumerate(call.literals, 1)}
    return re.sub(r"\{(\w)\}", lambda slot: texts[slot[1]], over)


def _listed(value: str, call: OverValues | Aggregate) -> str:
    """A value in the form that the aggregate takes: JSON, if it makes a list."""
    return value if call.type.element is None else in_json(value, call.type.element)


def _over_rows(call: Aggregate, rows: str, reading: Reading) -> str:
    """An aggregate over values, computed from plain rows."""
    value = typed_text(only(call.condition, call.arguments[0]), reading)
    value = f"({value} {COLLATED})" if call.arguments[0].type == STRING else _listed(value, call)
    by = [ordering(Order(key, descending=False, nulls_first=True), reading) for key in sort_keys(call)]
    texts = {"0": value, "o": ", ".join(by) or value, "n": "1::bigint"}
    literals = [e for e in call.arguments[1:] if isinstance(e, Constant)]
    texts |= {str(n): constant(literal) for n, literal in enumerate(literals, 1)}
    return re.sub(r"\{(\w)\}", lambda slot: texts[slot[1]], rows)


def _by_value(call: Aggregate, reading: Reading) -> str:
    """max_by and min_by of plain rows; in a tie, the greatest or the least value."""
    value, *by = call.arguments
    last = call.function == "max_by"
    keys = ", ".join(ordering(Order(e, descending=last, nulls_first=not last), reading) for e in by)
    return f"(array_agg({typed_text(value, reading)} ORDER BY {keys}){filter_of(call.condition, reading)})[1]"


def merged(value: Merged, reading: Reading) -> tuple[str, int]:
    """Merges the partials of several cells."""
    above = MERGES[value.merge].above
    if above is not None:
        return above([reading.text(each) for each in value.columns]), ATOM
    return aggregate(Aggregate(value.merge, value.columns, None, False, value.type), "", reading)


def aggregate(call: Aggregate | Windowed, suffix: str, reading: Reading) -> tuple[str, int]:
    """An aggregate over rows; `suffix`: its FILTER or OVER."""
    if isinstance(call, Aggregate) and (text := _without_suffix(call, reading)) is not None:
        return text, ATOM
    row = AGGREGATES[call.function]
    assert row.above is not None
    if len(call.arguments) > 1 and row.arguments[0] < 2:  # count(a, b)
        together = Call("row", call.arguments, STRING)
        call = replace(call, arguments=(Case(((not_null(call.arguments) or TRUE, together),), None, STRING),))
    template = row.above([a.type for a in call.arguments])
    if isinstance(call, Aggregate) and call.distinct:
        template = of_different(template, call)
    alone = "({0})" in template or "DISTINCT {0})" in template
    texts = {str(n): reading.text(a, 0 if alone and n == 0 else CAST) for n, a in enumerate(call.arguments)}
    text = re.sub(r"\{(\d)\}|@", lambda slot: suffix if slot[0] == "@" else texts[slot[1]], template)
    return text, ATOM if "/" not in template else MULTIPLY


def _without_suffix(call: Aggregate, reading: Reading) -> str | None:
    """An aggregate whose FILTER is part of its arguments, and which is not a window function; None for others."""
    match call.function:
        case "min_by" | "max_by":
            return _by_value(call, reading)
    rows = AGGREGATES[call.function].rows
    return None if rows is None else _over_rows(call, rows, reading)


def windowed(call: Windowed, reading: Reading) -> tuple[str, int]:
    """A function OVER a window of rows."""
    if call.ignore_nulls:
        return _ignoring_nulls(call, reading), ATOM
    suffix = _over(call, reading)
    if call.function in AGGREGATES:
        return aggregate(call, suffix, reading)
    arguments = ", ".join(as_text(a, reading) for a in call.arguments)
    text = f"{call.function}({arguments}){suffix}"
    return (f"{text}::integer", CAST) if call.type == INT and not call.arguments else (text, ATOM)


def _ignoring_nulls(call: Windowed, reading: Reading) -> str:
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
    found = f"spark.{first}_known({reading.text(value, CAST)}::{value.type.postgres}){_over(call, reading)}"
    return f"coalesce({found}, {reading.text(more[1])})" if len(more) > 1 else found


def _over(call: Windowed, reading: Reading) -> str:
    """The OVER of a window function."""
    parts = []
    if call.partition:
        parts.append("PARTITION BY " + ", ".join(reading.text(e) for e in call.partition))
    if call.order:
        parts.append("ORDER BY " + ", ".join(ordering(o, reading) for o in by_bounds(call.order)))
    if call.frame:
        parts.append(call.frame)
    return f" OVER ({' '.join(parts)})"
