"""Converts numeric Kafka keys, the big-endian bytes of Kafka's serializers, to JSON."""

from __future__ import annotations

from collections.abc import Mapping

_AS_LONG = "CAST(conv(hex(kafka_key), 16, -10) AS BIGINT)"
"""The bits of a key."""


def _fraction(length: int, digits: int, bias: int) -> str:
    """Spark SQL of an IEEE 754 number from its bits, exact because it only multiplies by powers of two.

    digits: bits of the fraction. bias: the exponent's bias.
    """
    exponents = 2 * bias + 1
    exponent = f"(shiftright({_AS_LONG}, {digits}) & {exponents})"
    fraction = f"({_AS_LONG} & {2**digits - 1})"
    sign = f"(1D - 2D * (shiftright({_AS_LONG}, {8 * length - 1}) & 1))"
    return f"""CASE
        WHEN length(kafka_key) <> {length} THEN NULL
        WHEN {exponent} = {exponents} AND {fraction} <> 0 THEN '"NaN"'
        WHEN {exponent} = {exponents} AND {sign} > 0 THEN '"Infinity"'
        WHEN {exponent} = {exponents} THEN '"-Infinity"'
        WHEN {exponent} = 0 THEN CAST({sign} * {fraction} * power(2D, {1 - bias - digits}) AS STRING)
        ELSE CAST({sign} * (1 + {fraction} / {2**digits}D) * power(2D, {exponent} - {bias}) AS STRING)
      END"""


def _whole(length: int) -> str:
    """Spark SQL of a whole number of `length` bytes, which shifts its sign to a BIGINT's and back."""
    above = 64 - 8 * length
    number = f"shiftright(shiftleft(CAST(conv(hex(kafka_key), 16, 10) AS BIGINT), {above}), {above})"
    return f"CASE WHEN length(kafka_key) = {length} THEN CAST({number} AS STRING) END"


NUMERIC_KEYS: Mapping[str, str] = {
    "short": _whole(2),
    "int": _whole(4),
    "long": "CASE WHEN length(kafka_key) = 8 THEN conv(hex(kafka_key), 16, -10) END",
    "float": _fraction(4, 23, 127),
    "double": _fraction(8, 52, 1023),
}
"""The JSON of a key in Spark SQL, by its format; NULL if the key has another length."""
