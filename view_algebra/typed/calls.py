"""Calls whose arguments have rules of their own: aggregates, window functions, time windows.

Neither engine computes aggregates of DISTINCT values OVER rows. Their refusal prints the SELECT that gives the same
numbers: it joins each row with the rows of its frame and counts each of their values once. DISTINCT rows in a subquery
would be wrong, because a user who came on two days of a week is two rows there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from view_algebra.language.aggregates import (
    AGGREGATES,
    COLLECTED_ONCE,
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
from view_algebra.language.times import interval, microseconds
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
from view_algebra.typed.spark_refuses import refuse_bounds
from view_algebra.written.dialect import readable

Read = Callable[[exp.Expr], Expr]
"""A function that resolves an argument in the scope of its call."""


def aggregate(name: str, node: exp.Anonymous, read: Read, when: Expr | None) -> Aggregate:
    """An aggregate with the condition of its FILTER."""
    place = span(node)
    row = AGGREGATES.get(name)
    if row is None:
        raise Wrong(place, f"{name}() has no mergeable partial yet", REWRITES.get(name, NO_PARTIAL))
    nodes = node.expressions
    distinct = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
    if distinct:
        nodes = nodes[0].expressions
    star = len(nodes) == 1 and isinstance(nodes[0], exp.Star)
    if star and (distinct or not row.counts):
        raise Wrong(place, f"{name}({'DISTINCT ' if distinct else ''}*)", f"Name the column: {name}(amount).")
    arguments = () if star else tuple(_number(row, read(a)) for a in nodes)
    fewest, most = row.arguments
    if not fewest <= len(arguments) <= most or (row.counts and not star and not arguments):
        raise Wrong(
            place, f"{name}() with {len(arguments)} arguments", _USUAL.get(fewest, f"Write {name}(x, y).").format(name)
        )
    for argument in arguments:
        _check_argument(row, argument, place, node.name.lower())
    always = len(arguments) == 1 and isinstance(arguments[0], Constant) and arguments[0].value is not None
    if row.counts and not distinct and always:
        arguments = ()
    if distinct and any(argument.type in (VOID, INTERVAL) for argument in arguments):
        raise Wrong(place, f"{name}(DISTINCT …) of a constant", "Leave it out, or name a column.")
    if distinct and row.arguments[0] > 1:
        raise Wrong(place, f"{name}(DISTINCT …) of pairs", "Take DISTINCT rows in a subquery first.")
    distinct = distinct and not (row.once or row.sub_key)  # these keep a value once anyway
    if row.over is not None:
        arguments = (arguments[0], *_parameters(row, arguments[1:], place))
    return Aggregate(name, arguments, when, distinct, row.gives([a.type for a in arguments]), place)


def call_of(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call, as the parser would return it."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _number(row: AggregateFunction, argument: Expr) -> Expr:
    """An argument. A text becomes a number if the aggregate is one of numbers."""
    wanted = argument.type == STRING and row.accepts(DOUBLE) and not row.accepts(STRING)
    return cast(argument, DOUBLE) if wanted else argument


_USUAL = {0: "Write count(*).", 1: "Write {}(x)."}
"""The way out per smallest number of arguments."""


def _check_argument(row: AggregateFunction, argument: Expr, place: Place, called: str) -> None:
    """Refuses an argument that the aggregate does not accept. `called` is the name that the author wrote."""
    place = argument.place or place
    if any(isinstance(e, Aggregate) for e in walk(argument)):
        raise Wrong(place, "an aggregate inside an aggregate", "Aggregate in a subquery first.")
    if any(isinstance(e, Windowed) for e in walk(argument)):
        raise Wrong(place, "a window function inside an aggregate", "Compute it in a subquery first.")
    if not row.accepts(argument.type) and not (row.lengths and argument.type in LENGTHS):
        way_out = {**row.instead, "BINARY": "Write {0}(hex(…))."}.get(
            argument.type.name, "Write {0}(CAST(… AS …)) with a type that it takes."
        ).format(row.name)
        raise Wrong(place, f"{called}() of {argument.type}", way_out)


def _parameters(row: AggregateFunction, arguments: Sequence[Expr], place: Place) -> tuple[Constant, ...]:
    """The literal arguments of an aggregate after its values: shares from 0 to 1, a separator, a number."""
    name, arguments = row.name, [folded(argument) for argument in arguments]
    for argument in arguments:
        if not isinstance(argument, Constant) or argument.value is None:
            raise Wrong(argument.place or place, f"{name}() takes a literal there", "Write it out.")
    literals = [e for e in arguments if isinstance(e, Constant)]
    if row.parameter == "separator":
        return tuple(literals) or (Constant("", STRING),)
    shares = [float(e.value or 0) if e.type.numeric else -1 for e in literals]
    if row.parameter == "error":
        if any(e.type.integral or not 0 < share <= GREATEST_ERROR for e, share in zip(literals, shares, strict=True)):
            way_out = f"Write {name}(x, 0.05), or count(DISTINCT x), which is exact."
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
    if not fewest <= len(arguments) <= most or (row.counts and not star and not arguments):
        raise Wrong(place, f"{name}() with {len(arguments)} arguments", "docs/sql.md describes each aggregate.")
    if row.over is not None:
        arguments = (*arguments[:1], *_parameters(row, arguments[1:], place))
    for argument in arguments:
        if argument.type.name == "STRUCT" and row.accepts(argument.type) and not row.counts:
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
        raise Wrong(place, "the length of a window must be positive", "Write window(ts, '1 hour').")
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
"""Most panes, of gcd(size, slide), in a hopping window. One of an hour every 5 seconds has 720."""


def in_a_window(window: Call) -> Expr | None:
    """The condition under which a record is in any window of this call, or None if no record is left out."""
    if window.function == "session" and not isinstance(window.arguments[1], Constant):
        return Call(">", (Call("session_until", window.arguments, TIMESTAMP), window.arguments[0]), BOOLEAN)
    if window.function in ("window_start", "session"):
        return Call("is not null", (window.arguments[0],), BOOLEAN)
    return None


def _of_time(name: str, time: Expr, length: str) -> str:
    """The way out for a window over another type: the call with its first argument cast to a time."""
    if not time.type.numeric:
        return f"{name}(CAST(… AS TIMESTAMP), '{length}')"
    return f"{name}(timestamp_millis(n), '{length}') of milliseconds, or of CAST(n AS TIMESTAMP) of seconds"


def _session_window(arguments: list[Expr], place: Place) -> Expr:
    """Sessions that end `gap` after their last record. The gap is a literal, or a text per record."""
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
    """The arguments of a window function, and the type of its result."""
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
            reason = f"the default of {name}() is {default.type}, its value {value.type}"
            raise Wrong(default.place or place, reason, f"Write CAST(… AS {value.type}).")
        arguments = (value, offset, met[1])
    return arguments, gives if isinstance(gives, Type) else arguments[0].type


def refuse_nulls_left_out(name: str, arguments: Sequence[Expr], place: Place) -> None:
    """Refuses IGNORE NULLS unless the answer is one value of the frame."""
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
    if len({unit.name.lower().rstrip("s") for unit in spec.find_all(exp.Var)}) > 1:  # Spark refuses two units
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
"""Frames with a bound at a distance from the row's value."""


