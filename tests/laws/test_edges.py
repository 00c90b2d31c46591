# ruff: noqa: E501 (a SELECT is a line)
"""Values that only one engine can hold mean the same everywhere: in cells, above them, and in the check."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tests.laws.engines import Engines, Record, Row, difference, ordered, same
from view_algebra import compile_catalog

KEYS_TWICE = """
CREATE TABLE products (
  asin STRING, details MAP<STRING, STRING>, txt STRING,
  deep STRUCT<a: MAP<STRING, MAP<STRING, DOUBLE>>, b: ARRAY<MAP<STRING, INT>>>
) USING kafka OPTIONS (topic 'products', format 'json');
CREATE VIEW brands AS SELECT details['Brand'] AS brand, count(*) AS n FROM products GROUP BY details['Brand'];
CREATE VIEW newest AS SELECT asin, last(details) AS details FROM products GROUP BY asin;
CREATE VIEW brands_above AS SELECT details['Brand'] AS brand, count(*) AS n FROM newest GROUP BY details['Brand'];
CREATE VIEW product_rows AS SELECT asin, details, deep FROM products;
CREATE VIEW brands_of_rows AS SELECT details['Brand'] AS brand, count(*) AS n FROM product_rows GROUP BY 1;
CREATE VIEW sizes AS SELECT asin, size(details) AS n, array_join(sort_array(map_keys(details)), ',') AS keys
  FROM products;
CREATE VIEW entries AS SELECT k, v, count(*) AS n FROM products LATERAL VIEW explode(details) AS k, v GROUP BY k, v;
CREATE VIEW entries_above AS SELECT k, v, count(*) AS n FROM product_rows LATERAL VIEW explode(details) AS k, v
  GROUP BY k, v;
CREATE VIEW of_text AS SELECT from_json(txt, 'MAP<STRING, STRING>')['Brand'] AS brand, count(*) AS n FROM products
  GROUP BY 1;
CREATE VIEW inside AS SELECT asin, deep.a['x']['y'] AS y, size(deep.a) AS n, deep.b[0]['k'] AS k,
  size(deep.a['x']) AS m FROM products;
CREATE VIEW inside_above AS SELECT asin, deep.a['x']['y'] AS y, deep.b[0]['k'] AS k FROM product_rows;
"""

PRODUCTS = [
    '{"asin":"B1","details":{"Brand":"Acme","Color":"red"}}',
    """{"asin":"B2","details":{"Brand":"Bolt","Brand":"BOLT","x":"1"},
        "deep":{"a":{"x":{"y":1},"x":{"y":2,"y":"NaN"}},"b":[{"k":1,"k":2}]}}""",
    '{"asin":"B4","details":{"Brand":"Acme","Brand":null},"deep":{"a":{"x":{"y":Infinity,"y":1e400}}}}',
    '{"asin":"B5","details":{"Brand":null,"Brand":"Dyn"},"txt":"{\\"Brand\\":\\"first\\",\\"Brand\\":\\"last\\"}"}',
]

INF, NAN = float("inf"), float("nan")
BRANDS = [("Acme", 1), ("BOLT", 1), ("Dyn", 1), (None, 1)]
ENTRIES = [("Brand", "Acme", 1), ("Brand", "BOLT", 1), ("Brand", "Dyn", 1), ("Brand", None, 1), ("Color", "red", 1)]
ENTRIES += [("x", "1", 1)]
OF_PRODUCTS: dict[str, list[Row]] = {
    "brands": BRANDS,
    "brands_above": BRANDS,
    "brands_of_rows": BRANDS,
    "sizes": [("B1", 2, "Brand,Color"), ("B2", 2, "Brand,x"), ("B4", 1, "Brand"), ("B5", 1, "Brand")],
    "entries": ENTRIES,
    "entries_above": ENTRIES,
    "of_text": [("last", 1), (None, 3)],
    "inside": [
        ("B1", None, -1, None, -1),
        ("B2", NAN, 1, 2, 1),
        ("B4", INF, 1, None, 1),
        ("B5", None, -1, None, -1),
    ],
    "inside_above": [("B1", None, None), ("B2", NAN, 2), ("B4", INF, None), ("B5", None, None)],
}


def wrong_rows(
    engines: Engines, sql: str, records: Mapping[str, Sequence[Record]], right: Mapping[str, list[Row]]
) -> dict[str, str]:
    """The served and the selected rows of the views that differ."""
    catalog = compile_catalog({"edges.sql": sql})
    engines.deploy(catalog)
    engines.feed(catalog, {name: [some[:1], some[1:]] for name, some in records.items()})
    engines.oracle(catalog, {name: [some] for name, some in records.items()})
    wrong = {}
    for name, view in catalog.views.items():
        selected = engines.expected(view)
        rows = ordered(right[name]) if name in right else selected
        for what, answers in (("served", engines.actual(view)), ("selected", selected)):
            if not same(rows, answers):
                wrong[f"{name}, {what}"] = f"{rows}\n{answers}\n{difference(view, rows, answers)}"
    return wrong


def test_the_last_entry_of_a_duplicate_map_key_wins(engines: Engines) -> None:
    wrong = wrong_rows(engines, KEYS_TWICE, {"products": [text.encode() for text in PRODUCTS]}, OF_PRODUCTS)
    assert wrong == {}, "\n\n".join(f"{name}: {rows}" for name, rows in wrong.items())


TIMES = """
CREATE TABLE l (sku STRING PRIMARY KEY, valid_from BIGINT, valid_to BIGINT)
USING kafka OPTIONS (topic 'l', format 'json', key_format 'none');
CREATE TABLE o (id INT, sku STRING, ts TIMESTAMP, us BIGINT, ms BIGINT, day DATE, n INT, txt STRING)
USING kafka OPTIONS (topic 'o', format 'json') TBLPROPERTIES ('event_time' = 'ts');

