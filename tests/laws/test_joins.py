"""Joins of records with each other and with tables equal Spark's answer, whichever side came first."""

# ruff: noqa: E501 — a SELECT stands on one line

from __future__ import annotations

import json
import random
from functools import cache

from tests.laws.engines import Engines, Record, Row
from view_algebra import Catalog, compile_catalog

SOURCES = """
CREATE TABLE clicks (user_id BIGINT, page STRUCT<url: STRING, tags: ARRAY<STRING>>, price DECIMAL(8,2), n INT, ts TIMESTAMP)
USING kafka OPTIONS (topic 'clicks', format 'json') TBLPROPERTIES ('event_time' = 'ts');
CREATE TABLE orders (id BIGINT, user_id BIGINT, item STRING, amount DECIMAL(8,2), n INT, ts TIMESTAMP)
USING kafka OPTIONS (topic 'orders', format 'json');
CREATE TABLE users (id BIGINT PRIMARY KEY, name STRING, country STRING, boss BIGINT, score DOUBLE)
USING kafka OPTIONS (topic 'users', format 'json', key_format 'json');
CREATE TABLE rates (item STRING PRIMARY KEY, rate DECIMAL(6,2), since TIMESTAMP)
USING kafka OPTIONS (topic 'rates', format 'json', key_format 'string') TBLPROPERTIES ('event_time' = 'since');
CREATE VIEW spent AS SELECT user_id, sum(amount) AS total FROM orders GROUP BY user_id;
CREATE VIEW placed AS SELECT c.user_id, c.n, u.country FROM clicks c LEFT JOIN users u ON u.id = c.user_id;
CREATE VIEW bought AS SELECT user_id, item, n FROM orders WHERE n > 0;
"""

