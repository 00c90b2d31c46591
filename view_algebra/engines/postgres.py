"""Typed expressions as Postgres SQL: what runs above the aggregation, with Spark's meaning.

What is plain in both engines stays plain; the rest goes through the functions of `spark_functions.sql`, or is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from view_algebra.engines.spark import ESCAPES_NOTHING
from view_algebra.language.aggregates import AGGREGATES, known, only
from view_algebra.language.casts import cast_in_postgres, tried_in_postgres
from view_algebra.language.expressions import (
    TRUE,
    Aggregate,
    Call,
    Case,
    Constant,
    Expr,
    Field,
    Merged,
    Order,
    OverValues,
    Query,
    Subquery,
    Windowed,
)
from view_algebra.language.fields import VARIABLE
from view_algebra.language.literals import pattern
from view_algebra.language.merges import MERGES
from view_algebra.language.operators import BITWISE
from view_algebra.language.overloads import overload
from view_algebra.language.quoting import postgres_name, postgres_text
from view_algebra.language.regexes import decides, finds, replacement
from view_algebra.language.structs import scalars
from view_algebra.language.time_windows import by_bounds
from view_algebra.language.times import MONTHS
from view_algebra.language.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Type,
)
from view_algebra.refusals import Wrong
from view_algebra.typed.names import CELL

OR, AND, NOT, IS, COMPARE, IN, OTHER, ADD, MULTIPLY, CAST, ATOM = range(1, 12)
"""How tightly Postgres binds, loosest first."""

GROUP_BELOW = "Compute it of a record, below the aggregation, and group by it; or leave it to who reads the view."

_EXPLODED = "Aggregate its elements: SELECT k, sum(e) AS s FROM (…) LATERAL VIEW explode(x) t AS e GROUP BY k."

EXACT = 2**63
"""Whole numbers below this fit a bigint."""

_ELEMENTS, _ELEMENT, _PLACE = '"->"', '"-> element"', '"-> place"'
"""Names that no column of a query has."""

_INTERVAL = {"quarter": "month"}


@dataclass(frozen=True)
class Reading:
    """How a query reads its tables of cells: their names.

    query: how a query inside an expression is written. grouped: the keys of the block that is written, which stand in
    its columns as in GROUP BY. depth: the subqueries around it. Each has cells of its own, which those inside it and
    around it are told apart from.
    """

    tables: Sequence[str]
    query: Callable[[Query, Reading], str]
    grouped: Sequence[Expr] = ()
    depth: int = 0

    def alias(self, name: str, *, outer: bool = False) -> str:
        """What a relation is called here; `outer`: one of the query around this one."""
        depth = self.depth - outer
        return postgres_name(f"{name}_{depth + 1}" if name == CELL and depth > 0 else name)


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
            whens = "".join(f" WHEN {expression(w, reading)} THEN {expression(t, reading)}" for w, t in value.branches)
            otherwise = f" ELSE {expression(value.otherwise, reading)}" if value.otherwise is not None else ""
            return f"CASE{whens}{otherwise} END", ATOM
        case Call():
            return _call(value, reading)
        case Aggregate():
            return _aggregate(value, _filter(value.condition, reading), reading)
        case OverValues():
            return _over_values(value, reading), ATOM
        case Merged():
            return _merged(value, reading)
        case Windowed():
            return _windowed(value, reading)
        case Subquery():
            inner = "(\n" + indented(reading.query(value.query, replace(reading, depth=reading.depth + 1))) + "\n)"
            if value.kind == "exists":
                return f"EXISTS {inner}", ATOM
            if value.kind == "in" and value.operand is not None:
                return f"{expression(value.operand, reading, OTHER)} IN {inner}", IN
            return inner, ATOM


def _field(column: Field, reading: Reading) -> tuple[str, int]:
    whole = postgres_name(column.path[0])
    if column.relation and column.relation != VARIABLE:
        whole = f"{reading.alias(column.relation, outer=column.outer)}.{whole}"
    if len(column.path) == 1:
        return whole, ATOM
    *outer, last = (constant(Constant(name, STRING)) for name in column.path[1:])
    return _member(" -> ".join((whole, *outer)), last, column.type)


def constant(literal: Constant) -> str:
    """A literal in Postgres' syntax."""
    value, kind = literal.value, literal.type
    if value is None:
        return "NULL"
    if kind == STRING:
        return postgres_text(value)
    if kind == TIMESTAMP:
        return f"timestamptz '{value}+00'"
    if kind in (DATE, TIMESTAMP_NTZ):
        return f"{kind.postgres} '{value}'"
    if kind.name == "INTERVAL":
        count, unit = value.split(" ")
        return f"interval '{int(count) * 3 if unit == 'quarter' else count} {_INTERVAL.get(unit, unit)}'"
    if kind.name in ("DOUBLE", "FLOAT"):
        return f"'{value}'::{kind.postgres}"
    plain = f"({value})" if value.startswith("-") else value
    return f"{plain}::{kind.postgres}" if literal.suffixed else plain


