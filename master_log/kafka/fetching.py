"""Fetches tails from the brokers: the batch that holds the offset before another, as a leader has it.

Every leader of a partition has its own epoch, greater than its predecessor's. A log loses records only when its leader
changes (a broker that returns is elected again), so it has lost none between two answers of one epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import TopicPartition as KafkaTopicPartition
from kafka.errors import FencedLeaderEpochError, OffsetOutOfRangeError, UnknownLeaderEpochError, for_code
from kafka.protocol.consumer import FetchRequest

from master_log.kafka.tails import tail
from master_log.offsets import Offsets, TopicPartition

_FETCH_VERSION = 12
"""The last version of the request that names topics instead of their ids."""

_BYTES = 64 * 1024
"""Bytes that a broker sends per partition if one request asks for several: most batches are smaller."""


Epochs = Mapping[TopicPartition, int]
"""The epoch of the leader of each partition."""


class LeaderChanged(Exception):
    """A partition has a new leader, whose log may lack records that were read from the previous one."""


async def fetch(client: Any, below: Offsets, epochs: Epochs) -> dict[TopicPartition, str]:
    """Fetches the tails below these offsets from each partition's leader. A partition without a tail is left out.

    `client` is a KafkaAdminClient, and this runs in its own loop, because it has no public way to fetch. Raises
    `LeaderChanged` if a leader's epoch differs from `epochs`.
    """
    wanted = {KafkaTopicPartition(*at): offset for at, offset in below.items() if offset > 0}
    tails: dict[TopicPartition, str] = {}
    if not wanted:
        return tails
    leaders = await client._async_get_leader_for_partitions(set(wanted))  # noqa: SLF001
    for leader, partitions in leaders.items():
        request = _request({at: wanted[at] for at in partitions}, epochs, _BYTES)
        tails |= _tails(await client._manager.send(request, node_id=leader), below)  # noqa: SLF001
        for at in partitions:
            if at not in tails:  # a broker sends the first batch of a single partition whole, whatever its size
                request = _request({at: wanted[at]}, epochs, 1)
                tails |= _tails(await client._manager.send(request, node_id=leader), below)  # noqa: SLF001
    return tails


def _request(offsets: Mapping[KafkaTopicPartition, int], epochs: Epochs, most: int) -> FetchRequest:
    topics: dict[str, list[FetchRequest.FetchTopic.FetchPartition]] = {}
    for at, offset in offsets.items():
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=at.partition,
            current_leader_epoch=epochs.get(TopicPartition(*at), -1),
            fetch_offset=offset - 1,
            last_fetched_epoch=-1,
            partition_max_bytes=most,
        )
        topics.setdefault(at.topic, []).append(partition)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=most * len(offsets),
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
        forgotten_topics_data=[],
        rack_id="",
        min_version=4,
        max_version=_FETCH_VERSION,
    )


def _tails(answer: Any, below: Offsets) -> dict[TopicPartition, str]:
    tails = {}
    for topic in answer.responses:
        for partition in topic.partitions:
            at = TopicPartition(topic.topic, partition.partition_index)
            if partition.error_code in (FencedLeaderEpochError.errno, UnknownLeaderEpochError.errno):
                raise LeaderChanged(f"Partition {at.partition} of {at.topic} has another leader")
            if partition.error_code not in (0, OffsetOutOfRangeError.errno):
                raise for_code(partition.error_code)
            if (batch := tail(bytes(partition.records or b""), below[at])) is not None:
                tails[at] = batch
    return tails
