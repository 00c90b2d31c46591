"""Views of times at both ends of the calendar can be read, and equal their SELECT."""

from __future__ import annotations

import json

from tests.laws.engines import Engines, difference, same
from view_algebra import compile_catalog

SQL = """
CREATE TABLE s (
  k STRING, ts TIMESTAMP, ntz TIMESTAMP_NTZ, day DATE, n INT, l BIGINT, d DOUBLE, days ARRAY<DATE>, at ARRAY<TIMESTAMP>
) USING kafka OPTIONS (topic 's', format 'json');
CREATE VIEW tumbling AS SELECT k, window(ts, '1 hour').start AS a, window(ts, '1 hour').end AS b,
  window(ts, '1 hour') AS c, count(*) AS n FROM s GROUP BY k, window(ts, '1 hour');
CREATE VIEW by_the_end AS SELECT window(ts, '1 hour').end AS b, count(*) AS n FROM s GROUP BY window(ts, '1 hour');
CREATE VIEW grouped_by_end AS SELECT window(ts, '1 hour').end AS b, count(*) AS n FROM s
  GROUP BY window(ts, '1 hour').end;
CREATE VIEW hopping AS SELECT window(ts, '2 hours', '1 hour').start AS a, window(ts, '2 hours', '1 hour').end AS b,
  count(*) AS n FROM s GROUP BY window(ts, '2 hours', '1 hour');
CREATE VIEW hop_starts AS SELECT window(ts, '2 hours', '1 hour').start AS a, count(*) AS n FROM s
  GROUP BY window(ts, '2 hours', '1 hour');
CREATE VIEW hop_ends AS SELECT window(ts, '2 hours', '1 hour').end AS b, count(*) AS n FROM s
  GROUP BY window(ts, '2 hours', '1 hour');
CREATE VIEW hop_keys AS SELECT k, count(DISTINCT n) AS n, window(ts, '2 hours', '1 hour').start AS a FROM s
  GROUP BY k, window(ts, '2 hours', '1 hour');
CREATE VIEW hop_days AS SELECT a, date_trunc('day', a) AS d, year(a) AS y, n FROM hop_starts;
CREATE VIEW first_hop AS SELECT min(a) AS a, count(a) AS n FROM (SELECT window(ts, '2 hours', '1 hour').start AS a
  FROM s GROUP BY window(ts, '2 hours', '1 hour'));
CREATE VIEW hop_users AS SELECT window(ts, '2 hours', '1 hour').end AS b, count(DISTINCT k) AS n FROM s
  GROUP BY window(ts, '2 hours', '1 hour');
CREATE VIEW hop_weeks AS SELECT window(ts, '14 days', '7 days').start AS a, window(ts, '14 days', '7 days').end AS b,
  count(*) AS n FROM s GROUP BY window(ts, '14 days', '7 days');
CREATE VIEW hop_week_ends AS SELECT window(ts, '14 days', '7 days').end AS b, count(*) AS n FROM s
  GROUP BY window(ts, '14 days', '7 days');
CREATE VIEW hop_week_users AS SELECT window(ts, '14 days', '7 days').end AS b, count(DISTINCT k) AS n FROM s
  GROUP BY window(ts, '14 days', '7 days');
CREATE VIEW hop_start_users AS SELECT window(ts, '2 hours', '30 minutes').start AS a, count(DISTINCT k) AS n,
  count(*) AS m FROM s GROUP BY window(ts, '2 hours', '30 minutes');
CREATE VIEW hop_start_lists AS SELECT n, window(ts, '2 hours', '30 minutes').start AS a, collect_set(k) AS ks FROM s
  GROUP BY n, window(ts, '2 hours', '30 minutes');
CREATE VIEW hop_week_keys AS SELECT k, window(ts, '21 days', '7 days').start AS a FROM s
  GROUP BY k, window(ts, '21 days', '7 days');
CREATE VIEW last_hop AS SELECT max(b) AS b, count(b) AS n, count(*) AS every FROM (
  SELECT window(ts, '2 hours', '1 hour').end AS b FROM s GROUP BY window(ts, '2 hours', '1 hour'));
CREATE VIEW last_hop_end AS SELECT max(b) AS b, count(*) AS n FROM hop_ends;
CREATE VIEW week_sessions AS SELECT session_window(ts, '7 days').start AS a, count(*) AS n FROM s
  GROUP BY session_window(ts, '7 days');
CREATE VIEW weeks AS SELECT window(ts, '7 days').start AS a, count(*) AS n FROM s GROUP BY window(ts, '7 days');
CREATE VIEW week_ends AS SELECT window(ts, '7 days').start AS a, window(ts, '7 days').end AS b, count(*) AS n FROM s
  GROUP BY window(ts, '7 days');
CREATE VIEW week_ends_above AS SELECT window(t, '7 days').end AS e, count(*) AS n
  FROM (SELECT k, max(ts) AS t FROM s GROUP BY k) GROUP BY window(t, '7 days');
CREATE VIEW sessions AS SELECT k, session_window(ts, '1 hour').start AS a, session_window(ts, '1 hour').end AS b,
  count(*) AS n FROM s GROUP BY k, session_window(ts, '1 hour');
CREATE VIEW last_end AS SELECT max(e) AS e, date_trunc('day', max(e)) AS d, unix_timestamp(max(e)) AS u, count(e) AS n
  FROM (SELECT window(ts, '1 hour').end AS e FROM s GROUP BY window(ts, '1 hour'));
CREATE VIEW of_a_view AS SELECT max(b) AS b, count(b) AS n, count(*) AS every FROM tumbling;
CREATE VIEW either AS SELECT b FROM tumbling UNION ALL SELECT b + INTERVAL 1 HOUR FROM sessions;
CREATE VIEW in_a_list AS SELECT n, (SELECT max(b) + INTERVAL 900 YEAR FROM tumbling AS t WHERE t.n = o.n) AS m
  FROM by_the_end AS o;
CREATE VIEW moved AS SELECT k, max(ts) + INTERVAL 1 HOUR AS a, max(day) + INTERVAL 1 DAY AS b,
  next_day(max(day), 'MO') AS c, add_months(max(day), 1) AS d, min(ts) - INTERVAL 1 HOUR AS e,
  max(ntz) + INTERVAL 900 YEAR AS f, last_day(max(day)) AS g,
  coalesce(max(ts) + INTERVAL 1 HOUR, min(ts)) AS h, date_add(max(day), 1) AS i,
  CASE WHEN count(*) > 0 THEN max(ts) + INTERVAL 1 DAY END AS j FROM s GROUP BY k;
CREATE VIEW rows AS SELECT kafka_offset AS id, ts + INTERVAL 1 HOUR AS a, next_day(day, 'MO') AS b,
  ntz - INTERVAL 1 DAY AS c, days, at,
  array(ts + INTERVAL 1 HOUR, ts) AS more, struct(day, day + INTERVAL 2 DAYS AS later) AS x FROM s;
CREATE VIEW exploded AS SELECT id, m FROM rows LATERAL VIEW explode(more) t AS m;
CREATE VIEW members AS SELECT id, x.later AS later FROM rows;
CREATE VIEW texts_of_times AS SELECT kafka_offset AS id, from_unixtime(l) AS a, CAST(date_add(day, n) AS STRING) AS b
  FROM s;
CREATE VIEW leap_seconds AS SELECT kafka_offset AS id,
  make_timestamp(year(ts), month(ts), day(ts), hour(ts), 59, 60) AS m FROM s;
CREATE VIEW last_leap_second AS SELECT max(make_timestamp(year(ts), month(ts), day(ts), hour(ts), 59, 60)) AS m FROM s;
CREATE VIEW above AS SELECT window(t, '1 hour').end AS e, count(*) AS n FROM (SELECT k, max(ts) AS t FROM s GROUP BY k)
  GROUP BY window(t, '1 hour');
"""
FIRST, LAST = "0001-01-01T00:10:00Z", "9999-12-31T23:30:00Z"


