"""Statements that Spark plans once and runs over one small micro-batch after another, and their preparation.

Spark needs longer to analyse and plan a statement than to run it over some records, and it does so for every action on
a new DataFrame. A DataFrame that is kept is not planned again. So the records of a small micro-batch are written to
a file, always the same one, and the kept DataFrames read it: Spark's source `binaryFile` opens it for each action. A
digest proves that the file is what was written.

Anything else that a plan keeps from one action to the next would belong to earlier records: a shuffle, a broadcast, a
subquery. Only plans that consist of `STATELESS` operators are run again. A micro-batch in one task rarely needs others.
A plan also keeps the date on which it was made, which `Source.parse` reads, so it is valid on that day only.

The first run of a statement takes seconds: Spark plans it and compiles its code. So when a version of a view is
announced (`serving_layer.change.registry.announce`), its statements run over one micro-batch next to those that are
committed, and the result is discarded. The first micro-batch that feeds the version then runs the plans made meanwhile.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from master_log.causes import SPARK_ERRORS
from master_log.kafka_reader import parsed, selected
from master_log.log_times import RAW_LOG_TIME
from master_log.record_decoding import decoded, decoded_fields
from serving_layer.catalog import versions
from serving_layer.postgres.copying import batches
from serving_layer.postgres.database import Connection, PostgresError
from serving_layer.promise import event_ids
from serving_layer.promise.event_ids import IdLookup
from serving_layer.promise.quarantine import bad_among
from speed_layer.jobs import SETTLES_WITHIN, Jobs
from speed_layer.resources import Resources
from speed_layer.statements import Effect, LookUp, Statements, effect_of, ids_of, result_of
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError
from view_algebra.formats import Answers, Decoding, decodings
from view_algebra.language.quoting import spark_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("lamina.speed")

FEW = 10_000
"""Offsets of a source up to which a micro-batch is small. Planning a larger one costs less than computing it.