CREATE VIEW joined AS SELECT o.id, l.sku AS hit FROM o LEFT JOIN l ON l.sku = o.sku AND o.ts < timestamp_micros(l.valid_to);
CREATE VIEW between_both AS SELECT o.id, l.sku AS hit FROM o LEFT JOIN l ON l.sku = o.sku
  AND o.ts BETWEEN timestamp_micros(l.valid_from) AND timestamp_micros(l.valid_to) - INTERVAL 1 DAY;
CREATE VIEW newest_filtered AS SELECT initcap(sku) AS s, count(*) AS n FROM l
  WHERE timestamp_micros(valid_to) > TIMESTAMP '9999-12-31 23:59:59' GROUP BY initcap(sku);
CREATE VIEW filtered AS SELECT id FROM o WHERE ts < timestamp_micros(us);
CREATE VIEW filtered_above AS SELECT id FROM (SELECT id, max(ts) AS ts, max(us) AS us FROM o GROUP BY id)
  WHERE ts < timestamp_micros(us);
CREATE VIEW extremes AS SELECT max(timestamp_micros(us)) AS a, min(timestamp_micros(us)) AS b,
  count(timestamp_micros(us)) AS n, count(DISTINCT timestamp_micros(us)) AS d, max_by(id, timestamp_millis(ms)) AS m,
  count(*) FILTER (WHERE timestamp_micros(us) > ts) AS f, max(timestamp_micros(us)) > max(ts) AS g FROM o;
CREATE VIEW years AS SELECT year(timestamp_micros(us)) AS y, count(*) AS n FROM o GROUP BY year(timestamp_micros(us));
CREATE VIEW years_above AS SELECT year(t) AS y, date_format(t, 'yyyy') AS f, unix_micros(t) AS u, CAST(t AS STRING) AS s,
  count(*) AS n FROM (SELECT id, max(timestamp_micros(us)) AS t FROM o GROUP BY id) GROUP BY ALL;
CREATE VIEW groups AS SELECT timestamp_micros(us) AS t, count(*) AS n FROM o GROUP BY timestamp_micros(us);
CREATE VIEW rows AS SELECT id, timestamp_micros(us) AS t, CAST(timestamp_millis(ms) AS DATE) AS d,
  array(timestamp_micros(us)) AS a, timestamp_micros(us) IS NULL AS i FROM o;
