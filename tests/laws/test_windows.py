"""Windows that are merged from panes when they are read equal Spark's windows over all records."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.laws.engines import Engines, difference, same
from view_algebra import compile_catalog

SOURCE = """CREATE TABLE visits (
  ts TIMESTAMP, user_id BIGINT, kind STRING, page STRING, amount DECIMAL(10,2), took DOUBLE, flag BOOLEAN, gap STRING
) USING kafka OPTIONS (topic 'visits', format 'json');
"""
START = datetime(2024, 3, 1, 12, tzinfo=UTC)
AGGREGATES = """count(*) AS n, count(amount) AS amounts, sum(amount) AS total, avg(amount) AS mean, sum(user_id) AS ids,
  min(page) AS first_page, max(took) AS longest, avg(took) AS took, bool_and(flag) AS all_flagged,
  bit_xor(user_id) AS bits, sum(took) FILTER (WHERE kind = 'click') AS clicked"""

HOPPING = {
    "even": "window(ts, '1 hour', '5 minutes')",
    "uneven": "window(ts, '10 seconds', '4 seconds')",
    "offset": "window(ts, '1 minute', '20 seconds', '7 seconds')",
    "negative_offset": "window(ts, '1 minute', '20 seconds', '-7 seconds')",
    "coprime": "window(ts, '7 seconds', '3 seconds')",
    "microseconds": "window(ts, '3 milliseconds', '1 millisecond')",
}
FINE = {"words": "window(ts, '10 minutes', '5 seconds', '2 seconds')", "blocks": "window(ts, '20 minutes', '1 second')"}
SESSIONS = {
    "fixed": "session_window(ts, '10 seconds')",
    "long": "session_window(ts, '1 hour')",
    "by_kind": "session_window(ts, CASE WHEN kind = 'click' THEN '3 seconds' WHEN kind = 'show' THEN '1 minute' END)",
    "of_the_record": "session_window(ts, gap)",
}


OF_A_HOP = """
CREATE VIEW {name}_kinds AS SELECT kind, window.end AS e, {aggregates} FROM visits GROUP BY kind, {call};
CREATE VIEW {name}_rows AS SELECT user_id, {call}.start AS s, {call}.end AS e, page FROM visits WHERE user_id > 1;
"""
MORE_OF_A_HOP = """
CREATE VIEW {name}_all AS SELECT window.start AS s, window.end AS e, {aggregates} FROM visits GROUP BY {call};
CREATE VIEW {name}_of_rows AS
  SELECT s, count(*) AS n, count(DISTINCT kind) AS kinds FROM (SELECT kind, {call}.start AS s FROM visits) GROUP BY s;
CREATE VIEW {name}_top AS
  SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY s ORDER BY n DESC, user_id) AS place FROM (
      SELECT {call}.start AS s, user_id, count(*) AS n FROM visits WHERE user_id > 0 GROUP BY {call}, user_id
      HAVING count(*) > 1))
  WHERE place = 1;
"""
VALUES_OF_A_HOP = """
CREATE VIEW {name}_distinct AS
  SELECT {call}.{which} AS s, kind, count(DISTINCT user_id) AS users, sum(DISTINCT amount) AS amounts, count(*) AS n
  FROM visits WHERE {where} GROUP BY kind, {call};
"""
OF_A_SESSION = """
CREATE VIEW s_{name}_all AS
  SELECT session_window.start AS s, session_window.end AS e, {aggregates} FROM visits GROUP BY {call};
CREATE VIEW s_{name}_users AS
  SELECT user_id, {call}.start AS s, {call}.end AS e, {aggregates} FROM visits WHERE kind IS NOT NULL
  GROUP BY {call}, user_id;
CREATE VIEW s_{name}_values AS
  SELECT user_id, session_window.start AS s, {call}.end AS e, count(DISTINCT page) AS pages, median(amount) AS middle,
    collect_set(kind) AS kinds, count(*) AS n, count(DISTINCT took, kind) FILTER (WHERE flag) AS flagged,
    mode(took) AS usual, collect_list(page) AS path
  FROM visits GROUP BY user_id, {call} HAVING count(DISTINCT kind) > 0;
CREATE VIEW s_{name}_only_values AS SELECT {call}.start AS s, count(DISTINCT page) AS pages FROM visits GROUP BY {call};
CREATE VIEW s_{name}_rolled AS
  SELECT user_id, session_window.end AS e, count(DISTINCT page) AS pages, grouping(user_id) AS g, count(*) AS n
  FROM visits GROUP BY {call}, ROLLUP(user_id);
