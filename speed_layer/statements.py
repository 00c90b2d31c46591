"""From the records of a micro-batch to its effect: one Spark job for all aggregates, one for all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute

from master_log.reading.kafka_reader import named_in, parsed, selected
from master_log.reading.log_times import RAW_LOG_TIME
from serving_layer.catalog import versions
from serving_layer.postgres.cells import StagedCells
from serving_layer.postgres.copying import CopyRows, batches
from serving_layer.postgres.database import Connection
from serving_layer.promise.event_ids import IdLookup, has_copies, in_order
from serving_layer.promise.micro_batch import maintained
from serving_layer.promise.quarantine import BadRecords, bad_among
from view_algebra import fuse, rows
from view_algebra.compiled import CellTable, Fused, Source
from view_algebra.formats import Decoding, decodings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LookUp = Callable[[pa.Table], IdLookup]
"""Looks up the ids of a micro-batch among those that were counted."""


@dataclass(frozen=True)
class Effect:
    """The effect of a micro-batch before it is written.

    staged: cells, one COPY per statement
    bad: the records for quarantine, if there are any
    newest: the greatest Kafka timestamp
    by_partition: the same per Kafka partition, in microseconds since 1970, for a table's records only
    ids: the result of the look-up, if the source has ids
    """

    staged: Sequence[StagedCells]
    bad: BadRecords | None
    newest: datetime | None
    by_partition: Mapping[int, int] = field(default_factory=dict)
    ids: IdLookup | None = None


@dataclass(frozen=True)
class Statements:
    """The compiled texts that maintain all tables of cells of one query.

    older: statements of versions kept since an earlier declaration of the source, which parse its records as they did
        then
    """

    source: Source
    tables: Sequence[CellTable]
    fused: Sequence[Fused]
    older: Sequence[Statements] = ()

    @property
    def names(self) -> frozenset[str]:
        """The names of the tables of cells."""
        return frozenset(table.name for table in self.tables)

    @property
    def reads_log_times(self) -> bool:
        """True if a text reads the log times of a table's records. Texts of a Lamina without log times do not."""
        return self.source.kind == "table" and any(RAW_LOG_TIME in source.parse for source in self.sources)

    @property
    def sources(self) -> Sequence[Source]:
        """The declarations of the source by which records are parsed, the current one first."""
        return [self.source, *(statements.source for statements in self.older)]

    @property
    def older_decodings(self) -> Sequence[Decoding]:
        """Decodings by a registry's schemas that only earlier declarations of the source use."""
        now = Decoding.of(self.source)
        return [by for by in decodings(self.sources) if by.needs_registry and not by.names_schemas_as(now)]

    @classmethod
    def maintained(cls, connection: Connection, source: Source) -> Statements:
        """The statements of the tables of cells that the source's micro-batches merge into now, of all versions."""
        return cls.of_all(versions.tables_by_parse(connection, source, names_maintained(connection, source)))

    @classmethod
    def of_all(cls, readings: Sequence[tuple[Source, Sequence[CellTable]]]) -> Statements:
        """The statements of these tables of cells, by declaration of the source, the current one first."""
        (source, tables), *before = readings
        now = cls.of(source, tables)
        older = [_with_own_tables(cls.of(*reading), number) for number, reading in enumerate(before, 1)]
        return replace(now, tables=[table for _, read in readings for table in read], older=older)

    @classmethod
    def of(cls, source: Source, tables: Sequence[CellTable]) -> Statements:
        """The statements of these tables of cells, all fed by `source`. Each fused statement is one Spark job."""
        by_kind = {kind: [table for table in tables if table.kind == kind] for kind in ("aggregate", "row")}
        fused = [rows(source, by_kind["row"])] if by_kind["row"] else []
        if by_kind["aggregate"] or not fused or source.kind == "table":
            fused.append(fuse(source, by_kind["aggregate"]))
        return cls(source, tables, fused)

    def compute(self, raw: DataFrame, look_up: LookUp, *, likely_new: bool = True) -> Effect:
        """Runs the texts over the raw records of one micro-batch.

        If the ids of the records are `likely_new`, Spark computes the cells during the look-up as if all ids were new,
        and computes them again if one was not.
        """
        records = parsed(raw, self.source)
        if not self.source.ids:
            return self._effect(raw, records, records)
        texts = [self.source.ids, *(fused.sql for fused in self.fused)]
        used = named_in(records, texts).persist()  # the ids are read first; nothing is fetched and parsed twice
        try:
            ids = ids_of(selected(used, "records", self.source.ids))
            with ThreadPoolExecutor(1, thread_name_prefix="look-up") as thread:
                looking_up = thread.submit(look_up, ids)
                try:
                    effect = self._effect(raw, records, used) if likely_new and not has_copies(ids) else None
                except Exception:
                    looking_up.result()  # if the look-up failed as well, its reason is the better one
                    raise
                counted = looking_up.result()
            if effect is None or counted.copies.num_rows:
                effect = self._effect(raw, records, _without_copies(used, counted.copies), counted.copies)
            return replace(effect, ids=counted)
        finally:
            used.unpersist()

    def try_over(self, raw: DataFrame) -> None:
        """Runs every text over raw records and discards the results."""
        for statements in (self, *self.older):
            records = parsed(raw, statements.source)
            for fused in statements.fused:
                result_of(fused, selected(records, "records", fused.sql))
        if self.source.ids:
            ids_of(selected(parsed(raw, self.source), "records", self.source.ids))

    def _effect(
        self, raw: DataFrame, records: DataFrame, counting: DataFrame, copies: pa.Table | None = None
    ) -> Effect:
        """The effect of the records that count, and the bad records among all.

        Older versions parse the raw records differently. The current declaration of the source also decides for
        them which records are bad and which are copies.
        """
        results = [result_of(fused, selected(counting, "records", fused.sql)) for fused in self.fused]
        for older in self.older:
            parsed_then = parsed(raw, older.source)
            counting_then = parsed_then if copies is None else _without_copies(parsed_then, copies)
            results += [result_of(fused, selected(counting_then, "records", fused.sql)) for fused in older.fused]
        bad_copies = copies is not None and copies.num_rows > 0 and self.source.counts_bad_fields
        return effect_of(results, records, self.source, bad_copies=bad_copies)


