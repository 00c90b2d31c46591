"""The search for a record that takes too long asks few questions and kills few processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from master_log.offsets import OffsetRange, Offsets, TopicPartition
from speed_layer.endless import TimeLimits, find_endless

PATIENCE = TimeLimits()
WHOLE = OffsetRange(Offsets.of("t", {0: 0, 1: 100}), Offsets.of("t", {0: 1000, 1: 1100}))


@dataclass
class TimedAnswers:
    """Answers like a process in which some records take these seconds, and any other record 0.01 s.

    killed: the number of kills
    """

    seconds: Mapping[tuple[int, int], float]
    length: tuple[int, int] = (0, 0)
    killed: int = field(default=0)

    def longest(self, range: OffsetRange) -> tuple[TopicPartition, int]:
        return TopicPartition("t", self.length[0]), self.length[1]

    def computes(self, range: OffsetRange, seconds: float) -> bool:
        [(at, low)] = range.start.items()
        total = sum(self.seconds.get((at.partition, n), 0.01) for n in range_of(low, range.end[at]))
        self.killed += total >= seconds
        return total < seconds

    def close(self) -> None:
        pass


range_of = range


@pytest.mark.parametrize("offset", [100, 101, 613, 1098, 1099])
def test_an_endless_record_is_found_at_any_offset(offset: int) -> None:
    record = find_endless(WHOLE, TimedAnswers({(1, offset): 1e9}), PATIENCE)
    assert record == (TopicPartition("t", 1), offset)


def test_the_longest_record_is_tried_first_and_one_process_is_killed() -> None:
    process = TimedAnswers({(1, 500): 1e9}, length=(1, 500))
    assert find_endless(WHOLE, process, PATIENCE) == (TopicPartition("t", 1), 500)
    assert process.killed == 1


def test_records_that_are_slow_only_together_are_not_named() -> None:
    process = TimedAnswers({(0, n): 0.1 for n in range(1000)})
    assert find_endless(WHOLE, process, PATIENCE) is None


def test_a_record_within_the_time_limit_is_not_named() -> None:
    process = TimedAnswers({(0, 7): PATIENCE.alone - 1, (1, 700): PATIENCE.alone})
    assert find_endless(WHOLE, process, PATIENCE) == (TopicPartition("t", 1), 700)
