"""The master log, and transactions on a topic's first partition."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from kafka import IsolationLevel, KafkaAdminClient, KafkaProducer, OffsetSpec, TopicPartition
from pyspark.sql import SparkSession

from master_log.log import MasterLog

Transaction = Callable[..., None]


@pytest.fixture
def log(spark: SparkSession) -> MasterLog:
    return MasterLog(spark)


@pytest.fixture(scope="session")
def ended(kafka_admin: KafkaAdminClient) -> Callable[[str, int], None]:
    """Waits for the marker at the end of a transaction in partition 0: brokers write it a little later."""

    def wait(topic: str, end: int) -> None:
        partition = {TopicPartition(topic, 0): OffsetSpec.LATEST}
        deadline = time.monotonic() + 20
        while (
            next(iter(kafka_admin.list_partition_offsets(partition, IsolationLevel.READ_COMMITTED).values())).offset
            < end
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
