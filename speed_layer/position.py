"""The position of a source in its topic, and the span of one micro-batch from there on."""

from __future__ import annotations

from dataclasses import dataclass

from master_log.kafka.tails import Tails
from master_log.offsets import OffsetRange, Offsets
from master_log.reading.log_times import LogTimes


class StartAgain(Exception):
    """Raised if a member cannot continue from its position. It loses nothing by starting again from progress."""


@dataclass(frozen=True)
class Position:
    """A member's position in its topic.

    offsets: the next records to read
    tails: Kafka's last batches below them
    log_times: those that the records below have reached, or None if no maintained text reads log times
    """

    offsets: Offsets
    tails: Tails
    log_times: LogTimes | None


@dataclass(frozen=True)
class Span:
    """The offset range of a micro-batch, and the position at which it starts.

    tails: Kafka's last batches below the end of the range, fetched before its records are read
    """

    start: Position
    range: OffsetRange
    tails: Tails

    def end(self, reached: LogTimes) -> Position:
        """The position at the end, where the records have `reached` these log times."""
        moved = self.range.moved
        unmoved = {at: tail for at, tail in self.start.tails.items() if at not in moved}
        return Position(self.range.end, unmoved | dict(self.tails), None if self.start.log_times is None else reached)
