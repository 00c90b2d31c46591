"""A source, the brokers as the product sees them, and what a topic holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from kafka import IsolationLevel, KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec, TopicPartition
from pyspark.sql import SparkSession

from master_log.archive import MasterLog
from master_log.kafka import Brokers
from tests.fix_services import Topic
from view_algebra import compile_catalog
from view_algebra.compiled import Source

Transaction = Callable[..., None]
NewSource = Callable[..., Source]
Contents = Callable[[str], list[tuple[bytes | None, bytes | None]]]

COLUMNS = "id BIGINT, kind STRING, small SMALLINT, price DECIMAL(12, 2), ts TIMESTAMP"


def declared(topic: str, columns: str = COLUMNS, properties: str = "") -> Source:
    """The source that this declaration makes."""
    statement = f"CREATE TABLE events ({columns}) USING kafka OPTIONS (topic '{topic}', format 'json') {properties};"
    return compile_catalog({"sources/events.sql": statement}).sources["events"]


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


@pytest.fixture
def log(spark: SparkSession) -> MasterLog:
    return MasterLog(spark)


@pytest.fixture(scope="session")
def contents(kafka: str, brokers: Brokers) -> Contents:
    """Key and value of each committed record of a topic, partition by partition."""

    def read(topic: str) -> list[tuple[bytes | None, bytes | None]]:
        consumer = KafkaConsumer(
            bootstrap_servers=kafka, auto_offset_reset="earliest", isolation_level="read_committed", group_id=None
        )
        ends = brokers.latest(topic)
        assigned = [TopicPartition(*at) for at in ends]
        consumer.assign(assigned)
        found: dict[int, list[tuple[bytes | None, bytes | None]]] = {at.partition: [] for at in assigned}
        while any(consumer.position(TopicPartition(*at)) < end for at, end in ends.items()):
            for at, records in consumer.poll(timeout_ms=200).items():
                found[at.partition] += [(record.key, record.value) for record in records]
        consumer.close()
        return [record for partition in sorted(found) for record in found[partition]]

    return read


@pytest.fixture(scope="session")
def ended(kafka_admin: KafkaAdminClient) -> Callable[[str, int], None]:
    """Waits for the marker by which a partition 0 tells that a transaction ended: brokers write it a little later."""

    def wait(topic: str, end: int) -> None:
        asked = {TopicPartition(topic, 0): OffsetSpec.LATEST}
        deadline = time.monotonic() + 20
        while (
            next(iter(kafka_admin.list_partition_offsets(asked, IsolationLevel.READ_COMMITTED).values())).offset < end
        ):
            assert time.monotonic() < deadline, f"{topic} did not reach {end}"

    return wait


@pytest.fixture
def transaction(kafka: str, ended: Callable[[str, int], None]) -> Iterator[Transaction]:
    """Sends records to partition 0 in one transaction: `transaction(topic, values, commit=True)`."""
    opened: list[KafkaProducer] = []
    lengths: dict[str, int] = {}

    def send(topic: str, values: list[bytes], commit: bool = True) -> None:
        if not opened:
            opened.append(KafkaProducer(bootstrap_servers=kafka, transactional_id=f"by-{topic}"))
            opened[0].init_transactions()
        opened[0].begin_transaction()
        for value in values:
            opened[0].send(topic, value, partition=0)
        opened[0].flush()
        (opened[0].commit_transaction if commit else opened[0].abort_transaction)()
        lengths[topic] = lengths.get(topic, 0) + len(values) + 1
        ended(topic, lengths[topic])

    yield send
    for producer in opened:
        producer.close()
