"""Processes are killed at a named step or at random moments. Nothing is lost, and `check` agrees."""

from __future__ import annotations

import random
import shutil
import time
from decimal import Decimal

from pyspark.sql import SparkSession

from tests.fix_catalogs import CATALOG, CLICKS, EVENTS, SHOP, TOTALS, event
from tests.fix_lamina import PATIENCE, CommandLine, Deployed, one, short_lived

ROUNDS = 5
"""Kills of the speed layer, at random moments of one replay."""


def test_the_speed_layer_may_be_killed_anywhere_in_a_commit(
    deployed: Deployed, lamina: CommandLine, spark: SparkSession
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS)
    sent = 0
    for place in ("before the commit", "inside the commit", "after the commit"):
        deployed.send("events", *(event(n) for n in range(sent, sent + 40)))
        sent += 40
        with short_lived(lamina, spark, LAMINA_STOP_AT=place) as process:
            _, stderr = process.communicate(timeout=PATIENCE)
        assert process.returncode == -9, stderr
        counted = one(deployed.rows("SELECT events FROM totals"))
        assert counted == ((sent,) if place == "after the commit" else (sent - 40,))
        deployed.catch_up()
        assert one(deployed.rows("SELECT events FROM totals")) == (sent,)
    deployed.check()


def test_unique_events_tables_and_joins_survive_a_kill_anywhere_in_a_commit(
    deployed: Deployed, lamina: CommandLine, spark: SparkSession
) -> None:
    """Every order is sent again in the next round, users move, and payments are late. Checkpoints are lost once."""
    deployed.apply(**SHOP)

    def order(number: int) -> dict[str, object]:
        return {
            "id": number,
            "user_id": number % 5,
            "amount": "2.50",
            "ts": f"2026-03-01T{number // 60:02}:{number % 60:02}:00Z",
        }

    places = ("before the commit", "inside the commit", "after the commit")
    for turn, place in enumerate(places):
        again = range(max(0, 40 * (turn - 1)), 40 * (turn + 1))
        moved_at = f"2026-03-01T{turn:02}:00:00Z"
        deployed.send("users", *({"id": n, "city": f"{n} {turn}", "moved_at": moved_at} for n in range(4)))
        deployed.send("orders", *map(order, again))
        deployed.send(
            "payments", *({"order_id": n, "ts": order(n + n % 20)["ts"]} for n in range(40 * turn, 40 * turn + 40))
        )
        with short_lived(lamina, spark, LAMINA_STOP_AT=place) as process:
            _, stderr = process.communicate(timeout=PATIENCE)
        assert process.returncode == -9, stderr
        if place == "inside the commit":
            shutil.rmtree(deployed.deployment.settings.home / "checkpoints")
        deployed.catch_up()
    totals = "SELECT (SELECT sum(orders) FROM lived), (SELECT sum(amount) FROM lived), (SELECT sum(orders) FROM live)"
    totals += ", (SELECT count(*) FROM paid), (SELECT count(ts) FROM paid)"
    expected = (120, Decimal("300.00"), 96, 120, 96)
    assert one(deployed.rows(totals)) == expected
    # User 1 ordered 12 times in each hour, and lived in a city of its own in each.
    assert deployed.rows("SELECT city, orders FROM lived WHERE city LIKE '1 %' ORDER BY city") == [
        ("1 0", 12),
        ("1 1", 12),
    ]
    with deployed.killed_at("after go-live"):
        deployed.deployment.batch.rebuild()
    deployed.send("orders", *map(order, range(120)))
    deployed.catch_up()
    assert one(deployed.rows(totals)) == expected
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    assert one(deployed.rows(totals)) == expected
    deployed.check()


def test_the_speed_layer_may_be_killed_repeatedly_during_a_replay(
    deployed: Deployed, lamina: CommandLine, spark: SparkSession
) -> None:
    """Each process is killed within the first micro-batches that it commits, at a random moment."""
    deployed.apply(**CATALOG)
    moments = random.Random(20)
    deployed.send("events", *(event(n) for n in range(20_000)))
    end = deployed.deployment.brokers.latest(deployed.topic("events"))
    for _ in range(ROUNDS):
        before = deployed.progress("events")
        with short_lived(lamina, spark, max_records=200) as process:
            deployed.until(lambda: deployed.progress("events") != before or process.poll() is not None, "it commits")  # noqa: B023
            time.sleep(moments.uniform(0, 0.3))
        assert process.returncode == -9
        # In one snapshot, because Postgres may finish the commit of a process that was killed.
        below = "(SELECT sum(next_offset) FROM lamina.offsets WHERE view = 'totals')"
        shown, counted = one(deployed.rows(f"SELECT events, {below} FROM totals"))
        assert shown == counted
        if deployed.progress("events") == end:
            deployed.send("events", *(event(n) for n in range(2_000)))
            end = deployed.deployment.brokers.latest(deployed.topic("events"))
    deployed.catch_up()
    deployed.check()


def test_the_next_rebuild_finds_a_killed_one(deployed: Deployed, quick_lamina: CommandLine) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(50)))
    deployed.catch_up()
    assert quick_lamina("rebuild", code=None, LAMINA_STOP_AT="after hand-over").code == -9
    deployed.send("events", event(50))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (51,)
    [proof] = deployed.deployment.batch.rebuild()
    assert proof.differing == 0
    deployed.check()
