"""Percentiles over buckets keep their relative error, and the order of values."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

import pytest

from tests.laws.engines import Engines
from view_algebra.language.types import BIGINT, DOUBLE, Type, decimal
from view_algebra.typed.aggregation.estimates import bucketed

DICE = random.Random(11)
DOUBLES = [0.0, *(DICE.choice((1, -1)) * 10 ** DICE.uniform(-300, 300) for _ in range(2_000))]
WHOLE = [0, 1, -1, 2, 3, 7, 99, 100, 101, 12_345, -12_345, 10**15, -(10**15)]
CENTS = [Decimal(n) / 100 for n in (0, 1, -1, 5, 99, 100, 12_345, -12_345, 999_999_999)]


@pytest.mark.parametrize("error", [0.1, 0.01, 0.0001])
@pytest.mark.parametrize(
    ("kind", "values", "unit"),
    [(DOUBLE, DOUBLES, 0), (BIGINT, WHOLE, 1), (decimal(9, 2), CENTS, 0.01)],
    ids=["DOUBLE", "BIGINT", "DECIMAL"],
)
def test_the_value_of_a_bucket_is_near_its_values_and_in_their_order(
    engines: Engines, kind: Type, values: Sequence[float | Decimal], unit: float, error: float
) -> None:
    frame = engines.spark.createDataFrame([(value,) for value in sorted(values)], f"x {kind.spark}")
    buckets = [(row.x, row.b) for row in frame.selectExpr("x", f"{bucketed('x', kind, error)} AS b").collect()]
    assert all(abs(float(b) - float(x)) <= error * abs(float(x)) * (1 + 1e-9) + unit / 2 for x, b in buckets)
    assert all(before <= after for (_, before), (_, after) in pairwise(buckets))
