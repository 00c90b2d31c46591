"""Rebuilds over a real master log: sealed, computed, proven, handed over, while records keep coming."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from batch_layer.renewals import roll_back
from batch_layer.verify import verify
from lamina.reports.statuses import read_alarms
from lamina.terminal.failures import in_our_words
from serving_layer.catalog import lookup
from serving_layer.change import rollbacks
from serving_layer.promise import progress, rebuilds
from serving_layer.promise.rebuilds import Scheduler
from serving_layer.readers.receipts import Receipt
from speed_layer import judge
from tests.fix_catalogs import CATALOG, CLICKS, EVENTS, HOURLY, PLACES, TOTALS, USERS, event
from tests.fix_lamina import CommandLine, Deployed, one
from view_algebra.errors import LaminaError

STEPS = (
    "after seal",
    "after archive",
    "compute totals",
    "after compute totals",
    "absorbed",
    "after go-live",
    "after prove",
    "after check",
    "noted",
    "after hand-over",
    "after retire",
)
"""The steps at which a rebuild may die."""


def test_a_rebuild_under_traffic_reads_records_once_and_hands_over_equal_cells(deployed: Deployed) -> None:
    deployed.apply(**CATALOG)
    deployed.send("events", *(event(n) for n in range(300)))
    deployed.catch_up()
    kept: dict[str, int] = {}
    counted: list[int] = []

    def traffic(step: str) -> None:
        kept[step] = kept_in_spark(deployed)
        sent = 300 + 50 * len(counted)
        deployed.send("events", *(event(n) for n in range(sent, sent + 50)))
        deployed.catch_up()
        counted.append(one(deployed.rows("SELECT events FROM totals"))[0])

    deployed.deployment.at = traffic
    batch = deployed.deployment.batch
    deployed.deployment.at = lambda step: None  # `traffic` runs the speed layer, whose steps are not the rebuild's
    proofs = batch.rebuild()
    assert {proof.view for proof in proofs} == {"hourly", "totals", "users", "clicks"}
    assert all(proof.cells > 0 and proof.differing == 0 for proof in proofs)
    assert kept.keys() >= {"after seal", "after archive", "compute totals", "after go-live", "after hand-over"}
    assert counted == [300 + 50 * turn for turn in range(1, len(counted) + 1)], "50 more records after every step"
    assert one(deployed.rows("SELECT events FROM totals")) == (counted[-1],)
    assert [kept[f"compute {view}"] for view in ("clicks", "hourly", "totals", "users")] == [1, 1, 1, 1]
    assert kept["after go-live"] == 0
    deployed.check()


def kept_in_spark(deployed: Deployed) -> int:
    """The number of results that Spark caches."""
    return int(deployed.deployment.spark.sparkContext._jsc.getPersistentRDDs().size())


def test_a_rebuild_lists_hopping_windows_that_reach_beyond_the_calendar(deployed: Deployed) -> None:
    hops = "window(ts, '1 hour', '30 minutes')"
    by_hop = f"count(*) AS n FROM events GROUP BY {hops}"
    events = "CREATE TABLE events (id INT, ts TIMESTAMP) USING kafka OPTIONS (topic '{topics}_events', format 'json');"
    deployed.apply(
        events=events,
        ends=f"CREATE VIEW ends AS SELECT {hops}.end AS b, {by_hop};",
        users=f"CREATE VIEW users AS SELECT {hops}.end AS b, count(DISTINCT id) AS n FROM events GROUP BY {hops};",
        hops=f"CREATE VIEW hops AS SELECT {hops}.start AS a, {hops}.end AS b, {by_hop};",
    )
    times = ("0001-01-01T00:00:00Z", "2024-03-01T10:10:00Z", "9999-12-31T23:59:59Z")
    deployed.send("events", *({"id": id, "ts": ts} for id, ts in enumerate(times)))
    deployed.catch_up()

    def shown() -> list[list[tuple[object, ...]]]:
        columns = {"ends": "b::text, n", "users": "b::text, n", "hops": "a::text, b::text, n"}
        return [deployed.rows(f"SELECT {columns[view]} FROM {view} ORDER BY 1, 2") for view in columns]

    ends = ["0001-01-01 01:00:00+00", "2024-03-01 10:30:00+00", "2024-03-01 11:00:00+00", None, None, None]
    assert shown()[:2] == [[(end, 1) for end in ends]] * 2
    starts = ["0001-01-01 00", "2024-03-01 09:30", "2024-03-01 10", "9999-12-31 23", "9999-12-31 23:30"]
    assert shown()[2] == [
        *((f"{a}:00:00+00" if len(a) == 13 else f"{a}:00+00", b, 1) for a, b in zip(starts, ends, strict=False)),
        (None, None, 1),
    ]
    deployed.check()
    live = shown()
    assert [proof.differing for proof in deployed.deployment.batch.rebuild()] == [0, 0, 0]
    assert shown() == live


def test_a_second_rebuild_retires_the_generation_before_the_last(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", event(1))
    deployed.catch_up()
    for _ in range(3):
        deployed.deployment.batch.rebuild()
    with deployed.deployment.database.begin() as connection:
        states = [(generation.id, generation.state) for generation in lookup.find(connection)]
    assert [state for _, state in states] == ["retired", "retired", "live", "live"]


def test_a_rebuild_may_die_at_any_step_and_the_next_one_succeeds(deployed: Deployed) -> None:
    """The next one dies a step later, and the last one finds what all of them have left."""
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    for sent, step in enumerate(STEPS, 21):
        with deployed.killed_at(step):
            deployed.deployment.batch.rebuild()
        deployed.send("events", event(sent))
        deployed.catch_up()
        assert one(deployed.rows("SELECT events FROM totals")) == (sent,), step
    proofs = deployed.deployment.batch.rebuild()
    assert [proof.differing for proof in proofs] == [0, 0]
    deployed.check()


def test_two_rebuilds_at_once_are_refused(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    batch = deployed.deployment.batch
    id = batch.seal(by=Scheduler())
    with pytest.raises(LaminaError, match=f"Rebuild {id} is running") as refused:
        batch.rebuild()
    assert "its last step, seal, ended 0 min ago. Another may begin when it is done, or 5 h 59" in str(refused.value)
    assert f"`lamina step abandon --rebuild {id}`" in refused.value.way_out
    with pytest.raises(LaminaError, match=f"Rebuild {id} is running"):
        batch.seal(by=Scheduler())
    batch.abandon(id)
    batch.rebuild()


def test_a_repeated_request_begins_one_rebuild(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    batch = deployed.deployment.batch
    id = batch.seal(by=Scheduler("Monday"))
    assert batch.seal(by=Scheduler("Monday")) == id
    with pytest.raises(LaminaError, match=f"Rebuild {id} is running"):
        batch.seal(by=Scheduler("Tuesday"))
    batch.abandon(id)
    leap = batch.leap_seal(by=Scheduler("Monday"))
    assert leap > id
    assert batch.leap_seal(by=Scheduler("Monday")) == leap
    batch.abandon(leap)


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


def test_a_rebuild_in_one_process_keeps_a_scheduler_out(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    refused: list[Any] = []

    def meanwhile(place: str) -> None:
        if place == "after seal":
            with pytest.raises(LaminaError, match="is running") as caught:
                deployed.deployment.batch.seal(by=Scheduler())
            refused.append(caught.value)

    deployed.deployment.at = meanwhile
    deployed.deployment.batch.rebuild()
    assert refused


def test_every_step_can_be_repeated(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    batch = deployed.deployment.batch
    id = batch.seal(by=Scheduler())
    for _ in range(2):
        batch.archive(id)
    away = replace(batch, dsn="postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(Exception, match="Connection refused") as refused:
        away.compute(id, "totals")
    error = in_our_words(refused.value)
    assert error is not None
    assert error.what == "Postgres went away during the command"
    assert len(error.evidence.splitlines()) == 1, "of a page of Java's"
    batch.compute(id, "totals")
    with deployed.deployment.database.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE lamina.generation_cells SET loaded_at = NULL"
            " WHERE generation = (SELECT max(id) FROM lamina.generation)"
        )
    for _ in range(2):
        batch.compute(id, "totals")
    for _ in range(2):
        batch.go_live(id)
    for _ in range(2):
        [proof] = batch.prove(id)
        assert proof.differing == 0
    with pytest.raises(LaminaError, match="was not handed over"):
        batch.retire(id)
    for _ in range(2):
        batch.hand_over(id)
    for _ in range(2):
        batch.retire(id)
    with deployed.deployment.database.begin() as connection:
        assert rebuilds.get(connection, id).state == "done"
    deployed.check()


def test_a_view_dropped_during_a_rebuild_does_not_fail_the_others(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, hourly=HOURLY)
    deployed.send("events", event(1))
    deployed.catch_up()
    batch = deployed.deployment.batch
    id = batch.seal(by=Scheduler())
    batch.archive(id)
    deployed.apply(hourly="")
    batch.compute_unless_dropped(id, "hourly")
    with pytest.raises(LaminaError):
        batch.compute_unless_dropped(id, "hourlies")
    batch.compute_unless_dropped(id, "totals")
    batch.go_live(id)
    batch.prove(id)
    assert batch.hand_over(id) == []
    batch.retire(id)
    assert one(deployed.rows("SELECT events FROM totals")) == (1,)


def test_views_are_proven_one_by_one_and_the_hand_over_names_those_with_new_rows(
    deployed: Deployed, quick_lamina: CommandLine
) -> None:
    hold = TOTALS.replace("VIEW totals AS", "VIEW totals TBLPROPERTIES ('on_difference' = 'hold') AS")
    deployed.apply(events=EVENTS, hourly=HOURLY, places=PLACES, totals=hold)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    batch = deployed.deployment.batch
    id = batch.seal(by=Scheduler())
    batch.archive(id)
    for name in ("hourly", "totals"):
        batch.compute(id, name)
    live = quick_lamina("step", "go-live", "--json").lines()[-1]
    assert live == {"rebuild": id, "views": ["hourly", "totals"]}

    with pytest.raises(LaminaError, match=f"Rebuild {id} has no view total"):
        batch.prove(id, ["total"])
    proven = quick_lamina("step", "prove", "hourly", "--json").lines()
    assert [proof["view"] for proof in proven] == ["hourly"]

    handed = quick_lamina("step", "hand-over", "--json", code=3).lines()[-1]
    assert handed == {"rebuild": id, "handed_over": ["hourly", "places"], "held": ["totals"]}, "it is not proven"


def test_a_view_is_due_once_its_published_generation_reaches_the_declared_age(
    deployed: Deployed, quick_lamina: CommandLine
) -> None:
    weekly = TOTALS.replace("VIEW totals AS", "VIEW totals TBLPROPERTIES ('rebuild_every' = '7 days') AS")
    deployed.apply(events=EVENTS, totals=weekly)
    assert quick_lamina("step", "seal", "--due", "--json").lines() == [{"rebuild": None, "views": []}]
    deployed.apply(hourly=HOURLY)
    assert deployed.deployment.batch.due() == ["hourly"]

    def as_old_as(age: str) -> list[str]:
        with deployed.deployment.database.begin() as connection:
            opened = f"UPDATE lamina.generation SET opened_at = clock_timestamp() - interval '{age}'"
            connection.exec_driver_sql(f"{opened} WHERE view = 'totals'")
        return deployed.deployment.batch.due()

    assert as_old_as("6 days 22 hours") == ["hourly"]
    assert as_old_as("6 days 23 hours 30 minutes") == ["hourly", "totals"]
    [sealed] = quick_lamina("step", "seal", "totals", "--due", "--json").lines()
    assert sealed["views"] == ["totals"]
    deployed.deployment.batch.abandon(sealed["rebuild"])
    assert deployed.deployment.batch.due() == ["hourly", "totals"], "nothing was handed over"


def test_a_new_view_has_its_history_when_it_is_applied(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(30)))
    deployed.catch_up()
    deployed.apply(hourly=HOURLY)
    assert one(deployed.rows("SELECT sum(events) FROM hourly")) == (30,)
    deployed.send("events", event(30))
    deployed.catch_up()
    assert one(deployed.rows("SELECT sum(events) FROM hourly")) == (31,)
    deployed.check()


def test_a_proof_finds_a_wrong_cell_and_a_policy_may_hold_the_view_back(deployed: Deployed) -> None:
    held = TOTALS.replace("CREATE VIEW totals AS", "CREATE VIEW totals TBLPROPERTIES ('on_difference' = 'hold') AS")
    deployed.apply(events=EVENTS, totals=held, clicks=CLICKS, hourly=HOURLY)
    deployed.send("events", *(event(n) for n in range(30)))
    deployed.catch_up()
    with deployed.deployment.database.begin() as connection:
        before = lookup.published(connection)
        table, other, hours = (
            next(iter(lookup.get(connection, before[view]).places.values())) for view in ("totals", "clicks", "hourly")
        )
        connection.exec_driver_sql(f"DELETE FROM {table}")
        connection.exec_driver_sql(f"DELETE FROM {other} WHERE ctid = (SELECT min(ctid) FROM {other})")
        connection.exec_driver_sql(f"DELETE FROM {hours} WHERE country IS NULL OR country = 'FR'")
    proofs = {proof.view: proof for proof in deployed.deployment.batch.rebuild()}
    assert proofs["totals"].differing == 1
    assert proofs["totals"].examples
    assert proofs["clicks"].differing == 1
    assert proofs["hourly"].differing > 1
    deployed.check("clicks", "hourly")
    with deployed.deployment.database.begin() as connection:
        after = lookup.published(connection)
        rebuild = lookup.get(connection, after["clicks"]).rebuild
    assert rebuild is not None
    assert after["totals"] == before["totals"], "it is held back"
    assert after["clicks"] != before["clicks"], "the default publishes"
    alarms = [alarm for alarm in read_alarms(deployed.deployment) if "holds it back" in alarm]
    assert [alarm.partition(",")[0] for alarm in alarms] == ["totals: its proof found a difference"]
    named = held.replace("totals TBLPROPERTIES (", "sums TBLPROPERTIES ('renamed_from' = 'totals', ")
    deployed.apply_break(totals=named)
    deployed.send("events", event(30))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM sums")) != (31,), "it is held back under its new name, too"
    roll_back(deployed.deployment.database, "clicks", print)
    deployed.deployment.batch.release(rebuild)
    assert one(deployed.rows("SELECT events FROM sums")) == (31,), "what was held was kept current"
    assert not any("holds it back" in alarm for alarm in read_alarms(deployed.deployment))
    with deployed.deployment.database.begin() as connection:
        assert lookup.published(connection)["clicks"] == before["clicks"], "what was rolled back from stays withdrawn"
    deployed.deployment.batch.rebuild(["clicks"])
    deployed.check()
    with pytest.raises(LaminaError, match=f"Rebuild {rebuild} is done"):
        deployed.deployment.batch.release(rebuild)


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


def test_records_that_left_kafka_before_they_were_archived_raise_an_alarm(
    deployed: Deployed, kafka_admin: KafkaAdminClient, quick_lamina: CommandLine
) -> None:
    from lamina.reports.statuses import read_status

    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(10)), partition=0)
    deployed.catch_up()
    assert read_status(deployed.deployment).alarms == []
    assert quick_lamina("status", "--alarms").out == ""
    topic, brokers = deployed.topic("events"), deployed.deployment.brokers
    for policy, alarms in (("compact", 1), ("delete", 0)):
        kafka_admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"cleanup.policy": policy})])
        deployed.until(lambda: brokers.retention(topic).compacted == bool(alarms), policy)  # noqa: B023
        alarm_lines = read_status(deployed.deployment).alarms
        assert ["has been compacted since it was deployed" in alarm for alarm in alarm_lines] == [True] * alarms
    kafka_admin.delete_records({TopicPartition(deployed.topic("events"), 0): 4})
    [alarm] = read_status(deployed.deployment).alarms
    assert "removed by retention before they were archived" in alarm
    assert alarm in quick_lamina("status", "--alarms", code=1).err
    assert quick_lamina("status", "--alarms", "--json", code=1).lines() == [{"alarms": [alarm]}]
    with pytest.raises(LaminaError, match="removed by retention before they were archived"):
        deployed.deployment.batch.rebuild()
    assert one(deployed.rows("SELECT events FROM totals")) == (10,)


def test_a_rolled_back_view_stays_current(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", event(1))
    deployed.catch_up()
    deployed.deployment.batch.rebuild()
    deployed.send("events", event(2))
    deployed.catch_up()
    before, after = deployed.deployment.database.retrying(lambda c: rollbacks.roll_back(c, "totals"))
    assert after < before
    assert one(deployed.rows("SELECT events FROM totals")) == (2,)
    deployed.check()


def test_a_source_declared_again_counts_the_records_since_then(
    deployed: Deployed, kafka_admin: KafkaAdminClient
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(10)), partition=0)
    deployed.catch_up()
    deployed.deployment.batch.rebuild()
    topic = deployed.topic("events")
    deployed.files.clear()
    deployed.apply()
    kafka_admin.delete_records({TopicPartition(topic, 0): 4})
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (6,)
    deployed.check()
    [proof] = deployed.deployment.batch.rebuild()
    assert proof.differing == 0
    assert one(deployed.rows("SELECT events FROM totals")) == (6,)
    deployed.check()


def test_a_view_may_be_dropped_and_declared_again_while_records_come(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS)
    with deployed.speed():
        for round_ in range(3):
            deployed.send("events", *(event(n) for n in range(50)))
            del deployed.files["totals.sql"]
            deployed.apply()
            deployed.send("events", *(event(n) for n in range(50)))
            deployed.apply(totals=TOTALS)
            deployed.deployment.batch.rebuild(["totals"])
            deployed.wait_for("events")
            assert one(deployed.rows("SELECT events FROM totals")) == (100 * (round_ + 1),)
    deployed.check()


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


def test_a_leap_heals_one_query_while_the_others_continue(
    deployed: Deployed, kafka_admin: KafkaAdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "REFUSED_EVERY", 0.5)
    deployed.apply(events=EVENTS, totals=TOTALS, **OTHERS)
    deployment = deployed.deployment
    _outrun_by_retention(deployed, kafka_admin)

    def stopped() -> str | None:
        with deployment.database.begin() as connection:
            return progress.queries(connection)["events"].stopped

    with deployed.speed():
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
def test_a_stream_that_feeds_no_view_leaps_too(
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


def test_floats_are_checked_by_value_and_not_by_text(deployed: Deployed) -> None:
    floats = (
        "CREATE VIEW floats AS SELECT n % 20 AS part, max(CAST(ratio AS FLOAT)) AS largest,"
        " CAST(sum(ratio) AS FLOAT) AS total, max(CAST(ratio * 1e37 AS FLOAT)) AS huge, max(CAST(n AS FLOAT)) AS whole,"
        " array(max(CAST(ratio * 1e-44 AS FLOAT))) AS least,"
        " struct(max(ratio * 1e38) AS big, array(max(n * 1e23)) AS bigs) AS doubles,"
        " struct(max(CAST(n AS FLOAT)) AS f, map('x', array("
        "min(CAST(ratio * 1e37 AS FLOAT)))) AS m) AS parts FROM events GROUP BY n % 20;"
    )
    deployed.apply(events=EVENTS, floats=floats)
    deployed.send("events", *(event(n) for n in range(100)))
    deployed.catch_up()
    deployed.check()
    with deployed.deployment.database.begin() as connection:
        [place] = lookup.find(connection)[0].places.values()
        floats = f"SELECT attname FROM pg_attribute WHERE attrelid = '{place}'::regclass AND atttypid = 'real'::regtype"
        column = connection.exec_driver_sql(floats).scalars().first()
        connection.exec_driver_sql(f"UPDATE {place} SET {column} = {column} * 1.000001")
    with pytest.raises(AssertionError, match="floats below"):
        deployed.check()


def test_a_total_of_no_records_is_proven(deployed: Deployed) -> None:
    nobody = "CREATE VIEW nobody AS SELECT count(*) AS n, max(ts) AS last FROM events WHERE country = 'nowhere';"
    deployed.apply(events=EVENTS, nobody=nobody)
    deployed.deployment.batch.rebuild()
    deployed.send("events", event(1))
    deployed.catch_up()
    assert deployed.rows("SELECT n, last FROM nobody") == [(0, None)]
    assert [proof.differing for proof in deployed.deployment.batch.rebuild()] == [0]
    deployed.send("events", event(2))
    deployed.catch_up()
    assert [proof.differing for proof in deployed.deployment.batch.rebuild()] == [0]
    deployed.check()


def test_a_total_without_a_matching_record_is_proven(deployed: Deployed) -> None:
    none = (
        "SELECT sum(n) AS s, avg(n) AS mean, min(n) AS least, count(n) AS c, count(1) AS n FROM events WHERE n > 9999"
    )
    sums = ", ".join(f"sum(n + {more}) AS plus_{more}" for more in range(60))
    views = f"CREATE VIEW nothing AS {none}; CREATE VIEW wide AS SELECT country, {sums} FROM events GROUP BY country;"
    deployed.apply(events=EVENTS, views=views, totals=TOTALS)
    deployed.send("events", event(1))
    deployed.catch_up()
    assert deployed.rows("SELECT * FROM nothing") == [(None, None, None, 0, 0)]
    assert deployed.rows("SELECT plus_59 - plus_0 FROM wide") == [(59,)]
    assert [proof.differing for proof in deployed.deployment.batch.rebuild()] == [0, 0, 0]


def test_a_view_that_spark_cannot_compute_is_named_and_the_others_are_checked(
    deployed: Deployed, quick_lamina: CommandLine
) -> None:
    half = "CREATE VIEW half AS SELECT country, sum(n) AS n FROM events GROUP BY country;"
    halves = "CREATE VIEW halves AS SELECT sum(n) AS n FROM half;"
    deployed.apply(events=EVENTS, totals=TOTALS, half=half, halves=halves)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    before = deployed.rows("SELECT * FROM half ORDER BY 1")
    receipt = str(one(deployed.rows("SELECT lamina.receipt('half')"))[0])
    for table, name in (("compiled", "name"), ("version", "view"), ("definition", "view")):
        failing = "replace(texts::text, 'sum(n)', 'sum(n + CAST(raise_error(''no luck'') AS INT))')::jsonb"
        deployed.owner(f"UPDATE lamina.{table} SET texts = {failing} WHERE {name} = 'half'")

    checked = quick_lamina("check", "--json", code=1)
    results = {line["view"]: line for line in checked.lines()}
    assert {name: line["result"] for name, line in results.items()} == {
        "totals": "equal", "half": "FAILED", "halves": "FAILED",
    }  # fmt: skip
    assert results["totals"]["error"] is None
    assert "no luck" in results["half"]["error"]
    assert "no luck" in results["halves"]["error"]
    assert json.loads(checked.err.splitlines()[-1])["evidence"] == "half, halves"
    assert "half: Spark failed" in quick_lamina("verify", "-", stdin=receipt, code=1).err

    published = dict(deployed.owner("SELECT view, generation FROM lamina.publication"))
    ended = quick_lamina("rebuild", code=1)
    assert "Spark could not compute half" in ended.err
    assert "half: [USER_RAISED_EXCEPTION] no luck" in ended.err.replace("\\n", " ")
    after = dict(deployed.owner("SELECT view, generation FROM lamina.publication"))
    assert after["half"] == published["half"]
    assert after["totals"] > published["totals"], "a view that can be computed is handed over"
    assert deployed.rows("SELECT * FROM half ORDER BY 1") == before
    assert one(deployed.owner("SELECT state, error FROM lamina.rebuild ORDER BY id DESC LIMIT 1")) == (
        "failed",
        "Spark could not compute half",
    )

    with deployed.deployment.database.begin() as connection:
        [place] = lookup.get(connection, after["totals"]).places.values()
        connection.exec_driver_sql(f"DELETE FROM {place}")
    assert quick_lamina("check", "totals", code=3).out.count("DIFFERENT") == 1
    assert "half: Spark failed" in quick_lamina("check", code=3).err, "a difference outweighs an unknown result"


def test_an_infinity_is_after_every_time_in_cells_rebuilds_receipts_and_checks(
    deployed: Deployed, quick_lamina: CommandLine
) -> None:
    times = """
        CREATE VIEW valid AS SELECT kind, timestamp_micros(n) AS until, ts < timestamp_micros(n) AS holds FROM events;
        CREATE VIEW longest AS
        SELECT kind, max(timestamp_micros(n)) > max(ts) AS endless, count(timestamp_micros(n)) AS n,
               max(timestamp_micros(n)) AS last, min(CAST(timestamp_micros(n) AS DATE)) AS first
        FROM events GROUP BY kind;
        CREATE VIEW untils AS SELECT timestamp_micros(n) AS until, count(*) AS n, max(chr(n)) AS c FROM events
          GROUP BY timestamp_micros(n);
    """
    numbers = (9223372036825200000, -9223372036832400000, 1_700_000_000_000_000, 253_402_300_800_000_000)
    deployed.apply(events=EVENTS, times=times)
    deployed.send("events", *(event(n) | {"kind": "abcd"[n % 4], "n": numbers[n % 4]} for n in range(24)))
    deployed.catch_up()
    rows: list[tuple[Any, ...]] = [("a", True, 6, None, None), ("b", False, 6, None, None)]
    rows += [("c", False, 6, "2023-11-14", "2023-11-14"), ("d", None, 0, None, None)]
    for _ in ("live", "rebuilt"):
        shown = deployed.rows("SELECT kind, endless, n, last::date::text, first::text FROM longest ORDER BY kind")
        assert shown == rows
        assert deployed.rows(
            "SELECT kind, holds, count(*) FROM valid WHERE until IS NULL GROUP BY 1, 2 ORDER BY 1"
        ) == [
            ("a", True, 6),
            ("b", False, 6),
            ("d", None, 6),
        ]
        assert deployed.rows("SELECT n FROM untils") == [(6,)] * 4
        deployed.check()
        for view in ("valid", "longest", "untils"):
            receipt = Receipt.read(str(one(deployed.rows(f"SELECT lamina.receipt('{view}')"))[0]))
            opened = deployed.deployment
            assert verify(opened.database, opened.spark, opened.log, opened.brokers, receipt).equal
        assert [proof.differing for proof in deployed.deployment.batch.rebuild()] == [0, 0, 0]
    asked = "SELECT timestamptz '-infinity' AS a, date 'infinity' AS b, timestamp '2024-01-01' AS c"
    assert quick_lamina("sql", asked, "--json").lines() == [
        {"a": "-infinity", "b": "infinity", "c": "2024-01-01T00:00:00"}
    ]
    shown = one(deployed.owner("SELECT pg_get_viewdef('analytics.valid')"))[0].rstrip(";")
    past = f"SELECT kind, until - interval '3000 years' AS until, holds FROM ({shown}) AS valid"
    deployed.owner(f"CREATE OR REPLACE VIEW analytics.valid AS {past}")
    checked = {line["view"]: line for line in quick_lamina("check", "--json", code=1).lines()}
    assert {view: line["result"] for view, line in checked.items()} == {
        "valid": "FAILED",
        "longest": "equal",
        "untils": "equal",
    }
    assert checked["valid"]["error"].startswith("A time is beyond the years 1 to 9999")


def test_a_command_knows_few_records_from_many_and_takes_silence_for_many(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = deployed.deployment
    assert opened.has_few_records()
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(30)))
    monkeypatch.setattr("lamina.operations.deployment.FEW", 30)
    assert opened.has_few_records()
    deployed.send("events", event(30))
    assert not opened.has_few_records()
    monkeypatch.setattr("lamina.operations.deployment.FEW", 500_000)
    opened.brokers.delete(deployed.topic("events"))
    assert not opened.has_few_records()