def _call(call: Call, reading: Reading) -> tuple[str, int]:
    form = _FORMS.get(call.function)
    if form is not None:
        return form(call, reading)
    row = overload(call)
    if call.function.startswith("session"):
        raise Wrong(call.place, "session_window() above the aggregation", "Group the records of a source by it.")
    if row is None or row.above is None:
        why = f": {row.why}" if row is not None and row.why else ""
        way_out = _EXPLODED if call.function in ("aggregate", "reduce") else GROUP_BELOW
        raise Wrong(call.place, f"{call.function}() above the aggregation{why}", way_out)
    return _filled(row.above, call, reading)


def _logical(call: Call, reading: Reading) -> tuple[str, int]:
    binds = AND if call.function == "and" else OR
    left, right = (expression(a, reading, binds + n) for n, a in enumerate(call.arguments))
    return f"{left} {call.function.upper()} {right}", binds


def _not(call: Call, reading: Reading) -> tuple[str, int]:
    inner = call.arguments[0]
    if isinstance(inner, Call) and inner.function in ("is null", "<=>") and inner not in reading.grouped:
        sides = [expression(a, reading, OTHER) for a in inner.arguments]
        return (f"{sides[0]} IS NOT NULL" if len(sides) == 1 else f"{sides[0]} IS DISTINCT FROM {sides[1]}"), IS
    return f"NOT {expression(inner, reading, IS)}", NOT


def _is_null(call: Call, reading: Reading) -> tuple[str, int]:
    return f"{expression(call.arguments[0], reading, OTHER)} {call.function.upper()}", IS


def _compared(call: Call, reading: Reading) -> tuple[str, int]:
    name = call.function
    first, second = call.arguments
    left, right = expression(first, reading, OTHER), expression(second, reading, OTHER)
    if name == "<=>":
        return f"{left} IS NOT DISTINCT FROM {right}", IS
    if name not in ("=", "<>") and first.type == STRING and not is_column(second):
        left = _by_bytes(first, expression(first, reading, OTHER if is_column(first) else CAST))
    return f"{left} {name} {right}", COMPARE


def _in(call: Call, reading: Reading) -> tuple[str, int]:
    rest = ", ".join(expression(a, reading) for a in call.arguments[1:])
    return f"{expression(call.arguments[0], reading, OTHER)} IN ({rest})", IN


def _like(call: Call, reading: Reading) -> tuple[str, int]:
    value, wanted = call.arguments
    pattern_ = expression(wanted, reading, OTHER)
    like = f"{expression(value, reading, OTHER)} LIKE {pattern_}"
    if isinstance(wanted, Constant):
        return like, IN
    return f"CASE WHEN NOT {pattern_} ~ {constant(Constant(ESCAPES_NOTHING, STRING))} THEN {like} END", ATOM


def _average(call: Call, reading: Reading) -> tuple[str, int]:
    total, count = call.arguments
    if call.type == DOUBLE:
        return f"{expression(total, reading, MULTIPLY)} / {expression(count, reading, CAST)}", MULTIPLY
    sides = f"{expression(total, reading)}, {expression(count, reading)}"
    return f"spark.divide({sides}, {call.type.precision}, {call.type.scale})", ATOM


def _wide_sum(call: Call, reading: Reading) -> tuple[str, int]:
    high, low, unit = (expression(a, reading, MULTIPLY) for a in call.arguments)
    return f"spark.decimal({high} * {unit} + {low}, {call.type.precision}, {call.type.scale})", ATOM


