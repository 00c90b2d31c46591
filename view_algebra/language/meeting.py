"""Casts values to a common type by Spark's rules with ANSI mode off: in comparisons, lists and results.

The casts that Spark accepts have templates in Postgres with the same meaning: overflow wraps or is NULL, and nothing
raises.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import reduce

from view_algebra.language.expressions import Call, Constant, Expr, Field, Place
from view_algebra.language.lengths import common_length, in_days_or_microseconds, is_length, length, microseconds_of
from view_algebra.language.quoting import words
from view_algebra.language.types import (
    BIGINT,
    BITS,
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Type,
    common,
    comparable,
)
from view_algebra.language.walks import walk
from view_algebra.refusals import Wrong

_TIMES = words("VOID STRING DATE TIMESTAMP TIMESTAMP_NTZ")

_LIMITED: dict[str, tuple[Collection[str], Collection[str] | None, str]] = {
    "BINARY": ({*words("VOID STRING BINARY"), *INTEGRAL}, words("STRING BINARY"), "Cast to STRING first."),
    "TIMESTAMP_NTZ": (_TIMES, _TIMES, "Cast to TIMESTAMP first."),
    "DATE": (_TIMES, None, "Write date_add(DATE '1970-01-01', days)."),
}
"""Types with limited casts: the types to cast from, the types to cast to (None: any), and the way out."""


def instead_of(from_: Type, to: Type) -> str | None:
    """The way out for a cast that Spark always refuses, or None if it accepts it.

    >>> from view_algebra.language.types import BIGINT, BINARY
    >>> instead_of(BIGINT, BINARY), instead_of(BINARY, BIGINT)
    (None, "Write CAST(decode(…, 'UTF-8') AS BIGINT) if the bytes are a text.")
    """
    if to.name == "STRING":
        return None
    if from_.name == "BOOLEAN" and to.name == "DECIMAL" and to.precision == to.scale:  # Spark's optimizer fails at it
        return "Cast to INT, which is 1 or 0."
    for name, (from_these, to_these, instead) in _LIMITED.items():
        if from_.name == name == "BINARY" and to.name != name:
            return f"Write CAST(decode(…, 'UTF-8') AS {to}) if the bytes are a text."
        refused = from_.name == name and to_these is not None and to.name not in to_these
        if refused or (to.name == name and from_.name not in from_these):
            return instead
    return "Cast a part of it." if from_.nested else None


def tries(from_: Type, to: Type) -> bool:
    """True if TRY_CAST, which is NULL where ANSI mode would raise, may differ from CAST, which wraps or truncates.

    >>> from view_algebra.language.types import BIGINT, INT, STRING
    >>> tries(STRING, INT), tries(BIGINT, INT), tries(INT, BIGINT), tries(BIGINT, STRING)
    (True, True, False, False)
    """
    if not to.integral:
        return False
    narrower = from_.integral and INTEGRAL.index(from_.name) > INTEGRAL.index(to.name)
    return (
        narrower or from_.name in words("STRING DECIMAL DOUBLE FLOAT") or (from_.name, to.name) == ("TIMESTAMP", "INT")
    )


def is_untried(from_: Type, to: Type) -> bool:
    """True if Spark refuses TRY_CAST although it accepts CAST.

    >>> from view_algebra.language.types import BIGINT, DATE
    >>> is_untried(DATE, BIGINT), is_untried(BIGINT, DATE)
    (True, False)
    """
    of_day = from_.name == "DATE" and (to.numeric or to.name == "BOOLEAN")
    return of_day or {from_.name, to.name} == {"BOOLEAN", "TIMESTAMP"} or (from_.integral and to.name == "BINARY")


def tried_in_postgres(from_: Type, to: Type) -> str | None:
    """The template of a TRY_CAST, or None if Postgres has none that agrees."""
    exact = from_.integral or from_.name == "DECIMAL"
    return f"spark.within(trunc({{0}}::numeric), {2 ** BITS[to.name]}::numeric)::{to.postgres}" if exact else None


_UTC = "AT TIME ZONE 'UTC'"

_CASTS: dict[tuple[str, str], str] = {
    ("DOUBLE", "BIGINT"): "spark.to_bigint({0})",
    ("DOUBLE", "INT"): "spark.to_int({0})",
    ("DOUBLE", "SMALLINT"): "spark.wrap_smallint(spark.to_int({0})::bigint)",
    ("DOUBLE", "TINYINT"): "spark.wrap_tinyint(spark.to_int({0})::bigint)",
    ("FLOAT", "BIGINT"): "spark.to_bigint({0}::double precision)",
    ("FLOAT", "INT"): "spark.to_int({0}::double precision)",
    ("FLOAT", "DOUBLE"): "{0}::double precision",
    ("DOUBLE", "FLOAT"): "spark.to_float({0})",
    ("DECIMAL", "BIGINT"): "spark.wrap_bigint(trunc({0}))",
    ("DECIMAL", "DOUBLE"): "{0}::double precision",
    ("BOOLEAN", "STRING"): "{0}::text",
    ("STRING", "BOOLEAN"): "spark.to_boolean({0})",
    ("STRING", "DOUBLE"): "spark.to_double({0})",
    ("DATE", "STRING"): "to_char({0}, 'YYYY-MM-DD')",
    ("TIMESTAMP", "STRING"): f"spark.to_text({{0}} {_UTC})",
    ("TIMESTAMP_NTZ", "STRING"): "spark.to_text({0})",
    ("DATE", "TIMESTAMP"): f"({{0}}::timestamp {_UTC})",
    ("DATE", "TIMESTAMP_NTZ"): "{0}::timestamp",
    ("TIMESTAMP", "DATE"): f"({{0}} {_UTC})::date",
    ("TIMESTAMP", "TIMESTAMP_NTZ"): f"({{0}} {_UTC})",
    ("TIMESTAMP_NTZ", "TIMESTAMP"): f"({{0}} {_UTC})",
    ("TIMESTAMP_NTZ", "DATE"): "{0}::date",
    ("TIMESTAMP", "BIGINT"): "floor(extract(epoch FROM {0}))::bigint",
    ("TIMESTAMP", "DOUBLE"): "extract(epoch FROM {0})::double precision",
}
"""Templates by source and target type. A missing cast is refused above the aggregation."""

PLAIN_TEXT = 6
"""Most digits after the point of a decimal that Spark writes without an exponent."""


def cast_in_postgres(from_: Type, to: Type) -> str | None:
    """The template of a cast, or None if Postgres has none that agrees."""
    if from_ == to:
        return "{0}"
    if from_.name == "VOID":
        return "{0}::" + to.postgres
    if from_.integral:
        return _from_whole(from_, to)
    if from_.name == "DECIMAL":
        return _from_decimal(from_, to)
    if from_.name == "BOOLEAN" and to.numeric:
        return "{0}::integer" + ("" if to.name == "INT" else f"::{to.postgres}")
    if from_.name == "STRING" and to.integral:
        return f"spark.whole({{0}}, {2 ** BITS[to.name]}::numeric)::{to.postgres}"
    if from_.name == "DOUBLE" and to.name == "DECIMAL":
        return f"spark.decimal({{0}}, {to.precision}, {to.scale})"
    return _CASTS.get((from_.name, to.name))


def _from_whole(from_: Type, to: Type) -> str | None:
    if to.integral and INTEGRAL.index(from_.name) > INTEGRAL.index(to.name):
        return f"spark.wrap_{to.name.lower()}({{0}}::bigint)"
    if to.name == "DECIMAL" and to.precision - to.scale < DIGITS[from_.name] - (from_.name == "BIGINT"):
        return f"spark.decimal({{0}}::numeric, {to.precision}, {to.scale})"
    if to.integral or to.name in ("DOUBLE", "STRING", "DECIMAL"):
        return "{0}::" + to.postgres
    return "({0} <> 0)" if to.name == "BOOLEAN" else None


def _from_decimal(from_: Type, to: Type) -> str | None:
    if to.name == "DECIMAL":
        if to.scale >= from_.scale and to.precision - to.scale >= from_.precision - from_.scale:
            return "{0}::" + to.postgres
        return f"spark.decimal({{0}}, {to.precision}, {to.scale})"
    if to.integral and to.name != "BIGINT":
        return f"spark.wrap_{to.name.lower()}(spark.wrap_bigint(trunc({{0}})))"
    if to.name == "STRING":
        return f"{{0}}::{from_.postgres}::text" if from_.scale <= PLAIN_TEXT else None
    return _CASTS.get((from_.name, to.name))


TIME_TYPES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def cast(expression: Expr, kind: Type, implicit: bool = False) -> Expr:
    """An expression cast to another type. A literal becomes a literal of that type if both engines agree on it."""
    if expression.type == kind:
        return expression
    if expression.type.endless and kind in TIME_TYPES:
        kind = replace(kind, endless=True)
    if isinstance(expression, Constant) and implicit and expression.value is None:
        return replace(expression, type=kind)
    if isinstance(expression, Constant) and expression.type == STRING and expression.value is not None:
        read = as_time(expression.value, kind)
        if read is not None:
            return replace(expression, value=read, type=kind)
    if kind in TIME_TYPES:
        refuse_another_day(expression)
    if isinstance(expression, Call) and expression.type.element == VOID and not expression.arguments:
        return replace(expression, type=kind)  # array() and map()
    return Call("cast", (expression,), kind, implicit, place=expression.place)


def refuse_another_day(text: Expr) -> None:
    """Raises `Wrong` for a literal text that Spark reads as a time of the current day, which no record decides."""
    if text.type != STRING or any(isinstance(part, Field) for part in walk(text)):
        return
    literal = next((part.value for part in walk(text) if isinstance(part, Constant) and part.value), "")
    if _OF_ANOTHER_DAY.match(literal):
        raise Wrong(
            text.place,
            f"the time {literal!r} changes from day to day",
            "Write the day itself, or leave it to the readers of the view.",
        )


_OF_ANOTHER_DAY = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""The beginning of a text that Spark reads as a time relative to the current day."""


