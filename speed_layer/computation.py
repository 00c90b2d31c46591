"""From the records of a micro-batch to cells: one Spark job for all aggregates, one for all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute

from master_log.log_times import RAW_LOG_TIME
from master_log.reading import named_in, parsed, selected
from serving_layer.postgres.cells import Staged
from serving_layer.postgres.copying import Rows, batches
from serving_layer.promise.duplicates import Found, come_twice, in_order
from serving_layer.promise.quarantine import Bad, bad_among
from view_algebra import fuse, rows
from view_algebra.compiled import CellTable, Fused, Source
from view_algebra.formats import Decoding, decodings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Computed:
    """The effect of a micro-batch before it is written; `newest` is the greatest Kafka timestamp in it.

    by_partition: the same per Kafka partition, in microseconds since 1970, of the records of a table.
    """

    staged: Sequence[Staged]
    bad: Bad | None
    newest: datetime | None
    by_partition: Mapping[int, int] = field(default_factory=dict)
    ids: Found | None = None


@dataclass(frozen=True)
class Computation:
    """The compiled texts of all that one query maintains.

    older: of versions that are kept since the source was declared otherwise; they read its records as they did then.
    """

    source: Source
    tables: Sequence[CellTable]
    fused: Sequence[Fused]
    older: Sequence[Computation] = ()

    @property
    def names(self) -> frozenset[str]:
        """The tables of cells that it is for."""
        return frozenset(table.name for table in self.tables)

    @property
    def reads_log_times(self) -> bool:
        """True if it goes by the log times of a table's records: texts of a Lamina that knew none do not."""
        return self.source.kind == "table" and any(RAW_LOG_TIME in e.source.parse for e in (self, *self.older))

    @property
    def sources(self) -> Sequence[Source]:
        """How records are read, by each of its parts."""
        return [each.source for each in (self, *self.older)]

    @property
    def decoded_otherwise(self) -> Sequence[Decoding]:
        """How older versions decode records by a registry's schemas, if not as the source does that is declared."""
        now = Decoding.of(self.source)
        return [by for by in decodings(self.sources) if by.needs_registry and not by.names_schemas_as(now)]

    @classmethod
    def of_all(cls, readings: Sequence[tuple[Source, Sequence[CellTable]]]) -> Computation:
        """The computation of these tables of cells, by how records are read: first as their source is declared."""
        (source, tables), *before = readings
        now = cls.of(source, tables)
        older = [_apart(cls.of(*reading), number) for number, reading in enumerate(before, 1)]
        return replace(now, tables=[table for _, read in readings for table in read], older=older)

    @classmethod
    def of(cls, source: Source, tables: Sequence[CellTable]) -> Computation:
        """The computation of these tables of cells, all fed by `source`; each fused statement is one Spark job."""
        by_kind = {kind: [table for table in tables if table.kind == kind] for kind in ("aggregate", "row")}
        fused = [rows(source, by_kind["row"])] if by_kind["row"] else []
        if by_kind["aggregate"] or not fused or source.kind == "table":
            fused.append(fuse(source, by_kind["aggregate"]))
        return cls(source, tables, fused)

    def compute(self, raw: DataFrame, find: Callable[[pa.Table], Found], *, likely_new: bool = True) -> Computed:
        """Runs the texts over the raw records of one micro-batch; `find` looks up their ids, where they have any.

        Where these are `likely_new`, Spark computes the cells during the look-up, as if no id had been counted before.
        """
        records = parsed(raw, self.source)
        if not self.source.ids:
            return self._computed(raw, records, records)
        texts = [self.source.ids, *(fused.sql for fused in self.fused)]
        used = named_in(records, texts).persist()  # the ids are asked for first, and nothing is read and parsed twice
        try:
            ids = ids_of(selected(used, "records", self.source.ids))
            with ThreadPoolExecutor(1, thread_name_prefix="find") as beside:
                finding = beside.submit(find, ids)
                try:
                    computed = self._computed(raw, records, used) if likely_new and not come_twice(ids) else None
                except Exception:
                    finding.result()  # which has the better reason, if it failed, too
                    raise
                found = finding.result()
            if computed is None or found.copies.num_rows:
                computed = self._computed(raw, records, _without(used, found.copies), found.copies)
            return replace(computed, ids=found)
        finally:
            used.unpersist()

    def try_over(self, raw: DataFrame) -> None:
        """Runs every text over raw records, and forgets what it gives."""
        for each in (self, *self.older):
            records = parsed(raw, each.source)
            for fused in each.fused:
                gathered(fused, selected(records, "records", fused.sql))
        if self.source.ids:
            ids_of(selected(parsed(raw, self.source), "records", self.source.ids))

    def _computed(
        self, raw: DataFrame, records: DataFrame, counting: DataFrame, copies: pa.Table | None = None
    ) -> Computed:
        """The effect of the records that count, and what is bad among all.

        Older versions read the raw records otherwise. Which of them are bad, and which are copies, the source says as
        it is declared.
        """
        found = [gathered(fused, selected(counting, "records", fused.sql)) for fused in self.fused]
        for each in self.older:
            otherwise = parsed(raw, each.source)
            counted = otherwise if copies is None else _without(otherwise, copies)
            found += [gathered(fused, selected(counted, "records", fused.sql)) for fused in each.fused]
        bad_copies = copies is not None and copies.num_rows > 0 and self.source.counts_bad_fields
        return together(found, records, self.source, bad_copies=bad_copies)