def _months_apart(call: Call, reading: Reading) -> tuple[str, int]:
    """Whole months, quarters or years between two times."""
    unit, *times = call.arguments
    begin, end = (expression(each, reading, CAST) for each in times)
    whole = f"spark.months_apart({begin} AT TIME ZONE 'UTC', {end} AT TIME ZONE 'UTC')"
    months = MONTHS[str(getattr(unit, "value", "")).lower()]
    return (whole, ATOM) if months == 1 else (f"{whole} / {months}", MULTIPLY)


def _window_start(call: Call, reading: Reading) -> tuple[str, int]:
    size, offset, *slide = (int(str(getattr(a, "value", 0))) for a in call.arguments[1:])
    if slide:
        way_out = "Hop over the records, or add up by sum(x) OVER (ORDER BY t RANGE BETWEEN INTERVAL … PRECEDING …)."
        raise Wrong(call.place, "a hopping window above the aggregation", way_out)
    return f"date_bin({length(size)}, {expression(call.arguments[0], reading)}, {origin(offset)})", ATOM


def origin(offset: int) -> str:
    """When windows are counted from."""
    return "timestamptz '1970-01-01 00:00:00+00'" + (f" + {length(offset)}" if offset else "")


def _window_end(call: Call, reading: Reading) -> tuple[str, int]:
    size = int(str(getattr(call.arguments[1], "value", 0)))
    return f"{expression(call.arguments[0], reading, ADD)} + {length(size)}", ADD


def _bitwise(operator: str, call: Call, reading: Reading) -> tuple[str, int]:
    left, right = (expression(a, reading, ATOM) for a in call.arguments)
    return f"({left} {operator} {right})", ATOM


def _shares(call: Call, reading: Reading) -> tuple[str, int]:
    """Several percentiles as a list; of no values, NULL."""
    each = [expression(a, reading) for a in call.arguments]
    return f"CASE WHEN {each[0]} IS NOT NULL THEN jsonb_build_array({', '.join(each)}) END", ATOM


def _window(call: Call, reading: Reading) -> tuple[str, int]:
    """A window as Spark writes it; a grouping that leaves it out has none."""
    start, end = (_inside(a, reading) for a in call.arguments)
    pairs = f"'start', {start}, 'end', {end}"
    known = expression(call.arguments[0], reading, OTHER)
    return f"CASE WHEN {known} IS NOT NULL THEN jsonb_build_object({pairs}) END", ATOM


def _member(of: str, step: str, kind: Type) -> tuple[str, int]:
    """A value inside a nested one, which is kept as JSON."""
    if kind.nested:
        return f"nullif({of} -> {step}, 'null')", ATOM
    if kind == STRING:
        return f"{of} ->> {step}", OTHER
    if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return f"ltrim({of} ->> {step}, '+')::{kind.postgres}", CAST  # before a year of five digits
    return f"({of} ->> {step})::{kind.postgres}", CAST


def _structured(call: Call, reading: Reading) -> tuple[str, int]:
    """A struct or a map: the JSON that Spark makes of it, which has no fields that are NULL, but such entries."""
    pairs = zip(call.arguments[::2], call.arguments[1::2], strict=True)
    built = f"jsonb_build_object({', '.join(f'{expression(n, reading)}, {_inside(v, reading)}' for n, v in pairs)})"
    return (built if call.function == "map" else f"spark.struct({built})"), ATOM


def _inside(value: Expr, reading: Reading) -> str:
    """A value as it stands in a nested one."""
    if value.type.name == "DECIMAL" or (value.type.name in ("DOUBLE", "FLOAT") and bare_value(value) is not value):
        return f"{expression(value, reading, CAST)}::{value.type.postgres}"
    return _in_json(expression(value, reading), value.type)


def _nested(call: Call, reading: Reading) -> tuple[str, int]:
    if call.function in (".", "[]"):
        of, step = call.arguments
        text = constant(step) if isinstance(step, Constant) else None
        if text is not None and not text.startswith("("):  # no element before the first
            return _member(expression(of, reading, OTHER), text, call.type)
    as_json = "Leave to_json() out: who reads the view reads it as JSON."
    way_out = as_json if call.function == "to_json" else "Select its parts below the aggregation."
    raise Wrong(call.place, "a nested value above the aggregation", way_out)


