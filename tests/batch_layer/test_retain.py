"""`retain`: groups of long ago leave when a rebuild is handed over, and none of them is ever seen in part."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

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


def test_groups_of_long_ago_leave_at_the_hand_over(deployed: Deployed) -> None:
    now = datetime.now(UTC)
    deployed.apply(events=EVENTS, daily=DAILY, lately=LATELY, totals=ALL)

    def send(*of: tuple[int, int]) -> None:
        deployed.send("events", *(event(now, *each) for each in of))
        deployed.catch_up()

    def days() -> dict[int, int]:
        """Events by how many days ago they were."""
        return {(now.date() - day.date()).days: n for day, n in deployed.rows("SELECT day, events FROM lately")}

    with deployed.deployment.database.begin() as connection:  # it was deployed ten days ago
        connection.exec_driver_sql(
            "UPDATE lamina.generation SET since = since - interval '10 days' WHERE view = 'daily'"
        )
    send((12, 1), (12, 2), (2, 3), (0, 4), (40, 5), (0, 4))
    assert days() == {12: 2, 2: 1, 0: 2}
    deployed.check()

    def late(place: str) -> None:
        if place == "noted":  # what the hand-over will exchange is known, and it comes otherwise
            send((12, 6), (11, 7), (2, 8), (0, 9))

    deployed.deployment.at = late
    interrupted = deployed.deployment.batch
    deployed.deployment.at = lambda place: None  # the speed layer's own places are not the rebuild's
    proofs = interrupted.rebuild()
    assert {proof.view: proof.differing for proof in proofs} == {"daily": 0, "totals": 0}
    assert days() == {2: 2, 0: 3}
    send((12, 10), (2, 11))
    assert days() == {2: 3, 0: 3}
    deployed.check()

    batch = deployed.deployment.batch
    batch.roll_back("daily")
    assert days() == {12: 4, 11: 1, 2: 3, 0: 3}
    deployed.check()
    send((12, 12), (0, 13))
    batch.rebuild()
    assert days() == {2: 3, 0: 4}
    assert one(deployed.rows("SELECT events FROM totals")) == (14,)
    deployed.check()
