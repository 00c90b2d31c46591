"""Numbers of which Java's BigDecimal would write the zeros out, for minutes: `1e-100000000` of a DECIMAL.

A number of 1,000 digits, or with an exponent of 4, is no DECIMAL here. A text that is cast is looked at before; a JSON
text that may hold such a number is first read with texts where decimals are declared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import STRING, Type

_SIGN = r"(?:[+-]|\\u002[bBdD])?+"
_DIGITS = r"(?:[\p{Nd}.]|\\u(?!00[46]5)[0-9a-fA-F]{4})"
MAY_BE_LONG = (
    rf"""["':,\[\s]{_SIGN}{_DIGITS}++(?:[eE]|\\u00[46]5){_SIGN}(?:\p{{Nd}}|\\u[0-9a-fA-F]{{4}}){{4}}"""
    rf"""|["']{_SIGN}{_DIGITS}{{1000}}+"""
)
"""What may be such a number in JSON, each character escaped or not. BigDecimal reads the digits of every language."""

EXPONENT = r"[eE][+-]?\p{Nd}{4}"
"""An exponent of 4 digits, with no character of it escaped."""

BARE_AND_LONG = (
    r"""(?s)^(?:[^"'0-9]++|"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'|[0-9.]++(?![eE][+-]?[0-9]{4}))*+[0-9.]++[eE]"""
)
"""A JSON text with a number, in no quotes, that has an exponent of 4 digits; of more than 1,000 digits it has none."""

QUOTED_AND_LONG = r""""[+-]?(?:[\p{Nd}.]*+[eE][+-]?\p{Nd}{4,}+|[\p{Nd}.]{1000,}+(?:[eE][^"]*+)?)"[,}\]]"""
"""Such a number in JSON that Spark writes of texts alone."""

SHORT_NUMBER = r"(?s)^(?!.{1001})(?!.*[eE][+-]?\p{Nd}{4})"
"""A text that has no such number, and is no longer than one."""


def may_be_long(text: str) -> str:
    """Spark SQL of whether a JSON text may hold such a number.

    Java needs longer for MAY_BE_LONG than to read the text. So most texts are told apart by less: one that has no
    escape needs an exponent for it, or 1,000 characters.
    """
    escape = spark_text(r"\u")
    needed = f"contains({text}, {escape}) OR octet_length({text}) >= 1000 OR {text} RLIKE {spark_text(EXPONENT)}"
    return f"(({needed}) AND {text} RLIKE {spark_text(MAY_BE_LONG)})"


def short_number(text: str) -> str:
    """Spark SQL of a text that is about to be cast to DECIMAL; NULL where it is too long a number."""
    return f"CASE WHEN ({text}) RLIKE {spark_text(SHORT_NUMBER)} THEN {text} END"


TOO_LONG = "a number is too long for a DECIMAL: it has 1,000 digits, or an exponent of 4"
"""Why a record goes to quarantine."""


def has_decimals(kind: Type) -> bool:
    """Is a type DECIMAL, or one with a DECIMAL in it?"""
    return decimals_alone(kind) is not None


def bounded(text: str, kind: Type, corrupt: str | None = None) -> str:
    """Spark SQL of a JSON text that is about to be read as a type; NULL where a DECIMAL in it has too long a number.

    A text with two fields of one name, of which Spark would read both, counts as one that has, if any may be too long.
    corrupt: the field that Spark's reader fills where it cannot read a text whole. Such a text becomes one that it
    cannot read either, and one with too long a number is empty.
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
    """The options of from_json() by which it fills a field with what it cannot read."""
    return f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{corrupt}')"


def mapped(kind: Type, change: Callable[[Type], Type]) -> Type:
    """A type with every part of it changed."""
    return change(
        replace(
            kind,
            fields=tuple((name, mapped(field, change)) for name, field in kind.fields),
            element=mapped(kind.element, change) if kind.element else None,
            key=mapped(kind.key, change) if kind.key else None,
        )
    )


def decimals_alone(kind: Type) -> Type | None:
    """A type with nothing but the decimals in it; None where there are none."""
    if kind.name == "DECIMAL":
        return kind
    fields = tuple((name, alone) for name, field in kind.fields if (alone := decimals_alone(field)) is not None)
    element = None if kind.element is None else decimals_alone(kind.element)
    return replace(kind, fields=fields, element=element) if fields or element else None


def decimals_as_text(kind: Type) -> Type:
    """A type with STRING for every DECIMAL."""
    return mapped(kind, lambda part: STRING if part.name == "DECIMAL" else part)


def _schema(kind: Type) -> str:
    columns = ", ".join(f"{spark_name(name)} {field.spark}" for name, field in kind.fields)
    return spark_text(columns if kind.name == "STRUCT" else kind.spark)
