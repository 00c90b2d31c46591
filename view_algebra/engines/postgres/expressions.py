"""Expressions: each by its kind, or by the template that the table of functions has for it.

What is plain in both engines stays plain; the rest goes through the functions of `spark_functions.sql`, or is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from view_algebra.engines.postgres.aggregates import aggregate, filter_of, merged, over_values, windowed
from view_algebra.engines.postgres.nested import (
    OF_ELEMENTS,
    from_entries,
    from_texts,
    member,
    nested,
    over_elements,
    shares,
    structured,
    window_as_json,
)
from view_algebra.engines.postgres.numbers import arithmetic, average, bitwise, wide_sum
from view_algebra.engines.postgres.templates import filled
from view_algebra.engines.postgres.times import counted, months_apart, shifted, window_end, window_start
from view_algebra.engines.postgres.writing import (
    AND,
    ATOM,
    CAST,
    COMPARE,
    GROUP_BELOW,
    IN,
    IS,
    NOT,
    OR,
    OTHER,
    Reading,
    by_bytes,
    constant,
    indented,
    is_column,
    typed_text,
)
from view_algebra.language.casts import cast_in_postgres, tried_in_postgres
from view_algebra.language.expressions import (
    NOW,
    Aggregate,
    Call,
    Case,
    Constant,
    Expr,
    Field,
    Merged,
    OverValues,
    Subquery,
    Windowed,
)
from view_algebra.language.fields import VARIABLE
from view_algebra.language.guards import ESCAPES_NOTHING
from view_algebra.language.lengths import COUNTED
from view_algebra.language.limits import leaves_calendar
from view_algebra.language.operators import BITWISE
from view_algebra.language.overloads import overload
from view_algebra.language.quoting import postgres_name, words
from view_algebra.language.times import BOUNDED
from view_algebra.language.types import DOUBLE, FLOAT, STRING, Type, inside
from view_algebra.refusals import AsksForRecords

_EXPLODED = "Aggregate its elements: SELECT k, sum(e) AS s FROM (…) LATERAL VIEW explode(x) t AS e GROUP BY k."


def expression(value: Expr, reading: Reading, least: int = 0) -> str:
    """An expression as Postgres text; in parentheses if it binds less than `least`."""
    text, binds = _written(value, reading)
    return f"({text})" if binds < least else text


def _written(value: Expr, reading: Reading) -> tuple[str, int]:
    match value:
        case Constant():
            return constant(value), ATOM
        case Field():
            return _field(value, reading)
        case Case():
            whens = "".join(f" WHEN {reading.text(w)} THEN {reading.text(t)}" for w, t in value.branches)
            otherwise = f" ELSE {reading.text(value.otherwise)}" if value.otherwise is not None else ""
            return f"CASE{whens}{otherwise} END", ATOM
        case Call():
            return _call(value, reading)
        case Aggregate():
            return aggregate(value, filter_of(value.condition, reading), reading)
        case OverValues():
            return over_values(value, reading), ATOM
        case Merged():
            return merged(value, reading)
        case Windowed():
            return windowed(value, reading)
        case Subquery():
            inner = "(\n" + indented(reading.query(value.query, replace(reading, depth=reading.depth + 1))) + "\n)"
            if value.kind == "exists":
                return f"EXISTS {inner}", ATOM
            if value.kind == "in" and value.operand is not None:
                return f"{reading.text(value.operand, OTHER)} IN {inner}", IN
            return inner, ATOM


def _field(column: Field, reading: Reading) -> tuple[str, int]:
    whole = postgres_name(column.path[0])
    if column.relation and column.relation != VARIABLE:
        whole = f"{reading.alias(column.relation, outer=column.outer)}.{whole}"
    if len(column.path) == 1:
        return whole, ATOM
    *outer, last = (constant(Constant(name, STRING)) for name in column.path[1:])
    return member(" -> ".join((whole, *outer)), last, column.type)


def _call(call: Call, reading: Reading) -> tuple[str, int]:
    text, binds = _unguarded(call, reading)
    if leaves_calendar(call) and call.function not in _WITHIN_CALENDAR:
        return f"spark.shown({text})", ATOM
    return text, binds


_WITHIN_CALENDAR = {
    *("+ interval", "- interval"),
    *words("window_start window_end date_add dateadd date_sub add_months last_day next_day make_date"),
}
"""Calls of which the text is NULL outside of the calendar by itself."""


def _unguarded(call: Call, reading: Reading) -> tuple[str, int]:
    form = _FORMS.get(call.function)
    if form is not None:
        return form(call, reading)
    row = overload(call)
    if call.function.startswith("session"):
        raise AsksForRecords(
            call.place,
            "session_window() above the aggregation",
            "Write a gap that is a literal, and no subquery beside it; or group the records of a source.",
        )
    if row is None or row.above is None:
        why = f": {row.why}" if row is not None and row.why else ""
        way_out = _EXPLODED if call.function in ("aggregate", "reduce") else GROUP_BELOW
        raise AsksForRecords(call.place, f"{call.function}() above the aggregation{why}", way_out)
    return filled(row.above, call, reading)


def _logical(call: Call, reading: Reading) -> tuple[str, int]:
    binds = AND if call.function == "and" else OR
    left, right = (reading.text(a, binds + n) for n, a in enumerate(call.arguments))
    return f"{left} {call.function.upper()} {right}", binds


def _not(call: Call, reading: Reading) -> tuple[str, int]:
    inner = call.arguments[0]
    if isinstance(inner, Call) and inner.function in ("is null", "<=>") and inner not in reading.grouped:
        sides = [reading.text(a, OTHER) for a in inner.arguments]
        return (f"{sides[0]} IS NOT NULL" if len(sides) == 1 else f"{sides[0]} IS DISTINCT FROM {sides[1]}"), IS
    return f"NOT {reading.text(inner, IS)}", NOT


def _is_null(call: Call, reading: Reading) -> tuple[str, int]:
    return f"{reading.text(call.arguments[0], OTHER)} {call.function.upper()}", IS


def _refuse_fractions(call: Call) -> None:
    """Refuses nested values with fractions in them: as JSON, Spark and Postgres may write one with other digits."""
    of_columns = all(isinstance(each, Field) for each in call.arguments)  # whose JSON is of one engine
    if call.arguments[0].type.nested and not of_columns and {DOUBLE, FLOAT} & {*inside(call.arguments[0].type)}:
        what = f"{call.function.upper()} of nested values with fractions, above the aggregation"
        raise AsksForRecords(call.place, what, "Compare the fractions themselves.")


def _compared(call: Call, reading: Reading) -> tuple[str, int]:
    _refuse_fractions(call)
    name = call.function
    first, second = call.arguments
    left, right = reading.text(first, OTHER), reading.text(second, OTHER)
    if name == "<=>":
        return f"{left} IS NOT DISTINCT FROM {right}", IS
    if name not in ("=", "<>") and first.type == STRING and not is_column(second):
        left = by_bytes(first, reading.text(first, OTHER if is_column(first) else CAST))
    return f"{left} {name} {right}", COMPARE


def _in(call: Call, reading: Reading) -> tuple[str, int]:
    _refuse_fractions(call)
    rest = ", ".join(reading.text(a) for a in call.arguments[1:])
    return f"{reading.text(call.arguments[0], OTHER)} IN ({rest})", IN


def _like(call: Call, reading: Reading) -> tuple[str, int]:
    value, wanted = call.arguments
    pattern_ = reading.text(wanted, OTHER)
    like = f"{reading.text(value, OTHER)} LIKE {pattern_}"
    if isinstance(wanted, Constant):
        return like, IN
    return f"CASE WHEN NOT {pattern_} ~ {constant(Constant(ESCAPES_NOTHING, STRING))} THEN {like} END", ATOM


_INSTEAD = {(DOUBLE, STRING): "Cast it to a decimal first: CAST(CAST(x AS DECIMAL(18, 2)) AS STRING)."}
"""What to write instead of a cast above the aggregation."""


def _is_spelled(kind: Type, wanted: Type) -> bool:
    """Does Postgres leave out a cast that Spark makes? A FLOAT beside a DECIMAL makes both a FLOAT there, and digits
    that a common DECIMAL has no room for stay.
    """
    return kind == FLOAT or (kind.name == wanted.name == "DECIMAL" and wanted.scale < kind.scale)


def _cast(call: Call, reading: Reading) -> tuple[str, int]:
    value = call.arguments[0]
    if call.implicit and value.type.numeric and call.type.numeric and not _is_spelled(value.type, call.type):
        return _written(value, reading)  # Postgres makes the same cast itself, in every place where Spark makes one
    template = (tried_in_postgres if call.function == "try_cast" else cast_in_postgres)(value.type, call.type)
    if isinstance(value, Constant) and value.type.numeric and call.type == FLOAT:
        template = "{0}::real"  # of what is no literal Spark may leave it out, where the result becomes a DOUBLE
    if template is None:
        raise AsksForRecords(
            call.place,
            f"CAST of {value.type} to {call.type} above the aggregation differs in Postgres",
            _INSTEAD.get((value.type, call.type)) or ("Cast it to DOUBLE." if call.type == FLOAT else GROUP_BELOW),
        )
    text, _ = filled(template, call, reading)
    if re.fullmatch(r"\{0\}::[a-z0-9_ (),]+", template):
        return text, CAST
    return text, ATOM if text.endswith(")") and not text.startswith("(") else 0


def _bounded_sequence(call: Call, reading: Reading) -> tuple[str, int]:
    return _call(replace(call, function="sequence"), reading)


def _endless(call: Call, reading: Reading) -> tuple[str, int]:
    """What is made of a time; of an infinity the same infinity."""
    made, time = (reading.text(each) for each in call.arguments)
    return f"coalesce({made}, spark.infinite({time})::{call.type.postgres})", ATOM


_FORMS: dict[str, Callable[[Call, Reading], tuple[str, int]]] = {
    **dict.fromkeys(("and", "or"), _logical),
    "not": _not,
    **dict.fromkeys(("is null", "is not null"), _is_null),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), _compared),
    "in": _in,
    "like": _like,
    **dict.fromkeys(("cast", "try_cast"), _cast),
    **dict.fromkeys(("+", "-", "*", "/", "%", "div", "negative"), arithmetic),
    "average": average,
    "wide sum": wide_sum,
    **dict.fromkeys(("+ interval", "- interval"), shifted),
    "timestampdiff": months_apart,
    COUNTED: counted,
    BOUNDED: _bounded_sequence,
    "finite": lambda call, reading: (f"spark.shown({reading.text(call.arguments[0])})", ATOM),
    "endless": _endless,
    NOW: lambda _call, _reading: ("now()", ATOM),
    "window_start": window_start,
    "window_end": window_end,
    "window": window_as_json,
    **dict.fromkeys((".", "[]", "to_json"), nested),
    **dict.fromkeys(("named_struct", "map"), structured),
    **dict.fromkeys(OF_ELEMENTS, over_elements),
    "shares": shares,
    "map_from_entries": from_entries,
    "from_texts": from_texts,
    "row": lambda call, reading: (f"({', '.join(typed_text(a, reading) for a in call.arguments)})", ATOM),
    **{each: partial(bitwise, "#" if each == "^" else each) for each in BITWISE},
    "~": lambda call, reading: (f"(~{reading.text(call.arguments[0], ATOM)})", ATOM),
}
"""What is not a function of the table."""
