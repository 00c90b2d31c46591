"""The rule for every expression above the cells: Postgres computes it as Spark does, or there is an obstacle.

The placement of a view asks here about every value, before Postgres' texts are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from view_algebra.language.aggregates import AGGREGATES, takes_distinct
from view_algebra.language.expressions import (
    NOW,
    Aggregate,
    Call,
    Constant,
    Expr,
    Field,
    Generator,
    NeedsRecords,
    Place,
    Windowed,
)
from view_algebra.language.lengths import COUNTED
from view_algebra.language.meeting import cast_in_postgres, tried_in_postgres
from view_algebra.language.operators import BITWISE
from view_algebra.language.overloads import overload
from view_algebra.language.structs import scalars
from view_algebra.language.times import BOUNDED
from view_algebra.language.types import DOUBLE, FLOAT, STRING, inside


@dataclass(frozen=True)
class Obstacle:
    """A part of a query that Postgres does not compute as Spark does, why, and the author's way out."""

    place: Place
    reason: str
    way_out: str


GROUP_BELOW = (
    "Compute it for each record, in the subquery in FROM that reads the source: FROM (SELECT *, f(x) AS y FROM s)."
    " Use y here, and in GROUP BY. Or leave it to the readers of the view."
)
"""The way out if Postgres has no equivalent."""

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
ARITHMETIC = ("+", "-", "*", "/", "%", "div", "negative")
CAST_CALLS = ("cast", "try_cast")

WRITER_FORMS = frozenset(
    {
        *("and", "or", "not", "is null", "is not null", "in", "like", "row", "~", "lambda"),
        *(*COMPARISONS, *ARITHMETIC, *CAST_CALLS, *BITWISE),
        *("transform", "filter", "exists", "forall"),
        *("average", "wide sum", "shares", "from_texts", "map_from_entries"),
        *("+ interval", "- interval", "timestampdiff", COUNTED, BOUNDED, "finite", "endless", NOW),
        *("window_start", "window_end", "window"),
        *(".", "[]", "to_json", "named_struct", "map"),
    }
)
"""Calls that the Postgres writer has a function for. Every other call needs a template in the table of functions."""


def obstacle(part: Expr) -> Obstacle | None:
    """The obstacle to computing an expression above the cells, apart from those in its arguments, or None.

    >>> from view_algebra.language.types import INT
    >>> obstacle(Call("/", (Field("t", ("x",), FLOAT), Field("t", ("y",), FLOAT)), FLOAT)).reason
    'above the aggregation, Postgres does not compute / of FLOAT as Spark does'
    >>> obstacle(Call("+", (Field("t", ("x",), INT), Field("t", ("y",), INT)), INT))
    """
    match part:
        case NeedsRecords():
            return Obstacle(part.place, part.reason, part.way_out)
        case Call():
            return _call_obstacle(part)
        case Aggregate():
            return _aggregate_obstacle(part)
        case Windowed() if part.function in AGGREGATES and not part.ignore_nulls:
            return _aggregate_obstacle(part)
    return None


def _differs(what: str) -> str:
    return f"above the aggregation, Postgres does not compute {what} as Spark does"


def generator_obstacle(generator: Generator) -> Obstacle | None:
    """The obstacle to exploding by this generator above the cells, or None."""
    if generator.argument.type.name == "MAP" and generator.positions:
        way_out = "Write explode(…), which has no positions."
        return Obstacle(generator.place, _differs("posexplode() of a map"), way_out)
    return None


def _call_obstacle(call: Call) -> Obstacle | None:
    name = call.function
    if name in (*COMPARISONS, "in"):
        return _fraction_obstacle(call)
    if name in CAST_CALLS:
        return _cast_obstacle(call)
    if name in ARITHMETIC:
        return _arithmetic_obstacle(call)
    if name == "window_start" and len(call.arguments) > HOPPING:
        way_out = "Hop over the records, or add up by sum(x) OVER (ORDER BY t RANGE BETWEEN INTERVAL … PRECEDING …)."
        return Obstacle(call.place, _differs("a hopping window"), way_out)
    if name == "to_json" or (name in (".", "[]") and not is_step(call.arguments[1])):
        as_json = "Leave to_json() out: readers see JSON anyway. Collect a set of lists from records."
        way_out = as_json if name == "to_json" else "Select its parts below the aggregation."
        return Obstacle(call.place, _differs("a nested value"), way_out)
    if name in WRITER_FORMS:
        return None
    if name.startswith("session"):
        way_out = "Write a literal as the gap, without a subquery next to it. Or group the records of a source."
        return Obstacle(call.place, _differs("session_window()"), way_out)
    row = overload(call)
    if row is not None and row.above is not None:
        return None
    why = f": {row.why}" if row is not None and row.why else ""
    way_out = _EXPLODED if name in ("aggregate", "reduce") else GROUP_BELOW
    return Obstacle(call.place, _differs(f"{name}()") + why, way_out)


HOPPING = 3
"""The number of arguments of a tumbling window's start. A hopping window's start also has the slide."""

