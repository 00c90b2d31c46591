"""Tails tell a log that lost its end from a log that grew.

A broker that lost records (a power cut before they were on disk, a leader elected without them) gives their offsets to
other records, and the offsets do not show it. The tail below an offset is the batch that holds the offset before it, as
the broker describes that batch. Code that counts or archives the records below an offset stores the tail with it. A
topic that is not compacted never changes a batch, so an unchanged tail means that every record below it is unchanged.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from master_log.offsets import TopicPartition

Tails = Mapping[TopicPartition, str]
"""The tail of each partition, below an offset that is stored with it. A partition without a known tail is left out."""

HEADER = struct.Struct(">qiibIhiqq")
"""Header of a batch: base offset, length, leader epoch, format, checksum, attributes, last offset − base, two times."""

_FORMAT = 2


@dataclass(frozen=True)
class ChangedTail:
    """A partition whose tail below `offset` has changed from `expected` to `actual`."""

    at: TopicPartition
    offset: int
    expected: str
    actual: str

    def __str__(self) -> str:
        return (
            f"Partition {self.at.partition}, below offset {self.offset}: expected {self.expected}; found {self.actual}."
        )


def tail(batch: bytes, offset: int) -> str | None:
    """The first batch of a broker's answer, in words. None unless it holds the offset before `offset`.

    The words give offsets, leader epoch and checksum (of all records, their times and their producer). Two batches
    that agree in all of these are the same batch.
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
