"""The plans of a source: for its small micro-batches, and for versions of views that are about to be opened.

The first run of a statement takes seconds: Spark plans it and compiles its code. So when a version of a view is
announced (`serving_layer.change.deploying.announce`), its statements run over one micro-batch next to those that are
committed, and the result is discarded. The first micro-batch that feeds the version then runs the plans made meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from master_log.causes import SPARK_ERRORS
from master_log.reading.record_decoding import decoded
from serving_layer.catalog import versions
from serving_layer.postgres.database import Connection, PostgresError
from serving_layer.promise import event_ids
from serving_layer.promise.event_ids import IdLookup
from speed_layer.jobs import SETTLES_WITHIN, Jobs
from speed_layer.plans import Plans
from speed_layer.records import fetch_few
from speed_layer.resources import Resources
from speed_layer.statements import Statements
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError
from view_algebra.formats import Answers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("lamina.speed")


@dataclass(frozen=True)
class _Entry:
    """The plans of statements on a day (UTC), or None if Spark cannot run them again."""

    statements: Statements
    day: date
    settings: Mapping[str, str]
    plans: Plans | None


@dataclass
class KeptPlans:
    """The plans of a source, kept from one run to the next. Each field is replaced as a whole.

    current: those of its small micro-batches, written by the threads that compute them
    announced: those of an announced version, written by the thread that prepares it
    """

    current: _Entry | None = None
    announced: _Entry | None = None

    def entry(self, statements: Statements, day: date, settings: Mapping[str, str]) -> _Entry | None:
        """The plans of these statements of this day, with these settings of Spark, or None."""
        entries = [entry for entry in (self.current, self.announced) if entry is not None]
        valid = (entry for entry in entries if (entry.day, entry.settings) == (day, settings))
        return next((entry for entry in valid if entry.statements is statements), None)

    def discard(self) -> None:
        """Discards all plans. Spark may keep in a plan that it failed."""
        self.current = self.announced = None


class Preparation:
    """The preparation of an announced version of a source, one at a time, in a thread of its own.

    `begin` is called by the threads of micro-batches, `give_up` and `spins` by the layer's.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._thread: threading.Thread | None = None
        self._jobs: Jobs | None = None
        self._given_up_at: float | None = None

    @property
    def is_running(self) -> bool:
        """True while the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, jobs: Jobs, run: Callable[[], None]) -> None:
        """Calls `run`, which starts these jobs, in the thread."""
        self._jobs, self._given_up_at = jobs, None
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


@dataclass(frozen=True)
class Planner:
    """Makes and finds the plans of a source for the micro-batches of one run.

    settings: those of Spark for new plans. A plan with other settings is not used
    kept, preparation: shared with the planners of the source's other runs
    """

    resources: Resources
    source: Source
    settings: Mapping[str, str]
    kept: KeptPlans
    preparation: Preparation

    def plan(self, statements: Statements) -> Plans | None:
        """The plans of these statements, made at most once a day, or None if Spark cannot run them again."""
        self.kept.current = entry = self._todays_entry(statements) or self._new_entry(statements)
        return entry.plans

    def existing_plans(self, statements: Statements) -> Plans | None:
        """The plans of these statements that exist already, made for a micro-batch or next to one."""
        entry = self._todays_entry(statements)
        return None if entry is None else entry.plans

    def as_announced(self, statements: Statements) -> Statements:
        """The announced statements if these are equal to them, so that their plans are used."""
        announced = self.kept.announced
        return statements if announced is None or announced.statements != statements else announced.statements

    def prepare(self, connection: Connection, now: Statements, raw: DataFrame, answers: Answers) -> None:
        """Starts to prepare an announced version, one at a time.

        now: the statements that micro-batches run today
        raw: the records of any micro-batch, which the `answers` of the registry decode
        """
        if self.preparation.is_running:
            return
        new = versions.unprepared_tables(connection, self.source.name)
        if not new:
            return
        soon = Statements.of_all(versions.tables_by_parse(connection, self.source, now.names | new))
        read = partial(decoded, raw, soon.sources, answers)
        jobs = Jobs(self.resources.spark)
        self.preparation.begin(jobs, partial(self._run, soon, new, read, jobs))

    def _todays_entry(self, statements: Statements) -> _Entry | None:
        return self.kept.entry(statements, self.resources.today(), self.settings)

    def _new_entry(self, statements: Statements) -> _Entry:
        day, plans = self.resources.today(), make_plans(self.resources, statements, self.settings)
        self.resources.at(f"planned {' '.join(statements.names)}")
        return _Entry(statements, day, self.settings, plans)

    def _run(self, soon: Statements, new: Collection[str], read: Callable[[], DataFrame], jobs: Jobs) -> None:
        began, database = time.monotonic(), self.resources.database

        def look_up(ids: pa.Table) -> IdLookup:
            return database.retrying(lambda connection: event_ids.look_up(connection, self.source, ids))

        try:
            records = read()
            with jobs.group():
                # A query of its own, which shares no cache with the micro-batch.
                soon.compute(records.where("true"), look_up)
                entry = self._new_entry(soon)
                if entry.plans is not None and (table := fetch_few(records)) is not None:
                    entry.plans.compute(table, look_up)
            self.kept.announced = entry
            log.debug("%s: prepared for new versions in %.1f s", self.source.name, time.monotonic() - began)
        except Exception:
            log.debug("%s: an announced version could not be prepared", self.source.name, exc_info=True)
        finally:
            with suppress(PostgresError, LaminaError):  # otherwise it is prepared again, next to a later micro-batch
                for name in new:
                    database.retrying(partial(versions.note_prepared, name=name))


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
