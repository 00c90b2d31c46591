"""Calls whose arguments have rules of their own: aggregates and time windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sqlglot import exp

from view_algebra.language.aggregates import (
    AGGREGATES,
    DEFAULT_REGISTERS,
    GREATEST_ERROR,
    LEAST_ERROR,
    NO_PARTIAL,
    REWRITES,
    AggregateFunction,
    registers_for,
)
from view_algebra.language.expressions import Aggregate, Call, Constant, Expr, Place, Windowed
from view_algebra.language.lengths import LENGTHS
from view_algebra.language.literals import computed_literal
from view_algebra.language.meeting import cast
from view_algebra.language.time_windows import bounds
from view_algebra.language.times import microseconds
from view_algebra.language.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTERVAL,
    SESSION,
    STRING,
    TIMESTAMP,
    VOID,
    WINDOW,
    Type,
)
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, not_taken, span
from view_algebra.typed.scopes import Scope, resolved


def aggregate(name: str, node: exp.Anonymous, scope: Scope, when: Expr | None) -> Aggregate:
    """An aggregate with the condition of its FILTER."""
    place = span(node)
    row = AGGREGATES.get(name)
    if row is None:
        raise Wrong(place, f"{name}() has no mergeable partial yet", REWRITES.get(name, NO_PARTIAL))
    nodes = node.expressions
    distinct = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
    if distinct:
        nodes = nodes[0].expressions
    if _is_star(nodes) and (distinct or not row.counts_records):
        raise Wrong(
            place, f"{name}() does not take {'DISTINCT ' if distinct else ''}*", f"Name the column: {name}(amount)."
        )
    way_out = _USUAL.get(row.arguments[0], f"Write {name}(x, y).").format(name)
    arguments = arguments_of(row, nodes, scope, place, way_out)
    for argument in arguments:
        _check_argument(row, argument, place, node.name.lower())
    always = len(arguments) == 1 and isinstance(arguments[0], Constant) and arguments[0].value is not None
    if row.counts_records and not distinct and always:
        arguments = ()
    if distinct and any(argument.type in (VOID, INTERVAL) for argument in arguments):
        raise Wrong(place, f"{name}(DISTINCT …) does not take a constant", "Leave it out, or name a column.")
    if distinct and row.arguments[0] > 1:
        raise Wrong(place, f"{name}(DISTINCT …) does not take pairs", "Take DISTINCT rows in a subquery first.")
    by_value = row.by_value
    distinct = distinct and not (row.once or (by_value and by_value.sub_key))  # these keep a value once anyway
    if by_value is not None:
        arguments = (arguments[0], *parameters(row, arguments[1:], place))
    return Aggregate(name, arguments, when, distinct, row.gives([a.type for a in arguments]), place)


def arguments_of(
    row: AggregateFunction, nodes: Sequence[exp.Expr], scope: Scope, place: Place, way_out: str
) -> tuple[Expr, ...]:
    """The arguments of an aggregate, none for `*`. A text becomes a number if the aggregate is one of numbers."""
    star = _is_star(nodes)
    arguments = () if star else tuple(_as_number(row, resolved(node, scope)) for node in nodes)
    if not row.takes(arguments, star=star):
        raise Wrong(place, not_taken(row.name, len(arguments)), way_out)
    return arguments


def _is_star(nodes: Sequence[exp.Expr]) -> bool:
    return len(nodes) == 1 and isinstance(nodes[0], exp.Star)


def call_of(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call, as the parser would return it."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def is_array(node: exp.Expr) -> bool:
    """True for array(…) with elements."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "array" and bool(node.expressions)


def percentile_list(percentiles: Sequence[Expr], place: Place) -> Expr:
    """Several percentiles of the same values as a list."""
    return Call("shares", tuple(percentiles), Type("ARRAY", element=percentiles[0].type), place=place)


def _as_number(row: AggregateFunction, argument: Expr) -> Expr:
    wanted = argument.type == STRING and row.accepts(DOUBLE) and not row.accepts(STRING)
    return cast(argument, DOUBLE) if wanted else argument


_USUAL = {0: "Write count(*).", 1: "Write {}(x)."}
"""The way out per smallest number of arguments."""


def _check_argument(row: AggregateFunction, argument: Expr, place: Place, called: str) -> None:
    """Refuses an argument that the aggregate does not accept. `called` is the name that the author wrote."""
    place = argument.place or place
    if any(isinstance(e, Aggregate) for e in walk(argument)):
        raise Wrong(place, "an aggregate cannot contain an aggregate", "Aggregate in a subquery first.")
    if any(isinstance(e, Windowed) for e in walk(argument)):
        raise Wrong(place, "an aggregate cannot contain a window function", "Compute it in a subquery first.")
    if not row.accepts(argument.type) and not (row.lengths and argument.type in LENGTHS):
        way_out = {**row.instead, "BINARY": "Write {0}(hex(…))."}.get(
            argument.type.name, "Write {0}(CAST(… AS …)) with a type that it takes."
        ).format(row.name)
        raise Wrong(place, f"{called}() does not take {argument.type}", way_out)