def names_maintained(connection: Connection, source: Source) -> frozenset[str]:
    """The names of the tables of cells that the source's micro-batches merge into now."""
    return frozenset(fed.cell_table for fed in maintained(connection, source.name))


def ids_of(statement: DataFrame) -> pa.Table:
    """Runs `Source.ids`, and returns the ids in order."""
    from pyspark.sql.pandas.types import to_arrow_schema

    ids = list(batches(statement))
    return in_order(pa.Table.from_batches(ids) if ids else to_arrow_schema(statement.schema).empty_table())


def _without_copies(records: DataFrame, copies: pa.Table) -> DataFrame:
    """The records that count."""
    from pyspark.sql.functions import broadcast

    if copies.num_rows == 0:
        return records
    offsets = copies.rename_columns(["kafka_partition", "kafka_offset"])
    left_out = records.sparkSession.createDataFrame(offsets)
    return records.join(broadcast(left_out), ["kafka_partition", "kafka_offset"], "left_anti")


def _with_own_tables(statements: Statements, number: int) -> Statements:
    """The same statements with temporary tables of their own. Those of another declaration have the same names."""

    def renamed(fused: Fused) -> Fused:
        name = f"{fused.table}_{number}"
        read = {table: text.replace(fused.table, name) for table, text in fused.read.items()}
        return replace(fused, table=name, staged=fused.staged.replace(fused.table, name), read=read)

    return replace(statements, fused=[renamed(fused) for fused in statements.fused])


@dataclass(frozen=True)
class Result:
    """The result of one fused statement, as in `Effect`.

    some_bad: there are bad records
    """

    staged: StagedCells
    some_bad: bool
    newest: datetime | None
    by_partition: Mapping[int, int]


def result_of(fused: Fused, statement: DataFrame) -> Result:
    """Runs a fused statement."""
    rows, some_bad, newest = CopyRows(), False, None
    by_partition: dict[int, int] = {}
    names = [column.name for column in fused.columns]
    for batch in batches(statement):
        table = pa.Table.from_batches([batch])
        record_rows = table.filter(pyarrow.compute.equal(table.column("v"), 0))
        if fused.partition:
            by_partition |= _newest_by_partition(record_rows, fused.partition)
            record_rows = record_rows.filter(pyarrow.compute.greater(record_rows.column("p0"), 0))
        some_bad = some_bad or record_rows.num_rows > 0
        latest: datetime | None = pyarrow.compute.max(table.column("newest")).as_py()
        newest = max((time for time in (newest, latest) if time is not None), default=None)
        rows.add(table.select(names))
    staged = StagedCells(ddl=fused.staged, table=fused.table, rows=rows, read=fused.read)
    return Result(staged, some_bad, newest, by_partition)


def effect_of(results: Sequence[Result], records: DataFrame, source: Source, *, bad_copies: bool = False) -> Effect:
    """The effect that all results add up to. A job fetches the bad records, but only if there may be some.

    Every result says whether there are, so the first one is enough.

    bad_copies: records that do not count, which the statements did not read, may have bad fields
    """
    return Effect(
        staged=[result.staged for result in results],
        bad=bad_among(records, source) if results[0].some_bad or bad_copies else None,
        newest=max((result.newest for result in results if result.newest is not None), default=None),
        by_partition=next((result.by_partition for result in results if result.by_partition), {}),
    )


def _newest_by_partition(rows: pa.Table, partition: str) -> dict[int, int]:
    """The greatest Kafka timestamp of each partition, which has one row."""
    newest = rows.column("newest").cast(pa.timestamp("us")).cast(pa.int64())
    return dict(zip(rows.column(partition).to_pylist(), newest.to_pylist(), strict=True))
