"""Lists and structs are equal, and form groups, as in Spark: NULLs inside them are equal."""

# ruff: noqa: E501 — a SELECT is a line

from __future__ import annotations

import json
import random

from tests.laws.engines import Engines
from view_algebra import compile_catalog

SOURCE = """CREATE TABLE events (
  event_id STRING, user_id BIGINT, kind STRING, price DOUBLE, ratio FLOAT, tags ARRAY<STRING>, more ARRAY<STRING>, numbers ARRAY<INT>,
  prices ARRAY<DOUBLE>, others ARRAY<DOUBLE>, times ARRAY<TIMESTAMP>, lists ARRAY<ARRAY<INT>>, amounts ARRAY<DECIMAL(10,2)>,
  pair STRUCT<a: INT, b: ARRAY<STRING>>, p STRUCT<a: INT, b: STRING>, q STRUCT<a: INT, b: STRING>, shares MAP<STRING, DOUBLE>, labels MAP<STRING, ARRAY<STRING>>, ts TIMESTAMP
) USING kafka OPTIONS (topic 'events', format 'json');
"""

SELECTS = {
    "equal lists": "SELECT event_id, tags = more AS a, tags <=> more AS b, tags <> more AS c, prices = others AS d, times = times AS e, tags IN (more, array('a', 'b')) AS f, numbers IN (array(1), array(1, NULL)) AS g FROM events",
    "equal structs": "SELECT event_id, p = q AS a, p <=> q AS b, p <> q AS c, p IN (q, struct(1 AS a, 'x' AS b)) AS d, nullif(p, q) AS e FROM events",
    "where": "SELECT event_id FROM events WHERE tags = array('a', 'b') OR p = q OR lists = array(array(1), array())",
    "by a list": "SELECT tags, tags[0] AS f, size(tags) AS n, count(*) AS c, count(DISTINCT user_id) AS u FROM events GROUP BY tags",
    "by lists": "SELECT numbers, lists, amounts, max(price) AS p FROM events GROUP BY numbers, lists, amounts HAVING count(*) > 0 AND size(numbers) < 3",
    "by a struct with a list": "SELECT pair, pair.b AS b, count(*) AS n FROM events GROUP BY pair",
    "ranked": "SELECT tags, count(*) AS n FROM events GROUP BY tags ORDER BY n DESC, size(tags) LIMIT 4",
    "groups of groups": "SELECT kinds, count(*) AS users FROM (SELECT user_id, collect_set(kind) AS kinds FROM events GROUP BY user_id) GROUP BY kinds",
    "groups of groups that have lists": "SELECT n, max(size(tags)) AS s FROM (SELECT tags, count(*) AS n FROM events GROUP BY tags) GROUP BY n",
    "by a list over a join": "SELECT a.tags, count(*) AS n FROM events a JOIN events b ON a.user_id = b.user_id AND a.p = b.q GROUP BY a.tags",
    "joined by a list": "SELECT a.event_id, b.event_id AS other FROM events a JOIN events b ON a.tags = b.more AND a.prices = b.others",
    "sets of fractions": "SELECT kind, collect_set(price) AS a, collect_set(ratio) FILTER (WHERE user_id = 1) AS b, sort_array(collect_set(price)) AS c FROM events GROUP BY kind",
    "sets of fractions above": "SELECT collect_set(p) AS a FROM (SELECT kind, max(price) AS p FROM events GROUP BY kind)",
    "sets of lists": "SELECT kind, collect_set(tags) AS a, collect_set(pair) FILTER (WHERE user_id = 1) AS b, size(collect_set(lists)) AS c, collect_set(amounts)[0] AS d, collect_set(array(kind, 'x')) FILTER (WHERE user_id = 2 OR price > 1) AS e, count(*) AS n FROM events GROUP BY kind",
    "sets of all lists": "SELECT collect_set(numbers) AS a, collect_set(tags) AS b FROM events WHERE user_id IS NOT NULL",
    "sets of lists in windows": "SELECT window(ts, '1 hour', '20 minutes').start AS w, collect_set(tags) AS a FROM events GROUP BY window(ts, '1 hour', '20 minutes')",
    "sets of lists in sessions": "SELECT session_window(ts, '1 hour').end AS w, kind, collect_set(tags) AS a FROM events GROUP BY session_window(ts, '1 hour'), kind",
    "sets of lists over a join": "SELECT a.kind, collect_set(b.tags) AS t FROM events a JOIN events b ON a.user_id = b.user_id AND a.p = b.q GROUP BY a.kind",
    "lists of lists": "SELECT kind, collect_list(tags) AS a, collect_list(pair) FILTER (WHERE user_id = 1) AS b, collect_list(lists)[0] AS c, last(tags) AS d, count(DISTINCT user_id) AS n FROM events GROUP BY kind",
    "fractions next to decimals": "SELECT kind, coalesce(max(ratio), 0.2) AS a, CASE WHEN count(*) > 100 THEN max(ratio) ELSE 0.3 END AS b, min(ratio) IN (0.1, 0.7) AS c, greatest(min(ratio), 0.7) AS d, coalesce(min(ratio), CAST(max(user_id) AS DECIMAL(9, 2)) + 1234567.89) AS e FROM events GROUP BY kind",
    "sums of fractions next to decimals": "SELECT sum(coalesce(r, 0.0)) AS s, avg(coalesce(r, 0.1)) AS a FROM (SELECT event_id, max(ratio) AS r FROM events WHERE ratio < 10 OR ratio IS NULL GROUP BY event_id)",
    "decimals that meet in fewer digits": "SELECT sum(coalesce(s / c, c)) AS s, max(greatest(s / c, c)) AS g FROM (SELECT kind, count(*) AS c, sum(CAST(user_id AS DECIMAL(10, 2))) AS s FROM events GROUP BY kind)",
    "lists of maps": "SELECT kind, collect_list(shares) AS a, collect_list(labels) FILTER (WHERE user_id = 1) AS b, collect_list(shares)[0]['x'] AS c, collect_list(map('k', kind, 'u', to_json(p))) AS d, max_by(labels, ts) AS e FROM events GROUP BY kind",
    "counts as a map": "SELECT user_id, map_from_entries(collect_list(struct(kind, n))) AS m, map_from_entries(sort_array(collect_list(struct(kind, n)))) AS s FROM (SELECT user_id, kind, count(*) AS n FROM events GROUP BY user_id, kind) GROUP BY user_id",
    "a map of records": "SELECT user_id, map_from_entries(collect_list(struct(kind, price))) AS m FROM events GROUP BY user_id",
    "a map of a record": "SELECT event_id, map_from_entries(array(struct(kind AS k, price AS v), struct('x' AS k, 1.5D AS v), struct(kind AS k, 2D AS v))) AS m FROM events",
    "of all": "SELECT collect_list(prices) AS a, collect_list(amounts) AS b, collect_list(times) AS c, size(collect_list(tags)) AS n FROM events",
}