CREATE VIEW of_rows AS SELECT count(t) AS n, max(t) AS t, count(d) AS d, count(*) AS every FROM rows;
CREATE VIEW hashed_rows AS SELECT id, hash(t) = hash(CAST(NULL AS TIMESTAMP)) AS i, year(t) AS y FROM rows;
CREATE VIEW moved AS SELECT id, timestamp_micros(us) - INTERVAL 1 DAY > ts AS a, date_trunc('day', timestamp_micros(us)) > ts AS b,
  date_sub(CAST(timestamp_micros(us) AS DATE), 9) > day AS c, coalesce(timestamp_micros(us), ts) >= ts AS d,
  add_months(to_date(timestamp_millis(ms)), -1) > day AS e, greatest(timestamp_micros(us), ts) > ts AS f,
  timestamp_micros(us) + (ts - ts) IS NULL AS g, datediff(timestamp_micros(us), ts) IS NULL AS h,
  CASE WHEN n > 0 THEN timestamp_micros(us) END > ts AS j, from_utc_timestamp(timestamp_micros(us), 'Asia/Tokyo') > ts AS k,
  timestamp_micros(us) = timestamp_millis(ms) AS x, last_day(CAST(timestamp_micros(us) AS DATE)) > day AS y,
  next_day(CAST(timestamp_micros(us) AS DATE), 'MO') > day AS z FROM o;
CREATE VIEW moved_above AS SELECT id, t - INTERVAL 1 MONTH > ts AS a, date_trunc('day', t) > ts AS b,
  date_sub(CAST(t AS DATE), 9) > day AS c, coalesce(t, ts) >= ts AS d, add_months(to_date(t), -1) > day AS e,
  greatest(t, ts) > ts AS f, datediff(t, ts) IS NULL AS h, last_day(CAST(t AS DATE)) > day AS y,
  next_day(CAST(t AS DATE), 'MO') > day AS z, t - ts IS NULL AS i
  FROM (SELECT id, max(timestamp_micros(us)) AS t, max(ts) AS ts, max(day) AS day FROM o GROUP BY id);
CREATE VIEW made AS SELECT id, date_add(day, n) IS NULL AS a, make_date(n, 1, 1) IS NULL AS b, ts + INTERVAL 9000 YEARS IS NULL AS c,
  date_from_unix_date(n) IS NULL AS d, CAST(txt AS DATE) IS NULL AS e, to_date(txt) IS NULL AS f,
  ts - INTERVAL 9000 YEARS IS NULL AS g, add_months(day, n) IS NULL AS h, make_timestamp(n, 1, 1, 0, 0, 0D) IS NULL AS i,
  CAST(CAST(us AS DOUBLE) AS TIMESTAMP) IS NULL AS j, next_day(day, 'MO') IS NULL AS k FROM o;
CREATE VIEW made_above AS SELECT id, date_add(day, n) IS NULL AS a, make_date(n, 1, 1) IS NULL AS b, ts + INTERVAL 9000 YEARS IS NULL AS c,
  date_from_unix_date(n) IS NULL AS d, ts - INTERVAL 9000 YEARS IS NULL AS g, add_months(day, n) IS NULL AS h,
  next_day(day, 'MO') IS NULL AS k
  FROM (SELECT id, max(ts) AS ts, max(day) AS day, max(n) AS n FROM o GROUP BY id);
CREATE VIEW ordered AS SELECT id, rank() OVER (ORDER BY timestamp_micros(us)) AS place,
  lag(t) OVER (ORDER BY t, id) < t AS later FROM (SELECT id, us, timestamp_micros(us) AS t FROM o);