def _distance(bound: str) -> float:
    """The signed number of rows from a row to a bound of its frame."""
    length = re.search(r"\d+", bound)
    far = float(length[0]) if length else math.inf if bound.startswith("UNBOUNDED") else 0
    return -far if bound.endswith("PRECEDING") else far


def _span_of_numbers(length: str, order: Sequence[Order], place: Place) -> str:
    """The reach of a RANGE frame over numbers or dates, as Postgres writes it."""
    kind = order[0].expression.type if len(order) == 1 else None
    if kind is not None and int(length) >= _BEYOND.get(kind.name, 10 ** (kind.precision - kind.scale or 18)):
        raise Wrong(place, f"a RANGE of {length} over {kind}, which has no such number", "Write a smaller one.")
    if kind is None or not (kind.numeric or kind == DATE):
        way_out = "Write ORDER BY n RANGE BETWEEN 10 PRECEDING AND CURRENT ROW, over a number or a date."
        raise Wrong(place, "a RANGE of numbers over another order than by one number", way_out)
    return f"interval '{length} days'" if kind == DATE else length


_BEYOND = {name: 2**bits for name, bits in BITS.items()} | {"DATE": 10**7}
"""The least number, or number of days, beyond the type's range."""


def _reach(length: Constant, order: Sequence[Order], place: Place) -> str:
    """The reach of a RANGE frame over times, as Postgres writes it. A day has 24 hours in every reader's time zone."""
    kind, unit = order[0].expression.type if len(order) == 1 else None, str(length.value).split(" ")[-1]
    if kind not in (TIMESTAMP, TIMESTAMP_NTZ, DATE):
        way_out = "Write ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW."
        raise Wrong(place, "a RANGE of time over another order than by one time", way_out)
    if unit in ("month", "quarter", "year") or (kind == DATE and unit not in ("day", "week")):
        way_out = "Write it in days."
        if unit in ("month", "quarter", "year"):  # these vary in length
            way_out = (
                "Write it in days, or join each row with those that it reaches:"
                " ON b.k = a.k AND b.ts BETWEEN a.ts - INTERVAL 1 MONTH AND a.ts, and aggregate by GROUP BY."
            )
        raise Wrong(place, f"a RANGE in {unit}s over a {kind}", way_out)
    if str(length.value).startswith("-"):
        raise Wrong(place, "RANGE needs a positive interval", "Write a positive interval, and PRECEDING or FOLLOWING.")
    return f"interval '{microseconds(length, place)} microseconds'"


