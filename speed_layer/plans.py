"""Statements that Spark plans once and runs over one small micro-batch after another.

Spark needs longer to analyse and plan a statement than to run it over some records, and it does so for every action on
a new DataFrame. A DataFrame that is kept is not planned again. So the records of a small micro-batch are written to
a file, always the same one, and the kept DataFrames read it (`record_file.py`).

Anything else that a plan keeps from one action to the next would belong to earlier records: a shuffle, a broadcast, a
subquery. Only plans that consist of `STATELESS` operators are run again. A micro-batch in one task rarely needs others.
A plan also keeps the date on which it was made, which `Source.parse` reads, so it is valid on that day only.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from master_log.reading.kafka_reader import parsed, selected
from serving_layer.promise.quarantine import bad_among
from speed_layer.record_file import file_of, records_in, rows_of
from speed_layer.statements import Effect, LookUp, Statements, effect_of, ids_of, result_of
from view_algebra.formats import decodings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATELESS = frozenset(
    {
        *("Scan binaryFile", "Project", "Filter", "Generate", "Expand", "Union", "Coalesce", "Sort", "Sample"),
        *("HashAggregate", "ObjectHashAggregate", "SortAggregate", "WholeStageCodegen", "InputAdapter"),
    }
)
"""Operators of Spark that keep nothing from one action to the next."""

INTERPRETED: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
}
"""Settings for a shared run, with which Spark interprets expressions. Otherwise it writes their code for every task,
only to find that it has compiled it before. That takes longer than interpreting a handful of records, and not as long
as some hundred."""

COMPILED: Mapping[str, str] = {}
"""Settings for a source that has a run to itself."""


class Plans:
    """The plans of a source's statements, run over one small micro-batch after another.

    stateful: operators that keep them from being run again
    """

    def __init__(
        self, spark: SparkSession, statements: Statements, folder: Path, settings: Mapping[str, str] = COMPILED
    ) -> None:
        """`folder` holds the file of records, for as long as the plans exist. `settings` are those of Spark."""
        session = spark.newSession()  # of its own: another action must not meet these settings
        session.conf.set("spark.sql.adaptive.enabled", "false")  # adaptive execution plans while it runs
        session.conf.set("spark.sql.shuffle.partitions", "1")
        for option, value in settings.items():
            session.conf.set(option, value)
        self._running = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / uuid.uuid4().hex
        weakref.finalize(self, self._file.unlink, missing_ok=True)
        self._write(pa.table({}))
        self._source = source = statements.source
        raw = records_in(
            session, self._file, source.topic, sorted(decodings(statements.sources), key=attrgetter("column"))
        )
        self.records = parsed(raw, source)
        self._ids = selected(self.records, "records", source.ids) if source.ids else None
        read = [(self.records, statements), *((parsed(raw, older.source), older) for older in statements.older)]
        self._statements = [
            (fused, selected(records, "records", fused.in_one_task)) for records, texts in read for fused in texts.fused
        ]
        frames = [frame for _, frame in self._statements] + ([] if self._ids is None else [self._ids])
        self.stateful = {name for frame in frames for name in operators(frame)} - STATELESS

    def compute(self, table: pa.Table, look_up: LookUp, *, wait: bool = True) -> Effect | None:
        """As `Statements.compute`, of fetched records, in the columns of a raw record.

        The plans compute one micro-batch at a time, since they read one file. If they are running, the next caller
        waits. Without `wait`, the result is then None: a commit must not wait for the micro-batch after it.
        """
        if not self._running.acquire(blocking=wait):
            return None
        try:
            self._write(table)
            source, counted, bad = self._source, None, None
            if self._ids is not None:
                counted = look_up(ids_of(self._ids))
                if counted.copies.num_rows:
                    bad = bad_among(self.records, source) if source.counts_bad_fields else None  # copies included
                    self._write(table, {(row["partition"], row["offset"]) for row in counted.copies.to_pylist()})
            results = [result_of(fused, frame) for fused, frame in self._statements]
            effect = effect_of(results, self.records, source)
            return replace(effect, ids=counted, bad=bad or effect.bad)
        finally:
            self._running.release()

    def _write(self, table: pa.Table, left_out: Collection[tuple[int, int]] = ()) -> None:
        rows = (row for row in rows_of(table) if (row["partition"], row["offset"]) not in left_out)
        self._file.write_bytes(file_of(rows))


def operators(statement: DataFrame) -> set[str]:
    """The names of all operators in Spark's plan of a statement, subqueries included."""

    def names(plan: Any) -> Iterator[str]:
        yield plan.nodeName().partition(" (")[0].strip()
        for plans in (plan.children(), plan.subqueries()):
            yield from (name for number in range(plans.size()) for name in names(plans.apply(number)))
        if plan.subqueries().size():
            yield "Subquery"

    return set(names(statement._jdf.queryExecution().executedPlan()))  # noqa: SLF001 - PySpark returns only its text
