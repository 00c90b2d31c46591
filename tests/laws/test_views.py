"""Whole views, micro-batch by micro-batch, against Spark's answer to the author's SELECT over all records."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache

from lamina.testing.fixtures import needed
from tests.laws.engines import Engines, difference, in_order, same
from tests.laws.views import SOURCE, VIEWS
from view_algebra import Catalog, compile_catalog

COMPILED = 16
"""Compiling takes four times as long as reading a plan. The laws of functions compile the code of each function."""


@cache
def catalog_of_all() -> Catalog:
    """All the views. Several tests read this value, and none changes it."""
    return compile_catalog({"views.sql": SOURCE + VIEWS})


def parted(catalog: Catalog, *, compiled: bool) -> Catalog:
    """One of COMPILED views, whose cells Spark computes by compiled code, or the others, whose plans it interprets."""
    views = [view for number, view in enumerate(in_order(catalog)) if (number % COMPILED == 0) is compiled]
    return replace(catalog, views={view.name: view for view in views})


def records(count: int, seed: int) -> list[bytes | None]:
    choose = random.Random(seed).choice
    generated: list[bytes | None] = [b"no JSON", None, b"[]"]
    for number in range(count):
        user = {"id": choose([1, 2, None])}
        values = {
            "event_id": f"e{number}",
            "user_id": choose([1, 2, 3, None, 2**62, -(2**63)]),
            "kind": choose(["show", "click", None, "x"]),
            "country": choose(["NL", "FR", "", None, "ü"]),
            "city": choose(["a", "B", "b"]),
            "amount": choose([1.25, -3.1, None, 99999999.99]),
            "price": choose([1.5, -0.0, 0.0, "NaN", None, 1e308, "Infinity"]),
            "ts": choose(
                [
                    "2024-01-01T10:20:30Z",
                    "2024-01-01T10:59:59.999999Z",
                    "1969-12-31T23:30:00Z",
                    "2024-03-10T02:30:00-05:00",
                    None,
                ]
            ),
            "payload": choose([None, {}, {"user": user}, {"user": user, "tags": ["a", None]}]),
        }
        generated.append(json.dumps(values).encode())
    return generated


def test_a_view_equals_its_select_however_its_records_arrive(engines: Engines) -> None:
    catalog = catalog_of_all()
    values = records(240, seed=4)
    first, second = values[:120], values[120:]
    engines.deploy(catalog)
    engines.feed(parted(catalog, compiled=True), {"events": [first]})
    interpreting = replace(engines, compiling=False)
    interpreting.feed(parted(catalog, compiled=False), {"events": [first]})
    interpreting.feed(catalog, {"events": [second]}, offset=len(first))
    engines.oracle(catalog, {"events": [values]})
    for view, expected in engines.all_expected(catalog):
        assert [c.spark.replace(" ", "").replace("`", "").upper() for c in view.columns] == [
            "STRING" if kind == "VOID" else kind.replace(" ", "")  # a table's column never has this type
            for kind in engines.types_of(view)
        ], view.select
        actual = engines.actual(view)
        assert same(expected, actual, 1e-13 if view.rounded else 0), difference(view, expected, actual)


def test_a_column_without_an_alias_has_sparks_name(engines: Engines) -> None:
    few = "COUNT(*), sum(amount), count(DISTINCT kind), Avg(PRICE), Year(TS), to_date(ts), upper(country), day(ts)"
    more = (
        "mean count_if stddev std variance var_pop first last first_value any_value median mode every bool_or"
        " collect_list collect_set approx_count_distinct"
    )
    of_truth = {"count_if", "every", "bool_or"}
    calls = [f"{name}({'known' if name in of_truth else 'price'})" for name in more.split() if name != "collect_set"]
    fields = "quarter(ts), month(ts), dayofweek(ts), hour(ts), length(country)"
    computed = (
        "bool_and(price > 1), count(*) + 1, sum(amount * 2 - -1), min(-price), round(avg(price)), max(e.price), "
        "minute((ts)), count(1) > 2 AND NOT known, sum(price) FILTER (WHERE kind <> 'a b'), percentile(price, "
        "0.5), array_agg(amount), if(known, 1, 2), max_by(kind, price), count(kind, country), country || 'x', "
        "CAST(ts AS DATE), max(CAST(price AS INT)), CASE WHEN country IS NULL THEN 'none' ELSE country END, "
        "country IN ('NL', 'FR'), CASE country WHEN 'NL' THEN 1 END, country LIKE 'N', country IS NOT NULL, "
        "floor(max(price)), max(tags[0]), max(payload.tags[1]), split(country, ','), country IS DISTINCT FROM "
        "'NL', max(price) BETWEEN 1 AND 2, 7, true, substring(country, 1, 2), coalesce(country, '')"
    )
    select = (
        f"SELECT country, {few}, {fields}, {', '.join(calls)}, collect_set(kind), {computed}"
        " FROM (SELECT *, kind IS NULL AS known, payload.tags AS tags FROM events) e GROUP BY country, ts, known"
    )
    catalog = compile_catalog({"views.sql": f"{SOURCE}CREATE VIEW unnamed AS {select};"})
    engines.oracle(catalog, {})
    assert engines.spark.sql(select).columns == [column.name for column in catalog.views["unnamed"].columns]


def test_views_over_no_records_equal_their_selects(engines: Engines) -> None:
    """Some views show a row even over no records. The others are empty on both sides."""
    catalog = catalog_of_all()
    engines.deploy(catalog)
    chosen = [view for number, view in enumerate(in_order(catalog)) if number % 40 == 0 or engines.actual(view)]
    engines.oracle(needed(catalog, [view.name for view in chosen]), {})
    for view, expected in engines.expected_of(chosen):
        actual = engines.actual(view)
        assert same(expected, actual, 1e-13 if view.rounded else 0), difference(view, expected, actual)


BEYOND_ALL = (
    SOURCE
    + """
