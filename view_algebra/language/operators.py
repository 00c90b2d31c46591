"""How typed expressions are put together: implicit casts, operators and calls, by Spark's rules with ANSI mode off."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from zoneinfo import available_timezones

from view_algebra.language.backtracking import endless
from view_algebra.language.expressions import Call, Case, Constant, Expr, Place
from view_algebra.language.formats import refuse_format
from view_algebra.language.functions import FOREIGN, FUNCTIONS, NON_DETERMINISTIC, UNBOUNDED, Function
from view_algebra.language.lengths import beside, in_days_or_microseconds, is_length, length, microseconds_of
from view_algebra.language.lengths import number as number_of
from view_algebra.language.meeting import as_time, cast, compare, meet, read
from view_algebra.language.quoting import words
from view_algebra.language.regexes import decides, finds
from view_algebra.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAYS,
    DOUBLE,
    DURATION,
    INT,
    INTEGRAL,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    WINDOW,
    Type,
    arithmetic,
    as_decimal,
    decimal,
    schema,
)
from view_algebra.refusals import Wrong, suggestion

BITWISE = ("&", "|", "^")
UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
}
"""Units of date_trunc, in Spark's words and Postgres'."""

_PATTERN = dict(
    re.findall(
        r"(\S+)=(\S+)",
        "yyyy=YYYY y=FMYYYY yy=YY Q=Q MM=MM M=FMMM MMM=Mon MMMM=FMMonth dd=DD d=FMDD D=FMDDD DDD=DDD E=Dy EEE=Dy"
        " EEEE=FMDay a=AM HH=HH24 H=FMHH24 hh=HH12 h=FMHH12 mm=MI m=FMMI ss=SS s=FMSS S=FF1 SS=FF2 SSS=FF3 SSSSSS=FF6",
    )
)
"""Letters of date_format, in Spark's words and Postgres'."""


def condition(expression: Expr, of: str) -> Expr:
    """An expression that must be true or false."""
    if expression.type == VOID and of in ("WHERE", "ON", "WHEN", "FILTER"):
        raise Wrong(expression.place, f"{of} NULL, which Spark refuses", "Write CAST(NULL AS BOOLEAN).")
    if expression.type in (BOOLEAN, VOID):
        return cast(expression, BOOLEAN, implicit=True)
    raise Wrong(expression.place, f"{of} takes a condition, this is {expression.type}", "Compare it with a value.")


def calculate(operator: str, left: Expr, right: Expr, place: Place = None) -> Expr:
    """`left operator right` for numbers, operator one of + - * / % div.

    >>> calculate("/", Constant("1", INT), Constant("2", INT)).type.spark
    'DOUBLE'
    """
    if is_length(left) or is_length(right):
        return _of_lengths(operator, left, right, place)
    left, right = (read(side, DOUBLE) if side.type == STRING else side for side in (left, right))
    for side in (left, right):
        if not side.type.numeric and side.type != VOID:
            raise Wrong(
                side.place or place,
                f"{operator} takes numbers, this is {side.type}",
                "Write CAST(… AS DECIMAL(18, 2)), or the type of number that it holds.",
            )
    known = next((side.type for side in (left, right) if side.type != VOID), DOUBLE)
    left, right = (cast(side, known, implicit=True) if side.type == VOID else side for side in (left, right))
    exact = {left.type.name, right.type.name} <= {"DECIMAL", *INTEGRAL}
    if exact and "DECIMAL" in (left.type.name, right.type.name):
        left, right = _exact(left), _exact(right)
        if operator == "div":
            return Call("div", (left, right), BIGINT, place=place)
        return Call(operator, (left, right), arithmetic(operator, left.type, right.type), place=place)
    if operator == "/":
        left, right = cast(left, DOUBLE, implicit=True), cast(right, DOUBLE, implicit=True)
        return Call("/", (left, right), DOUBLE, place=place)
    left, right = meet((left, right), place, operator)
    if operator == "div":
        if not left.type.integral:
            raise Wrong(place, f"div takes whole numbers, this is {left.type}", "Write floor(a / b).")
        left, right = cast(left, BIGINT, implicit=True), cast(right, BIGINT, implicit=True)
    return Call(operator, (left, right), left.type, place=place)


def _of_lengths(operator: str, left: Expr, right: Expr, place: Place) -> Expr:
    """Lengths added up, or one times, or by, a whole number: to the nearest microsecond."""
    if operator in ("+", "-") and is_length(left) and is_length(right):
        kind = beside((left, right), place)
        a, b = (in_days_or_microseconds(each, kind, place) for each in (left, right))
        return length(calculate(operator, a, b, place), kind)
    if operator == "*" and is_length(right):
        left, right = right, left
    if operator not in ("*", "/") or not is_length(left) or not right.type.integral:
        what = f"{left.type} {operator} {right.type}"
        way_out = "Compute with CAST(… AS BIGINT) of a difference, which is its seconds, or its days, of two dates."
        raise Wrong(place, what, way_out)
    whole = microseconds_of(left)
    return length(calculate("*", whole, right, place) if operator == "*" else quotient(whole, right, place), DURATION)


def quotient(total: Expr, count: Expr, place: Place) -> Expr:
    """The whole number that is the nearest; of two that are, the one further from 0."""
    a, b = (cast(each, as_decimal(each.type)) for each in (total, count))
    half = case([(compare("<", a, number("0"), place), negative(b, place))], b, place)
    twice = [calculate("*", each, number("2"), place) for each in (a, b)]
    return calculate("div", calculate("+", twice[0], half, place), twice[1], place)


def bitwise(operator: str, sides: Sequence[Expr], place: Place = None) -> Expr:
    """`left & right`, `left | right`, `left ^ right` or `~ operand`, of whole numbers."""
    for side in sides:
        if not side.type.integral and side.type != VOID:
            what = f"{operator} takes whole numbers, this is {side.type}"
            raise Wrong(side.place or place, what, "Cast it to BIGINT.")
    met = meet(sides, place, operator)
    if met[0].type == VOID:
        raise Wrong(place, f"{operator} of NULL", "Write CAST(NULL AS INT).")
    return Call(operator, met, met[0].type, place=place)


def _exact(side: Expr) -> Expr:
    counted = isinstance(side, Constant) and side.type.integral and side.type.name != "TINYINT"
    literal = side.value if isinstance(side, Constant) and counted else None
    return cast(side, as_decimal(side.type, literal), implicit=True)


def negative(operand: Expr, place: Place = None) -> Expr:
    """`-x`; of a literal it is a literal."""
    if isinstance(operand, Constant) and operand.type.numeric and operand.value is not None:
        value = operand.value[1:] if operand.value.startswith("-") else f"-{operand.value}"
        if operand.suffixed or operand.type.name not in (*INTEGRAL, "DECIMAL") or "." in value:
            return replace(operand, value=value, place=place)
        return number(value, place)  # the least BIGINT's digits are none
    operand = read(operand, DOUBLE) if operand.type == STRING else operand
    if isinstance(operand, Constant) and operand.type == INTERVAL:
        return replace(operand, value=f"-{operand.value}".removeprefix("--"), place=place)
    if is_length(operand):
        return length(negative(number_of(operand), place), operand.type if operand.type == DAYS else DURATION)
    if not operand.type.numeric:
        raise Wrong(place or operand.place, f"- takes a number, this is {operand.type}", "Cast it to a number first.")
    return Call("negative", (operand,), operand.type, place=place)


def number(text: str, place: Place = None) -> Constant:
    """A literal number with Spark's type.

    >>> [number(t).type.spark for t in ("1", "3000000000", "0.05", "1e3")]
    ['INT', 'BIGINT', 'DECIMAL(2,2)', 'DOUBLE']
    """
    if "e" in text.lower():
        return Constant(text, DOUBLE, place)
    if "." in text:
        whole, fraction = text.lstrip("-").split(".")
        whole = whole.lstrip("0")
        digits = len(whole) + len(fraction)
        if digits > 38:
            raise Wrong(place, "a number of more than 38 digits", "Write it with an exponent, as 1e39.")
        return Constant(
            text if whole or text.startswith("0") else text.replace(".", "0.", 1), decimal(digits, len(fraction)), place
        )
    value = int(text)
    if -(2**31) <= value < 2**31:
        return Constant(str(value), INT, place)
    if -(2**63) <= value < 2**63:
        return Constant(str(value), BIGINT, place)
    return Constant(str(value), decimal(len(str(abs(value))), 0), place)


def case(branches: Sequence[tuple[Expr, Expr]], otherwise: Expr | None, place: Place = None) -> Expr:
    """CASE, its results brought to one type."""
    values = [then for _, then in branches] + ([] if otherwise is None else [otherwise])
    met = meet(values, place, "CASE", texts=True)
    pairs = tuple((when, then) for (when, _), then in zip(branches, met, strict=False))
    return Case(pairs, None if otherwise is None else met[-1], met[0].type, place)


def call(name: str, arguments: Sequence[Expr], place: Place = None) -> Expr:
    """A function of the table over typed arguments: the first overload that takes them.

    >>> call("round", [Constant("1.25", decimal(3, 2)), Constant("1", INT)]).type.spark
    'DECIMAL(3,1)'
    """
    name = name.lower()
    if name in NON_DETERMINISTIC:
        why, way_out = NON_DETERMINISTIC[name]
        raise Wrong(place, f"{name}() {why}", way_out)
    overloads = FUNCTIONS.get(name)
    if overloads is None:
        way_out = f"Write {FOREIGN[name]}." if name in FOREIGN else suggestion(name, FUNCTIONS)
        raise Wrong(place, f"no function {name}()", way_out)
    for converted, exactly in ((False, True), (False, False), (True, False)):
        for row in overloads:
            taken = _taken(row, _read_as_wanted(row, arguments) if converted else arguments, exactly, place)
            if taken is not None:
                literals = [a.value if isinstance(a, Constant) else None for a in taken]
                if name in ("regexp_replace", "regexp_extract", "regexp_extract_all"):
                    _refuse_groups(name, literals, taken[-1].place or place)
                if name in ("printf", "format_string"):
                    refuse_format(name, taken, place)
                return Call(name, taken, _given(row, taken, literals), place=place)
    _refuse_literals(name, overloads, arguments)
    if name in UNBOUNDED and len(arguments) == len(overloads[0].takes) - 1:
        why, way_out = UNBOUNDED[name]
        raise Wrong(place, f"{name}() {why}", way_out)
    given = ", ".join(str(a.type) for a in arguments)
    wanted = " or ".join(sorted({f"{name}({', '.join(row.takes)})" for row in overloads}))
    raise Wrong(
        place, f"{name}({given}) does not exist", f"There is {wanted}. Write the cast that you mean, as CAST(… AS …)."
    )


def _read_as_wanted(row: Function, arguments: Sequence[Expr]) -> Sequence[Expr]:
    """What is no text becomes one where a function takes nothing else, and a text what it takes: `upper(id)`."""
    kinds = _kinds(row, len(arguments))
    if kinds is None or row.name in _KEEPS_TYPES:
        return arguments
    read: list[Expr] = []
    for argument, kind in zip(arguments, kinds, strict=True):
        if kind in ("string", "text", "texts"):
            read.append(text_of(argument))
        else:
            read.append(cast(argument, _OF_TEXTS[kind]) if argument.type == STRING and kind in _OF_TEXTS else argument)
    return read


_OF_TEXTS = {"double": DOUBLE, "date": DATE}
"""What Spark makes of a text where a function takes it; of `12:30` it would make a timestamp of the day it runs."""


def text_of(value: Expr) -> Expr:
    """What Spark reads where it expects a text: a number, a time or a truth as it is written."""
    read = value.type.numeric or value.type in (BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return cast(value, STRING) if read else value


_KEEPS_TYPES = words(
    "md5 sha sha1 sha2 crc32 base64 hex unhex to_date to_timestamp try_to_timestamp unix_timestamp to_unix_timestamp"
    " hour minute second get_json_object from_json json_array_length json_tuple soundex mask format_number parse_url"
)
"""Functions for which Spark makes no text of a number, or that read texts in their own way."""


def _refuse_groups(name: str, literals: Sequence[str | None], place: Place) -> None:
    """A `$2`, or `regexp_extract(x, …, 2)`, where the pattern has one group would stop a stream."""
    groups = re.compile(_as_python(literals[1] or "")).groups
    third = literals[2] if len(literals) > 2 else "1"
    for number in re.findall(r"\$(\d)", third or "") if name == "regexp_replace" else [third or ""]:
        if int(number) > groups:
            what, way_out = f"${number}", "Put a group into parentheses."
            if name != "regexp_replace":
                what, way_out = f"group {number}", f"Put a group into parentheses, or write {name}(x, '…', 0)."
            raise Wrong(place, f"{what} where the pattern has {groups} groups", way_out)


def _refuse_literals(name: str, overloads: Sequence[Function], arguments: Sequence[Expr]) -> None:
    """Says which literal is wrong, where it is not the types."""
    wanted = {
        "regex": "regular expression",
        "zone": "time zone",
        "format": "pattern of times",
        "parsed": "pattern of times to read, without weekdays and quarters,",
        "replacement": "plain text",
        "schema": "schema of texts, numbers and booleans",
    }
    for row in overloads:
        for taken, argument in zip(row.takes, arguments, strict=False):
            kind = taken.rstrip("?")
            if kind in _NUMBERS and argument.type.integral and not isinstance(argument, Constant):
                raise Wrong(argument.place, f"{name}() with a number that is no literal", "Write it out.")
            if kind not in wanted or argument.type != STRING:
                continue
            if not isinstance(argument, Constant):
                raise Wrong(argument.place, f"{name}() with a {wanted[kind]} that is no literal", "Write it out.")
            if kind == "regex":
                _refuse_endless(argument)
            if not _CHECKED[kind](argument.value or ""):
                reason = f"{argument.value!r} is no {wanted[kind]} that Spark is sure to take"
                way_out = "A value that Spark refuses while it runs would stop the stream."
                raise Wrong(argument.place, reason, "Read times as STRING, and cast." if kind == "schema" else way_out)


def _refuse_endless(regex: Constant) -> None:
    """A repeated group in which a long text of one record would end Java's stack, or take for ever."""
    found = endless(regex.value or "") if _is_regex(regex.value or "") else None
    if found is not None:
        reason = f"the group {found.text} repeats in many ways: a long text overflows Java's stack, or never ends"
        keeps = " It keeps what it took, so name what a round holds: [^,]* for .*, and nothing that may come next."
        raise Wrong(regex.place, reason, f"Write {found.instead}.{'' if found.instead[0] == '[' else keeps}")


