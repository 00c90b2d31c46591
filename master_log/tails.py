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

from master_log.offsets import TopicPartition

Tails = Mapping[TopicPartition, str]
"""The tail of each partition below an offset that goes with it; a partition whose tail is not known is left out."""

HEADER = struct.Struct(">qiibIhiqq")
"""A batch: base offset, length, leader epoch, format, checksum, attributes, last offset − base, first and last time."""

_FORMAT = 2


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
