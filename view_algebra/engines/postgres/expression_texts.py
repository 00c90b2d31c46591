"""Writes expressions by their kind, or by the template in the table of functions.

An operation with the same meaning in both engines stays plain. Others use `spark_functions.sql`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from view_algebra.engines.postgres.aggregate_texts import (
    aggregate,
    filter_clause,
    merged,
    of_counted_values,
    window_function,
)
from view_algebra.engines.postgres.value_texts import FORMS_OF_VALUES, inside, member
from view_algebra.engines.postgres.writer import (
    AND,
    ATOM,
    CAST,
    COMPARE,
    IN,
    IS,
    NOT,
    OR,
    OTHER,
    Writer,
    as_text,
    by_bytes,
    constant,
    indented,
    is_column,
    typed_text,
)
from view_algebra.language.above import CAST_CALLS, COMPARISONS, cast_template, is_left_out
from view_algebra.language.calendar_bounds import leaves_calendar
from view_algebra.language.expressions import (
    NOW,
    VARIABLE,
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
)
from view_algebra.language.like_patterns import ESCAPES_NOTHING
from view_algebra.language.literals import pattern
from view_algebra.language.overloads import overload
from view_algebra.language.quoting import postgres_name, words
from view_algebra.language.regexes import decides, finds, replacement
from view_algebra.language.times import BOUNDED
from view_algebra.language.types import STRING, VOID

_TRANSLATED: dict[str, Callable[[str], str | None]] = {
    "pattern": pattern,
    "translated": decides,
    "unambiguous": finds,
    "replacement": replacement,
}
"""Kinds of literals that Postgres writes differently."""

_SLOT = re.compile(r"(?P<before>\(|, )?\{(?P<name>[a-z0-9]+)(?::(?P<default>[^}]*))?\}(?=(?P<after>[,)])?)")


def filled(template: str, call: Call, writer: Writer) -> tuple[str, int]:
    """The template of the function table, filled with the call's arguments."""
    arguments = call.arguments
    collated = call.function in ("greatest", "least") and call.type == STRING

    def slot(match: re.Match[str]) -> str:
        name, before = match["name"], match["before"] or ""
        if name in ("all", "rest"):
            texts = [writer.text(a) for a in arguments[1 if name == "rest" else 0 :]]
            if collated:
                texts[0] = by_bytes(arguments[0], writer.text(arguments[0], CAST))
            return before + ", ".join(texts)
        if name == "element":
            return before + (arguments[0].type.element or STRING).postgres
        if name == "inside":
            return before + ", ".join(inside(a, writer) for a in arguments)
        if name == "pipes":
            return before + " || ".join(as_text(a, writer) for a in arguments)
        if int(name) >= len(arguments):
            return before + (match["default"] or "")
        argument = arguments[int(name)]
        if isinstance(argument, Constant) and (translated := _TRANSLATED.get(_literal_kind(call, int(name)))):
            argument = replace(argument, value=translated(argument.value or ""))
        enclosed = bool(before) and bool(match["after"])
        if isinstance(argument, Constant) and argument.value is None and argument.type != VOID:
            null = f"NULL::{argument.type.postgres}"
            return before + (null if enclosed else f"({null})")
        return before + writer.text(argument, 0 if enclosed else ATOM)

    text = _SLOT.sub(slot, template)
    whole = re.fullmatch(r"[a-z_.]+\(.*\)", text) is not None and _balanced(text)
    return text, ATOM if whole or template == "{0}" else 0


def _literal_kind(call: Call, position: int) -> str:
    """The kind of the argument at this position in the table of functions."""
    row = overload(call)
    return row.takes[position].rstrip("?") if row is not None and position < len(row.takes) else ""


def _balanced(text: str) -> bool:
    """True if the first parenthesis closes at the very end."""
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0:
            return position == len(text) - 1
    return False


def expression(value: Expr, writer: Writer, least: int = 0) -> str:
    """An expression as Postgres SQL, in parentheses if it binds less tightly than `least`."""
    text, binds = _text_and_precedence(value, writer)
    return f"({text})" if binds < least else text


def _text_and_precedence(value: Expr, writer: Writer) -> tuple[str, int]:
    match value:
        case Constant():
            return constant(value), ATOM
        case Field():
            return _field(value, writer)
        case Case():
            whens = "".join(f" WHEN {writer.text(w)} THEN {writer.text(t)}" for w, t in value.branches)
            otherwise = f" ELSE {writer.text(value.otherwise)}" if value.otherwise is not None else ""
            return f"CASE{whens}{otherwise} END", ATOM
        case Call():
            return _call(value, writer)
        case Aggregate():
            return aggregate(value, filter_clause(value.condition, writer), writer)
        case OverValues():
            return of_counted_values(value, writer), ATOM
        case Merged():
            return merged(value, writer)
        case Windowed():
            return window_function(value, writer)
        case NeedsRecords():
            raise AssertionError("the placement leaves no such expression to this writer")
        case Subquery():
            return _subquery(value, writer)


def _subquery(value: Subquery, writer: Writer) -> tuple[str, int]:
    inner = "(\n" + indented(writer.query(value.query, replace(writer, depth=writer.depth + 1))) + "\n)"
    if value.kind == "exists":
        return f"EXISTS {inner}", ATOM
    if value.kind == "in" and value.operand is not None:
        return f"{writer.text(value.operand, OTHER)} IN {inner}", IN
    return inner, ATOM


