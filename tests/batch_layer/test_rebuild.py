"""Rebuilds over a real master log are sealed, computed, proven and handed over while records arrive."""

from __future__ import annotations

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from batch_layer.renewals import roll_back
from lamina.reports.statuses import read_alarms, read_status
from serving_layer.catalog import lookup
from serving_layer.change import rollbacks
from tests.fix_catalogs import CATALOG, CLICKS, EVENTS, HOURLY, TOTALS, event
from tests.fix_lamina import CommandLine, Deployed, one
from tests.fix_sources import delete_topic
from view_algebra.errors import LaminaError


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
    return int(deployed.deployment.spark().sparkContext._jsc.getPersistentRDDs().size())


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
    assert after["clicks"] != before["clicks"], "by default, the view is published"
    alarms = [alarm for alarm in read_alarms(deployed.deployment) if "holds it back" in alarm]
    assert [alarm.partition(",")[0] for alarm in alarms] == ["totals: its proof found a difference"]
    named = held.replace("totals TBLPROPERTIES (", "sums TBLPROPERTIES ('renamed_from' = 'totals', ")
    deployed.apply_break(totals=named)
    deployed.send("events", event(30))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM sums")) != (31,), "the view is also held back under its new name"
    roll_back(deployed.deployment.database, "clicks", print)
    duration = f"SELECT ended_at, seconds FROM lamina.rebuild WHERE id = {rebuild}"
    ended = deployed.owner(duration)
    deployed.deployment.batch.release(rebuild)
    assert deployed.owner(duration) == ended, "a rebuild does not last until a person releases its views"
    assert one(deployed.rows("SELECT events FROM sums")) == (31,), "micro-batches kept the held generation current"
    assert not any("holds it back" in alarm for alarm in read_alarms(deployed.deployment))
    with deployed.deployment.database.begin() as connection:
        assert lookup.published(connection)["clicks"] == before["clicks"], "the withdrawn generation stays withdrawn"
    deployed.deployment.batch.rebuild(["clicks"])
    deployed.check()
    with pytest.raises(LaminaError, match=f"Rebuild {rebuild} is done"):
        deployed.deployment.batch.release(rebuild)


def test_records_that_left_kafka_before_they_were_archived_raise_an_alarm(
    deployed: Deployed, kafka_admin: KafkaAdminClient, quick_lamina: CommandLine
) -> None:
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
    delete_topic(opened.brokers, deployed.topic("events"))
    assert not opened.has_few_records()
