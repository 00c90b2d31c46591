"""When the open transactions of a topic began, as their coordinators know it.

The timestamps of records cannot tell: a producer that sends old records again gives them old timestamps.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kafka import TopicPartition as KafkaTopicPartition

from master_log.offsets import TopicPartition


def began(client: Any, partitions: Collection[TopicPartition]) -> dict[TopicPartition, float]:
    """For each partition, the Unix time at which the transaction that holds back the others began.

    A partition is left out if no coordinator knows its transaction (any more). `client` is a KafkaAdminClient.
    """
    holding: dict[TopicPartition, int] = {}
    for at, state in client.describe_producers([KafkaTopicPartition(*at) for at in partitions]).items():
        active = [each for each in state.active_producers if each.current_transaction_start_offset >= 0]
        if active:
            first = min(active, key=lambda each: each.current_transaction_start_offset)
            holding[TopicPartition(at.topic, at.partition)] = first.producer_id
    if not holding:
        return {}
    listed = client.list_transactions(producer_id_filters=sorted(set(holding.values()))).values()
    described = client.describe_transactions({each.transactional_id for several in listed for each in several})
    since = {each.producer_id: each.transaction_start_time_ms for each in described.values()}
    return {at: since[id] / 1000 for at, id in holding.items() if since.get(id, -1) >= 0}
