"""Arguments that must be literals: regular expressions, patterns of times, zones, units, numbers.

A wrong literal would stop a stream at the first record, so literals are known and checked when a view is declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from itertools import accumulate, pairwise, zip_longest
from operator import add, mul, sub, truediv
from zoneinfo import available_timezones

from view_algebra.language.endless_regexes import endless
from view_algebra.language.expressions import Call, Constant, Expr
from view_algebra.language.lengths import MICROSECONDS
from view_algebra.language.operators import number
from view_algebra.language.regexes import decides, finds
from view_algebra.language.types import BIGINT, BITS, BOOLEAN, DOUBLE, INT, STRING, Type, schema

_TRUNC_UNITS = {
    **{unit.upper(): unit for unit in (*MICROSECONDS, "month", "quarter", "year")},
    **dict.fromkeys(("YYYY", "YY"), "year"),
    **dict.fromkeys(("MM", "MON"), "month"),
    "DD": "day",
}
"""Units of date_trunc, by Spark's names, with Postgres' names."""

_LETTERS = dict(
    re.findall(
        r"(\S+)=(\S+)",
        "yyyy=YYYY y=FMYYYY yy=YY Q=Q MM=MM M=FMMM MMM=Mon MMMM=FMMonth dd=DD d=FMDD D=FMDDD DDD=DDD E=Dy EEE=Dy"
        " EEEE=FMDay a=AM HH=HH24 H=FMHH24 hh=HH12 h=FMHH12 mm=MI m=FMMI ss=SS s=FMSS S=FF1 SS=FF2 SSS=FF3 SSSSSS=FF6",
    )
)
"""Letters of date_format, with their equivalents in Postgres."""


@dataclass(frozen=True)
class LiteralKind:
    """A kind of argument that must be a literal, because Spark raises at a wrong one.

    meaning: its description in docs/sql.md
    reads: the function from a literal's text to its text in Spark's call, or None if the literal is wrong
    name: its name in the refusal of a value that a record decides. Empty: the call is refused for its types
    example: a literal of this kind, for that refusal's way out
    instead: the way out for a literal that Spark may refuse while it runs
    type: the type of the literal
    """

    meaning: str
    reads: Callable[[str], str | None]
    name: str = ""
    example: str = ""
    instead: str = ""
    type: Type = STRING


def as_literal(argument: Constant, kind: str) -> Expr | None:
    """The checked literal for an argument of this kind, or None if it is wrong."""
    value, row = argument.value, LITERALS[kind]
    if value is None:
        return None
    literal = number(value, argument.place) if row.type == INT and argument.suffixed else argument
    read = row.reads(value) if literal.type == row.type else None
    return None if read is None else replace(literal, value=read)


def computed_literal(value: Expr) -> Expr:
    """The literal value of an expression over literals. Any other expression stays unchanged.

    >>> from view_algebra.language.operators import calculate
    >>> from view_algebra.language.types import decimal
    >>> sum = computed_literal(calculate("+", Constant("0.2", decimal(1, 1)), Constant("0.3", decimal(1, 1))))
    >>> sum.value, sum.type.spark
    ('0.5', 'DECIMAL(2,1)')
    """
    arguments = [computed_literal(argument) for argument in value.arguments] if isinstance(value, Call) else []
    texts = [argument.value for argument in arguments if isinstance(argument, Constant) and argument.value is not None]
    if not isinstance(value, Call) or not texts or len(texts) < len(arguments):
        return value
    kind, (first, *others) = value.type, [argument.type for argument in arguments]
    text = None
    if value.function == "concat" and {first, *others} == {STRING}:
        text = "".join(texts)
    elif value.function == "cast" and first.numeric and (kind in (DOUBLE, BIGINT) or kind.name == "DECIMAL"):
        text = texts[0] if kind == DOUBLE or first.integral else None
    elif value.function in _COMPUTED and kind == DOUBLE and {first, *others} == {DOUBLE}:
        numbers = [float(text) for text in texts]
        text = None if value.function == "/" and not numbers[1] else repr(_COMPUTED[value.function](*numbers))
    elif value.function in _EXACTLY and (kind.integral or kind.name == "DECIMAL"):
        exact = _EXACTLY[value.function](*map(Decimal, texts))
        text = f"{exact:f}" if _fits(exact, kind) else None
    return value if text is None else Constant(text, kind, value.place)


_WIDE = Context(prec=80)
_EXACTLY: dict[str, Callable[..., Decimal]] = {"+": _WIDE.add, "-": _WIDE.subtract, "*": _WIDE.multiply}
_COMPUTED: dict[str, Callable[..., float]] = {"+": add, "-": sub, "*": mul, "/": truediv}


def _fits(exact: Decimal, kind: Type) -> bool:
    """True if the type has this number, so that Spark neither rounds nor wraps it."""
    if kind.integral:
        return -(1 << BITS[kind.name]) <= exact < 1 << BITS[kind.name]
    return -int(exact.as_tuple().exponent) <= kind.scale and abs(exact) < 10 ** (kind.precision - kind.scale)


def is_regex(text: str) -> bool:
    """True if it is a regular expression to both Java and Python, except for Java's syntax of group names."""
    try:
        re.compile(as_python(text))
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _is_bounded(text: str) -> bool:
    return is_regex(text) and endless(text) is None


