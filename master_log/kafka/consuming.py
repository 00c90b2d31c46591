"""Reads a few records from Kafka with kafka-python's consumer, within a bounded time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Literal

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.errors import KafkaError

from master_log.connections.client import PATIENCE_MS, Client
from master_log.connections.unavailable import unreachable
from master_log.offsets import TopicPartition

BACKOFF_MS = 10
"""Milliseconds a consumer sleeps until it knows its partitions' brokers. kafka-python would sleep 100, twice."""

SAMPLE_SECONDS = 2.0
"""Seconds that reading a sample of records may take."""

Pair = tuple[bytes | None, bytes | None]
"""Key and value of a record."""


@contextmanager
def _consumer(
    client: Client,
    positions: Mapping[TopicPartition, int],
    level: Literal["read_committed", "read_uncommitted"] = "read_committed",
) -> Iterator[Any]:
    """A consumer without a group, positioned at these offsets. Raises LaminaError for what goes wrong with it."""
    try:
        options = {"group_id": None, "enable_auto_commit": False, "isolation_level": level}
        with closing(KafkaConsumer(**client.options, **options, retry_backoff_ms=BACKOFF_MS)) as consumer:
            consumer.assign([KafkaTopicPartition(*at) for at in positions])
            for at, offset in positions.items():
                consumer.seek(KafkaTopicPartition(*at), offset)
            yield consumer
    except (KafkaError, ValueError, OverflowError) as error:  # also for a record that cannot be decoded
        raise unreachable(client.bootstrap_servers, [str(error)]) from error


def records_in(
    client: Client, topics: Sequence[str], spans: Mapping[TopicPartition, tuple[int, int]]
) -> dict[str, list[Pair]]:
    """Keys and values of the records in these spans of offsets, by topic, in the order of their timestamps."""
    records_of: dict[str, list[Any]] = {topic: [] for topic in topics}
    if spans:
        ends = {KafkaTopicPartition(*at): end for at, (_, end) in spans.items()}
        with _consumer(client, {at: start for at, (start, _) in spans.items()}) as consumer:
            deadline = time.monotonic() + SAMPLE_SECONDS
            while ends and time.monotonic() < deadline:
                for at, records in consumer.poll(timeout_ms=200).items():
                    records_of[at.topic] += records
                ends = {at: end for at, end in ends.items() if consumer.position(at) < end}
    return {
        topic: [(record.key, record.value) for record in sorted(records, key=lambda record: record.timestamp)]
        for topic, records in records_of.items()
    }


def record_at(client: Client, at: TopicPartition, offset: int) -> Pair | None:
    """Key and value of the record at an offset, or None if there is no readable record."""
    with _consumer(client, {at: offset}) as consumer:
        try:
            polled = consumer.poll(timeout_ms=PATIENCE_MS, max_records=1).get(KafkaTopicPartition(*at), [])
        except (KafkaError, ValueError, OverflowError):  # a record that cannot be decoded may be skipped as well
            return None
    return next(((record.key, record.value) for record in polled if record.offset == offset), None)


def first_times(client: Client, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
    """Unix times of the first records at these offsets, committed or not, that arrive within `SAMPLE_SECONDS`."""
    times: dict[TopicPartition, float] = {}
    if offsets:
        with _consumer(client, offsets, "read_uncommitted") as consumer:
            deadline = time.monotonic() + SAMPLE_SECONDS
            while len(times) < len(offsets) and time.monotonic() < deadline:
                for at, records in consumer.poll(timeout_ms=200).items():
                    times.setdefault(TopicPartition(at.topic, at.partition), records[0].timestamp / 1000)
    return times
