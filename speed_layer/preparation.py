"""What a version of a view costs Spark once, spent before the version is opened.

A statement that Spark has not run before takes it seconds: to plan, and to compile what it writes for it. Where a
version is announced (`serving_layer.change.registry.announce`), its statements run over one micro-batch, beside those
that are committed, and what they give is thrown away. So the first micro-batch that feeds the version is as fast as
any. Where it is small, it runs the very statements that were prepared.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from serving_layer.catalog import versions
from serving_layer.postgres.database import Connection, Database, PostgresError
from serving_layer.promise import duplicates
from serving_layer.promise.duplicates import Found
from speed_layer.computation import Computation
from speed_layer.jobs import SETTLES_WITHIN, Jobs
from speed_layer.prepared import Prepared, few_of
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("lamina.speed")


@dataclass(frozen=True)
class Ready:
    """What is prepared of a computation on a day (UTC): a plan keeps the date on which it was made.

    shared: for the few records of a source that shares a run. prepared: None where Spark has to plan each anew.
    """

    computation: Computation
    day: date
    shared: bool
    prepared: Prepared | None


class Preparation:
    """Runs what is announced of a source once, a thread at a time.

    ready: what small micro-batches run once these tables of cells are maintained, too.
    """

    def __init__(
        self,
        database: Database,
        source: Source,
        prepare: Callable[[Computation], Ready],
        decode: Callable[[DataFrame, Computation], DataFrame],
    ) -> None:
        self._database, self._source, self._prepare, self._decode = database, source, prepare, decode
        self._running: threading.Thread | None = None
        self._jobs: Jobs | None = None
        self._given_up_at: float | None = None
        self.ready: Ready | None = None

    def begin(self, connection: Connection, now: Computation, records: DataFrame) -> None:
        """Begins with what is announced; `now` is what is computed today, `records` are those of any micro-batch."""
        if self._running is not None and self._running.is_alive():
            return
        new = versions.to_prepare(connection, self._source.name)
        if not new:
            return
        soon = Computation.of_all(versions.readings(connection, self._source, now.names | new))
        self._running = threading.Thread(target=self._run, args=(soon, new, records), name="preparation", daemon=True)
        self._running.start()

    def give_up(self, seconds: float) -> None:
        """Ends it if its tasks have been running for so long: the version is opened without it."""
        if self._given_up_at is None and self._jobs is not None and self._jobs.run_longer_than(seconds):
            log.warning("%s: what is announced takes too long to prepare, and is not prepared", self._source.name)
            self._given_up_at = time.monotonic()
            self._jobs.cancel()

    def spins(self) -> bool:
        """True if it was given up, and a task of it runs all the same: only the end of Spark's process ends that."""
        if self._given_up_at is None or time.monotonic() < self._given_up_at + SETTLES_WITHIN:
            return False
        return self._jobs is not None and self._jobs.run_longer_than(SETTLES_WITHIN)

    def _run(self, soon: Computation, new: Collection[str], records: DataFrame) -> None:
        began = time.monotonic()
        self._jobs = jobs = Jobs(records.sparkSession)
        self._given_up_at = None

        def find(ids: pa.Table) -> Found:
            return self._database.retrying(lambda connection: duplicates.find(connection, self._source, ids))

        try:
            records = self._decode(records, soon)
            with jobs.counted():
                soon.compute(records.where("true"), find)  # what it caches is not what the micro-batch caches of them
                ready = self._prepare(soon)
                if ready.prepared is not None and (few := few_of(records)) is not None:
                    ready.prepared.compute(few, find)
            self.ready = ready
            log.debug("%s: prepared for new versions in %.1f s", self._source.name, time.monotonic() - began)
        except Exception:
            log.debug("%s: what is announced could not be prepared", self._source.name, exc_info=True)
        finally:
            with suppress(PostgresError, LaminaError):  # it is prepared once more, beside a later micro-batch
                for name in new:
                    self._database.retrying(partial(versions.note_prepared, name=name))
