"""Offsets, ranges of offsets and cuts: positions in the log.

An offset is the next record to read. Ranges are half-open. Offsets are not contiguous (transaction markers,
compaction), so a difference of offsets is never a count of records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


def to_json(values: Mapping[TopicPartition, Any]) -> str:
    """A value per partition in Spark's JSON form, such as `{"orders": {"0": 5}}`."""
    topics: dict[str, dict[str, Any]] = {}
    for at in sorted(values):
        topics.setdefault(at.topic, {})[str(at.partition)] = values[at]
    return json.dumps(topics)


def from_json(text: str) -> dict[TopicPartition, Any]:
    """The values that `to_json` wrote."""
    return {
        TopicPartition(topic, int(partition)): value
        for topic, partitions in json.loads(text).items()
        for partition, value in partitions.items()
    }


class Offsets(Mapping[TopicPartition, int]):
    """A vector of offsets: for each topic partition, the offset of the next record to read.

    >>> a = Offsets.parse('{"orders": {"0": 5, "1": 7}}')
    >>> str(a)
    'orders 0:5 1:7'
    >>> a == Offsets({TopicPartition("orders", 1): 7, TopicPartition("orders", 0): 5})
    True
    """

    def __init__(self, at: Mapping[TopicPartition, int]) -> None:
        self._at = dict(sorted(at.items()))

    @classmethod
    def of(cls, topic: str, at: Mapping[int, int]) -> Offsets:
        """The offsets of one topic, by partition number."""
        return cls({TopicPartition(topic, partition): offset for partition, offset in at.items()})

    @classmethod
    def parse(cls, text: str) -> Offsets:
        """Reads the vector from Spark's JSON form, such as `{"orders": {"0": 5}}`."""
        return cls({at: int(offset) for at, offset in from_json(text).items()})

    def json(self) -> str:
        """Spark's JSON form, as in `startingOffsets` and in checkpoints."""
        return to_json(self._at)

    def topics(self) -> tuple[str, ...]:
        """The topics of the partitions, sorted."""
        return tuple(sorted({at.topic for at in self._at}))

    def on(self, topic: str) -> dict[int, int]:
        """The offsets of one topic, by partition number."""
        return {at.partition: offset for at, offset in self._at.items() if at.topic == topic}

    def updated(self, newer: Mapping[TopicPartition, int]) -> Offsets:
        """These offsets, with those of `newer` in place of them."""
        return Offsets({**self._at, **newer})

    def reaches(self, other: Mapping[TopicPartition, int]) -> bool:
        """True if these offsets are at or above every offset of `other`.

        >>> five = Offsets.of("t", {0: 5})
        >>> five.reaches(Offsets.of("t", {0: 5})), five.reaches(Offsets.of("t", {1: 0}))
        (True, False)
        """
        return all(at in self._at and self._at[at] >= offset for at, offset in other.items())

    @property
    def positive(self) -> Offsets:
        """The partitions whose offset is not 0."""
        return Offsets({at: offset for at, offset in self._at.items() if offset})

    def __getitem__(self, at: TopicPartition) -> int:
        return self._at[at]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Offsets) and self._at == other._at

    def __hash__(self) -> int:
        return hash(tuple(self._at.items()))

    def __repr__(self) -> str:
        return f"Offsets.parse({self.json()!r})"

    def __str__(self) -> str:
        return "; ".join(
            topic + "".join(f" {partition}:{offset}" for partition, offset in self.on(topic).items())
            for topic in self.topics()
        )


SHOWN = 12
"""Most partitions of a topic that a table shows."""


def brief(offsets: str) -> str:
    """Offsets shortened for people: a topic may have a thousand partitions.

    >>> brief("a 0:1 1:7; b " + " ".join(f"{partition}:5" for partition in range(1000)))
    'a 0:1 1:7; b 0:5 1:5 2:5 3:5 4:5 5:5 6:5 7:5 8:5 9:5 10:5 11:5 … and 988 more'
    """
    topics = (topic.split(" ") for topic in offsets.split("; "))
    return "; ".join(
        " ".join(words if len(words) <= SHOWN + 1 else [*words[: SHOWN + 1], f"… and {len(words) - SHOWN - 1} more"])
        for words in topics
    )


