"""Merges of single columns, run in Postgres: their order does not matter."""

from __future__ import annotations

import itertools

import pytest

from tests.laws.engines import Engines
from view_algebra.compiled import Merge
from view_algebra.language.aggregates import AGGREGATES
from view_algebra.language.merges import MERGES, MergeRow
from view_algebra.language.types import BIGINT, DOUBLE, STRING, Type, decimal

WHOLE = ("NULL", "0", "3", "-7", "9223372036854775807", "(-9223372036854775808)")
KINDS: dict[Merge, tuple[tuple[Type, tuple[str, ...]], ...]] = {
    "sum": ((BIGINT, WHOLE), (decimal(10, 2), ("NULL", "0.00", "-1.25", "99999999.99"))),
    "min": ((BIGINT, WHOLE), (STRING, ("NULL", "''", "'a'", "'B'"))),
    "max": ((BIGINT, WHOLE), (DOUBLE, ("NULL", "'NaN'", "'-Infinity'", "1.5"))),
    "bit_and": ((BIGINT, WHOLE),),
    "bit_or": ((BIGINT, WHOLE),),
    "bit_xor": ((BIGINT, WHOLE),),
}
"""Values of the merges that one column decides. tests/laws/test_laws.py merges the others by their aggregates."""


def value(engines: Engines, expression: str) -> object:
    with engines.connection.cursor() as cursor:
        cursor.execute(f"SELECT {expression}")
        [(result,)] = cursor.fetchall()
    return result


def folded(row: MergeRow, kind: Type, *values: str) -> str:
    """Values folded into the first one by one, as an upsert does it."""
    cell, *others = (f"{text}::{kind.postgres}" for text in values)
    for fresh in others:
        cell = row.upsert([cell], [fresh], kind, False)
    return cell


@pytest.mark.parametrize("name", KINDS)
def test_the_order_of_merging_does_not_matter(engines: Engines, name: Merge) -> None:
    row = MERGES[name]
    for kind, values in KINDS[name]:
        for chosen in itertools.combinations_with_replacement(values, 3):
            results = {str(value(engines, folded(row, kind, *turn))) for turn in itertools.permutations(chosen)}
            assert len(results) == 1, (name, kind, chosen, results)


def test_every_merge_has_a_test_and_reads_all_its_values() -> None:
    by_their_aggregates = {"first", "last", "mean", "comoment", "third", "fourth", "keep"}
    assert KINDS.keys() | by_their_aggregates == MERGES.keys()
    for name, row in MERGES.items():
        # Cells of finer groups are merged by one of the two.
        assert name == "keep" or row.above is not None or AGGREGATES[name].above is not None
        if name != "keep":
            values = row.slot or ("column_1",)
            assert all(slot in row.spark(*values) for slot in values)
