"""The speed layer on a real broker, a real Spark and a real Postgres."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewPartitions

from lamina.reports.statuses import read_status
from serving_layer.promise import progress
from serving_layer.promise.progress import Fenced
from speed_layer.continuity import CannotContinue
from speed_layer.layer import writer
from speed_layer.run import Run
from tests.fix_catalogs import CATALOG, CLICKS, EVENTS, HOURLY, TOTALS, event
from tests.fix_lamina import Deployed, one
from tests.speed_layer.record_times import accept_any_time, send_at
from view_algebra.errors import LaminaError


def test_every_kind_of_view_equals_its_select(deployed: Deployed) -> None:
    deployed.apply(**CATALOG)
    deployed.send("events", *(event(n) for n in range(500)))
    deployed.catch_up()
    deployed.send("events", *(event(n) for n in range(500, 700)))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (700,)
    assert {result.view for result in deployed.check()} == {"hourly", "totals", "users", "clicks", "places"}


def test_a_late_record_corrects_its_window_at_once(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, hourly=HOURLY)
    deployed.send(
        "events", {"ts": "2024-03-02T10:00:00Z", "country": "FR"}, {"ts": "2024-03-02T12:00:00Z", "country": "FR"}
    )
    deployed.catch_up()
    deployed.send(
        "events",
        {"ts": "1969-12-31T23:59:59.999999Z", "country": "FR"},
        {"ts": "2024-03-02T10:59:59.999999Z", "country": "FR"},
    )
    deployed.catch_up()
    rows = deployed.rows("SELECT hour::text, events FROM hourly ORDER BY hour")
    assert rows == [("1969-12-31 23:00:00+00", 1), ("2024-03-02 10:00:00+00", 2), ("2024-03-02 12:00:00+00", 1)]


BAD = {
    "not JSON": b"hello",
    "cut short": b'{"n": 1',
    "an array": b'[{"n": 1}]',
    "a number": b"1",
    "empty": b"",
    "a null value": None,
    "a wrong type": b'{"n": "many"}',
    "a wrong nested type": b'{"n": 1, "payload": {"user": {"id": "me"}}}',
    "too deep": b'{"payload":' * 3000 + b"1" + b"}" * 3000,
    "one that Postgres cannot hold": b'{"country": "a\\u0000b"}',
    "not UTF-8": b'{"country": "\xff\xfe"}x',
    "too long a number": b'{"n": 99999999999999999999}',
}


def test_a_bad_record_goes_to_quarantine_and_the_stream_continues(deployed: Deployed) -> None:
    deployed.apply(**CATALOG)
    deployed.send("events", event(1), *BAD.values(), event(2), partition=0)
    noise = "".join(random.Random(1).choices("abcdefghij0123456789", k=1_000_000))  # no index could hold it
    spaces = {"n": 7, "ts": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "country": " " * 1_000_000}
    deployed.send("events", {"n": 5, "country": noise}, {"unknown": 1, "n": 6}, spaces, partition=1)
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (5,)
    with deployed.deployment.database.begin() as connection:
        kept = connection.exec_driver_sql(
            'SELECT "offset", error, value FROM lamina.quarantine ORDER BY "offset"'
        ).all()
    assert [row.offset for row in kept] == list(range(1, 1 + len(BAD)))
    assert [None if row.value is None else bytes(row.value) for row in kept] == list(BAD.values())
    assert all(row.error != "" for row in kept)
    deployed.check()


@pytest.fixture
def transactional(kafka: str) -> Iterator[KafkaProducer]:
    sender = KafkaProducer(bootstrap_servers=kafka, transactional_id="speed-layer-tests", acks="all")
    sender.init_transactions()
    yield sender
    sender.close()


def test_records_of_an_aborted_transaction_are_never_counted(deployed: Deployed, transactional: KafkaProducer) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    topic = deployed.topic("events")
    for number in range(6):
        transactional.begin_transaction()
        transactional.send(topic, b'{"n": 1}', partition=0)
        transactional.send(topic, b'{"n": 1}', partition=1)
        transactional.flush()
        if number % 2:
            transactional.abort_transaction()
        else:
            transactional.commit_transaction()
        deployed.catch_up()
    assert deployed.rows("SELECT events, n FROM totals") == [(6, 6)]
    deployed.check()


def test_a_view_whose_stream_is_idle_stays_fresh(deployed: Deployed, kafka_admin: KafkaAdminClient) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    behind = "SELECT seconds_behind, clock_timestamp() - newest_record > interval '4 s' FROM lamina.freshness"

    def heard() -> datetime:
        with deployed.deployment.database.begin() as connection:
            heard_at: datetime = connection.exec_driver_sql("SELECT heard_at FROM lamina.heartbeat").scalar_one()
            return heard_at

    deployed.send("events", event(1))
    with deployed.speed():
        deployed.wait_for("events")
        deployed.until(lambda: one(deployed.rows(behind))[1], "the newest record is old")
        deployed.until(lambda: one(deployed.rows(behind))[0] < 2, "the view is still fresh")
        status = read_status(deployed.deployment)
        assert (status.alarms, status.queries[0].writer) == ([], writer())
        before = heard()
        deployed.until(lambda: heard() > before, "another heartbeat")
        topic, progress_of = deployed.topic("events"), deployed.progress("events")

        def in_the_group() -> dict[int, int]:
            offsets = kafka_admin.list_group_offsets("lamina.events")["lamina.events"]
            return {at.partition: committed.offset for at, committed in offsets.items() if at.topic == topic}

        deployed.until(lambda: in_the_group() == progress_of.on(topic), "Kafka's tools see the progress")
        deployed.send("events", event(2), partition=0)
        deployed.wait_for("events")
    assert read_status(deployed.deployment).queries[0].writer is None, "the writer has ended normally"
    assert in_the_group() == deployed.progress("events").on(topic), "the last micro-batch is included"
    [(before, _)] = deployed.rows(behind)
    deployed.until(lambda: one(deployed.rows(behind))[0] > before + 1, "without a speed layer, the view ages")


def test_times_beyond_the_calendar_are_counted_and_ignored_for_freshness(
    deployed: Deployed, kafka_admin: KafkaAdminClient
) -> None:
    """A producer may set any time, for example microseconds instead of Kafka's milliseconds."""
    rows = "CREATE VIEW rows AS SELECT kafka_offset AS at, kafka_timestamp AS time, n FROM events;"
    last = "CREATE VIEW last_n AS SELECT last(n) AS n FROM events;"
    deployed.apply(events=EVENTS, totals=TOTALS, rows=rows, last=last)
    topic, now = deployed.topic("events"), time.time()
    accept_any_time(kafka_admin, topic)
    sent = (
        (now + 1800, b'{"n": 1}'),
        (now * 1000, b'{"n": 2}'),
        (now * 1000, b"no JSON"),
        (-1e11, b'{"n": 4}'),
        (-1e11, b"no JSON"),
    )
    for at, value in sent:
        send_at(deployed, topic, value, int(1000 * at))
    deployed.catch_up()
    [(behind, newest)] = deployed.rows(
        "SELECT seconds_behind, newest_record <= clock_timestamp() FROM lamina.freshness WHERE view = 'rows'"
    )
    assert behind >= 0
    assert newest
    latest = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    times = [row[1:] for row in deployed.rows("SELECT at, time, n FROM rows ORDER BY at")]
    assert times[1:] == [(latest, 2), (datetime(1, 1, 1, tzinfo=UTC), 4)]
    assert one(deployed.rows("SELECT n FROM last_n")) == (4,)  # by offset: no record has an event time
    deployed.deployment.batch.rebuild()
    deployed.check()