def record(k: str, ts: str, day: str, n: int, d: float = 1.5) -> bytes:
    return json.dumps(
        {"l": n << 32, "d": d, "k": k, "ts": ts, "ntz": ts[:-1], "day": day, "n": n, "days": [day], "at": [ts]}
    ).encode()


def test_a_view_of_times_at_the_ends_of_the_calendar_can_be_read_and_equals_its_select(engines: Engines) -> None:
    catalog = compile_catalog({"calendars.sql": SQL})
    values = [
        record("first", FIRST, "0001-01-01", 1),
        record("last", LAST, "9999-12-31", 2),
        record("now", "2024-03-10T10:20:30.123456Z", "2024-03-10", 3),
        record("now", LAST, "9999-12-31", 4),
        record("greatest", "2024-03-10T10:20:30Z", "2024-03-10", 2**31 - 1, 1e300),
        record("least", "2024-03-10T10:20:30Z", "2024-03-10", -(2**31), -1e300),
        json.dumps({"k": "now", "days": ["+12024-01-01"]}).encode(),
        json.dumps({"k": "now", "at": [None, "+12024-01-01T00:00:00Z"]}).encode(),
    ]
    engines.deploy(catalog)
    engines.feed(catalog, {"s": [values[:2], values[2:]]})
    engines.oracle(catalog, {"s": [values]})
    wrong = {}
    for name, view in catalog.views.items():
        try:
            with engines.connection.cursor() as cursor:
                cursor.execute(f"SET TIME ZONE 'UTC'; SELECT * FROM analytics.{name}")
                cursor.fetchall()
                cursor.execute("SET TIME ZONE 'America/St_Johns'")
            expected, actual = engines.expected(view), engines.actual(view)
        except Exception as error:  # noqa: BLE001 - the assertion reports every view
            wrong[name] = repr(error)
            continue
        if not same(expected, actual):
            wrong[name] = difference(view, expected, actual)
    assert wrong == {}, "\n".join(f"{name}: {reason}" for name, reason in wrong.items())
    assert engines.spark.sql("SELECT count(kafka_error) FROM records").collect()[0][0] == 2
