"""Stalled computations: an expression takes minutes for one record, or never ends (decision 24).

Spark's tasks do not check for interrupts in the middle of a record, so only the end of Spark's process ends them. The
process belongs to the command. A computation has stalled if tasks run and none of their metrics (rows read, rows
written, bytes spilled) changes. Before the process is ended, another one searches the same records for the slow one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from master_log.offsets import OffsetRange, TopicPartition
from view_algebra.compiled import CellTable, Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("lamina.batch")

STALLS_AFTER = 120.0
"""Seconds without progress after which the record is searched for. Executors report their progress every 10 s."""

LOOKS_EVERY = 1.0
"""Seconds between two looks at the progress of tasks."""

ENDS_WITHIN = 5.0
"""Seconds a command waits for a search that it no longer needs."""

LAST_EXECUTIONS = 20
"""The number of Spark's newest statements whose metrics are read. A command runs one statement after the other."""

GUARD = "CASE WHEN length(COLUMN) < 10000 THEN … END"
"""A guard that keeps long texts from an expression."""


class Stalled(LaminaError):
    """Raised for a computation that stood still and was ended."""


@dataclass(frozen=True)
class Work:
    """A computation of Spark: a view (or test), the ranges of its sources, and the tables of cells that it fills."""

    name: str
    reads: Mapping[str, tuple[Source, OffsetRange]]
    tables: Collection[CellTable] = ()

    def tables_of(self, source: str) -> list[CellTable]:
        """The tables of cells that a source feeds."""
        return [table for table in self.tables if table.source == source]


@dataclass(frozen=True)
class SlowRecord:
    """A record that was not computed within these seconds."""

    source: str
    at: TopicPartition
    offset: int
    seconds: float


Finder = Callable[[Work, threading.Event], SlowRecord | None]
"""Searches for the record at which a computation stands still, until the event is set: the computation has ended."""

Watching = Callable[[Work], AbstractContextManager[None]]
"""Watches a block in which Spark computes. Raises `Stalled` if it stood still and Spark's process was ended."""


def unwatched(work: Work) -> AbstractContextManager[None]:  # noqa: ARG001 (as `Watching`)
    """Watches nothing, since Spark belongs to another process."""
    return nullcontext()


@dataclass(frozen=True)
class StallWatch:
    """Watches Spark's process of a command.

    spark: returns its session
    end: ends the process, which the next call of `spark` replaces
    tell: prints a line of narration
    """

    spark: Callable[[], SparkSession]
    end: Callable[[], None]
    find: Finder
    tell: Callable[[str], None]

    @contextmanager
    def __call__(self, work: Work) -> Iterator[None]:
        """As `Watching`."""
        over, reasons = threading.Event(), list[Stalled]()
        spark = self.spark()
        thread = threading.Thread(target=self._look, args=(spark, work, over, reasons), name="watch", daemon=True)
        thread.start()
        try:
            yield
        except Exception as error:
            if not reasons:
                raise
            log.debug("%s: the stopped computation failed", work.name, exc_info=error)
        finally:
            over.set()
            thread.join(ENDS_WITHIN)
        if reasons:
            raise reasons[0]

    def _look(self, spark: SparkSession, work: Work, over: threading.Event, reasons: list[Stalled]) -> None:
        since, seen = time.monotonic(), ""
        while not over.wait(LOOKS_EVERY):
            now = task_metrics(spark)
            if now != seen or not now:
                since, seen = time.monotonic(), now
            elif time.monotonic() >= since + STALLS_AFTER:
                self.tell(f"{work.name}: Spark has stood still for {STALLS_AFTER:.0f} s, searching for the slow record")
                inside, record = function_of(spark), self._record(work, over)
                if over.is_set():
                    return
                if task_metrics(spark) == seen:
                    reasons.append(stall_error(work, time.monotonic() - since, inside, record))
                    self.end()
                    return
                since = time.monotonic()

    def _record(self, work: Work, over: threading.Event) -> SlowRecord | None:
        try:
            return self.find(work, over)
        except Exception as error:  # noqa: BLE001 (the error then names the view without its record)
            log.warning("%s: the record was not found: %s", work.name, error)
            return None


