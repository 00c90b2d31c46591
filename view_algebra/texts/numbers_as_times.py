"""Rejects numbers of unknown unit in columns of times. Spark would read them as seconds, and texts of digits as days or
years.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from view_algebra.language.encodings import PLAIN, as_json
from view_algebra.language.long_numbers import mapped
from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import CALENDAR, Type
from view_algebra.texts.decoding import CORRUPT, DIGITS_ALONE, Columns, digits_alone, without_unit
from view_algebra.texts.fields import Reading, json_read

_DIGITS = r"""["'][\x00-\x20]*+[+-]?(?:[0-9]{1,3}|[0-9]{5,})[\x00-\x20]*+["']"""

ESCAPED = r"\\u00[2-7]"
"""A needlessly escaped letter or digit in JSON, which names and texts may contain."""


def may_be_numbers(scalars: Sequence[str], nested: Sequence[str]) -> str:
    """The regular expression of JSON in which one of these fields may be a number, or a text of digits.

    nested: fields with times in a list or a map, which always match.
    """
    patterns = [ESCAPED]
    if scalars:
        patterns.append(rf"""["'](?:{_any(scalars)})["']\s*+:\s*+(?:[+-]?[0-9.]|{_DIGITS})""")
    if nested:
        patterns.append(rf"""["'](?:{_any(nested)})["']\s*+:\s*+[\[{{]""")
    return "|".join(patterns)


def _any(names: Sequence[str]) -> str:
    return "|".join(re.escape(name) for name in dict.fromkeys(names))


def numbers(columns: Columns, text: str, reading: Reading, of: str = "parsed") -> list[tuple[str, str]]:
    """The condition and the reason for a record in which a time is a number or a text of digits.

    of: the struct that Spark's reader returned for the text.
    """
    leaves = list(_leaves([(reading.name(name), kind) for name, kind in columns]))
    scalars = [name for name, kind in leaves if kind.name in CALENDAR]
    nested = [name for name, kind in leaves if kind.name not in CALENDAR]
    if not scalars and not nested:
        return []
    times = [(name, kind) for name, kind in columns if _has_times(kind)]
    reasons = ", ".join(_reason(f"p.{spark_name(name)}", kind, (reading.name(name),)) for name, kind in times)
    first = f"coalesce({reasons}, NULL)"
    read = json_read(text, [(name, _as_json(kind)) for name, kind in times], reading)
    reason = f"element_at(transform(array({read}), p -> {first}), 1)"
    may_be = f"{text} RLIKE {spark_text(may_be_numbers(scalars, nested))}"
    looks = "" if nested else f"({' OR '.join([*_looks(columns, of), f'{of}.{CORRUPT} IS NOT NULL'])}) AND "
    return [(f"{looks}{may_be} AND {reason} IS NOT NULL", reason)]


def _looks(columns: Columns, of: str) -> Iterator[str]:
    """Conditions that a time may come from a number of seconds or a text of days, cheaper than looking at the text.

    Spark multiplies seconds by a million, a multiple of 64, so the result is a multiple of 64 even if the product
    wraps. It reads a text of up to three digits as days.
    """
    for name, kind in columns:
        value = f"{of}.{spark_name(name)}"
        if kind.name == "STRUCT":
            yield from _looks(kind.fields, value)
        elif kind.name == "DATE":
            yield f"{value} NOT BETWEEN {_AFTER_DAYS} AND {CALENDAR['DATE'][1]}"
        elif kind.name in CALENDAR:
            micros = value if kind.name == "TIMESTAMP" else f"CAST({value} AS TIMESTAMP)"
            yield f"(unix_micros({micros}) & 63) = 0"


_AFTER_DAYS = "date_from_unix_date(1000)"


def _leaves(columns: Columns) -> Iterator[tuple[str, Type]]:
    """The fields with times, including those inside structs."""
    for name, kind in columns:
        if kind.name == "STRUCT":
            yield from _leaves(kind.fields)
        elif _has_times(kind):
            yield name, kind


def _has_times(kind: Type) -> bool:
    inner = (*(field for _, field in kind.fields), kind.element)
    return kind.name in CALENDAR or any(_has_times(part) for part in inner if part is not None)


def _as_json(kind: Type) -> Type:
    """The type reduced to its times, read as written."""
    fields = tuple((name, _as_json(field)) for name, field in kind.fields if _has_times(field))
    whole = Type(kind.name, fields=fields, key=kind.key, element=_as_json(kind.element) if kind.element else None)
    return mapped(whole, lambda part: as_json(part) if part.name in CALENDAR else part)


def _reason(value: str, kind: Type, path: tuple[str, ...]) -> str:
    name = ".".join(part for part in path if part)
    if kind.name in CALENDAR:
        type_of_value = f"schema_of_variant({value})"
        digits = f"try_variant_get({value}, '$', 'STRING') RLIKE {spark_text(DIGITS_ALONE)}"
        return (
            f"CASE WHEN left({type_of_value}, 3) IN ('BIG', 'DEC', 'DOU') THEN {without_unit(spark_text(name), PLAIN)}"
            f" WHEN {type_of_value} = 'STRING' AND {digits} THEN {digits_alone(spark_text(name))} END"
        )
    if kind.name == "STRUCT":
        fields = [(name, field) for name, field in kind.fields if _has_times(field)]
        reasons = [_reason(f"{value}.{spark_name(name)}", field, (*path, name)) for name, field in fields]
        return f"coalesce({', '.join(reasons)}, NULL)"
    assert kind.element is not None
    values, element = (f"map_values({value})" if kind.name == "MAP" else value), f"v{len(path)}"
    reasons_of = f"transform({values}, {element} -> {_reason(element, kind.element, (*path, ''))})"
    return f"get(filter({reasons_of}, reason -> reason IS NOT NULL), 0)"
