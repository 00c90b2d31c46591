"""Writes Spark's values in Postgres' SQL: numbers, times, and structs, maps and lists as JSON.

Arithmetic wraps, or returns NULL or Infinity, as Spark's does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from view_algebra.engines.postgres.writer import ADD, ATOM, CAST, MULTIPLY, OTHER, Writer, constant
from view_algebra.language.above import ARITHMETIC
from view_algebra.language.expressions import Call, Constant, Expr, Field, bare_value, literal_text, whole_number
from view_algebra.language.lengths import COUNTED
from view_algebra.language.operators import BITWISE
from view_algebra.language.quoting import postgres_name
from view_algebra.language.times import MONTHS
from view_algebra.language.types import (
    BIGINT,
    COLLATED,
    DATE,
    DAYS,
    DOUBLE,
    DURATION,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Type,
)

EXACT = 2**63
"""Whole numbers below this fit a bigint."""


def average(call: Call, writer: Writer) -> tuple[str, int]:
    """A sum divided by a count, with the digits of Spark's average."""
    total, count = call.arguments
    if call.type == DOUBLE:
        return f"{writer.text(total, MULTIPLY)} / {writer.text(count, CAST)}", MULTIPLY
    sides = f"{writer.text(total)}, {writer.text(count)}"
    return f"spark.average({sides}, {call.type.precision}, {call.type.scale})", ATOM


def wide_sum(call: Call, writer: Writer) -> tuple[str, int]:
    """A sum stored in two parts, because Spark's decimals have at most 38 digits."""
    high, low, unit = (writer.text(a, MULTIPLY) for a in call.arguments)
    return f"spark.decimal({high} * {unit} + {low}, {call.type.precision}, {call.type.scale})", ATOM


def bitwise(operator: str, call: Call, writer: Writer) -> tuple[str, int]:
    """A bitwise operator, in parentheses because Postgres gives all of them one precedence."""
    left, right = (writer.text(a, ATOM) for a in call.arguments)
    return f"({left} {operator} {right})", ATOM


def arithmetic(call: Call, writer: Writer) -> tuple[str, int]:
    """Arithmetic that wraps or returns NULL or Infinity as Spark's does, by plain operators where neither can be."""
    name, kind = call.function, call.type
    operands = [writer.text(a) for a in call.arguments]
    if name == "negative":
        if kind.integral:
            return arithmetic(Call("-", (Constant("0", kind), call.arguments[0]), kind, place=call.place), writer)
        return f"-{writer.text(call.arguments[0], ATOM)}", MULTIPLY
    if name == "div":
        if call.arguments[0].type.name == "DECIMAL":
            return f"spark.wrap_bigint(div({operands[0]}, nullif({operands[1]}, 0)))", ATOM
        return f"spark.div({operands[0]}, {operands[1]})", ATOM
    if kind.name == "DECIMAL":
        return _decimal(call, operands, writer)
    if kind.integral:
        return _whole(call, operands, writer)
    if name == "/" and all(_was_integral(a) for a in call.arguments):
        left = writer.text(call.arguments[0], CAST)
        return f"{left}::double precision / nullif({operands[1]}, 0)", MULTIPLY
    sides = ", ".join(_double(a, text) for a, text in zip(call.arguments, operands, strict=True))
    return f"spark.{_WORDS[name]}({sides})", ATOM


_WORDS = {"+": "plus", "-": "minus", "*": "times", "/": "divide"}


def _plain(call: Call, writer: Writer, right: str | None = None) -> tuple[str, int]:
    binds = ADD if call.function in ("+", "-") else MULTIPLY
    left = writer.text(call.arguments[0], binds)
    return f"{left} {call.function} {right or writer.text(call.arguments[1], binds + 1)}", binds


def _whole(call: Call, operands: list[str], writer: Writer) -> tuple[str, int]:
    name, kind = call.function, call.type
    if name == "%":
        return _plain(call, writer, f"nullif({operands[1]}, 0)")
    if kind == BIGINT:
        bound = magnitude(call)
        if bound is not None and bound < EXACT:
            return _plain(call, writer)
        sides = ", ".join(_bigint(a, text) for a, text in zip(call.arguments, operands, strict=True))
        return f"spark.{_WORDS[name]}({sides})", ATOM
    left, right = (writer.text(a, CAST) for a in call.arguments)
    return f"spark.wrap_{kind.name.lower()}({left}::bigint {name} {right})", ATOM


