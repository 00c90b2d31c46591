"""The SQL that an error prints compiles, unchanged, in place of the refused SQL."""

# ruff: noqa: E501 — a SELECT stands on one line

from __future__ import annotations

import re

import pytest

from tests.algebra.refused import BASE
from view_algebra import Catalog, Refused, compile_catalog

WHOLE = "the whole SELECT"

WAYS_OUT = {
    "distinct users of seven days": (
        "SELECT DISTINCT day, count(DISTINCT user_id) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS users FROM events",
        WHOLE,
    ),
    "distinct values so far, of each partition": (
        "SELECT country, ts, count(DISTINCT user_id) OVER (PARTITION BY country ORDER BY ts DESC) AS users FROM events WHERE price > 0",
        WHOLE,
    ),
    "distinct values of a partition": (
        "SELECT country, sum(DISTINCT amount) OVER (PARTITION BY country) AS s FROM events",
        WHOLE,
    ),
    "distinct values of all rows": ("SELECT avg(DISTINCT price) OVER () AS a FROM events", WHOLE),
    "distinct values of some rows": (
        "SELECT user_id, avg(DISTINCT amount) OVER (PARTITION BY user_id ORDER BY ts, kind ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS a FROM events",
        WHOLE,
    ),
    "distinct values before a row, downwards": (
        "SELECT n, count(DISTINCT country) OVER (ORDER BY n DESC RANGE BETWEEN 5 PRECEDING AND 1 PRECEDING) AS c FROM hourly",
        WHOLE,
    ),
    "distinct values next to a CTE": (
        "WITH h AS (SELECT country, hour FROM hourly) SELECT hour, count(DISTINCT country) OVER (ORDER BY date_trunc('day', hour)) AS c FROM h",
        WHOLE,
    ),
    "a list of distinct values": (
        "SELECT country, collect_list(DISTINCT kind) OVER (PARTITION BY country) AS k FROM events",
        WHOLE,
    ),
    "the greatest distinct value": (
        "SELECT country, max(DISTINCT amount) OVER (PARTITION BY country) AS m FROM events",
        "max(DISTINCT amount) OVER (PARTITION BY country)",
    ),
    "a time of day, of a text": ("SELECT CAST(kind AS TIME) AS t FROM events", "CAST(kind AS TIME)"),
    "a time of day, of a time": ("SELECT CAST(ts AS TIME(6)) AS t FROM events", "CAST(ts AS TIME(6))"),
    "a weekday before a time": (
        "SELECT to_timestamp(kind, 'EEE, dd MMM yyyy HH:mm:ss Z') AS t FROM events",
        "to_timestamp(kind, 'EEE, dd MMM yyyy HH:mm:ss Z')",
    ),
    "a pattern of times that a record decides": (
        "SELECT to_date(kind, country) AS d FROM events",
        "to_date(kind, country)",
    ),
    "a unit of time that a record decides": (
        "SELECT date_trunc(kind, ts) AS t FROM events",
        "date_trunc(kind, ts)",
    ),
    "a regular expression that a record decides": (
        "SELECT regexp_replace(kind, country, '-') AS t FROM events",
        "regexp_replace(kind, country, '-')",
    ),
    "a sequence of times that nothing bounds": (
        "SELECT event_id, explode(sequence(date_trunc('hour', ts), date_trunc('hour', kafka_timestamp), INTERVAL 1 HOUR)) AS h FROM events",
        "sequence(date_trunc('hour', ts), date_trunc('hour', kafka_timestamp), INTERVAL 1 HOUR)",
    ),
    "a sequence of numbers that nothing bounds": (
        "SELECT event_id, n FROM events LATERAL VIEW explode(sequence(kafka_offset, user_id)) t AS n",
        "sequence(kafka_offset, user_id)",
    ),
    "a sequence downwards that nothing bounds": (
        "SELECT event_id, sequence(user_id, kafka_offset, -5) AS n FROM events",
        "sequence(user_id, kafka_offset, -5)",
    ),
    "a sequence that a condition bounds too little": (
        "SELECT event_id, sequence(ts, kafka_timestamp, INTERVAL 10 SECONDS) AS n FROM events WHERE kafka_timestamp - ts < INTERVAL 900 DAYS",
        "sequence(ts, kafka_timestamp, INTERVAL 10 SECONDS)",
    ),
    "LATERAL VIEW before a JOIN, its column in ON": (
        "SELECT e.event_id, u.name FROM events e LATERAL VIEW explode(e.tags) t AS tag JOIN users u ON u.name = tag",
        "LATERAL VIEW explode(e.tags) t AS tag",
    ),
    "one row of each key": (
        "SELECT DISTINCT ON (user_id, kind) user_id, kind, amount FROM events WHERE price > 0 ORDER BY user_id, kind, ts DESC",
        WHOLE,
    ),
    "an arrow into JSON": ("SELECT kind -> 'user' ->> 'id' AS u FROM events", "kind -> 'user' ->> 'id'"),
    "a path into JSON": ("SELECT kind #>> '{user,id}' AS u FROM events", "kind #>> '{user,id}'"),
    "UNNEST": ("SELECT tag FROM events e CROSS JOIN UNNEST(e.tags) AS t(tag)", "CROSS JOIN UNNEST(e.tags) AS t(tag)"),
    "UNNEST after a comma": ("SELECT tag FROM events, UNNEST(tags) AS tag", ", UNNEST(tags) AS tag"),
    "UNNEST of structs": (
        "SELECT a FROM (SELECT array(struct(kind, amount)) AS x FROM events) CROSS JOIN UNNEST(x) AS t(k, a)",
        "CROSS JOIN UNNEST(x) AS t(k, a)",
    ),
    "UNNEST that keeps records without elements": (
        "SELECT event_id, tag FROM events LEFT JOIN UNNEST(tags) AS t(tag) ON true",
        "LEFT JOIN UNNEST(tags) AS t(tag) ON true",
    ),
    "UNNEST WITH ORDINALITY": (
        "SELECT i, tag FROM events CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t(tag, i)",
        "CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t(tag, i)",
    ),
    "FILTER before OVER": (
        "SELECT country, count(*) FILTER (WHERE kind = 'x') OVER (PARTITION BY country) AS n FROM events",
        "count(*) FILTER (WHERE kind = 'x') OVER (PARTITION BY country)",
    ),
    "* REPLACE": (
        "SELECT e.* REPLACE (upper(kind) AS kind) FROM events e",
        "e.* REPLACE (upper(kind) AS kind)",
    ),
    "an output in WHERE": ("SELECT amount * 2 AS twice FROM events WHERE Twice > 5", "Twice"),
    "decimals that a fold makes longer": (
        "SELECT aggregate(array(amount), 0, (a, x) -> a + x * amount) AS s FROM events",
        "aggregate(array(amount), 0, (a, x) -> a + x * amount)",
    ),
    "a number in the place of a fraction of decimals": (
        "SELECT aggregate(array(amount), CAST(0 AS DECIMAL(20, 2)), (a, x) -> a + x, a -> a / 2) AS s FROM events",
        "aggregate(array(amount), CAST(0 AS DECIMAL(20, 2)), (a, x) -> a + x, a -> a / 2)",
    ),
    "an INTERVAL as an argument": (
        "SELECT date_sub(d, INTERVAL 7 DAYS) AS w FROM (SELECT day AS d FROM events)",
        "date_sub(d, INTERVAL 7 DAYS)",
    ),
    "a unit of another system's function": (
        "SELECT timestamp_trunc(ts, DAY) AS d, count(*) AS n FROM events GROUP BY 1",
        "timestamp_trunc(ts, DAY)",
    ),
    "ISO's year": ("SELECT EXTRACT(ISOYEAR FROM ts) AS y FROM events", "EXTRACT(ISOYEAR FROM ts)"),
    "the clock of another system": ("SELECT count(*) AS n FROM events WHERE ts > mz_now()", "mz_now()"),
    "a number of units": (
        "SELECT dateadd(MINUTE, n, ts) AS t FROM (SELECT ts, CAST(user_id AS INT) AS n FROM events)",
        "dateadd(MINUTE, n, ts)",
    ),
    "a number of months": (
        "SELECT dateadd(QUARTER, n, ts) AS t FROM (SELECT ts, CAST(user_id AS INT) AS n FROM events)",
        "dateadd(QUARTER, n, ts)",
    ),
    "a field of the last JSON": (
        "SELECT user_id, get_json_object(last(kind), '$.a') AS a FROM events GROUP BY user_id",
        "get_json_object(last(kind), '$.a')",
    ),
    "a field of the JSON at the greatest time": (
        "SELECT user_id, from_json(max_by(kind, ts), 'a INT').a AS a FROM events GROUP BY user_id",
        "from_json(max_by(kind, ts), 'a INT')",
    ),
    "a date in the greatest text": (
        "SELECT user_id, to_date(max(kind), 'dd.MM.yyyy') AS a FROM events GROUP BY user_id",
        "to_date(max(kind), 'dd.MM.yyyy')",
    ),
    "a cast of the least text": (
        "SELECT user_id, CAST(min(kind) AS TIMESTAMP) AS a FROM events GROUP BY user_id",
        "CAST(min(kind) AS TIMESTAMP)",
    ),
    "a field of the JSON before": (
        "SELECT event_id, get_json_object(lag(kind) OVER (PARTITION BY user_id ORDER BY ts), '$.a') AS a FROM events",
        "get_json_object(lag(kind) OVER (PARTITION BY user_id ORDER BY ts), '$.a')",
    ),
    "a number of digits that a record decides": (
        "SELECT round(amount, CAST(user_id AS INT)) AS r FROM events",
        "round(amount, CAST(user_id AS INT))",
    ),
    "LATERAL VIEW OUTER before a JOIN": (
        "SELECT e.event_id, pos, u.name FROM events e LATERAL VIEW OUTER posexplode(e.tags) t AS pos, tag LEFT JOIN users u ON u.user_id = e.user_id",
        "LATERAL VIEW OUTER posexplode(e.tags) t AS pos, tag",
    ),
}
"""Refused SELECTs, and the part of each that the printed SQL replaces."""