def records(count: int) -> list[bytes | None]:
    choose = random.Random(5).choice
    texts = [
        [],
        ["a", "b"],
        ["a", None],
        [None],
        ["a"],
        ["b", "a"],
        None,
        ["ä\"\\,'\n"],
        ["x" * 3000, "y"],
        ["x" * 3000, "z"],
    ]
    doubles = [[0.0], [-0.0], [1.5, None], ["NaN"], [1e300, 1e-7], None, [1e23, 2.0]]
    structs = [{"a": 1, "b": "x"}, {"a": 1}, {}, None, {"a": None, "b": "x"}]
    generated: list[bytes | None] = []
    for number in range(count):
        values = {
            "event_id": f"e{number}",
            "user_id": choose([1, 2, None]),
            "kind": choose(["a", "b", "c", None]),
            "price": choose([0.0, -0.0, 1.5, "NaN", None, 1e300, "Infinity", 0.1]),
            "ratio": choose([0.0, -0.0, 0.1, 3.4e38, None]),
            "tags": choose(texts),
            "more": choose(texts),
            "numbers": choose([[1], [1, None], [], None, [2, 1]]),
            "prices": choose(doubles),
            "others": choose(doubles),
            "times": choose([["2024-01-01T00:00:00.000001Z"], ["2024-01-01T00:00:00Z", None], None]),
            "lists": choose([[[1], []], [None, [1]], [], None]),
            "amounts": choose([[1.5], [1.50, 2], None]),
            "pair": choose([{"a": 1, "b": ["x"]}, {"a": 1, "b": []}, {"b": [None]}, {}, None]),
            "p": choose(structs),
            "q": choose(structs),
            "shares": choose([{"x": 0.5, "y": None}, {"y": -0.0, "x": "NaN"}, {"b": 1e300, "aa": 2}, {}, None]),
            "labels": choose([{"x": ["a", None]}, {"x": None, "ä": []}, {"x" * 3000: ["y"]}, None]),
            "ts": "2024-01-01T00:00:00Z",
        }
        generated.append(json.dumps(values).encode())
    return generated


def test_lists_and_structs_are_equal_and_grouped_as_in_spark(engines: Engines) -> None:
    views = "".join(f"CREATE VIEW v{number} AS {select};\n" for number, select in enumerate(SELECTS.values()))
    values = records(160)
    differing = engines.differing(
        compile_catalog({"nested.sql": SOURCE + views}), {"events": [values[:90], values[90:]]}
    )
    assert not differing, "\n\n".join(differing.values())
