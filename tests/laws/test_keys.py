"""Group keys of any length: equal texts are one group, other texts are others, whatever an index can hold."""

from __future__ import annotations

import hashlib
import json
import random

from tests.laws.engines import Engines
from view_algebra import compile_catalog

SOURCE = "CREATE TABLE s (a STRING, b STRING, n BIGINT, ts TIMESTAMP) USING kafka OPTIONS (topic 's', format 'json');\n"
MOST_KEYS = 32


def noise(length: int, seed: int) -> str:
    """A text that does not compress."""
    return "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyzäöü0123456789-_/?&=", k=length))


def shortened(text: str, beginning: int = 100) -> str:
    return f"{text[:beginning]}… sha256 {hashlib.sha256(text.encode()).hexdigest()}"


WHOLE = ["", "short", noise(1_800, 1), "x" * 2_500, "ö" * 1_000]
LONG = ["x" * 1_000_000, "x" * 999_999 + "y", noise(3_000, 2), noise(3_000, 3), "ö" * 1_500, shortened(noise(3_000, 2))]


def test_long_texts_are_groups_of_their_own(engines: Engines) -> None:
    catalog = compile_catalog({"s.sql": SOURCE + "CREATE VIEW v AS SELECT a, count(*) AS n FROM s GROUP BY a;"})
    engines.deploy(catalog)
    batch = [json.dumps({"a": text}).encode() for text in [*WHOLE, *LONG, *LONG]]
    engines.feed(catalog, {"s": [batch, batch]})
    expected = dict.fromkeys(WHOLE, 2) | {shortened(text): 4 for text in LONG}
    assert dict(engines.actual(catalog.views["v"])) == expected


def test_as_many_long_keys_as_an_index_can_have(engines: Engines) -> None:
    columns = ", ".join(f"k{i} STRING" for i in range(MOST_KEYS))
    keys = ", ".join(f"k{i}" for i in range(MOST_KEYS))
    text = f"CREATE TABLE s ({columns}) USING kafka OPTIONS (topic 's', format 'json');"
    catalog = compile_catalog(
        {"s.sql": text + f"CREATE VIEW v AS SELECT {keys}, count(*) AS n FROM s GROUP BY {keys};"}
    )
    engines.deploy(catalog)
    values = {f"k{i}": noise(3_000, i) for i in range(MOST_KEYS)}
    engines.feed(catalog, {"s": [[json.dumps(values).encode()] * 3]})
    assert engines.actual(catalog.views["v"]) == [(*(shortened(t, 0) for t in values.values()), 3)]
