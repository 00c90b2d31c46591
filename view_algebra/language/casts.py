"""Casts that Spark accepts, with their templates in Postgres.

The templates have the meaning of Spark's casts with ANSI mode off: overflow wraps or is NULL, and nothing raises.
"""

from __future__ import annotations

from collections.abc import Collection

from view_algebra.language.quoting import words
from view_algebra.language.types import BITS, DIGITS, INTEGRAL, Type

_TIMES = words("VOID STRING DATE TIMESTAMP TIMESTAMP_NTZ")

_LIMITED: dict[str, tuple[Collection[str], Collection[str] | None, str]] = {
    "BINARY": ({*words("VOID STRING BINARY"), *INTEGRAL}, words("STRING BINARY"), "Cast to STRING first."),
    "TIMESTAMP_NTZ": (_TIMES, _TIMES, "Cast to TIMESTAMP first."),
    "DATE": (_TIMES, None, "Write date_add(DATE '1970-01-01', days)."),
}
"""Types with limited casts: the types to cast from, the types to cast to (None: any), and the way out."""


def instead_of(from_: Type, to: Type) -> str | None:
    """The way out for a cast that Spark always refuses; None if it accepts it.

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
    """The template of a TRY_CAST; None if Postgres has none that agrees."""
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
    """The template of a cast; None if Postgres has none that agrees."""
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