_EXPLODED = "Aggregate its elements: SELECT k, sum(e) AS s FROM (…) LATERAL VIEW explode(x) t AS e GROUP BY k."


def is_step(key: Expr) -> bool:
    """True if a key is a literal that names a field, an entry, or an element counted from the first."""
    if not isinstance(key, Constant):
        return False
    return not (key.value is not None and key.type.numeric and key.value.startswith("-"))


def _fraction_obstacle(call: Call) -> Obstacle | None:
    """Fractions inside nested values: Spark's and Postgres' JSON may show different digits of one."""
    of_columns = all(isinstance(side, Field) for side in call.arguments)  # one engine wrote their JSON
    if not call.arguments[0].type.nested or of_columns or not {DOUBLE, FLOAT} & {*inside(call.arguments[0].type)}:
        return None
    what = _differs(f"{call.function.upper()} of nested values with fractions")
    return Obstacle(call.place, what, "Compare the fractions themselves.")


def _arithmetic_obstacle(call: Call) -> Obstacle | None:
    name, kind = call.function, call.type
    if name in ("negative", "div") or kind.name == "DECIMAL" or kind.integral:
        return None
    if kind.name != "FLOAT" and name != "%":
        return None
    way_out = "Write CAST(… AS DOUBLE)." if kind.name == "FLOAT" else "Cast both sides to DECIMAL."
    return Obstacle(call.place, _differs(f"{name} of {kind}"), way_out)


def _cast_obstacle(call: Call) -> Obstacle | None:
    if is_left_out(call) or cast_template(call) is not None:
        return None
    (value,) = call.arguments
    what = _differs(f"CAST of {value.type} to {call.type}")
    way_out = "Cast it to DOUBLE." if call.type == FLOAT else GROUP_BELOW
    if (value.type, call.type) == (DOUBLE, STRING):
        way_out = "Cast it to a decimal first: CAST(CAST(x AS DECIMAL(18, 2)) AS STRING)."
    return Obstacle(call.place, what, way_out)


def is_left_out(call: Call) -> bool:
    """True for a cast between numbers that Postgres makes implicitly wherever Spark does.

    Postgres does not turn a DECIMAL next to a FLOAT into a FLOAT, and keeps digits that a common DECIMAL would drop.
    """
    kind, wanted = call.arguments[0].type, call.type
    narrows = kind.name == wanted.name == "DECIMAL" and wanted.scale < kind.scale
    return call.implicit and kind.numeric and wanted.numeric and kind != FLOAT and not narrows


def cast_template(call: Call) -> str | None:
    """Postgres' template of a cast, `{0}` for its operand, or None if Postgres has none that agrees with Spark."""
    (value,) = call.arguments
    if isinstance(value, Constant) and value.type.numeric and call.type == FLOAT:
        return "{0}::real"  # Spark may omit the cast of a non-literal if the result becomes a DOUBLE
    return (tried_in_postgres if call.function == "try_cast" else cast_in_postgres)(value.type, call.type)


def _aggregate_obstacle(call: Aggregate | Windowed) -> Obstacle | None:
    name, row = call.function, AGGREGATES[call.function]
    if isinstance(call, Aggregate):
        if row.last is not None:
            return None
        if row.rows is not None:
            return _list_obstacle(call, row.rows)
    if row.above is None:
        way_out = "Take the row by row_number() OVER (PARTITION BY … ORDER BY …) = 1 in a subquery."
        if row.rows is not None:
            way_out = "Compute it with GROUP BY in a subquery, and join that."
        elif row.by_value is not None:
            way_out = "Compute it over the records of a source."
        if isinstance(call, Windowed) and call.order:
            way_out = _SO_FAR
        return Obstacle(call.place, _differs(f"{name}()"), row.exactly or way_out)
    if isinstance(call, Aggregate) and call.distinct and not takes_distinct(call):
        reason = _differs(f"{name}(DISTINCT …)")
        return Obstacle(call.place, reason, "Take DISTINCT rows in a subquery.")
    return None


_SO_FAR = (
    "Join each row with those before it: SELECT a.id, f(b.x) AS x FROM s AS a JOIN s AS b ON b.k = a.k AND b.ts <= a.ts"
    " GROUP BY a.id."
)
"""The way out for an ordered aggregate, whose result differs from row to row."""


def _list_obstacle(call: Aggregate, rows: str) -> Obstacle | None:
    """The obstacle to an aggregate that lists the values of plain rows, or None."""
    if call.distinct:
        reason = _differs(f"{call.function}(DISTINCT …)")
        return Obstacle(call.place, reason, "Take DISTINCT rows in a subquery.")
    if "DISTINCT" in rows and any(True for _ in sort_keys(call)):
        way_out = "Take DISTINCT rows in a subquery, and sort_array(collect_list(…)) of them."
        return Obstacle(call.place, _differs(f"{call.function}() of structs"), way_out)
    return None


def sort_keys(call: Aggregate) -> Iterator[Expr]:
    """The scalars that an aggregate sorts its values by, if they are not the values themselves."""
    for argument in call.arguments[1:]:
        if not isinstance(argument, Constant):
            yield from scalars(argument)
