"""Kafka, as its brokers tell it: topics, their ids, the ends of their logs, and records on their way in.

The only place that speaks to brokers directly (kafka-python); Spark's own reader is in `reading`. Whatever goes
wrong between here and the brokers is a `LaminaError` within a bounded time.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from kafka import IsolationLevel, KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec
from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    AuthorizationError,
    BrokerResponseError,
    Cancelled,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NodeNotReadyError,
    RequestTimedOutError,
    RetriableError,
    SaslAuthenticationFailedError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.net.compat import KafkaNetClient

from master_log import tails
from master_log.offsets import OffsetRange, Offsets, TopicPartition
from master_log.tails import Differs, Tails
from view_algebra.errors import LaminaError

_T = TypeVar("_T")

PATIENCE_MS = 5_000
"""How long one question may stay unanswered before it is an error; a broker on a loaded laptop answers in under 1 s."""

SAMPLE_SECONDS = 2.0
"""How long a sample of the newest records may take."""

IN_FLIGHT_BYTES = 32 * 1024 * 1024
"""Records handed to the client and not yet acknowledged: kafka-python 3 keeps any number of them in memory."""

_LOST_TOUCH = (KafkaConnectionError, NodeNotReadyError, RequestTimedOutError, KafkaTimeoutError, Cancelled)
_SAID = re.compile(r"""error_message=(?:"(?P<double>[^"]+)"|'(?P<single>[^']+)')""")
_REASON = re.compile(r"failed: (?P<reason>.+?) \(backoff")


class _Heard(logging.Handler):
    """Why the latest connections failed: kafka-python logs it, and raises only that bootstrapping took too long."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.reasons: deque[str] = deque(maxlen=20)

    def emit(self, record: logging.LogRecord) -> None:
        if found := _REASON.search(record.getMessage()):
            self.reasons.append(found["reason"])


_heard = _Heard()
# What matters of this log is raised; a loop that waits for a broker would otherwise print a line per attempt.
logging.getLogger("kafka").addHandler(_heard)
logging.getLogger("kafka").propagate = False


class KafkaAway(LaminaError):
    """The brokers do not answer; they may again."""


class NotTaken(LaminaError):
    """The brokers did not take a record."""


PROTOCOLS = ("SASL_SSL", "SASL_PLAINTEXT", "SSL")
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")


@dataclass(frozen=True)
class Login:
    """How to prove who we are to brokers that ask.

    protocol: one of `PROTOCOLS`. mechanism: one of `MECHANISMS`.
    ca_file: PEM file of the authority that signed the brokers' certificates; None takes the system's.
    """

    protocol: str
    mechanism: str = "SCRAM-SHA-512"
    user: str = ""
    password: str = ""
    ca_file: str | None = None

    def __repr__(self) -> str:
        return f"Login({self.protocol}, {self.mechanism}, user={self.user!r})"

    def for_client(self) -> dict[str, str]:
        """The options of kafka-python."""
        options = {"security_protocol": self.protocol}
        if self.protocol.startswith("SASL"):
            options |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        if self.ca_file:
            options["ssl_cafile"] = self.ca_file
        return options

    def for_spark(self) -> dict[str, str]:
        """The options of Spark's Kafka source."""
        options = {"kafka.security.protocol": self.protocol}
        if self.protocol.startswith("SASL"):
            module = (
                "org.apache.kafka.common.security.plain.PlainLoginModule"
                if self.mechanism == "PLAIN"
                else "org.apache.kafka.common.security.scram.ScramLoginModule"
            )
            user, password = (re.sub(r'(["\\])', r"\\\1", text) for text in (self.user, self.password))
            options["kafka.sasl.mechanism"] = self.mechanism
            options["kafka.sasl.jaas.config"] = f'{module} required username="{user}" password="{password}";'
        if self.ca_file:
            options |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": self.ca_file}
        return options


@dataclass(frozen=True)
class Retention:
    """How long a topic keeps its records: None is without limit.

    compacted: the brokers may also drop records that a newer record of the same key replaces; and those without a value
    after `deletions` milliseconds.
    record_bytes: the largest batch, and so nearly the largest record, that the topic takes.
    """

    milliseconds: int | None
    bytes: int | None
    compacted: bool
    record_bytes: int
    deletions: int = 86_400_000


