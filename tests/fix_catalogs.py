"""Declarations that several tests deploy; `{topics}` becomes the test's own prefix."""

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