def parameters(row: AggregateFunction, arguments: Sequence[Expr], place: Place) -> tuple[Constant, ...]:
    """The literal arguments of an aggregate after its values: shares from 0 to 1, a separator, a number."""
    name, arguments = row.name, [computed_literal(argument) for argument in arguments]
    for argument in arguments:
        if not isinstance(argument, Constant) or argument.value is None:
            raise Wrong(argument.place or place, f"{name}() takes a literal there", "Write it out.")
    literals = [e for e in arguments if isinstance(e, Constant)]
    if row.syntax.parameter == "separator":
        return tuple(literals) or (Constant("", STRING),)
    shares = [float(e.value or 0) if e.type.numeric else -1 for e in literals]
    if row.syntax.parameter == "error":
        if any(e.type.integral or not 0 < share <= GREATEST_ERROR for e, share in zip(literals, shares, strict=True)):
            way_out = f"Write {name}(x, 0.05), or count(DISTINCT x), which is exact."
            raise Wrong(place, f"{name}() does not take a relative error of {literals[0].value}", way_out)
        if any(share < LEAST_ERROR for share in shares):
            raise Wrong(place, "a relative error is at least 0.41 %", "Write count(DISTINCT x), which is exact.")
        registers = registers_for(shares[0]) if shares else DEFAULT_REGISTERS
        return (Constant(str(registers), BIGINT),)
    if any(not 0 <= share <= 1 for share in shares):
        raise Wrong(
            literals[0].place or place, f"{name}() does not take {literals[0].value}", f"Write {name}(x, 0.99)."
        )
    return tuple(literals)


def time_window(name: str, node: exp.Anonymous, scope: Scope) -> Expr:
    """window(ts, …) or session_window(ts, …): a pair of times."""
    place = span(node)
    arguments = [resolved(a, scope) for a in node.expressions]
    if name == "session_window":
        return _session_window(arguments, place)
    if not 2 <= len(arguments) <= 4:
        raise Wrong(place, not_taken("window", len(arguments)), "Write window(ts, '1 hour').")
    time = arguments[0]
    if time.type != TIMESTAMP:
        way_out = f"Write {_call_of_time('window', time, '1 hour')}."
        raise Wrong(time.place or place, f"window() does not take {time.type}", way_out)
    if any(length.type == INTERVAL for length in arguments[1:]):
        raise Wrong(place, "Spark refuses window() with an INTERVAL", "Write it as text: window(ts, '1 hour').")
    lengths = [microseconds(a, place) for a in arguments[1:]]
    size, slide = lengths[0], lengths[1] if len(lengths) > 1 else lengths[0]
    offset = lengths[2] if len(lengths) > 2 else 0
    if size <= 0:
        raise Wrong(place, "the length of a window must be positive", "Write window(ts, '1 hour').")
    if not 0 < slide <= size:
        raise Wrong(
            place,
            "a window slides by a positive time, at most by its length",
            "Write window(ts, '1 hour', '5 minutes').",
        )
    if size // math.gcd(size, slide) > MOST_PANES:
        raise Wrong(
            place, f"a window cannot have more than {MOST_PANES:,} panes", "Choose a slide that divides the length."
        )
    lengths = [size, offset % slide, *([slide] if slide != size else [])]
    literals = tuple(Constant(str(length), BIGINT) for length in lengths)
    start = Call("window_start", (time, *literals), TIMESTAMP, place=place)
    end = Call("window_end", (start, literals[0]), TIMESTAMP, place=place)
    return Call("window", (start, end), WINDOW, place=place)


MOST_PANES = 100_000
"""Most panes, of gcd(size, slide), in a hopping window. One of an hour every 5 seconds has 720."""


def in_a_window(window: Call) -> Expr | None:
    """The condition under which a record is in any window of this call, or None if no record is left out."""
    if window.function == "session" and not isinstance(window.arguments[1], Constant):
        return Call(">", (Call("session_until", window.arguments, TIMESTAMP), window.arguments[0]), BOOLEAN)
    if window.function in ("window_start", "session"):
        return Call("is not null", (window.arguments[0],), BOOLEAN)
    return None


def _call_of_time(name: str, time: Expr, length: str) -> str:
    """The way out for a window over another type: the call with its first argument cast to a time."""
    if not time.type.numeric:
        return f"{name}(CAST(… AS TIMESTAMP), '{length}')"
    return f"{name}(timestamp_millis(n), '{length}') of milliseconds, or of CAST(n AS TIMESTAMP) of seconds"


def _session_window(arguments: Sequence[Expr], place: Place) -> Expr:
    """Sessions that end `gap` after their last record. The gap is a literal, or a text per record."""
    if len(arguments) != 2:
        raise Wrong(place, not_taken("session_window", len(arguments)), "Write session_window(ts, '30 minutes').")
    time, gap = arguments
    if time.type != TIMESTAMP:
        way_out = f"Write {_call_of_time('session_window', time, '30 minutes')}."
        raise Wrong(time.place or place, f"session_window() does not take {time.type}", way_out)
    if gap.type != STRING:
        raise Wrong(
            gap.place or place, f"the gap of session_window() cannot be {gap.type}", "Write it as text: '30 minutes'."
        )
    if isinstance(gap, Constant):
        if microseconds(gap, place, "session_window") <= 0:
            raise Wrong(gap.place or place, "a session gap must be positive", "Write session_window(ts, '30 minutes').")
        gap = Constant(str(microseconds(gap, place)), BIGINT)
    return Call("window", bounds(Call("session", (time, gap), TIMESTAMP, place=place)), SESSION, place=place)


def refuse_aggregates(expression: Expr, where: str, way_out: str) -> None:
    """Refuses aggregates and window functions in a place that cannot have them."""
    refuse_windowed(expression, where)
    for part in walk(expression):
        if isinstance(part, Aggregate):
            raise Wrong(part.place, f"{where} cannot contain {part.function}()", way_out)


def refuse_windowed(expression: Expr, where: str) -> None:
    """Refuses window functions in a place that cannot have them."""
    for part in walk(expression):
        if isinstance(part, Windowed):
            what = f"{where} cannot contain {part.function}() OVER (…)"
            raise Wrong(part.place, what, "Compute it in a subquery, and filter outside.")
