"""Tails, asked of the brokers: the batch that holds the offset before another, as a leader has it.

Every leader of a partition has an epoch of its own, a greater one than the leader before it. A log loses records only
where its leader changes (a broker that comes back is elected anew), so between two answers of one epoch it lost none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import TopicPartition as KafkaTopicPartition
from kafka.errors import FencedLeaderEpochError, OffsetOutOfRangeError, UnknownLeaderEpochError, for_code
from kafka.protocol.consumer import FetchRequest

from master_log.offsets import Offsets, TopicPartition
from master_log.tails import tail

_FETCH_VERSION = 12
"""The last version that names topics, not ids."""

_BYTES = 64 * 1024
"""What a broker sends of a partition, where one request asks for several: most batches are smaller."""


Epochs = Mapping[TopicPartition, int]
"""The epoch of the leader of each partition."""


class LeaderChanged(Exception):
    """A partition has another leader than it had, whose log may lack records that were read from the one before."""


async def fetch(client: Any, below: Offsets, epochs: Epochs) -> dict[TopicPartition, str]:
    """The tails below these offsets, of partitions that hold one; asked of each partition's leader.

    `client` is a KafkaAdminClient, in whose own loop this runs: it has no public way to fetch. Raises `LeaderChanged`
    where the leader of a partition has another epoch than it has in `epochs`.
    """
    wanted = {KafkaTopicPartition(*at): offset for at, offset in below.items() if offset > 0}
    found: dict[TopicPartition, str] = {}
    if not wanted:
        return found
    leaders = await client._async_get_leader_for_partitions(set(wanted))  # noqa: SLF001
    for leader, partitions in leaders.items():
        request = _request({at: wanted[at] for at in partitions}, epochs, _BYTES)
        found |= _held(await client._manager.send(request, node_id=leader), below)  # noqa: SLF001
        for at in partitions:
            if at not in found:  # of the only one in a request, a broker sends the first batch whole, whatever its size
                request = _request({at: wanted[at]}, epochs, 1)
                found |= _held(await client._manager.send(request, node_id=leader), below)  # noqa: SLF001
    return found


def _request(offsets: Mapping[KafkaTopicPartition, int], epochs: Epochs, most: int) -> FetchRequest:
    partitions = [
        FetchRequest.FetchTopic.FetchPartition(
            partition=at.partition,
            current_leader_epoch=epochs.get(TopicPartition(*at), -1),
            fetch_offset=offset - 1,
            last_fetched_epoch=-1,
            partition_max_bytes=most,
        )
        for at, offset in offsets.items()
    ]
    topics: dict[str, list[FetchRequest.FetchTopic.FetchPartition]] = {}
    for at, partition in zip(offsets, partitions, strict=True):
        topics.setdefault(at.topic, []).append(partition)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=most * len(partitions),
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=of) for topic, of in topics.items()],
        forgotten_topics_data=[],
        rack_id="",
        min_version=4,
        max_version=_FETCH_VERSION,
    )


def _held(answer: Any, below: Offsets) -> dict[TopicPartition, str]:
    found = {}
    for topic in answer.responses:
        for part in topic.partitions:
            at = TopicPartition(topic.topic, part.partition_index)
            if part.error_code in (FencedLeaderEpochError.errno, UnknownLeaderEpochError.errno):
                raise LeaderChanged(f"Partition {at.partition} of {at.topic} has another leader")
            if part.error_code not in (0, OffsetOutOfRangeError.errno):
                raise for_code(part.error_code)
            if (held := tail(bytes(part.records or b""), below[at])) is not None:
                found[at] = held
    return found