def _decimal(call: Call, operands: list[str], writer: Writer) -> tuple[str, int]:
    name, kind = call.function, call.type
    p1, s1, p2, s2 = (n for a in call.arguments for n in (a.type.precision, a.type.scale))
    if name == "/":
        return f"spark.divide({operands[0]}, {operands[1]}, {kind.precision}, {kind.scale})", ATOM
    written = _plain(call, writer, f"nullif({operands[1]}, 0)" if name == "%" else None)
    digits = p1 + p2 + 1 if name == "*" else max(p1 - s1, p2 - s2) + max(s1, s2) + 1
    if digits <= MAX_PRECISION or (name == "%" and kind.precision < MAX_PRECISION):
        return written
    return f"spark.decimal({written[0]}, {kind.precision}, {kind.scale})", ATOM


def _was_integral(value: Expr) -> bool:
    if isinstance(value, Call) and value.function == "cast":
        return value.arguments[0].type.integral
    return False


def _bigint(value: Expr, text: str) -> str:
    bare = bare_value(value)
    return f"{text}::bigint" if isinstance(bare, Constant) and not bare.suffixed else text


def _double(value: Expr, text: str) -> str:
    inner = bare_value(value)
    if inner.type == DOUBLE:
        return text
    return f"{text}::double precision" if isinstance(inner, (Constant, Field)) else f"({text})::double precision"


def magnitude(value: Expr) -> int | None:
    """The greatest absolute value of a whole number, if known: of counts and of expressions over counts."""
    match value:
        case Field():
            return value.bound
        case Constant() if value.type.integral and value.value is not None:
            return abs(int(value.value))
        case Call(function="cast") if value.type.integral:
            return magnitude(value.arguments[0])
        case Call(function="coalesce"):
            bounds = [magnitude(a) for a in value.arguments]
            return None if None in bounds else max(b for b in bounds if b is not None)
        case Call(function="+" | "-" | "*") if len(value.arguments) == 2:
            left, right = (magnitude(a) for a in value.arguments)
            if left is None or right is None or all(isinstance(bare_value(a), Constant) for a in value.arguments):
                return None
            return left * right if value.function == "*" else left + right
    return None


def months_apart(call: Call, writer: Writer) -> tuple[str, int]:
    """The number of whole months, quarters or years between two times."""
    unit, *times = call.arguments
    begin, end = (writer.text(time, CAST) for time in times)
    whole = f"spark.months_apart({begin} AT TIME ZONE 'UTC', {end} AT TIME ZONE 'UTC')"
    months = MONTHS[literal_text(unit).lower()]
    return (whole, ATOM) if months == 1 else (f"{whole} / {months}", MULTIPLY)


def window_start(call: Call, writer: Writer) -> tuple[str, int]:
    """The start of the tumbling window that contains a time."""
    size, offset = (whole_number(a) for a in call.arguments[1:])
    return f"spark.shown(date_bin({length(size)}, {writer.text(call.arguments[0])}, {origin(offset)}))", ATOM


def hops(window: Call, writer: Writer) -> str:
    """The starts of the hopping windows that contain a time, as rows, none for NULL."""
    size, offset, slide = (whole_number(a) for a in window.arguments[1:])
    time, step = writer.text(window.arguments[0]), length(slide)
    last = f"date_bin({step}, {time}, {origin(offset)})"
    earliest = f"{writer.text(window.arguments[0], ADD)} - {length(size)} + interval '1 microsecond'"
    return f"generate_series({last}, {earliest}, -{step})"


def origin(offset: int) -> str:
    """The time from which windows are counted."""
    return "timestamptz '1970-01-01 00:00:00+00'" + (f" + {length(offset)}" if offset else "")


def window_end(call: Call, writer: Writer) -> tuple[str, int]:
    """The end of a window, from its start."""
    size = whole_number(call.arguments[1])
    return f"spark.shifted({writer.text(call.arguments[0])}, {length(size)})", ATOM


def whole_end(end: Call, writer: Writer) -> str:
    """The end of a window, even after the end of the calendar."""
    return f"{writer.text(end.arguments[0], ADD)} + {length(whole_number(end.arguments[1]))}"


def shifted(call: Call, writer: Writer) -> tuple[str, int]:
    """A time shifted by an INTERVAL, with days and months in UTC, or NULL outside of the calendar."""
    time, by = call.arguments
    sign = "-" if call.function[0] == "-" else ""
    return f"spark.shifted({writer.text(time)}, {sign}{writer.text(by)})", ATOM


def length(microseconds: int) -> str:
    """A duration as an interval of seconds."""
    whole, rest = divmod(microseconds, 1_000_000)
    return f"interval '{whole}.{rest:06d} seconds'" if rest else f"interval '{whole} seconds'"