def overload(expression: Call) -> Function | None:
    """The row of the table that a call was made from."""
    for exactly in (True, False):
        for row in FUNCTIONS.get(expression.function, ()):
            if _taken(row, expression.arguments, exactly, None) is not None:
                return row
    return None


def _given(row: Function, arguments: Sequence[Expr], literals: Sequence[str | None]) -> Type:
    types = [a.type for a in arguments]
    if isinstance(row.gives, Type):
        return row.gives
    if isinstance(row.gives, str):
        return types[0]
    return row.gives(types, literals)


def _taken(row: Function, arguments: Sequence[Expr], exactly: bool, place: Place) -> tuple[Expr, ...] | None:
    """The arguments as the row takes them, None if it does not."""
    kinds = _kinds(row, len(arguments))
    if kinds is None:
        return None
    taken = [_as_kind(a, kind, exactly) for a, kind in zip(arguments, kinds, strict=True)]
    if any(t is None for t in taken):
        return None
    result = [t for t in taken if t is not None]
    for position, kind in enumerate(kinds):
        first = result[0].type
        wanted = {"element": first.element, "key": first.key, "same": first}.get(kind, result[position].type)
        if wanted is not None and wanted.integral and result[position].type.integral and not exactly:
            result[position] = _safely(result[position], wanted.name) or result[position]
        if result[position].type != wanted:
            return None
    shared = [i for i, kind in enumerate(kinds) if kind in ("common", "ordered")]
    if shared:
        try:
            met = meet([result[i] for i in shared], place, f"{row.name}()", texts="common" in kinds)
        except Wrong:
            return None
        for i, expression in zip(shared, met, strict=True):
            result[i] = expression
    return tuple(result)


