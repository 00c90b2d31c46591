"""Group keys of any length: equal texts share a group and different texts do not, whatever an index can hold."""

from __future__ import annotations

import hashlib
import json
import random

from tests.laws.engines import Engines, difference, same
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


def test_a_group_may_have_as_many_long_keys_as_an_index_has_columns(engines: Engines) -> None:
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


def test_functions_that_show_values_show_long_texts_whole(engines: Engines) -> None:
    shows = (
        "collect_list(a) AS l, collect_set(a) AS s, mode(a) AS m, listagg(a, ';') AS t, "
        "listagg(b, ',') WITHIN GROUP (ORDER BY a) AS o, count(DISTINCT a) AS d, "
        "collect_list(a) FILTER (WHERE b = 'y') AS f"
    )
    views = {
        "groups": f"SELECT n, {shows} FROM s GROUP BY n",
        "all_of_them": f"SELECT {shows} FROM s",
        "sessions": "SELECT session_window(ts, '1 hour') AS w, collect_list(a) AS l, mode(a) AS m FROM s"
        " GROUP BY session_window(ts, '1 hour')",
    }
    catalog = compile_catalog(
        {"s.sql": SOURCE + "".join(f"CREATE VIEW {name} AS {text};" for name, text in views.items())}
    )
    engines.deploy(catalog)
    # The digests of these texts sort in another order than the texts.
    texts = [*WHOLE, *LONG, *LONG, None, *("z" * 3_000 + last for last in "dabc")]
    records: list[bytes | None] = [
        json.dumps({"a": text, "b": "xy"[i % 2], "n": i % 3, "ts": f"2024-01-01T0{i % 5}:00:00Z"}).encode()
        for i, text in enumerate(texts)
    ]
    batches = {"s": [records[:7], records[7:]]}
    engines.feed(catalog, batches)
    engines.oracle(catalog, batches)
    for view in catalog.views.values():
        expected, actual = engines.expected(view), engines.actual(view)
        assert same(expected, actual), difference(view, expected, actual)[:2_000]
