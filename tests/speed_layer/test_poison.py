"""Records that stop a stream: Lamina names them, a person can skip them, and they stop no other stream."""

from __future__ import annotations

import logging
import threading
from itertools import count

import pytest
from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import InvalidTimestampError

from lamina.operations import topic_records
from master_log.offsets import OffsetRange, Offsets, Skipped, TopicPartition
from master_log.reading.kafka_reader import UnreadableRecord
from serving_layer.promise.skipping import SKIPPED
from speed_layer.continuity import CannotContinue
from speed_layer.endless import TooLong
from speed_layer.jobs import Jobs
from speed_layer.query import Query, Trouble
from tests.fix_catalogs import CLICKS, EVENTS, TOTALS, event
from tests.fix_lamina import Deployed, one
from tests.speed_layer.record_times import accept_any_time, send_at
from view_algebra.errors import LaminaError
from view_algebra.records.quarantined import LONGEST_KEPT

ONE_PARTITION = EVENTS.replace("'partitions' = '2'", "'partitions' = '1'")

BEYOND_MICROSECONDS = -9_300_000_000_000_000
"""Milliseconds, Kafka's unit. In microseconds, Spark's unit, they exceed a BIGINT."""


def test_a_record_that_spark_cannot_read_is_named_and_its_query_resumes_after_a_skip(
    deployed: Deployed, kafka_admin: KafkaAdminClient
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS, clicks=CLICKS)
    topic, deployment = deployed.topic("events"), deployed.deployment
    with (
        deployment.brokers.producer() as own,
        pytest.raises(InvalidTimestampError),
    ):  # the embedded brokers refuse it
        own._client.send(topic, b'{"n": 1}', partition=1, timestamp_ms=BEYOND_MICROSECONDS).get(30)
    accept_any_time(kafka_admin, topic)
    for partition in (0, 1):
        deployed.send("events", *(event(n) for n in range(10)), partition=partition)
    send_at(deployed, topic, b'{"n": 1}', BEYOND_MICROSECONDS, partition=1)
    deployed.send("events", *(event(n) for n in range(10)), partition=1)
    with pytest.raises(UnreadableRecord, match=f"partition 1, offset 10 of {topic}") as stopped:
        deployed.catch_up()
    assert "overflow" in stopped.value.evidence
    assert "lamina skip events 1 10 --reason" in stopped.value.way_out
    source = deployment.deployed().sources["events"]
    with pytest.raises(UnreadableRecord, match="partition 1, offset 10"):
        deployment.batch.logs.archive(source, deployment.brokers.latest(topic))
    with pytest.raises(LaminaError, match="has no record at partition 1, offset 21"):
        topic_records.skip(deployment, source, 1, 21, "it is not there")
    assert topic_records.skip(deployment, source, 1, 10, "a clock in microseconds")
    assert not topic_records.skip(deployment, source, 1, 10, "again")
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (30,)
    deployment.batch.rebuild()
    assert {result.skipped for result in deployed.check()} == {1}
    assert deployed.rows("SELECT error, records FROM lamina.bad_records") == [(SKIPPED, 1)]
    reason = 'SELECT partition, "offset", reason FROM lamina.skipped'
    assert deployed.rows(reason) == [(1, 10, "a clock in microseconds")]
    with pytest.raises(LaminaError, match="offset 5 of"):
        topic_records.skip(deployment, source, 1, 5, "too late")


def test_a_query_stuck_on_an_unreadable_record_resumes_when_kafka_drops_it(
    deployed: Deployed, kafka_admin: KafkaAdminClient
) -> None:
    deployed.apply(events=ONE_PARTITION, totals=TOTALS)
    source, topic = deployed.deployment.deployed().sources["events"], deployed.topic("events")
    at = TopicPartition(topic, 0)
    layer = deployed.deployment.speed(threading.Event(), max_records=10)
    standing = Query(source, trouble=Trouble(refused=UnreadableRecord(source, at, 3, "overflow")))
    deployed.send("events", *(event(n) for n in range(6)))
    assert not layer._judge.may_run(standing)
    assert isinstance(standing.trouble.refused, UnreadableRecord)
    kafka_admin.delete_records({KafkaTopicPartition(topic, 0): 5})
    assert not layer._judge.may_run(standing)
    assert isinstance(standing.trouble.refused, CannotContinue), "no record is left to skip"
    deployed.deployment.batch.logs.archive(source, Offsets.of(topic, {0: 6}), accept_loss=True)
    deployed.deployment.batch.rebuild(leap=True)
    assert layer._judge.may_run(standing)
    assert layer._judge.may_run(Query(source, trouble=Trouble(refused=UnreadableRecord(source, at, 3, "overflow"))))
    assert one(deployed.rows("SELECT events FROM totals")) == (1,)


