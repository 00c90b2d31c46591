"""Guards against long numbers, whose zeros Java's BigDecimal would write out for minutes, as those of `1e-100000000`.

A *long number*, of 1,000 digits or with an exponent of 4 digits, is not a DECIMAL here. A text is checked before a
cast. JSON that may hold a long number is first read with texts in place of decimals.
"""

from __future__ import annotations

from dataclasses import replace

from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import STRING, Type, rewritten_type

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

TOO_LONG = "a number is too long for a DECIMAL: it has 1,000 digits, or an exponent of 4"
"""The reason for quarantine."""


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
