"""Writes records to Kafka."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

from kafka import KafkaProducer
from kafka.errors import AuthorizationError, KafkaError, MessageSizeTooLargeError

from master_log.connections.client import PATIENCE_MS, Client
from master_log.connections.unavailable import unreachable
from view_algebra.errors import LaminaError

IN_FLIGHT_BYTES = 32 * 1024 * 1024
"""Most bytes of unacknowledged records: kafka-python 3 would keep any number in memory."""


class NotTaken(LaminaError):
    """The brokers refused a record, or did not acknowledge it."""


class Producer:
    """Writes every record once, acknowledged by all replicas, in bounded memory.

    A refused record raises when a later record is sent, or at `flush`. Kafka keeps the records sent before it.
    """

    def __init__(self, brokers: Client) -> None:
        self._bootstrap_servers = brokers.bootstrap_servers
        self._waiting: deque[tuple[Any, int]] = deque()
        self._waiting_bytes = 0
        self.acknowledged = 0
        """The number of first records that the brokers have acknowledged. They may hold some later ones as well."""
        try:
            self._client = KafkaProducer(
                **brokers.options,
                acks="all",
                enable_idempotence=True,
                linger_ms=10,
                batch_size=256 * 1024,
                max_request_size=64 * 1024 * 1024,  # the topic limits a record's size
                max_block_ms=4 * PATIENCE_MS,
                bootstrap_timeout_ms=PATIENCE_MS,
                allow_auto_create_topics=False,
            )
        except KafkaError as error:
            raise unreachable(brokers.bootstrap_servers, [str(error)]) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            with suppress(KafkaError):  # the error that ends the block, or `flush` itself, reports lost records
                self._client.close(timeout=PATIENCE_MS / 1000)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Sends a record, and waits while too many bytes are unacknowledged.

        Without `partition`, records of one key go to one partition (murmur2, as in Kafka's own producer).
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
        """Waits until the brokers hold every record that was sent."""
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
            way_out = "Make sure that the brokers run and the topic exists, and send the rest again."
        return NotTaken(
            f"{topic}: the brokers at {self._bootstrap_servers} did not take a record",
            evidence=str(error),
            way_out=way_out,
        )
