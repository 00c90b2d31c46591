"""f(x) OVER (…): window functions, aggregates over rows, and frames."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from sqlglot import exp

from view_algebra.language.aggregates import AGGREGATES, SYNONYMS
from view_algebra.language.calendar_bounds import far_apart
from view_algebra.language.expressions import Aggregate, Constant, Expr, Order, Place, Windowed
from view_algebra.language.functions import FOREIGN, WINDOW_FUNCTIONS
from view_algebra.language.literals import computed_literal
from view_algebra.language.meeting import cast, meet
from view_algebra.language.times import interval, microseconds
from view_algebra.language.types import BITS, DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, Type
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, not_taken, span, suggestion
from view_algebra.typed.aggregation.calls import arguments_of, parameters
from view_algebra.typed.order.ties import sort_keys
from view_algebra.typed.scopes import Scope, resolved
from view_algebra.typed.spark_refuses import refuse_bounds, refuse_frame, refuse_partition_by_maps
from view_algebra.written.dialect import parsed
from view_algebra.written.ways_out.distinct_over import distinct_over
from view_algebra.written.ways_out.replacements import filtered_over

_NAMED_OVER = {"first": "first_value", "any_value": "first_value", "last": "last_value"}
"""The names of functions of the order of events if OVER gives another order."""


def window_function(node: exp.Window, scope: Scope) -> Expr:
    """f(x) OVER (…)."""
    place = span(node.this)
    if isinstance(node.args.get("alias"), exp.Identifier) or node.args.get("over") is None:
        raise Wrong(
            place,
            "OVER takes the name of a window of this block, and nothing next to it",
            "Write it out: OVER (ORDER BY …).",
        )
    inner: exp.Expr = node.this
    ignores_nulls = isinstance(inner, exp.IgnoreNulls)
    if isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls)):
        inner = inner.this
    if isinstance(inner, exp.Filter):
        raise Wrong(place, "Spark does not run FILTER before OVER", f"Write {filtered_over(node)}.")
    if isinstance(inner, exp.WithinGroup):
        inner = _share_of(inner, place, scope)
    if not isinstance(inner, exp.Anonymous):
        raise Wrong(place, "OVER follows something that is not a function", "Write f(x) OVER (…).")
    name = SYNONYMS.get(inner.name.lower(), inner.name.lower())
    name, nodes = _NAMED_OVER.get(name, name), inner.expressions
    if name in ("first_value", "last_value") and len(nodes) == 2 and isinstance(nodes[1], exp.Boolean):
        ignores_nulls, nodes = ignores_nulls or bool(nodes[1].this), nodes[:1]
    arguments, kind = _arguments(name, inner, nodes, scope)
    if isinstance(share := node.this, exp.WithinGroup):
        for part, copy in zip(_parts_of(share), inner.expressions, strict=True):
            scope.edits.adopt(part, copy)
    partition = tuple(resolved(e, scope) for e in node.args.get("partition_by") or [])
    order = tuple(sort_keys(node, scope, ()))
    if name in WINDOW_FUNCTIONS and name not in ("first_value", "last_value") and not order:
        raise Wrong(place, f"{name}() needs ORDER BY", f"Write {name}() OVER (ORDER BY …).")
    refuse_partition_by_maps(partition, place)
    _refuse_inside(arguments, partition, order, place)
    if ignores_nulls:
        _refuse_nulls_left_out(name, arguments, place)
    rows = _frame(node, order)
    of_all = isinstance(node.this, exp.WithinGroup) or (name in AGGREGATES and AGGREGATES[name].syntax.whole_partition)
    refuse_frame(name, rows, order, place, of_all=of_all)
    call = Windowed(name, arguments, partition, order, rows, kind, place, ignores_nulls, node)
    _spell_infinities(call, node, scope)
    return call


def _spell_infinities(call: Windowed, node: exp.Window, scope: Scope) -> None:
    """Moves Spark's infinities so far away that no frame reaches from a calendar time to them, or back."""
    if call.reaches_values and (kind := call.order[0].expression.type).endless:
        (key,) = node.args["order"].expressions
        far = scope.edits.copy(key)
        far.set("this", parsed(far_apart(scope.edited_sql(key.this), kind)))
        scope.edits.put(key, far)


def _arguments(
    name: str, node: exp.Anonymous, nodes: Sequence[exp.Expr], scope: Scope
) -> tuple[tuple[Expr, ...], Type]:
    """The arguments of a function OVER rows, and the type of its result."""
    if name in AGGREGATES:
        call = _aggregate_over(name, node, scope)
        return call.arguments, call.type
    if name in WINDOW_FUNCTIONS:
        return _window_arguments(name, tuple(resolved(a, scope) for a in nodes), span(node))
    way_out = f"Write {FOREIGN[name]}." if name in FOREIGN else suggestion(name, [*WINDOW_FUNCTIONS, *AGGREGATES])
    raise Wrong(span(node), f"{name}() does not take OVER (…)", way_out)