@dataclass(frozen=True)
class OffsetRange:
    """The records at or above `start` and below `end`. `start` and `end` name the same partitions."""

    start: Offsets
    end: Offsets

    @classmethod
    def since(cls, start: Mapping[TopicPartition, int], end: Offsets) -> OffsetRange:
        """The range below `end`. Partitions that `start` lacks begin at 0, and those that `end` lacks are left out.

        >>> OffsetRange.since(Offsets.of("t", {0: 4, 2: 1}), Offsets.of("t", {0: 9, 1: 9})).start.json()
        '{"t": {"0": 4, "1": 0}}'
        """
        return cls(Offsets({at: start.get(at, 0) for at in end}), end)

    @classmethod
    def between(cls, bounds: Mapping[TopicPartition, tuple[int, int]]) -> OffsetRange:
        """The range from the first to the second offset of each partition."""
        starts, ends = ({at: bound[side] for at, bound in bounds.items()} for side in (0, 1))
        return cls(Offsets(starts), Offsets(ends))

    @property
    def empty(self) -> bool:
        """True if the range holds no offset."""
        return not self.moved

    @property
    def moved(self) -> Offsets:
        """The ends of the partitions that have offsets in the range."""
        return Offsets({at: end for at, end in self.end.items() if end > self.start[at]})

    @property
    def size(self) -> int:
        """The number of offsets, which is at least the number of records."""
        return sum(max(0, end - self.start[at]) for at, end in self.end.items())

    def steps(self, size: int) -> list[Offsets]:
        """The ends of parts of about `size` offsets. Partitions that `start` lacks begin at 0.

        >>> whole = OffsetRange(Offsets.of("t", {0: 10}), Offsets.of("t", {0: 40, 1: 60}))
        >>> [str(end) for end in whole.steps(45)]
        ['t 0:25 1:30', 't 0:40 1:60']
        """
        begins = {at: min(self.start.get(at, 0), end) for at, end in self.end.items()}
        number = max(1, -(-sum(end - begins[at] for at, end in self.end.items()) // size))
        return [
            Offsets({at: begins[at] + (end - begins[at]) * step // number for at, end in self.end.items()})
            for step in range(1, number + 1)
        ]

    def parted(self, first: Offsets, held: Offsets) -> tuple[OffsetRange, list[OffsetRange]]:
        """The part of the range that a log from `first` to `held` has, and the parts that it lacks on either side.

        >>> whole = OffsetRange(Offsets.of("t", {0: 2, 1: 7}), Offsets.of("t", {0: 9, 1: 9}))
        >>> kept, lacking = whole.parted(Offsets.of("t", {0: 4, 1: 7}), Offsets.of("t", {0: 6, 1: 8}))
        >>> for part in (kept, *lacking):
        ...     print(part.start, "to", part.end)
        t 0:4 1:7 to t 0:6 1:8
        t 0:2 to t 0:4
        t 0:6 1:8 to t 0:9 1:9
        """
        begins = {at: max(start, first.get(at, 0)) for at, start in self.start.items()}
        before = {at: (self.start[at], min(end, begins[at])) for at, end in self.end.items()}
        after = {at: (max(begins[at], held.get(at, 0)), end) for at, end in self.end.items()}
        kept = {at: (begins[at], min(end, held.get(at, 0))) for at, end in self.end.items()}
        lacking = ({at: part for at, part in parts.items() if part[0] < part[1]} for parts in (before, after))
        return OffsetRange.between(kept), [OffsetRange.between(parts) for parts in lacking if parts]

    def holds(self, skipped: Skipped) -> Skipped:
        """The skipped offsets that lie in the range."""
        return frozenset(
            (at, offset) for at, offset in skipped if at in self.end and self.start[at] <= offset < self.end[at]
        )

    def without(self, skipped: Skipped) -> tuple[OffsetRange, ...]:
        """Ranges that hold the same offsets except the skipped ones.

        >>> whole = OffsetRange(Offsets.of("t", {0: 0, 1: 0}), Offsets.of("t", {0: 9, 1: 9}))
        >>> for part in whole.without(frozenset({(TopicPartition("t", 0), 4)})):
        ...     print(part.start, "to", part.end)
        t 0:0 1:0 to t 0:4 1:9
        t 0:5 to t 0:9
        """
        parts: dict[TopicPartition, list[tuple[int, int]]] = {}
        for at in self.end:
            left_out = sorted(offset for partition, offset in self.holds(skipped) if partition == at)
            begins, ends = [self.start[at], *(offset + 1 for offset in left_out)], [*left_out, self.end[at]]
            parts[at] = list(zip(begins, ends, strict=True))
        return tuple(
            OffsetRange.between({at: spans[number] for at, spans in parts.items() if number < len(spans)})
            for number in range(max(map(len, parts.values()), default=1))
        )


Skipped = frozenset[tuple[TopicPartition, int]]
"""Offsets of records that an operator has skipped: nothing reads them, and no view counts them."""

Cut = Offsets
"""The progress of a query when a generation is opened: the generation's batch view holds all records below it."""