VIEWS = {
    "stream and table": "SELECT c.user_id, u.name, c.price FROM clicks c JOIN users u ON u.id = c.user_id",
    "left": "SELECT c.user_id, u.name, c.price FROM clicks c LEFT JOIN users u ON u.id = c.user_id AND u.score > 1",
    "right": "SELECT c.page.url AS url, u.name FROM clicks c RIGHT JOIN users u ON u.id = c.user_id AND c.n > 1",
    "full": "SELECT c.n, o.n AS m FROM clicks c FULL JOIN orders o ON c.user_id = o.user_id AND c.n = o.n",
    "counted": "SELECT u.country, count(*) AS n, sum(c.price) AS s, min(c.ts) AS t FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY u.country",
    "counted, left": "SELECT u.country, count(*) AS n, count(u.id) AS m, avg(c.n) AS a FROM clicks c LEFT JOIN users u ON u.id = c.user_id GROUP BY u.country",
    "two streams": "SELECT c.user_id, count(*) AS n, sum(c.n * o.n) AS p FROM clicks c JOIN orders o ON c.user_id = o.user_id GROUP BY c.user_id",
    "in an hour": "SELECT o.id, max(c.ts) AS last FROM orders o LEFT JOIN clicks c ON c.user_id = o.user_id AND c.ts BETWEEN o.ts - INTERVAL 1 HOUR AND o.ts GROUP BY o.id",
    "windows": "SELECT window(c.ts, '1 hour').start AS h, u.country, count(DISTINCT c.user_id) AS n FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY window(c.ts, '1 hour'), u.country",
    "hopping windows": "SELECT window(c.ts, '2 hours', '1 hour').start AS h, u.country, sum(c.n) AS n FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY window(c.ts, '2 hours', '1 hour'), u.country",
    "the same window": "SELECT c.h, c.user_id, c.n, o.item FROM (SELECT window(ts, '1 hour').start AS h, user_id, n FROM clicks) c JOIN (SELECT window(ts, '1 hour').start AS h, user_id, item FROM orders) o ON c.h = o.h AND c.user_id = o.user_id",
    "a full join on more": "SELECT c.user_id, c.n, o.user_id AS of, o.n AS m FROM clicks c FULL JOIN orders o ON c.user_id = o.user_id AND c.n > o.n",
    "left, on conditions of one side": "SELECT c.n, o.item, o.n AS m FROM clicks c LEFT JOIN orders o ON c.user_id = o.user_id AND c.n > 1 AND o.n > 1",
    "what may be missing": "SELECT c.n, coalesce(o.item, '?') AS item, coalesce(o.n + 1, 0) AS m FROM clicks c LEFT JOIN orders o ON c.user_id = o.user_id AND c.n = o.n",
    "computed of groups": "SELECT u.country, window(c.ts, '1 hour') AS w, date_trunc('day', c.ts) + INTERVAL 1 DAY AS until, count(*) AS n FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY u.country, window(c.ts, '1 hour'), date_trunc('day', c.ts)",
    "totals": "SELECT u.country, c.n, count(*) AS k, sum(c.price) AS s FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY ROLLUP (u.country, c.n)",
    "filtered": "SELECT u.country, count(*) FILTER (WHERE c.n > 1) AS some, avg(c.price) AS a, max(struct(c.n, c.price)) AS m FROM clicks c LEFT JOIN users u ON u.id = c.user_id GROUP BY u.country",
    "of both": "SELECT count(*) AS n FROM orders o JOIN users u ON u.id = o.user_id WHERE o.user_id IN (SELECT user_id FROM clicks) AND (o.n > 1 OR u.score > 1)",
    "a self-join": "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.user_id = b.user_id AND a.item <> b.item",
    "bosses": "SELECT u.name, b.name AS boss FROM users u LEFT JOIN users b ON b.id = u.boss",
    "three": "SELECT u.country, o.item, count(*) AS n FROM clicks c JOIN users u ON u.id = c.user_id JOIN orders o ON o.user_id = u.id WHERE c.n < o.n GROUP BY u.country, o.item",
    "semi": "SELECT c.user_id, c.n FROM clicks c LEFT SEMI JOIN orders o ON o.user_id = c.user_id AND o.n > 1",
    "anti": "SELECT c.user_id, c.n FROM clicks c LEFT ANTI JOIN users u ON u.id = c.user_id",
    "using": "SELECT user_id, c.n, o.item FROM clicks c FULL JOIN orders o USING (user_id)",
    "natural": "SELECT * FROM (SELECT user_id, n FROM clicks) c NATURAL JOIN (SELECT user_id, item FROM orders) o",
    "natural, of streams": "SELECT * FROM clicks NATURAL JOIN orders",
    "times of one side": "SELECT c.user_id, to_date(o.item) AS d, timestamp_millis(o.n) AS t, timestamp_micros(c.n) AS m FROM clicks c JOIN orders o ON c.user_id = o.user_id",
    "by a time of one side": "SELECT date_trunc('hour', timestamp_seconds(o.n * 2000)) AS h, u.country, count(*) AS n, max(timestamp_millis(c.n)) AS m FROM clicks c JOIN orders o ON c.user_id = o.user_id JOIN users u ON u.id = o.user_id GROUP BY date_trunc('hour', timestamp_seconds(o.n * 2000)), u.country",
    "of the rows of a table": "SELECT c.n, initcap(u.name) AS name, hash(u.id) AS h, timestamp_millis(u.id) AS t FROM clicks c JOIN users u ON u.id = c.user_id AND md5(u.name) <> 'x'",
    "of what may be missing": "SELECT o.id, initcap(u.name) AS name, to_date(concat('2024-01-0', u.id)) AS d, coalesce(u.country, md5(o.item)) AS c, coalesce(initcap(u.name), '?') AS q FROM orders o LEFT JOIN users u ON u.id = o.user_id",
    "through a view of records": "SELECT v.user_id, initcap(v.item) AS item, hash(v.n) AS h, to_date(v.item) AS d FROM bought v",
    "other names": "SELECT a.u, b.i, count(*) AS k FROM clicks AS a(u, p, price, m, t) JOIN orders AS b(id, u, i, amount, n, t) ON a.u = b.u AND a.m > 1 GROUP BY a.u, b.i",
    "comma": "SELECT o.item, u.name FROM orders o, users u WHERE o.user_id = u.id AND upper(o.item) = 'A'",
    "a view": "SELECT c.n, s.total FROM clicks c JOIN spent s ON s.user_id = c.user_id",
    "comma, in any order": "SELECT c.n, o.item, u.name FROM clicks c, bought o, orders p, users u WHERE c.user_id = p.user_id AND p.item = o.item AND u.id = c.user_id AND o.n > p.n",
    "one equality in each case": "SELECT c.user_id, count(*) AS n FROM clicks c JOIN orders o ON (c.user_id = o.user_id AND c.n = 1) OR (o.user_id = c.user_id AND c.user_id = o.user_id AND o.n > 1) GROUP BY c.user_id",
    "fewer than a join of others has": "SELECT user_id, count(*) AS k FROM clicks c WHERE n < (SELECT max(o.n) FROM orders o JOIN users u ON u.id = o.user_id WHERE o.user_id = c.user_id) GROUP BY user_id",
    "null-safe": "SELECT c.n, o.id FROM clicks c JOIN orders o ON c.user_id <=> o.user_id",
    "a mapping, then a table": "SELECT o.id, s.label, u.name FROM orders o JOIN (VALUES ('a', 'first'), ('B', 'second')) AS s(item, label) ON s.item = o.item JOIN users u ON u.id = o.user_id",
    "a mapping, counted next to a table": "SELECT s.label, count(*) AS n, sum(o.amount) AS a FROM orders o JOIN (VALUES ('a', 'first'), ('B', 'second')) AS s(item, label) ON s.item = o.item JOIN users u ON u.id = o.user_id GROUP BY s.label",
    "a lambda over two sides": "SELECT c.n, filter(c.page.tags, t -> t <> lower(o.item)) AS tags FROM clicks c JOIN orders o ON c.user_id = o.user_id",
    "a lambda in ON": "SELECT r.item, count(*) AS n, sum(c.n) AS s FROM clicks c JOIN rates r ON exists(c.page.tags, t -> t = r.item) GROUP BY r.item",
    "a lambda in a semi-join": "SELECT c.user_id, c.n FROM clicks c LEFT SEMI JOIN rates r ON exists(c.page.tags, t -> t = r.item)",
    "EXISTS over a list": "SELECT u.id FROM users u WHERE EXISTS (SELECT 1 FROM clicks c WHERE array_contains(c.page.tags, lower(left(u.name, 1))))",
    "a generator over cells": "SELECT u.country, e.day, count(*) AS k FROM orders o JOIN users u ON u.id = o.user_id LATERAL VIEW explode(sequence(to_date(o.ts), date_add(to_date(o.ts), 1))) e AS day GROUP BY u.country, e.day",
    "words in cells": "SELECT u.country, w.name AS word, count(*) AS k, sum(o.n) AS s FROM orders o JOIN users u ON u.id = o.user_id LATERAL VIEW explode(split(concat(o.item, ' ', o.item), ' ')) w AS name GROUP BY u.country, w.name",
    "tables under other names": "SELECT u.i, to_date(u.n) AS d, upper(u.c) AS c, md5(u.n) AS h FROM users AS u(i, n, c, b, s)",
    "tables under names in another order": "SELECT u.id, md5(u.country) AS h, u.name FROM users AS u(id, country, name, boss, score)",
    "a subquery of groups about a row": "SELECT o.id FROM orders o WHERE EXISTS (SELECT c.user_id FROM clicks c WHERE c.user_id = o.user_id GROUP BY c.user_id HAVING sum(c.n) >= o.n)",
    "hops of a column that is called start": "SELECT u.country, window(c.start, '2 hours', '1 hour').end AS e, max(c.start) AS m FROM (SELECT user_id, ts AS start FROM clicks) c JOIN users u ON u.id = c.user_id GROUP BY u.country, window(c.start, '2 hours', '1 hour')",
    "event order of a CTE with column names": "WITH o(u, i) AS (SELECT user_id, item FROM orders) SELECT u, last(i) AS l, collect_list(i) AS all_of FROM o GROUP BY u",
    "event order under other names": "SELECT b.u, last(b.i) AS l, first(b.m) AS f FROM orders AS b(id, u, i, amount, m, t) GROUP BY b.u",
    "event order of a subquery with column names": "SELECT o.u, last(o.i) AS l FROM (SELECT user_id, lower(item) FROM orders WHERE n > 0) AS o(u, i) GROUP BY o.u",
    "a small side": "SELECT c.n, v.name FROM clicks c CROSS JOIN (VALUES ('x'), ('y')) AS v(name) WHERE c.n > 2",
    "expressions": "SELECT lower(u.name) AS name, date_trunc('day', c.ts) AS day, sum(CASE WHEN c.page.url LIKE '%a%' THEN 1 ELSE 0 END) AS n FROM clicks c JOIN users u ON u.id = c.user_id + 0 GROUP BY lower(u.name), date_trunc('day', c.ts)",
    "in a CTE": "WITH j AS (SELECT c.n, u.country FROM clicks c JOIN users u ON u.id = c.user_id) SELECT country, count(*) AS k, max(n) AS m FROM j GROUP BY country",
    "several values": "SELECT u.country, collect_set(c.n) AS s, percentile(c.n, 0.5) AS p, mode() WITHIN GROUP (ORDER BY c.n) AS m, stddev_pop(c.n) AS d FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY u.country",
    "no groups": "SELECT count(*) AS n, sum(o.amount) AS s FROM orders o JOIN users u ON u.id = o.user_id WHERE u.country = 'DE'",
    "having": "SELECT u.country, count(*) AS n FROM orders o JOIN users u ON u.id = o.user_id GROUP BY u.country HAVING count(*) > 2",
    "exploded": "SELECT t.tag, u.country, count(*) AS n FROM clicks c CROSS JOIN LATERAL explode(c.page.tags) AS t(tag) JOIN users u ON u.id = c.user_id GROUP BY t.tag, u.country",
    "as of": "SELECT c.n, c.ts, r.rate FROM clicks c JOIN rates FOR SYSTEM_TIME AS OF c.ts AS r ON r.item = c.page.url",
    "as of, left": "SELECT o.id, o.ts, r.rate, r.since FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON r.item = lower(o.item) AND r.rate > 1",
    "as of, counted": "SELECT r.item, sum(o.amount * r.rate) AS s, count(*) AS n FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON r.item = lower(o.item) GROUP BY r.item",
    "as of, twice": "SELECT o.id, r.rate, q.rate AS before FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON r.item = lower(o.item) LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts - INTERVAL 1 HOUR AS q ON q.item = r.item",
    "everything as of": "SELECT * FROM clicks c JOIN rates FOR SYSTEM_TIME AS OF c.ts AS r ON r.item = c.page.url",
    "order above a join": "SELECT u.country, max_by(c.n, c.ts) AS newest, min_by(u.name, c.price) AS cheapest FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY u.country",
    "order above a join, by values that may be NULL": "SELECT u.country, max_by(c.n, c.price) AS m, min_by(c.n, c.price) AS l, max_by(c.n, c.ts) FILTER (WHERE c.user_id > 1) AS f, any_value(c.n) AS a FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY u.country",
    "order above a join, of times between": "SELECT u.country, max_by(c.ts - TIMESTAMP '2026-01-01 00:00:00', c.price) AS m FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY u.country",
    "order of a table, by values that may be NULL": "SELECT boss, max_by(country, score) AS m, min_by(country, score) AS l, min_by(score, name) AS s FROM users GROUP BY boss",
    "any list": "SELECT u.country, any_value(c.page.tags) AS t, max_by(c.page.tags, c.price) AS m FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY u.country",
    "hops of two streams": "SELECT window(t, '90 minutes', '1 hour').start AS h, count(*) AS n, sum(n) AS s FROM (SELECT ts AS t, n FROM clicks UNION ALL SELECT ts, n FROM orders) GROUP BY window(t, '90 minutes', '1 hour')",
    "hops of different values": "SELECT window(ts, '1 hour', '25 minutes', '5 minutes') AS w, count(*) AS n FROM (SELECT DISTINCT user_id, ts FROM clicks) GROUP BY window(ts, '1 hour', '25 minutes', '5 minutes')",
    "hops of the last": "SELECT window(ts, '2 hours', '1 hour').end AS e, item, count(*) AS n FROM (SELECT * FROM orders QUALIFY row_number() OVER (PARTITION BY id ORDER BY ts DESC) = 1) GROUP BY window(ts, '2 hours', '1 hour'), item",
    "hops of a table": "SELECT window(since, '2 hours', '1 hour').start AS h, count(*) AS n, last(item) AS l FROM rates GROUP BY window(since, '2 hours', '1 hour')",
    "hops below others": "SELECT h, max(n) AS m FROM (SELECT user_id, window(t, '2 hours', '1 hour').start AS h, count(*) AS n FROM (SELECT user_id, ts AS t FROM clicks UNION ALL SELECT user_id, ts FROM orders) GROUP BY user_id, window(t, '2 hours', '1 hour')) GROUP BY h",
    "sessions of two streams": "SELECT session_window(t, '1 hour').start AS s, user_id, count(*) AS k, sum(n) AS n FROM (SELECT user_id, ts AS t, n FROM clicks UNION ALL SELECT user_id, ts, n FROM orders) GROUP BY session_window(t, '1 hour'), user_id",
    "sessions of a join": "SELECT u.country, session_window(c.ts, '59 minutes') AS s, count(*) AS k, last(c.n) AS l, count(DISTINCT c.user_id) AS d FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY u.country, session_window(c.ts, '59 minutes') HAVING count(*) > 1",
    "sessions of a table": "SELECT session_window(since, '1 minute').end AS e, collect_list(item) AS items FROM rates GROUP BY session_window(since, '1 minute')",
    "sessions of the last": "SELECT session_window(ts, '2 hours').start AS s, item, count(*) AS n FROM (SELECT * FROM orders QUALIFY row_number() OVER (PARTITION BY id ORDER BY ts DESC) = 1) GROUP BY session_window(ts, '2 hours'), item",
    "sessions of groups": "SELECT session_window(h, '1 hour').start AS s, session_window(h, '1 hour').end AS e, max(n) AS m FROM (SELECT window(ts, '30 minutes').start AS h, count(*) AS n FROM clicks GROUP BY window(ts, '30 minutes')) GROUP BY session_window(h, '1 hour') ORDER BY e DESC LIMIT 2",
    "event order of a stream and a table": "SELECT u.country, last(c.n) AS l, first_value(c.price, true) AS f, collect_list(c.n) AS ns, listagg(u.name, ',') AS names FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY u.country",
    "event order of two streams": "SELECT c.user_id, last(o.item) AS l, collect_list(struct(c.n, o.id)) AS pairs FROM clicks c JOIN orders o ON c.user_id = o.user_id GROUP BY c.user_id",
    "event order of a LEFT JOIN": "SELECT u.country, collect_list(o.id) AS ids, last(o.item) AS l, first(u.name) AS f FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.country",
    "event order of tables": "SELECT b.country, collect_list(u.name) AS names, last(u.score) AS l FROM users u JOIN users b ON u.boss = b.id GROUP BY b.country",
    "event order of a NATURAL JOIN": "SELECT country, last(name) AS l, collect_list(id) AS ids FROM (SELECT id, name FROM users) a NATURAL JOIN (SELECT id, country FROM users) b GROUP BY country",
    "event order of a join as of a time": "SELECT r.rate, collect_list(o.id) AS ids, last(o.item) AS l FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON r.item = lower(o.item) GROUP BY r.rate",
    "event order of a stream and a view": "SELECT s.total, collect_list(c.n) AS ns FROM clicks c JOIN spent s ON s.user_id = c.user_id GROUP BY s.total",
    "event order of a table and a view": "SELECT u.country, last(s.total) AS l, collect_list(u.id) AS ids FROM spent s JOIN users u ON u.id = s.user_id GROUP BY u.country",
    "event order with several rows of a view": "SELECT c.n, collect_list(struct(s.user_id, c.price)) AS l, last(s.total) AS t FROM clicks c JOIN spent s ON s.user_id % 2 = c.n % 2 GROUP BY c.n",
    "event order of filtered subqueries": "SELECT c.user_id, last(o.i) AS l FROM (SELECT user_id FROM clicks WHERE n > 1) c JOIN (SELECT user_id, item AS i FROM orders WHERE n > 0) o ON c.user_id = o.user_id GROUP BY c.user_id",
    "the first of a join": "SELECT user_id, item, n FROM (SELECT c.user_id, o.item, c.n FROM clicks c JOIN orders o ON c.user_id = o.user_id) QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY n DESC) = 1",
    "two rows of a join": "SELECT user_id, sum(n) OVER (PARTITION BY user_id ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM (SELECT c.user_id, o.n, o.ts FROM clicks c JOIN users u ON u.id = c.user_id JOIN orders o ON o.user_id = u.id)",
    "event order of a join in a subquery": "SELECT country, last(n) AS l, collect_list(n) AS ns FROM (SELECT u.country, c.n FROM clicks c JOIN users u ON u.id = c.user_id WHERE c.n > 1) GROUP BY country",
    "event order of a joined subquery": "SELECT r.rate, collect_list(j.name) AS names FROM (SELECT o.item, u.name FROM orders o JOIN users u ON u.id = o.user_id) j JOIN rates r ON r.item = lower(j.item) GROUP BY r.rate",
    "event order of a view of joined rows": "SELECT p.country, last(p.n) AS l, collect_list(p.user_id) AS ids FROM placed p GROUP BY p.country",
    "event order of a UNION ALL of streams": "SELECT user_id, last(n) AS l, collect_list(n) AS ns FROM (SELECT user_id, n FROM clicks UNION ALL SELECT user_id, n FROM orders WHERE n > 0) GROUP BY user_id",
    "event order of a UNION ALL of a stream and a table": "SELECT last(i) AS l, collect_list(i) AS all_of FROM (SELECT lower(item) AS i FROM orders UNION ALL SELECT item FROM rates)",
    "lag over a UNION ALL of three": "SELECT user_id, lag(n) OVER (PARTITION BY user_id ORDER BY ts) AS b FROM (SELECT user_id, n, ts FROM clicks UNION ALL SELECT user_id, n, ts FROM orders UNION ALL SELECT id, n, ts FROM orders)",
    "a scalar subquery": "SELECT o.id, (SELECT u.name FROM users u WHERE u.id = o.user_id AND u.score > 1) AS name FROM orders o",
    "a scalar subquery as a group key": "SELECT (SELECT u.country FROM users u WHERE u.id = c.user_id) AS country, count(*) AS n FROM clicks c GROUP BY 1",
    "a scalar subquery over a view": "SELECT o.id FROM orders o WHERE o.amount * 2 >= (SELECT s.total FROM spent s WHERE s.user_id = o.user_id)",
    "a scalar subquery by a narrower number": "SELECT r.item, (SELECT u.name FROM users u WHERE u.id = CAST(r.rate AS INT)) AS name FROM rates r",
    "LEFT JOIN without ON": "SELECT c.n, u.name FROM clicks c LEFT JOIN users u WHERE c.n > 2",
    "LEFT JOIN LATERAL without ON": "SELECT u.name, l.k FROM users u LEFT JOIN LATERAL (SELECT count(*) AS k FROM orders o WHERE o.user_id = u.id) l",
    "totals by conditions": "SELECT c.n > 1 AS more, u.country, count(*) AS k FROM clicks c JOIN users u ON u.id = c.user_id GROUP BY ROLLUP (c.n > 1, u.country)",
    "totals of sets of conditions": "SELECT n > 1 AS more, user_id IS NULL AS nobody, count(*) AS k FROM orders GROUP BY GROUPING SETS (n > 1, user_id IS NULL, ())",
    "a late value": "SELECT coalesce(u.country, '?') AS country, sum(coalesce(u.score, 10)) AS s, count(u.score) AS n FROM orders o LEFT JOIN users u ON u.id = o.user_id GROUP BY coalesce(u.country, '?')",
}  # fmt: skip