def refuse_aggregates(expression: Expr, where: str, way_out: str) -> None:
    """Refuses aggregates and window functions in a place that cannot have them."""
    refuse_windowed(expression, where)
    for part in walk(expression):
        if isinstance(part, Aggregate):
            raise Wrong(part.place, f"{part.function}() in {where}", way_out)


def refuse_windowed(expression: Expr, where: str) -> None:
    """Refuses window functions in a place that cannot have them."""
    for part in walk(expression):
        if isinstance(part, Windowed):
            what = f"{part.function}() OVER (…) in {where}"
            raise Wrong(part.place, what, "Compute it in a subquery, and filter outside.")


_NTH = "nth"
"""The column of row numbers, if a frame counts rows."""


def distinct_over(name: str, node: exp.Anonymous) -> Wrong:
    """The refusal of `f(DISTINCT x) OVER (…)`, with the SELECT that gives its values."""
    window = node.find_ancestor(exp.Window)
    block = None if window is None else window.parent_select
    values = node.expressions[0].expressions
    what = f"{name}(DISTINCT …) OVER (…), which Spark does not run"
    if window is None or block is None or block.args.get("group") is not None:
        return Wrong(span(node), what, "Group in a subquery in FROM, and ask around it.")
    row = AGGREGATES[name]
    if row.arguments[0] > 1 or (row.over is not None and not row.collects):
        return Wrong(span(node), what, "Group DISTINCT rows in a subquery in FROM, and join its groups.")
    if row.once and row.over is None:
        plain = window.copy()
        plain.set("this", exp.Anonymous(this=name, expressions=[value.copy() for value in values]))
        return Wrong(span(node), what, f"Write {readable(plain)}.")
    select, keys = _written_out(row, values, window, block)
    joined = f" It gives a row per {keys}: join it by that." if keys else ""
    return Wrong(span(node), what, f"Write {select}.{joined}")


@dataclass(frozen=True)
class _Column:
    """A column of the joined rows: its expression, and its name there."""

    text: str
    name: str

    def __str__(self) -> str:
        return self.text if self.text == self.name else f"{self.text} AS {self.name}"


def _written_out(
    row: AggregateFunction, values: Sequence[exp.Expr], window: exp.Window, block: exp.Select
) -> tuple[str, str]:
    """The SELECT of the values of each frame, and the columns that tell its rows apart."""
    name, once = (COLLECTED_ONCE, f"{COLLECTED_ONCE}(") if row.collects else (row.name, f"{row.name}(DISTINCT ")
    taken: set[str] = set()
    groups = [_column(node, f"k{number}", block, taken) for number, node in enumerate(_partition(window), 1)]
    order = window.args.get("order")
    keys = [_column(item.this, f"t{number}", block, taken) for number, item in enumerate(_items(order), 1)]
    inputs = [_column(value, f"x{number}", block, taken) for number, value in enumerate(values, 1)]
    shown = _alias(window) or f"{name}_distinct"
    frame = _Frame.of(window)
    if order is None or frame.whole:
        columns, of = ", ".join(map(str, groups)), ", ".join(column.text for column in inputs)
        with_ = f"WITH {_ctes(block)[:-2]} " if _ctes(block) else ""
        select = f"{with_}SELECT {columns}{', ' if groups else ''}{once}{of}) AS {shown} {_from(block)}"
        grouped = ", ".join(column.text for column in groups)
        return select + (f" GROUP BY {grouped}" if groups else ""), ", ".join(column.name for column in groups)
    numbered = [] if frame.by_values else [_Column(f"{frame.number}() OVER ({_over(window)})", _NTH)]
    rows = ", ".join(map(str, [*groups, *keys, *inputs, *numbered]))
    apart = [*groups, *keys, *numbered]
    named = ", ".join(column.name for column in apart)
    own = ", ".join(f"w.{column.name}" for column in apart)
    of = ", ".join(f"r.{column.name}" for column in inputs)
    meets = [f"r.{column.name} <=> w.{column.name}" for column in groups]
    meets.append(frame.condition(keys[0].name) if frame.by_values else frame.bounds(_NTH))
    return (
        f"WITH {_ctes(block)}s AS (SELECT {rows} {_from(block)}) SELECT {own}, {once}{of}) AS {shown}"
        f" FROM (SELECT DISTINCT {named} FROM s) AS w LEFT JOIN (SELECT DISTINCT * FROM s) AS r"
        f" ON {' AND '.join(meets)} GROUP BY {own}"
    ), ", ".join(column.name for column in apart)


