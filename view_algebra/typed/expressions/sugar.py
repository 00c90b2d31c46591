"""Functions that are short for other expressions, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from sqlglot import exp

from view_algebra.language.expressions import Call, Case, Constant, Expr, Place, member
from view_algebra.language.lengths import LENGTHS, MICROSECONDS, length
from view_algebra.language.lengths import number as number_of
from view_algebra.language.meeting import cast, compare, meet
from view_algebra.language.operators import calculate, case, negative, number
from view_algebra.language.overloads import call
from view_algebra.language.times import MONTHS, field_of, interval, sequence, shifted
from view_algebra.language.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    WINDOW,
    Type,
    decimal,
)
from view_algebra.refusals import Wrong, not_taken, span, suggestion

Arguments = Sequence[Expr]

CHARACTERS: dict[str, Type] = {"decode": STRING, "encode": BINARY}
"""Functions between bytes and texts, with their result's type."""

_WHOLE_NUMBERS = (TINYINT, SMALLINT, INT, BIGINT)
CASTS: dict[str, Type] = {
    kind.name.lower(): kind
    for kind in (BOOLEAN, *_WHOLE_NUMBERS, FLOAT, DOUBLE, decimal(10, 0), STRING, DATE, TIMESTAMP)
}
"""Functions that cast to a type, such as `int(x)`."""

FIELDS: dict[str, str] = {
    **dict.fromkeys(("YEAR", "YEARS", "Y", "YR", "YRS"), "year"),
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MONTHS", "MON", "MONS"), "month"),
    **dict.fromkeys(("WEEK", "WEEKS", "W"), "weekofyear"),
    **dict.fromkeys(("DAY", "DAYS", "D"), "day"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "dayofweek"),
    "DOY": "dayofyear",
    **dict.fromkeys(("HOUR", "HOURS", "H", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "MINUTES", "M", "MIN", "MINS"), "minute"),
}
"""Fields of EXTRACT, with the functions that return them."""


def _decode(arguments: Arguments, place: Place) -> Expr:
    """`decode(x, a, 'A', b, 'B', 'other')`. NULL equals NULL, and without a match or a default the result is NULL."""
    value, *rest = arguments
    branches = [(compare("<=>", value, a, place), then) for a, then in zip(rest[0:-1:2], rest[1::2], strict=False)]
    return case(branches, rest[-1] if len(rest) % 2 else Constant(None, STRING), place)


def _nullif(arguments: Arguments, place: Place) -> Expr:
    """nullif(a, b), of the first argument's type."""
    value, other = arguments
    return Case(((compare("=", value, other, place), Constant(None, value.type)),), value, value.type, place)


def _trying(name: str, operator: str) -> Callable[[Arguments, Place], Expr]:
    """The maker of arithmetic that is NULL beyond the range of its type. Decimals always behave so, doubles never."""

    def make(arguments: Arguments, place: Place) -> Expr:
        if all(argument.type.integral for argument in arguments):
            return call(name, meet(arguments, place, f"{name}()"), place)
        if operator in ("+", "-") and (moved := shifted(operator, arguments[0], arguments[1], place)) is not None:
            return moved
        return calculate(operator, arguments[0], arguments[1], place)

    return make


def _last_instant(arguments: Arguments, place: Place) -> Expr:
    """The last microsecond of a window, which Spark knows only in a block around the one that groups by it."""
    (window,) = arguments
    if isinstance(window, Call):
        what = "window_time() does not take a window of the same query"
        raise Wrong(place, what, "Write window.end - INTERVAL 1 MICROSECOND.")
    if window.type != WINDOW:
        raise Wrong(place, f"window_time() does not take {window.type}", "Write window_time(window).")
    return Call(
        "- interval", (member(window, "end", place), Constant("1 microsecond", INTERVAL)), TIMESTAMP, place=place
    )


def _iso_day(time: Expr, place: Place) -> Expr:
    """The ISO day of the week: Monday is 1."""
    return calculate("+", call("weekday", [time], place), number("1", place), place)


def _iso_year(time: Expr, place: Place) -> Expr:
    """The year of the week's Thursday."""
    to_thursday = calculate("-", number("3", place), call("weekday", [time], place), place)
    return call("year", [call("date_add", [call("to_date", [time], place), to_thursday], place)], place)


