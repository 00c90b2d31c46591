"""A process that computes ranges of a source and writes nothing. It may be killed if a record never finishes."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NoReturn

import psutil

from batch_layer import stalls
from batch_layer.stalls import Finder, SlowRecord, Work
from lamina.configuration.settings import Settings
from lamina.spark.spark_configuration import CATALOG
from lamina.spark.spark_session import kill, session
from master_log.causes import SPARK_ERRORS, cause
from master_log.kafka.brokers import Brokers
from master_log.log import MasterLog
from master_log.offsets import OffsetRange, Skipped, TopicPartition
from master_log.reading import log_times
from master_log.reading.kafka_reader import kafka_range
from master_log.reading.record_decoding import decoded
from serving_layer.postgres.database import Connection as Session
from serving_layer.postgres.database import Database
from serving_layer.promise import kept_schemas, skipping
from speed_layer.endless import Search, TimeLimits
from speed_layer.jobs import Jobs
from speed_layer.statements import Statements
from view_algebra.compiled import CellTable, Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("lamina.speed")

NICENESS = 5
"""Niceness of the process: the speed layer that asks it has priority, and keeps a processor for itself."""

LOOKS_EVERY = 0.2
"""Seconds between two looks at a range's tasks."""

ANSWERS_WITHIN = 300.0
"""Seconds to read and compute a range, including a JVM's start. The seconds that its tasks may run come on top."""


TIME_LIMITS = TimeLimits(per_record=1 / 20_000)
"""A range of a log may be large. Even an old core parses and computes 20,000 records of a kilobyte in a second."""

SEARCHED_WITHIN = 600.0
"""Seconds after which the search gives up, and the error names the view without the record."""


class ProbeProcess:
    """Asks one process about one range after another."""

    def __init__(self, settings: Settings, source: Source, tables: Sequence[CellTable] | None = None) -> None:
        """`tables`: the cell tables to compute from the log, and from Kafka above the log's end.

        By default, it computes the tables of the micro-batches from Kafka's records.
        """
        # Not forked: this process has threads, and the connections of a JVM.
        context = multiprocessing.get_context("spawn")
        self._asked, child_end = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(settings, source, tables, child_end), name="probe", daemon=True
        )
        self._process.start()
        child_end.close()

    def longest(self, range: OffsetRange) -> tuple[TopicPartition, int] | None:
        """The record with the longest value."""
        at: tuple[TopicPartition, int] | None = self._ask(range, None, ANSWERS_WITHIN)
        return at

    def computes(self, range: OffsetRange, seconds: float) -> bool:
        """False if the range's tasks ran for `seconds`, after which the process is killed. Raises LaminaError without
        an answer.
        """
        computed = bool(self._ask(range, seconds, ANSWERS_WITHIN + seconds))
        if not computed:
            self.close()
        return computed

    def _ask(self, range: OffsetRange, seconds: float | None, within: float) -> Any:
        try:
            self._asked.send((range, seconds))
            answer = self._asked.recv() if self._asked.poll(within) else "it gave no answer"
        except (OSError, EOFError) as error:
            answer = f"it ended ({type(error).__name__})"
        if isinstance(answer, str):
            self.close()
            raise LaminaError("The search for the record failed", evidence=answer)
        return answer

    def close(self) -> None:
        """Kills the process and its JVM. A caller that waits gets no answer."""
        with suppress(psutil.Error):
            process = psutil.Process(self._process.pid)
            for doomed in (*process.children(recursive=True), process):
                with suppress(psutil.Error):
                    doomed.kill()
        self._process.join(1.0)


def finder(settings: Settings) -> Finder:
    """Returns a function that searches the work's sources for the record, one source after another."""

    def find(work: Work, over: threading.Event) -> SlowRecord | None:
        deadline = time.monotonic() + SEARCHED_WITHIN
        for name, (source, range) in work.reads.items():
            if not (tables := work.tables_of(name)) or range.empty:
                continue
            search = Search(partial(ProbeProcess, settings, source, tables), range, TIME_LIMITS)
            while not search.over and not over.is_set() and time.monotonic() < deadline:
                search.await_end(stalls.LOOKS_EVERY)
            search.close()
            if search.record is not None:
                return SlowRecord(name, *search.record, TIME_LIMITS.alone)
        return None

    return find


def _serve(settings: Settings, source: Source, tables: Sequence[CellTable] | None, asked: Connection) -> None:
    """Answers one question after another until the asking process ends, or until a range takes too long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the asking process
    spark = session(settings, "probe", master="local[1]", nice=NICENESS, short_lived=True)
    brokers = Brokers(settings.kafka, settings.login)
    computation = _Computation(Database(settings.postgres), brokers, source, tables)
    with ThreadPoolExecutor(1) as computing, suppress(EOFError):
        answer: object = True
        while answer is not False:
            range, seconds = asked.recv()
            jobs = Jobs(spark)
            answering = computing.submit(computation.answer, jobs, range, seconds)
            while not wait([answering], LOOKS_EVERY).done and not (seconds and jobs.run_longer_than(seconds)):
                if asked.poll():  # questions do not overlap, so the asking process has ended
                    _end()
            answer = answering.result() if answering.done() else False
            asked.send(answer)
    _end()


def _end() -> NoReturn:
    """Ends the process at once. An orderly end would wait for a task that spins."""
    kill()
    os._exit(0)


@dataclass(frozen=True)
class _Computation:
    """The cell tables to compute: by default those that the source's micro-batches compute."""

    database: Database
    brokers: Brokers
    source: Source
    tables: Sequence[CellTable] | None

    def answer(self, jobs: Jobs, range: OffsetRange, seconds: float | None) -> object:
        """Reads a range. Returns the place of its longest value if `seconds` is None, otherwise True once it is
        computed.

        Returns the text of an error if the range cannot be read. Only the tasks of a computation are counted.
        """
        source = self.source
        with self.database.begin() as connection:
            skipped, statements = skipping.read(connection), self._statements(connection)
            schemas = kept_schemas.read(connection, source.topic)
        raw = self._raw(jobs.spark, range, skipped)
        if source.kind == "table":
            raw = log_times.with_log_times(raw, source.topic, {})
        raw = raw.persist()
        try:
            longest = raw.selectExpr("max_by(struct(partition, offset), coalesce(length(value), 0)) AS at").first()
            if seconds is None:
                at = None if longest is None else longest["at"]
                return at and (TopicPartition(source.topic, at["partition"]), at["offset"])
        except SPARK_ERRORS as error:
            return cause(str(error))
        try:
            with jobs.group():
                statements.try_over(decoded(raw, statements.sources, schemas))
        except SPARK_ERRORS:
            log.debug("%s: a range fails; its micro-batch will report the error", source.name, exc_info=True)
        finally:
            raw.unpersist()
        return True

    def _statements(self, connection: Session) -> Statements:
        """The computation of these tables, or of those that are maintained now."""
        if self.tables is not None:
            return Statements.of(self.source, self.tables)
        return Statements.maintained(connection, self.source)

    def _raw(self, spark: SparkSession, range: OffsetRange, skipped: Skipped) -> DataFrame:
        """The raw records of a range."""
        if self.tables is None:
            return kafka_range(spark, self.brokers, self.source, range, skipped)
        return MasterLog(spark, CATALOG, lambda: skipped).raw(self.source, range, self.brokers)
