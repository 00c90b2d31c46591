"""Values that Postgres or its clients cannot hold, or that Java computes for minutes, and the guards against them.

Infinities are times after or before every other time, which a view shows as NULL. Debezium writes Postgres' infinities
as numbers. In Spark they are the first instant after the calendar and the start of the last day before it. In Postgres
they are infinities. `Type.endless` marks types that may have them. Functions that return an argument or compare times
keep them. A time computed from an infinity is the same infinity. For any other function they are NULL.

Guards in Spark SQL put NULL or U+FFFD in place of a value at which Spark raises or which Postgres cannot store. The
texts of views (`engines/spark.py`) and the SELECT of `lamina check` (`typed/expressions/guards.py`) share them.

Maps keep the last entry of a repeated key, as jsonb and every other reader of the topic do. Spark's JSON reader keeps
both.

Java's BigDecimal would write out the zeros of `1e-100000000` for minutes. So a *long number*, of 1,000 digits or with
an exponent of 4 digits, is not a DECIMAL here. A text is checked before a cast. JSON that may hold a long number is
first read with texts in place of decimals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from view_algebra.language.expressions import NOW, Call, Expr
from view_algebra.language.quoting import spark_name, spark_text, words
from view_algebra.language.types import CALENDAR, FIRST_MICROSECOND, STRING, Type, inside, rewritten_type


def with_unique_keys(text: str, kind: Type, depth: int = 0) -> str:
    """Spark SQL of a value read from JSON, with only the last entry of each key in its maps.

    A type without a map costs nothing. Spark's map builder does the work (`spark.sql.mapKeyDedupPolicy`).

    >>> from view_algebra.language.types import INT, STRING
    >>> with_unique_keys("tags", Type("MAP", key=STRING, element=INT))
    'map_from_entries(map_entries(tags))'
    >>> with_unique_keys("tags", Type("ARRAY", element=INT))
    'tags'
    """
    if not _has_maps(kind):
        return text
    variable = f"v{depth}"
    if kind.name == "MAP" and kind.element is not None:
        entries = f"map_entries({text})"
        if _has_maps(kind.element):
            value = with_unique_keys(f"{variable}.value", kind.element, depth + 1)
            entries = f"transform({entries}, {variable} -> named_struct('key', {variable}.key, 'value', {value}))"
        return f"map_from_entries({entries})"
    if kind.name == "ARRAY" and kind.element is not None:
        return f"transform({text}, {variable} -> {with_unique_keys(variable, kind.element, depth + 1)})"
    fields = (
        f"{spark_text(name)}, {with_unique_keys(f'{text}.{spark_name(name)}', field, depth)}"
        for name, field in kind.fields
    )
    return f"CASE WHEN {text} IS NOT NULL THEN named_struct({', '.join(fields)}) END"


def _has_maps(kind: Type) -> bool:
    return any(part.name == "MAP" for part in inside(kind))


_SIGN = r"(?:[+-]|\\u002[bBdD])?+"
_DIGITS = r"(?:[\p{Nd}.]|\\u(?!00[46]5)[0-9a-fA-F]{4})"
MAY_BE_LONG = (
    rf"""["':,\[\s]{_SIGN}{_DIGITS}++(?:[eE]|\\u00[46]5){_SIGN}(?:\p{{Nd}}|\\u[0-9a-fA-F]{{4}}){{4}}"""
    rf"""|["']{_SIGN}{_DIGITS}{{1000}}+"""
)
"""Text that may be a long number in JSON, with or without escapes. BigDecimal reads the digits of all languages."""

EXPONENT = r"[eE][+-]?\p{Nd}{4}"
"""An exponent of 4 digits without escapes."""

BARE_AND_LONG = (
    r"""(?s)^(?:[^"'0-9]++|"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'|[0-9.]++(?![eE][+-]?[0-9]{4}))*+[0-9.]++[eE]"""
)
"""JSON with an unquoted number that has an exponent of 4 digits. JSON cannot have one of over 1,000 digits."""

QUOTED_AND_LONG = r""""[+-]?(?:[\p{Nd}.]*+[eE][+-]?\p{Nd}{4,}+|[\p{Nd}.]{1000,}+(?:[eE][^"]*+)?)"[,}\]]"""
"""A long number in Spark's JSON of texts only."""

SHORT_NUMBER = r"(?s)^(?!.{1001})(?!.*[eE][+-]?\p{Nd}{4})"
"""A text without a long number, and not longer than one."""


def may_be_long(text: str) -> str:
    """The condition that a JSON text may hold a long number.

    Matching MAY_BE_LONG takes Java longer than reading the text. So a cheaper condition comes first: a text without
    escapes needs an exponent, or 1,000 characters.
    """
    escape = spark_text(r"\u")
    needed = f"contains({text}, {escape}) OR octet_length({text}) >= 1000 OR {text} RLIKE {spark_text(EXPONENT)}"
    return f"(({needed}) AND {text} RLIKE {spark_text(MAY_BE_LONG)})"


