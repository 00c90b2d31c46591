"""Declarations that several tests deploy. `{topics}` becomes the test's own prefix."""

from __future__ import annotations

EVENTS = """
    CREATE TABLE events (
      kind STRING, country STRING, n BIGINT, price DECIMAL(10, 2), ratio DOUBLE, ts TIMESTAMP,
      payload STRUCT<user: STRUCT<id: BIGINT, name: STRING>>
    ) USING kafka OPTIONS (topic '{topics}_events', format 'json')
    TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');
"""

HOURLY = """
    CREATE VIEW hourly (hour, country, events, shown, total, smallest, largest, mean) AS
    SELECT window(ts, '1 hour').start, country, count(*), count(*) FILTER (WHERE kind = 'show'),
           sum(price), min(n), max(n), avg(n)
    FROM events
    GROUP BY window(ts, '1 hour'), country;
"""

TOTALS = "CREATE VIEW totals AS SELECT count(*) AS events, sum(n) AS n, sum(price) AS price FROM events;"

USERS = """
    CREATE VIEW users AS
    SELECT payload.user.id AS user_id, count(*) AS events, max(ts) AS last_seen
    FROM events WHERE payload.user.id IS NOT NULL GROUP BY payload.user.id;
"""

CLICKS = "CREATE VIEW clicks AS SELECT n, country, price, ts FROM events WHERE kind = 'click';"

PLACES = "CREATE VIEW places AS SELECT country, sum(events) AS events FROM hourly GROUP BY country;"

CATALOG = {"events": EVENTS, "hourly": HOURLY, "totals": TOTALS, "users": USERS, "clicks": CLICKS, "places": PLACES}


def event(number: int) -> dict[str, object]:
    """The `number`th record of a stream that has NULL keys, several hours and late records in it."""
    return {
        "kind": ("show", "click", None)[number % 3],
        "country": ("FR", "JP", None, "")[number % 4],
        "n": number if number % 7 else None,
        "price": f"{number % 100}.{number % 10}5",
        "ratio": number / 3,
        "ts": f"2024-03-{1 + number % 2:02d}T{(number * 7) % 24:02d}:30:00Z",
        "payload": {"user": {"id": number % 5, "name": f"u{number % 5}"}} if number % 6 else None,
    }


SHOP = {
    "orders": """
        CREATE TABLE orders (id INT UNIQUE, user_id INT, amount DECIMAL(10, 2), ts TIMESTAMP)
        USING kafka OPTIONS (topic '{topics}_orders', format 'json')
        TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');
    """,
    "users": """
        CREATE TABLE users (id INT PRIMARY KEY, city STRING, moved_at TIMESTAMP)
        USING kafka OPTIONS (topic '{topics}_users', format 'json')
        TBLPROPERTIES ('event_time' = 'moved_at', 'partitions' = '2');
    """,
    "payments": """
        CREATE TABLE payments (order_id INT, ts TIMESTAMP)
        USING kafka OPTIONS (topic '{topics}_payments', format 'json')
        TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');
    """,
    "views": """
        CREATE VIEW lived AS
        SELECT u.city, count(*) AS orders, sum(o.amount) AS amount
        FROM orders o LEFT JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON u.id = o.user_id GROUP BY u.city;
        CREATE VIEW live AS
        SELECT u.city, count(*) AS orders FROM orders o JOIN users u ON u.id = o.user_id GROUP BY u.city;
        CREATE VIEW paid AS
        SELECT o.id, p.ts FROM orders o
        LEFT JOIN payments p ON p.order_id = o.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 15 MINUTES;
    """,
}
"""A stream of unique events, a table, joins as they are now and as of the event, and streams joined in time."""
