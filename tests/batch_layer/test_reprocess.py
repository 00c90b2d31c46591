"""A changed catalog over a real log: new versions next to the old ones, under traffic, killed and rolled back."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psycopg2
import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from pyspark.sql import SparkSession

from batch_layer import new_sources, reprocess
from lamina.operations import applying
from master_log.offsets import Offsets
from serving_layer.catalog import lookup, versions
from serving_layer.change.planned_change import PlannedChange
from serving_layer.postgres.bookkeeping import generation
from serving_layer.promise import rebuilds
from tests.fix_catalogs import CATALOG, CLICKS, EVENTS, HOURLY, PLACES, TOTALS, event
from tests.fix_lamina import PATIENCE, CommandLine, Deployed, one, short_lived
from tests.fix_services import Topic
from view_algebra.errors import Blocked, LaminaError

BY_KIND = HOURLY.replace("hour, country, events", "hour, country, events, kind").replace(
    "country, count(*),", "country, count(*), kind,"
)
BY_KIND = BY_KIND.replace("'1 hour'), country;", "'1 hour'), country, kind;")
LARGEST = TOTALS.replace("FROM events", ", max(n) AS largest FROM events")
WIDER = EVENTS.replace("ratio DOUBLE,", "ratio DOUBLE, device STRING,")
BY_DEVICE = TOTALS.replace("FROM events", ", max(device) AS device FROM events")
MORE = "CREATE TABLE more (n BIGINT) USING kafka OPTIONS (topic '{topics}_more', format 'json');"
BOTH = """
    CREATE VIEW totals AS SELECT count(*) AS events, sum(n) AS n, sum(price) AS price FROM events
    UNION ALL SELECT count(*), sum(n), NULL FROM more;
"""

ONE_PARTITION = EVENTS.replace("'partitions' = '2'", "'partitions' = '1'")
BY_ID = {
    "events": "",
    "by_id": "CREATE TABLE by_id (n BIGINT UNIQUE, price DECIMAL(10, 2)) USING kafka"
    " OPTIONS (topic '{topics}_events', format 'json');",
    "totals": TOTALS.replace("FROM events", "FROM by_id"),
}

STEPS = (
    "after announcing",
    "after seal",
    "after archive",
    "compute totals",
    "after compute totals",
    "absorbed",
    "after go-live",
    "after prove",
    "after check",
)
"""The steps at which an apply may die while the old version is still read."""


@dataclass
class Traffic:
    """Sends events at steps of an apply, and kills a speed layer in the middle of their commit.

    sent: the number of events in the topic, all of which are counted after each step
    """

    deployed: Deployed
    lamina: CommandLine
    spark: SparkSession
    sent: int = 0
    busy: bool = False

    def send(self, events: int) -> None:
        self.deployed.send("events", *(event(n) for n in range(self.sent, self.sent + events)))
        self.sent += events

    def at(self, place: str) -> None:
        """Sends events at four of the steps. Before and after go-live, a speed layer is killed, and the next counts."""
        if self.busy or place not in ("after archive", "absorbed", "after go-live", "after hand-over"):
            return
        self.busy = True
        self.send(50)
        if place in ("absorbed", "after go-live"):
            with short_lived(self.lamina, self.spark, LAMINA_STOP_AT="inside the commit") as process:
                process.wait(PATIENCE)
            assert process.returncode == -9
            assert one(self.deployed.rows("SELECT events FROM totals")) == (self.sent - 50,)
        self.deployed.catch_up()
        assert one(self.deployed.rows("SELECT events FROM totals")) == (self.sent,)
        assert one(self.deployed.rows("SELECT sum(events) FROM places")) == (self.sent,)
        self.busy = False


def changes(deployed: Deployed) -> dict[str, PlannedChange]:
    """The changes that `apply` would make, by name."""
    planned = applying.plan(deployed.deployment, deployed.files)
    return {change.name: change for change in planned if change.action != "nothing"}


def test_a_view_that_changes_under_traffic_counts_every_record_in_both_versions(
    deployed: Deployed, lamina: CommandLine, spark: SparkSession
) -> None:
    deployed.apply(**CATALOG)
    traffic = Traffic(deployed, lamina, spark)
    traffic.send(300)
    deployed.catch_up()
    plan_two_reprocesses(deployed)
    deployed.deployment.at = traffic.at
    applying.apply(deployed.deployment, deployed.files)
    deployed.deployment.at = lambda _: None
    assert traffic.sent == 500
    compared = deployed.owner("SELECT view, cells, differing FROM lamina.proof")
    assert compared == [("totals", 1, 0)], "both versions are computed while records arrive"
    deployed.check()
    assert one(deployed.rows("SELECT events, largest FROM totals")) == (500, 499)
    assert changes(deployed) == {}
    traffic.send(1)
    deployed.catch_up()
    roll_back_and_apply_again(deployed)


def plan_two_reprocesses(deployed: Deployed) -> None:
    """Adds new versions of two views to the catalog's files. The plan says what they read and what they change."""
    deployed.files |= {"hourly.sql": BY_KIND, "totals.sql": LARGEST}
    planned = changes(deployed)
    assert {name: change.action for name, change in planned.items()} == {"hourly": "reprocess", "totals": "reprocess"}
    assert planned["hourly"].effect.startswith("new cells: groups (kind is new)")
    assert planned["totals"].records == 300
    assert planned["hourly"].dependents == ("places",)
    assert "+" in planned["totals"].diff


