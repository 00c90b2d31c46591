"""From the records of a micro-batch to cells: one Spark job, whatever the number of views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from master_log.reading import parsed
from serving_layer.cells import Staged
from serving_layer.micro_batch import BadRecord
from view_algebra import fuse, fuse_rows
from view_algebra.compiled import CellTable, Fused, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Computed:
    """The effect of a micro-batch before it is written; `newest` is the greatest Kafka timestamp in it."""

    staged: Sequence[Staged]
    bad: Sequence[BadRecord]
    newest: datetime | None
    records: int


@dataclass(frozen=True)
class Computation:
    """The compiled texts of all that one query maintains."""

    source: Source
    tables: Sequence[CellTable]
    aggregates: Fused
    rows: Fused | None

    @classmethod
    def of(cls, source: Source, tables: Sequence[CellTable]) -> Computation:
        """The computation of these tables of cells, all fed by `source`."""
        rows = [table for table in tables if table.kind == "row"]
        aggregates = [table for table in tables if table.kind == "aggregate"]
        return cls(source, tables, fuse(source, aggregates), fuse_rows(source, rows) if rows else None)

    def compute(self, raw: DataFrame) -> Computed:
        """Runs the texts over the raw records of one micro-batch."""
        spark = raw.sparkSession
        parsed(raw, self.source).createOrReplaceTempView("records")
        cells = spark.sql(self.aggregates.sql).toArrow()
        cells, summary = self.aggregates.split(cells)
        staged = [_staged(self.aggregates, cells)]
        if self.rows is not None:
            staged.append(_staged(self.rows, spark.sql(self.rows.sql).toArrow()))
        bad = self._bad(raw) if summary.bad else []
        return Computed(staged, bad, summary.newest, summary.records)