CREATE VIEW times_beyond_all AS
SELECT
  event_id, CAST(user_id AS TIMESTAMP) + INTERVAL 7 DAYS > ts AS a,
  date_add(CAST(ts AS DATE), CAST(user_id AS INT)) > ts AS b,
  timestamp_micros(user_id) - INTERVAL 1 MONTH < ts AS c, add_months(CAST(ts AS DATE), CAST(user_id AS INT)) AS d
FROM events
WHERE (CAST(user_id AS TIMESTAMP) + INTERVAL 7 DAYS > ts) IS NOT false;

CREATE VIEW gaps_beyond_all AS
SELECT session_window.start AS begun, count(*) AS n FROM events GROUP BY session_window(ts, kind);

CREATE VIEW read_beyond_all AS
SELECT
  to_timestamp(country, 'yyyy-MM-dd') AS a, to_date(country, 'yyyy-MM-dd') AS b,
  unix_timestamp(country, 'yyyy-MM-dd') AS c,
  to_unix_timestamp(country, 'yyyy-MM-dd') AS d, unix_timestamp(concat(country, ' 00:00:00')) AS e, count(*) AS n
FROM events
GROUP BY ALL;
"""
)


def test_a_time_that_spark_cannot_compute_stops_no_stream(engines: Engines) -> None:
    """Spark's own SELECT raises an error. Here, the record's time is NULL."""
    catalog = compile_catalog({"views.sql": BEYOND_ALL})
    values = [
        b'{"event_id": "%d", "user_id": %d, "kind": "300000 years", "ts": "2024-01-01T00:00:00Z",'
        b' "country": "+294248-01-01"}' % (n, n)
        for n in NUMBERS
    ]
    engines.deploy(catalog)
    engines.feed(catalog, {"events": [values]})
    rows = engines.actual(catalog.views["times_beyond_all"])
    assert (str(2**62), None) in {row[:2] for row in rows}
    assert engines.actual(catalog.views["gaps_beyond_all"]) == []
    assert engines.actual(catalog.views["read_beyond_all"]) == [(None, None, None, None, None, len(NUMBERS))]


NUMBERS = (1, 10**10, 2**31 - 1, -(2**31), 2**62, -(2**63))
"""Numbers of seconds, microseconds and days."""


def test_ilike_and_upper_know_the_letters_of_every_language(engines: Engines) -> None:
    """Dashboards filter by ILIKE. Texts are sorted by bytes, and the index of a key is used."""
    views = """
        CREATE VIEW cities AS SELECT city, count(*) AS n FROM events GROUP BY city;
        CREATE VIEW made AS SELECT concat(city, '!') AS city, 'É' AS letter, payload.tags[0] AS tag FROM events;
    """
    catalog = compile_catalog({"views.sql": SOURCE + views})
    names = ("Évora", "évian", "Zürich", "aachen", "straße")
    generated = [
        f'{{"event_id": "{n}", "city": "{city}", "payload": {{"tags": ["É"]}}}}'.encode()
        for n, city in enumerate(names)
    ]
    engines.deploy(catalog)
    engines.feed(catalog, {"events": [generated]})
    with engines.connection.cursor() as cursor:

        def rows(select: str) -> list[str]:
            cursor.execute(select)
            return [str(value) for (value,) in cursor.fetchall()]

        assert rows("SELECT city FROM analytics.cities WHERE city ILIKE 'é%' ORDER BY city") == ["Évora", "évian"]
        assert rows("SELECT city FROM analytics.made WHERE city ILIKE '%ÜRICH!'") == ["Zürich!"]
        assert rows("SELECT DISTINCT lower(letter) || lower(tag) FROM analytics.made") == ["éé"]
        assert rows("SELECT upper(city) FROM analytics.cities WHERE city > 't' ORDER BY city") == ["ÉVORA", "ÉVIAN"]
        assert rows("SELECT city FROM analytics.cities ORDER BY 1") == sorted(names, key=str.encode)
        cursor.execute("SET enable_seqscan = off")
        assert any("Index" in line for line in rows("EXPLAIN SELECT * FROM analytics.cities WHERE city = 'Évora'"))
        cursor.execute("RESET enable_seqscan")