def compiled(select: str) -> Catalog:
    return compile_catalog({"base.sql": BASE, "v.sql": f"CREATE VIEW v AS {select};"})


def printed(select: str) -> str:
    """The SQL in the error for a SELECT, without the remarks that follow it."""
    with pytest.raises(Refused) as caught:
        compiled(select)
    match = re.search(
        r"\n\nWrite (.*?)(?:\. [A-Z].*|, (?:with a WHEN|which counts|or) .*| in its place\.|\.)$",
        str(caught.value),
        re.DOTALL,
    )
    assert match is not None, str(caught.value)
    return match[1]


@pytest.mark.parametrize(("select", "part"), WAYS_OUT.values(), ids=WAYS_OUT)
def test_the_printed_way_out_compiles_as_it_stands(select: str, part: str) -> None:
    written = printed(select) if part == WHOLE else select.replace(part, f" {printed(select)}")
    assert "v" in compiled(written).views


@pytest.mark.parametrize(
    "call", ["listagg(DISTINCT kind)", "max_by(DISTINCT kind, ts)", "mode(DISTINCT kind)", "median(DISTINCT price)"]
)
def test_a_way_out_prints_no_select_that_is_refused(call: str) -> None:
    with pytest.raises(Refused, match="Group DISTINCT rows in a subquery in FROM, and join its groups"):
        compiled(f"SELECT country, {call} OVER () AS x FROM events")


