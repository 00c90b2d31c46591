"""Records that several tables of cells of one rebuild are computed from: read and parsed once (decision 26)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from batch_layer.compute import counting
from master_log.kafka_reader import named_in
from master_log.offsets import Offsets
from view_algebra.compiled import CellTable, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from master_log.log import MasterLog

MOST_BYTES = 2**29
"""Bytes of a log's files up to which its records are kept. The files are compressed, the kept records are not."""


@dataclass(frozen=True)
class Shared:
    """Keeps the records that more than one of these tables reads, on the disks of Spark's executors.

    One process computes the tables one after the other. After an error, `forget` lets the next table read for itself.
    """

    tables: Sequence[tuple[Source, CellTable]] = ()
    _kept: dict[tuple[str, str, str, Offsets], DataFrame] = field(default_factory=dict, init=False)

    def counting(self, log: MasterLog, source: Source, cut: Offsets, start: Offsets) -> DataFrame:
        """The records of a source from `start` up to `cut` that count."""
        key = (source.name, source.parse, source.counted, cut)
        if key in self._kept:
            return self._kept[key]
        records = counting(log.records_below(source, cut, since=start), source)
        alike = [table for other, table in self.tables if (other.name, other.parse, other.counted) == key[:3]]
        if len(alike) < 2 or log.size(source) > MOST_BYTES:
            return records
        from pyspark import StorageLevel

        return self._kept.setdefault(
            key, named_in(records, [table.partial for table in alike]).persist(StorageLevel.DISK_ONLY)
        )

    def forget(self) -> None:
        """Removes the kept records."""
        for records in self._kept.values():
            with suppress(Py4JError, OSError):  # Spark's process was ended, and its files with it
                records.unpersist()
        self._kept.clear()
