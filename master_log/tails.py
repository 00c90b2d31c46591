"""Tails: what stands last below an offset in Kafka, by which a log that lost its end is told from one that grew.

A broker that lost records (a power cut before they were on disk, a leader elected without them) gives their offsets to
other records. Nothing in the offsets shows it. So whoever has counted or kept the records below an offset keeps the
tail there, too: the batch that holds the offset before it, as the broker describes it. A topic that is not compacted
never changes a batch, so while the tail is the same, so is every record below it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kafka import TopicPartition as KafkaTopicPartition
from kafka.errors import OffsetOutOfRangeError, for_code
from kafka.protocol.consumer import FetchRequest

from master_log.offsets import Offsets, TopicPartition

Tails = Mapping[TopicPartition, str]
"""The tail of each partition below an offset that goes with it; a partition whose tail is not known is left out."""

HEADER = struct.Struct(">qiibIhiqq")
"""A batch: base offset, length, leader epoch, format, checksum, attributes, last offset − base, first and last time."""

_FORMAT = 2
_FETCH_VERSION = 12
"""The last version that names topics, not ids."""

_BYTES = 64 * 1024
"""What a broker sends of a partition, where one request asks for several: most batches are smaller."""


@dataclass(frozen=True)
class Differs:
    """A partition whose tail below `offset` is no longer the one that is known; `found` says what is there."""

    at: TopicPartition
    offset: int
    known: str
    found: str

    def __str__(self) -> str:
        return f"Partition {self.at.partition}, below offset {self.offset}: expected {self.known}; found {self.found}."


def tail(batch: bytes, offset: int) -> str | None:
    """The first batch of what a broker sent, in words, where it holds the offset before `offset`.

    Offsets, leader epoch and checksum (of all records, their times and their producer): two batches in which all of
    these are alike are the same batch.
    """
    if len(batch) < HEADER.size:
        return None
    base, _, epoch, format, checksum, _, more, _, newest = HEADER.unpack_from(batch)
    if format != _FORMAT or not base < offset <= base + more + 1:
        return None
    return f"offsets {base} to {base + more} (epoch {epoch}, checksum {checksum:08x}, {_time(newest)})"


def _time(milliseconds: int) -> str:
    try:
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:  # a producer may set any time
        return f"{milliseconds} ms"


async def fetch(client: Any, below: Offsets) -> dict[TopicPartition, str]:
    """The tails below these offsets, of partitions that hold one; asked of each partition's leader.

    `client` is a KafkaAdminClient, in whose own loop this runs: it has no public way to fetch.
    """
    wanted = {KafkaTopicPartition(*at): offset for at, offset in below.items() if offset > 0}
    found: dict[TopicPartition, str] = {}
    if not wanted:
        return found
    leaders = await client._async_get_leader_for_partitions(set(wanted))  # noqa: SLF001
    for leader, partitions in leaders.items():
        request = _request({at: wanted[at] for at in partitions}, _BYTES)
        found |= _held(await client._manager.send(request, node_id=leader), below)  # noqa: SLF001
        for at in partitions:
            if at not in found:  # of the only one in a request, a broker sends the first batch whole, whatever its size
                request = _request({at: wanted[at]}, 1)
                found |= _held(await client._manager.send(request, node_id=leader), below)  # noqa: SLF001
    return found


def _request(offsets: Mapping[KafkaTopicPartition, int], most: int) -> FetchRequest:
    partitions = [
        FetchRequest.FetchTopic.FetchPartition(
            partition=at.partition,
            current_leader_epoch=-1,
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
            if part.error_code not in (0, OffsetOutOfRangeError.errno):
                raise for_code(part.error_code)
            at = TopicPartition(topic.topic, part.partition_index)
            if (held := tail(bytes(part.records or b""), below[at])) is not None:
                found[at] = held
    return found


def to_json(tails: Tails) -> str:
    """The tails as JSON, in the form of `Offsets.json`."""
    topics: dict[str, dict[str, str]] = {}
    for at, text in sorted(tails.items()):
        topics.setdefault(at.topic, {})[str(at.partition)] = text
    return json.dumps(topics)


def from_json(text: str) -> dict[TopicPartition, str]:
    """The tails that `to_json` wrote."""
    return {
        TopicPartition(topic, int(number)): held
        for topic, of in json.loads(text).items()
        for number, held in of.items()
    }