def _kinds(row: Function, count: int) -> list[str] | None:
    """The kind of each of so many arguments, None if the row does not take as many."""
    kinds: list[str] = []
    for kind in row.takes:
        if kind.endswith("*"):
            kinds += [kind[:-1]] * (count - len(kinds))
        elif not kind.endswith("?") or len(kinds) < count:
            kinds.append(kind.rstrip("?"))
    return kinds if len(kinds) == count else None


def _is_list_of(kind: Type, wanted: Callable[[Type], bool]) -> bool:
    return kind.name == "ARRAY" and kind.element is not None and wanted(kind.element)


def _is_printed(kind: Type) -> bool:
    """Do both engines write its values with the same letters?"""
    return kind.integral or kind in (STRING, BOOLEAN, DATE)


_SHAPES: dict[str, Callable[[Type], bool]] = {
    **dict.fromkeys(("any", "common", "element", "key", "same"), lambda _: True),
    "integral": lambda kind: kind.integral,
    "ordered": lambda kind: "MAP<" not in kind.spark,
    "day": lambda kind: kind == DATE,
    "instant": lambda kind: kind == TIMESTAMP,
    "numeric": lambda kind: kind.numeric,
    "array": lambda kind: kind.name == "ARRAY",
    "comparable": lambda kind: kind.name == "ARRAY" and "MAP<" not in kind.spark,
    "listed": lambda kind: _is_list_of(kind, lambda of: not of.nested),
    "plain": lambda kind: _is_list_of(kind, lambda of: _is_printed(of) or of.name == "DECIMAL"),
    "printed": lambda kind: _is_list_of(kind, _is_printed),
    "doubles": lambda kind: _is_list_of(kind, lambda of: of.name in ("DOUBLE", "FLOAT")),
    "scalars": lambda kind: any(_SHAPES[each](kind) for each in ("plain", "doubles", "times")),
    "times": lambda kind: _is_list_of(kind, lambda of: of in (TIMESTAMP, TIMESTAMP_NTZ)),
    "structs": lambda kind: _is_list_of(kind, lambda of: of.name == "STRUCT"),
    "arrays": lambda kind: kind.element is not None and kind.element.name == "ARRAY",
    "map": lambda kind: kind.name == "MAP",
    "struct": lambda kind: kind.name == "STRUCT" or kind == WINDOW,
    "scalar": lambda kind: not kind.nested and not kind.length and kind != VOID,
}
"""Kinds of arguments that take a type or do not, without a cast."""