Planning change events takes Spark more than a second. With a bound of 2,000 and as many records a second, a source that
fell behind once stayed behind."""

FEW_BYTES = 16 * 1024 * 1024
"""Bound for the keys, values and headers of a small micro-batch, over all of its sources."""

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

DIGEST = 64
"""Letters of a SHA-256."""

_RECORD = (
    "partition INT, offset BIGINT, timestamp BIGINT, log_time BIGINT, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key STRING, value BINARY>>"
)


@dataclass(frozen=True)
class _Entry:
    """The plans of statements on a day (UTC), or None if Spark cannot run them again."""

    statements: Statements
    day: date
    settings: Mapping[str, str]
    plans: Plans | None


class Planner:
    """Keeps the plans of a source: those its small micro-batches run, and those of an announced version.

    settings: those of Spark for new plans. A plan with other settings is not used
    """

    def __init__(self, resources: Resources, source: Source) -> None:
        self._resources, self._source = resources, source
        self.settings: Mapping[str, str] = COMPILED
        self._current: _Entry | None = None
        self._announced: _Entry | None = None
        self._thread: threading.Thread | None = None
        self._jobs: Jobs | None = None
        self._given_up_at: float | None = None

    def plan(self, statements: Statements) -> Plans | None:
        """The plans of these statements, made at most once a day, or None if Spark cannot run them again."""
        self._current = entry = self._entry(statements) or self._new_entry(statements)
        return entry.plans

    def kept(self, statements: Statements) -> Plans | None:
        """The plans of these statements that exist already, made for a micro-batch or next to one."""
        entry = self._entry(statements)
        return None if entry is None else entry.plans

    def as_announced(self, statements: Statements) -> Statements:
        """The announced statements if these are equal to them, so that their plans are used."""
        announced = self._announced
        return statements if announced is None or announced.statements != statements else announced.statements

    def discard(self) -> None:
        """Discards all plans. Spark may keep in a plan that it failed."""
        self._current = self._announced = None

    def prepare(self, connection: Connection, now: Statements, raw: DataFrame, answers: Answers) -> None:
        """Starts to prepare an announced version, one at a time.

        now: the statements that micro-batches run today
        raw: the records of any micro-batch, which the `answers` of the registry decode
        """
        if self._thread is not None and self._thread.is_alive():
            return
        new = versions.unprepared_tables(connection, self._source.name)
        if not new:
            return
        soon = Statements.of_all(versions.readings(connection, self._source, now.names | new))
        read = partial(decoded, raw, soon.sources, answers)
        run = partial(self._run, soon, new, read)
        self._thread = threading.Thread(target=run, name="preparation", daemon=True)
        self._thread.start()

    def give_up(self, seconds: float) -> None:
        """Cancels the preparation if its tasks run for longer than this. The version is opened without it."""
        if self._given_up_at is None and self._jobs is not None and self._jobs.run_longer_than(seconds):
            log.warning("%s: preparing an announced version takes too long, and was given up", self._source.name)
            self._given_up_at = time.monotonic()
            self._jobs.cancel()

    def spins(self) -> bool:
        """True if the preparation was given up and a task of it still runs. Only the end of Spark's process ends it."""
        if self._given_up_at is None or time.monotonic() < self._given_up_at + SETTLES_WITHIN:
            return False
        return self._jobs is not None and self._jobs.run_longer_than(SETTLES_WITHIN)

    def _entry(self, statements: Statements) -> _Entry | None:
        wanted = today(), self.settings
        entries = [entry for entry in (self._current, self._announced) if entry is not None]
        valid = (entry for entry in entries if (entry.day, entry.settings) == wanted)
        return next((entry for entry in valid if entry.statements is statements), None)

    def _new_entry(self, statements: Statements) -> _Entry:
        day, settings = today(), self.settings
        return _Entry(statements, day, settings, make_plans(self._resources, statements, settings))

    def _run(self, soon: Statements, new: Collection[str], read: Callable[[], DataFrame]) -> None:
        began, database = time.monotonic(), self._resources.database
        self._jobs = jobs = Jobs(self._resources.spark)
        self._given_up_at = None

        def look_up(ids: pa.Table) -> IdLookup:
            return database.retrying(lambda connection: event_ids.look_up(connection, self._source, ids))

        try:
            records = read()
            with jobs.group():
                # A query of its own, which shares no cache with the micro-batch.
                soon.compute(records.where("true"), look_up)
                entry = self._new_entry(soon)
                if entry.plans is not None and (few := few_of(records)) is not None:
                    entry.plans.compute(few, look_up)
            self._announced = entry
            log.debug("%s: prepared for new versions in %.1f s", self._source.name, time.monotonic() - began)
        except Exception:
            log.debug("%s: an announced version could not be prepared", self._source.name, exc_info=True)
        finally:
            with suppress(PostgresError, LaminaError):  # otherwise it is prepared again, next to a later micro-batch
                for name in new:
                    database.retrying(partial(versions.note_prepared, name=name))


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
        self._statements = [
            (fused, selected(parsed(raw, declared.source), "records", fused.in_one_task))
            for declared in (statements, *statements.older)
            for fused in declared.fused
        ]
        frames = [frame for _, frame in self._statements] + ([] if self._ids is None else [self._ids])
        self.stateful = {name for frame in frames for name in operators(frame)} - STATELESS

    def compute(self, few: pa.Table, look_up: LookUp, *, wait: bool = True) -> Effect | None:
        """As `Statements.compute`, of fetched records, in the columns of a raw record.

        The plans compute one micro-batch at a time, since they read one file. If they are running, the next caller
        waits. Without `wait`, the result is then None: a commit must not wait for the micro-batch after it.
        """
        if not self._running.acquire(blocking=wait):
            return None
        try:
            self._write(few)
            source, counted, bad = self._source, None, None
            if self._ids is not None:
                counted = look_up(ids_of(self._ids))
                if counted.copies.num_rows:
                    bad = bad_among(self.records, source) if source.counts_bad_fields else None  # copies included
                    self._write(few, but=counted.copies)
            results = [result_of(fused, frame) for fused, frame in self._statements]
            effect = effect_of(results, self.records, source)
            return replace(effect, ids=counted, bad=bad or effect.bad)
        finally:
            self._running.release()

    def _write(self, few: pa.Table, but: pa.Table | None = None) -> None:
        left_out = set() if but is None else {(row["partition"], row["offset"]) for row in but.to_pylist()}
        rows = (row for row in rows_of(few) if (row["partition"], row["offset"]) not in left_out)
        self._file.write_bytes(file_of(rows))


