"""Leaps: a rebuild takes its queries over and lands at the end of the log, beyond what Kafka still holds."""

from __future__ import annotations

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from serving_layer.promise import progress, rebuilds
from serving_layer.promise.rebuilds import Scheduler
from tests.fix_catalogs import CLICKS, EVENTS, HOURLY, TOTALS, USERS, event
from tests.fix_lamina import Deployed, hurried, one
from view_algebra.errors import LaminaError


def test_a_repeated_request_restarts_a_leap_that_died_while_sealing(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    batch = deployed.deployment.batch
    with deployed.deployment.database.begin() as connection:
        died = rebuilds.begin(connection, ["totals"], leap=True, by=Scheduler("Monday"))
    id = batch.leap_seal(by=Scheduler("Monday"))
    assert id > died
    with deployed.deployment.database.begin() as connection:
        assert rebuilds.get(connection, died).state == "failed"
    batch.abandon(id)


def test_a_running_speed_layer_waits_for_a_leap_and_continues_from_it(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, hourly=HOURLY)
    deployed.send("events", *(event(n) for n in range(50)))
    with deployed.speed(max_records=10):
        deployed.wait_for("events")
        deployed.deployment.at = lambda place: (
            deployed.send("events", *(event(n) for n in range(50, 60))) if place == "after seal" else None
        )
        deployed.deployment.batch.rebuild(leap=True)
        deployed.send("events", *(event(n) for n in range(60, 70)))
        deployed.wait_for("events")
    assert one(deployed.rows("SELECT events FROM totals")) == (70,)
    deployed.check()


def _outrun_by_retention(deployed: Deployed, kafka_admin: KafkaAdminClient) -> None:
    """Sends 30 events: the first ten are counted, all are archived, and retention leaves the last five."""
    deployed.send("events", *(event(n) for n in range(10)), partition=0)
    deployed.catch_up()
    deployed.send("events", *(event(n) for n in range(10, 30)), partition=0)
    deployment = deployed.deployment
    source = deployment.deployed().sources["events"]
    deployment.batch.logs.archive(source, deployment.brokers.latest(source.topic))
    kafka_admin.delete_records({TopicPartition(source.topic, 0): 25})


def test_a_leap_heals_a_speed_layer_after_a_long_outage(deployed: Deployed, kafka_admin: KafkaAdminClient) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, hourly=HOURLY)
    deployment = deployed.deployment
    _outrun_by_retention(deployed, kafka_admin)
    with pytest.raises(LaminaError, match="removed by retention before they were read"):
        deployed.catch_up()
    deployed.send("events", event(30), b"not JSON", partition=1)
    deployment.batch.rebuild(["totals"], leap=True)
    with deployment.database.begin() as connection:
        kept = connection.exec_driver_sql('SELECT partition, "offset", value FROM lamina.quarantine').all()
    assert [(partition, offset, bytes(value)) for partition, offset, value in kept] == [(1, 1, b"not JSON")]
    assert one(deployed.rows("SELECT events FROM totals")) == (31,)
    assert one(deployed.rows("SELECT sum(events) FROM hourly")) == (31,)
    deployed.send("events", event(31))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (32,)
    deployed.check()


def test_a_leap_shows_bad_records_when_it_lands_and_skips_views_dropped_meanwhile(
    deployed: Deployed,
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS, hourly=HOURLY, users=USERS)
    deployed.send("events", event(0), b"bad", partition=0)
    deployed.catch_up()
    deployed.send("events", event(1), event(3), b"not JSON", b"[]", partition=0)
    deployment = deployed.deployment
    seen: list[int] = []

    def drop(view: str) -> None:
        del deployed.files[f"{view}.sql"]
        deployed.apply()

    with deployed.killed_at("after go-live"):
        deployment.batch.rebuild(leap=True)
    assert _bad(deployed) == 1, "of a leap that died, none"

    def at(place: str) -> None:
        seen.append(_bad(deployed))
        if place == "compute clicks":
            drop("clicks")
        if place == "after compute totals":
            drop("users")

    deployment.at = at
    deployment.tell = lambda line: (
        drop("hourly") if line.endswith("archived") and "hourly.sql" in deployed.files else None
    )
    deployment.batch.rebuild(leap=True)
    assert set(seen[:-2]) == {1}
    assert seen[-2:] == [3, 3], "after hand-over, and after retire"
    assert one(deployed.rows("SELECT events FROM totals")) == (3,)
    deployed.send("events", event(4), partition=0)
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (4,)
    deployed.check()


def _bad(deployed: Deployed) -> int:
    return int(one(deployed.rows("SELECT coalesce(sum(records), 0) FROM lamina.bad_records"))[0])


def test_a_query_idle_during_a_leap_continues_from_it(deployed: Deployed) -> None:
    """It learns of the leap by its next commit, when the leap has landed long ago."""
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(50)))
    with deployed.speed():
        deployed.wait_for("events")
        deployed.deployment.batch.rebuild(leap=True)
        deployed.send("events", *(event(n) for n in range(50, 60)))
        deployed.wait_for("events")
    assert one(deployed.rows("SELECT events FROM totals")) == (60,)
    deployed.check()


OTHERS = {
    "others": "CREATE TABLE others (x BIGINT) USING kafka OPTIONS (topic '{topics}_others', format 'json');",
    "xs": "CREATE VIEW xs AS SELECT sum(x) AS x FROM others;",
}


