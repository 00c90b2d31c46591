"""The records of a micro-batch before a statement reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from master_log import log_times
from master_log.log_times import LogTimes
from master_log.record_decoding import decoded, decoded_in_memory
from speed_layer.plans import FEW_BYTES, few_of
from view_algebra.compiled import Source
from view_algebra.formats import Answers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_DECODED = 2 * FEW_BYTES
"""Bytes of the records of a small micro-batch with their decoded columns. Spark plans a larger one for itself."""


@dataclass(frozen=True)
class Records:
    """The raw records of a span, fetched on demand.

    raw: returns them as Spark reads them
    few: fetches them, or returns None if there are too many or none. Without it, there are too many
    """

    raw: Callable[[], DataFrame]
    few: Callable[[], pa.Table | None] | None = None

    @classmethod
    def of(cls, raw: DataFrame) -> Records:
        """The records that Spark reads for one source."""
        return cls(lambda: raw, partial(few_of, raw))

    def with_log_times(self, topic: str, reached: LogTimes) -> Records:
        """These records with their log times, which continue from those `reached` below them."""
        with_times = partial(log_times.with_log_times, topic=topic, reached=reached)
        return self._mapped(with_times, partial(log_times.with_log_times_in_memory, reached=reached))

    def decoded(self, sources: Sequence[Source], answers: Answers) -> Records:
        """These records, their values decoded for every declaration of their source."""

        def few(table: pa.Table) -> pa.Table | None:
            table = decoded_in_memory(table, sources, answers)
            return None if table.nbytes > MOST_DECODED else table

        return self._mapped(partial(decoded, sources=sources, answers=answers), few)

    def _mapped(self, raw: Callable[[DataFrame], DataFrame], few: Callable[[pa.Table], pa.Table | None]) -> Records:
        def mapped_few() -> pa.Table | None:
            table = None if self.few is None else self.few()
            return None if table is None else few(table)

        return Records(lambda: raw(self.raw()), None if self.few is None else mapped_few)
