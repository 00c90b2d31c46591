"""Writes typed expressions as Spark SQL, which runs below the aggregation.

A record's sequence that no condition bounds is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from view_algebra.compiled import JSON_TIMES, SHORTENED
from view_algebra.language.calendar_bounds import (
    READS_TIMES,
    leaves_calendar,
    not_alone,
    or_endless,
    read_time,
    within_calendar,
)
from view_algebra.language.expressions import (
    NOW,
    Aggregate,
    Call,
    Case,
    Constant,
    Expr,
    Field,
    Merged,
    NeedsRecords,
    OverValues,
    Subquery,
    Windowed,
    literal_text,
    whole_number,
)
from view_algebra.language.like_patterns import like_as_regex, like_as_regex_in_spark, refuses_pattern
from view_algebra.language.long_numbers import short_number
from view_algebra.language.operators import BITWISE
from view_algebra.language.overloads import overload
from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.storable import as_text, clean_json, makes_any_text, read_json, text_of_bytes
from view_algebra.language.times import BOUNDED, MOST_ELEMENTS
from view_algebra.language.types import BOOLEAN, CALENDAR, DATE, FIRST_MICROSECOND, STRING, TIMESTAMP, TIMESTAMP_NTZ
from view_algebra.refusals import Wrong


def without_bound(call: Call, first: str, last: str, step: str = "") -> Wrong:
    """The refusal of a sequence of unbounded length, with a condition that would bound it."""
    low, high = (last, first) if step.startswith("-") else (first, last)
    longest = str(USUAL * abs(int(step.rstrip("L") or 1)))
    if call.arguments[0].type == TIMESTAMP:
        longest = next(length for least, length in _LENGTHS if int(step) >= least)
        step = f"INTERVAL {step} SECONDS"
    within = f"{high} <= {low} + {longest}" if step else f"{high} BETWEEN {low} - {longest} AND {low} + {longest}"
    bounds = ", ".join((first, last, step) if step else (first, last))
    way_out = (
        f"Write CASE WHEN {within} THEN sequence({bounds}) END. A record with a longer one then has no elements. "
        f"A condition in WHERE bounds it as well. At most {MOST_ELEMENTS:,} elements are allowed."
    )
    return Wrong(call.place, f"{call.function}() of a record has no bound", way_out)


USUAL = 1_000
"""Elements that the example condition of a refusal allows."""

_LENGTHS = ((86_400, "INTERVAL 366 DAYS"), (3_600, "INTERVAL 31 DAYS"), (60, "INTERVAL 1 DAY"), (0, "INTERVAL 1 HOUR"))
"""Lengths that the example condition of a refusal allows, by the least seconds of a step."""


_COMPARISON = 4

_BINDS = {
    "or": 1,
    "and": 2,
    "not": 3,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>", "in", "like", "is null", "is not null"), _COMPARISON),
    **dict.fromkeys(("+", "-", "+ interval", "- interval"), 5),
    **dict.fromkeys(("*", "/", "%", "div"), 6),
    "negative": 7,
}
_ATOM = 9


def spark(expression: Expr, least: int = 0) -> str:
    """An expression as Spark SQL, in parentheses if it binds less tightly than `least`.

    >>> from view_algebra.language.types import BIGINT
    >>> a, b = Field("", ("a",), BIGINT), Field("", ("payload", "user-id"), BIGINT)
    >>> spark(Call("*", (Call("+", (a, b), BIGINT), b), BIGINT))
    '(a + payload.`user-id`) * payload.`user-id`'
    """
    text, binds = _text_and_precedence(expression)
    return f"({text})" if binds < least else text


def _text_and_precedence(expression: Expr) -> tuple[str, int]:
    match expression:
        case Constant():
            return constant(expression), _ATOM
        case Field(path=("kafka_headers",)):
            return _HEADERS, _ATOM
        case Field():
            return ".".join(spark_name(part) for part in expression.path), _ATOM
        case Case():
            whens = " ".join(f"WHEN {spark(when)} THEN {spark(then)}" for when, then in expression.branches)
            otherwise = f" ELSE {spark(expression.otherwise)}" if expression.otherwise is not None else ""
            return f"CASE {whens}{otherwise} END", _ATOM
        case Call():
            return _call(expression)
        case Aggregate() | Windowed() | OverValues():
            raise Wrong(
                expression.place,
                f"{expression.function}() cannot be computed below the aggregation",
                "Compute it in a subquery.",
            )
        case Merged():
            raise AssertionError("cells are merged above the aggregation")
        case NeedsRecords():
            raise AssertionError("the placement leaves no such expression to this writer")
        case Subquery():
            raise Wrong(
                expression.place,
                "a subquery cannot be computed below the aggregation",
                "Put it into WHERE, FILTER or GROUP BY. Or group by the columns that it names, and write it outside.",
            )


_HEADERS = "transform(kafka_headers, h -> struct(replace(h.key, chr(0), '\ufffd') AS key, h.value AS value))"
"""A record's headers, with keys that Postgres can store."""