def as_time(text: str, kind: Type) -> str | None:
    """The normal form of a text that every engine reads as the same date or time, or None if they might differ.

    >>> as_time("2024-01-31", TIMESTAMP), as_time("2024-1-31", DATE), as_time("2024-01-31T12:30", TIMESTAMP)
    ('2024-01-31 00:00:00', None, '2024-01-31 12:30:00')
    >>> as_time("2024-01-31 12:30:00 +02:00", TIMESTAMP), as_time("2024-01-31 12:30:00+02:00", TIMESTAMP_NTZ)
    ('2024-01-31 10:30:00', None)
    """
    match = re.fullmatch(_TIME, text.strip())
    if match is None or (match[5] and kind != TIMESTAMP) or (match[6] and not match[3]):
        return None
    try:
        date.fromisoformat(match[1])
        at = datetime.fromisoformat(f"{match[1]} {match[2] or '00:00'}:{match[3] or '00'}{match[6] or ''}")
        at = at if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    if kind == DATE:
        return match[1] if match[2] is None else None
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        fraction = f".{match[4].ljust(6, '0')}" if match[4] else ""
        return f"{at:%Y-%m-%d %H:%M:%S}".rjust(19, "0") + fraction
    return None


_TIME = (
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?"
    r"(Z?| ?(?:Z|UTC|([+-](?:0\d|1[0-7]):[0-5]\d)))"
)
"""A date, a time of day, and a time zone."""