@cache
def catalog() -> Catalog:
    """A view for each of VIEWS."""
    return compile_catalog(
        {"joins.sql": SOURCES + "".join(f"CREATE VIEW v{n} AS {select};\n" for n, select in enumerate(VIEWS.values()))}
    )


def click(dice: random.Random) -> Record:
    tags = dice.choice([None, [], ["a"], ["a", "b"]])
    page = {"url": dice.choice(["/a", "/b"]), "tags": tags}
    price = dice.choice(["1.50", "2.25"])
    return _json(user_id=_user(dice), page=page, price=price, n=dice.choice([1, 2, 3, None]), ts=_time(dice))


def order(dice: random.Random) -> Record:
    item, amount = dice.choice("aBc"), dice.choice(["10", "20.5"])
    return _json(
        id=dice.randrange(5), user_id=_user(dice), item=item, amount=amount, n=dice.randrange(4), ts=_time(dice)
    )


def user(dice: random.Random) -> Record:
    id = dice.randrange(5)
    if dice.random() < 0.15:
        return str(id).encode(), None
    name, country = dice.choice(["Ann", "bob"]), dice.choice(["DE", "FR", None])
    value = _json(name=name, country=country, boss=dice.randrange(5), score=dice.choice([0.5, 1.5, None]))
    return str(id).encode(), value