def _call(call: Call) -> tuple[str, int]:
    """A call whose value Postgres can store: NULL for a time outside of the calendar, U+FFFD for invalid characters."""
    text, binds = _unguarded(call)
    if leaves_calendar(call):
        return within_calendar(text, call.type), _ATOM
    if makes_any_text(call):
        return as_text(text), _ATOM
    return text, binds


def _unguarded(call: Call) -> tuple[str, int]:
    name, arguments = call.function, call.arguments
    if name == NOW:
        raise Wrong(call.place, "the clock cannot be read below the aggregation: records are read at any time", _ABOVE)
    if name == "cast" and call.implicit:
        return _text_and_precedence(arguments[0])
    binds = _BINDS.get(name, _ATOM)
    form = _FORMS.get(name)
    if form is not None:
        text = form(call)
        return text, _COMPARISON if text.endswith("IS NOT NULL") else binds
    if binds < _ATOM:
        # a - (b - c) and a / (b * c) keep their parentheses: only a left side may bind equally, except in a comparison
        left = spark(arguments[0], binds + (binds == _COMPARISON))
        return f"{left} {name.upper()} {spark(arguments[1], binds + 1)}", binds
    row = overload(call)
    if row is not None and row.above_only:
        raise without_bound(call, *(spark(argument, _ATOM) for argument in arguments))
    if row is not None and row.below is not None:
        return row.below.format(*(spark(argument, _ATOM) for argument in arguments)), _ATOM
    return f"{name}({', '.join(map(spark, arguments))})", _ATOM


_ABOVE = (
    "Aggregate first, and use the clock around it, as in now() - max(ts). Or select it in a view of rows, and aggregate"
    " that view. WHERE and FILTER accept the clock."
)


def _bounded_sequence(call: Call) -> str:
    """A sequence that conditions bound, still in the guard of sequences, because its bounds may have wrapped around."""
    row = overload(replace(call, function="sequence"))
    assert row is not None, call
    assert row.below is not None, row
    return row.below.format(*(spark(argument, _ATOM) for argument in call.arguments))


def storable(expression: Expr) -> str:
    """An expression in the form that Postgres stores: JSON for a nested value, text of a bytea for bytes."""
    text = spark(expression)
    if expression.type.name == "BINARY":
        return f"concat('\\\\x', hex({text}))"
    return f"to_json({text}{_JSON_TIMES})" if expression.type.nested else text


BEGINNING = 100
"""Characters kept of a long text. With the digest, this makes at least `SHORTEST` bytes."""

SHORTEST = len(SHORTENED.encode()) + 64
"""Least bytes of a shortened text."""