BOUNDED = (
    "WHERE kafka_timestamp - ts < INTERVAL 31 DAYS",
    "WHERE kafka_timestamp BETWEEN ts AND ts + INTERVAL 31 DAYS AND kind = 'x'",
    "WHERE ts >= kafka_timestamp - INTERVAL 31 DAYS",
    "WHERE timestampdiff(HOUR, ts, kafka_timestamp) <= 100",
    "WHERE datediff(kafka_timestamp, ts) <= 100",
    "WHERE CAST(kafka_timestamp AS DATE) - CAST(ts AS DATE) < INTERVAL 3 DAYS",
    "WHERE unix_timestamp(kafka_timestamp) - unix_timestamp(ts) < 86400",
    "WHERE kafka_timestamp < ts + INTERVAL 900 DAYS AND kafka_timestamp < ts + INTERVAL 9 DAYS",
)
UNBOUNDED = (
    "WHERE ts - kafka_timestamp < INTERVAL 31 DAYS",
    "WHERE kafka_timestamp - ts > INTERVAL 31 DAYS",
    "WHERE kafka_timestamp - ts < INTERVAL 31 DAYS OR kind = 'x'",
    "WHERE NOT (kafka_timestamp - ts < INTERVAL 31 DAYS)",
    "WHERE kafka_timestamp <> ts",
    "WHERE kafka_timestamp < ts + INTERVAL 900 DAYS",
)


@pytest.mark.parametrize("where", [*BOUNDED, *UNBOUNDED])
def test_a_sequence_of_a_record_is_served_where_a_condition_bounds_it(where: str) -> None:
    hours = "sequence(date_trunc('hour', ts), date_trunc('hour', kafka_timestamp), INTERVAL 1 HOUR)"
    select = f"SELECT event_id, explode({hours}) AS h FROM events {where}"
    if where in BOUNDED:
        assert "INTERVAL '3600' SECOND" in compiled(select).views["v"].cell_tables[0].partial
    else:
        assert printed(select).startswith("CASE WHEN")