def _as_kind(argument: Expr, kind: str, exactly: bool) -> Expr | None:
    """One argument as a kind of the table; None if it is not one. Unless `exactly`, Spark's safe casts are made."""
    type_ = argument.type
    if kind in _SHAPES:
        return argument if _SHAPES[kind](type_) else None
    match kind:
        case _ if kind in LITERALS:
            return _as_literal(argument, kind) if isinstance(argument, Constant) else None
        case "texts" if type_ == Type("ARRAY", element=STRING):
            return argument
        case "text" | "texts":
            if type_ in (STRING, VOID):
                return argument
            return cast(argument, STRING, implicit=True) if _is_printed(type_) and not exactly else None
    if type_.name == kind.upper():
        return argument
    return None if exactly else _safely(argument, kind.upper())


def _as_literal(argument: Constant, kind: str) -> Expr | None:
    """One argument that must be known when the view is declared."""
    value = argument.value
    if value is None:
        return None
    if kind in _NUMBERS:
        whole = replace(argument, type=INT, suffixed=False) if argument.suffixed else argument
        return whole if whole.type == INT and _NUMBERS[kind](int(value)) else None
    if kind == "flag":
        return argument if argument.type == BOOLEAN else None
    if argument.type != STRING:
        return None
    if kind in _CHECKED:
        return argument if _CHECKED[kind](value) else None
    if kind == "weekday":
        day = next((day for day in _WEEKDAYS if value.strip().upper() in (day[:2], day[:3], day)), None)
        return replace(argument, value=day[:2]) if day else None
    if kind in ("unit", "dateunit"):
        unit = UNITS.get(value.upper())
        coarse = unit in ("year", "quarter", "month", "week")
        return replace(argument, value=unit) if unit and (coarse or kind == "unit") else None
    return argument