def counted(call: Call, writer: Writer) -> tuple[str, int]:
    """The number of days, or of microseconds, of an interval of another view."""
    interval = writer.text(call.arguments[0])
    if call.arguments[0].type == DAYS:
        return f"extract(day FROM {interval})::bigint", CAST
    return f"(extract(epoch FROM {interval}) * 1000000)::bigint", CAST


_INTERVALS = {
    DAYS: "CASE WHEN abs({0}) <= 106751991 THEN make_interval(days => {0}::integer) END",
    DURATION: "make_interval(days => ({0} / 86400000000)::integer, secs => {0} % 86400000000 / 1000000.0)",
}
"""Numbers as intervals: days, within Spark's bound of 2^63 microseconds, or microseconds."""


def with_lengths(final: str, columns: Sequence[tuple[str, Type]]) -> str:
    """The text of a view, with Postgres' intervals in place of numbers that are durations."""
    if not any(kind in _INTERVALS for _, kind in columns):
        return final
    named = ((postgres_name(name), _INTERVALS.get(kind)) for name, kind in columns)
    shown = (name if form is None else f"{form.format(name)} AS {name}" for name, form in named)
    return "SELECT\n  " + ",\n  ".join(shown) + f"\nFROM (\n{final}\n) AS numbers"


_ELEMENTS, _ELEMENT, _NTH = '"->"', '"-> element"', '"-> place"'
"""Names that no column of a query has."""


def shares(call: Call, writer: Writer) -> tuple[str, int]:
    """Several percentiles as a list, or NULL without values."""
    values = [writer.text(a) for a in call.arguments]
    return f"CASE WHEN {values[0]} IS NOT NULL THEN jsonb_build_array({', '.join(values)}) END", ATOM


def window_as_json(call: Call, writer: Writer) -> tuple[str, int]:
    """A window in Spark's JSON, or NULL in a grouping without it."""
    start, end = call.arguments
    # the end of a window may be the first instant after the calendar
    after = whole_end(end, writer) if isinstance(end, Call) and end.function == "window_end" else writer.text(end)
    pairs = f"'start', {inside(start, writer)}, 'end', {in_json(after, end.type)}"
    time = writer.text(call.arguments[0], OTHER)
    return f"CASE WHEN {time} IS NOT NULL THEN jsonb_build_object({pairs}) END", ATOM


def member(whole: str, step: str, kind: Type) -> tuple[str, int]:
    """A value inside a nested one, which is stored as JSON."""
    if kind.nested:
        return f"nullif({whole} -> {step}, 'null')", ATOM
    if kind == STRING:
        return f"{whole} ->> {step}", OTHER
    if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return f"ltrim({whole} ->> {step}, '+')::{kind.postgres}", CAST  # before a year of five digits
    return f"({whole} ->> {step})::{kind.postgres}", CAST


def structured(call: Call, writer: Writer) -> tuple[str, int]:
    """Spark's JSON of a struct or a map, which omits NULL fields but keeps NULL entries."""
    pairs = zip(call.arguments[::2], call.arguments[1::2], strict=True)
    built = f"jsonb_build_object({', '.join(f'{writer.text(n)}, {inside(v, writer)}' for n, v in pairs)})"
    return (built if call.function == "map" else f"spark.struct({built})"), ATOM


def inside(value: Expr, writer: Writer) -> str:
    """A value in its form inside a nested one."""
    if value.type.name == "DECIMAL" or (value.type.name in ("DOUBLE", "FLOAT") and bare_value(value) is not value):
        return f"{writer.text(value, CAST)}::{value.type.postgres}"
    return in_json(writer.text(value), value.type)


def nested(call: Call, writer: Writer) -> tuple[str, int]:
    """A field, an element or an entry by a literal."""
    whole, step = call.arguments
    assert isinstance(step, Constant)
    return member(writer.text(whole, OTHER), constant(step), call.type)


def _elements(array: str) -> str:
    """The elements of a list as rows, with their positions."""
    return f"jsonb_array_elements({array}) WITH ORDINALITY AS {_ELEMENTS} ({_ELEMENT}, {_NTH})"


def from_entries(call: Call, writer: Writer) -> tuple[str, int]:
    """A map of the structs in a list: the last of several with one name wins, and nameless structs are dropped."""
    (listed,) = call.arguments
    assert listed.type.element is not None
    name, value = (constant(Constant(field, STRING)) for field, _ in listed.type.element.fields)
    array = writer.text(listed, OTHER)
    entries = f"jsonb_object_agg({_ELEMENT} ->> {name}, {_ELEMENT} -> {value} ORDER BY {_NTH})"
    entries += f" FILTER (WHERE {_ELEMENT} ->> {name} IS NOT NULL)"
    return f"CASE WHEN {array} IS NOT NULL THEN (SELECT coalesce({entries}, '{{}}') FROM {_elements(array)}) END", ATOM


