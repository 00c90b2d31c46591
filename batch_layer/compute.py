"""The cells of all records below a cut, computed by Spark and copied into Postgres part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from master_log.offsets import Offsets
from master_log.reading.kafka_reader import named_in, selected
from serving_layer.catalog import versions
from serving_layer.catalog.lookup import Generation
from serving_layer.postgres.cells import kept_since
from serving_layer.postgres.copying import csv
from serving_layer.postgres.database import Database
from serving_layer.promise import loading
from view_algebra.compiled import CellTable, Source
from view_algebra.language.quoting import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from master_log.log import MasterLog


MOST_BYTES = 2**29
"""Bytes of a log's files up to which its records are kept. The files are compressed, the kept records are not."""


def records_that_count(records: DataFrame, source: Source) -> DataFrame:
    """The records that count: all good records or, in a stream with UNIQUE, one good record per event."""
    good = records.where("kafka_error IS NULL")
    if not source.counted:
        return good
    good.createOrReplaceTempView("good_records")
    return records.sparkSession.sql(source.counted)


@dataclass
class SharedRecords:
    """The records that several of these tables read: read and parsed once, and kept on the disks of Spark's executors.

    One process computes the tables one after the other. After an error, `forget` lets the next table read for itself.
    """

    tables: Sequence[tuple[Source, CellTable]] = ()
    _kept: dict[tuple[str, str, str, Offsets], DataFrame] = field(default_factory=dict, init=False)

    def records(self, log: MasterLog, source: Source, cut: Offsets, start: Offsets) -> DataFrame:
        """The records of a source from `start` up to `cut` that count."""
        key = (source.name, source.parse, source.counted, cut)
        if key in self._kept:
            return self._kept[key]
        records = records_that_count(log.records_below(source, cut, since=start), source)
        readers = [table for other, table in self.tables if (other.name, other.parse, other.counted) == key[:3]]
        if len(readers) < 2 or log.size(source) > MOST_BYTES:
            return records
        from pyspark import StorageLevel

        return self._kept.setdefault(
            key, named_in(records, [table.partial for table in readers]).persist(StorageLevel.DISK_ONLY)
        )

    def forget(self) -> None:
        """Removes the kept records."""
        for records in self._kept.values():
            with suppress(PySparkException, Py4JError, OSError):  # Spark's process was ended, and its files with it
                records.unpersist()
        self._kept.clear()


@contextmanager
def sharing(database: Database, sealed: Sequence[Generation]) -> Iterator[SharedRecords]:
    """A block in which these generations share the records that they are computed from."""
    with database.begin() as connection:
        computed = [versions.get(connection, new.view, new.version) for new in sealed]
    shared = SharedRecords([(ver.sources[table.source], table) for ver in computed for table in ver.view.cell_tables])
    try:
        yield shared
    finally:
        shared.forget()


def cells_of(counted: DataFrame, table: CellTable, since: datetime | None) -> DataFrame:
    """The cells of the records that count, for one table of cells.

    Without records there is no cell, as in a micro-batch, although a SELECT without GROUP BY returns a row.
    """
    having = "\nHAVING count(*) > 0" if table.kind == "aggregate" and not table.keys else ""
    computed = selected(counted, spark_name(table.source), table.partial + having)
    begins = kept_since(table, since)
    computed = computed if begins is None else computed.where(is_kept(table.retained, begins))
    return _windows_as_texts(computed) if table.spread else computed


def _windows_as_texts(windows: DataFrame) -> DataFrame:
    """Hopping windows as texts with an era for Postgres, since Arrow has no times beyond the calendar."""
    (name,) = (spark_name(column) for column in windows.columns)
    year = f"CASE WHEN year({name}) < 1 THEN 1 - year({name}) ELSE year({name}) END"
    time = f"date_format({name}, '-MM-dd HH:mm:ss.SSSSSS+00')"
    era = f"CASE WHEN year({name}) < 1 THEN ' BC' ELSE '' END"
    return windows.selectExpr(f"concat(format_string('%04d', {year}), {time}, {era}) AS {name}")


def is_kept(column: str, since: datetime) -> str:
    """The condition in Spark SQL for a row or a cell that is kept."""
    return f"{spark_name(column)} >= TIMESTAMP '{since.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"


def load(cells: DataFrame, dsn: str, generation: int, table: str, attempt: int) -> dict[int, int]:
    """Copies cells into their generation, every part in the task that computed it.

    dsn: the address of Postgres

    Returns the number of cells by part, without empty parts. `loading.complete` compares it with the loaded cells.
    """
    columns = cells.columns
    load_part = partial(
        loading.load_part, dsn, generation=generation, name=table, attempt=attempt, columns=tuple(columns)
    )

    def copy_part(part_batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        from pyspark import TaskContext

        batches = iter(part_batches)
        context, first = TaskContext.get(), next(batches, None)
        assert context is not None
        if first is not None:
            rows = (csv(pa.table(batch.columns, columns)) for batch in chain([first], batches))
            copied = load_part(part=context.partitionId(), rows=rows)
            part = pa.array([context.partitionId()], pa.int32())
            yield pa.RecordBatch.from_pydict({"part": part, "cells": pa.array([copied], pa.int64())})

    return {row.part: row.cells for row in cells.mapInArrow(copy_part, "part int, cells bigint").collect()}