def test_a_leap_heals_one_query_while_the_others_continue(deployed: Deployed, kafka_admin: KafkaAdminClient) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, **OTHERS)
    deployment = deployed.deployment
    _outrun_by_retention(deployed, kafka_admin)

    def stopped() -> str | None:
        with deployment.database.begin() as connection:
            return progress.queries(connection)["events"].stopped

    with deployed.speed(clock=hurried):
        deployed.until(lambda: "before they were read" in (stopped() or ""), "the query is refused")
        deployed.send("others", {"x": 1})
        deployed.wait_for("others")
        deployment.batch.rebuild(["totals"], leap=True)
        deployed.send("events", event(30))
        deployed.wait_for("events")
        deployed.send("others", {"x": 2})
        deployed.wait_for("others")
        assert stopped() is None
    assert one(deployed.rows("SELECT events FROM totals")) == (31,)
    deployed.check()


def test_a_stream_outside_a_leap_is_read_as_before(deployed: Deployed, kafka_admin: KafkaAdminClient) -> None:
    """It feeds no view, and retention removes its records before they are archived."""
    deployed.apply(events=EVENTS, totals=TOTALS, others=OTHERS["others"])
    deployed.send("others", *({"x": n} for n in range(5)), partition=0)
    deployed.send("events", event(0))
    narration: list[str] = []
    with deployed.speed():
        deployed.wait_for("others")
        kafka_admin.delete_records({TopicPartition(deployed.topic("others"), 0): 3})
        deployed.deployment.tell = narration.append
        deployed.deployment.batch.rebuild(leap=True)
        assert "others, which feeds no view, is left out" in "\n".join(narration)
        deployed.send("others", {"x": 5}, partition=0)
        deployed.wait_for("others")
        deployed.send("events", event(1))
        deployed.wait_for("events")
    assert one(deployed.rows("SELECT events FROM totals")) == (2,)


@pytest.mark.parametrize("named", [(), ("others",)], ids=["all", "by its name"])
def test_a_leap_also_moves_a_stream_that_feeds_no_view(
    deployed: Deployed, kafka_admin: KafkaAdminClient, named: tuple[str, ...]
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, others=OTHERS["others"])
    deployed.send("others", *({"x": n} for n in range(5)), partition=0)
    deployed.catch_up()
    deployed.send("others", *({"x": n} for n in range(10)), b"not JSON", partition=0)
    deployment = deployed.deployment
    source = deployment.deployed().sources["others"]
    deployment.batch.logs.archive(source, deployment.brokers.latest(source.topic))
    kafka_admin.delete_records({TopicPartition(source.topic, 0): 12})
    with pytest.raises(LaminaError, match="removed by retention before they were read"):
        deployed.catch_up()
    deployment.batch.rebuild(named, leap=True)
    deployed.send("others", {"x": 1}, partition=0)
    deployed.catch_up()
    with deployment.database.begin() as connection:
        assert progress.read(connection, ["others"])[TopicPartition(source.topic, 0)] == 17
    assert _bad(deployed) == 1
    deployed.apply(events=EVENTS, totals=TOTALS, **OTHERS)
    deployment.batch.rebuild(["xs"])
    assert one(deployed.rows("SELECT x FROM xs")) == (10 + 45 + 1,)
    deployed.check()


def test_a_leap_lands_a_stream_without_views_at_its_archived_end_and_its_table_at_the_cut(
    deployed: Deployed,
) -> None:
    table = OTHERS["others"].replace("x BIGINT", "x BIGINT PRIMARY KEY").replace("TABLE others", "TABLE named")
    by_name = "CREATE VIEW by_name AS SELECT count(*) AS n FROM named;"
    deployed.apply(others=OTHERS["others"], named=table, by_name=by_name)
    deployed.send("others", *((str(n).encode(), {"x": n}) for n in range(5)), partition=0)
    deployed.catch_up()
    deployment = deployed.deployment
    source = deployment.deployed().sources["others"]

    def archive(place: str) -> None:
        if place.startswith("compute"):
            deployed.send("others", *((str(n).encode(), {"x": n}) for n in range(5, 9)), b"not JSON", partition=0)
            deployment.batch.logs.archive(source, deployment.brokers.latest(source.topic))

    deployment.at = archive
    deployment.batch.rebuild(leap=True)
    with deployment.database.begin() as connection:
        at = {name: progress.read(connection, [name])[TopicPartition(source.topic, 0)] for name in ("others", "named")}
    assert at == {"others": 10, "named": 5}
    deployment.at = lambda place: None
    deployed.catch_up()
    assert one(deployed.rows("SELECT n FROM by_name")) == (9,)
    deployed.check()


def test_a_leap_that_cannot_be_sealed_returns_its_queries(deployed: Deployed, kafka_admin: KafkaAdminClient) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(10)), partition=0)
    deployed.catch_up()
    kafka_admin.delete_records({TopicPartition(deployed.topic("events"), 0): 4})
    with pytest.raises(LaminaError, match="removed by retention before they were archived"):
        deployed.deployment.batch.leap_seal(by=Scheduler())
    with deployed.deployment.database.begin() as connection:
        assert not rebuilds.is_leaping(connection)
        assert connection.exec_driver_sql("SELECT state FROM lamina.rebuild").scalar() == "failed"
    deployed.send("events", event(10))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (11,)
