"""Streams with UNIQUE: an event counts once, for any number of copies and any division into micro-batches."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

import pytest

from lamina.operations import applying
from serving_layer.upkeep import dropping
from tests.fix_lamina import CommandLine, Deployed, one
from view_algebra.errors import LaminaError

PAYMENTS = """
    CREATE TABLE payments (id BIGINT, till STRING, amount BIGINT, UNIQUE (id, till))
    USING kafka OPTIONS (topic '{topics}_payments', format 'json') TBLPROPERTIES ('partitions' = '3');
"""

WITHIN_AN_HOUR = PAYMENTS.replace("'partitions' = '3'", "'partitions' = '3', 'dedupe_within' = '1 hour'")

VIEWS = {
    "takings": "CREATE VIEW takings AS SELECT till, count(*) AS n, sum(amount) AS amount FROM payments GROUP BY till;",
    "receipts": "CREATE VIEW receipts AS SELECT id, till, amount FROM payments WHERE amount > 0;",
    "tills": "CREATE VIEW tills AS SELECT count(DISTINCT till) AS tills, max(amount) AS largest FROM payments;",
}

ALL = "SELECT coalesce(sum(n), 0)::int, coalesce(sum(amount), 0)::int FROM takings"

NOON = 1_700_000_000_000
"""Milliseconds, the unit of Kafka's timestamps."""


def payment(id: int | None, amount: int = 1, till: str | None = "a") -> dict[str, object]:
    return {"id": id, "till": till, "amount": amount}


def sent_at(deployed: Deployed, milliseconds: int, *values: dict[str, object], partition: int = 0) -> None:
    topic = deployed.topic("payments")
    for value in values:
        deployed.producer.send(topic, json.dumps(value).encode(), partition=partition, timestamp_ms=milliseconds)
    deployed.producer.flush()


def duplicates_and_conflicts(deployed: Deployed) -> tuple[int, int]:
    """The numbers of duplicates and of conflicts."""
    duplicates, conflicts = one(deployed.owner("SELECT duplicates, conflicts FROM lamina.query"))
    return duplicates, conflicts


def failing_at(deployed: Deployed, place: str, times: int = 1) -> Callable[[], None]:
    """Makes the speed layer fail at a point until the returned function is called."""
    left = [times]

    def at(reached: str) -> None:
        if reached == place and left[0]:
            left[0] -= 1
            raise OSError(f"stopped {place}")

    before = deployed.deployment.at
    deployed.deployment.at = at

    def restore() -> None:
        deployed.deployment.at = before

    return restore


def test_an_event_counts_once_in_every_view_of_its_stream(deployed: Deployed) -> None:
    deployed.apply(payments=PAYMENTS, **VIEWS)
    deployed.send("payments", payment(1), payment(2), payment(1), partition=0)  # in one micro-batch
    deployed.send("payments", payment(2), payment(1, till="b"), partition=1)  # across partitions, and another event
    deployed.catch_up()
    deployed.send("payments", payment(1), payment(3), partition=2)  # across micro-batches, and a new checkpoint
    deployed.catch_up()
    assert deployed.rows(ALL) == [(4, 4)]
    assert sorted(deployed.rows("SELECT id, till FROM receipts")) == [(1, "a"), (1, "b"), (2, "a"), (3, "a")]
    assert duplicates_and_conflicts(deployed) == (3, 0)
    assert {proof.differing for proof in deployed.deployment.batch.rebuild()} == {0}
    deployed.send("payments", payment(3), payment(4), partition=0)  # across the cut
    deployed.catch_up()
    assert deployed.rows(ALL) == [(5, 5)]
    deployed.check()