CREATE VIEW framed AS SELECT id, count(*) OVER (ORDER BY t RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS a,
  count(*) OVER (ORDER BY t DESC RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS b,
  count(*) OVER (ORDER BY CAST(t AS DATE) RANGE BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING) AS c
  FROM (SELECT id, coalesce(timestamp_micros(us), ts) AS t FROM o);
CREATE VIEW united AS SELECT count(t) AS n, count(DISTINCT t) AS d FROM (
  SELECT max(timestamp_micros(us)) AS t FROM o UNION ALL SELECT max(ts) FROM o UNION ALL SELECT min(timestamp_micros(us)) FROM o);
CREATE VIEW ends AS SELECT id, window(ts, '1 hour').end IS NULL AS e FROM o;
CREATE VIEW ends_above AS SELECT count(*) AS n, count(e) AS ends FROM (
  SELECT window(ts, '1 hour').end AS e, count(*) AS n FROM o GROUP BY window(ts, '1 hour')) WHERE e IS NULL OR e < DATE '9000-01-01';
"""

INFINITY, MINUS_INFINITY = 9223372036825200000, -9223372036832400000


def order(id: int, us: int | None, ts: str, day: str, n: int, txt: str = "2024-01-01") -> bytes:
    ms = None if us is None else us if us == INFINITY else -(-us // 1000) if us < 0 else us // 1000
    return json.dumps(locals() | {"sku": f"s{id}"}).encode()


ORDERS = [
    order(1, INFINITY, "2024-05-01T00:00:00Z", "2024-05-01", 1),
    order(2, MINUS_INFINITY, "2024-05-01T00:00:00Z", "2024-05-01", 2),
    order(3, 1_714_521_600_000_001, "2024-05-01T00:00:00Z", "2024-05-01", 3),
    order(4, 253_402_300_800_000_000, "9999-12-31T23:30:00Z", "9999-12-31", 2_932_897, "99999-01-01"),
    order(5, None, "0001-01-01T00:00:00Z", "0001-01-01", -719_163, "-0001-01-01"),
]
VERSIONS = [
    (b"", json.dumps({"sku": f"s{id}", "valid_from": MINUS_INFINITY, "valid_to": us}).encode())
    for id, us in (
        (1, INFINITY),
        (2, MINUS_INFINITY),
        (3, 1_714_521_600_000_001),
        (4, 253_402_300_800_000_000),
        (5, None),
    )
]
HITS = [(1, "s1"), (2, None), (3, "s3"), (4, None), (5, None)]
T, F, N = True, False, None
TEXT = "2024-05-01 00:00:00.000001"
OF_TIMES: dict[str, list[Row]] = {
    "joined": HITS,
    "between_both": [(1, "s1"), *[(id, None) for id in range(2, 6)]],
    "newest_filtered": [("S1", 1)],
    "filtered": [(1,), (3,)],
    "filtered_above": [(1,), (3,)],
    "extremes": [(None, None, 3, 3, 1, 2, True)],
    "years": [(2024, 1), (None, 4)],
    "years_above": [(2024, "2024", 1_714_521_600_000_001, TEXT, 1), (None, None, None, None, 4)],
    "groups": [(f"{TEXT}", 1), (None, 2), (None, 1), (None, 1)],
    "of_rows": [(1, TEXT, 1, 5)],
    "hashed_rows": [(3, F, 2024), *[(id, T, None) for id in (1, 2, 4, 5)]],
    "ends": [(4, T), *[(id, F) for id in (1, 2, 3, 5)]],
    "ends_above": [(3, 2)],
    "united": [(3, 3)],
    "ordered": [(5, 1, None), (4, 1, None), (2, 3, None), (3, 4, T), (1, 5, T)],
    "framed": [(2, 1, 1, 1), (5, 1, 1, 2), (3, 1, 1, 3), (4, 1, 1, 4), (1, 1, 1, 5)],
    "moved": [
        (1, *[T] * 13),
        (2, F, F, F, F, F, F, T, T, F, F, T, F, F),
        (3, F, F, F, T, F, T, F, F, T, T, F, T, T),
        *[(id, N, N, N, T, N, F, T, T, N, N, N, N, N) for id in (4, 5)],
    ],
    "moved_above": [
        (1, *[T] * 10),
        (2, F, F, F, F, F, F, T, F, F, T),
        (3, F, F, F, T, F, T, F, T, T, F),
        *[(id, N, N, N, T, N, F, T, N, N, T) for id in (4, 5)],
    ],
    "made": [
        (1, F, F, T, F, F, F, T, F, F, T, F),
        (2, F, F, T, F, F, F, T, F, F, T, F),
        (3, F, F, T, F, F, F, T, F, F, T, F),
        (4, T, T, T, T, T, T, F, T, T, T, T),
        (5, T, T, F, T, T, T, T, T, T, T, F),
    ],
    "made_above": [(n, F, F, T, F, T, F, F) for n in (1, 2, 3)] + [(4, T, T, T, T, F, T, T), (5, T, T, F, T, T, T, F)],
}


def test_a_computed_time_beyond_the_calendar_is_null_and_an_infinity_is_after_every_time(
    engines: Engines,
) -> None:
    wrong = wrong_rows(engines, TIMES, {"o": ORDERS, "l": VERSIONS}, OF_TIMES)
    assert wrong == {}, "\n\n".join(f"{name}: {rows}" for name, rows in wrong.items())


TEXTS = """
CREATE TABLE s (id INT, j STRING, h STRING, n INT, u STRING) USING kafka OPTIONS (topic 's', format 'json');
CREATE VIEW of_json AS SELECT get_json_object(j, '$.a') AS a, count(*) AS n FROM s GROUP BY get_json_object(j, '$.a');
CREATE VIEW extremes AS SELECT max(get_json_object(j, '$.a')) AS a, min(chr(n)) AS b, count(DISTINCT chr(n)) AS c,
  max(CAST(unhex(h) AS STRING)) AS d, count(DISTINCT CAST(unhex(h) AS STRING)) AS e, max(try_url_decode(u)) AS f,
  count(DISTINCT from_json(j, 'a STRING').a) AS g, max(from_json(j, 'MAP<STRING, STRING>')['a']) AS h FROM s;
CREATE VIEW compared AS SELECT id, get_json_object(j, '$.a') = 'x�' AS a, chr(n) = '�' AS b,
  CAST(unhex(h) AS STRING) = '�' AS c, try_url_decode(u) LIKE '�' AS d, length(CAST(unhex(h) AS STRING)) AS e,
  from_json(j, 'STRUCT<a: STRING>').a = 'x�' AS f, from_json(j, 'a STRING') AS g, chr(n) = '\\0' AS x,
  contains(get_json_object(j, '$'), chr(0)) AS y, octet_length(CAST(unhex(h) AS STRING)) AS z FROM s;
CREATE VIEW tuples AS SELECT a, count(*) AS n FROM s LATERAL VIEW json_tuple(j, 'a') t AS a GROUP BY a;
CREATE VIEW listed AS SELECT e, count(*) AS n FROM s LATERAL VIEW explode(array(chr(n), get_json_object(j, '$.a'))) t AS e
  GROUP BY e;
CREATE VIEW latest AS SELECT max_by(chr(n), id) AS a, last(get_json_object(j, '$.a')) AS b,
  sort_array(collect_set(chr(n))) AS c FROM s;
"""

OF_TEXTS: dict[str, list[Row]] = {
    "of_json": [("x�", 2), ("x", 1), (None, 1)],
    "extremes": [("x�", "A", 2, "�", 2, "�", 2, "x�")],
    "compared": [
        (1, T, T, T, T, 1, T, '{"a":"x�"}', T, F, 3),
        (2, T, T, T, T, 1, T, '{"a":"x�"}', T, T, 3),
        (3, F, F, F, F, 1, F, '{"a":"x"}', F, F, 1),
        (4, N, N, N, N, N, N, "{}", N, F, N),
    ],
    "tuples": [("x�", 2), ("x", 1), (None, 1)],
    "listed": [("�", 2), ("x�", 2), ("A", 1), ("x", 1), (None, 2)],
}


def test_a_text_that_postgres_cannot_hold_is_replaced_before_it_is_computed_with(engines: Engines) -> None:
    texts = [
        {"id": 1, "j": '{"a": "x\\u0000"}', "h": "00", "n": 0, "u": "%00"},
        {"id": 2, "j": '{"a": "x\\ufffd"}', "h": "ff", "n": 256, "u": "%ff"},
        {"id": 3, "j": '{"a": "x"}', "h": "41", "n": 65, "u": "A"},
        {"id": 4, "j": "{}"},
    ]
    wrong = wrong_rows(engines, TEXTS, {"s": [json.dumps(record).encode() for record in texts]}, OF_TEXTS)
    assert wrong == {}, "\n\n".join(f"{name}: {rows}" for name, rows in wrong.items())


SPANS = """
CREATE TABLE spans (device STRING, state STRING, t1 TIMESTAMP, t2 TIMESTAMP)
USING kafka OPTIONS (topic 'spans', format 'json');
CREATE VIEW per_hour AS SELECT hour, state, count(DISTINCT device) AS devices FROM (
    SELECT device, state, explode(sequence(date_trunc('hour', t1), date_trunc('hour', t2), INTERVAL 1 HOUR)) AS hour
    FROM (SELECT device, state, t1, t2 FROM spans GROUP BY device, state, t1, t2))
  GROUP BY hour, state;
"""


def test_a_span_that_ends_before_it_begins_has_no_hours(engines: Engines) -> None:
    day = "2024-01-02T"
    spans = [
        ("d1", "on", "2024-01-01T22:30:00Z", f"{day}01:10:00Z"),
        ("d2", "on", "2024-01-01T23:00:00Z", "2024-01-01T23:00:00Z"),
        ("d3", "on", f"{day}03:00:00Z", f"{day}00:00:00Z"),
        ("d4", "on", f"{day}00:59:59.999Z", None),
        ("d5", "off", f"{day}00:00:00Z", f"{day}02:00:00Z"),
        ("d6", "off", "0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z"),
    ]
    records = [json.dumps(dict(zip(("device", "state", "t1", "t2"), span, strict=True))).encode() for span in spans]
    hours = {"on": [("01-01 22", 1), ("01-01 23", 2), ("01-02 00", 1), ("01-02 01", 1)]}
    hours["off"] = [(f"01-02 0{hour}", 1) for hour in range(3)]
    right = [(f"2024-{hour}:00:00.000000", state, n) for state, some in hours.items() for hour, n in some]
    wrong = wrong_rows(engines, SPANS, {"spans": records}, {"per_hour": right})
    assert wrong == {}, wrong


SEQUENCES = """
CREATE TABLE ends (k STRING, a INT, b INT, x SMALLINT, y SMALLINT) USING kafka OPTIONS (topic 'ends', format 'json');
CREATE VIEW steps AS SELECT k, max(size(sequence(a, b, 1))) AS n FROM ends WHERE a >= 0 AND (b - a) * 5000 <= 1000
  GROUP BY k;
CREATE VIEW far AS SELECT k, max(size(sequence(a, b))) AS n FROM ends WHERE b - a BETWEEN -10 AND 10 GROUP BY k;
CREATE VIEW down AS SELECT k, max(size(sequence(b, a, -5))) AS n FROM ends WHERE (b - a) * 5000 <= 1000 GROUP BY k;
CREATE VIEW small AS SELECT k, max(size(sequence(x, y))) AS n FROM ends WHERE y - x <= 10 AND x - y <= 10 GROUP BY k;
"""


def test_a_sequence_whose_bounding_condition_overflows_has_the_same_elements_everywhere(
    engines: Engines,
) -> None:
    least, most = -(2**31), 2**31 - 1
    ends = {"near": (0, 0, 1, 3), "wraps": (0, 858_993, -(2**15), 2**15 - 1), "far": (least, most, 3, 1)}
    records = [json.dumps(dict(zip("kabxy", (k, *bounds), strict=True))).encode() for k, bounds in ends.items()]
    right: dict[str, list[Row]] = {
        "steps": [("near", 1), ("wraps", 858_994)],
        "far": [("near", 1), ("far", -1)],
        "down": [("near", 1), ("wraps", 171_799), ("far", -1)],
        "small": [("near", 3), ("wraps", 2**16), ("far", 3)],
    }
    wrong = wrong_rows(engines, SEQUENCES, {"ends": records}, right)
    assert wrong == {}, wrong