OF_ELEMENTS = {
    "transform": f"coalesce(jsonb_agg({{0}} ORDER BY {_PLACE}), '[]')",
    "filter": f"coalesce(jsonb_agg({_ELEMENT} ORDER BY {_PLACE}) FILTER (WHERE {{0}}), '[]')",
    "exists": "CASE WHEN bool_or({0}) THEN true WHEN bool_or(({0}) IS NULL) THEN NULL ELSE false END",
    "forall": "CASE WHEN bool_or(NOT ({0})) THEN false WHEN bool_or(({0}) IS NULL) THEN NULL ELSE true END",
}
"""What a function is of the elements of a list, with the body of its lambda."""


def _over_elements(call: Call, reading: Reading) -> tuple[str, int]:
    """A function that takes a lambda: a query of the elements of a list, with the variables as its columns."""
    listed, made = call.arguments
    assert isinstance(made, Call)
    (element, *place), body = made.arguments[:-1], made.arguments[-1]
    if call.function == "transform" and (field_of_each := _field_of_each(element, body)):
        return f"spark.field_of_each({expression(listed, reading)}, {field_of_each})", ATOM
    array, of = expression(listed, reading, OTHER), listed.type.element or STRING
    columns = [from_json(_ELEMENT, of), *[f"({_PLACE} - 1)::integer"] * len(place)]
    named = ", ".join(f"{c} AS {expression(v, reading)}" for c, v in zip(columns, (element, *place), strict=True))
    text = _inside(body, reading) if call.function == "transform" else expression(body, reading)
    found = OF_ELEMENTS[call.function].replace("{0}", text)
    elements = f"jsonb_array_elements({array}) WITH ORDINALITY AS {_ELEMENTS} ({_ELEMENT}, {_PLACE})"
    rows = f"(SELECT {_ELEMENT}, {_PLACE}, {named} FROM {elements}) AS {_ELEMENTS}"
    return f"CASE WHEN {array} IS NOT NULL THEN (SELECT {found} FROM {rows}) END", ATOM


def _field_of_each(variable: Expr, body: Expr) -> str | None:
    """The path to a field, where `s -> s.kind` is all that a lambda says."""
    if not (isinstance(body, Field) and isinstance(variable, Field) and body.path[:1] == variable.path):
        return None
    return f"ARRAY[{', '.join(constant(Constant(name, STRING)) for name in body.path[1:])}]::text[]"


_SPELLED: dict[str, Callable[[str], str | None]] = {
    "pattern": pattern,
    "translated": decides,
    "unambiguous": finds,
    "replacement": replacement,
}
"""Kinds of literals that Postgres has in other words."""

_SLOT = re.compile(r"(?P<before>\(|, )?\{(?P<name>[a-z0-9]+)(?::(?P<default>[^}]*))?\}(?=(?P<after>[,)])?)")


def _filled(template: str, call: Call, reading: Reading) -> tuple[str, int]:
    """A template of the function table with its arguments put in."""
    arguments = call.arguments
    collated = call.function in ("greatest", "least") and call.type == STRING

    def slot(match: re.Match[str]) -> str:
        name, before = match["name"], match["before"] or ""
        if name in ("all", "rest"):
            texts = [expression(a, reading) for a in arguments[1 if name == "rest" else 0 :]]
            if collated:
                texts[0] = _by_bytes(arguments[0], expression(arguments[0], reading, CAST))
            return before + ", ".join(texts)
        if name == "element":
            return before + (arguments[0].type.element or STRING).postgres
        if name == "inside":
            return before + ", ".join(_inside(a, reading) for a in arguments)
        if name == "pipes":
            return before + " || ".join(_as_text(a, reading) for a in arguments)
        if int(name) >= len(arguments):
            return before + (match["default"] or "")
        argument = arguments[int(name)]
        if isinstance(argument, Constant) and (spelled := _SPELLED.get(_kind_of(call, int(name)))):
            argument = replace(argument, value=spelled(argument.value or ""))
        enclosed = bool(before) and bool(match["after"])
        if isinstance(argument, Constant) and argument.value is None and argument.type != VOID:
            null = f"NULL::{argument.type.postgres}"
            return before + (null if enclosed else f"({null})")
        return before + expression(argument, reading, 0 if enclosed else ATOM)

    text = _SLOT.sub(slot, template)
    whole = re.fullmatch(r"[a-z_.]+\(.*\)", text) is not None and _balanced(text)
    return text, ATOM if whole or template == "{0}" else 0


def _kind_of(call: Call, position: int) -> str:
    """What the table of functions says that a call takes there."""
    row = overload(call)
    return row.takes[position].rstrip("?") if row is not None and position < len(row.takes) else ""


