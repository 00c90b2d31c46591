"""The offset range of a source's micro-batch, the position at which it starts, and its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from master_log import log_times
from master_log.log_times import LogTimes
from master_log.offsets import OffsetRange, Offsets
from master_log.record_decoding import decoded, decoded_few
from master_log.tails import Tails
from speed_layer.plans import FEW_BYTES, few_of
from view_algebra.compiled import Source
from view_algebra.formats import Answers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_DECODED = 2 * FEW_BYTES
"""Bytes of the records of a small micro-batch with their decoded columns. Spark plans a larger one for itself."""


class StartAgain(Exception):
    """Raised if a member cannot continue from its position. It loses nothing by starting again from progress."""


@dataclass(frozen=True)
class Position:
    """A member's position in its topic.

    offsets: the next records to read.
    tails: Kafka's last batches below them.
    log_times: those that the records below have reached, or None if no maintained text reads log times.
    """

    offsets: Offsets
    tails: Tails
    log_times: LogTimes | None


@dataclass(frozen=True)
class Span:
    """The offset range of a micro-batch, and the position at which it starts.

    tails: Kafka's last batches below the end of the range, fetched before its records are read.
    """

    start: Position
    range: OffsetRange
    tails: Tails

    def end(self, reached: LogTimes) -> Position:
        """The position at the end, where the records have `reached` these log times."""
        moved = self.range.moved
        unmoved = {at: tail for at, tail in self.start.tails.items() if at not in moved}
        return Position(self.range.end, unmoved | dict(self.tails), None if self.start.log_times is None else reached)


@dataclass(frozen=True)
class Records:
    """The raw records of a span, fetched on demand.

    raw: returns them as Spark reads them.
    few: fetches them, or returns None if there are too many or none. Without it, there are too many.
    """

    raw: Callable[[], DataFrame]
    few: Callable[[], pa.Table | None] | None = None

    @classmethod
    def of(cls, raw: DataFrame) -> Records:
        """The records that Spark reads for one source."""
        return cls(lambda: raw, partial(few_of, raw))

    def with_log_times(self, topic: str, reached: LogTimes) -> Records:
        """These records with their log times, which continue from those `reached` below them."""
        of_raw = partial(log_times.of_raw, topic=topic, reached=reached)
        return self._mapped(of_raw, partial(log_times.of_few, reached=reached))

    def decoded(self, sources: Sequence[Source], answers: Answers) -> Records:
        """These records, their values decoded for every declaration of their source."""

        def few(table: pa.Table) -> pa.Table | None:
            table = decoded_few(table, sources, answers)
            return None if table.nbytes > MOST_DECODED else table

        return self._mapped(partial(decoded, sources=sources, answers=answers), few)

    def _mapped(self, raw: Callable[[DataFrame], DataFrame], few: Callable[[pa.Table], pa.Table | None]) -> Records:
        def mapped_few() -> pa.Table | None:
            table = None if self.few is None else self.few()
            return None if table is None else few(table)

        return Records(lambda: raw(self.raw()), None if self.few is None else mapped_few)
