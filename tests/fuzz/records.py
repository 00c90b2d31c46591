"""Random records of the source in `values.SOURCE`: NULLs, extremes, late records, and some that are not records."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

R = TypeVar("R")

START = datetime(2024, 3, 1, 12, tzinfo=UTC)

_VALUES: dict[str, Sequence[object]] = {
    "k": [1, 2, 3, -4, 0, 2**31 - 1],
    "tiny": [0, 1, 2, -128, 127],
    "small": [0, 5, -6, 32767],
    "big": [1, 2, -3, 10, -(2**40), 2**53 + 1, 2**63 - 1],
    "price": [0.0, -0.0, 0.5, 1.25, -2.75, 3.0, 1e9, "NaN", "Infinity"],
    "ratio": [0.5, 1.5, -2.25, 16777216.0],
    "money": ["0.00", "1.25", "-3.10", "19.99", "99999999.99"],
    "wide": ["0", "1.000001", "-2.5", "123456789012345678901234.123456"],
    "kind": ["a", "b", "", "ä", "B", "a b"],
    "word": ["x", "a b", "b  a", "A", "😀", "10", "2024-01-31", "zz top a"],
    "flag": [True, False],
    "day": ["2024-02-29", "1969-12-31", "2024-03-01", "1582-10-10", "9000-12-31"],
    "gap": ["1 second", "10 minutes", "2 hours", "no gap"],
    "user": [{"id": 1, "name": "u"}, {"id": 2}, {}, {"id": None, "name": "ü"}],
    "tags": [[], ["a"], ["a", "b", None], ["b", "b"]],
    "numbers": [[], [1], [2, None, 3], [1, 1]],
}
_RARE = 3
"""The number of extremes at the end of a long list. They are drawn rarely."""

_BAD: Sequence[bytes | None] = (None, b"", b"no JSON", b"[]", b'{"k": "text"}', b'{"tiny": 300}', b'{"user": 1}')


def records(dice: random.Random, count: int) -> list[bytes | None]:
    """Random records: out of order, some late by years, some before 1970, some bad."""
    values_of_s: list[bytes | None] = []
    at = 0.0
    tame = dice.random() < 0.4
    for _ in range(count):
        if dice.random() < 0.03:
            values_of_s.append(dice.choice(_BAD))
            continue
        at += dice.choice([0, 0.001, 1, 60, 600, 600, 1800, 4000])
        late = dice.choice([0, 0, 0, 0, 0, -30, -3600, -86_400 * 20_000])
        values: dict[str, object] = {"ts": (START + timedelta(seconds=at + late)).isoformat()}
        for name, choices in _VALUES.items():
            rare = len(choices) > _RARE + 2 and (tame or dice.random() < 0.9)
            values[name] = dice.choice(choices[:-_RARE] if rare else choices)
        for name in list(values):
            if dice.random() < 0.12:
                if dice.random() < 0.5:
                    del values[name]
                else:
                    values[name] = None
        values_of_s.append(json.dumps(values).encode())
    return values_of_s


def split(dice: random.Random, records: Sequence[R]) -> list[list[R]]:
    """The records in up to four micro-batches."""
    cuts = sorted(dice.sample(range(len(records) + 1), min(len(records), dice.choice([0, 1, 2, 3]))))
    return [list(records[a:b]) for a, b in zip([0, *cuts], [*cuts, len(records)], strict=True)]
