"""A topic with records, and the log that holds them."""

from __future__ import annotations

from kafka import KafkaProducer
from pyspark.sql import DataFrame

from master_log.kafka.brokers import Brokers
from master_log.log import MasterLog
from view_algebra.compiled import Source

GOOD = b'{"id": %d, "kind": "show", "small": 7, "price": 1.25, "ts": "2024-01-02T03:04:05Z"}'


def fill(producer: KafkaProducer, source: Source, numbers: range, partitions: int = 1) -> None:
    for number in numbers:
        producer.send(source.topic, GOOD % number, partition=number % partitions)
    producer.flush()


def opened(log: MasterLog, source: Source, brokers: Brokers) -> Source:
    topic_id = brokers.topic_id(source.topic)
    assert topic_id is not None
    log.create(source, topic_id, brokers.earliest(source.topic))
    return source


def ids(records: DataFrame) -> list[int | None]:
    return sorted(row.id for row in records.select("id").collect())


def table_name(source: Source) -> str:
    return f"lamina.log.`{source.topic}`"