def short_number(text: str) -> str:
    """Spark SQL of a text before its cast to DECIMAL, or NULL if the number is too long."""
    return f"CASE WHEN ({text}) RLIKE {spark_text(SHORT_NUMBER)} THEN {text} END"


TOO_LONG = "a number is too long for a DECIMAL: it has 1,000 digits, or an exponent of 4"
"""The reason for quarantine."""


def has_decimals(kind: Type) -> bool:
    """True if a type is or contains a DECIMAL."""
    return decimals_alone(kind) is not None


def bounded(text: str, kind: Type, corrupt: str | None = None) -> str:
    """Spark SQL of a JSON text before it is read as a type, or NULL if a DECIMAL in it has a long number.

    If a text may have a long number and repeats a field, Spark would read both, so it counts as one that has.
    corrupt: the field that Spark's reader fills for a text that it cannot read completely. Such a text becomes another
    unreadable text, and a text with a long number becomes empty.
    """
    alone = decimals_alone(kind)
    if alone is None:
        return text
    as_texts, quoted = decimals_as_text(kind), QUOTED_AND_LONG
    read, long, mistakes = f"from_json({text}, {_schema(as_texts)})", "NULL", ""
    if corrupt is not None:
        fields = (*as_texts.fields, (corrupt, STRING))
        read = f"from_json({text}, {_schema(replace(as_texts, fields=fields))}, {permissive(corrupt)})"
        long, mistakes = "''", f"\n          WHEN texts.{corrupt} IS NOT NULL THEN '{{'"
    return f"""CASE WHEN {may_be_long(text)} THEN element_at(transform(
        array({read}),
        texts -> CASE{mistakes}
          WHEN {text} RLIKE {spark_text(BARE_AND_LONG)} THEN {long}
          WHEN to_json(from_json({text}, {_schema(decimals_as_text(alone))})) RLIKE {spark_text(quoted)} THEN {long}
          WHEN try_parse_json({text}) IS NULL THEN {long}
          ELSE {text}
        END
      ), 1) ELSE {text} END"""


def permissive(corrupt: str) -> str:
    """Options of from_json() that fill a field with a text that it cannot read."""
    return f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{corrupt}')"


def decimals_alone(kind: Type) -> Type | None:
    """The type reduced to its decimals, or None if it has none."""
    if kind.name == "DECIMAL":
        return kind
    fields = tuple((name, alone) for name, field in kind.fields if (alone := decimals_alone(field)) is not None)
    element = None if kind.element is None else decimals_alone(kind.element)
    return replace(kind, fields=fields, element=element) if fields or element else None


def decimals_as_text(kind: Type) -> Type:
    """The type with STRING in place of every DECIMAL."""
    return rewritten_type(kind, lambda part: STRING if part.name == "DECIMAL" else part)


def _schema(kind: Type) -> str:
    columns = ", ".join(f"{spark_name(name)} {field.spark}" for name, field in kind.fields)
    return spark_text(columns if kind.name == "STRUCT" else kind.spark)


KEEPS = words(
    "coalesce nvl ifnull nullif nvl2 if iff greatest least isnull isnotnull equal_null decode to_timestamp to_date"
    " date timestamp count min max first last any_value first_value last_value nth_value lag lead max_by min_by"
)
"""Functions that return one of their times, or compare them."""

MOVES = words(
    "date_trunc trunc date_add dateadd date_sub add_months last_day next_day from_utc_timestamp to_utc_timestamp"
    " timestampadd"
)
"""Functions that compute a time from a time."""


def finite(time: Expr) -> Expr:
    """The time, or NULL for an infinity."""
    return Call("finite", (time,), replace(time.type, endless=False), place=time.place)


def moved(call: Call, time: Expr) -> Call:
    """The value of a call on a time, for an infinity the same infinity."""
    arguments = tuple(finite(argument) if argument == time else argument for argument in call.arguments)
    of_finite = replace(call, arguments=arguments, type=replace(call.type, endless=False))
    return Call("endless", (of_finite, time), replace(call.type, endless=True), place=call.place)


def without_infinities(kind: Type) -> Type:
    """The type without infinities, as a view shows it."""
    return replace(kind, endless=False)


_GUARDED = words(
    "timestamp_seconds timestamp_millis timestamp_micros date_from_unix_date pane_start session_until hop_beyond lambda"
)
"""Functions whose own text keeps times within the calendar, session functions, and lambdas."""

_STAYS_WITHIN = words(
    "finite endless coalesce nvl ifnull nullif nvl2 if greatest least date_trunc trunc to_date to_timestamp"
    " [] . get element_at try_element_at array_max array_min aggregate reduce"
)
"""Functions that return one of their times, or an earlier one within the calendar."""


def leaves_calendar(call: Expr) -> bool:
    """True if a call can return a time outside of the years 1 to 9999 for arguments inside them."""
    if not isinstance(call, Call) or call.type.name not in CALENDAR or call.implicit or call.function in _GUARDED:
        return False
    if call.function in ("cast", "try_cast") or call.function in _STAYS_WITHIN:
        of = call.arguments[-1 if call.function == "date_trunc" else 0].type
        return of.name not in CALENDAR and not of.nested
    return call.function != NOW