def from_texts(call: Call, writer: Writer) -> tuple[str, int]:
    """A list of values from a list of their JSON texts, which every group has."""
    array = writer.text(call.arguments[0], OTHER)
    values = f"coalesce(jsonb_agg(({_ELEMENT} #>> '{{}}')::jsonb ORDER BY {_NTH}), '[]')"
    return f"(SELECT {values} FROM {_elements(array)})", ATOM


OF_ELEMENTS = {
    "transform": f"coalesce(jsonb_agg({{0}} ORDER BY {_NTH}), '[]')",
    "filter": f"coalesce(jsonb_agg({_ELEMENT} ORDER BY {_NTH}) FILTER (WHERE {{0}}), '[]')",
    "exists": "CASE WHEN bool_or({0}) THEN true WHEN bool_or(({0}) IS NULL) THEN NULL ELSE false END",
    "forall": "CASE WHEN bool_or(NOT ({0})) THEN false WHEN bool_or(({0}) IS NULL) THEN NULL ELSE true END",
}
"""Functions of a list's elements in SQL, with the body of their lambda in place of {0}."""


def over_elements(call: Call, writer: Writer) -> tuple[str, int]:
    """A function with a lambda, as a query over the list's elements whose columns are the lambda's variables."""
    listed, function = call.arguments
    assert isinstance(function, Call)
    (element, *index), body = function.arguments[:-1], function.arguments[-1]
    if call.function == "transform" and (field_of_each := _field_of_each(element, body)):
        return f"spark.field_of_each({writer.text(listed)}, {field_of_each})", ATOM
    array, kind = writer.text(listed, OTHER), listed.type.element or STRING
    columns = [from_json(_ELEMENT, kind), *[f"({_NTH} - 1)::integer"] * len(index)]
    named = ", ".join(f"{c} AS {writer.text(v)}" for c, v in zip(columns, (element, *index), strict=True))
    text = inside(body, writer) if call.function == "transform" else writer.text(body)
    result = OF_ELEMENTS[call.function].replace("{0}", text)
    rows = f"(SELECT {_ELEMENT}, {_NTH}, {named} FROM {_elements(array)}) AS {_ELEMENTS}"
    return f"CASE WHEN {array} IS NOT NULL THEN (SELECT {result} FROM {rows}) END", ATOM


def _field_of_each(variable: Expr, body: Expr) -> str | None:
    """The path of the field if the lambda is just `s -> s.kind`, or None."""
    if not (isinstance(body, Field) and isinstance(variable, Field) and body.path[:1] == variable.path):
        return None
    return f"ARRAY[{', '.join(constant(Constant(name, STRING)) for name in body.path[1:])}]::text[]"


def in_json(value: str, kind: Type) -> str:
    """A value as JSON, a time in the form that Spark is configured to write, in any reader's time zone."""
    return f"spark.json({value})" if kind in (TIMESTAMP, TIMESTAMP_NTZ) else value


def from_json(value: str, kind: Type) -> str:
    """A JSON value converted to its type."""
    if kind.nested:
        return f"nullif({value}, 'null')"
    text = f"({value} #>> '{{}}')"
    if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return f"ltrim{text[:-1]}, '+')::{kind.postgres}"  # before a year of five digits
    return f"{text} {COLLATED}" if kind == STRING else f"{text}::{kind.postgres}"


FORMS_OF_VALUES: dict[str, Callable[[Call, Writer], tuple[str, int]]] = {
    **dict.fromkeys(ARITHMETIC, arithmetic),
    "average": average,
    "wide sum": wide_sum,
    **{sign: partial(bitwise, "#" if sign == "^" else sign) for sign in BITWISE},
    **dict.fromkeys(("+ interval", "- interval"), shifted),
    "timestampdiff": months_apart,
    COUNTED: counted,
    "window_start": window_start,
    "window_end": window_end,
    "window": window_as_json,
    **dict.fromkeys((".", "[]"), nested),
    **dict.fromkeys(("named_struct", "map"), structured),
    **dict.fromkeys(OF_ELEMENTS, over_elements),
    "shares": shares,
    "map_from_entries": from_entries,
    "from_texts": from_texts,
}
"""The calls that this module writes."""
