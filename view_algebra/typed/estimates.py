"""What estimates mean, in Spark SQL: the registers of HyperLogLog, and the buckets of a sketch for percentiles."""

from __future__ import annotations

import math

from view_algebra.language.types import Type


def estimate(value: str, counts: str, registers: int) -> str:
    """The estimate over all values for which `counts` holds, of as many registers.

    A register is the hash's remainder; it keeps the greatest position of a highest bit among its values, which comes
    last of its positions in order and replaces those before. Where few are taken, as many are empty as chance leaves
    empty of so many values (Flajolet, Fusy, Gandouet, Meunier, 2007).
    """
    bits = registers.bit_length() - 1
    hashed = f"xxhash64({value})"
    position = f"{65 - bits} - length(bin(shiftrightunsigned({hashed}, {bits})))"
    kept = f"array_sort(collect_set(CASE WHEN {counts} THEN pmod({hashed}, {registers}L) * 64 + {position} END))"
    same, gone = "e DIV 64 = a.last DIV 64", "pow(2D, -(a.last % 64))"
    added = (
        f"(a, e) -> named_struct('z', a.z + pow(2D, -(e % 64)) - CASE WHEN {same} THEN {gone} ELSE 0D END,"
        f" 'n', a.n + CASE WHEN {same} THEN 0 ELSE 1 END, 'last', e)"
    )
    raw = f"{_alpha(registers) * registers * registers!r}D / (a.z + {registers} - a.n)"
    few = f"a.n < {registers} AND {raw} <= {2.5 * registers!r}D"
    linear = f"{registers}D * ln({registers}D / ({registers} - a.n))"
    rounded = f"a -> CAST(floor(CASE WHEN {few} THEN {linear} ELSE {raw} END + 0.5D) AS BIGINT)"
    return f"aggregate({kept}, named_struct('z', 0D, 'n', 0, 'last', -64L), {added}, {rounded})"


def _alpha(registers: int) -> float:
    return 0.7213 / (1 + 1.079 / registers)


def bucketed(value: str, kind: Type, error: float) -> str:
    """The value that stands for all in its bucket, none of which is further from it than `error`, relative to itself.

    Buckets grow by a factor from 0 on (DDSketch; Masson, Rim, Lee, 2019). A greater value is never in a smaller bucket,
    so the percentile of what stands for the values stands for their percentile.
    """
    growth = (1 + error) / (1 - error)
    x = f"CAST({value} AS DOUBLE)"
    bucket = f"pow({growth!r}D, ceil(ln(abs({x})) / {math.log(growth)!r}D))"
    stands = f"sign({x}) * {2 / (1 + growth)!r}D * {bucket}"
    if not (kind.integral or kind.name == "DECIMAL"):
        own = f"isnan({x}) OR abs({x}) = CAST('Infinity' AS DOUBLE)"
        return f"CASE WHEN {x} = 0 THEN 0D WHEN {own} THEN {x} ELSE {stands} END"
    rounded = f"CAST(round({stands}, {kind.scale if kind.name == 'DECIMAL' else 0}) AS {kind.spark})"
    return f"CASE WHEN {x} = 0 THEN {value} ELSE coalesce({rounded}, {value}) END"