def stall_error(work: Work, seconds: float, inside: str, record: SlowRecord | None) -> Stalled:
    """The error that names a view, and the record or the ranges that it was computed from."""
    ranges = [f"{name} from {range.start} up to {range.end}" for name, (_, range) in work.reads.items()]
    evidence = f"it computed {'; '.join(ranges)}" if ranges else "it computed the records of the test"
    if record is not None:
        place = f"partition {record.at.partition}, offset {record.offset} of {record.at.topic}"
        evidence = f"the record at {place} (source {record.source}) is not computed within {record.seconds:.0f} s"
    if inside:
        evidence += f"; Spark is in {inside}"
    return Stalled(
        f"{work.name}: Spark stood still for {seconds:.0f} s, and was stopped",
        evidence=evidence,
        way_out="Nothing was changed. An expression of the view takes too long on a text or an array. Replace it, or"
        f" keep long values from it: {GUARD}. Then repeat the command.",
    )


def task_metrics(spark: SparkSession) -> str:
    """The stages and metrics of running tasks, which change while they compute. Empty if no task runs."""
    with suppress(Py4JError, ConnectionError):
        context: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 (pyspark's own gives no metrics)
        stages = list(_running(context.statusTracker()))
        return f"{stages} {list(_metrics(spark))}" if stages else ""
    return ""


def _running(tracker: Any) -> Iterator[tuple[int, int, int]]:
    """The stages that have running tasks, with the numbers of running and of completed tasks."""
    for job in tracker.getActiveJobIds():
        job_info = tracker.getJobInfo(job)
        for stage in job_info.get().stageIds() if job_info.isDefined() else ():
            info = tracker.getStageInfo(stage)
            if info.isDefined() and info.get().numActiveTasks() > 0:
                yield stage, info.get().numActiveTasks(), info.get().numCompletedTasks()


def _metrics(spark: SparkSession) -> Iterator[tuple[int, str]]:
    """The metrics of the running statements, which Spark updates with each heartbeat of an executor."""
    store: Any = spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001 (not in pyspark)
    first = max(0, store.executionsCount() - LAST_EXECUTIONS)
    executions = store.executionsList(first, LAST_EXECUTIONS)
    for number in range(executions.size()):
        execution = executions.apply(number)
        if execution.completionTime().isEmpty():
            yield execution.executionId(), store.executionMetrics(execution.executionId()).toString()


def function_of(spark: SparkSession) -> str:
    """The Java method that an expression is running in a task of a local session, or an empty text.

    The method of a task that waits for Python, Postgres or a shuffle would not help a person.
    """
    with suppress(Py4JError, ConnectionError):
        beans: Any = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr] # noqa: SLF001
        for thread in beans.getThreadMXBean().dumpAllThreads(False, False):
            if thread.getThreadName().startswith("Executor task") and thread.getThreadState().toString() == "RUNNABLE":
                calls = [f"{frame.getClassName()}.{frame.getMethodName()}" for frame in thread.getStackTrace()]
                return outermost(calls)
    return ""


def outermost(calls: list[str]) -> str:
    """The call that an expression of Spark has made, from a stack that begins with the innermost call.

    >>> spark = ["org.apache.spark.sql.catalyst.expressions.GeneratedClass$X.processNext", "java.lang.Thread.run"]
    >>> outermost(["java.util.regex.Pattern$Slice.match", "java.util.regex.Matcher.find", *spark])
    'java.util.regex.Matcher.find'
    >>> outermost(["org.apache.spark.unsafe.types.UTF8String.levenshteinDistance", *spark])
    'org.apache.spark.unsafe.types.UTF8String.levenshteinDistance'
    """
    for inner, outer in pairwise(calls):
        if "catalyst.expressions" in outer and "catalyst.expressions" not in inner:
            return inner
    return next((call for call in calls if "catalyst.expressions" in call and "Generated" not in call), "")