def _balanced(text: str) -> bool:
    """Does the first parenthesis close at the very end?"""
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0:
            return position == len(text) - 1
    return False


def _as_text(argument: Expr, reading: Reading) -> str:
    text = expression(argument, reading, ADD)
    return f"{text}::text" if argument.type.name == "VOID" else text


def is_column(value: Expr) -> bool:
    """Is it a column, and no field of one?"""
    return isinstance(value, Field) and len(value.path) == 1


def _by_bytes(value: Expr, text: str) -> str:
    """Text that compares by its bytes; every column of text in Lamina's tables and views does already."""
    return text if is_column(value) else f'{text} COLLATE "C"'


_INSTEAD = {(DOUBLE, STRING): "Cast it to a decimal first: CAST(CAST(x AS DECIMAL(18, 2)) AS STRING)."}
"""What to write instead of a cast above the aggregation."""


def _cast(call: Call, reading: Reading) -> tuple[str, int]:
    value = call.arguments[0]
    if call.implicit and value.type.numeric and call.type.numeric:
        return _written(value, reading)  # Postgres makes the same cast itself, in every place where Spark makes one
    template = (tried_in_postgres if call.function == "try_cast" else cast_in_postgres)(value.type, call.type)
    if isinstance(value, Constant) and value.type.numeric and call.type == FLOAT:
        template = "{0}::real"  # of what is no literal Spark may leave it out, where the result becomes a DOUBLE
    if template is None:
        raise Wrong(
            call.place,
            f"CAST of {value.type} to {call.type} above the aggregation differs in Postgres",
            _INSTEAD.get((value.type, call.type)) or ("Cast it to DOUBLE." if call.type == FLOAT else GROUP_BELOW),
        )
    filled, _ = _filled(template, call, reading)
    return filled, (
        CAST
        if re.fullmatch(r"\{0\}::[a-z0-9_ (),]+", template)
        else ATOM
        if filled.endswith(")") and not filled.startswith("(")
        else 0
    )


def _arithmetic(call: Call, reading: Reading) -> tuple[str, int]:
    """Numbers that wrap, or become NULL or Infinity, as Spark's do; plain operators where neither can happen."""
    name, kind = call.function, call.type
    operands = [expression(a, reading) for a in call.arguments]
    if name == "negative":
        if kind.integral:
            return _arithmetic(Call("-", (Constant("0", kind), call.arguments[0]), kind, place=call.place), reading)
        return f"-{expression(call.arguments[0], reading, ATOM)}", MULTIPLY
    if name == "div":
        if call.arguments[0].type.name == "DECIMAL":
            return f"spark.wrap_bigint(div({operands[0]}, nullif({operands[1]}, 0)))", ATOM
        return f"spark.div({operands[0]}, {operands[1]})", ATOM
    if kind.name == "DECIMAL":
        return _decimal(call, operands, reading)
    if kind.integral:
        return _whole(call, operands, reading)
    if kind.name == "FLOAT" or name == "%":
        way_out = "Write CAST(… AS DOUBLE)." if kind.name == "FLOAT" else "Cast both sides to DECIMAL."
        raise Wrong(call.place, f"{name} of {kind} above the aggregation", way_out)
    if name == "/" and all(_was_integral(a) for a in call.arguments):
        left = expression(call.arguments[0], reading, CAST)
        return f"{left}::double precision / nullif({operands[1]}, 0)", MULTIPLY
    sides = ", ".join(_double(a, text) for a, text in zip(call.arguments, operands, strict=True))
    return f"spark.{_WORDS[name]}({sides})", ATOM


_WORDS = {"+": "plus", "-": "minus", "*": "times", "/": "divide"}


def _plain(call: Call, reading: Reading, right: str | None = None) -> tuple[str, int]:
    binds = ADD if call.function in ("+", "-") else MULTIPLY
    left = expression(call.arguments[0], reading, binds)
    return f"{left} {call.function} {right or expression(call.arguments[1], reading, binds + 1)}", binds


def _whole(call: Call, operands: list[str], reading: Reading) -> tuple[str, int]:
    name, kind = call.function, call.type
    if name == "%":
        return _plain(call, reading, f"nullif({operands[1]}, 0)")
    if kind == BIGINT:
        bound = magnitude(call)
        if bound is not None and bound < EXACT:
            return _plain(call, reading)
        sides = ", ".join(_bigint(a, text) for a, text in zip(call.arguments, operands, strict=True))
        return f"spark.{_WORDS[name]}({sides})", ATOM
    left, right = (expression(a, reading, CAST) for a in call.arguments)
    return f"spark.wrap_{kind.name.lower()}({left}::bigint {name} {right})", ATOM