def shortened(text: str, longest: int) -> str:
    """A text or, if it has more than `longest` bytes, its beginning and its SHA-256. Equal texts stay equal.

    So that no two texts become one, a text that looks shortened is shortened, too. The rare case is in a lambda, which
    Spark keeps out of the code that it generates.
    """
    beginning = max(0, min(BEGINNING, (longest - SHORTEST) // 4))
    return (
        f"CASE WHEN octet_length({text}) < {min(longest + 1, SHORTEST)} THEN {text}"
        f" ELSE element_at(transform(array({text}), t -> CASE"
        f" WHEN octet_length(t) > {longest} OR contains(t, '{SHORTENED}')"
        f" THEN concat(left(t, {beginning}), '{SHORTENED}', sha2(CAST(t AS BINARY), 256)) ELSE t END), 1) END"
    )


def _unsigned(value: Expr) -> str:
    """The operand of a sign, in parentheses if it is negative: two signs would begin a comment."""
    text = spark(value, _ATOM)
    return f"({text})" if text.startswith("-") else text


def _not(call: Call) -> str:
    inner = call.arguments[0]
    if isinstance(inner, Call) and inner.function == "is null":
        return f"{spark(inner.arguments[0], 5)} IS NOT NULL"
    return f"NOT {spark(inner, 4)}"


def _window_start(call: Call) -> str:
    """The start of a tumbling window, as in Spark's own window(), also before 1970."""
    if len(call.arguments) > 3:
        raise _only_grouped(call, "window(…, …, …)")
    time, size, offset = call.arguments
    moved = "" if offset == Constant("0", offset.type) else f" - {spark(offset)}"
    return f"timestamp_micros(unix_micros({spark(time)}) - pmod(unix_micros({spark(time)}){moved}, {spark(size)}))"


def _pane_start(call: Call) -> str:
    """The start of a tumbling window, but not before the calendar's first microsecond."""
    time, size, offset = call.arguments
    at = f"unix_micros({spark(time)})"
    moved = "" if offset == Constant("0", offset.type) else f" - {spark(offset)}"
    return f"timestamp_micros({at} - least(pmod({at}{moved}, {spark(size)}), {at} + {-FIRST_MICROSECOND}L))"


def _hops(call: Call) -> str:
    """The starts of all hopping windows that a record is in."""
    time, size, offset, slide = map(spark, call.arguments)
    first, last = hop_bounds(time, size, offset, slide)
    start = "timestamp_micros(m)"
    shown = f"CASE WHEN {start} >= {CALENDAR['TIMESTAMP'][0]} THEN {start} END"
    return f"transform(sequence({first}, {last}, {slide}), m -> {shown})"


def hop_bounds(time: str, size: str, offset: str, slide: str) -> tuple[str, str]:
    """Spark SQL of the starts, in microseconds, of the first and the last hopping window that contain a time."""
    at, before = f"unix_micros({time})", f"unix_micros({time}) - {size}"
    first, last = (f"{t} - pmod({t} - {offset}, {slide})" for t in (before, at))
    return f"{first} + {slide}", last


def _lambda(call: Call) -> str:
    *variables, body = map(spark, call.arguments)
    names = variables[0] if len(variables) == 1 else f"({', '.join(variables)})"
    return f"{names} -> {body}"


def _bitwise(operator: str, call: Call) -> str:
    left, right = (spark(a, _ATOM) for a in call.arguments)
    return f"({left} {operator} {right})"


def _pane_bits(call: Call) -> str:
    """The bit of a record's pane in its block, or NULL if it belongs to another word of 64 bits."""
    time = spark(call.arguments[0])
    pane, offset, panes, word = (whole_number(a) for a in call.arguments[1:])
    moved = f" - {offset}L" if offset else ""
    number = f"pmod(unix_micros({time}){moved}, {pane * panes}L) div {pane}L"
    bit = f"shiftleft(1L, CAST({number} AS INT))"  # Java shifts modulo 64
    return bit if panes <= 64 else f"CASE ({number}) div 64 WHEN {word} THEN {bit} END"


def _only_grouped(call: Call, what: str) -> Wrong:
    return Wrong(call.place, f"GROUP BY lacks {what}", f"GROUP BY {what} itself, and compute with it in a query above.")


def _session(call: Call) -> str:
    raise _only_grouped(call, "session_window(…)")


def _window(call: Call) -> str:
    start, end = call.arguments
    assert isinstance(end, Call)
    return f"named_struct('start', {spark(start)}, 'end', {_unguarded(end)[0]})"  # a whole window


def _months_apart(call: Call) -> str:
    unit, begin, end = call.arguments
    return f"timestampdiff({literal_text(unit)}, {spark(begin)}, {spark(end)})"


def _like(call: Call) -> str:
    text, pattern = call.arguments
    if isinstance(pattern, Constant):
        regex = like_as_regex(pattern.value or "")
        like = f"LIKE {spark(pattern, 5)}" if regex is None else f"RLIKE {constant(Constant(regex, STRING))}"
        return f"{spark(text, 5)} {like}"
    refused = refuses_pattern(spark(pattern, 5))
    return f"CASE WHEN NOT ({refused}) THEN {spark(text, 5)} RLIKE {like_as_regex_in_spark(spark(pattern))} END"


def _cast(call: Call) -> str:
    text = spark(call.arguments[0])
    if call.type == STRING and call.arguments[0].type.name == "BINARY":
        return text_of_bytes(text)
    if call.type.name == "DECIMAL" and call.arguments[0].type == STRING:
        text = short_number(text)
    if call.type == TIMESTAMP and call.arguments[0].type == STRING:
        text = not_alone(text)
    return f"CAST({text} AS {call.type.spark})"


def _read_time(call: Call) -> str:
    if call.arguments[0].type != STRING:
        return _cast(call) if call.type == TIMESTAMP else f"{call.function}({spark(call.arguments[0])})"
    return read_time(call.function, [*map(spark, call.arguments)])


def _shifted(call: Call) -> str:
    time, length = call.arguments
    return f"{spark(time, 5)} {call.function[0]} {spark(length)}"


def _from_entries(call: Call) -> str:
    """map_from_entries() without entries that lack a name, at which Spark fails."""
    (listed,) = call.arguments
    assert listed.type.element is not None
    name = spark_name(listed.type.element.fields[0][0])
    return f"map_from_entries(filter({spark(listed)}, e -> e.{name} IS NOT NULL))"


def _from_json(call: Call) -> str:
    text, schema = map(spark, call.arguments)
    return read_json(text, schema, call.type)


def _json_tuple(call: Call) -> str:
    text, *fields = map(spark, call.arguments)
    return f"json_tuple({', '.join([clean_json(text), *fields])})"


def _from_texts(call: Call) -> str:
    assert call.type.element is not None
    schema = constant(Constant(call.type.element.spark, STRING))
    return f"transform({spark(call.arguments[0])}, text -> from_json(text, {schema}))"


_FORMS: dict[str, Callable[[Call], str]] = {
    "cast": _cast,
    "try_cast": lambda c: f"try_cast({spark(c.arguments[0])} AS {c.type.spark})",
    **dict.fromkeys(READS_TIMES, _read_time),
    "json_tuple": _json_tuple,
    "from_json": _from_json,
    "not": _not,
    "like": _like,
    "is null": lambda c: f"{spark(c.arguments[0], 5)} IS NULL",
    "is not null": lambda c: f"{spark(c.arguments[0], 5)} IS NOT NULL",
    "in": lambda c: f"{spark(c.arguments[0], 5)} IN ({', '.join(map(spark, c.arguments[1:]))})",
    "negative": lambda c: f"-{_unsigned(c.arguments[0])}",
    **dict.fromkeys(("+ interval", "- interval"), _shifted),
    "timestampdiff": _months_apart,
    BOUNDED: _bounded_sequence,
    "finite": lambda c: within_calendar(spark(c.arguments[0]), c.type),
    "endless": lambda c: or_endless(spark(c.arguments[0]), spark(c.arguments[1]), c.arguments[1].type, c.type),
    "window_start": _window_start,
    "pane_start": _pane_start,
    "window_end": lambda c: f"timestamp_micros(unix_micros({spark(c.arguments[0])}) + {spark(c.arguments[1])})",
    "hops": _hops,
    "lambda": _lambda,
    **{operator: partial(_bitwise, operator) for operator in BITWISE},
    "~": lambda c: f"(~{spark(c.arguments[0], _ATOM)})",
    "pane_bits": _pane_bits,
    "window": _window,
    **dict.fromkeys(("session", "session_start", "session_end"), _session),
    "session_until": lambda c: f"try_add({spark(c.arguments[0])}, CAST({spark(c.arguments[1])} AS INTERVAL))",
    "map_from_entries": _from_entries,
    "from_texts": _from_texts,
    ".": lambda c: f"{spark(c.arguments[0], _ATOM)}.{spark_name(literal_text(c.arguments[1]))}",
    "[]": lambda c: f"{spark(c.arguments[0], _ATOM)}[{spark(c.arguments[1])}]",
}
"""Calls that are not written as name(arguments) or left OPERATOR right."""


def constant(literal: Constant) -> str:
    r"""A literal in Spark's syntax, with exactly its type.

    >>> print(constant(Constant("it's", STRING)))
    'it\'s'
    """
    value, kind = literal.value, literal.type
    if value is None:
        return "NULL"
    if kind == STRING:
        return spark_text(value)
    if kind == BOOLEAN:
        return value
    if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return f"{kind.name} '{value}'"
    match kind.name:
        case "INTERVAL":
            count, unit = value.split(" ")
            months = unit == "quarter"
            return f"INTERVAL '{int(count) * 3 if months else count}' {'MONTH' if months else unit.upper()}"
        case "BIGINT":
            return f"{value}L"
        case "DECIMAL" if "." not in value:
            return f"{value}BD"
        case "DOUBLE" if "e" not in value.lower():
            return f"{value}D"
        case "TINYINT" | "SMALLINT" if literal.suffixed:
            return f"{value}{kind.name[0] if kind.name == 'SMALLINT' else 'Y'}"
        case "TINYINT" | "SMALLINT" | "FLOAT":
            return f"CAST({value} AS {kind.name})"
    return value


_JSON_TIMES = f", map({', '.join(constant(Constant(text, STRING)) for pair in JSON_TIMES.items() for text in pair)})"