def _is_regex(text: str) -> bool:
    """Is it a regular expression in Java's and Python's syntax alike? Java's own names of groups are let through."""
    try:
        re.compile(_as_python(text))
    except (re.error, RecursionError):
        return False
    return True


def _is_bounded(text: str) -> bool:
    return _is_regex(text) and endless(text) is None


def _as_python(regex: str) -> str:
    """A regular expression with Python's way to name a group."""
    return regex.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")


def _is_zone(text: str) -> bool:
    return text in available_timezones() or re.fullmatch(r"[+-]\d\d:\d\d", text) is not None


def _is_format(text: str) -> bool:
    """A pattern of times made of letters that Spark reads and writes without raising."""
    bare = re.sub(r"'[^']*'", "", text)
    known = "yyyy|yy|y|MMMM|MMM|MM|M|dd|d|HH|H|hh|h|mm|m|ss|s|S{1,9}|a|EEEE|EEE|E|D|DDD|XXX|X|Q"
    return (
        "'" not in bare
        and all(re.fullmatch(known, run[0]) for run in re.finditer(r"([a-zA-Z])\1*", bare))
        and not re.search(r"[#{}\[\]]", bare)
    )


def _is_parsed(text: str) -> bool:
    """A pattern by which Spark reads times: no weekdays and quarters, at which it raises."""
    return _is_format(text) and not set("EQ") & set(re.sub(r"'[^']*'", "", text))


