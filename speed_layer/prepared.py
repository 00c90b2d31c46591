"""Statements that Spark plans once, and runs over one small micro-batch after the other.

To analyse and plan a statement takes Spark longer than to run it over some records, and it does so for every action on
a new DataFrame. A DataFrame that is kept is not planned again. So the records of a small micro-batch are written to a
file, always the same, and the kept DataFrames read it: Spark's source `binaryFile` opens it anew for each action. The
file proves itself by a digest.

What else a plan keeps from one action to the next would be of the records before: a shuffle, a broadcast, a subquery.
Only plans that consist of `STATELESS` operators are run again. A micro-batch in one task needs no others, as a rule.
A plan also keeps the date on which it was made, which `Source.parse` asks for: it is good for that day alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from master_log.causes import SPARK_ERRORS
from master_log.decoding import decoded_fields
from master_log.log_times import RAW_LOG_TIME
from master_log.reading import parsed, selected
from serving_layer.postgres.copying import batches
from serving_layer.promise.duplicates import Found
from serving_layer.promise.quarantine import bad_among
from speed_layer.computation import Computation, Computed, gathered, ids_of, together
from speed_layer.resources import Resources
from view_algebra.formats import Decoding, decodings
from view_algebra.language.quoting import spark_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("lamina.speed")

FEW = 10_000
"""Offsets of a source up to which a micro-batch is small: of a larger one, planning costs less than computing.

Planning change events takes Spark more than a second. With a bound of 2,000 and as many records a second, a source that
fell behind once stayed behind."""

FEW_BYTES = 16 * 1024 * 1024
"""Of keys, values and headers of a small micro-batch, of all of its sources."""

STATELESS = frozenset(
    {
        *("Scan binaryFile", "Project", "Filter", "Generate", "Expand", "Union", "Coalesce", "Sort", "Sample"),
        *("HashAggregate", "ObjectHashAggregate", "SortAggregate", "WholeStageCodegen", "InputAdapter"),
    }
)
"""Operators of Spark that begin anew with each action."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
}
"""Has Spark evaluate expressions as they are. It writes their code anew for every task otherwise, if only to find that
it has compiled it: that takes longer than a handful of records, and less long than some hundred."""

DIGEST = 64
"""Letters of a SHA-256."""

_RECORD = (
    "partition INT, offset BIGINT, timestamp BIGINT, log_time BIGINT, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key STRING, value BINARY>>"
)


class Prepared:
    """What is computed of the records of one source, prepared for one micro-batch after the other.

    stateful: operators that keep it from being run again.
    """

    def __init__(self, spark: SparkSession, computation: Computation, folder: Path, *, interpreted: bool) -> None:
        """`folder` is where its file will be, for as long as it is needed. `interpreted`: see `INTERPRETED`."""
        session = spark.newSession()  # of its own: an action may set what another must not find
        session.conf.set("spark.sql.adaptive.enabled", "false")  # which plans while it runs
        session.conf.set("spark.sql.shuffle.partitions", "1")
        for option, value in INTERPRETED.items() if interpreted else ():
            session.conf.set(option, value)
        self._running = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / uuid.uuid4().hex
        weakref.finalize(self, self._file.unlink, missing_ok=True)
        self._write(pa.table({}))
        self.computation = computation
        decoded = sorted(decodings(computation.sources), key=lambda by: by.column)
        raw = reading(session, self._file, computation.source.topic, decoded)
        self.records = parsed(raw, computation.source)
        self._ids = selected(self.records, "records", computation.source.ids) if computation.source.ids else None
        self._statements = [
            (fused, selected(parsed(raw, each.source), "records", fused.in_one_task))
            for each in (computation, *computation.older)
            for fused in each.fused
        ]
        every = [statement for _, statement in self._statements] + ([] if self._ids is None else [self._ids])
        self.stateful = {name for statement in every for name in operators(statement)} - STATELESS

    def compute(self, few: pa.Table, find: Callable[[pa.Table], Found]) -> Computed:
        """As `Computation.compute`, of records that are at hand, in the columns of a raw record."""
        with self._running:  # its file is of one micro-batch at a time
            return self._compute(few, find)

    def compute_unless_running(self, few: pa.Table, find: Callable[[pa.Table], Found]) -> Computed | None:
        """The same for who must not wait for the micro-batch that it computes; None while it computes one."""
        if not self._running.acquire(blocking=False):
            return None
        try:
            return self._compute(few, find)
        finally:
            self._running.release()

    def _compute(self, few: pa.Table, find: Callable[[pa.Table], Found]) -> Computed:
        self._write(few)
        source, found, bad = self.computation.source, None, None
        if self._ids is not None:
            found = find(ids_of(self._ids))
            if found.copies.num_rows:
                bad = bad_among(self.records, source) if source.counts_bad_fields else None  # of copies, too
                self._write(few, but=found.copies)
        cells = [gathered(fused, statement) for fused, statement in self._statements]
        computed = together(cells, self.records, source)
        return replace(computed, ids=found, bad=bad or computed.bad)

    def _write(self, few: pa.Table, but: pa.Table | None = None) -> None:
        left_out = set() if but is None else {(row["partition"], row["offset"]) for row in but.to_pylist()}
        records = (each for each in rows_of(few) if (each["partition"], each["offset"]) not in left_out)
        self._file.write_bytes(file_of(records))