class Brokers:
    """A Kafka cluster; connects on the first question, and again after the connection was lost.

    Threads may share it. Every question is answered or refused within seconds (`PATIENCE_MS` per attempt).
    """

    def __init__(self, bootstrap_servers: str, login: Login | None = None) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.login = login
        self._client: Any = None
        self._asking: Counter[Any] = Counter()
        self._opening = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the connection back, as soon as no thread asks anything on it; the next question opens another."""
        with self._opening:
            client, self._client = self._client, None
            unused = self._unused(client)
        if unused:
            client.close()

    def listening(self) -> bool:
        """Is anybody there, as far as is known within half a second?"""
        for server in self.bootstrap_servers.split(","):
            host, _, port = server.strip().rpartition(":")
            with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), timeout=0.5):
                return True
        return False

    def topic_id(self, topic: str) -> str | None:
        """The id that Kafka gave the topic when it was created; None when there is no such topic."""
        return self.topic_ids(topic).get(topic)

    def topic_ids(self, *topics: str) -> dict[str, str]:
        """The ids of those topics that there are."""
        return {topic: str(found["topic_id"]) for topic, found in self._describe(topics).items()}

    def partitions(self, topic: str) -> tuple[int, ...]:
        """The numbers of the topic's partitions, ascending."""
        return tuple(sorted(at.partition for at in self._partitions([topic])))

    def earliest(self, *topics: str) -> Offsets:
        """For each partition, the offset below which the brokers hold nothing any more."""
        return self._offsets(topics, OffsetSpec.EARLIEST)

    def latest(self, *topics: str) -> Offsets:
        """For each partition, the end of what is committed: below it no transaction is open (last stable offset)."""
        return self._offsets(topics, OffsetSpec.LATEST)

    def newest(self, topics: Sequence[str], records: int) -> dict[str, list[bytes | None]]:
        """Values of about as many of each topic's newest records: those that the brokers give at once, so it is quick.

        One question for all topics. A partition gives a megabyte at the most, or its newest record.
        """
        starts: dict[KafkaTopicPartition, tuple[int, int]] = {}
        for topic in topics:
            ends, begins = self.latest(topic), self.earliest(topic)
            share = -(-records // max(1, len(ends)))
            for at, end in ends.items():
                if begins[at] < end:
                    starts[KafkaTopicPartition(at.topic, at.partition)] = (max(begins[at], end - share), end)
        found: dict[str, list[bytes | None]] = {topic: [] for topic in topics}
        if not starts:
            return found
        consumer = self._consumer()
        try:
            consumer.assign(list(starts))
            for at, (start, _) in starts.items():
                consumer.seek(at, start)
            deadline = time.monotonic() + SAMPLE_SECONDS
            while starts and time.monotonic() < deadline:
                for at, given in consumer.poll(timeout_ms=200).items():
                    found[at.topic] += [record.value for record in given]
                starts = {at: span for at, span in starts.items() if consumer.position(at) < span[1]}
        except KafkaError as error:
            raise _unreachable(self.bootstrap_servers, [str(error)]) from error
        finally:
            consumer.close()
        return found

    def removed(self, since: Offsets) -> OffsetRange:
        """What the brokers no longer hold of the records at or above `since`; a partition without loss is left out.

        A partition of the same topics that `since` does not name begins at 0.
        """
        gone = {
            at: (since.get(at, 0), first)
            for topic in since.topics()
            for at, first in self.earliest(topic).items()
            if first > since.get(at, 0)
        }
        return OffsetRange(
            Offsets({at: start for at, (start, _) in gone.items()}), Offsets({at: end for at, (_, end) in gone.items()})
        )

    def tails(self, below: Offsets) -> dict[TopicPartition, str]:
        """What stands last below these offsets, where the brokers hold it: see `master_log/tails.py`."""
        try:
            return self._ask(lambda client: client._manager.run(tails.fetch, client, below))  # noqa: SLF001
        except UnknownTopicOrPartitionError as error:  # a broker that has just started may not know its topics yet
            raise _unreachable(self.bootstrap_servers, [str(error)]) from error

    def differing(self, below: Offsets, known: Tails) -> list[Differs]:
        """The partitions in which something else stands below these offsets than is known, or nothing any more.

        What retention has removed, and what the compaction of the topic rewrites, cannot be compared.
        """
        asked = Offsets({at: offset for at, offset in below.items() if at in known})
        other = self._other(asked, known)
        return self._other(Offsets({each.at: each.offset for each in other}), known) if other else []

    def _other(self, below: Offsets, known: Tails) -> list[Differs]:
        now = self.tails(below)
        other = [at for at in below if now.get(at) != known[at]]
        if not other:
            return []
        topic = other[0].topic
        earliest, latest = self.earliest(topic), self.latest(topic)
        found, silent = [], []
        for at in other:
            end = latest.get(at, 0)
            if end < below[at]:
                found.append(Differs(at, below[at], known[at], f"the end of the topic at {end}"))
            elif at in now:
                found.append(Differs(at, below[at], known[at], now[at]))
            elif earliest.get(at, 0) < below[at]:
                silent.append(f"{topic}: what it holds below {below[at]} is not to be had")
        if (found or silent) and self.retention(topic).compacted:
            return []
        if silent:
            raise _unreachable(self.bootstrap_servers, silent)
        return found

    def retention(self, topic: str) -> Retention:
        """How long the topic keeps records and how large they may be."""
        names = ("retention.ms", "retention.bytes", "cleanup.policy", "max.message.bytes", "delete.retention.ms")
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic, dict.fromkeys(names))]
        answer = self._ask(lambda client: client.describe_configs(asked, config_filter="all"))
        found: dict[str, Any] = answer["topic"][topic]
        if not found:
            raise self._no_topic(topic)
        milliseconds, size = (int(found[name]["value"]) for name in names[:2])
        return Retention(
            milliseconds=milliseconds if milliseconds >= 0 else None,
            bytes=size if size >= 0 else None,
            compacted="compact" in found["cleanup.policy"]["value"],
            record_bytes=int(found["max.message.bytes"]["value"]),
            deletions=int(found["delete.retention.ms"]["value"]),
        )

    def create(self, topic: str, partitions: int, settings: Mapping[str, str] | None = None) -> bool:
        """Creates the topic and waits until it can be written to; False, and nothing done, when it exists."""
        wanted = {topic: {"num_partitions": partitions, "configs": dict(settings or {})}}
        try:
            self._ask(lambda client: client.create_topics(wanted, wait_for_metadata=True))
        except TopicAlreadyExistsError:
            return False
        return True

    def delete(self, topic: str) -> None:
        """Deletes the topic with all its records."""
        try:
            self._ask(lambda client: client.delete_topics([topic]))
        except UnknownTopicOrPartitionError as error:
            raise self._no_topic(topic) from error

    def record(self, topic: str, partition: int, offset: int) -> tuple[bytes | None, bytes | None] | None:
        """Key and value of the record at an offset; None where there is none, or none that can be read."""
        self._ask(str)  # so that a wrong address or password is told as such
        at = KafkaTopicPartition(topic, partition)
        consumer = self._consumer()
        try:
            consumer.assign([at])
            consumer.seek(at, offset)
            found = consumer.poll(timeout_ms=PATIENCE_MS, max_records=1).get(at, [])
        except (KafkaError, ValueError, OverflowError):  # what cannot be decoded is one more reason to skip it
            return None
        finally:
            consumer.close()
        return next(((record.key, record.value) for record in found if record.offset == offset), None)

    def producer(self) -> Producer:
        """A producer whose records are written once each and acknowledged by all replicas."""
        self._ask(str)  # so that a wrong address or password is told as such, before the producer waits in vain
        return Producer(self)

    def for_client(self) -> dict[str, Any]:
        """The options with which kafka-python reaches these brokers."""
        return {
            "bootstrap_servers": [server.strip() for server in self.bootstrap_servers.split(",")],
            **(self.login.for_client() if self.login else {}),
        }

    def for_spark(self) -> dict[str, str]:
        """The options with which Spark's Kafka source reaches these brokers."""
        return {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            **(self.login.for_spark() if self.login else {}),
        }

    def _consumer(self) -> KafkaConsumer:
        """A consumer of no group, which sees what is committed."""
        return KafkaConsumer(
            **self.for_client(), group_id=None, enable_auto_commit=False, isolation_level="read_committed"
        )

    def _describe(self, topics: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What the brokers say of each topic that is there."""
        found = {}
        for topic in self._ask(lambda client: client.describe_topics(list(topics))):
            match topic["error_code"]:
                case 0:
                    found[str(topic["name"])] = topic
                case UnknownTopicOrPartitionError.errno:
                    pass
                case code:
                    raise LaminaError(
                        f"{topic['name']}: the brokers at {self.bootstrap_servers} do not describe the topic",
                        evidence=f"Kafka's error code {code}.",
                        way_out="Give the user the right to describe the topic, or correct the topic's name.",
                    )
        return found

    def _partitions(self, topics: Sequence[str]) -> list[KafkaTopicPartition]:
        found = self._describe(topics)
        for topic in topics:
            if topic not in found:
                raise self._no_topic(topic)
        return [
            KafkaTopicPartition(topic, int(partition["partition_index"]))
            for topic in topics
            for partition in found[topic]["partitions"]
        ]

    def _offsets(self, topics: Sequence[str], which: OffsetSpec) -> Offsets:
        asked = dict.fromkeys(self._partitions(topics), which)
        try:
            found = self._ask(lambda client: client.list_partition_offsets(asked, IsolationLevel.READ_COMMITTED))
        except UnknownTopicOrPartitionError as error:
            raise self._no_topic(", ".join(topics)) from error
        return Offsets({TopicPartition(at.topic, at.partition): int(told.offset) for at, told in found.items()})

    def _ask(self, question: Callable[[Any], _T]) -> _T:
        """The answer; asked once more on a new connection when the brokers lost touch (they may have restarted)."""
        again = False
        while True:
            client = self._connected()
            try:
                return self._answer(question, client)
            except _LOST_TOUCH as error:
                if client is not self._client:  # another thread gave it back, as it lost touch, too
                    continue
                self.close()
                if again:
                    raise _unreachable(self.bootstrap_servers, [str(error)]) from error
                again = True
            except (AuthorizationError, SaslAuthenticationFailedError) as error:
                raise self._not_allowed(str(error)) from error
            except (TopicAlreadyExistsError, UnknownTopicOrPartitionError):
                raise
            except RetriableError as error:  # as after a restart, until partitions have leaders again
                raise _unreachable(self.bootstrap_servers, [str(error)]) from error
            except KafkaError as error:
                if not isinstance(error, BrokerResponseError):  # the client's own: no broker has said anything
                    raise _unreachable(self.bootstrap_servers, [str(error)]) from error
                said = _SAID.search(str(error))
                raise LaminaError(
                    f"the brokers at {self.bootstrap_servers} refuse what was asked of them",
                    evidence=said["double"] or said["single"] if said else str(error),
                    way_out="Correct the topic's name and settings, or do it with Kafka's own tools.",
                ) from error

    def _connected(self) -> Any:
        """The connection, which stays open until it has given its answer."""
        with self._opening:
            if self._client is None:
                self._client = self._open()
            self._asking[self._client] += 1
            return self._client

    def _answer(self, question: Callable[[Any], _T], client: Any) -> _T:
        try:
            return question(client)
        finally:
            with self._opening:
                self._asking -= Counter([client])
                unused = self._unused(client)
            if unused:
                client.close()

    def _unused(self, client: Any) -> bool:
        """Has the connection been given back, and its last answer given? Asked while no other thread opens one."""
        return client not in (None, self._client) and not self._asking[client]

    def _open(self) -> Any:
        connections: list[Any] = []

        def remembered(**options: Any) -> Any:
            connections.append(KafkaNetClient(**options))
            return connections[-1]

        _heard.reasons.clear()
        try:
            return KafkaAdminClient(
                **self.for_client(),
                client_id=f"lamina-{uuid.uuid4().hex[:8]}",
                request_timeout_ms=PATIENCE_MS,
                bootstrap_timeout_ms=PATIENCE_MS,
                reconnect_backoff_max_ms=1_000,
                kafka_client=remembered,
            )
        except (KafkaError, ValueError, OSError) as error:
            for connection in connections:  # the constructor that failed leaves its thread and sockets behind
                connection.close()
            reasons = list(dict.fromkeys(_heard.reasons)) or [str(error)]
            refusals = [reason for reason in reasons if "Sasl" in reason or "Authorization" in reason]
            if refusals:
                raise self._not_allowed(refusals[-1]) from error
            raise _unreachable(self.bootstrap_servers, reasons) from error

    def _not_allowed(self, reason: str) -> LaminaError:
        user = f"as {self.login.user!r}" if self.login else "without a login"
        return LaminaError(
            f"the brokers at {self.bootstrap_servers} refuse us {user}",
            evidence=reason,
            way_out="Correct user, password, mechanism and protocol: what the listener at that port asks for.",
        )

    def _no_topic(self, topic: str) -> LaminaError:
        return LaminaError(
            f"{topic}: there is no such topic at {self.bootstrap_servers}",
            way_out="Create the topic, or correct OPTIONS (topic '…') in the source's declaration.",
        )


class Producer:
    """Writes records: each once, acknowledged by all replicas, in bounded memory.

    A record that the brokers refuse raises when a later record is sent or at `flush`; what was sent before it is kept.
    """

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._waiting: deque[tuple[Any, int]] = deque()
        self._waiting_bytes = 0
        self.acknowledged = 0
        """Records from the first on that the brokers hold; some behind them may be there, too."""
        try:
            self._client = KafkaProducer(
                **brokers.for_client(),
                acks="all",
                enable_idempotence=True,
                linger_ms=10,
                batch_size=256 * 1024,
                max_request_size=64 * 1024 * 1024,  # how large a record may be is for the topic to say
                max_block_ms=4 * PATIENCE_MS,
                bootstrap_timeout_ms=PATIENCE_MS,
                allow_auto_create_topics=False,
            )
        except KafkaError as error:
            raise _unreachable(brokers.bootstrap_servers, [str(error)]) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.flush()
        self._client.close(timeout=PATIENCE_MS / 1000)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Hands a record over; waits when too much is on its way.

        Without `partition`, records of one key go to one partition (murmur2, as Kafka's own producer does it).
        """
        size = len(value or b"") + len(key or b"")
        try:
            sent = self._client.send(topic, value=value, key=key, partition=partition, headers=list(headers))
            self._waiting.append((sent, size))
        except KafkaError as error:
            raise self._refused(topic, error) from error
        self._waiting_bytes += size
        while self._waiting_bytes > IN_FLIGHT_BYTES or (self._waiting and self._waiting[0][0].is_done):
            self._await_oldest(topic)

    def flush(self) -> None:
        """Returns when the brokers hold every record that was sent."""
        while self._waiting:
            self._await_oldest("the last records")

    def _await_oldest(self, topic: str) -> None:
        future, size = self._waiting.popleft()
        self._waiting_bytes -= size
        try:
            future.get(timeout=120)
        except KafkaError as error:
            self._waiting.clear()
            raise self._refused(topic, error) from error
        self.acknowledged += 1

    def _refused(self, topic: str, error: KafkaError) -> NotTaken:
        if isinstance(error, MessageSizeTooLargeError):
            way_out = "Raise the topic's max.message.bytes, or leave the record out."
        elif isinstance(error, AuthorizationError):
            way_out = "Give the user the right to write to the topic."
        else:
            way_out = "See that the brokers run and the topic exists, and send the rest again."
        return NotTaken(
            f"{topic}: the brokers at {self._brokers.bootstrap_servers} did not take a record",
            evidence=str(error),
            way_out=way_out,
        )


def _unreachable(bootstrap_servers: str, reasons: Iterable[str]) -> KafkaAway:
    return KafkaAway(
        f"Kafka does not answer at {bootstrap_servers}",
        evidence="\n".join(reasons),
        way_out="Start the brokers, or correct the address (LAMINA_KAFKA, host:port) and how to log in there.",
    )