def roll_back_and_apply_again(deployed: Deployed) -> None:
    """The old version counts what came after the hand-over, and so does the new one when it returns."""
    applying.roll_back(deployed.deployment, "totals")
    assert deployed.rows("SELECT * FROM totals")[0][0] == 501
    deployed.check()
    assert {name: change.action for name, change in changes(deployed).items()} == {"totals": "update"}
    applying.apply(deployed.deployment, deployed.files)
    assert one(deployed.rows("SELECT events, largest FROM totals")) == (501, 500)
    proofs = deployed.deployment.batch.rebuild()
    assert {proof.view: proof.differing for proof in proofs} == {"hourly": 0, "totals": 0, "users": 0, "clicks": 0}
    deployed.check()


def reading(deployed: Deployed, select: str) -> psycopg2.extensions.connection:
    """A connection of the analyst in a transaction with one snapshot."""
    assert deployed.deployment.settings.analyst is not None
    reader = psycopg2.connect(deployed.deployment.settings.analyst)
    reader.set_session(isolation_level="REPEATABLE READ")
    with reader.cursor() as cursor:
        cursor.execute(select)
    return reader


def test_a_view_renamed_under_traffic_keeps_its_cells(deployed: Deployed) -> None:
    deployed.apply(**CATALOG)
    with deployed.speed():
        deployed.send("events", *(event(n) for n in range(100)))
        deployed.wait_for("events")
        reader = reading(deployed, "SELECT count(*) FROM analytics.clicks")
        hourly = HOURLY.replace("max(n)", "max(n + 1)")
        deployed.apply(hourly=hourly)

        def tell(line: str) -> None:
            if line.startswith("waiting for transactions"):
                reader.close()

        deployed.deployment.tell = tell  # the rename waits for the reader, which may still read the old version
        del deployed.files["hourly.sql"]
        by_hour = "VIEW by_hour (hour, country, events, shown, total, smallest, largest, mean)"
        deployed.files["by_hour.sql"] = hourly.replace(
            hourly[hourly.index("VIEW hourly") : hourly.index(" AS\n")],
            f"{by_hour} TBLPROPERTIES ('renamed_from' = 'hourly')",
        )
        deployed.files["places.sql"] = PLACES.replace("FROM hourly", "FROM by_hour")
        [change] = [change for change in applying.plan(deployed.deployment, deployed.files) if change.name == "by_hour"]
        assert "its cells stay" in change.effect
        with pytest.raises(LaminaError, match="break"):
            applying.apply(deployed.deployment, deployed.files, prune=True)
        deployed.send("events", *(event(n) for n in range(100, 150)))
        applying.apply(deployed.deployment, deployed.files, prune=True, allow_break=True)
        assert reader.closed
        deployed.send("events", *(event(n) for n in range(150, 200)))
        deployed.wait_for("events")
        assert one(deployed.rows("SELECT sum(events) FROM by_hour")) == (200,)
        assert one(deployed.rows("SELECT sum(events) FROM places")) == (200,)
    deployed.check()
    assert {proof.view: proof.differing for proof in deployed.deployment.batch.rebuild()}["by_hour"] == 0
    applying.roll_back(deployed.deployment, "by_hour")
    assert one(deployed.rows("SELECT sum(events) FROM by_hour")) == (200,)
    deployed.check()


