"""Start times of a topic's open transactions, from their coordinators.

Records' timestamps would not do: a producer that sends old records again gives them old timestamps.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kafka import TopicPartition as KafkaTopicPartition

from master_log.offsets import TopicPartition


def began(client: Any, partitions: Collection[TopicPartition]) -> dict[TopicPartition, float]:
    """For each partition, the Unix time at which the transaction that blocks the others began.

    A partition is left out if no coordinator knows its transaction any longer. `client` is a KafkaAdminClient.
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