def rate(dice: random.Random) -> Record:
    item = dice.choice(["a", "b", "/a"])
    if dice.random() < 0.1:
        return item.encode(), None
    return item.encode(), _json(rate=dice.choice(["0.5", "1.5", "2.5"]), since=_time(dice))


def _json(**values: object) -> bytes:
    return json.dumps(values).encode()


def _user(dice: random.Random) -> int | None:
    return dice.choice([0, 1, 2, 3, 4, 5, None])


def _time(dice: random.Random) -> str | None:
    return dice.choice([None, *(f"2026-01-01T{hour:02}:{minute:02}:00Z" for hour in (0, 1, 2) for minute in (0, 59))])


def test_a_join_equals_its_select_in_any_order_of_arrival(engines: Engines) -> None:
    dice = random.Random(7)
    makers = {"clicks": click, "orders": order, "users": user, "rates": rate}
    batches = {name: [[make(dice) for _ in range(9)] for _ in range(3)] for name, make in makers.items()}
    assert engines.differing(catalog(), batches) == {}


@cache
def small() -> Catalog:
    """Views whose rows a test can list."""
    return compile_catalog(
        {
            "small.sql": """
CREATE TABLE l (k STRING, a INT, b STRING, ts TIMESTAMP) USING kafka OPTIONS (topic 'l', format 'json');
CREATE TABLE r (k STRING, x INT) USING kafka OPTIONS (topic 'r', format 'json');
CREATE TABLE t (id INT PRIMARY KEY, v STRING, at TIMESTAMP)
USING kafka OPTIONS (topic 't', format 'json', key_format 'json')
TBLPROPERTIES ('event_time' = 'at', 'newest_by' = 'event_time');
CREATE VIEW repeated AS
SELECT mode() WITHIN GROUP (ORDER BY l.b) AS m, count(DISTINCT l.b) AS d, sort_array(collect_list(l.b)) AS all_of
FROM l JOIN r ON l.k = r.k;
CREATE VIEW kept AS
SELECT count(*) AS n, count(r.x) AS m, var_pop(r.x) AS v, sum(coalesce(r.x, 10)) AS s FROM l LEFT JOIN r ON l.k = r.k;
CREATE VIEW conditional AS SELECT count(*) AS n, count(r.k) AS m FROM l LEFT JOIN r ON l.k = r.k AND l.a > 5;
CREATE VIEW unmatched AS SELECT l.k, l.a FROM l LEFT ANTI JOIN r ON l.k = r.k AND l.a > 5;
CREATE VIEW products AS SELECT sum(l.a * r.x) AS p, bit_xor(l.a) AS x FROM l JOIN r ON l.k = r.k;
CREATE VIEW open AS SELECT count(*) AS n FROM t WHERE v = 'open';
CREATE VIEW held AS SELECT l.a, t.v FROM l LEFT JOIN t FOR SYSTEM_TIME AS OF l.ts AS t ON t.id = 1;
CREATE VIEW named AS SELECT l.a, t.id FROM l JOIN t FOR SYSTEM_TIME AS OF l.ts AS t ON t.v = l.b;
"""
        }
    )


