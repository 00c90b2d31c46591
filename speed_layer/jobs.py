"""The Spark jobs of one micro-batch of a source: the time their tasks have been running, and their cancellation."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil
from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from master_log.offsets import OffsetRange

SETTLES_WITHIN = 2.0
"""Seconds after which a cancelled task that still runs is taken to spin. Other tasks check for a cancellation between
two records."""

SHARES_WHEN_STARVED = 4
"""A task that computes gets at least one part in this many of a processor, even on a busy machine."""

TIMES_THE_LIMIT = 10
"""After this many times the allowed seconds, a task is taken to compute, whatever processor time Spark had."""


@dataclass(eq=False)
class Jobs:
    """All jobs that are started within `group`. Spark knows them by the name of their group.

    began: on the monotonic clock
    """

    spark: SparkSession = field(repr=False)
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._processor_before = self._processor()

    @contextmanager
    def group(self) -> Iterator[None]:
        """Adds every job that this thread starts inside the block."""
        context = self.spark.sparkContext
        context.setJobGroup(self.name, "a micro-batch", interruptOnCancel=True)
        try:
            yield
        finally:
            with suppress(Py4JError, ConnectionError):  # Spark's process is gone, and the thread's group with it
                context._jsc.clearJobGroup()  # noqa: SLF001 (pyspark has no way to leave a group)

    @property
    def seconds(self) -> float:
        """Seconds since the jobs began."""
        return time.monotonic() - self.began

    def cancel(self) -> None:
        """Makes threads that wait for these jobs, or are about to start one, fail at once.

        A task ends when it checks for an interrupt, which may be never: Java's regular expressions do not.
        """
        with suppress(Py4JError, ConnectionError):
            self.spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(self.name)  # noqa: SLF001 (not in pyspark)

    def run_longer_than(self, seconds: float) -> bool:
        """True if tasks run in a stage that began this many seconds ago, even if the jobs were cancelled.

        Planning does not count, nor waiting for a free core or for Postgres, nor the tasks of a Spark on this machine
        that gets no processor time because of other processes.
        """
        if self.seconds < seconds or not self._could_compute(seconds):
            return False
        with suppress(Py4JError, ConnectionError):
            return any(ago >= seconds for ago in self._stages())
        return False

    def _could_compute(self, seconds: float) -> bool:
        used = self._processor()
        if used is None or self._processor_before is None or self.seconds >= TIMES_THE_LIMIT * seconds:
            return True
        return used - self._processor_before >= seconds / SHARES_WHEN_STARVED

    def _processor(self) -> float | None:
        """Seconds of processor time of Spark's process, or None if its tasks run elsewhere or it is gone."""
        context: Any = self.spark.sparkContext
        if not (context.master or "").startswith("local"):
            return None
        with suppress(psutil.Error, AttributeError):
            times = psutil.Process(context._gateway.proc.pid).cpu_times()  # noqa: SLF001 (pyspark tells no id)
            return float(times.user + times.system)
        return None

    def _stages(self) -> Iterator[float]:
        """Seconds since the start of every stage that has running tasks."""
        tracker: Any = self.spark.sparkContext._jsc.sc().statusTracker()  # noqa: SLF001 (pyspark's own tells no times)
        for job in tracker.getJobIdsForGroup(self.name):
            job_info = tracker.getJobInfo(job)
            for stage in job_info.get().stageIds() if job_info.isDefined() else ():
                info = tracker.getStageInfo(stage)
                if info.isDefined() and info.get().numActiveTasks() > 0:
                    yield time.time() - info.get().submissionTime() / 1000


@dataclass
class RunningRanges:
    """The ranges that one source is computing, with their Spark jobs. Several threads use it."""

    _ranges: list[tuple[OffsetRange, Jobs]] = field(default_factory=list)

    @contextmanager
    def track(self, spark: SparkSession, range: OffsetRange) -> Iterator[None]:
        """Tracks the jobs of the block as those that compute a range."""
        jobs = Jobs(spark)
        self._ranges.append((range, jobs))
        try:
            with jobs.group():
                yield
        finally:
            self._ranges.remove((range, jobs))

    def overdue(self, seconds: float) -> OffsetRange | None:
        """The range of a micro-batch whose tasks have been running for at least this many seconds."""
        return next((range for range, jobs in tuple(self._ranges) if jobs.run_longer_than(seconds)), None)

    def jobs_of(self, range: OffsetRange) -> Jobs | None:
        """The jobs that compute a range, or None once it is computed."""
        return next((jobs for running, jobs in tuple(self._ranges) if running == range), None)

    def cancel(self) -> None:
        """Makes the computations fail: nobody waits for them any more."""
        for _, jobs in tuple(self._ranges):
            jobs.cancel()