def _decoded(wanted: Type) -> str:
    return "decode(…, 'UTF-8')" if wanted == STRING else f"CAST(decode(…, 'UTF-8') AS {wanted})"


def meet(expressions: Sequence[Expr], place: Place, of: str, *, texts: bool = False) -> tuple[Expr, ...]:
    """Expressions cast to one type, as in Spark. `texts`: with a text among them, all become texts."""
    kinds = {e.type for e in expressions} - {VOID}
    if len(kinds) > 1 and all(is_length(e) or e.type == VOID for e in expressions):
        kind = common_length(expressions, place)
        return tuple(length(in_days_or_microseconds(e, kind, place), kind) for e in expressions)
    if texts and any(e.type == STRING for e in expressions) and all(_is_shown(e.type) for e in expressions):
        return tuple(map(_as_text, expressions))

    def wider(kind: Type, other: Expr) -> Type:
        wider = common(kind, other.type)
        if wider is None:
            way_out = f"Write the cast that you mean: CAST(… AS {kind}) or CAST(… AS {other.type})."
            if "BINARY" in (kind.name, other.type.name):
                way_out = f"Write {_decoded(other.type if kind.name == 'BINARY' else kind)} if the bytes are a text."
            if kind.nested or other.type.nested:
                way_out = "Take their parts: a = b AND c = d."
            raise Wrong(place, f"{of} mixes {kind} with {other.type}", way_out)
        return wider

    kind = reduce(wider, expressions[1:], expressions[0].type)
    return tuple(cast(e, kind, implicit=True) for e in expressions)