def test_a_producer_that_sends_30_000_records_twice_more_changes_no_number(
    deployed: Deployed, lamina: CommandLine
) -> None:
    deployed.apply(payments=PAYMENTS, **VIEWS)
    sent, topic = 30_000, deployed.topic("payments")
    values = [json.dumps(payment(id, amount=id % 7, till="ab"[id % 2])).encode() for id in range(sent)]
    for turn in range(3):
        for id, value in enumerate(values):
            deployed.producer.send(topic, value, partition=(id + turn) % 3)
        deployed.producer.flush()
        deployed.catch_up()
        assert deployed.rows(ALL) == [(sent, sum(id % 7 for id in range(sent)))]
        assert one(deployed.rows("SELECT tills, largest FROM tills")) == (2, 6)
        assert one(deployed.rows("SELECT count(*), count(DISTINCT id) FROM receipts")) == (sent - sent // 7 - 1,) * 2
    assert deployed.rows("SELECT * FROM lamina.duplicates") == [("payments", 2 * sent, 0)]
    shown = lamina("status").out
    assert "60,000" in shown, shown
    assert lamina("status", "--json").lines()[0]["queries"][0]["duplicates"] == 2 * sent


def test_an_event_without_an_id_is_not_a_copy_and_a_bad_record_claims_no_id(deployed: Deployed) -> None:
    deployed.apply(payments=PAYMENTS, **VIEWS)
    bad = b'{"id": 7, "till": "a", "amount": "much"}'
    deployed.send("payments", payment(None), payment(None), payment(7, till=None), payment(7, till=None), bad)
    deployed.catch_up()
    deployed.send("payments", payment(None), payment(7))
    deployed.catch_up()
    assert deployed.rows(ALL) == [(6, 6)]
    assert duplicates_and_conflicts(deployed) == (0, 0)
    deployed.check()


@pytest.mark.parametrize("place", ["before computing", "before the commit", "inside the commit", "after the commit"])
def test_a_micro_batch_that_fails_leaves_no_id_behind(deployed: Deployed, place: str) -> None:
    deployed.apply(payments=PAYMENTS, **VIEWS)
    deployed.send("payments", *(payment(id) for id in range(20)), *(payment(id) for id in range(20)))
    restore = failing_at(deployed, place)
    with deployed.speed(max_records=7):
        deployed.wait_for("payments")
    restore()
    assert deployed.rows(ALL) == [(20, 20)]
    assert duplicates_and_conflicts(deployed) == (20, 0)
    deployed.check()


def test_a_rebuild_counts_the_least_copy_even_if_another_came_first(deployed: Deployed) -> None:
    deployed.apply(payments=PAYMENTS, **VIEWS)
    sent_at(deployed, NOON + 20, payment(7, amount=1), payment(8, amount=5))
    deployed.catch_up()
    sent_at(
        deployed, NOON + 10, payment(7, amount=9), payment(8, amount=5), partition=1
    )  # one copy differs, one does not
    deployed.catch_up()
    assert deployed.rows(ALL) == [(2, 6)]
    assert duplicates_and_conflicts(deployed) == (2, 1)
    sent_at(deployed, NOON + 10, payment(7, amount=9), partition=2)  # a conflict is counted once
    deployed.catch_up()
    assert duplicates_and_conflicts(deployed) == (3, 1)
    assert {proof.view: proof.differing > 0 for proof in deployed.deployment.batch.rebuild()} == dict.fromkeys(
        VIEWS, True
    )
    assert deployed.rows(ALL) == [(2, 14)]
    assert sorted(deployed.rows("SELECT id, amount FROM receipts")) == [(7, 9), (8, 5)]
    deployed.check()


def test_a_duplicate_after_the_horizon_is_corrected_by_the_next_rebuild(deployed: Deployed) -> None:
    deployed.apply(payments=WITHIN_AN_HOUR, **VIEWS)
    minutes = 60_000
    for partition in range(3):
        sent_at(deployed, NOON, payment(100 + partition), partition=partition)
    sent_at(deployed, NOON, payment(1))
    deployed.catch_up()
    sent_at(deployed, NOON + 59 * minutes, payment(1), partition=1)
    deployed.catch_up()
    assert duplicates_and_conflicts(deployed) == (1, 0), "within the horizon"
    for partition in range(3):
        sent_at(deployed, NOON + 200 * minutes, payment(200 + partition), partition=partition)
        deployed.catch_up()
        sent_at(deployed, NOON + 200 * minutes, payment(1), partition=partition)
        deployed.catch_up()
    assert deployed.rows(ALL) == [(8, 8)], (
        "the id is kept until the last partition has passed the horizon, then counted again"
    )
    assert duplicates_and_conflicts(deployed) == (3, 0)
    names = {name for (name,) in deployed.owner("SELECT 'ids_' || id FROM lamina.ids")}
    dropping.drop_unused(deployed.deployment.database)
    left = "SELECT relname FROM pg_class WHERE relname ~ '^ids_[0-9]+$' AND relkind = 'r'"
    assert {name for (name,) in deployed.owner(left)} == names
    assert any(proof.differing for proof in deployed.deployment.batch.rebuild())
    assert deployed.rows(ALL) == [(7, 7)]
    deployed.check()


def test_ids_claimed_before_a_horizon_was_declared_are_forgotten_together(deployed: Deployed) -> None:
    deployed.apply(payments=PAYMENTS, **VIEWS)

    def every_partition(id: int) -> None:
        for partition in range(3):
            sent_at(deployed, round(time.time() * 1000), payment(id + partition), partition=partition)
        deployed.catch_up()

    every_partition(10)
    [(kept_forever,)] = deployed.owner("SELECT id FROM lamina.ids WHERE begins IS NULL")
    deployed.apply(payments=WITHIN_AN_HOUR)
    every_partition(20)
    assert deployed.owner("SELECT id FROM lamina.ids WHERE begins IS NULL") == []
    deployed.owner(f"UPDATE lamina.ids SET ends = ends - 2 * 3600000000 WHERE id = {kept_forever}")
    every_partition(30)
    assert deployed.owner(f"SELECT id FROM lamina.ids WHERE id = {kept_forever}") == []
    assert deployed.rows(ALL) == [(9, 9)]


def test_a_leap_gathers_the_ids_below_its_cut(deployed: Deployed) -> None:
    deployed.apply(payments=PAYMENTS, **VIEWS)
    deployed.send("payments", payment(1), payment(2))
    deployed.catch_up()
    deployed.send("payments", payment(2), payment(3), payment(3))
    deployed.deployment.batch.rebuild(leap=True)
    assert deployed.rows(ALL) == [(3, 3)]
    assert duplicates_and_conflicts(deployed) == (2, 0)
    deployed.send("payments", payment(1), payment(3), payment(4))
    deployed.catch_up()
    assert deployed.rows(ALL) == [(4, 4)]
    deployed.check()


def test_a_source_declared_again_forgets_its_earlier_ids(deployed: Deployed) -> None:
    deployed.apply(payments=PAYMENTS, **VIEWS)
    deployed.send("payments", payment(1))
    deployed.catch_up()
    files = deployed.files
    deployed.files = {}
    deployed.apply(other=PAYMENTS.replace("payments", "others"))
    deployed.files = files
    deployed.apply()
    deployed.catch_up()
    assert deployed.rows(ALL) == [(1, 1)]
    deployed.check()


def test_a_stream_that_gains_a_column_keeps_its_ids(deployed: Deployed) -> None:
    deployed.apply(payments=PAYMENTS, **VIEWS)
    deployed.send("payments", payment(1), payment(2), payment(2))
    deployed.catch_up()
    wider = PAYMENTS.replace("amount BIGINT,", "amount BIGINT, note STRING,")
    opened = deployed.deployment
    with pytest.raises(LaminaError, match="cannot be previewed with other columns"):
        applying.preview(opened, "dev", {**deployed.files, "payments.sql": wider.replace("{topics}", deployed.prefix)})
    applying.preview(opened, "dev", deployed.files)
    with pytest.raises(LaminaError) as refused:
        deployed.apply(payments=wider)
    assert "the preview dev reads it as it is deployed" in str(refused.value)
    applying.drop_preview(opened, "dev")
    notes = "CREATE VIEW notes AS SELECT note, count(*) AS n FROM payments GROUP BY note;"
    deployed.apply(payments=wider, tills=VIEWS["tills"].replace("max(amount)", "min(amount)"), notes=notes)
    assert deployed.rows(ALL) == [(2, 2)]
    deployed.send("payments", payment(1) | {"note": "again"}, payment(3) | {"note": "new"})
    deployed.catch_up()
    assert deployed.rows(ALL) == [(3, 3)]
    assert sorted(deployed.rows("SELECT note, n FROM notes"), key=str) == [("new", 1), (None, 2)]
    deployed.check()


def test_random_events_count_once(deployed: Deployed) -> None:
    """Copies in any partition, with any time, in micro-batches of any size, with rebuilds in between."""
    deployed.apply(payments=PAYMENTS, **VIEWS)
    chance = random.Random(11)
    for turn in range(6):
        for _ in range(60):
            id = chance.choice([None, *range(40)])
            value = payment(id, amount=0 if id is None else id % 7, till=chance.choice(["a", "b"]))
            sent_at(deployed, NOON + chance.randrange(1_000), value, partition=chance.randrange(3))
        with deployed.speed(max_records=chance.choice([3, 20, 1_000])):
            deployed.wait_for("payments")
        deployed.check()
        if turn % 3 == 1:
            proven = {proof.view: proof.differing for proof in deployed.deployment.batch.rebuild()}
            assert {proven["takings"], proven["tills"]} == {0}  # rows are keyed by offsets, and each copy has another
    distinct = "SELECT count(DISTINCT (id, till)) = count(*) FILTER (WHERE id IS NOT NULL) FROM receipts"
    assert one(deployed.rows(distinct)) == (True,)


@pytest.mark.parametrize(("kind", "other_kind", "bad"), [("INT", "STRING", "a text"), ("STRING", "INT", "a\0b")])
def test_a_unique_stream_only_gains_columns_so_that_no_bad_record_becomes_an_unknown_copy(
    deployed: Deployed, kind: str, other_kind: str, bad: str
) -> None:
    noted = PAYMENTS.replace("amount BIGINT,", f"amount BIGINT, note {kind},")
    deployed.apply(payments=noted, takings=VIEWS["takings"])
    deployed.send("payments", payment(1), {**payment(2), "note": bad}, partition=0)
    deployed.catch_up()
    assert deployed.rows("SELECT records FROM lamina.bad_records") == [(1,)]
    for other in (PAYMENTS, noted.replace(f"note {kind}", f"note {other_kind}")):
        with pytest.raises(LaminaError) as refused:
            deployed.apply(payments=other)
        assert "records that were bad would be good now" in str(refused.value)
    deployed.send("payments", payment(2), partition=0)
    deployed.catch_up()
    assert deployed.rows(ALL) == [(2, 2)]
    deployed.check()