def _decimal(call: Call, operands: list[str], reading: Reading) -> tuple[str, int]:
    name, kind = call.function, call.type
    p1, s1, p2, s2 = (n for a in call.arguments for n in (a.type.precision, a.type.scale))
    if name == "/":
        return f"spark.divide({operands[0]}, {operands[1]}, {kind.precision}, {kind.scale})", ATOM
    written = _plain(call, reading, f"nullif({operands[1]}, 0)" if name == "%" else None)
    digits = p1 + p2 + 1 if name == "*" else max(p1 - s1, p2 - s2) + max(s1, s2) + 1
    if digits <= MAX_PRECISION or (name == "%" and kind.precision < MAX_PRECISION):
        return written
    return f"spark.decimal({written[0]}, {kind.precision}, {kind.scale})", ATOM


def _was_integral(value: Expr) -> bool:
    if isinstance(value, Call) and value.function == "cast":
        return value.arguments[0].type.integral
    return False


def bare_value(value: Expr) -> Expr:
    """What is inside the casts that Postgres makes itself."""
    while isinstance(value, Call) and value.function == "cast" and value.implicit:
        value = value.arguments[0]
    return value


def _bigint(value: Expr, text: str) -> str:
    bare = bare_value(value)
    return f"{text}::bigint" if isinstance(bare, Constant) and not bare.suffixed else text


def _double(value: Expr, text: str) -> str:
    inner = bare_value(value)
    if inner.type == DOUBLE:
        return text
    return f"{text}::double precision" if isinstance(inner, (Constant, Field)) else f"({text})::double precision"


def magnitude(value: Expr) -> int | None:
    """The greatest absolute value that a whole number can take, where known: counts, and what is made of them."""
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


def _shifted(call: Call, reading: Reading) -> tuple[str, int]:
    time, length = call.arguments
    sign, text = call.function[0], expression(time, reading, ADD)
    unit = str(getattr(length, "value", "")).split(" ")[-1]
    interval = constant(length) if isinstance(length, Constant) else ""
    if time.type == DATE:
        return f"({text} {sign} {interval})::date", CAST
    if time.type == TIMESTAMP and unit in ("day", "week", "month", "quarter", "year"):
        return f"({expression(time, reading, CAST)} AT TIME ZONE 'UTC' {sign} {interval}) AT TIME ZONE 'UTC'", 0
    return f"{text} {sign} {interval}", ADD


def length(microseconds: int) -> str:
    """A length of time as an interval of seconds."""
    whole, rest = divmod(microseconds, 1_000_000)
    return f"interval '{whole}.{rest:06d} seconds'" if rest else f"interval '{whole} seconds'"


def _filter(condition: Expr | None, reading: Reading) -> str:
    return "" if condition is None else f" FILTER (WHERE {expression(condition, reading)})"


def _over_values(call: OverValues, reading: Reading) -> str:
    over = AGGREGATES[call.function].over
    assert over is not None
    value = _listed(expression(call.value, reading, CAST), call)
    texts = {"0": value, "n": expression(call.times, reading, CAST)}
    texts["o"] = ", ".join(ordering(Order(e, descending=False, nulls_first=True), reading) for e in call.order) or value
    texts |= {str(n): constant(literal) for n, literal in enumerate(call.literals, 1)}
    return re.sub(r"\{(\w)\}", lambda slot: texts[slot[1]], over)


def _listed(value: str, call: OverValues | Aggregate) -> str:
    """A value as the aggregate over values has it: in JSON, if it makes a list of them."""
    return value if call.type.element is None else _in_json(value, call.type.element)


def _in_json(value: str, kind: Type) -> str:
    """A value of JSON; a time as Spark is told to write it, whatever a reader's time zone."""
    return f"spark.json({value})" if kind in (TIMESTAMP, TIMESTAMP_NTZ) else value


