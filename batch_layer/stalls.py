"""A computation that stands still: one record takes an expression minutes, or it never ends (decision 24).

Spark's tasks look at no interrupt in the middle of a record, so only the end of Spark's process ends them. It is the
command's own. A computation stands still if tasks run and no metric of theirs moves: rows read, rows written, bytes
spilled. Before the process is ended, the record is looked for (in another process, which reads what this one reads).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from py4j.protocol import Py4JError

from master_log.offsets import OffsetRange, TopicPartition
from view_algebra.compiled import CellTable, Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("lamina.batch")

STALLS_AFTER = 120.0
"""Seconds without progress after which a record is looked for. Executors tell of their progress every 10 s."""

LOOKS_EVERY = 1.0
"""Seconds between two looks at the progress of tasks."""

ENDS_WITHIN = 5.0
"""Seconds a command waits for a search that it needs no more."""

LAST_EXECUTIONS = 20
"""Statements of Spark's, the newest, whose metrics are looked at: a command runs one after the other."""

GUARD = "CASE WHEN length(COLUMN) < 10000 THEN … END"
"""A guard that keeps an expression from texts that are too long for it."""


class Stalled(LaminaError):
    """A computation was ended because it stood still."""


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
class Found:
    """A record that was not computed within so many seconds."""

    source: str
    at: TopicPartition
    offset: int
    seconds: float


class Finder(Protocol):
    """Looks for the record that a computation stands still at, within a stated time."""

    def __call__(self, work: Work, over: threading.Event) -> Found | None:
        """None if it was not found, or if `over` was set: nothing waits for the answer."""


class Watching(Protocol):
    """Ends what stands still."""

    def __call__(self, work: Work) -> AbstractContextManager[None]:
        """A block in which Spark computes. Raises `Stalled` if it stood still, and Spark's process was ended."""


def unwatched(work: Work) -> AbstractContextManager[None]:  # noqa: ARG001 (as `Watching`)
    """Ends nothing: Spark is another's."""
    return nullcontext()


@dataclass(frozen=True)
class Watch:
    """Watches over Spark's process of a command.

    spark: its session. end: ends the process; the next question starts another. tell: takes a line of narration.
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
            log.debug("%s: what was stopped failed so", work.name, exc_info=error)
        finally:
            over.set()
            thread.join(ENDS_WITHIN)
        if reasons:
            raise reasons[0]

    def _look(self, spark: SparkSession, work: Work, over: threading.Event, reasons: list[Stalled]) -> None:
        since, seen = time.monotonic(), ""
        while not over.wait(LOOKS_EVERY):
            now = progress(spark)
            if now != seen or not now:
                since, seen = time.monotonic(), now
            elif time.monotonic() >= since + STALLS_AFTER:
                self.tell(f"{work.name}: Spark has stood still for {STALLS_AFTER:.0f} s; the record is looked for")
                inside, found = function_of(spark), self._found(work, over)
                if over.is_set():
                    return
                if progress(spark) == seen:
                    reasons.append(stalled(work, time.monotonic() - since, inside, found))
                    self.end()
                    return
                since = time.monotonic()

    def _found(self, work: Work, over: threading.Event) -> Found | None:
        try:
            return self.find(work, over)
        except Exception as error:  # noqa: BLE001 (what stands still is named without its record)
            log.warning("%s: the record was not found: %s", work.name, error)
            return None


def stalled(work: Work, seconds: float, inside: str, found: Found | None) -> Stalled:
    """The error that names a view, what it was computed of and, if it is known, the record."""
    ranges = [f"{name} from {range.start} up to {range.end}" for name, (_, range) in work.reads.items()]
    evidence = f"it computed {'; '.join(ranges)}" if ranges else "it computed the records of the test"
    if found is not None:
        where = f"partition {found.at.partition}, offset {found.offset} of {found.at.topic}"
        evidence = f"the record at {where} (source {found.source}) is not computed within {found.seconds:.0f} s"
    if inside:
        evidence += f"; Spark is in {inside}"
    return Stalled(
        f"{work.name}: Spark stood still for {seconds:.0f} s, and was stopped",
        evidence=evidence,
        way_out="Nothing was changed. An expression of the view takes too long on a text or an array. Replace it, or"
        f" keep long values from it: {GUARD}. Then repeat the command.",
    )


def progress(spark: SparkSession) -> str:
    """The stages and metrics of running tasks, which change while they compute. Empty if no task runs."""
    with suppress(Py4JError, ConnectionError):
        context: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 (pyspark's own gives no metrics)
        stages = list(_running(context.statusTracker()))
        return f"{stages} {list(_metrics(spark))}" if stages else ""
    return ""


def _running(tracker: Any) -> Iterator[tuple[int, int, int]]:
    """The stages that have running tasks, with how many run and how many have ended."""
    for job in tracker.getActiveJobIds():
        found = tracker.getJobInfo(job)
        for stage in found.get().stageIds() if found.isDefined() else ():
            info = tracker.getStageInfo(stage)
            if info.isDefined() and info.get().numActiveTasks() > 0:
                yield stage, info.get().numActiveTasks(), info.get().numCompletedTasks()


def _metrics(spark: SparkSession) -> Iterator[tuple[int, str]]:
    """The metrics of the statements that run: Spark brings them up to date with each heartbeat of an executor."""
    store: Any = spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001 (not in pyspark)
    first = max(0, store.executionsCount() - LAST_EXECUTIONS)
    executions = store.executionsList(first, LAST_EXECUTIONS)
    for number in range(executions.size()):
        execution = executions.apply(number)
        if execution.completionTime().isEmpty():
            yield execution.executionId(), store.executionMetrics(execution.executionId()).toString()


def function_of(spark: SparkSession) -> str:
    """The Java method below Spark's that a task of a local session is in; empty if none is.

    A task that waits for Python, for Postgres or for a shuffle is in none that tells a person anything.
    """
    with suppress(Py4JError, ConnectionError):
        beans: Any = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr] # noqa: SLF001
        for thread in beans.getThreadMXBean().dumpAllThreads(False, False):
            if thread.getThreadName().startswith("Executor task") and thread.getThreadState().toString() == "RUNNABLE":
                calls = [f"{each.getClassName()}.{each.getMethodName()}" for each in thread.getStackTrace()]
                return outermost(calls)
    return ""


def outermost(calls: list[str]) -> str:
    """The call that an expression of Spark's has made, given a stack from the innermost call outwards.

    >>> spark = ["org.apache.spark.sql.catalyst.expressions.GeneratedClass$X.processNext", "java.lang.Thread.run"]
    >>> outermost(["java.util.regex.Pattern$Slice.match", "java.util.regex.Matcher.find", *spark])
    'java.util.regex.Matcher.find'
    >>> outermost(["org.apache.spark.unsafe.types.UTF8String.levenshteinDistance", *spark])
    'org.apache.spark.unsafe.types.UTF8String.levenshteinDistance'
    """
    for inner, outer in pairwise(calls):
        if "catalyst.expressions" in outer and "catalyst.expressions" not in inner:
            return inner
    return next((each for each in calls if "catalyst.expressions" in each and "Generated" not in each), "")
