"""Rejects a record in which a time is a number, or a text of digits, of unknown unit.

Spark's reader would read a number as seconds, and a text of digits as days or years.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from view_algebra.language.encodings import PLAIN, as_json
from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import CALENDAR, Type, rewritten_type
from view_algebra.records.decoding import CORRUPT, DIGITS_ALONE, Columns, FieldOptions, digits_alone, without_unit
from view_algebra.records.fields import json_read, leaves

_QUOTED_DIGITS = r"""["'][\x00-\x20]*+[+-]?(?:[0-9]{1,3}|[0-9]{5,})[\x00-\x20]*+["']"""
"""A text of digits in JSON, which may be a number in any unit. Four digits are a year."""

_ESCAPED = r"\\u00[2-7]"
"""A letter or digit as an escape in JSON. A name or a text with one may hide what the other patterns look for."""

_AFTER_DAYS = "date_from_unix_date(1000)"
"""The day after the last one that Spark reads from a text of up to three digits."""


def may_be_numbers(scalars: Sequence[str], nested: Sequence[str]) -> str:
    """The regular expression of JSON in which one of these fields may be a number, or a text of digits.

    nested: fields with times in a list or a map. Any list or map in them matches.
    """
    patterns = [_ESCAPED]
    if scalars:
        patterns.append(rf"""["'](?:{_any(scalars)})["']\s*+:\s*+(?:[+-]?[0-9.]|{_QUOTED_DIGITS})""")
    if nested:
        patterns.append(rf"""["'](?:{_any(nested)})["']\s*+:\s*+[\[{{]""")
    return "|".join(patterns)


def _any(names: Sequence[str]) -> str:
    return "|".join(re.escape(name) for name in dict.fromkeys(names))


def number_conditions(
    columns: Columns, text: str, options: FieldOptions, struct: str = "parsed"
) -> list[tuple[str, str]]:
    """The condition and the reason for a record in which a time is a number or a text of digits.

    struct: the result of Spark's reader for the text
    """
    fields = [(options.name(name), kind) for name, kind in columns]
    timed = [(path[-1], kind) for path, kind in leaves(fields) if _has_times(kind)]
    scalars = [name for name, kind in timed if kind.name in CALENDAR]
    nested = [name for name, kind in timed if kind.name not in CALENDAR]
    if not scalars and not nested:
        return []
    times = [(name, kind) for name, kind in columns if _has_times(kind)]
    reasons = ", ".join(_time_reason(f"p.{spark_name(name)}", kind, (options.name(name),)) for name, kind in times)
    first = f"coalesce({reasons}, NULL)"
    read = json_read(text, [(name, _as_json(kind)) for name, kind in times], options)
    reason = f"element_at(transform(array({read}), p -> {first}), 1)"
    may_be = f"{text} RLIKE {spark_text(may_be_numbers(scalars, nested))}"
    cheap = (
        ""
        if nested
        else f"({' OR '.join([*_cheap_conditions(columns, struct), f'{struct}.{CORRUPT} IS NOT NULL'])}) AND "
    )
    return [(f"{cheap}{may_be} AND {reason} IS NOT NULL", reason)]


def _cheap_conditions(columns: Columns, struct: str) -> Iterator[str]:
    """Conditions that a time may come from a number of seconds or a text of days, cheaper than looking at the text.

    Spark multiplies seconds by a million, a multiple of 64, so the result is a multiple of 64 even if the product
    wraps. It reads a text of up to three digits as days.
    """
    for name, kind in columns:
        value = f"{struct}.{spark_name(name)}"
        if kind.name == "STRUCT":
            yield from _cheap_conditions(kind.fields, value)
        elif kind.name == "DATE":
            yield f"{value} NOT BETWEEN {_AFTER_DAYS} AND {CALENDAR['DATE'][1]}"
        elif kind.name in CALENDAR:
            micros = value if kind.name == "TIMESTAMP" else f"CAST({value} AS TIMESTAMP)"
            yield f"(unix_micros({micros}) & 63) = 0"


def _has_times(kind: Type) -> bool:
    """True for a type of times, or a type that contains one."""
    inner = (*(field for _, field in kind.fields), kind.element)
    return kind.name in CALENDAR or any(_has_times(part) for part in inner if part is not None)


def _as_json(kind: Type) -> Type:
    """The type reduced to its times, read as written."""
    fields = tuple((name, _as_json(field)) for name, field in kind.fields if _has_times(field))
    whole = Type(kind.name, fields=fields, key=kind.key, element=_as_json(kind.element) if kind.element else None)
    return rewritten_type(whole, lambda part: as_json(part) if part.name in CALENDAR else part)


def _time_reason(value: str, kind: Type, path: tuple[str, ...]) -> str:
    """Spark SQL of the reason that a time inside a value is a number or a text of digits, else NULL."""
    name = ".".join(part for part in path if part)
    if kind.name in CALENDAR:
        value_type = f"schema_of_variant({value})"
        digits = f"try_variant_get({value}, '$', 'STRING') RLIKE {spark_text(DIGITS_ALONE)}"
        return (
            f"CASE WHEN left({value_type}, 3) IN ('BIG', 'DEC', 'DOU') THEN {without_unit(spark_text(name), PLAIN)}"
            f" WHEN {value_type} = 'STRING' AND {digits} THEN {digits_alone(spark_text(name))} END"
        )
    if kind.name == "STRUCT":
        fields = [(name, field) for name, field in kind.fields if _has_times(field)]
        reasons = [_time_reason(f"{value}.{spark_name(name)}", field, (*path, name)) for name, field in fields]
        return f"coalesce({', '.join(reasons)}, NULL)"
    assert kind.element is not None
    values, element = (f"map_values({value})" if kind.name == "MAP" else value), f"v{len(path)}"
    listed = f"transform({values}, {element} -> {_time_reason(element, kind.element, (*path, ''))})"
    return f"get(filter({listed}, reason -> reason IS NOT NULL), 0)"