def _over_rows(call: Aggregate, rows: str, reading: Reading) -> str:
    """An aggregate over values, of plain rows."""
    if call.distinct:
        raise Wrong(
            call.place, f"{call.function}(DISTINCT …) above the aggregation", "Take DISTINCT rows in a subquery."
        )
    value = _typed(only(call.condition, call.arguments[0]), reading)
    value = f'({value} COLLATE "C")' if call.arguments[0].type == STRING else _listed(value, call)
    by = [
        ordering(Order(part, descending=False, nulls_first=True), reading)
        for e in call.arguments[1:]
        if not isinstance(e, Constant)
        for part in scalars(e)
    ]
    if by and "DISTINCT" in rows:
        way_out = "Take DISTINCT rows in a subquery, and sort_array(collect_list(…)) of them."
        raise Wrong(call.place, f"{call.function}() of structs above the aggregation", way_out)
    texts = {"0": value, "o": ", ".join(by) or value, "n": "1::bigint"}
    literals = [e for e in call.arguments[1:] if isinstance(e, Constant)]
    texts |= {str(n): constant(literal) for n, literal in enumerate(literals, 1)}
    return re.sub(r"\{(\w)\}", lambda slot: texts[slot[1]], rows)


def _typed(value: Expr, reading: Reading) -> str:
    """A value for an aggregate of any type, which a literal text alone does not have."""
    text = expression(value, reading, CAST)
    return f"{text}::text" if isinstance(value, Constant) and value.type == STRING else text


def _by_value(call: Aggregate, reading: Reading) -> str:
    """max_by and min_by of plain rows: of those with the same order, the greatest or the least value's."""
    value, *by = call.arguments
    last = call.function == "max_by"
    keys = ", ".join(ordering(Order(e, descending=last, nulls_first=not last), reading) for e in by)
    return f"(array_agg({_typed(value, reading)} ORDER BY {keys}){_filter(call.condition, reading)})[1]"


def _merged(value: Merged, reading: Reading) -> tuple[str, int]:
    """The partials of several cells as one."""
    above = MERGES[value.merge].above
    if above is not None:
        return above([expression(each, reading) for each in value.columns]), ATOM
    return _aggregate(Aggregate(value.merge, value.columns, None, False, value.type), "", reading)


_EXACT = {"approx_count_distinct": "Write count(DISTINCT x), which is exact."}
"""What to write instead of an estimate."""


def _aggregate(call: Aggregate | Windowed, suffix: str, reading: Reading) -> tuple[str, int]:
    if isinstance(call, Aggregate) and (text := _without_suffix(call, reading)) is not None:
        return text, ATOM
    row = AGGREGATES[call.function]
    if row.above is None:
        way_out = "Take the row by row_number() OVER (PARTITION BY … ORDER BY …) = 1 in a subquery."
        if row.rows is not None:
            way_out = "Compute it with GROUP BY in a subquery, and join that."
        elif row.over is not None:
            way_out = "Compute it over the records of a source."
        raise Wrong(call.place, f"{call.function}() above the aggregation", _EXACT.get(call.function, way_out))
    if len(call.arguments) > 1 and row.arguments[0] < 2:  # count(a, b)
        together = Call("row", call.arguments, STRING)
        call = replace(call, arguments=(Case(((known(call.arguments) or TRUE, together),), None, STRING),))
    template = row.above([a.type for a in call.arguments])
    if isinstance(call, Aggregate) and call.distinct:
        template = _distinct(template, call)
    alone = "({0})" in template or "DISTINCT {0})" in template
    texts = {str(n): expression(a, reading, 0 if alone and n == 0 else CAST) for n, a in enumerate(call.arguments)}
    text = re.sub(r"\{(\d)\}|@", lambda slot: suffix if slot[0] == "@" else texts[slot[1]], template)
    return text, ATOM if "/" not in template else MULTIPLY


def _distinct(template: str, call: Aggregate) -> str:
    """The expression of an aggregate over different values, where it takes its argument as it is."""
    if call.function in ("sum", "avg") and call.arguments[0].type in (DOUBLE, FLOAT):
        return template.replace("sum(CASE", "sum(DISTINCT CASE").replace("count({0}", "count(DISTINCT {0}")
    if "({0} IS" in template or template.count("({0}") < template.count("{0}"):
        reason = f"{call.function}(DISTINCT …) above the aggregation"
        raise Wrong(call.place, reason, "Take DISTINCT rows in a subquery.")
    return template.replace("({0}", "(DISTINCT {0}")


