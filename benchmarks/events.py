"""The data of the benchmarks: a shop's events, three views of them, and one view with a cell per user and day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lamina.operations.deployment import Deployment

PARTITIONS = 4

SOURCE = """
CREATE TABLE events (
  seq BIGINT, user_id BIGINT, kind STRING, country STRING, city STRING, product_id BIGINT,
  price DECIMAL(8,2), quantity INT, ts TIMESTAMP
) USING kafka OPTIONS (topic 'events', format 'json') TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '4');
"""

COLUMNS = """seq BIGINT, user_id BIGINT, kind STRING, country STRING, city STRING, product_id BIGINT,
  price DECIMAL(8,2), quantity INT, ts TIMESTAMP"""

VIEWS = {
    "places": """
SELECT date_trunc('HOUR', ts) AS hour, country, city,
       count(*) AS events, count(*) FILTER (WHERE kind = 'buy') AS bought, sum(quantity) AS pieces
FROM events GROUP BY date_trunc('HOUR', ts), country, city""",
    "users": """
SELECT to_date(ts) AS day, user_id, count(*) AS events, sum(price * quantity) AS spent, max(ts) AS last_seen
FROM events GROUP BY to_date(ts), user_id""",
    "products": """
SELECT date_trunc('HOUR', ts) AS hour, product_id,
       count(*) AS events, min(price) AS cheapest, max(price) AS dearest, avg(price) AS average
FROM events GROUP BY date_trunc('HOUR', ts), product_id""",
}
"""The three views of the catch-up figure, as Spark SQL. 500,000 events give 65 thousand cells."""

LANES = "SELECT kafka_partition AS lane, max(seq) AS newest FROM events GROUP BY kafka_partition"
"""The events that can be read: within a partition, all up to `newest`."""

USER_DAYS = """
SELECT to_date(ts) AS day, user_id, count(*) AS events, sum(price) AS spent FROM events GROUP BY to_date(ts), user_id"""

DAYS, USERS = 400, 5_000
"""Size of `user_days`: two million cells."""

VISITORS = 50_000
"""Different users of a day, and of an hour."""

FIRST_DAY = "2026-01-01"


def catalog(**views: str) -> dict[str, str]:
    """The files that declare the events and these views."""
    return {"events.sql": SOURCE} | {f"{name}.sql": f"CREATE VIEW {name} AS {sql};" for name, sql in views.items()}


def send_a_day(opened: Deployment, records: int) -> None:
    """Sends events of one day, evenly spread, of 50,000 users in 500 cities with 3,000 products."""
    ts = f"timestamp '{FIRST_DAY}' + make_interval(0, 0, 0, 0, 0, 0, CAST(seq * 86400 / {records} AS DECIMAL(18,6)))"
    _send(opened, records, ts, f"pmod(hash(seq, 1), {VISITORS})")


def send_an_hour(opened: Deployment, records: int, *, until: datetime) -> None:
    """Sends events of the hour before an instant, evenly spread, of the same users, cities and products."""
    first = int((until - timedelta(hours=1)).timestamp() * 1_000_000)
    ts = f"timestamp_micros({first} + seq * 3600000000 DIV {records})"
    _send(opened, records, ts, f"pmod(hash(seq, 1), {VISITORS})")


def send_user_days(opened: Deployment, records: int, *, days: int, users: int) -> None:
    """Sends one event for each user and day, day by day. Further events fall on any of these."""
    cell = f"if(seq < {days * users}, seq, pmod(xxhash64(seq), {days * users}))"
    ts = f"timestamp '{FIRST_DAY}' + make_interval(0, 0, 0, CAST({cell} DIV {users} AS INT), 12, 0, 0)"
    _send(opened, records, ts, f"{cell} % {users}")


def one_live(seq: int) -> bytes:
    """The event `seq` for sending during a measurement, on the last day of both kinds of history."""
    return _one(seq, USERS, "2027-02-04T12:00:00.000Z")


def one_now(seq: int) -> bytes:
    """The event `seq` for sending during a measurement, with the current time."""
    return _one(seq, VISITORS, datetime.now(UTC).isoformat(timespec="milliseconds"))


def _one(seq: int, users: int, ts: str) -> bytes:
    mixed = seq * 2_654_435_761 % 2**32
    return (
        f'{{"seq":{seq},"user_id":{mixed % users},"kind":"{"buy" if mixed % 8 == 0 else "view"}",'
        f'"country":"C{mixed % 20}","city":"city {mixed % 500}","product_id":{mixed % 3000},'
        f'"price":{mixed % 10_000 / 100:.2f},"quantity":{1 + mixed % 5},"ts":"{ts}"}}'
    ).encode()


def _send(opened: Deployment, records: int, ts: str, user: str) -> None:
    """Writes JSON records with Spark. Each partition of the topic holds its share in the order of `seq`."""
    share = records // PARTITIONS
    events = (
        opened.spark()
        .range(0, share * PARTITIONS, 1, PARTITIONS)
        .selectExpr(f"CAST(id DIV {share} AS INT) AS partition", f"id % {share} * {PARTITIONS} + id DIV {share} AS seq")
    )
    values = events.selectExpr(
        "partition",
        f"""to_json(named_struct(
          'seq', seq, 'user_id', {user},
          'kind', if(pmod(hash(seq, 2), 8) = 0, 'buy', 'view'), 'country', concat('C', pmod(hash(seq, 3), 500) % 20),
          'city', concat('city ', pmod(hash(seq, 3), 500)), 'product_id', pmod(hash(seq, 4), 3000),
          'price', CAST(pmod(hash(seq, 5), 10000) / 100 AS DECIMAL(8,2)), 'quantity', 1 + pmod(hash(seq, 6), 5),
          'ts', {ts})) AS value""",
    )
    values.write.format("kafka").options(**opened.brokers.for_spark()).option("topic", "events").save()