def test_the_speed_layer_has_run_a_new_version_before_it_is_opened(
    deployed: Deployed, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark takes seconds for the first run of a statement. No micro-batch waits for it."""
    monkeypatch.setattr(reprocess, "PREPARED_WITHIN", PATIENCE)
    planned: list[frozenset[str]] = []
    caplog.set_level("DEBUG", "lamina.speed")
    deployed.apply(events=EVENTS, totals=TOTALS)

    def at(place: str) -> None:
        if place.startswith("planned "):
            planned.append(frozenset(place.split()[1:]))
        elif place == "after announcing":
            assert "prepared for new versions" in caplog.text
            deployed.wait_for("events")
            with deployed.deployment.database.begin() as connection:
                assert rebuilds.left_by_apply(connection) is None, "nothing is opened yet"
            assert one(deployed.rows("SELECT events FROM totals")) == (21,)

    deployed.deployment.at = at
    deployed.send("events", *(event(n) for n in range(20)))
    with deployed.speed():
        deployed.wait_for("events")
        apply_next_to_a_micro_batch(deployed, event(20), totals=LARGEST)
        deployed.send("events", event(21))
        deployed.wait_for("events")
    assert one(deployed.rows("SELECT events, largest FROM totals")) == (22, 20)
    deployed.check()
    assert "could not be prepared" not in caplog.text
    before, both, *after = planned
    assert before < both, "the statements of both versions are planned next to micro-batches"
    assert both not in after, "and run unchanged, once both versions are maintained"


def apply_next_to_a_micro_batch(deployed: Deployed, record: object, **files: str) -> None:
    """Applies a change, and sends a record once the speed layer has new versions to prepare."""

    def is_announced() -> bool:
        with deployed.deployment.database.begin() as connection:
            return bool(versions.unprepared_tables(connection, "events"))

    def send() -> None:
        deployed.until(is_announced, "the new versions are announced")
        deployed.send("events", record)

    with ThreadPoolExecutor(1) as threads:
        sent = threads.submit(send)
        deployed.apply(**files)
        sent.result()


def test_a_recomputed_micro_batch_does_not_wait_for_a_later_one(deployed: Deployed) -> None:
    """A version is opened during its commit. The next micro-batch, which runs the new statements, awaits the commit."""
    held, awaited, announced = (threading.Event() for _ in range(3))

    def at(place: str) -> None:
        if place == "after announcing":
            announced.set()
            deployed.send("events", event(21))
            assert held.wait(60)
        elif place == "before the commit" and announced.is_set() and not held.is_set():
            held.set()
            assert awaited.wait(60)
        elif place == "before waiting for the commit" and held.is_set():
            awaited.set()
        elif place == "after seal":
            deployed.send("events", event(22))
            assert awaited.wait(60)

    deployed.apply(events=EVENTS.replace("ts TIMESTAMP,", "ts TIMESTAMP, UNIQUE (price),"), totals=TOTALS)
    deployed.deployment.at = at
    deployed.send("events", *(event(n) for n in range(20)))
    with deployed.speed():
        deployed.wait_for("events")
        apply_next_to_a_micro_batch(deployed, event(20), totals=LARGEST)
        deployed.wait_for("events")
    assert one(deployed.rows("SELECT events, largest FROM totals")) == (23, 22)
    deployed.deployment.at = lambda place: None
    deployed.check()


def test_an_apply_may_be_interrupted_at_any_step_and_the_next_one_succeeds(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    for sent, step in enumerate(STEPS, 21):
        with deployed.killed_at(step):
            deployed.apply(totals=LARGEST)
        deployed.send("events", event(sent))
        deployed.catch_up()
        [row] = deployed.rows("SELECT * FROM totals")
        assert (row[0], len(row)) == (sent, 3), step
    applying.apply(deployed.deployment, deployed.files)
    assert one(deployed.rows("SELECT events, largest FROM totals")) == (sent, sent)
    deployed.check()
    assert unfinished(deployed) == 0


def unfinished(deployed: Deployed) -> int:
    """Generations that are building, or live and neither read nor kept."""
    with deployed.deployment.database.begin() as connection:
        building = lookup.find(connection, generation.c.state == "building")
        live = lookup.find(connection, generation.c.state == "live")
    return len(building) + len(live) - 2


def test_a_killed_apply_is_resumed(deployed: Deployed, quick_lamina: CommandLine, tmp_path: Path) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    for name, sql in {**deployed.files, "totals.sql": LARGEST}.items():
        (catalog / name).write_text(sql)
    planned = quick_lamina("plan", "--catalog", str(catalog), "--json", code=3)
    [line] = [json.loads(line) for line in planned.out.splitlines()]
    assert tuple(line[key] for key in ("change", "what", "name", "records")) == ("reprocess", "view", "totals", 20)
    quick_lamina("apply", "--catalog", str(catalog), code=-9, LAMINA_STOP_AT="after go-live")
    deployed.send("events", event(20))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (21,)
    again = quick_lamina("apply", "--catalog", str(catalog))
    assert "continues rebuild" in again.err
    quick_lamina("plan", "--catalog", str(catalog), code=0)
    assert one(deployed.rows("SELECT events, largest FROM totals")) == (21, 20)
    deployed.check()
    with deployed.deployment.database.begin() as connection:
        assert rebuilds.left_by_apply(connection) is None
    assert unfinished(deployed) == 0


def test_a_second_apply_and_a_rebuild_are_refused_during_an_apply(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    refused: list[str] = []

    def others(place: str) -> None:
        if place == "after archive":
            opened = deployed.deployment
            at_once = {**deployed.files, "totals.sql": TOTALS, "more.sql": CLICKS}
            for what in (
                lambda: applying.apply(opened, at_once),
                lambda: applying.apply(opened, deployed.files),
                opened.batch.rebuild,
            ):
                with pytest.raises(LaminaError) as raised:
                    what()
                refused.append(raised.value.what)

    deployed.deployment.at = others
    deployed.apply(totals=LARGEST)
    assert refused == ["Another apply is running"] * 3
    assert one(deployed.rows("SELECT largest FROM totals")) == (19,)


def test_an_apply_does_not_undo_a_rollback_and_resumes_its_computation(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, hourly=HOURLY)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    deployed.apply(hourly=BY_KIND)
    opened, narration = deployed.deployment, list[str]()

    def roll_back(place: str) -> None:
        if place == "after check":
            opened.at = lambda _: None
            applying.roll_back(opened, "hourly")

    opened.at = roll_back
    with pytest.raises(LaminaError, match="hourly was given another version while the catalog was computed"):
        deployed.apply(totals=LARGEST)
    opened.tell = narration.append
    deployed.apply(hourly=HOURLY)
    assert any("which an earlier apply left unfinished: totals" in line for line in narration), narration
    assert one(deployed.rows("SELECT largest FROM totals")) == (19,)
    deployed.check()


def test_an_apply_leaves_the_topics_of_deployed_sources_alone(
    deployed: Deployed, kafka_admin: KafkaAdminClient
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    topic = deployed.topic("events")
    kafka_admin.delete_topics([topic])
    deployed.until(lambda: deployed.deployment.brokers.topic_id(topic) is None, "the topic is gone")
    deployed.apply(totals=TOTALS.replace("count(*)", "count(*) + 1"))
    assert deployed.deployment.brokers.topic_id(topic) is None


def test_a_new_source_begins_at_its_topics_first_record_at_deployment(
    deployed: Deployed, kafka_admin: KafkaAdminClient, topic: Topic
) -> None:
    """Retention continues while versions are computed."""
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    others = topic()
    for number in range(10):
        deployed.producer.send(others, json.dumps({"id": number}).encode())
    deployed.producer.flush()

    def remove(place: str) -> None:
        if place == "after check":
            kafka_admin.delete_records({TopicPartition(others, 0): 4})

    deployed.deployment.at = remove
    deployed.apply(
        totals=LARGEST, more=f"CREATE TABLE more (id BIGINT) USING kafka OPTIONS (topic '{others}', format 'json');"
    )
    deployed.deployment.at = lambda _: None
    assert deployed.progress("more") == Offsets.of(others, {0: 4})
    deployed.apply(counted="CREATE VIEW counted AS SELECT count(*) AS n FROM more;")
    deployed.catch_up()
    assert one(deployed.rows("SELECT n FROM counted")) == (6,)
    deployed.check()


def test_a_source_gains_a_column_that_its_producer_already_sends(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS)
    deployed.send("events", *({**event(n), "device": f"d{n}"} for n in range(20)))
    deployed.catch_up()
    with deployed.speed():
        deployed.apply(events=WIDER, totals=BY_DEVICE)
        assert one(deployed.rows("SELECT events, device FROM totals")) == (20, "d9")
        deployed.send("events", {**event(20), "device": "z"})
        deployed.wait_for("events")
    assert one(deployed.rows("SELECT events, device FROM totals")) == (21, "z")
    deployed.check()
    with pytest.raises(LaminaError, match="its source was declared differently"):
        applying.roll_back(deployed.deployment, "totals")
    proofs = deployed.deployment.batch.rebuild()
    assert [proof.differing for proof in proofs] == [0, 0]
    deployed.files |= {"events.sql": EVENTS.replace("{topics}", deployed.prefix), "totals.sql": TOTALS}
    applying.apply(deployed.deployment, deployed.files, allow_break=True)
    assert one(deployed.rows("SELECT events FROM totals")) == (21,)
    deployed.check()


def test_a_change_of_a_view_waits_for_a_reader_and_names_it(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    reader = psycopg2.connect(deployed.deployment.settings.analyst)
    reader.cursor().execute("SELECT * FROM analytics.totals")
    narration = []

    def tell(line: str) -> None:
        if line.startswith("waiting for readers that hold a view in an open transaction"):
            narration.append(line)
            reader.close()

    deployed.deployment.tell = tell
    deployed.apply(totals=TOTALS.replace("count(*)", "count(*) + 1"))
    assert [line.count("\n") for line in narration] == [1], "the error names one reader"
    assert one(deployed.rows("SELECT events FROM totals")) == (1,)


def test_a_view_counts_the_first_records_of_its_source_even_during_the_apply(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, hourly=HOURLY)

    def first_records(place: str) -> None:
        if place == "after planning":
            deployed.send("events", *(event(n) for n in range(10)))
            deployed.catch_up()

    deployed.deployment.at = first_records
    deployed.apply(totals=TOTALS)
    deployed.deployment.at = lambda _: None
    assert one(deployed.rows("SELECT events FROM totals")) == (10,)
    deployed.check()


def test_a_changed_view_may_read_a_new_source(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    deployed.apply(more=MORE, totals=BOTH)
    deployed.send("more", {"n": 7})
    deployed.catch_up()
    assert sorted(deployed.rows("SELECT events FROM totals")) == [(1,), (20,)]
    deployed.check()


def test_a_view_that_moves_to_a_new_source_of_an_old_topic_keeps_its_history(
    deployed: Deployed, kafka_admin: KafkaAdminClient
) -> None:
    """The history has records that Kafka no longer holds, malformed records, ids of events, and later arrivals."""
    deployed.apply(events=ONE_PARTITION, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)), event(5), b"malformed")
    deployed.catch_up()
    topic = deployed.topic("events")
    deployed.deployment.batch.logs.archive(deployed.deployment.deployed().sources["events"], Offsets.of(topic, {0: 22}))
    kafka_admin.delete_records({TopicPartition(topic, 0): 10})
    deployed.send("events", event(20), event(20), event(3))
    deployed.catch_up()
    assert deployed.rows("SELECT events FROM totals") == [(24,)]
    shown: dict[str, list[tuple[object, ...]]] = {}

    def reached(place: str) -> None:
        if place in ("after archive", "after check"):
            deployed.send("events", event(30 + len(shown)), event(20), event(5))
            deployed.wait_for("events")
        shown[place] = deployed.rows("SELECT events FROM totals")

    with deployed.speed():
        deployed.deployment.at = reached
        deployed.apply(**BY_ID)
        deployed.deployment.at = lambda _: None
        deployed.send("by_id", event(20), event(22), event(5))
        deployed.wait_for("by_id")
    assert shown["after check"] == [(30,)]
    assert shown["after hand-over"] == [(23,)], "every event counts once, including later arrivals"
    assert deployed.rows("SELECT events FROM totals") == [(24,)]
    assert deployed.rows("SELECT source, records FROM lamina.bad_records") == [("by_id", 1)]
    assert deployed.rows("SELECT source, first_offset FROM lamina.offsets") == [("by_id", 0)]
    deployed.check()
    deployed.deployment.batch.rebuild()
    assert deployed.owner("SELECT sum(differing) FROM lamina.proof") == [(0,)]


def test_a_version_with_other_numbers_is_held_back_if_the_view_declares_it(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    [(place,)] = deployed.owner("SELECT place FROM lamina.generation_cells WHERE cell_table LIKE 'totals%'")
    deployed.owner(f"UPDATE {place} SET count = count + 1")
    holding = LARGEST.replace("AS SELECT", "TBLPROPERTIES ('on_difference' = 'hold') AS SELECT")
    with pytest.raises(Blocked, match="totals computes other numbers than it shows") as refused:
        deployed.apply(totals=holding)
    assert "'old': {'count': 21" in refused.value.evidence
    applying.preview(deployed.deployment, "dev", deployed.files)
    with pytest.raises(Blocked, match="totals computes other numbers than it shows"):
        deployed.apply(totals=holding)  # nothing is computed, since the preview has the cells
    applying.drop_preview(deployed.deployment, "dev")
    assert deployed.rows("SELECT * FROM totals")[0][0] == 21
    deployed.apply(totals=LARGEST)
    assert one(deployed.rows("SELECT events, largest FROM totals")) == (20, 19)


def test_a_view_does_not_move_to_a_source_that_lags_behind_the_old_one(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", *(event(n) for n in range(20)))
    deployed.catch_up()
    sent = 20

    def meanwhile(place: str) -> None:
        nonlocal sent
        if place == "after archive":  # from now until it is live, the new source is not read
            deployed.send("events", event(sent))
            sent += 1
            deployed.catch_up()

    anew = {
        "events": "",
        "others": EVENTS.replace("events (", "others ("),
        "totals": TOTALS.replace("events", "others"),
    }
    anew["totals"] = anew["totals"].replace("AS others", "AS events")
    monkeypatch.setattr(new_sources, "LOCKED_SECONDS", (0.0,))
    deployed.deployment.at = meanwhile
    with pytest.raises(LaminaError, match="totals would show fewer records: others is not read as far as events"):
        deployed.apply(**anew)
    deployed.deployment.at = lambda _: None
    assert deployed.rows("SELECT events FROM totals") == [(21,)]
    with deployed.speed():
        deployed.apply(**anew)
        assert deployed.rows("SELECT events FROM totals") == [(21,)]
    assert deployed.rows("SELECT source FROM lamina.offsets") == [("others",)] * 2
    deployed.check()


def test_another_topic_is_refused_with_the_way_out(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    with pytest.raises(LaminaError, match="not applied") as refused:
        deployed.apply(events=EVENTS.replace("_events'", "_others'"))
    assert "declare it under another name, and let the views read that" in refused.value.evidence