def as_python(regex: str) -> str:
    """The regular expression with Python's syntax of group names."""
    return regex.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")


_OF_DATES = "yyyy|yy|y|MMMM|MMM|MM|M|dd|d|HH|H|hh|h|mm|m|ss|s|S{1,9}|a|D|DDD"
_PRINTED = re.compile(f"{_OF_DATES}|EEEE|EEE|E|XXX|X|Q")
_READ = re.compile(f"{_OF_DATES}|X{{1,3}}|x{{1,3}}|Z{{1,5}}|VV|O|OOOO")
"""Pattern letters that Spark reads, which excludes weekdays and quarters."""


def _is_pattern(text: str, letters: re.Pattern[str], refused: str) -> bool:
    """True if a pattern of times has only these letters, none of the refused signs, and closes what it opens."""
    bare = re.sub(r"'[^']*'", "", text)
    depths = [0, *accumulate((sign == "[") - (sign == "]") for sign in bare)]
    nests = min(depths) >= 0 and depths[-1] == 0
    runs = (run[0] for run in re.finditer(r"([a-zA-Z])\1*", bare))
    return nests and all(map(letters.fullmatch, runs)) and not set(bare) & {"'", *refused}


_WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


def _weekday(text: str) -> str | None:
    """The first two letters of a day of the week."""
    return next((day[:2] for day in _WEEKDAYS if text.strip().upper() in (day[:2], day[:3], day)), None)


def _unit(text: str) -> str | None:
    return _TRUNC_UNITS.get(text.upper())


def _unit_of_dates(text: str) -> str | None:
    unit = _unit(text)
    return unit if unit in ("year", "quarter", "month", "week") else None


def _any(text: str) -> str:
    return text


def _if(accepts: Callable[[str], object]) -> Callable[[str], str | None]:
    """The function that reads a text as it is if it is accepted."""
    return lambda text: text if accepts(text) else None


def _number(meaning: str, accepts: Callable[[int], bool]) -> LiteralKind:
    return LiteralKind(meaning, _if(lambda text: accepts(int(text))), "number", "2", type=INT)