def _seconds(time: Expr, place: Place) -> Expr:
    """The seconds of a time, with microseconds."""
    micros = call("unix_micros", [cast(time, TIMESTAMP)], place)
    rest = call("pmod", [micros, number(str(MICROSECONDS["minute"]), place)], place)
    return Call("cast", (calculate("*", rest, number("0.000001", place), place),), decimal(8, 6), place=place)


COMPUTED: dict[str, Callable[[Expr, Place], Expr]] = {
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), _iso_day),
    "YEAROFWEEK": _iso_year,
    **dict.fromkeys(("SECOND", "SECONDS", "S", "SEC", "SECS"), _seconds),
}
"""Fields of EXTRACT that several functions compute."""


_OF_OTHERS = {
    "EPOCH": "Write unix_timestamp(ts), or unix_micros(ts) / 1e6 with its fraction.",
    "ISOYEAR": "Write EXTRACT(YEAROFWEEK FROM ts).",
    "ISODOW": "Write EXTRACT(DAYOFWEEK_ISO FROM ts).",
    "ISOWEEK": "Write EXTRACT(WEEK FROM ts), which is ISO's.",
    "MILLISECOND": "Write unix_millis(ts) % 1000.",
    "MILLISECONDS": "Write unix_millis(ts) % 1000.",
}
"""Fields of other systems, with their way out."""


def extracted(field: str, time: Expr, place: Place) -> Expr:
    """EXTRACT(field FROM time)."""
    if time.type.length:
        return field_of(time, FIELDS.get(field, "second" if COMPUTED.get(field) == _seconds else field.lower()), place)
    if field in FIELDS:
        return call(FIELDS[field], [time], place)
    if field not in COMPUTED:
        way_out = _OF_OTHERS.get(field) or suggestion(field, [*FIELDS, *COMPUTED])
        raise Wrong(place, f"EXTRACT({field} …) is not served", way_out)
    if time.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise Wrong(time.place or place, f"EXTRACT({field} …) does not take {time.type}", "Write CAST(… AS TIMESTAMP).")
    return COMPUTED[field](time, place)


MAKERS: dict[str, tuple[int, Callable[[Arguments, Place], Expr]]] = {
    "nullif": (2, _nullif),
    "nullifzero": (1, lambda arguments, place: _nullif([*arguments, number("0", place)], place)),
    "zeroifnull": (1, lambda arguments, place: call("coalesce", [arguments[0], number("0", place)], place)),
    "try_divide": (2, lambda arguments, place: calculate("/", arguments[0], arguments[1], place)),
    "try_add": (2, _trying("try_add", "+")),
    "try_subtract": (2, _trying("try_subtract", "-")),
    "try_multiply": (2, _trying("try_multiply", "*")),
    "try_mod": (2, lambda arguments, place: calculate("%", arguments[0], arguments[1], place)),
    "negative": (1, lambda arguments, place: negative(arguments[0], place)),
    "mod": (2, lambda arguments, place: calculate("%", arguments[0], arguments[1], place)),
    "decode": (3, _decode),
    "window_time": (1, _last_instant),
}
"""The smallest number of arguments of a function, and the maker of its expression."""


TIMES: dict[str, Type] = {"to_date": DATE, "to_timestamp": TIMESTAMP, "try_to_timestamp": TIMESTAMP}
"""Functions that become a literal if their argument is one."""


def spelled_out(name: str, arguments: Arguments, place: Place) -> Expr | None:
    """The expression that a function is short for, or None if it is not one of these functions."""
    if name in TIMES and len(arguments) == 1 and isinstance(arguments[0], Constant) and arguments[0].type == STRING:
        with suppress(Wrong):
            return cast(arguments[0], TIMES[name])
    if name in ("to_char", "to_varchar") and len(arguments) == 2 and arguments[0].type in (DATE, TIMESTAMP):
        return call("date_format", arguments, place)
    if name == "abs" and len(arguments) == 1 and arguments[0].type in LENGTHS:
        return length(call("abs", [number_of(arguments[0])], place), arguments[0].type)
    if name == "sequence":
        return sequence(arguments, place)
    fewest, make = MAKERS.get(name, (0, None))
    if make is None:
        return None
    if len(arguments) < fewest or (len(arguments) > fewest and name != "decode"):
        more = " or more" if name == "decode" else ""
        raise Wrong(place, not_taken(name, len(arguments)), f"It takes {fewest}{more}.")
    return make(arguments, place)


