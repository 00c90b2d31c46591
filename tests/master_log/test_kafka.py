"""Requests to the brokers, and errors for wrong addresses, names and logins."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import LeaderNotAvailableError

from master_log.connections.login import Login
from master_log.connections.unavailable import KafkaUnavailable
from master_log.kafka.brokers import Brokers, existing
from master_log.offsets import Offsets, TopicPartition
from tests.fix_services import Topic
from tests.fix_sources import Contents, delete_topic
from view_algebra.errors import LaminaError


def test_creating_a_topic_twice_creates_it_once(brokers: Brokers) -> None:
    assert brokers.topic_id("made_twice") is None
    assert brokers.create("made_twice", 3, {"retention.ms": "3600000"})
    first = brokers.topic_id("made_twice")
    assert not brokers.create("made_twice", 1)
    assert brokers.topic_id("made_twice") == first
    assert brokers.partitions("made_twice") == (0, 1, 2)
    assert brokers.retention("made_twice").milliseconds == 3_600_000
    assert brokers.retention("made_twice").bytes is None
    brokers.delete("made_twice")


def test_a_recreated_topic_has_a_new_id(brokers: Brokers, topic: Topic) -> None:
    name = topic()
    first = brokers.topic_id(name)
    delete_topic(brokers, name)
    brokers.create(name, 1)
    assert brokers.topic_id(name) not in (None, first)


def test_the_latest_offset_is_below_an_open_transaction(
    kafka: str, brokers: Brokers, topic: Topic, ended: Callable[[str, int], None]
) -> None:
    name = topic()
    producer = KafkaProducer(bootstrap_servers=kafka, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(name, b"1", timestamp_ms=1_600_000_000_000)  # an old record, which a producer sends again
    producer.flush()
    assert brokers.latest(name) == Offsets.of(name, {0: 0})
    [held_back] = brokers.open_transactions(brokers.latest(name))
    assert (held_back.at, held_back.start, held_back.offsets) == (TopicPartition(name, 0), 0, 1)
    assert 0 <= held_back.seconds < 60
    assert not held_back.by_record
    producer.commit_transaction()
    ended(name, 2)
    assert brokers.open_transactions(brokers.latest(name)) == []
    assert brokers.latest(name) == Offsets.of(name, {0: 2}), "the record and the transaction's marker"
    producer.close()


def test_a_group_that_the_brokers_refuse_is_logged_once(
    brokers: Brokers, topic: Topic, kafka: str, kafka_admin: KafkaAdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    name, groups = topic(2), brokers.groups()
    consumer = KafkaConsumer(name, bootstrap_servers=kafka, group_id=f"lamina.taken_{name}")
    deadline = time.monotonic() + 30
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(100)  # until it is a member, and then nobody else may commit
    progress = {f"taken_{name}": Offsets.of(name, {0: 1}), f"free_{name}": Offsets.of(name, {0: 1, 1: 2})}
    for _ in range(2):
        groups.commit(progress)
    free = kafka_admin.list_group_offsets(f"lamina.free_{name}")[f"lamina.free_{name}"]
    assert {at.partition: committed.offset for at, committed in free.items()} == {0: 1, 1: 2}
    [warning] = [record.getMessage() for record in caplog.records if record.name == "lamina.kafka"]
    assert (
        f"the lag of taken_{name}: the brokers refuse offsets for the consumer group lamina.taken_{name} (" in warning
    )
    consumer.close()
    groups.close()


def test_offsets_removed_by_retention_are_returned_per_partition(
    brokers: Brokers, topic: Topic, producer: KafkaProducer, kafka_admin: KafkaAdminClient
) -> None:
    name = topic(2)
    for number in range(6):
        producer.send(name, b"{}", partition=number % 2)
    producer.flush()
    kafka_admin.delete_records({KafkaTopicPartition(name, 1): 2})
    assert brokers.earliest(name) == Offsets.of(name, {0: 0, 1: 2})
    removed = brokers.removed(Offsets.of(name, {0: 0, 1: 1}))
    assert (removed.start, removed.end) == (Offsets.of(name, {1: 1}), Offsets.of(name, {1: 2}))
    assert brokers.removed(Offsets.of(name, {0: 0, 1: 2})).empty
    assert brokers.removed(Offsets.of(name, {0: 0})).start == Offsets.of(name, {1: 0}), "a partition begins at 0"


def test_a_refusal_quotes_the_brokers(brokers: Brokers) -> None:
    with pytest.raises(LaminaError, match="refused the request") as raised:
        brokers.create("not/a/name", 1)
    assert raised.value.evidence.startswith("Topic name is invalid: 'not/a/name' contains")
    with pytest.raises(LaminaError, match="do not describe the topic") as raised:
        brokers.partitions("not/a/name")
    assert raised.value.evidence == "InvalidTopicError"


def test_paused_brokers_count_as_unavailable_and_no_topic_is_blamed() -> None:
    """A paused container accepts a connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent, Brokers(f"127.0.0.1:{silent.getsockname()[1]}") as paused:
        with pytest.raises(KafkaUnavailable) as raised:
            paused.partitions("orders")
        assert "name" not in raised.value.way_out


def test_a_topic_without_a_leader_counts_as_unavailable() -> None:
    with pytest.raises(KafkaUnavailable) as raised:
        existing([{"name": "orders", "error_code": LeaderNotAvailableError.errno}], "localhost:9092")
    assert raised.value.evidence == "orders: LeaderNotAvailableError"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "no.such.host.invalid:9092", "nonsense:port"])