def make_plans(resources: Resources, statements: Statements, settings: Mapping[str, str]) -> Plans | None:
    """Plans the statements. Returns None if Spark cannot run the plans again."""
    if not (resources.spark.sparkContext.master or "").startswith("local"):
        return None  # executors on other machines cannot read the file
    try:
        plans = Plans(resources.spark, statements, resources.checkpoints / "few", settings)
    except (*SPARK_ERRORS, OSError):
        log.debug("%s: its plans could not be prepared", statements.source.name, exc_info=True)
        return None
    if plans.stateful:
        log.debug("%s: planned for every micro-batch, because of %s", statements.source.name, plans.stateful)
    return None if plans.stateful else plans


def today() -> date:
    """The date in UTC."""
    return datetime.now(UTC).date()


def few_of(records: DataFrame) -> pa.Table | None:
    """Fetches raw records, or returns None if there are none or they exceed `FEW_BYTES`."""
    fetched, size = [], 0
    for batch in batches(records):
        size += batch.nbytes
        if size > FEW_BYTES:
            return None
        fetched.append(batch)
    return pa.Table.from_batches(fetched) if fetched else None


def of_topic(few: pa.Table | None, topic: str) -> pa.Table | None:
    """The records of one topic."""
    return None if few is None else few.filter(pc.equal(few["topic"], topic))


def operators(statement: DataFrame) -> set[str]:
    """The names of all operators in Spark's plan of a statement, subqueries included."""

    def names(plan: Any) -> Iterator[str]:
        yield plan.nodeName().partition(" (")[0].strip()
        for plans in (plan.children(), plan.subqueries()):
            yield from (name for number in range(plans.size()) for name in names(plans.apply(number)))
        if plan.subqueries().size():
            yield "Subquery"

    return set(names(statement._jdf.queryExecution().executedPlan()))  # noqa: SLF001 - PySpark returns only its text


def records_in(session: SparkSession, file: Path, topic: str, columns: Sequence[Decoding]) -> DataFrame:
    """The raw records in the file at the time of each action, with the decoded columns.

    The file begins with the digest of the rest. Without it, records that a disk has lost would look like records that
    never came, and progress would pass them.
    """
    from pyspark.sql.functions import lit

    digest = f"string(substring(content, 1, {DIGEST}))"
    written = f"substring(content, {DIGEST + 1})"
    lost = f"raise_error({spark_text(f'{file} is not what was written to it')})"
    content = session.read.format("binaryFile").load(str(file))
    whole = content.selectExpr(f"IF(sha2({written}, 256) = {digest}, string({written}), {lost}) AS records")
    fields = ", ".join([_RECORD, *(f"{by.column} STRUCT<{decoded_fields(by)}>" for by in columns)])
    records = whole.selectExpr(f"inline(from_json(records, 'ARRAY<STRUCT<{fields}>>', map('mode', 'FAILFAST')))")
    micros = [f"timestamp_micros({name}) AS {name}" for name in ("timestamp", RAW_LOG_TIME)]
    times = records.selectExpr(
        "partition", "offset", *micros, "key", "value", "headers", *(by.column for by in columns)
    )
    return times.select(lit(topic).alias("topic"), "*").coalesce(1)


def file_of(records: Iterable[dict[str, Any]]) -> bytes:
    """The file of raw records: a digest, then the records as JSON that Spark reads."""
    written = json.dumps(list(records), default=_plain).encode()
    return hashlib.sha256(written).hexdigest().encode() + written


def _plain(value: Any) -> str:
    """The text of a time, day or decimal in a decoded column."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value.isoformat())


def rows_of(few: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of fetched records, for `file_of`."""
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
            "headers": headers and [header | {"value": _text(header["value"])} for header in headers],
        }


def _text(value: bytes | None) -> str | None:
    """Bytes in the form that Spark reads from JSON."""
    return None if value is None else base64.b64encode(value).decode("ascii")
