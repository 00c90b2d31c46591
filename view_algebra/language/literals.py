"""Arguments that must be literals: regular expressions, patterns of times, zones, units, numbers.

A wrong literal would stop a stream at the first record, so literals are known and checked when a view is declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
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


def as_literal(argument: Constant, kind: str) -> Expr | None:
    """The checked literal for an argument of this kind, or None if it is wrong."""
    value = argument.value
    if value is None:
        return None
    if kind in NUMBERS:
        whole = number(value, argument.place) if argument.suffixed else argument
        return whole if whole.type == INT and NUMBERS[kind](int(value)) else None
    if kind == "flag":
        return argument if argument.type == BOOLEAN else None
    if argument.type != STRING:
        return None
    if kind in CHECKED:
        return argument if CHECKED[kind](value) else None
    if kind == "weekday":
        day = next((day for day in _WEEKDAYS if value.strip().upper() in (day[:2], day[:3], day)), None)
        return replace(argument, value=day[:2]) if day else None
    if kind in ("unit", "dateunit"):
        unit = _TRUNC_UNITS.get(value.upper())
        coarse = unit in ("year", "quarter", "month", "week")
        return replace(argument, value=unit) if unit and (coarse or kind == "unit") else None
    return argument


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


NUMBERS: dict[str, Callable[[int], bool]] = {
    "natural": lambda n: n >= 0,
    "positive": lambda n: n > 0,
    "whole": lambda n: abs(n) <= 10_000,
    "nonzero": lambda n: n != 0,
    "negative": lambda n: n < 0,
}

_WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
CHECKED: dict[str, Callable[[str], bool]] = {
    "character": lambda text: len(text) == 1,
    "delimiter": bool,
    "separator": lambda text: not set(text) & set(r"\^$.|?*+()[]{}"),
    "pattern": lambda text: pattern(text) is not None,
    "translated": lambda text: _is_bounded(text) and decides(text) is not None,
    "unambiguous": lambda text: _is_bounded(text) and finds(text) is not None,
    "regex": _is_bounded,
    "replacement": lambda text: re.fullmatch(r"([^$\\]|\$\d)*", text, re.DOTALL) is not None,
    "format": lambda text: _is_pattern(text, _PRINTED, "#{}[]"),
    "parsed": lambda text: _is_pattern(text, _READ, "#{}"),  # a text may lack the parts in brackets
    "zone": lambda text: text in available_timezones() or re.fullmatch(r"[+-]\d\d:\d\d", text) is not None,
    "path": lambda text: re.search(r"\[0*[1-9][0-9]{18}", text) is None,
    "schema": lambda text: schema(text) is not None,
}

LITERALS = ("literal", "flag", "weekday", "unit", "dateunit", *NUMBERS, *CHECKED)
"""Kinds of arguments that must be known when the view is declared."""


def pattern(text: str) -> str | None:
    """A date_format pattern in Postgres' letters, or None if a letter has no equivalent.

    >>> pattern("yyyy-MM-dd HH:mm"), pattern("EEEE"), pattern("yyyyMM"), pattern("X")
    ('YYYY-MM-DD HH24:MI', 'FMDay', 'YYYY""MM', None)
    """
    pieces = [match[0] for match in re.finditer(r"([a-zA-Z])\1*|[^a-zA-Z]+", text)]
    out = [_LETTERS.get(p, None if p[0].isalpha() or '"' in p or "'" in p else p) for p in pieces]
    between = ['""' if a[0].isalpha() and b[0].isalpha() else "" for a, b in pairwise(pieces)]  # no word of two
    return None if None in out else "".join(f"{p}{more}" for p, more in zip_longest(out, between, fillvalue=""))