def _field(column: Field, writer: Writer) -> tuple[str, int]:
    whole = postgres_name(column.path[0])
    if column.relation and column.relation != VARIABLE:
        whole = f"{writer.alias(column.relation, outer=column.outer)}.{whole}"
    if len(column.path) == 1:
        return whole, ATOM
    *outer, last = (constant(Constant(name, STRING)) for name in column.path[1:])
    return member(" -> ".join((whole, *outer)), last, column.type)


def _call(call: Call, writer: Writer) -> tuple[str, int]:
    text, binds = _unguarded(call, writer)
    if leaves_calendar(call) and call.function not in _WITHIN_CALENDAR:
        return f"spark.shown({text})", ATOM
    return text, binds


_WITHIN_CALENDAR = {
    *("+ interval", "- interval"),
    *words("window_start window_end date_add dateadd date_sub add_months last_day next_day make_date"),
}
"""Calls whose text already returns NULL outside of the calendar."""


def _unguarded(call: Call, writer: Writer) -> tuple[str, int]:
    form = FORMS.get(call.function)
    if form is not None:
        return form(call, writer)
    row = overload(call)
    assert row is not None
    assert row.above is not None
    return filled(row.above, call, writer)


def _logical(call: Call, writer: Writer) -> tuple[str, int]:
    binds = AND if call.function == "and" else OR
    left, right = (writer.text(a, binds + n) for n, a in enumerate(call.arguments))
    return f"{left} {call.function.upper()} {right}", binds


def _not(call: Call, writer: Writer) -> tuple[str, int]:
    inner = call.arguments[0]
    if isinstance(inner, Call) and inner.function in ("is null", "<=>") and inner not in writer.grouped:
        sides = [writer.text(a, OTHER) for a in inner.arguments]
        return (f"{sides[0]} IS NOT NULL" if len(sides) == 1 else f"{sides[0]} IS DISTINCT FROM {sides[1]}"), IS
    return f"NOT {writer.text(inner, IS)}", NOT


def _is_null(call: Call, writer: Writer) -> tuple[str, int]:
    return f"{writer.text(call.arguments[0], OTHER)} {call.function.upper()}", IS


def _compared(call: Call, writer: Writer) -> tuple[str, int]:
    name = call.function
    first, second = call.arguments
    left, right = writer.text(first, OTHER), writer.text(second, OTHER)
    if name == "<=>":
        return f"{left} IS NOT DISTINCT FROM {right}", IS
    if name not in ("=", "<>") and first.type == STRING and not is_column(second):
        left = by_bytes(first, writer.text(first, OTHER if is_column(first) else CAST))
    return f"{left} {name} {right}", COMPARE


def _in(call: Call, writer: Writer) -> tuple[str, int]:
    rest = ", ".join(writer.text(a) for a in call.arguments[1:])
    return f"{writer.text(call.arguments[0], OTHER)} IN ({rest})", IN


def _like(call: Call, writer: Writer) -> tuple[str, int]:
    value, wanted = call.arguments
    pattern_ = writer.text(wanted, OTHER)
    like = f"{writer.text(value, OTHER)} LIKE {pattern_}"
    if isinstance(wanted, Constant):
        return like, IN
    return f"CASE WHEN NOT {pattern_} ~ {constant(Constant(ESCAPES_NOTHING, STRING))} THEN {like} END", ATOM


def _cast(call: Call, writer: Writer) -> tuple[str, int]:
    if is_left_out(call):
        return _text_and_precedence(call.arguments[0], writer)
    template = cast_template(call)
    assert template is not None
    text, _ = filled(template, call, writer)
    if re.fullmatch(r"\{0\}::[a-z0-9_ (),]+", template):
        return text, CAST
    return text, ATOM if text.endswith(")") and not text.startswith("(") else 0


def _bounded_sequence(call: Call, writer: Writer) -> tuple[str, int]:
    return _call(replace(call, function="sequence"), writer)


def _endless(call: Call, writer: Writer) -> tuple[str, int]:
    """A value computed from a time, or the same infinity for an infinite time."""
    value, time = (writer.text(argument) for argument in call.arguments)
    return f"coalesce({value}, spark.infinite({time})::{call.type.postgres})", ATOM


FORMS: dict[str, Callable[[Call, Writer], tuple[str, int]]] = {
    **FORMS_OF_VALUES,
    **dict.fromkeys(("and", "or"), _logical),
    "not": _not,
    **dict.fromkeys(("is null", "is not null"), _is_null),
    **dict.fromkeys(COMPARISONS, _compared),
    "in": _in,
    "like": _like,
    **dict.fromkeys(CAST_CALLS, _cast),
    BOUNDED: _bounded_sequence,
    "finite": lambda call, writer: (f"spark.shown({writer.text(call.arguments[0])})", ATOM),
    "endless": _endless,
    NOW: lambda _, __: ("now()", ATOM),
    "row": lambda call, writer: (f"({', '.join(typed_text(a, writer) for a in call.arguments)})", ATOM),
    "~": lambda call, writer: (f"(~{writer.text(call.arguments[0], ATOM)})", ATOM),
}
"""Calls that the table of functions does not have."""