def refuse_other_characters(name: str, characters: exp.Expr) -> None:
    """Refuses a character set other than UTF-8, which Postgres and Spark use."""
    if not isinstance(characters, exp.Literal) or characters.name.upper() not in ("UTF-8", "UTF8"):
        raise Wrong(span(characters), f"{name}() takes only UTF-8", f"Write {name}(x, 'UTF-8').")


def in_zone(time: Expr, zone: Expr, place: Place) -> tuple[str, Expr]:
    """`ts AT TIME ZONE zone`, as Spark SQL of `{time}` and `{zone}` and as an expression.

    An instant becomes the time that clocks show there. Such a time becomes the instant.
    """
    tried = "{}" if isinstance(zone, Constant) else "try_add({}, INTERVAL 0 SECONDS)"  # Spark raises at an unknown zone
    if time.type == TIMESTAMP_NTZ:
        instant = call("to_utc_timestamp", [cast(time, TIMESTAMP), zone], place)
        return tried.format("to_utc_timestamp(CAST({time} AS TIMESTAMP), {zone})"), instant
    shown = call("from_utc_timestamp", [time, zone], place)
    text = tried.format("from_utc_timestamp({time}, {zone})")
    return f"CAST({text} AS TIMESTAMP_NTZ)", cast(shown, TIMESTAMP_NTZ)


_IN_MONTHS = {"MONTH": "n", "QUARTER": "3 * n", "YEAR": "12 * n"}
"""Units of varying length, as a number of months per `n`."""


def timed(name: str, unit: str, arguments: Arguments, place: Place) -> Expr:
    """A function of a unit with a number and a time, or with two times."""
    if len(arguments) != 2:
        raise Wrong(
            place, f"{name}({unit}, …) takes 3 arguments, not {len(arguments) + 1}", f"Write {name}({unit}, a, b)."
        )
    return _moved(name, unit, arguments, place) if name.endswith("add") else _apart(name, unit, arguments, place)


def _moved(name: str, unit: str, arguments: Arguments, place: Place) -> Expr:
    count, time = arguments
    if not (isinstance(count, Constant) and count.type == INT):
        way_out = f"Write ts + n * INTERVAL 1 {unit.upper()}."
        if unit.upper() in _IN_MONTHS:
            way_out = f"Write add_months(ts, {_IN_MONTHS[unit.upper()]}) + (ts - date_trunc('day', ts))."
        raise Wrong(count.place or place, f"{name}() takes only a literal number", way_out)
    units = int(count.value or 0)
    if unit.lower() == "quarter":
        units, unit = units * MONTHS["quarter"], "month"
    step = interval(exp.Interval(this=exp.Literal.string(units), unit=exp.Var(this=unit)))
    moved = shifted("+", cast(time, TIMESTAMP, implicit=True) if time.type == DATE else time, step, place)
    if moved is None:
        raise Wrong(place, f"{name}() does not take {time.type}", f"Write {name}({unit}, 1, ts).")
    return moved


def _apart(name: str, unit: str, arguments: Arguments, place: Place) -> Expr:
    """The whole units between two times, rounded towards 0."""
    if unit.lower() in MONTHS and all(time.type in (DATE, TIMESTAMP) for time in arguments):
        times = (cast(time, TIMESTAMP, implicit=True) for time in arguments)
        return Call("timestampdiff", (Constant(unit.upper(), STRING), *times), BIGINT, place=place)
    micros = MICROSECONDS.get(unit.lower())
    if micros is None:
        way_out = f"Write {name}(YEAR, a, b): a unit from MICROSECOND to YEAR, of timestamps."
        raise Wrong(place, f"{name}() does not take the unit {unit}", way_out)
    begin, end = (call("unix_micros", [time], place) for time in arguments)
    apart = calculate("-", end, begin, place)
    return apart if micros == 1 else Call("div", (apart, Constant(str(micros), BIGINT)), BIGINT, place=place)
