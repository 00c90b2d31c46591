"""Topics, ids, offsets and retention of a Kafka cluster, as its brokers report them.

Only `master_log` talks to brokers through kafka-python, and `kafka_reader` reads them with Spark. Any failure of the
brokers becomes a `LaminaError` within a bounded time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from kafka import IsolationLevel, OffsetSpec
from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import RetriableError, TopicAlreadyExistsError, UnknownTopicOrPartitionError, for_code

from master_log.connections.client import Client
from master_log.connections.login import Login
from master_log.connections.unavailable import KafkaUnavailable, unreachable
from master_log.kafka import consuming, fetching, transactions
from master_log.kafka.consuming import Pair
from master_log.kafka.fetching import Epochs
from master_log.kafka.groups import Groups
from master_log.kafka.producer import Producer
from master_log.kafka.tails import ChangedTail, Tails
from master_log.kafka.transactions import OpenTransaction
from master_log.offsets import OffsetRange, Offsets, TopicPartition
from view_algebra.errors import LaminaError

CREATED_WITHIN = 120.0
"""Seconds to wait for a new topic. A broker makes a thousand partitions in 10 s on two busy cores."""


@dataclass(frozen=True)
class Retention:
    """Limits of a topic on its records. None means no limit.

    from_arrival: a record's time counts from its arrival, not from the timestamp that its producer set
    compacted: the brokers may also drop a record that a newer one with its key replaces, and a record without a value
        after `deletions` milliseconds
    record_bytes: the largest batch that the topic takes, and thus nearly its largest record
    """

    milliseconds: int | None
    bytes: int | None
    compacted: bool
    record_bytes: int
    deletions: int = 86_400_000
    from_arrival: bool = False


class Brokers:
    """A Kafka cluster. Threads may share it. Every request ends within seconds, as `Client` says."""

    def __init__(self, bootstrap_servers: str, login: Login | None = None) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._client = Client(bootstrap_servers, login)
        self._ask = self._client.ask

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. The next request opens another."""
        self._client.close()

    def listening(self) -> bool:
        """True if a broker accepts a connection within half a second."""
        return self._client.listening()

    def topic_id(self, topic: str) -> str | None:
        """The id that Kafka gave the topic when it was created, or None if the topic does not exist."""
        return self.topic_ids(topic).get(topic)

    def topic_ids(self, *topics: str) -> dict[str, str]:
        """The ids of the topics that exist."""
        return {topic: str(description["topic_id"]) for topic, description in self._describe(topics).items()}

    def partitions(self, topic: str) -> tuple[int, ...]:
        """The numbers of the topic's partitions, ascending."""
        return tuple(sorted(at.partition for at in self._partitions([topic])))

    def earliest(self, *topics: str) -> Offsets:
        """For each partition, the offset below which the brokers have removed every record."""
        return self._offsets(topics, OffsetSpec.EARLIEST)

    def latest(self, *topics: str) -> Offsets:
        """For each partition, the last stable offset: the end of the committed records, below any open transaction."""
        return self._offsets(topics, OffsetSpec.LATEST)

    def at_time(self, topic: str, milliseconds: int) -> Offsets:
        """For each partition, the first record with this Kafka timestamp or a later one, or else its end."""
        offsets, latest = self._offsets([topic], milliseconds), self.latest(topic)
        return latest.updated({at: offset for at, offset in offsets.items() if offset >= 0})

    def open_transactions(self, committed: Offsets) -> list[OpenTransaction]:
        """The offsets above `latest`, which an open transaction holds back: its own, and those committed after them."""
        written = self._offsets(list(committed.topics()), OffsetSpec.LATEST, IsolationLevel.READ_UNCOMMITTED)
        return transactions.open_transactions(self._client, committed, written)

    def newest_records(self, topics: Sequence[str], records: int) -> dict[str, list[Pair]]:
        """Keys and values of about `records` newest records per topic, in the order of their timestamps.

        One consumer reads all topics and takes what the brokers send at once, so it is quick. A partition yields at
        most a megabyte, or its newest record.
        """
        ends, begins = self.latest(*topics), self.earliest(*topics)
        partitions = Counter(at.topic for at in ends)
        shares = {at: -(-records // partitions[at.topic]) for at in ends}
        spans = {at: (max(begins[at], end - shares[at]), end) for at, end in ends.items() if begins[at] < end}
        return consuming.records_in(self._client, topics, spans)

    def removed(self, since: Offsets) -> OffsetRange:
        """The offsets at or above `since` that the brokers have removed. A partition without loss is left out.

        A partition of the same topics that `since` does not name begins at 0.
        """
        firsts = {at: first for topic in since.topics() for at, first in self.earliest(topic).items()}
        return OffsetRange.between(
            {at: (since.get(at, 0), first) for at, first in firsts.items() if first > since.get(at, 0)}
        )

    def leader_epochs(self, *topics: str) -> dict[TopicPartition, int]:
        """The epoch of each partition's leader, as the brokers know it."""
        return {
            TopicPartition(name, int(partition["partition_index"])): int(partition["leader_epoch"])
            for name, description in self._describe(topics).items()
            for partition in description["partitions"]
        }

    def tails(self, below: Offsets, epochs: Epochs | None = None) -> dict[TopicPartition, str]:
        """The tails below these offsets, as far as the brokers still hold them (`master_log/kafka/tails.py`).

        Raises `LeaderChanged` if a leader's epoch differs from `epochs`.
        """
        try:
            return self._ask(
                lambda client: client._manager.run(fetching.fetch, client, below, epochs or {})  # noqa: SLF001
            )
        except UnknownTopicOrPartitionError as error:  # a broker that has just started may not know its topics yet
            raise unreachable(self.bootstrap_servers, [str(error)]) from error

    def differing(self, below: Offsets, expected: Tails) -> list[ChangedTail]:
        """The partitions of a topic whose tails below these offsets differ from `expected`, or which end before them.

        A tail that retention removed or compaction rewrote cannot be compared. But no compaction moves the end of a
        partition.
        """
        comparable = Offsets({at: offset for at, offset in below.items() if at in expected})
        changed = self._changed(comparable, expected)
        again = Offsets({partition.at: partition.offset for partition in changed})
        return self._changed(again, expected) if changed else []

    def _changed(self, below: Offsets, expected: Tails) -> list[ChangedTail]:
        now = self.tails(below)
        changed = [at for at in below if now.get(at) != expected[at]]
        if not changed:
            return []
        [topic] = {at.topic for at in changed}
        earliest, latest = self.earliest(topic), self.latest(topic)
        ended, replaced, silent = [], [], []
        for at in changed:
            end = latest.get(at, 0)
            if end < below[at]:
                ended.append(ChangedTail(at, below[at], expected[at], f"the end of the topic at {end}"))
            elif at in now:
                replaced.append(ChangedTail(at, below[at], expected[at], now[at]))
            elif earliest.get(at, 0) < below[at]:
                silent.append(f"{topic}: the brokers did not send the record below {below[at]}")
        if (replaced or silent) and self.retention(topic).compacted:
            return ended
        if silent:
            raise unreachable(self.bootstrap_servers, silent)
        return ended + replaced

    def retention(self, topic: str) -> Retention:
        """The limits on the age and size of the topic's records."""
        retentions = self.retentions([topic])
        if topic not in retentions:
            raise self._no_topic(topic)
        return retentions[topic]

    def retentions(self, topics: Sequence[str]) -> dict[str, Retention]:
        """The retention of each topic that exists and may be described, in one request."""
        names = (
            "retention.ms",
            "retention.bytes",
            "cleanup.policy",
            "max.message.bytes",
            "delete.retention.ms",
            "message.timestamp.type",
        )
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic, dict.fromkeys(names)) for topic in topics]
        answer = self._ask(lambda client: client.describe_configs(resources, config_filter="all")) if topics else {}
        return {topic: _retention(settings) for topic, settings in answer.get("topic", {}).items() if settings}

    def create(self, topic: str, partitions: int, settings: Mapping[str, str] | None = None) -> bool:
        """Creates the topic and waits until it can be read and written. Returns False if it already exists."""
        wanted = {topic: {"num_partitions": partitions, "configs": dict(settings or {})}}
        deadline = time.monotonic() + CREATED_WITHIN
        try:
            self._ask(lambda client: client.create_topics(wanted, wait_for_metadata=True))
        except TopicAlreadyExistsError:
            return False
        while True:  # a broker may be the leader of partitions that it has not made yet
            try:
                self.latest(topic)
            except KafkaUnavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return True

    def delete(self, topic: str) -> None:
        """Deletes the topic with all its records."""
        try:
            self._ask(lambda client: client.delete_topics([topic]))
        except UnknownTopicOrPartitionError as error:
            raise self._no_topic(topic) from error

    def record(self, topic: str, partition: int, offset: int) -> Pair | None:
        """Key and value of the record at an offset, or None if there is no readable record."""
        self._ask(str)  # reports a wrong address or password
        return consuming.record_at(self._client, TopicPartition(topic, partition), offset)

    def producer(self) -> Producer:
        """A producer whose records are written once each and acknowledged by all replicas."""
        self._ask(str)  # reports a wrong address or password before the producer waits in vain
        return Producer(self._client)

    def groups(self) -> Groups:
        """The consumer groups of these brokers, over a connection of their own."""
        return Groups(Client(self.bootstrap_servers, self._client.login))

    def for_spark(self) -> dict[str, str]:
        """The options with which Spark's Kafka source reaches these brokers."""
        login = self._client.login
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **(login.for_spark() if login else {})}

    def _describe(self, topics: Sequence[str]) -> dict[str, dict[str, Any]]:
        answers = self._ask(lambda client: client.describe_topics(list(topics)))
        return existing(answers, self.bootstrap_servers)

    def _partitions(self, topics: Sequence[str]) -> list[KafkaTopicPartition]:
        descriptions = self._describe(topics)
        for topic in topics:
            if topic not in descriptions:
                raise self._no_topic(topic)
        return [
            KafkaTopicPartition(topic, int(partition["partition_index"]))
            for topic in topics
            for partition in descriptions[topic]["partitions"]
        ]

    def _offsets(
        self, topics: Sequence[str], which: OffsetSpec | int, level: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> Offsets:
        positions = dict.fromkeys(self._partitions(topics), which)
        try:
            answer = self._ask(lambda client: client.list_partition_offsets(positions, level))
        except UnknownTopicOrPartitionError as error:
            raise self._no_topic(", ".join(topics)) from error
        return Offsets(
            {TopicPartition(at.topic, at.partition): int(position.offset) for at, position in answer.items()}
        )

    def _no_topic(self, topic: str) -> LaminaError:
        return LaminaError(
            f"{topic}: there is no such topic at {self.bootstrap_servers}",
            way_out="Create the topic, or correct OPTIONS (topic '…') in the source's declaration.",
        )


def existing(answers: Iterable[dict[str, Any]], servers: str) -> dict[str, dict[str, Any]]:
    """The brokers' description of each topic that exists. Raises KafkaUnavailable if a topic has no leader yet."""
    descriptions = {}
    for topic in answers:
        match topic["error_code"]:
            case 0:
                descriptions[str(topic["name"])] = topic
            case UnknownTopicOrPartitionError.errno:
                pass
            case code:
                error = for_code(code)
                if issubclass(error, RetriableError):
                    raise unreachable(servers, [f"{topic['name']}: {error.__name__}"])
                raise LaminaError(
                    f"{topic['name']}: the brokers at {servers} do not describe the topic",
                    evidence=error.__name__,
                    way_out="Give the user the right to describe the topic, or correct the topic's name.",
                )
    return descriptions


def _retention(settings: Mapping[str, Any]) -> Retention:
    """The retention in a topic's settings."""
    value = {name: str(setting["value"]) for name, setting in settings.items()}
    milliseconds, size = int(value["retention.ms"]), int(value["retention.bytes"])
    deletes = "delete" in value["cleanup.policy"]  # otherwise neither limit applies
    return Retention(
        milliseconds=milliseconds if deletes and milliseconds >= 0 else None,
        bytes=size if deletes and size >= 0 else None,
        compacted="compact" in value["cleanup.policy"],
        record_bytes=int(value["max.message.bytes"]),
        deletions=int(value["delete.retention.ms"]),
        from_arrival=value["message.timestamp.type"] == "LogAppendTime",
    )
