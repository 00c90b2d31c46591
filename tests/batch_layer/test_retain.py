"""`retain`: old groups leave at the hand-over of a rebuild, and readers never see a part of one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lamina.operations import applying
from tests.fix_catalogs import EVENTS
from tests.fix_lamina import Deployed, one

DAILY = """
    CREATE VIEW daily TBLPROPERTIES ('retain' = '3 days') AS
    SELECT country, date_trunc('DAY', ts) AS day, count(*) AS events, count(DISTINCT n) AS numbers
    FROM events GROUP BY country, date_trunc('DAY', ts);
"""
LATELY = "CREATE VIEW lately AS SELECT day, sum(events) AS events FROM daily GROUP BY day;"
ALL = "CREATE VIEW totals AS SELECT count(*) AS events FROM events;"


def event(now: datetime, days_ago: int, n: int) -> dict[str, object]:
    return {"country": ("FR", None)[n % 2], "n": n, "ts": (now - timedelta(days=days_ago)).isoformat()}


def test_old_groups_leave_at_the_hand_over(deployed: Deployed) -> None:
    now = datetime.now(UTC)
    deployed.apply(events=EVENTS, daily=DAILY, lately=LATELY, totals=ALL)

    def send(*of: tuple[int, int]) -> None:
        deployed.send("events", *(event(now, *values) for values in of))
        deployed.catch_up()

    def days() -> dict[int, int]:
        """Events with the times of these many days ago."""
        return {(now.date() - day.date()).days: n for day, n in deployed.rows("SELECT day, events FROM lately")}

    with deployed.deployment.database.begin() as connection:  # as if it was deployed ten days ago
        connection.exec_driver_sql(
            "UPDATE lamina.generation SET since = since - interval '10 days' WHERE view = 'daily'"
        )
    send((12, 1), (12, 2), (2, 3), (0, 4), (40, 5), (0, 4))
    assert days() == {12: 2, 2: 1, 0: 2}
    deployed.check()

    def late(place: str) -> None:
        if place == "noted":  # the differing cells are noted, and more records arrive
            send((12, 6), (11, 7), (2, 8), (0, 9))

    deployed.deployment.at = late
    interrupted = deployed.deployment.batch
    deployed.deployment.at = lambda place: None  # the speed layer also calls `at`
    proofs = interrupted.rebuild()
    assert {proof.view: proof.differing for proof in proofs} == {"daily": 0, "totals": 0}
    assert days() == {2: 2, 0: 3}
    send((12, 10), (2, 11))
    assert days() == {2: 3, 0: 3}
    deployed.check()

    batch = deployed.deployment.batch
    applying.roll_back(deployed.deployment, "daily")
    assert days() == {12: 4, 11: 1, 2: 3, 0: 3}
    deployed.check()
    send((12, 12), (0, 13))
    batch.rebuild()
    assert days() == {2: 3, 0: 4}
    assert one(deployed.rows("SELECT events FROM totals")) == (14,)
    deployed.check()


ORDERS = """
    CREATE TABLE orders (id BIGINT, ts TIMESTAMP) USING kafka OPTIONS (topic '{topics}_orders', format 'json')
    TBLPROPERTIES ('event_time' = 'ts');
"""
PAYMENTS = """
    CREATE TABLE payments (order_id BIGINT, amount BIGINT, ts TIMESTAMP)
    USING kafka OPTIONS (topic '{topics}_payments', format 'json') TBLPROPERTIES ('event_time' = 'ts');
"""
WITHIN = "p.order_id = o.id AND p.ts BETWEEN o.ts - INTERVAL 15 MINUTES AND o.ts + INTERVAL 15 MINUTES"
PAID = f"""
    CREATE VIEW paid TBLPROPERTIES ('retain' = '3 days') AS
    SELECT o.id, o.ts, p.ts AS paid_at, p.amount FROM orders o LEFT JOIN payments p ON {WITHIN};
"""
BY_DAY = f"""
    CREATE VIEW by_day TBLPROPERTIES ('retain' = '3 days') AS
    SELECT date_trunc('DAY', o.ts) AS day, count(*) AS orders, count(p.amount) AS payments, sum(p.amount) AS amount
    FROM orders o LEFT JOIN payments p ON {WITHIN} GROUP BY 1;
"""


def test_a_join_within_a_time_keeps_every_record_that_a_kept_record_may_match(deployed: Deployed) -> None:
    first = datetime.combine(datetime.now(UTC).date() - timedelta(days=3), datetime.min.time(), UTC)
    deployed.apply(orders=ORDERS, payments=PAYMENTS, paid=PAID, by_day=BY_DAY)
    with deployed.deployment.database.begin() as connection:  # as if they were deployed ten days ago
        connection.exec_driver_sql("UPDATE lamina.generation SET since = since - interval '10 days'")

    def order(id: int, minutes: int) -> None:
        deployed.send("orders", {"id": id, "ts": (first + timedelta(minutes=minutes)).isoformat()})

    def payment(of: int, minutes: int) -> None:
        at = (first + timedelta(minutes=minutes)).isoformat()
        deployed.send("payments", {"order_id": of, "amount": 10 + of, "ts": at})

    def paid() -> list[tuple[object, ...]]:
        deployed.catch_up()
        deployed.check()
        shown = deployed.rows("SELECT id, amount FROM paid ORDER BY id")
        [counted] = deployed.rows("SELECT sum(orders)::int, coalesce(sum(amount), 0)::int FROM by_day")
        assert counted == (len(shown), sum(amount or 0 for _, amount in shown))
        return shown

    def oldest_payments() -> set[float]:
        """Minutes after the first kept day, of every table of cells of payments."""
        tables = deployed.owner(
            "SELECT place FROM lamina.generation_cells JOIN lamina.cell_table ON name = cell_table"
            " JOIN lamina.publication USING (generation) WHERE query = 'payments'"
        )
        oldest = [one(deployed.owner(f"SELECT min(ts) FROM {place}"))[0] for (place,) in tables]
        return {(at - first).total_seconds() / 60 for at in oldest}

    order(1, -10)
    payment(1, -20)
    order(2, 5)
    payment(2, -5)
    payment(3, -15)
    payment(4, 4)
    assert paid() == [(1, 11), (2, 12)]
    assert oldest_payments() == {-20}
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    assert paid() == [(2, 12)]
    assert oldest_payments() == {-15}
    order(3, 0)  # late, and joined with a payment from before the first day
    order(5, -1)  # from before it
    payment(2, -9)  # also late
    payment(1, -16)
    assert paid() == [(2, 12), (2, 12), (3, 13)]
    assert oldest_payments() == {-15}
    applying.roll_back(deployed.deployment, "paid")
    applying.roll_back(deployed.deployment, "by_day")
    assert paid() == [(1, 11), (1, 11), (2, 12), (2, 12), (3, 13), (5, None)]
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    assert paid() == [(2, 12), (2, 12), (3, 13)]
