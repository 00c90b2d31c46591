"""Questions about several sources: live, with a rebuild in the middle, and after it, every view is its SELECT."""

from __future__ import annotations

import json
from typing import Any

from tests.fix_lamina import Deployed
from view_algebra.language.quoting import words

SOURCES = """
CREATE TABLE users (id INT PRIMARY KEY COMMENT 'never used twice', city STRING, moved_at TIMESTAMP)
USING kafka OPTIONS (topic '{topics}_users', format 'json', key_format 'json')
COMMENT 'where users live' TBLPROPERTIES ('event_time' = 'moved_at', 'partitions' = '2');
CREATE TABLE goods (id INT PRIMARY KEY, origin STRING)
USING kafka OPTIONS (topic '{topics}_goods', format 'debezium-json') TBLPROPERTIES ('partitions' = '1');
CREATE TABLE rates (currency STRING PRIMARY KEY, rate DECIMAL(8, 4), since TIMESTAMP)
USING kafka OPTIONS (topic '{topics}_rates', format 'json', key_format 'string') TBLPROPERTIES ('event_time' = 'since');
CREATE TABLE orders (id INT, user_id INT, good_id INT, currency STRING, amount DECIMAL(8, 2), ts TIMESTAMP)
USING kafka OPTIONS (topic '{topics}_orders', format 'json');
CREATE TABLE payments (order_id INT, ts TIMESTAMP) USING kafka OPTIONS (topic '{topics}_payments', format 'json');
"""

VIEWS = """
CREATE VIEW local_buyers_now AS
SELECT window(o.ts, '1 hour').start AS hour, count(DISTINCT o.user_id) AS buyers
FROM orders o JOIN users u ON u.id = o.user_id JOIN goods g ON g.id = o.good_id
WHERE g.origin = u.city GROUP BY window(o.ts, '1 hour');
CREATE VIEW local_buyers_then AS
SELECT window(o.ts, '1 hour').start AS hour, count(DISTINCT o.user_id) AS buyers
FROM orders o JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON u.id = o.user_id JOIN goods g ON g.id = o.good_id
WHERE g.origin = u.city GROUP BY window(o.ts, '1 hour');
CREATE VIEW paid_in_time AS
SELECT o.id, p.ts AS paid_at FROM orders o
LEFT JOIN payments p ON p.order_id = o.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 15 MINUTES;
CREATE VIEW in_euro AS
SELECT o.currency, sum(o.amount * r.rate) AS amount, count(*) AS orders
FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON r.currency = o.currency GROUP BY o.currency;
CREATE VIEW twice_within_a_minute AS
SELECT a.id, b.id AS next FROM orders a JOIN orders b
  ON a.user_id = b.user_id AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 1 MINUTE;
CREATE VIEW by_city AS SELECT city, count(*) AS users FROM users GROUP BY city;
"""

EVERY = words("users goods rates local_buyers_now local_buyers_then paid_in_time in_euro twice_within_a_minute by_city")


def at(minutes: int) -> str:
    return f"2026-03-01T{minutes // 60:02}:{minutes % 60:02}:00Z"


def user(id: int, city: str, minutes: int) -> tuple[dict[str, int], dict[str, Any]]:
    return {"id": id}, {"id": id, "city": city, "moved_at": at(minutes)}


def good(id: int, origin: str | None, op: str = "c") -> tuple[dict[str, int], dict[str, Any]]:
    row = {"id": id, "origin": origin}
    return {"id": id}, {"op": op, "before": row if op == "d" else None, "after": None if op == "d" else row}


def order(id: int, user: int, good: int, minutes: int, currency: str = "USD") -> dict[str, Any]:
    return {"id": id, "user_id": user, "good_id": good, "currency": currency, "amount": "10.00", "ts": at(minutes)}


def change(deployed: Deployed, source: str, *changes: tuple[object, object]) -> None:
    for key, value in changes:
        told = key.encode() if isinstance(key, str) else json.dumps(key).encode()
        deployed.producer.send(
            deployed.topic(source), None if value is None else json.dumps(value).encode(), key=told, partition=0
        )
    deployed.producer.flush()


