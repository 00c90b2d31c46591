"""Calls whose arguments have rules of their own: aggregates, window functions, time windows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from view_algebra.language.aggregates import (
    AGGREGATES,
    DEFAULT_REGISTERS,
    GREATEST_ERROR,
    MOST_REGISTERS,
    NO_PARTIAL,
    REWRITES,
    AggregateFunction,
    registers_for,
)
from view_algebra.language.expressions import Aggregate, Call, Constant, Expr, Order, Place, Windowed
from view_algebra.language.functions import WINDOW_FUNCTIONS
from view_algebra.language.lengths import LENGTHS
from view_algebra.language.literals import folded
from view_algebra.language.meeting import cast, meet
from view_algebra.language.time_windows import bounds
from view_algebra.language.times import OF_LENGTHS, interval, microseconds
from view_algebra.language.types import (
    BIGINT,
    BITS,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    SESSION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    WINDOW,
    Type,
)
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong, span
from view_algebra.typed.distinct_over import distinct_over
from view_algebra.typed.spark_refuses import refuse_bounds

Read = Callable[[exp.Expr], Expr]
"""Resolves an argument where the call stands."""


def aggregate(name: str, node: exp.Anonymous, read: Read, when: Expr | None) -> Aggregate:
    """An aggregate, with the condition of its FILTER."""
    place = span(node)
    row = AGGREGATES.get(name)
    if row is None:
        raise Wrong(place, f"{name}() has no mergeable partial yet", REWRITES.get(name, NO_PARTIAL))
    given = node.expressions
    distinct = len(given) == 1 and isinstance(given[0], exp.Distinct)
    if distinct:
        given = given[0].expressions
    star = len(given) == 1 and isinstance(given[0], exp.Star)
    if star and (distinct or name != "count"):
        raise Wrong(place, f"{name}({'DISTINCT ' if distinct else ''}*)", f"Name the column: {name}(amount).")
    arguments = () if star else tuple(_number(row, read(a)) for a in given)
    fewest, most = row.arguments
    if not fewest <= len(arguments) <= most or (name == "count" and not star and not arguments):
        raise Wrong(
            place, f"{name}() with {len(arguments)} arguments", _USUAL.get(fewest, f"Write {name}(x, y).").format(name)
        )
    for argument in arguments:
        _check_argument(row, argument, place, node.name.lower())
    always = len(arguments) == 1 and isinstance(arguments[0], Constant) and arguments[0].value is not None
    if name == "count" and not distinct and always:
        arguments = ()
    if distinct and any(argument.type in (VOID, INTERVAL) for argument in arguments):
        raise Wrong(place, f"{name}(DISTINCT …) of a constant", "Leave it out, or name a column.")
    if distinct and row.arguments[0] > 1:
        raise Wrong(place, f"{name}(DISTINCT …) of pairs", "Take DISTINCT rows in a subquery first.")
    distinct = distinct and not (row.once or row.sub_key)  # which keep a value once anyway
    if row.over is not None:
        arguments = (arguments[0], *_parameters(name, arguments[1:], place))
    return Aggregate(name, arguments, when, distinct, row.gives([a.type for a in arguments]), place)


def call_of(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call, as the parser gives it."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _number(row: AggregateFunction, argument: Expr) -> Expr:
    """An argument; a text as a number to an aggregate of numbers."""
    wanted = argument.type == STRING and row.accepts(DOUBLE) and not row.accepts(STRING)
    return cast(argument, DOUBLE) if wanted else argument


_USUAL = {0: "Write count(*).", 1: "Write {}(x)."}
"""A call with the fewest arguments."""


def _check_argument(row: AggregateFunction, argument: Expr, place: Place, called: str) -> None:
    """Refuses an argument that an aggregate does not take; `called`: the name that its author wrote."""
    place = argument.place or place
    if any(isinstance(e, Aggregate) for e in walk(argument)):
        raise Wrong(place, "an aggregate inside an aggregate", "Aggregate in a subquery first.")
    if any(isinstance(e, Windowed) for e in walk(argument)):
        raise Wrong(place, "a window function inside an aggregate", "Compute it in a subquery first.")
    if not row.accepts(argument.type) and not (row.name in OF_LENGTHS and argument.type in LENGTHS):
        way_out = f"Write {row.name}(CAST(… AS …)) with a type that it takes."
        if row.name in ("collect_list", "collect_set", "mode") and argument.type != VOID:
            way_out = f"Write {row.name}(to_json(…)) over records."
            if argument.type.name == "ARRAY":
                way_out = (
                    f"Collect its elements: SELECT k, {row.name}(e) AS e … LATERAL VIEW explode(x) t AS e GROUP BY k."
                )
            if argument.type.numeric:  # 0.0 and -0.0 are one group to Spark, and two of a set
                way_out = f"Write {row.name}(CAST(… AS DECIMAL(18, 6)))."
        if argument.type.name == "BINARY":
            way_out = f"Write {row.name}(hex(…))."
        if argument.type.name == "ARRAY" and row.name in ("bool_or", "bool_and"):
            way_out = "Write array_contains(tags, 'x'), or forall(tags, t -> t = 'x')."
        if argument.type.name == "STRUCT" and row.name in ("min", "max"):
            way_out = "Take to_json(…) of each list or map in it."
        raise Wrong(place, f"{called}() of {argument.type}", way_out)


def _parameters(name: str, given: Sequence[Expr], place: Place) -> tuple[Constant, ...]:
    """What an aggregate over values takes beside them: shares from 0 to 1, what to put between texts, a number."""
    given = [folded(argument) for argument in given]
    for argument in given:
        if not isinstance(argument, Constant) or argument.value is None:
            raise Wrong(argument.place or place, f"{name}() takes a literal there", "Write it out.")
    literals = [e for e in given if isinstance(e, Constant)]
    if name == "listagg":
        return tuple(literals) or (Constant("", STRING),)
    shares = [float(e.value or 0) if e.type.numeric else -1 for e in literals]
    if name == "approx_count_distinct":
        if any(e.type.integral or not 0 < share <= GREATEST_ERROR for e, share in zip(literals, shares, strict=True)):
            way_out = "Write approx_count_distinct(x, 0.05), or count(DISTINCT x), which is exact."
            raise Wrong(place, f"{name}() with a relative error of {literals[0].value}", way_out)
        registers = registers_for(shares[0]) if shares else DEFAULT_REGISTERS
        if registers > MOST_REGISTERS:
            raise Wrong(place, "a relative error of less than 0.41 %", "Write count(DISTINCT x), which is exact.")
        return (Constant(str(registers), BIGINT),)
    if any(not 0 <= share <= 1 for share in shares):
        raise Wrong(literals[0].place or place, f"{name}() of {literals[0].value}", f"Write {name}(x, 0.99).")
    return tuple(literals)


def aggregate_over(name: str, node: exp.Anonymous, read: Read) -> Aggregate:
    """The aggregate of `sum(count(*)) OVER (…)`: its arguments may hold aggregates of the group."""
    row, place = AGGREGATES[name], span(node)
    if any(isinstance(a, exp.Distinct) for a in node.expressions):
        raise distinct_over(name, node)
    star = len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star)
    arguments = () if star else tuple(_number(row, read(a)) for a in node.expressions)
    fewest, most = row.arguments
    if not fewest <= len(arguments) <= most or (name == "count" and not star and not arguments):
        raise Wrong(place, f"{name}() with {len(arguments)} arguments", "docs/sql.md describes each aggregate.")
    if row.over is not None:
        arguments = (*arguments[:1], *_parameters(name, arguments[1:], place))
    for argument in arguments:
        if argument.type.name == "STRUCT" and row.accepts(argument.type) and name != "count":
            way_out = "Compute it with GROUP BY in a subquery, and join that."
            raise Wrong(argument.place or place, f"{name}() OVER (…) of {argument.type}", way_out)
        if not row.accepts(argument.type):
            raise Wrong(argument.place or place, f"{name}() of {argument.type}", f"Write {name}(CAST(… AS …)).")
    return Aggregate(name, arguments, None, False, row.gives([a.type for a in arguments]), place)


def time_window(name: str, node: exp.Anonymous, read: Read) -> Expr:
    """window(ts, …) or session_window(ts, …): a pair of times."""
    place = span(node)
    arguments = [read(a) for a in node.expressions]
    if name == "session_window":
        return _session_window(arguments, place)
    if not 2 <= len(arguments) <= 4:
        raise Wrong(place, f"window() with {len(arguments)} arguments", "Write window(ts, '1 hour').")
    time = arguments[0]
    if time.type != TIMESTAMP:
        way_out = f"Write {_of_time('window', time, '1 hour')}."
        raise Wrong(time.place or place, f"window() over {time.type}", way_out)
    if any(length.type == INTERVAL for length in arguments[1:]):
        raise Wrong(place, "window() with an INTERVAL, which Spark refuses", "Write it as text: window(ts, '1 hour').")
    lengths = [microseconds(a, place) for a in arguments[1:]]
    size, slide = lengths[0], lengths[1] if len(lengths) > 1 else lengths[0]
    offset = lengths[2] if len(lengths) > 2 else 0
    if size <= 0:
        raise Wrong(place, "a window of no length", "Write window(ts, '1 hour').")
    if not 0 < slide <= size:
        raise Wrong(
            place,
            "a window that slides by more than its length, or not at all",
            "Write window(ts, '1 hour', '5 minutes').",
        )
    if size // math.gcd(size, slide) > MOST_PANES:
        raise Wrong(
            place, f"a window of more than {MOST_PANES:,} panes", "Choose a slide that the length is a multiple of."
        )
    lengths = [size, offset % slide, *([slide] if slide != size else [])]
    literals = tuple(Constant(str(length), BIGINT) for length in lengths)
    start = Call("window_start", (time, *literals), TIMESTAMP, place=place)
    end = Call("window_end", (start, literals[0]), TIMESTAMP, place=place)
    return Call("window", (start, end), WINDOW, place=place)


MOST_PANES = 100_000
"""Panes of gcd(size, slide) that a hopping window is added up from: an hour every 5 seconds has 720."""


def in_a_window(window: Call) -> Expr | None:
    """The condition under which a record is in a window at all, of the windows that a block computes."""
    if window.function == "session" and not isinstance(window.arguments[1], Constant):
        return Call(">", (Call("session_until", window.arguments, TIMESTAMP), window.arguments[0]), BOOLEAN)
    if window.function in ("window_start", "session"):
        return Call("is not null", (window.arguments[0],), BOOLEAN)
    return None


def _of_time(name: str, time: Expr, length: str) -> str:
    """A call of a window, of the time that a value of another type is."""
    if not time.type.numeric:
        return f"{name}(CAST(… AS TIMESTAMP), '{length}')"
    return f"{name}(timestamp_millis(n), '{length}') of milliseconds, or of CAST(n AS TIMESTAMP) of seconds"


def _session_window(arguments: list[Expr], place: Place) -> Expr:
    """Sessions that end `gap` after their last record; the gap is a literal, or a text that each record decides."""
    if len(arguments) != 2:
        raise Wrong(
            place, f"session_window() with {len(arguments)} arguments", "Write session_window(ts, '30 minutes')."
        )
    time, gap = arguments
    if time.type != TIMESTAMP:
        way_out = f"Write {_of_time('session_window', time, '30 minutes')}."
        raise Wrong(time.place or place, f"session_window() over {time.type}", way_out)
    if gap.type != STRING:
        raise Wrong(
            gap.place or place, f"session_window() with a gap of type {gap.type}", "Write it as text: '30 minutes'."
        )
    if isinstance(gap, Constant):
        if microseconds(gap, place, "session_window") <= 0:
            raise Wrong(
                gap.place or place, "a session that ends before its record", "Write session_window(ts, '30 minutes')."
            )
        gap = Constant(str(microseconds(gap, place)), BIGINT)
    return Call("window", bounds(Call("session", (time, gap), TIMESTAMP, place=place)), SESSION, place=place)


def window_arguments(name: str, arguments: tuple[Expr, ...], place: Place) -> tuple[tuple[Expr, ...], Type]:
    """The arguments of a window function, and the type that it gives."""
    gives = WINDOW_FUNCTIONS[name]
    counts = {
        "lag": (1, 3),
        "lead": (1, 3),
        "first_value": (1, 1),
        "last_value": (1, 1),
        "nth_value": (2, 2),
        "ntile": (1, 1),
    }
    fewest, most = counts.get(name, (0, 0))
    if not fewest <= len(arguments) <= most:
        raise Wrong(place, f"{name}() with {len(arguments)} arguments", "See docs/sql.md.")
    first = 0 if name == "ntile" else 1
    arguments = (*arguments[:first], *map(folded, arguments[first : first + 1]), *arguments[first + 1 :])
    for offset in arguments[first : first + 1]:
        if not (isinstance(offset, Constant) and offset.type == INT):
            raise Wrong(offset.place or place, f"{name}() takes a literal number", f"Write {name}(…, 1).")
        if name in ("ntile", "nth_value") and int(offset.value or 0) < 1:
            raise Wrong(offset.place or place, f"{name}() of {offset.value}", "Count from 1.")
    if len(arguments) == 3:
        value, offset, default = arguments
        whole = value.type.name == "DECIMAL" and default.type.integral
        met = meet((value, cast(default, value.type) if whole else default), place, f"{name}()")
        if met[0].type != value.type:
            reason = f"{name}() of {value.type} with {default.type} where there is no row"
            raise Wrong(default.place or place, reason, f"Write CAST(… AS {value.type}).")
        arguments = (value, offset, met[1])
    return arguments, gives if isinstance(gives, Type) else arguments[0].type


def refuse_nulls_left_out(name: str, arguments: Sequence[Expr], place: Place) -> None:
    """IGNORE NULLS is served where one value of a frame is the answer."""
    if name in ("lag", "lead") and any(isinstance(a, Constant) and a.value != "1" for a in arguments[1:2]):
        next_one = f"CASE WHEN x IS NOT NULL THEN {name}(x) IGNORE NULLS OVER (…) END AS y"
        way_out = f"Write {name}(y) IGNORE NULLS OVER (…) over a subquery with {next_one}, once for each further place."
        raise Wrong(place, f"{name}() … IGNORE NULLS", way_out)
    if name not in ("first_value", "last_value", "lag", "lead"):
        raise Wrong(place, f"{name}() … IGNORE NULLS", "Filter the NULLs in a subquery, which leaves out their rows.")


def frame(node: exp.Window, order: Sequence[Order]) -> str:
    """The frame as Postgres writes it, empty for the default."""
    spec = node.args.get("spec")
    if spec is None:
        return ""
    kind = str(spec.args.get("kind") or "ROWS").upper()
    if kind not in ("ROWS", "RANGE"):
        raise Wrong(span(spec) or span(node), f"a frame of {kind}", "Use ROWS, or a RANGE.")
    bounds = []
    if len({unit.name.lower().rstrip("s") for unit in spec.find_all(exp.Var)}) > 1:  # which Spark refuses
        raise Wrong(span(spec) or span(node), "a RANGE whose bounds are of two units", "Write both in the smaller one.")
    for side in ("start", "end"):
        value, direction = spec.args.get(side), spec.args.get(f"{side}_side") or ""
        if value is None:
            bounds.append("CURRENT ROW")
        elif isinstance(value, str):
            bounds.append(f"{value} {direction}".strip().upper())
        elif isinstance(value, exp.Literal) and value.name.isdigit() and kind == "ROWS":
            bounds.append(f"{value.name} {direction}".strip().upper() if int(value.name) else "CURRENT ROW")
        elif isinstance(value, exp.Interval) and kind == "RANGE":
            bounds.append(f"{_reach(interval(value), order, span(node))} {direction}".strip().upper())
        elif isinstance(value, exp.Literal) and value.name.isdigit():
            bounds.append(f"{_span_of_numbers(value.name, order, span(node))} {direction}".strip().upper())
        else:
            way_out = "Use whole numbers, or RANGE with an INTERVAL."
            raise Wrong(span(spec) or span(node), f"a {kind} frame over values", way_out)
    refuse_bounds(spec, kind, bool(order), span(spec) or span(node))
    first, last = (_distance(bound) for bound in bounds)
    if first > last or first == math.inf or last == -math.inf:
        raise Wrong(span(spec) or span(node), "a frame that ends before it begins", "Write its first row first.")
    return f"{kind} BETWEEN {bounds[0]} AND {bounds[1]}"


VALUE_BOUND = re.compile(r"^RANGE .*(\d|interval)")
"""The frames that end at a certain distance from the value of a row."""


def _distance(bound: str) -> float:
    """How far after the row itself a frame begins or ends."""
    length = re.search(r"\d+", bound)
    far = float(length[0]) if length else math.inf if bound.startswith("UNBOUNDED") else 0
    return -far if bound.endswith("PRECEDING") else far


def _span_of_numbers(length: str, order: Sequence[Order], place: Place) -> str:
    """How far a RANGE frame over numbers or days reaches."""
    kind = order[0].expression.type if len(order) == 1 else None
    if kind is not None and int(length) >= _BEYOND.get(kind.name, 10 ** (kind.precision - kind.scale or 18)):
        raise Wrong(place, f"a RANGE of {length} over {kind}, which has no such number", "Write a smaller one.")
    if kind is None or not (kind.numeric or kind == DATE):
        way_out = "Write ORDER BY n RANGE BETWEEN 10 PRECEDING AND CURRENT ROW, over a number or a date."
        raise Wrong(place, "a RANGE of numbers over another order than by one number", way_out)
    return f"interval '{length} days'" if kind == DATE else length


_BEYOND = {name: 2**bits for name, bits in BITS.items()} | {"DATE": 10**7}
"""The least that a number, or of days, is not."""


def _reach(length: Constant, order: Sequence[Order], place: Place) -> str:
    """How far a RANGE frame reaches, as Postgres writes it; a day has 24 hours, whatever a reader's time zone."""
    kind, unit = order[0].expression.type if len(order) == 1 else None, str(length.value).split(" ")[-1]
    if kind not in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
        way_out = "Write ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW."
        raise Wrong(place, "a RANGE of time over another order than by one time", way_out)
    if unit in ("month", "quarter", "year") or (kind == DATE and unit not in ("day", "week")):
        way_out = "Write it in days."
        if unit in ("month", "quarter", "year"):  # which are of different lengths
            way_out = (
                "Write it in days, or join each row with those that it reaches:"
                " ON b.k = a.k AND b.ts BETWEEN a.ts - INTERVAL 1 MONTH AND a.ts, and aggregate by GROUP BY."
            )
        raise Wrong(place, f"a RANGE in {unit}s over a {kind}", way_out)
    if str(length.value).startswith("-"):
        raise Wrong(place, "a RANGE of less than nothing", "Write it as a positive one, and PRECEDING or FOLLOWING.")
    return f"interval '{microseconds(length, place)} microseconds'"


def refuse_aggregates(expression: Expr, where: str, way_out: str) -> None:
    """Refuses aggregates and window functions where there can be none."""
    refuse_windowed(expression, where)
    for part in walk(expression):
        if isinstance(part, Aggregate):
            raise Wrong(part.place, f"{part.function}() in {where}", way_out)


def refuse_windowed(expression: Expr, where: str) -> None:
    """Refuses window functions where there can be none."""
    for part in walk(expression):
        if isinstance(part, Windowed):
            what = f"{part.function}() OVER (…) in {where}"
            raise Wrong(part.place, what, "Compute it in a subquery, and filter outside.")
