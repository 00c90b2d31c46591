"""HyperLogLog in Spark SQL, as Postgres computes it: the meaning of `approx_count_distinct` where Spark runs it."""

from __future__ import annotations


def estimate(value: str, counts: str, registers: int) -> str:
    """The estimate over all values for which `counts` holds, of as many registers.

    A register is the hash's remainder; it keeps the greatest place of a highest bit among its values, which comes last
    of its places in order and replaces those before. Where few are taken, as many are empty as chance leaves empty of
    so many values (Flajolet, Fusy, Gandouet, Meunier, 2007).
    """
    bits = registers.bit_length() - 1
    hashed = f"xxhash64({value})"
    place = f"{65 - bits} - length(bin(shiftrightunsigned({hashed}, {bits})))"
    kept = f"array_sort(collect_set(CASE WHEN {counts} THEN pmod({hashed}, {registers}L) * 64 + {place} END))"
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