def rows(engines: Engines, view: str, **records: list[Record]) -> list[Row]:
    """A view's rows after its records arrived one by one, those of the last source first."""
    engines.deploy(small())
    for source in reversed(records):
        engines.feed(small(), {source: [[record] for record in records[source]]})
    return engines.actual(small().views[view])


def keyed(*values: tuple[str, int | str | None], name: str) -> list[Record]:
    return [_json(k=key, **{name: value}) for key, value in values]


def test_a_record_counts_for_each_of_its_partners(engines: Engines) -> None:
    left = keyed(("1", "a"), ("3", "a"), ("2", "b"), name="b")
    right = keyed(("1", 0), ("1", 0), ("3", 0), ("3", 0), ("2", 0), ("2", 0), ("2", 0), name="x")
    assert rows(engines, "repeated", l=left, r=right) == [("a", 2, ["a", "a", "a", "a", "b", "b", "b"])]


def test_a_record_without_a_partner_is_a_row_of_a_left_join(engines: Engines) -> None:
    left, right = keyed(("1", 0), ("2", 0), name="a"), keyed(("1", 2), ("1", 4), name="x")
    assert rows(engines, "kept", l=left, r=right) == [(3, 2, 1.0, 16)]


def test_a_condition_in_on_leaves_out_partners_and_keeps_the_row(engines: Engines) -> None:
    left, right = keyed(("k", 1), ("k", 9), name="a"), keyed(("k", 0), name="x")
    assert rows(engines, "conditional", l=left, r=right) == [(2, 1)]
    assert rows(engines, "unmatched", l=left, r=right) == [("k", 1)]


