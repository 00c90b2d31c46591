"""Sources over topics of their own, the brokers as the product sees them, and the contents of a topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from master_log.kafka.brokers import Brokers
from tests.fix_services import Topic
from view_algebra import compile_catalog
from view_algebra.compiled import Source

NewSource = Callable[..., Source]
Contents = Callable[[str], list[tuple[bytes | None, bytes | None]]]

COLUMNS = "id BIGINT, kind STRING, small SMALLINT, price DECIMAL(12, 2), ts TIMESTAMP"


def declared(topic: str, columns: str = COLUMNS, properties: str = "") -> Source:
    """A source `events` with these columns over this topic."""
    statement = f"CREATE TABLE events ({columns}) USING kafka OPTIONS (topic '{topic}', format 'json') {properties};"
    return compile_catalog({"sources/events.sql": statement}).sources["events"]


def delete_topic(brokers: Brokers, topic: str) -> None:
    """Deletes a topic. Returns once the broker knows, which learns of it from the controller a moment later."""
    brokers.delete(topic)
    while brokers.topic_id(topic) is not None:
        time.sleep(0.02)


def add_partitions(kafka_admin: KafkaAdminClient, brokers: Brokers, topic: str, partitions: int) -> None:
    """Gives a topic this many partitions. Returns once the broker knows of them."""
    kafka_admin.create_partitions({topic: partitions})
    while len(brokers.partitions(topic)) < partitions:
        time.sleep(0.02)


@pytest.fixture(scope="session")
def brokers(kafka: str) -> Iterator[Brokers]:
    with Brokers(kafka) as connected:
        yield connected


@pytest.fixture(scope="session")
def new_source(topic: Topic) -> NewSource:
    """Makes a source over a topic of its own: `new_source(partitions=1, columns=COLUMNS, properties="", **configs)`."""

    def make(partitions: int = 1, columns: str = COLUMNS, properties: str = "", **configs: str) -> Source:
        return declared(topic(partitions, "events", **configs), columns, properties)

    return make


@pytest.fixture(scope="session")
def contents(kafka: str, brokers: Brokers) -> Contents:
    """Reads the key and value of each committed record of a topic, partition by partition."""

    def read(topic: str) -> list[tuple[bytes | None, bytes | None]]:
        consumer = KafkaConsumer(
            bootstrap_servers=kafka, auto_offset_reset="earliest", isolation_level="read_committed", group_id=None
        )
        ends = brokers.latest(topic)
        assigned = [TopicPartition(*at) for at in ends]
        consumer.assign(assigned)
        pairs: dict[int, list[tuple[bytes | None, bytes | None]]] = {at.partition: [] for at in assigned}
        while any(consumer.position(TopicPartition(*at)) < end for at, end in ends.items()):
            for at, records in consumer.poll(timeout_ms=200).items():
                pairs[at.partition] += [(record.key, record.value) for record in records]
        consumer.close()
        return [pair for partition in sorted(pairs) for pair in pairs[partition]]

    return read