def _without_suffix(call: Aggregate, reading: Reading) -> str | None:
    """An aggregate that has its FILTER in its arguments, and is no window function; None for others."""
    match call.function:
        case "min_by" | "max_by":
            return _by_value(call, reading)
    rows = AGGREGATES[call.function].rows
    return None if rows is None else _over_rows(call, rows, reading)


def _windowed(call: Windowed, reading: Reading) -> tuple[str, int]:
    if call.ignore_nulls:
        return _ignoring_nulls(call, reading), ATOM
    suffix = _over(call, reading)
    if call.function in AGGREGATES:
        return _aggregate(call, suffix, reading)
    arguments = ", ".join(_as_text(a, reading) for a in call.arguments)
    text = f"{call.function}({arguments}){suffix}"
    return (f"{text}::integer", CAST) if call.type == INT and not call.arguments else (text, ATOM)


def _ignoring_nulls(call: Windowed, reading: Reading) -> str:
    """IGNORE NULLS, which Postgres has not: an aggregate over the frame. The row after is the last of those before in
    the other direction, so that each frame goes on from the one before.
    """
    value, *more = call.arguments
    first = "first" if call.function == "first_value" else "last"
    if call.function == "lead":
        order = tuple(Order(o.expression, not o.descending, not o.nulls_first) for o in call.order)
        call = replace(call, order=order)
    if call.function in ("lag", "lead"):
        call = replace(call, frame="ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
    found = f"spark.{first}_known({expression(value, reading, CAST)}::{value.type.postgres}){_over(call, reading)}"
    return f"coalesce({found}, {expression(more[1], reading)})" if len(more) > 1 else found


def _over(call: Windowed, reading: Reading) -> str:
    """Its OVER."""
    parts = []
    if call.partition:
        parts.append("PARTITION BY " + ", ".join(expression(e, reading) for e in call.partition))
    if call.order:
        parts.append("ORDER BY " + ", ".join(ordering(o, reading) for o in by_bounds(call.order)))
    if call.frame:
        parts.append(call.frame)
    return f" OVER ({' '.join(parts)})"


def ordering(order: Order, reading: Reading, name: str | None = None) -> str:
    """A key of ORDER BY; NULLs stand where Spark puts them."""
    text = name or expression(order.expression, reading)
    if name is None and order.expression.type == STRING:
        text = _by_bytes(order.expression, expression(order.expression, reading, CAST))
    direction = " DESC" if order.descending else ""
    nulls = "" if order.nulls_first == order.descending else (" NULLS FIRST" if order.nulls_first else " NULLS LAST")
    return text + direction + nulls


_FORMS: dict[str, Callable[[Call, Reading], tuple[str, int]]] = {
    **dict.fromkeys(("and", "or"), _logical),
    "not": _not,
    **dict.fromkeys(("is null", "is not null"), _is_null),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), _compared),
    "in": _in,
    "like": _like,
    **dict.fromkeys(("cast", "try_cast"), _cast),
    **dict.fromkeys(("+", "-", "*", "/", "%", "div", "negative"), _arithmetic),
    "average": _average,
    "wide sum": _wide_sum,
    **dict.fromkeys(("+ interval", "- interval"), _shifted),
    "timestampdiff": _months_apart,
    "window_start": _window_start,
    "window_end": _window_end,
    "window": _window,
    **dict.fromkeys((".", "[]", "to_json"), _nested),
    **dict.fromkeys(("named_struct", "map"), _structured),
    **dict.fromkeys(OF_ELEMENTS, _over_elements),
    "shares": _shares,
    "row": lambda call, reading: (f"({', '.join(_typed(a, reading) for a in call.arguments)})", ATOM),
    **{each: partial(_bitwise, "#" if each == "^" else each) for each in BITWISE},
    "~": lambda call, reading: (f"(~{expression(call.arguments[0], reading, ATOM)})", ATOM),
}
"""What is not a function of the table."""


def from_json(value: str, kind: Type) -> str:
    """A value of JSON as one of its type."""
    if kind.nested:
        return f"nullif({value}, 'null')"
    text = f"({value} #>> '{{}}')"
    if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return f"ltrim{text[:-1]}, '+')::{kind.postgres}"  # before a year of five digits
    return f'{text} COLLATE "C"' if kind == STRING else f"{text}::{kind.postgres}"


def indented(text: str) -> str:
    """A text inside another."""
    return "\n".join(f"  {line}" for line in text.split("\n"))
