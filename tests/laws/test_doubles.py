"""Postgres' own operators raise if a double is too large or too small. Ours give the results of IEEE 754 and Spark."""

from __future__ import annotations

import math
import random
from itertools import pairwise

from tests.laws.engines import Engines

SMALLEST = 5e-324
EDGES = [
    *(SMALLEST * n for n in (1, 2, 3, 5)),
    *(2.0**n for n in (-1074, -1022, -540, -538, -537, -100, -2, -1, 0, 1, 2, 52, 511, 512, 600, 1023)),
    2.2250738585072014e-308,
    1.7976931348623157e308,
    8.98846567431158e307,
    1e-150,
    1e150,
    0.1,
    2.5,
    3.0,
    1e16,
    0.0,
    math.inf,
    math.nan,
]


def test_multiplication_and_division_of_doubles_follow_ieee_754(engines: Engines) -> None:
    dice = random.Random(8)
    numbers = EDGES + [dice.choice(EDGES[:-3]) * dice.uniform(0.5, 1) for _ in range(60)]
    pairs = [(a, b * dice.choice([1, -1])) for a in numbers for b in numbers]
    with engines.connection.cursor() as cursor:
        cursor.execute(
            "SELECT a, b, spark.times(a, b), spark.divide(a, b)"
            " FROM unnest(%s::double precision[], %s::double precision[]) AS pairs (a, b)",
            ([a for a, _ in pairs], [b for _, b in pairs]),
        )
        for a, b, product, quotient in cursor.fetchall():
            nothing = product == 0 and abs(a * b) == SMALLEST  # about half of the smallest: it may round either way
            assert nothing or str(product + 0) == str(a * b + 0), (a, b)  # -0 is 0
            assert quotient is None if b == 0 else str(quotient + 0) == str(a / b + 0), (a, b)


def test_a_percentile_between_two_tiny_doubles_is_computed(engines: Engines) -> None:
    """Spark's `percentile` multiplies both neighbours by their shares and adds the products."""
    numbers = sorted(EDGES[:-2])
    with engines.connection.cursor() as cursor:
        for low, high in pairwise(numbers):
            for share in (0.25, 0.5, 0.75):
                cursor.execute("SELECT spark.percentile(%s::double precision[], %s)", ([low, high], share))
                row = cursor.fetchone()
                assert row is not None
                assert math.isclose(row[0], (1 - share) * low + share * high, rel_tol=1e-15, abs_tol=SMALLEST)
