"""The records of a micro-batch as statements read them: by Spark, or fetched if they are few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from master_log.reading import log_times
from master_log.reading.log_times import LogTimes
from master_log.reading.record_decoding import decoded, decoded_in_memory
from serving_layer.postgres.copying import batches
from view_algebra.compiled import Source
from view_algebra.formats import Answers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEW = 10_000
"""Offsets of a source up to which a micro-batch is small. Planning a larger one costs less than computing it.

Planning change events takes Spark more than a second. With a bound of 2,000 and as many records a second, a source that
fell behind once stayed behind."""

FEW_BYTES = 16 * 1024 * 1024
"""Bound for the keys, values and headers of a small micro-batch, over all of its sources."""

MOST_DECODED = 2 * FEW_BYTES
"""Bytes of the records of a small micro-batch with their decoded columns. Spark plans a larger one for itself."""


@dataclass(frozen=True)
class Records:
    """The raw records of a span, fetched on demand.

    raw: returns them as Spark reads them
    fetch: fetches them, or returns None if there are too many or none. Without it, there are too many
    """

    raw: Callable[[], DataFrame]
    fetch: Callable[[], pa.Table | None] | None = None

    @classmethod
    def of(cls, raw: DataFrame) -> Records:
        """The records that Spark reads for one source."""
        return cls(lambda: raw, partial(fetch_few, raw))

    def with_log_times(self, topic: str, reached: LogTimes) -> Records:
        """These records with their log times, which continue from those `reached` below them."""
        with_times = partial(log_times.with_log_times, topic=topic, reached=reached)
        return self._mapped(with_times, partial(log_times.with_log_times_in_memory, reached=reached))

    def decoded(self, sources: Sequence[Source], answers: Answers) -> Records:
        """These records, their values decoded for every declaration of their source."""

        def decode(table: pa.Table) -> pa.Table | None:
            table = decoded_in_memory(table, sources, answers)
            return None if table.nbytes > MOST_DECODED else table

        return self._mapped(partial(decoded, sources=sources, answers=answers), decode)

    def _mapped(self, raw: Callable[[DataFrame], DataFrame], table: Callable[[pa.Table], pa.Table | None]) -> Records:
        def fetch() -> pa.Table | None:
            fetched = None if self.fetch is None else self.fetch()
            return None if fetched is None else table(fetched)

        return Records(lambda: raw(self.raw()), None if self.fetch is None else fetch)


def fetch_few(records: DataFrame) -> pa.Table | None:
    """Fetches raw records, or returns None if there are none or they exceed `FEW_BYTES`."""
    fetched, size = [], 0
    for batch in batches(records):
        size += batch.nbytes
        if size > FEW_BYTES:
            return None
        fetched.append(batch)
    return pa.Table.from_batches(fetched) if fetched else None


def records_of_topic(table: pa.Table | None, topic: str) -> pa.Table | None:
    """The records of one topic."""
    return None if table is None else table.filter(pc.equal(table["topic"], topic))