def today() -> date:
    """The date in UTC."""
    return datetime.now(UTC).date()


def prepared(resources: Resources, computation: Computation, *, interpreted: bool) -> Prepared | None:
    """What small micro-batches run; None where Spark would have to plan it anew for each."""
    if not (resources.spark.sparkContext.master or "").startswith("local"):
        return None  # its executors cannot read our files
    try:
        plans = Prepared(resources.spark, computation, resources.checkpoints / "few", interpreted=interpreted)
    except (*SPARK_ERRORS, OSError):
        log.debug("%s: could not be prepared", computation.source.name, exc_info=True)
        return None
    if plans.stateful:
        log.debug("%s: planned anew for each micro-batch: %s", computation.source.name, plans.stateful)
    return None if plans.stateful else plans


def few_of(records: DataFrame) -> pa.Table | None:
    """Raw records at hand; None where they are too large, and where there are none."""
    found, size = [], 0
    for batch in batches(records):
        size += batch.nbytes
        if size > FEW_BYTES:
            return None
        found.append(batch)
    return pa.Table.from_batches(found) if found else None


def of_topic(few: pa.Table | None, topic: str) -> pa.Table | None:
    """Those of a topic."""
    return None if few is None else few.filter(pc.equal(few["topic"], topic))


def operators(statement: DataFrame) -> set[str]:
    """The names of all operators that Spark would run a statement with, those of subqueries among them."""

    def walked(plan: Any) -> Iterator[str]:
        yield plan.nodeName().partition(" (")[0].strip()
        for each in (plan.children(), plan.subqueries()):
            yield from (name for number in range(each.size()) for name in walked(each.apply(number)))
        if plan.subqueries().size():
            yield "Subquery"

    return set(walked(statement._jdf.queryExecution().executedPlan()))  # noqa: SLF001 - PySpark gives it as a text


def reading(session: SparkSession, file: Path, topic: str, decoded: Sequence[Decoding]) -> DataFrame:
    """The raw records in the file, with the columns of what is decoded of them, whenever it is read.

    The file begins with the digest of the rest. Records that a disk has lost would otherwise be records that never
    came: progress would go past them.
    """
    from pyspark.sql.functions import lit

    digest = f"string(substring(content, 1, {DIGEST}))"
    written = f"substring(content, {DIGEST + 1})"
    lost = f"raise_error({spark_text(f'{file} is not what was written to it')})"
    content = session.read.format("binaryFile").load(str(file))
    whole = content.selectExpr(f"IF(sha2({written}, 256) = {digest}, string({written}), {lost}) AS records")
    fields = ", ".join([_RECORD, *(f"{by.column} STRUCT<{decoded_fields(by)}>" for by in decoded)])
    records = whole.selectExpr(f"inline(from_json(records, 'ARRAY<STRUCT<{fields}>>', map('mode', 'FAILFAST')))")
    micros = [f"timestamp_micros({name}) AS {name}" for name in ("timestamp", RAW_LOG_TIME)]
    times = records.selectExpr(
        "partition", "offset", *micros, "key", "value", "headers", *(by.column for by in decoded)
    )
    return times.select(lit(topic).alias("topic"), "*").coalesce(1)


def file_of(records: Iterable[dict[str, Any]]) -> bytes:
    """The file of raw records: a digest, and the records in JSON, as Spark reads it."""
    written = json.dumps(list(records), default=_plain).encode()
    return hashlib.sha256(written).hexdigest().encode() + written


def _plain(value: Any) -> str:
    """A time, a day or a decimal of a column that was decoded."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value.isoformat())


def rows_of(few: pa.Table) -> Iterator[dict[str, Any]]:
    """Raw records as `file_of` takes them."""
    if few.num_rows == 0:
        return
    columns = {name: few[name] for name in few.column_names if name != "topic"}
    for name in {"timestamp", RAW_LOG_TIME} & columns.keys():
        columns[name] = columns[name].cast(pa.timestamp("us")).cast(pa.int64())
    for record in pa.table(columns).to_pylist():
        headers = record["headers"]
        yield record | {
            "key": _text(record["key"]),
            "value": _text(record["value"]),
            "headers": headers and [each | {"value": _text(each["value"])} for each in headers],
        }


def _text(value: bytes | None) -> str | None:
    """Bytes as Spark reads them in JSON."""
    return None if value is None else base64.b64encode(value).decode("ascii")
