"""Averages of decimals equal Spark's to the last digit, including those that Spark computes as doubles."""

from __future__ import annotations

import json
from functools import cache

from tests.laws.engines import Engines, Record
from view_algebra import Catalog, compile_catalog


@cache
def catalog() -> Catalog:
    """Averages of decimals, wherever a view can have one."""
    return compile_catalog(
        {
            "averages.sql": """
CREATE TABLE orders (id INT, country STRING, amount DECIMAL(10,2), ts TIMESTAMP)
USING kafka OPTIONS (topic 'orders', format 'json');
CREATE TABLE countries (country STRING PRIMARY KEY, region STRING)
USING kafka OPTIONS (topic 'countries', format 'json', key_format 'json');
CREATE VIEW plain AS
SELECT country, avg(amount) AS a, avg(amount) FILTER (WHERE id > 0) AS f FROM orders GROUP BY country;
CREATE VIEW wider AS SELECT country, avg(CAST(amount AS DECIMAL(12,2))) AS a FROM orders GROUP BY country;
CREATE VIEW narrower AS SELECT avg(CAST(amount AS DECIMAL(11,3))) AS a, avg(DISTINCT amount) AS d FROM orders;
CREATE VIEW paired AS SELECT regr_avgx(id, amount) AS x, regr_avgy(amount, id) AS y FROM orders;
CREATE VIEW joined AS
SELECT region, avg(amount) AS a FROM orders JOIN countries USING (country) GROUP BY region;
CREATE VIEW above AS SELECT avg(m) AS a FROM (SELECT id, max(amount) AS m FROM orders GROUP BY id);
CREATE VIEW next_to AS SELECT id, avg(amount) OVER (PARTITION BY country) AS a FROM orders;
"""
        }
    )


def test_an_average_equals_sparks_to_the_last_digit(engines: Engines) -> None:
    # 745.49 / 160 is 4.6593125; Spark divides 46593.125 by 10^4 as doubles and has 4.6593124999999995
    amounts = ["4.66"] * 159 + ["4.55"]
    orders: list[Record] = [
        json.dumps({"id": n, "country": "NL", "amount": amount, "ts": "2026-01-01T00:00:00Z"}).encode()
        for n, amount in enumerate(amounts)
    ]
    countries: list[Record] = [(b'{"country": "NL"}', b'{"region": "EU"}')]
    batches: dict[str, list[list[Record]]] = {"orders": [orders[:70], orders[70:]], "countries": [countries]}
    assert engines.differing(catalog(), batches) == {}
    with engines.connection.cursor() as cursor:
        cursor.execute("SELECT a::text FROM analytics.plain")
        assert cursor.fetchone() == ("4.659312",)
