"""The producer of a run. It sends good records all the time, and those of a fault at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kafka import KafkaProducer
from kafka.errors import KafkaError

from benchmarks.chaos.chaos_oracle import ChaosOracle
from benchmarks.chaos.world import SentRecord, World

Client = TypeVar("Client")

OUTAGE = 600.0
"""Seconds for which a fault may keep Kafka down while a client connects."""


@dataclass(frozen=True)
class Producer:
    """Sends records of the world to Kafka, and to the oracle what each of them must become.

    paused: `run` sends nothing while this is set
    """

    servers: str
    world: World
    oracle: ChaosOracle
    paused: threading.Event = field(default_factory=threading.Event)

    def connect(self, **options: object) -> KafkaProducer:
        """A client that writes each record once or not at all."""
        usual: dict[str, object] = {
            "acks": "all",
            "linger_ms": 5,
            "max_request_size": 8 * 1024 * 1024,
            "max_block_ms": 10_000,
            "delivery_timeout_ms": 90_000,
            "metadata_max_age_ms": 2_000,
        }
        return KafkaProducer(bootstrap_servers=self.servers, **usual | options)

    def send(self, client: KafkaProducer, source: str, record: SentRecord, dice: random.Random) -> None:
        """Sends a record to any partition of its source. Its key is the number that identifies it here."""
        key = str(self.world.number()).encode()
        self.oracle.sent[key] = record
        topic = self.world.sources[source].topic
        partition = dice.choice(sorted(client.partitions_for(topic)))
        client.send(topic, value=record.value, key=key, partition=partition, timestamp_ms=record.timestamp_ms)

    def burst(self, records: Sequence[tuple[str, SentRecord]], dice: random.Random) -> None:
        """Sends these records, and returns once Kafka holds them."""
        client = patiently(lambda: self.connect(max_block_ms=60_000))
        try:
            for source, record in records:
                self.send(client, source, record, dice)
            client.flush(timeout=60)
        finally:
            client.close(timeout=10)

    def good(self, count: int, dice: random.Random) -> list[tuple[str, SentRecord]]:
        """Good records of all sources."""
        names = list(self.world.sources)
        weights = (5, 4, 1, 2, 2)[: len(names)]
        return [(name, self.world.record(name, dice)) for name in dice.choices(names, weights, k=count)]

    def run(self, rate: int, stopping: threading.Event) -> None:
        """Sends `rate` good records a second. While Kafka is down, they are left out."""
        dice = random.Random(self.world.seed)
        client: KafkaProducer | None = None
        while not stopping.wait(0.1):
            if self.paused.is_set():
                continue
            try:
                client = client or self.connect()
                for source, record in self.good(max(1, rate // 10), dice):
                    self.send(client, source, record, dice)
            except (KafkaError, OSError, AssertionError, TypeError):
                if client is not None:
                    client.close(timeout=1)
                client = None
        if client is not None:
            client.close(timeout=10)


def patiently(connect: Callable[[], Client]) -> Client:
    """A client of Kafka. A fault that strikes at the same time may have taken Kafka down for a while."""
    deadline = time.monotonic() + OUTAGE
    while True:
        try:
            return connect()
        except KafkaError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