def ids_of(statement: DataFrame) -> pa.Table:
    """Runs `Source.ids`; gives them in order."""
    from pyspark.sql.pandas.types import to_arrow_schema

    given = list(batches(statement))
    return in_order(pa.Table.from_batches(given) if given else to_arrow_schema(statement.schema).empty_table())


def _without(records: DataFrame, copies: pa.Table) -> DataFrame:
    """The records that count."""
    from pyspark.sql.functions import broadcast

    if copies.num_rows == 0:
        return records
    left_out = copies.rename_columns(["kafka_partition", "kafka_offset"])
    places = records.sparkSession.createDataFrame(left_out)
    return records.join(broadcast(places), ["kafka_partition", "kafka_offset"], "left_anti")


def _apart(computation: Computation, number: int) -> Computation:
    """The same, staged in temporary tables of its own: they are named by their columns, which may be others'."""

    def renamed(fused: Fused) -> Fused:
        name = f"{fused.table}_{number}"
        read = {table: text.replace(fused.table, name) for table, text in fused.read.items()}
        return replace(fused, table=name, staged=fused.staged.replace(fused.table, name), read=read)

    return replace(computation, fused=[renamed(fused) for fused in computation.fused])


@dataclass(frozen=True)
class Gathered:
    """What a statement gave: its cells, whether there are bad records, the greatest Kafka timestamp (per partition)."""

    staged: Staged
    some_bad: bool
    newest: datetime | None
    by_partition: Mapping[int, int]


def gathered(fused: Fused, statement: DataFrame) -> Gathered:
    """Runs a fused statement."""
    rows, some_bad, newest = Rows(), False, None
    by_partition: dict[int, int] = {}
    names = [column.name for column in fused.columns]
    for batch in batches(statement):
        table = pa.Table.from_batches([batch])
        of_records = table.filter(pyarrow.compute.equal(table.column("v"), 0))
        if fused.partition:
            by_partition |= _newest_of_each(of_records, fused.partition)
            of_records = of_records.filter(pyarrow.compute.greater(of_records.column("p0"), 0))
        some_bad = some_bad or of_records.num_rows > 0
        latest: datetime | None = pyarrow.compute.max(table.column("newest")).as_py()
        newest = max((each for each in (newest, latest) if each is not None), default=None)
        rows.add(table.select(names))
    staged = Staged(ddl=fused.staged, table=fused.table, rows=rows, read=fused.read)
    return Gathered(staged, some_bad, newest, by_partition)


def together(found: Sequence[Gathered], records: DataFrame, source: Source, *, bad_copies: bool = False) -> Computed:
    """What all statements gave; every one tells of bad records, and only when there are some does a job fetch them.

    bad_copies: may records that do not count have bad fields, which the statements did not see?
    """
    return Computed(
        staged=[each.staged for each in found],
        bad=bad_among(records, source) if found[0].some_bad or bad_copies else None,
        newest=max((each.newest for each in found if each.newest is not None), default=None),
        by_partition=next((each.by_partition for each in found if each.by_partition), {}),
    )


def _newest_of_each(rows: pa.Table, partition: str) -> dict[int, int]:
    """The greatest Kafka timestamp of each partition, which has one row."""
    newest = rows.column("newest").cast(pa.timestamp("us")).cast(pa.int64())
    return dict(zip(rows.column(partition).to_pylist(), newest.to_pylist(), strict=True))