def _refuse_inside(arguments: Sequence[Expr], partition: Sequence[Expr], order: Sequence[Order], place: Place) -> None:
    """Refuses a window function inside another one: Spark computes both in two steps, Postgres cannot."""
    inside = (*arguments, *partition, *(key.expression for key in order))
    if any(isinstance(part, Windowed) for expression in inside for part in walk(expression)):
        raise Wrong(place, "a window function cannot contain another", "Compute the inner one in a subquery in FROM.")


def _share_of(node: exp.WithinGroup, place: Place, scope: Scope) -> exp.Expr:
    """percentile_cont(0.9) WITHIN GROUP (ORDER BY x) as percentile(x, 0.9)."""
    key, *more = node.expression.expressions
    name = SYNONYMS.get(node.this.name.lower(), "")
    if more or key.args.get("desc") or not name or AGGREGATES[name].syntax.parameter != "shares":
        raise Wrong(place, "OVER follows WITHIN GROUP", "Compute it with GROUP BY in a subquery, and join that.")
    return exp.Anonymous(this=name, expressions=[scope.edits.copy(part) for part in _parts_of(node)])


def _parts_of(node: exp.WithinGroup) -> Sequence[exp.Expr]:
    """The value and the shares of percentile_cont(0.9) WITHIN GROUP (ORDER BY x)."""
    return [node.expression.expressions[0].this, *node.this.expressions]


def _aggregate_over(name: str, node: exp.Anonymous, scope: Scope) -> Aggregate:
    """The aggregate of `sum(count(*)) OVER (…)`: its arguments may hold aggregates of the group."""
    row, place = AGGREGATES[name], span(node)
    if any(isinstance(a, exp.Distinct) for a in node.expressions):
        raise distinct_over(name, node)
    arguments = arguments_of(row, node.expressions, scope, place, "docs/sql.md describes each aggregate.")
    if row.by_value is not None:
        arguments = (*arguments[:1], *parameters(row, arguments[1:], place))
    for argument in arguments:
        if argument.type.name == "STRUCT" and row.accepts(argument.type) and not row.counts_records:
            way_out = "Compute it with GROUP BY in a subquery, and join that."
            raise Wrong(argument.place or place, f"{name}() OVER (…) does not take {argument.type}", way_out)
        if not row.accepts(argument.type):
            raise Wrong(
                argument.place or place, f"{name}() does not take {argument.type}", f"Write {name}(CAST(… AS …))."
            )
    return Aggregate(name, arguments, None, False, row.gives([a.type for a in arguments]), place)


def _window_arguments(name: str, arguments: tuple[Expr, ...], place: Place) -> tuple[tuple[Expr, ...], Type]:
    """The arguments of a window function, and the type of its result."""
    gives, (fewest, most) = WINDOW_FUNCTIONS[name].gives, WINDOW_FUNCTIONS[name].arguments
    if not fewest <= len(arguments) <= most:
        raise Wrong(place, not_taken(name, len(arguments)), "See docs/sql.md.")
    first = 0 if name == "ntile" else 1
    arguments = (*arguments[:first], *map(computed_literal, arguments[first : first + 1]), *arguments[first + 1 :])
    for offset in arguments[first : first + 1]:
        if not (isinstance(offset, Constant) and offset.type == INT):
            raise Wrong(offset.place or place, f"{name}() takes a literal number", f"Write {name}(…, 1).")
        if name in ("ntile", "nth_value") and int(offset.value or 0) < 1:
            raise Wrong(offset.place or place, f"{name}() does not take {offset.value}", "Count from 1.")
    if len(arguments) == 3:
        value, offset, default = arguments
        whole = value.type.name == "DECIMAL" and default.type.integral
        met = meet((value, cast(default, value.type) if whole else default), place, f"{name}()")
        if met[0].type != value.type:
            reason = f"the default of {name}() is {default.type}, but its value is {value.type}"
            raise Wrong(default.place or place, reason, f"Write CAST(… AS {value.type}).")
        arguments = (value, offset, met[1])
    return arguments, gives if isinstance(gives, Type) else arguments[0].type