CREATE VIEW s_{name}_visits AS
  SELECT user_id, count(*) AS visits, sum(clicks) AS clicks, avg(unix_timestamp(e) - unix_timestamp(s)) AS took FROM (
    SELECT user_id, session_window.start AS s, session_window.end AS e, count_if(kind = 'click') AS clicks
    FROM visits GROUP BY user_id, {call})
  GROUP BY user_id;
"""
SHARED = """
CREATE VIEW shared AS
  SELECT t.s, t.n, h.n AS hour
  FROM (SELECT window.start AS s, count(*) AS n FROM visits GROUP BY window(ts, '5 minutes')) AS t
  JOIN (SELECT window.end AS e, count(*) AS n FROM visits GROUP BY window(ts, '1 hour', '5 minutes')) AS h ON h.e = t.s;
"""


def hopping() -> str:
    views = [OF_A_HOP.format(name=name, call=call, aggregates=AGGREGATES) for name, call in HOPPING.items()]
    more = {name: call for name, call in HOPPING.items() if name in ("even", "uneven", "negative_offset")}
    views += [MORE_OF_A_HOP.format(name=name, call=call, aggregates=AGGREGATES) for name, call in more.items()]
    views += [
        VALUES_OF_A_HOP.format(name=name, call=call, where="true", which="start") for name, call in HOPPING.items()
    ]
    views += [
        VALUES_OF_A_HOP.format(name=name, call=call, where="page = '/B'", which="end") for name, call in FINE.items()
    ]
    return "".join([*views, SHARED])


def sessions() -> str:
    return "".join(OF_A_SESSION.format(name=name, call=call, aggregates=AGGREGATES) for name, call in SESSIONS.items())


def records(count: int, seed: int) -> list[bytes]:
    """Records out of order. Some are at exactly a gap's distance, some late by years, and some before 1970."""
    dice, generated = random.Random(seed), []
    at = 0.0
    for _ in range(count):
        at += dice.choice([0, 0.001, 0.5, 1, 3, 3, 10, 10, 10.000001, 60, 400])
        late = dice.choice([0, 0, 0, 0, -1, -30, -3600, -86_400 * 20_000])
        values = {
            "ts": None if dice.random() < 0.05 else (START + timedelta(seconds=at + late)).isoformat(),
            "user_id": dice.choice([1, 2, 3, None, -4]),
            "kind": dice.choice(["click", "show", "x", None]),
            "page": dice.choice(["/", "/ä", "/B", "/b", None]),
            "amount": dice.choice([1.25, -3.1, 99_999_999.99, None]),
            "took": dice.choice([0.5, 1.5, -0.0, "NaN", None]),
            "flag": dice.choice([True, False, True, None]),
            "gap": dice.choice(["1 second", "10 seconds", "2 minutes", "0 seconds", "-1 hour", "no gap", None]),
        }
        generated.append(json.dumps(values).encode())
    return generated


@pytest.mark.parametrize("views", [hopping, sessions])
def test_merged_windows_equal_sparks_windows(engines: Engines, views: Callable[[], str]) -> None:
    catalog = compile_catalog({"windows.sql": SOURCE + views()})
    values = records(150, seed=4)
    batches = {"visits": [values[:1], values[1:30], values[30:31], values[31:]]}
    engines.deploy(catalog)
    replace(engines, compiling=False).feed(catalog, batches)
    engines.oracle(catalog, batches)
    for view in catalog.views.values():
        assert [c.spark.replace(" ", "") for c in view.columns] == engines.types_of(view), view.select
        expected = engines.expected(view)
        assert expected, view.select
        actual = engines.actual(view)
        assert same(expected, actual), difference(view, expected, actual)
    for table in {table.partial: table for view in catalog.views.values() for table in view.cell_tables}.values():
        if not table.spread:
            continue  # a rebuild's lists in Spark equal those that micro-batches merge in Postgres
        listed = table.keys[0].name
        with engines.connection.cursor() as cursor:
            cursor.execute(f"SELECT extract(epoch FROM {listed})::text FROM cells.{table.name}")
            merged = sorted(float(start) for (start,) in cursor.fetchall())
        computed = engines.spark.sql(f"SELECT unix_micros({listed}) / 1e6 FROM ({table.partial})").collect()
        assert merged == pytest.approx(sorted(start for (start,) in computed), abs=1e-6)