def test_a_record_that_no_micro_batch_can_hold_is_found_by_halving_and_the_bound_grows_again(
    deployed: Deployed, caplog: pytest.LogCaptureFixture
) -> None:
    deployed.apply(events=EVENTS, clicks=CLICKS)
    [(place,)] = deployed.owner("SELECT place FROM lamina.generation_cells")
    deployed.owner(f"ALTER TABLE {place} ADD CONSTRAINT poison CHECK (n <> 20) NOT VALID")
    deployed.send("events", *({"kind": "click", "n": n} for n in range(40)), partition=0)
    caplog.set_level(logging.INFO, "lamina.speed")
    with deployed.speed(max_records=32):
        named = "SELECT stopped FROM lamina.query WHERE stopped LIKE '%lamina skip events 0 20 %'"
        deployed.until(lambda: deployed.owner(named) != [], "the one record is named")
        assert deployed.rows("SELECT count(*), max(n) FROM clicks") == [(20, 19)]
        source = deployed.deployment.deployed().sources["events"]
        topic_records.skip(deployed.deployment, source, 0, 20, "n = 20")
        deployed.wait_for("events")
        clicks = 39

        def has_grown_back() -> bool:
            """Sends more records if it has not: a late look takes the commits of several doublings for those of one."""
            nonlocal clicks
            if "up to 32 records" not in caplog.text:
                deployed.send("events", *({"kind": "click", "n": n} for n in range(100, 150)), partition=0)
                clicks += 50
                deployed.wait_for("events")
            return "up to 32 records" in caplog.text

        deployed.until(has_grown_back, "the bound has grown back")
        deployed.until(lambda: deployed.owner("SELECT stopped FROM lamina.query") == [(None,)], "the query runs again")
    assert deployed.rows("SELECT count(*) FROM clicks") == [(clicks,)]


def test_micro_batches_that_take_too_long_grow_back_later_each_time(deployed: Deployed) -> None:
    deployed.apply(events=ONE_PARTITION, totals=TOTALS)
    source, at = deployed.deployment.deployed().sources["events"], TopicPartition(deployed.topic("events"), 0)
    layer = deployed.deployment.speed(threading.Event(), max_records=64)
    query, grew_after = Query(source), []
    for _ in range(7):
        too_long = TooLong(
            OffsetRange(Offsets({at: 0}), Offsets({at: 64})), Jobs(layer.resources.spark), Skipped(), shared=False
        )
        layer._judge.decide(query, too_long)
        assert query.trouble.hang is not None
        query.trouble.hang.spins = False  # it had many records, and none is endless
        assert layer._judge.may_run(query)
        assert layer._judge.max_offsets(query) == 32
        grew_after.append(next(commits for commits in count(1) if layer._judge.note_commits(query, commits)))
    assert grew_after == [2, 4, 8, 16, 32, 64, 64]


def test_ten_thousand_malformed_records_and_one_of_eight_megabytes_are_counted_exactly(deployed: Deployed) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    topic = deployed.topic("events")
    long = b"{" + b"x" * (8 * 1024 * 1024 - 10_000)
    with deployed.deployment.brokers.producer() as producer:
        producer.send(topic, long, partition=0)
        for number in range(12_000):
            producer.send(topic, b"no JSON" if number % 6 else b'{"n": 1}', partition=number % 2)
    deployed.catch_up()
    assert deployed.rows("SELECT events FROM totals") == [(2_000,)]
    assert dict(deployed.rows("SELECT error, records FROM lamina.bad_records")) == {
        "not JSON": 10_000,
        "not JSON, or nested too deep": 1,
    }
    kept = "SELECT value_bytes, octet_length(value), substr(value, 1, 3) FROM lamina.quarantine ORDER BY 1 DESC LIMIT 1"
    [(whole, first, begin)] = deployed.owner(kept)
    assert (whole, first, bytes(begin)) == (len(long), LONGEST_KEPT, b"{xx")