LITERALS = {
    "literal": LiteralKind("a literal text", _any),
    "flag": LiteralKind("a literal, true or false", _any, type=BOOLEAN),
    "positive": _number("a literal whole number from 1", lambda n: n > 0),
    "natural": _number("a literal whole number from 0", lambda n: n >= 0),
    "whole": _number("a literal whole number from -10,000 to 10,000", lambda n: abs(n) <= 10_000),
    "nonzero": _number("a literal whole number that is not 0", lambda n: n != 0),
    "negative": _number("a literal whole number below 0", lambda n: n < 0),
    "character": LiteralKind("a literal text of one character", _if(lambda text: len(text) == 1)),
    "delimiter": LiteralKind("a literal text that is not empty", _if(bool)),
    "separator": LiteralKind(
        "a literal text in which no character has a meaning of its own in a regular expression",
        _if(lambda text: not set(text) & set(r"\^$.|?*+()[]{}")),
    ),
    "weekday": LiteralKind("a literal day of the week", _weekday),
    "unit": LiteralKind("a literal unit of time", _unit, "unit of time", "'DAY'"),
    "dateunit": LiteralKind("a literal unit of time of a day or longer", _unit_of_dates, "unit of time", "'MONTH'"),
    "regex": LiteralKind(
        "a literal regular expression",
        _if(_is_bounded),
        "regular expression",
        "'[0-9]+'",
        "Write it in the syntax of java.util.regex: 'a(b)?', '^[0-9]+$'.",
    ),
    "translated": LiteralKind(
        "a literal regular expression that Postgres reads as Java does",
        _if(lambda text: _is_bounded(text) and decides(text) is not None),
    ),
    "unambiguous": LiteralKind(
        "the same, and no two parts of it compete for a character",
        _if(lambda text: _is_bounded(text) and finds(text) is not None),
    ),
    "replacement": LiteralKind(
        "a literal text in which `$1` stands for a group",
        _if(lambda text: re.fullmatch(r"([^$\\]|\$\d)*", text, re.DOTALL)),
        "plain text",
        "'-'",
        "Write $1 for a group, and no backslash: '$1-$2'.",
    ),
    "format": LiteralKind(
        "a literal pattern of times, to print",
        _if(lambda text: _is_pattern(text, _PRINTED, "#{}[]")),
        "pattern of times",
        "'yyyy-MM-dd'",
        "Use the letters y M d D H h m s S a E X Q, as in 'yyyy-MM-dd HH:mm'.",
    ),
    "pattern": LiteralKind("the same, in letters that Postgres has, too", _if(lambda text: pattern(text) is not None)),
    "parsed": LiteralKind(
        "a literal pattern of times, to read: without weekdays and quarters",
        _if(lambda text: _is_pattern(text, _READ, "#{}")),  # a text may lack the parts in brackets
        "pattern of times to read",
        "'yyyy-MM-dd'",
        "Use the letters y M d D H h m s S a X x Z V O, and take what others stand for out of the text:"
        " regexp_replace(x, '…', '').",
    ),
    "zone": LiteralKind(
        "a literal time zone",
        _if(lambda text: text in available_timezones() or re.fullmatch(r"[+-]\d\d:\d\d", text)),
        "time zone",
        "'Europe/Paris'",
        "Write a region or an offset: 'Europe/Paris', '+02:00'.",
    ),
    "path": LiteralKind(
        "a literal path such as `$.a[0].b`", _if(lambda text: not re.search(r"\[0*[1-9][0-9]{18}", text))
    ),
    "schema": LiteralKind(
        "a literal schema of texts, numbers and booleans",
        _if(lambda text: schema(text) is not None),
        "schema of texts, numbers and booleans",
        "'a INT, b STRING'",
        "Read times as STRING, and cast: from_json(x, 'a INT, at STRING').",
    ),
}
"""Kinds of arguments that must be known when the view is declared, in the order of docs/sql.md."""


def pattern(text: str) -> str | None:
    """A date_format pattern in Postgres' letters, or None if a letter has no equivalent.

    >>> pattern("yyyy-MM-dd HH:mm"), pattern("EEEE"), pattern("yyyyMM"), pattern("X")
    ('YYYY-MM-DD HH24:MI', 'FMDay', 'YYYY""MM', None)
    """
    pieces = [match[0] for match in re.finditer(r"([a-zA-Z])\1*|[^a-zA-Z]+", text)]
    out = [_LETTERS.get(p, None if p[0].isalpha() or '"' in p or "'" in p else p) for p in pieces]
    between = ['""' if a[0].isalpha() and b[0].isalpha() else "" for a, b in pairwise(pieces)]  # no word of two
    return None if None in out else "".join(f"{p}{more}" for p, more in zip_longest(out, between, fillvalue=""))