_NUMBERS: dict[str, Callable[[int], bool]] = {
    "natural": lambda n: n >= 0,
    "positive": lambda n: n > 0,
    "whole": lambda n: abs(n) <= 10_000,
    "nonzero": lambda n: n != 0,
    "negative": lambda n: n < 0,
}
_WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")

_CHECKED: dict[str, Callable[[str], bool]] = {
    "character": lambda text: len(text) == 1,
    "delimiter": bool,
    "separator": lambda text: not set(text) & set(r"\^$.|?*+()[]{}"),
    "pattern": lambda text: pattern(text) is not None,
    "translated": lambda text: _is_bounded(text) and decides(text) is not None,
    "unambiguous": lambda text: _is_bounded(text) and finds(text) is not None,
    "regex": _is_bounded,
    "replacement": lambda text: re.fullmatch(r"([^$\\]|\$\d)*", text, re.DOTALL) is not None,
    "format": _is_format,
    "parsed": _is_parsed,
    "zone": _is_zone,
    "schema": lambda text: schema(text) is not None,
}
LITERALS = ("literal", "flag", "weekday", "unit", "dateunit", *_NUMBERS, *_CHECKED)
"""Kinds of arguments that must be known when the view is declared."""


def _safely(argument: Expr, wanted: str) -> Expr | None:
    type_ = argument.type
    target = Type(wanted)
    if type_ == VOID:
        return cast(argument, target, implicit=True) if wanted != "DECIMAL" else None
    if type_.integral and wanted in INTEGRAL and INTEGRAL.index(type_.name) <= INTEGRAL.index(wanted):
        return cast(argument, target, implicit=True)
    if type_.numeric and wanted == "DOUBLE":
        return cast(argument, DOUBLE, implicit=True)
    if (type_ == DATE and wanted in ("TIMESTAMP", "TIMESTAMP_NTZ")) or (type_ == TIMESTAMP and wanted == "DATE"):
        return cast(argument, target, implicit=True)
    if isinstance(argument, Constant) and type_ == STRING and wanted in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        read = as_time(argument.value or "", target)
        return replace(argument, value=read, type=target) if read else None
    return None


def pattern(text: str) -> str | None:
    """A date_format pattern in Postgres' letters, None where a letter has no equal.

    >>> pattern("yyyy-MM-dd HH:mm"), pattern("EEEE"), pattern("yyyyMM"), pattern("X")
    ('YYYY-MM-DD HH24:MI', 'FMDay', 'YYYY""MM', None)
    """
    pieces = [match[0] for match in re.finditer(r"([a-zA-Z])\1*|[^a-zA-Z]+", text)]
    out = [_PATTERN.get(p, None if p[0].isalpha() or '"' in p or "'" in p else p) for p in pieces]
    between = ['""' if a[0].isalpha() and b[0].isalpha() else "" for a, b in pairwise(pieces)]  # no word of two
    return None if None in out else "".join(f"{p}{more}" for p, more in zip_longest(out, between, fillvalue=""))