def _column(node: exp.Expr, otherwise: str, block: exp.Select, taken: set[str]) -> _Column:
    """An expression as a column: under its own name, the name of an equal output, or a new name."""
    alias = next((o.alias for o in block.expressions if isinstance(o, exp.Alias) and o.this == node), "")
    name = node.name if isinstance(node, exp.Column) else alias or otherwise
    name = otherwise if name.lower() in (*taken, _NTH) else name
    taken.add(name.lower())
    return _Column(readable(node), readable(exp.to_identifier(name)))


def _partition(window: exp.Window) -> Sequence[exp.Expr]:
    return window.args.get("partition_by") or []


def _items(order: exp.Expr | None) -> Sequence[exp.Expr]:
    return [] if order is None else order.expressions


def _alias(window: exp.Window) -> str:
    return readable(exp.to_identifier(window.parent.alias)) if isinstance(window.parent, exp.Alias) else ""


def _from(block: exp.Select) -> str:
    """The clauses from FROM to WHERE of a block, as Spark SQL."""
    read = exp.Select(expressions=[exp.Star()])
    for clause in ("from_", "joins", "laterals", "where"):
        part = block.args.get(clause)
        read.set(clause, [node.copy() for node in part] if isinstance(part, list) else part and part.copy())
    return readable(read).removeprefix("SELECT * ")


def _ctes(block: exp.Select) -> str:
    """The CTEs of a block, each followed by a comma."""
    with_ = block.args.get("with_")
    return "".join(f"{readable(cte)}, " for cte in with_.expressions) if with_ is not None else ""


def _over(window: exp.Window) -> str:
    parts = [f"PARTITION BY {', '.join(map(readable, _partition(window)))}"] if _partition(window) else []
    return " ".join([*parts, readable(window.args["order"]).strip()])


@dataclass(frozen=True)
class _Frame:
    """A frame of rows.

    start, end: signed distance from the row, as Spark SQL, or None if unbounded
    by_values: true for a RANGE of a number or a time
    descending, nulls_first: the direction of its order
    """

    start: str | None
    end: str | None
    by_values: bool
    number: str
    descending: bool
    nulls_first: bool

    @classmethod
    def of(cls, window: exp.Window) -> _Frame:
        spec, items = window.args.get("spec"), _items(window.args.get("order"))
        kind = "RANGE" if spec is None else str(spec.args.get("kind") or "ROWS").upper()
        ends = (None, "") if spec is None else (_bound(spec, "start"), _bound(spec, "end"))
        descending = bool(items and items[0].args.get("desc"))
        nulls_first = items[0].args.get("nulls_first") if items else None
        return cls(
            *ends,
            by_values=kind == "RANGE" and any(ends),
            number="row_number" if kind == "ROWS" else "rank",
            descending=descending,
            nulls_first=not descending if nulls_first is None else bool(nulls_first),
        )

    @property
    def whole(self) -> bool:
        """True if the frame is the whole partition."""
        return self.start is None and self.end is None

    def bounds(self, key: str) -> str:
        """The condition on the numbers or values of the order that holds from the first to the last row of a frame."""
        first, last = (self.end, self.start) if self.descending and self.by_values else (self.start, self.end)
        if self.descending and self.by_values:
            first, last = _turned(first), _turned(last)
        if first is None or last is None:
            return f"r.{key} <= w.{key}{last or ''}" if first is None else f"r.{key} >= w.{key}{first}"
        return f"r.{key} BETWEEN w.{key}{first} AND w.{key}{last}"

    def condition(self, key: str) -> str:
        """The same condition on values. Rows without a value are peers of each other."""
        terms = [f"(r.{key} IS NULL AND w.{key} IS NULL)", self.bounds(key)]
        if (self.start if self.nulls_first else self.end) is None:
            terms.append(f"r.{key} IS NULL")
        if (self.end if self.nulls_first else self.start) is None:
            terms.append(f"w.{key} IS NULL")
        return f"({' OR '.join(terms)})"


def _bound(spec: exp.Expr, side: str) -> str | None:
    value, direction = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
    if value is None or (isinstance(value, str) and value.upper() == "CURRENT ROW"):
        return ""
    if isinstance(value, str):
        return None
    return f" {'-' if direction == 'PRECEDING' else '+'} {readable(value)}"


def _turned(bound: str | None) -> str | None:
    """The same distance in the other direction."""
    return bound and f" {'+' if bound[1] == '-' else '-'}{bound[2:]}"