def test_products_of_both_sides_are_summed_per_joined_row(engines: Engines) -> None:
    """Each product wraps around, as an INT does, before the sum. The XOR of equal bits is 0."""
    left, right = keyed(("k", 100_000), name="a"), keyed(("k", 100_000), ("k", 100_000), name="x")
    assert rows(engines, "products", l=left, r=right) == [(2_820_130_816, 0)]


def version(id: int, value: str, minute: int) -> Record:
    return _json(id=id, v=value, at=f"2023-12-31T23:{minute:02}:00Z")


def test_a_replaced_version_no_longer_counts(engines: Engines) -> None:
    assert rows(engines, "open", t=[version(1, "open", 10), version(1, "done", 20)]) == [(0,)]
    assert rows(engines, "open", t=[version(1, "open", 10), version(1, "done", 20), version(1, "open", 5)]) == [(0,)]


def test_a_version_holds_from_its_time_until_that_of_the_next(engines: Engines) -> None:
    """If two versions have one time, the second holds. A deletion has Kafka's time: midnight and some microseconds."""
    events: list[Record] = [_json(a=n, ts=ts) for n, ts in enumerate(["2023-12-31T23:09:00Z", "2023-12-31T23:10:00Z"])]
    events += [_json(a=n, ts=ts) for n, ts in enumerate(["2023-12-31T23:15:00Z", "2024-01-01T00:00:01Z", None], 2)]
    held = rows(engines, "held", l=events, t=[version(1, "x", 10), version(1, "y", 10), (b"1", None)])
    assert held == [(0, None), (1, "y"), (2, "y"), (3, None), (4, None)]


def test_a_condition_on_a_version_reads_the_version_that_holds(engines: Engines) -> None:
    events: list[Record] = [_json(a=minute, b="a", ts=f"2023-12-31T23:{minute:02}:00Z") for minute in (5, 11)]
    assert rows(engines, "named", l=events, t=[version(1, "a", 0), version(1, "b", 10)]) == [(5, 1)]