def test_a_wrong_address_is_one_error_within_seconds(address: str, capfd: pytest.CaptureFixture[str]) -> None:
    threads, began = set(threading.enumerate()), time.monotonic()
    with pytest.raises(LaminaError, match="Kafka does not answer") as raised, Brokers(address) as wrong:
        wrong.latest("any")
    assert time.monotonic() - began < 25
    assert raised.value.evidence
    assert raised.value.way_out
    assert set(threading.enumerate()) <= threads, "a loop that waits for brokers would fill the process with threads"
    assert capfd.readouterr() == ("", "")


def test_threads_that_share_brokers_share_one_connection(kafka: str) -> None:
    before = set(threading.enumerate())  # one of them, of an earlier test, may end meanwhile
    with Brokers(kafka) as shared, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: shared.topic_id("any"), range(8)))
        pool.shutdown()
        assert len(set(threading.enumerate()) - before) == 1, "of the one connection"
    assert set(threading.enumerate()) <= before


def test_a_request_survives_that_another_thread_closes_the_connection(kafka: str) -> None:
    with Brokers(kafka) as shared, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: [shared.topic_id("any") for _ in range(60)])
        while not asked.done():
            shared.close()
            time.sleep(0.02)
        assert asked.result() == [None] * 60


def test_a_login_that_the_listener_refuses_is_reported_as_such(kafka: str) -> None:
    login = Login("SASL_PLAINTEXT", "PLAIN", "bob", "secret")
    with pytest.raises(LaminaError, match="refuse the login as 'bob'") as raised, Brokers(kafka, login) as wrong:
        wrong.latest("any")
    assert "secret" not in str(raised.value) + repr(login)


@pytest.mark.parametrize("question", [Brokers.earliest, Brokers.latest, Brokers.partitions, Brokers.retention])
def test_a_topic_that_does_not_exist_is_named(brokers: Brokers, question: object) -> None:
    with pytest.raises(LaminaError, match="nowhere: there is no such topic"):
        question(brokers, "nowhere")  # type: ignore[operator]


def test_a_record_that_the_topic_refuses_is_reported(brokers: Brokers, topic: Topic, contents: Contents) -> None:
    name = topic(**{"max.message.bytes": "1000"})
    producer = brokers.producer()
    producer.send(name, b"small")
    producer.flush()
    producer.send(name, b"x" * 5000)
    with pytest.raises(LaminaError, match="did not take a record") as raised:
        producer.flush()
    assert contents(name) == [(None, b"small")]
    assert "max.message.bytes" in raised.value.way_out


def test_a_producer_is_closed_even_if_its_last_record_is_refused(brokers: Brokers, topic: Topic) -> None:
    name = topic(**{"max.message.bytes": "1000"})
    brokers.latest(name)  # opens the shared connection, which has threads of its own
    before = set(threading.enumerate())
    with pytest.raises(LaminaError, match="did not take a record"), brokers.producer() as producer:
        producer.send(name, b"x" * 5000)
    assert set(threading.enumerate()) <= before


def test_records_of_a_key_stay_together_in_their_order(brokers: Brokers, topic: Topic, contents: Contents) -> None:
    name = topic(3)
    with brokers.producer() as producer:
        for number in range(300):
            producer.send(name, b"%d" % number, key=b"%d" % (number % 7))
    committed = contents(name)
    for key in range(7):
        mine = [int(value or b"") for sent, value in committed if sent == b"%d" % key]
        assert mine == list(range(key, 300, 7))


def test_a_tail_is_the_batch_below_an_offset_however_large_it_is(
    brokers: Brokers, topic: Topic, kafka_admin: KafkaAdminClient
) -> None:
    name = topic(3, **{"max.message.bytes": "8000000"})
    with brokers.producer() as producer:
        for partition, size in ((0, 10), (1, 3_000_000), (2, 10)):
            producer.send(name, b"x" * size, partition=partition)
    with brokers.producer() as producer:
        for _ in range(3):
            producer.send(name, b"y", partition=0)
    tails = brokers.tails(Offsets.of(name, {0: 1, 1: 1, 2: 0}))
    assert {at.partition for at in tails} == {0, 1}
    assert tails[TopicPartition(name, 0)].startswith("offsets 0 to 0 (epoch 0, checksum ")
    assert brokers.tails(Offsets.of(name, {0: 4}))[TopicPartition(name, 0)].startswith("offsets 1 to 3 (")
    assert brokers.tails(Offsets.of(name, {0: 5, 1: 9})) == {}, "beyond the end"

    assert brokers.differing(Offsets.of(name, {0: 1, 1: 1}), tails) == []
    other = {at: f"{tail} of another time" for at, tail in tails.items()}
    assert [partition.at.partition for partition in brokers.differing(Offsets.of(name, {0: 1, 1: 1}), other)] == [0, 1]
    [beyond] = brokers.differing(Offsets.of(name, {0: 5}), tails)
    assert beyond.actual == "the end of the topic at 4"
    kafka_admin.delete_records({KafkaTopicPartition(name, 0): 1})
    assert [partition.at.partition for partition in brokers.differing(Offsets.of(name, {0: 1, 1: 1}), other)] == [1], (
        "it is gone"
    )
    kafka_admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"cleanup.policy": "compact"})])
    while not brokers.retention(name).compacted:
        time.sleep(0.02)
    assert brokers.differing(Offsets.of(name, {1: 1}), other) == [], "compaction rewrites batches"


def test_a_topic_of_a_thousand_partitions_is_created_and_read_at_once(brokers: Brokers) -> None:
    assert brokers.create("wide", 1_000)
    try:
        assert brokers.latest("wide") == Offsets.of("wide", dict.fromkeys(range(1_000), 0))
        assert brokers.tails(brokers.latest("wide")) == {}
    finally:
        brokers.delete("wide")
