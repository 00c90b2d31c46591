"""Postgres reads a text as the same double that Java reads for Spark."""

from __future__ import annotations

import json
import random

from tests.laws.engines import Engines, same
from view_algebra import compile_catalog

WRITTEN = """
0 -0 +0.0 1 -1.5 1. .5 . - + e5 1e 1e+ 1e5 1E-5 1d 1.5D 2f 1e3F 1L 1dd 1_0 1,5 abc 2024-01-01 true
0x 0x10 0x1p3 0X.8P1 -0x1.8p-1 0x1.p0 0xp1 0x1p99999 0x1p-99999 0x1.fffffffffffff8p1023 0x1.fffffffffffff7fp1023
0x1p-1074 0x1p-1075 0x1.0000000000001p-1075 NaN nan -NaN +nan NAN Infinity -Infinity +infinity inf -INF infinit
Infinityd 1e308 1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 1e309 -1e400 1e99999999999
4.9e-324 2.5e-324 2.4703282292062327e-324 2.4703282292062328e-324 1e-400 -1e-99999999999 2.2250738585072011e-308
0.1 123456789012345678901234567890 9007199254740993
"""
TEXTS = [
    *("", " ", " 2.5\t", "\n3\r", "1e 5", "\uff11", "\u00a01", "1\u007f", "\u00011\u001f"),
    *("1e" + "9" * 140_000, "-1e-" + "9" * 140_000, "1e" + "0" * 140_000 + "2", "0x1p" + "9" * 140_000, "9" * 140_000),
    *("1" + "0" * 400, "0." + "0" * 400 + "1", "1" * 1500 + "e-1495"),
    *WRITTEN.split(),
]
SQL = """
CREATE TABLE s (s STRING) USING kafka OPTIONS (topic 's', format 'json');
CREATE VIEW r AS SELECT kafka_offset AS id, s FROM s;
CREATE VIEW v AS SELECT id, CAST(s AS DOUBLE) AS d, s + 1 AS plus, try_cast(s AS DOUBLE) AS tried FROM r;
"""


def at_random(dice: random.Random) -> str:
    """A text, usually of a double with digits that are hard to round."""
    digits = "".join(dice.choices("0123456789", k=dice.choice([1, 3, 17, 18, 20, 40])))
    point = dice.randrange(len(digits) + 1)
    exponent = dice.choice(["", f"e{dice.randrange(-345, 330)}", f"E{dice.randrange(-30, 30)}"])
    if dice.random() < 0.2:
        return f"0x{digits[:point]}.{digits[point:]}p{dice.randrange(-1200, 1100)}"
    return f"{dice.choice(['', '-'])}{digits[:point]}.{digits[point:]}{exponent}"


def test_a_text_is_the_same_double_in_both_engines(engines: Engines) -> None:
    dice = random.Random(1)
    texts = [*TEXTS, *(at_random(dice) for _ in range(1500))]
    catalog = compile_catalog({"doubles.sql": SQL})
    batches = {"s": [[json.dumps({"s": text}).encode() for text in texts]]}
    engines.deploy(catalog)
    engines.feed(catalog, batches)
    engines.oracle(catalog, batches)
    expected, actual = (find(catalog.views["v"]) for find in (engines.expected, engines.actual))
    wrong = [(texts[a[0]], a[1:], b[1:]) for a, b in zip(expected, actual, strict=True) if not same([a], [b])]
    exact = [(texts[a[0]], a[1], b[1]) for a, b in zip(expected, actual, strict=True) if a[1] != b[1] and a[1] == a[1]]
    assert (wrong, exact) == ([], [])
    assert len(expected) == len(texts)