def _is_shown(kind: Type) -> bool:
    """True if Spark converts the type to text when it meets one."""
    return kind.numeric or kind in (STRING, VOID, *TIME_TYPES)


def _as_text(value: Expr) -> Expr:
    if isinstance(value, Constant) and (text := shown(value)) is not None:
        return replace(value, value=text, type=STRING)
    return cast(value, STRING, implicit=True)


def shown(literal: Constant) -> str | None:
    """The text that every engine writes for a literal, or None if they might differ.

    >>> shown(Constant("2024-01-31 12:30:00.500000", TIMESTAMP)), shown(Constant("2e0", DOUBLE))
    ('2024-01-31 12:30:00.5', None)
    """
    value, kind = literal.value, literal.type
    if value is None or not (kind.numeric or kind in (STRING, *TIME_TYPES)):
        return None
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return value.rstrip("0").rstrip(".") if "." in value else value
    plain = kind.name != "DECIMAL" or (kind.scale <= PLAIN_TEXT and len(value.partition(".")[2]) == kind.scale)
    return value if plain and kind.name not in ("DOUBLE", "FLOAT") else None


def among(items: Sequence[Expr], place: Place) -> tuple[Expr, ...]:
    """A value and the list after IN, cast to one type: with a text among them, all become texts."""
    kinds = {e.type for e in items} - {STRING, VOID}
    if any("MAP<" in kind.spark for kind in kinds):
        raise Wrong(place, "Spark does not compare maps", "Compare their values: m['a'] IN ('x', 'y').")
    texts = [e for e in items if e.type == STRING]
    kind = next(iter(kinds), STRING)
    if any(map(is_length, items)):
        return _as_numbers(items, place, "IN")
    if (
        len(kinds) == 1 and kind in TIME_TYPES and all(_is_written(e, kind) for e in texts)
    ):  # equal texts are then equal times
        return tuple(cast(e, kind) for e in items)
    return meet(items, place, "IN", texts=True)


def _is_written(text: Expr, kind: Type) -> bool:
    """True if a literal text is in the form that its time is written in."""
    if not isinstance(text, Constant) or text.value is None:
        return False
    read = as_time(text.value, kind)
    return read is not None and shown(Constant(read, kind)) == text.value