def makes_any_text(call: Call) -> bool:
    """True if a call can return a text with U+0000 or invalid UTF-8 for valid texts.

    A cast of bytes uses `text_of_bytes` instead.
    """
    return call.type == STRING and call.function in _MAKES_CHARACTERS


def text_of_bytes(value: str) -> str:
    """Spark SQL of bytes as a text that Postgres can store: U+FFFD replaces invalid UTF-8 and U+0000."""
    return f"replace(make_valid_utf8(CAST({value} AS STRING)), chr(0), '\ufffd')"


_MAKES_CHARACTERS = words("chr char get_json_object try_url_decode")


TIME_ALONE = r"^[\x00-\x20]*(T|[0-9]{1,2}:)"
"""A text that Spark reads as a time of the current day. Here it is not a time."""


def within_calendar(text: str, kind: Type) -> str:
    """Spark SQL of a time that is NULL outside of the years 1 to 9999.

    The text occurs twice in it, unless it is long: nested guards would grow exponentially.
    """
    first, last = CALENDAR[kind.name]
    if len(text) < 1_000:
        return f"CASE WHEN {text} BETWEEN {first} AND {last} THEN {text} END"
    return f"get(filter(array({text}), t -> t BETWEEN {first} AND {last}), 0)"


def ended_within_calendar(end: str, size: int) -> str:
    """Spark SQL of the end of a window of `size` microseconds, or NULL unless all of it is in the years 1 to 9999.

    Its start, the only bound in cells, is then NULL.
    """
    first, last = f"timestamp_micros({FIRST_MICROSECOND + size})", CALENDAR["TIMESTAMP"][1]
    return f"CASE WHEN {end} BETWEEN {first} AND {last} THEN {end} END"


def or_endless(value: str, time: str, kind: Type, gives: Type) -> str:
    """Spark SQL of a value computed from a time, or the same infinity for an infinite time."""
    first, last = CALENDAR[kind.name]
    return f"CASE WHEN NOT {time} BETWEEN {first} AND {last} THEN CAST({time} AS {gives.name}) ELSE {value} END"


def far_apart(time: str, kind: Type) -> str:
    """Spark SQL of a time with its infinities moved beyond the reach of any RANGE frame."""
    first, last = CALENDAR[kind.name]
    before, after = (f"{kind.name} '{sign}150000-01-01'" for sign in "-+")
    return f"CASE WHEN {time} > {last} THEN {after} WHEN {time} < {first} THEN {before} ELSE {time} END"


def as_text(text: str) -> str:
    """Spark SQL of a text without U+0000, in valid UTF-8."""
    return f"replace(make_valid_utf8({text}), '\\u0000', '\\ufffd')"


ZERO = r"(?<!\\)((?:\\\\)*)\\u0000"
"""U+0000 in JSON, which Postgres cannot store, after any escaped backslashes."""

_REPLACED = r"$1\\ufffd"


def refuses_pattern(pattern: str) -> str:
    """The condition, in Spark SQL, that Spark fails at a pattern of LIKE."""
    escapes = f"({pattern}) RLIKE {spark_text(ESCAPES_NOTHING)}"
    return f"char_length({pattern}) > {LONGEST_PATTERN} OR {escapes}"


LONGEST_PATTERN = 10_000
"""Most characters of a LIKE pattern from a record: Java recurses for each `%`."""

ESCAPES_NOTHING = r"(?<!\\)(\\\\)*\\(?![%_\\])"
"""A part of a LIKE pattern at which Spark fails: a backslash before a character that needs none, or at the end."""


READS_TIMES = words("to_timestamp try_to_timestamp to_date unix_timestamp to_unix_timestamp")
"""Functions that read a text as a time, by a pattern or like a cast."""


def read_time(function: str, arguments: Sequence[str]) -> str:
    """Spark SQL of a text as a time. NULL if Spark raises (from the year 294248 on) or the time has no day."""
    text, *pattern = arguments
    if not pattern and function.endswith("to_timestamp"):
        return f"CAST({not_alone(text)} AS TIMESTAMP)"
    if not pattern and function == "to_date":
        return f"to_date({text})"
    by = pattern[0] if pattern else "'yyyy-MM-dd HH:mm:ss'"
    time = f"try_add(to_timestamp({text}, {by}), INTERVAL 0 SECONDS)"
    return time if function.endswith("to_timestamp") else f"{function}({time})"


def not_alone(text: str) -> str:
    """Spark SQL of a text before it is read as a TIMESTAMP, or NULL for a time without its day."""
    return f"CASE WHEN NOT ({text}) RLIKE {spark_text(TIME_ALONE)} THEN {text} END"


def read_json(text: str, schema: str, kind: Type) -> str:
    """Spark SQL of from_json() with a result that Postgres can store."""
    return with_unique_keys(f"from_json({bounded(clean_json(text), kind)}, {schema})", kind)


def clean_json(text: str) -> str:
    """Spark SQL of a JSON text with U+FFFD in place of U+0000, which JSON can only escape."""
    return f"regexp_replace({text}, {spark_text(ZERO)}, {spark_text(_REPLACED)})"