def test_an_analyst_can_read_the_offsets_below_which_views_are_complete(deployed: Deployed) -> None:
    late = "CREATE VIEW late AS SELECT events FROM totals;"
    deployed.apply(events=EVENTS, totals=TOTALS, late=late)
    deployed.send("events", *(event(n) for n in range(5)), partition=0)
    deployed.send("events", event(5), partition=1)
    deployed.catch_up()
    offsets = "SELECT view, source, partition, first_offset, next_offset FROM lamina.offsets ORDER BY 1, 3"
    below = [("events", 0, 0, 5), ("events", 1, 0, 1)]
    assert deployed.rows(offsets) == [(view, *offsets_below) for view in ("late", "totals") for offsets_below in below]


def test_a_running_speed_layer_follows_each_apply(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    with deployed.speed():
        deployed.send("events", *(event(n) for n in range(100)))
        deployed.wait_for("events")
        deployed.apply(
            others="CREATE TABLE others (x BIGINT) USING kafka OPTIONS (topic '{topics}_others', format 'json');",
            xs="CREATE VIEW xs AS SELECT sum(x) AS x FROM others;",
        )
        deployed.send("others", {"x": 1}, {"x": 2})
        deployed.wait_for("others")
        assert deployed.rows("SELECT x FROM xs") == [(3,)]
        del deployed.files["totals.sql"]
        deployed.apply()
        deployed.send("events", event(1))
        deployed.wait_for("events")


def test_a_second_speed_layer_fences_the_first(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    with pytest.raises(Fenced, match="was taken over"), deployed.speed():  # noqa: PT012 (the layer runs meanwhile)
        deployed.send("events", event(1))
        deployed.wait_for("events")
        with deployed.deployment.database.begin() as connection:
            progress.take_over(connection, "events", "another")
        deployed.send("events", event(2))
        deployed.until(lambda: not any(q.isActive for q in deployed.deployment.spark().streams.active), "it ends")
    assert deployed.rows("SELECT events FROM totals") == [(1,)]
    deployed.catch_up()
    deployed.check()


def test_a_query_is_taken_back_from_a_skip_of_an_older_lamina(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    with deployed.speed():
        deployed.send("events", event(1))
        deployed.wait_for("events")
        deployed.owner("UPDATE lamina.query SET fence = fence + 1, writer = 'skip of events 0:7'")  # and not its kind
        deployed.send("events", event(2))
        deployed.wait_for("events")
    assert deployed.rows("SELECT events FROM totals") == [(2,)]


def test_a_query_that_keeps_failing_reports_why_and_continues_when_it_can(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)

    def run(statement: str) -> list[tuple[object, ...]]:
        with deployed.deployment.database.begin() as connection:
            result = connection.exec_driver_sql(statement)
            return [tuple(row) for row in result.all()] if result.returns_rows else []

    [(place,)] = run("SELECT place FROM lamina.generation_cells")
    run(f"ALTER TABLE {place} ADD CONSTRAINT never CHECK (false) NOT VALID")
    deployed.send("events", event(1))
    # Seconds pass so quickly that a run seems to last for a while before it fails.
    with deployed.speed(clock=lambda: 100 * time.monotonic()):
        deployed.until(lambda: run("SELECT stopped FROM lamina.query") != [(None,)], "status says why")
        [(reason,)] = run("SELECT stopped FROM lamina.query")
        run(f"ALTER TABLE {place} DROP CONSTRAINT never")
        deployed.wait_for("events")
    assert str(reason).startswith("it fails again and again: ")
    assert "never" in str(reason)
    assert deployed.rows("SELECT events FROM totals") == [(1,)]


def test_a_reported_failure_disappears_even_if_no_record_arrives(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", event(1))
    deployed.catch_up()

    def reason() -> object:
        return one(deployed.owner("SELECT stopped FROM lamina.query"))[0]

    def fails(_: Run) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(Run, "_start", fails)
        with deployed.speed(clock=lambda: 10 * time.monotonic()):
            deployed.until(lambda: "make room on that disk" in str(reason()), "status says why")
            full_disk.undo()
            deployed.until(lambda: reason() is None, "the reason is gone")


def test_the_checkpoint_may_be_deleted_at_any_time(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS)
    with deployed.speed(max_records=50):
        for _ in range(3):
            deployed.send("events", *(event(n) for n in range(200)))
            shutil.rmtree(deployed.deployment.settings.home / "checkpoints", ignore_errors=True)
            deployed.wait_for("events")
    assert deployed.rows("SELECT events FROM totals") == [(600,)]
    deployed.check()


def test_staging_tables_are_created_once(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS)
    seen = []
    with deployed.speed():
        for n in range(3):
            deployed.send("events", event(n))
            deployed.wait_for("events")
            with deployed.deployment.database.begin() as connection:
                tables = "SELECT oid, relname FROM pg_class WHERE relname ~ '^staged_' AND relkind = 'r' ORDER BY oid"
                seen.append(connection.exec_driver_sql(tables).all())
    assert seen[0], "repeated creation would leave dead rows in Postgres' own tables"
    assert set(seen[0]) <= set(seen[1]) <= set(seen[2])
    assert deployed.rows("SELECT events FROM totals") == [(3,)]


def test_an_added_partition_is_read_from_its_first_record(deployed: Deployed, kafka_admin: KafkaAdminClient) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    topic = deployed.topic("events")
    with deployed.speed():
        deployed.send("events", *(event(n) for n in range(10)))
        deployed.wait_for("events")
        kafka_admin.create_partitions({topic: NewPartitions(4)})
        deployed.until(lambda: len(deployed.deployment.brokers.partitions(topic)) == 4, "there are 4 partitions")
        with deployed.deployment.brokers.producer() as fresh:  # it knows all four
            for partition in range(4):
                fresh.send(topic, b'{"n": 1}', partition=partition)
        deployed.wait_for("events")
    assert deployed.rows("SELECT events FROM totals") == [(14,)]
    deployed.check()


def test_another_topic_of_the_same_name_is_refused(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", event(1))
    deployed.catch_up()
    topic = deployed.topic("events")
    deployed.deployment.brokers.delete(topic)
    deployed.until(lambda: deployed.deployment.brokers.topic_id(topic) is None, "the topic is gone")
    deployed.deployment.brokers.create(topic, 2)
    deployed.send("events", event(1), event(2))
    with pytest.raises(CannotContinue, match="deleted and created again"):
        deployed.catch_up()
    assert deployed.rows("SELECT events FROM totals") == [(1,)]


def test_a_topic_recreated_under_a_running_query_is_never_counted(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    topic, brokers = deployed.topic("events"), deployed.deployment.brokers

    def recreate(place: str) -> None:
        """Recreates the topic between the plan and the reading of the first micro-batch: offset 0 is another record."""
        if place == "before computing":
            deployed.deployment.at = lambda place: None
            brokers.delete(topic)
            deployed.until(lambda: brokers.topic_id(topic) is None, "the topic is gone")
            brokers.create(topic, 2)
            deployed.send("events", *(event(n) for n in range(10)), partition=0)

    deployed.send("events", event(1), partition=0)
    deployed.deployment.at = recreate
    with pytest.raises(CannotContinue, match="deleted and created again"):
        deployed.catch_up()
    assert deployed.rows("SELECT events FROM totals") == [(0,)]


def test_a_compacted_topic_is_refused(deployed: Deployed) -> None:
    topic = f"{deployed.prefix}_events"
    deployed.deployment.brokers.create(topic, 1, {"cleanup.policy": "compact"})
    with pytest.raises(LaminaError, match=f"topic {topic} is compacted"):
        deployed.apply(events=EVENTS, totals=TOTALS)


def test_a_redeclared_source_is_read_by_its_new_declaration(deployed: Deployed) -> None:
    numbers = "CREATE TABLE {0} (x {1}) USING kafka OPTIONS (topic '{{topics}}_xs', format 'json');"
    deployed.apply(
        events=EVENTS, xs=numbers.format("xs", "BIGINT"), most="CREATE VIEW most AS SELECT max(x) AS x FROM xs;"
    )
    with deployed.speed():
        deployed.send("xs", {"x": 9}, {"x": 10})
        deployed.wait_for("xs")
        assert deployed.rows("SELECT x FROM most") == [(10,)]
        del deployed.files["xs.sql"], deployed.files["most.sql"]
        deployed.apply()
        deployed.apply(
            xs=numbers.format("xs", "STRING"), greatest="CREATE VIEW greatest AS SELECT max(x) AS x FROM xs;"
        )
        deployed.send("xs", {"x": "11"})
        deployed.wait_for("xs")
        assert deployed.rows("SELECT x FROM greatest") == [("9",)]


def test_a_query_stops_if_retention_removed_unread_records(deployed: Deployed, kafka_admin: KafkaAdminClient) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", event(1), event(2), event(3), partition=0)
    kafka_admin.delete_records({TopicPartition(deployed.topic("events"), 0): 2})
    with pytest.raises(CannotContinue, match="removed by retention before they were read"):
        deployed.catch_up()
