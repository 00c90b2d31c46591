"""From the records of a micro-batch to cells: one Spark job for all aggregates, one for all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.compute

from master_log.reading import parsed
from serving_layer.cells import Staged
from serving_layer.copying import csv
from serving_layer.quarantine import BadRecord, bad_records
from view_algebra import fuse, rows
from view_algebra.compiled import CellTable, Fused, Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Computed:
    """The effect of a micro-batch before it is written; `newest` is the greatest Kafka timestamp in it."""

    staged: Sequence[Staged]
    bad: Sequence[BadRecord]
    newest: datetime | None


@dataclass(frozen=True)
class Computation:
    """The compiled texts of all that one query maintains."""

    source: Source
    tables: Sequence[CellTable]
    fused: Sequence[Fused]

    @classmethod
    def of(cls, source: Source, tables: Sequence[CellTable]) -> Computation:
        """The computation of these tables of cells, all fed by `source`; each fused statement is one Spark job."""
        by_kind = {kind: [table for table in tables if table.kind == kind] for kind in ("aggregate", "row")}
        fused = [rows(source, by_kind["row"])] if by_kind["row"] else []
        if by_kind["aggregate"] or not fused:
            fused.append(fuse(source, by_kind["aggregate"]))
        return cls(source, tables, fused)

    def compute(self, raw: DataFrame) -> Computed:
        """Runs the texts over the raw records of one micro-batch."""
        spark = raw.sparkSession
        parsed(raw, self.source).createOrReplaceTempView("records")
        results = [spark.sql(fused.sql).toArrow() for fused in self.fused]
        # Every statement tells of bad records; only when there are some does a job fetch them.
        some_bad = pyarrow.compute.any(pyarrow.compute.equal(results[0].column("v"), 0)).as_py()
        newest: list[datetime | None] = [pyarrow.compute.max(result.column("newest")).as_py() for result in results]
        return Computed(
            staged=[_staged(fused, result) for fused, result in zip(self.fused, results, strict=True)],
            bad=bad_records(self.source.topic, spark.sql(self.source.quarantined).toArrow().to_pylist())
            if some_bad
            else [],
            newest=max((each for each in newest if each is not None), default=None),
        )


def _staged(fused: Fused, result: pa.Table) -> Staged:
    cells = result.select([column.name for column in fused.columns])
    return Staged(ddl=fused.staged, table=fused.table, rows=csv(cells), read=fused.read)