def told(deployed: Deployed, view: str) -> list[tuple[Any, ...]]:
    columns = {
        "local_buyers_now": "to_char(hour, 'HH24'), buyers",
        "local_buyers_then": "to_char(hour, 'HH24'), buyers",
    }
    columns |= {"paid_in_time": "id, to_char(paid_at, 'HH24:MI')", "in_euro": "currency, amount::text, orders"}
    return sorted(deployed.rows(f"SELECT {columns.get(view, '*')} FROM {view}"), key=str)


def test_relations_between_sources_hold_at_every_instant(deployed: Deployed) -> None:
    deployed.apply(sources=SOURCES, views=VIEWS)
    change(deployed, "goods", good(1, "Ulm"), good(2, "Kiel"))
    change(deployed, "rates", ("USD", {"rate": "0.9", "since": at(0)}), ("USD", {"rate": "0.8", "since": at(70)}))
    deployed.send("orders", order(1, 1, 1, 65), order(2, 1, 1, 75), order(3, 2, 2, 76))
    deployed.catch_up()
    # no user is known yet: an inner join shows nothing, an outer one shows the order alone
    assert told(deployed, "local_buyers_now") == []
    assert told(deployed, "paid_in_time") == [(1, None), (2, None), (3, None)]
    assert told(deployed, "in_euro") == [("USD", "25.000000", 3)]
    deployed.check(*EVERY)

    # users come after their orders; one has moved since
    change(deployed, "users", user(1, "Ulm", 0), user(2, "Kiel", 0), user(1, "Bonn", 100))
    deployed.send("payments", {"order_id": 1, "ts": at(70)}, {"order_id": 2, "ts": at(95)})
    deployed.catch_up()
    assert told(deployed, "local_buyers_now") == [("01", 1)]
    assert told(deployed, "local_buyers_then") == [("01", 2)]
    assert told(deployed, "paid_in_time") == [(1, "01:10"), (2, None), (3, None)]
    assert told(deployed, "by_city") == [("Bonn", 1), ("Kiel", 1)]
    deployed.check(*EVERY)

    assert all(proof.differing == 0 for proof in deployed.deployment.batch.rebuild())
    deployed.check(*EVERY)

    # an older record of a user changes nothing now, and what held then; a late rate, a deletion, a late payment
    change(deployed, "users", user(2, "Trier", 50), ({"id": 1}, None))
    change(deployed, "goods", good(2, None, "d"), ({"id": 2}, None), good(1, "Trier", "u"))
    change(deployed, "rates", ("USD", {"rate": "1", "since": at(74)}))
    deployed.send("payments", {"order_id": 3, "ts": at(80)})
    deployed.send("orders", order(4, 2, 1, 77))
    deployed.catch_up()
    assert told(deployed, "local_buyers_now") == [("01", 1)]
    assert told(deployed, "local_buyers_then") == [("01", 1)]
    assert told(deployed, "paid_in_time") == [(1, "01:10"), (2, None), (3, "01:20"), (4, None)]
    assert told(deployed, "in_euro") == [("USD", "39.000000", 4)]
    assert told(deployed, "twice_within_a_minute") == [(3, 4)]
    assert told(deployed, "by_city") == [("Trier", 1)]
    deployed.check(*EVERY)
    assert all(proof.differing == 0 for proof in deployed.deployment.batch.rebuild())
    deployed.check(*EVERY)


def test_a_table_is_served_with_its_comments_and_a_compacted_topic_may_be_one(deployed: Deployed) -> None:
    topic = f"{deployed.prefix}_users"
    deployed.deployment.brokers.create(topic, 1, {"cleanup.policy": "compact"})
    deployed.apply(sources=SOURCES)
    assert deployed.owner("SELECT obj_description('analytics.users'::regclass)") == [("where users live",)]
    assert deployed.owner("SELECT col_description('analytics.users'::regclass, 1)") == [("never used twice",)]
    change(deployed, "users", user(1, "Ulm", 0), ({"id": 1}, {"id": 2}), (None, None), ({"id": 1}, {"city": "Bonn"}))
    deployed.catch_up()
    assert deployed.rows("SELECT id, city FROM users") == [(1, "Bonn")]
    assert sorted(deployed.owner("SELECT error, records FROM lamina.bad_records")) == [
        ("a deletion, and its key is no JSON of id INT", 1),
        ("the primary key differs from Kafka's key: id", 1),
    ]
    deployed.check("users")