def _refuse_nulls_left_out(name: str, arguments: Sequence[Expr], place: Place) -> None:
    """Refuses IGNORE NULLS unless the answer is one value of the frame."""
    if name in ("lag", "lead") and any(isinstance(a, Constant) and a.value != "1" for a in arguments[1:2]):
        next_one = f"CASE WHEN x IS NOT NULL THEN {name}(x) IGNORE NULLS OVER (…) END AS y"
        way_out = f"Write {name}(y) IGNORE NULLS OVER (…) over a subquery with {next_one}, once for each further place."
        raise Wrong(place, f"{name}() takes IGNORE NULLS only with a distance of 1", way_out)
    if name not in ("first_value", "last_value", "lag", "lead"):
        raise Wrong(place, f"{name}() does not take IGNORE NULLS", "Leave out rows with NULL in a subquery.")


def _frame(node: exp.Window, order: Sequence[Order]) -> str:
    """The frame as Postgres writes it, empty for the default."""
    spec = node.args.get("spec")
    if spec is None:
        return ""
    kind, place = str(spec.args.get("kind") or "ROWS").upper(), span(spec) or span(node)
    if kind not in ("ROWS", "RANGE"):
        raise Wrong(place, f"a frame of {kind} is not served", "Use ROWS, or a RANGE.")
    bounds = []
    if len({unit.name.lower().rstrip("s") for unit in spec.find_all(exp.Var)}) > 1:  # Spark refuses two units
        raise Wrong(place, "the bounds of RANGE have two units", "Write both in the smaller one.")
    for side in ("start", "end"):
        value = spec.args.get(side)
        number = value.name if isinstance(value, exp.Literal) and value.name.isdigit() else None
        if value is None or (kind == "ROWS" and number is not None and int(number) == 0):
            bounds.append("CURRENT ROW")
            continue
        if isinstance(value, str):
            distance = value
        elif isinstance(value, exp.Interval) and kind == "RANGE":
            distance = _reach(interval(value), order, span(node))
        elif number is not None:
            distance = number if kind == "ROWS" else _span_of_numbers(number, order, span(node))
        else:
            way_out = "Use whole numbers, or RANGE with an INTERVAL."
            raise Wrong(place, f"the bounds of {kind} must be literals", way_out)
        bounds.append(f"{distance} {spec.args.get(f'{side}_side') or ''}".strip().upper())
    refuse_bounds(spec, kind, place, ordered=bool(order))
    first, last = (_distance(bound) for bound in bounds)
    if first > last or first == math.inf or last == -math.inf:
        raise Wrong(place, "a frame cannot end before it begins", "Write its first row first.")
    return f"{kind} BETWEEN {bounds[0]} AND {bounds[1]}"


def _distance(bound: str) -> float:
    """The signed number of rows from a row to a bound of its frame."""
    length = re.search(r"\d+", bound)
    far = float(length[0]) if length else math.inf if bound.startswith("UNBOUNDED") else 0
    return -far if bound.endswith("PRECEDING") else far


def _span_of_numbers(length: str, order: Sequence[Order], place: Place) -> str:
    """The reach of a RANGE frame over numbers or dates, as Postgres writes it."""
    kind = order[0].expression.type if len(order) == 1 else None
    if kind is not None and int(length) >= _BEYOND.get(kind.name, 10 ** (kind.precision - kind.scale or 18)):
        raise Wrong(place, f"{kind} does not have the number {length} of RANGE", "Write a smaller one.")
    if kind is None or not (kind.numeric or kind == DATE):
        way_out = "Write ORDER BY n RANGE BETWEEN 10 PRECEDING AND CURRENT ROW, over a number or a date."
        raise Wrong(place, "a RANGE of numbers needs an order by one number", way_out)
    return f"interval '{length} days'" if kind == DATE else length


_BEYOND = {name: 2**bits for name, bits in BITS.items()} | {"DATE": 10**7}
"""The least number, or number of days, beyond the type's range."""


def _reach(length: Constant, order: Sequence[Order], place: Place) -> str:
    """The reach of a RANGE frame over times, as Postgres writes it. A day has 24 hours in every reader's time zone."""
    kind, unit = order[0].expression.type if len(order) == 1 else None, str(length.value).split(" ")[-1]
    if kind not in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
        way_out = "Write ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW."
        raise Wrong(place, "a RANGE of time needs an order by one time", way_out)
    if unit in ("month", "quarter", "year") or (kind == DATE and unit not in ("day", "week")):
        way_out = "Write it in days."
        if unit in ("month", "quarter", "year"):  # these vary in length
            way_out = (
                "Write it in days, or join each row with those that it reaches:"
                " ON b.k = a.k AND b.ts BETWEEN a.ts - INTERVAL 1 MONTH AND a.ts, and aggregate by GROUP BY."
            )
        raise Wrong(place, f"a RANGE over {kind} does not take {unit}s", way_out)
    if str(length.value).startswith("-"):
        raise Wrong(place, "RANGE needs a positive interval", "Write a positive interval, and PRECEDING or FOLLOWING.")
    return f"interval '{microseconds(length, place)} microseconds'"
