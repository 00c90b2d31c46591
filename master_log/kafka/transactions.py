"""Open transactions, which hold back the offsets above them."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kafka import TopicPartition as KafkaTopicPartition

from master_log.connections.client import Client
from master_log.kafka import consuming
from master_log.offsets import Offsets, TopicPartition
from view_algebra.errors import LaminaError


@dataclass(frozen=True)
class OpenTransaction:
    """The offsets that an open transaction holds back in a partition, and the transaction's age in seconds.

    by_record: the brokers do not know when it began, so the seconds count from its first record's timestamp
    """

    at: TopicPartition
    start: int
    offsets: int
    seconds: float
    by_record: bool = False


def open_transactions(client: Client, committed: Offsets, written: Offsets) -> list[OpenTransaction]:
    """The open transactions between the committed and the written ends of partitions."""
    behind = {at: end for at, end in committed.items() if written.get(at, 0) > end}
    if not behind:
        return []
    since: dict[TopicPartition, float] = {}
    with suppress(LaminaError):  # the user may lack the right, and old brokers cannot describe transactions
        since = client.ask(lambda admin: _began(admin, behind.keys()))
    by_record = consuming.first_times(client, {at: end for at, end in behind.items() if at not in since})
    now = time.time()
    return [
        OpenTransaction(at, behind[at], written[at] - behind[at], now - began, by_record=at in by_record)
        for at, began in {**since, **by_record}.items()
    ]


def _began(client: Any, partitions: Collection[TopicPartition]) -> dict[TopicPartition, float]:
    """For each partition, the Unix time at which the transaction that blocks the others began.

    Coordinators report it. Records' timestamps would not do: a producer that sends old records again gives them old
    timestamps. A partition is left out if no coordinator knows its transaction any longer. `client` is a
    KafkaAdminClient.
    """
    holding: dict[TopicPartition, int] = {}
    for at, state in client.describe_producers([KafkaTopicPartition(*at) for at in partitions]).items():
        active = [producer for producer in state.active_producers if producer.current_transaction_start_offset >= 0]
        if active:
            first = min(active, key=lambda producer: producer.current_transaction_start_offset)
            holding[TopicPartition(at.topic, at.partition)] = first.producer_id
    if not holding:
        return {}
    listed = client.list_transactions(producer_id_filters=sorted(set(holding.values()))).values()
    described = client.describe_transactions(
        {transaction.transactional_id for several in listed for transaction in several}
    )
    since = {transaction.producer_id: transaction.transaction_start_time_ms for transaction in described.values()}
    return {at: since[id] / 1000 for at, id in holding.items() if since.get(id, -1) >= 0}