def compare(operator: str, left: Expr, right: Expr, place: Place = None) -> Expr:
    """`left operator right` as BOOLEAN. A text is read as the type of the other side."""
    if is_length(left) or is_length(right):
        return Call(operator, _as_numbers((left, right), place, operator), BOOLEAN, place=place)
    sides = meet((_against(operator, left, right), _against(operator, right, left)), place, operator)
    kind = sides[0].type
    if kind.nested and operator not in ("=", "<>", "<=>"):
        raise Wrong(place, f"{operator} does not compare nested values", "Compare their parts: a.x < b.x.")
    if kind.nested and not comparable(kind):
        raise Wrong(place, f"{operator} does not compare values of type {kind}", "Compare to_json() of both.")
    return Call(operator, sides, BOOLEAN, place=place)


def _as_numbers(items: Sequence[Expr], place: Place, of: str) -> tuple[Expr, ...]:
    """Intervals as numbers that can be compared."""
    for item in items:
        if not is_length(item) and item.type != VOID:
            way_out = "Write INTERVAL 3 DAYS, or compare CAST(a - b AS BIGINT), which is days of two dates, or seconds."
            raise Wrong(place, f"{of} mixes a length of time with {item.type}", way_out)
    return tuple(cast(e, BIGINT) if e.type == VOID else microseconds_of(e, place) for e in items)


def _against(operator: str, side: Expr, other: Expr) -> Expr:
    """A side of a comparison, cast as in Spark for the other side."""
    kind = other.type
    if side.type == STRING and (kind.numeric or kind in (BOOLEAN, *TIME_TYPES)):
        return text_as(side, DOUBLE if kind.name == "DECIMAL" else kind)
    if side.type == BOOLEAN and kind.numeric and operator in ("=", "<>", "<=>"):
        if (way_out := instead_of(BOOLEAN, kind)) is not None:
            raise Wrong(side.place or other.place, f"{operator} compares BOOLEAN with {kind}, which has no 1", way_out)
        return cast(side, kind, implicit=True)
    return side


def text_as(text: Expr, kind: Type) -> Expr:
    """A text cast to another type. A literal becomes one of that type if all engines read it alike."""
    value = text.value if isinstance(text, Constant) else None
    if value is None:
        return cast(text, kind, implicit=kind != TIMESTAMP)  # Spark may read texts as times that are not times here
    assert isinstance(text, Constant)
    if kind in TIME_TYPES:
        return _time_literal(text, value, kind)
    if kind.integral:
        return replace(text, value=_whole(value, kind), type=kind)
    if kind == BOOLEAN:
        word = value.strip(BLANKS).lower()
        return replace(
            text, value="true" if word in TRUE_WORDS else "false" if word in FALSE_WORDS else None, type=kind
        )
    if kind == DOUBLE and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        return replace(text, type=kind)
    return cast(text, kind, implicit=True)


BLANKS = "".join(map(chr, (*range(0x21), 0x7F)))
"""Characters that Spark ignores around a number or a boolean."""

TRUE_WORDS, FALSE_WORDS = words("t true y yes 1"), words("f false n no 0")


def _whole(text: str, kind: Type) -> str | None:
    """The whole number that Spark reads, without its fraction, or None for other texts, or a number beyond the type."""
    match = re.fullmatch(r"([+-]?[0-9]*)(\.[0-9]*)?", text.strip(BLANKS))
    if match is None or not any(letter.isdigit() or letter == "." for letter in match[0]):
        return None
    sign, digits = match[1][:1].strip("0123456789"), match[1].strip("+-")
    number = int(f"{sign}0{digits}")
    return str(number) if -(2 ** BITS[kind.name]) <= number < 2 ** BITS[kind.name] else None


def _time_literal(literal: Constant, text: str, kind: Type) -> Expr:
    read_text = as_time(text, kind)
    if read_text is None and kind == DATE:  # the day of a time
        read_text = (as_time(text, TIMESTAMP) or "")[:10] or None
    if read_text is None:
        raise Wrong(
            literal.place,
            f"{text!r} is not a {kind} that both engines read alike",
            "Write it as '2024-01-31' or '2024-01-31 12:30:00'.",
        )
    return replace(literal, value=read_text, type=kind)
