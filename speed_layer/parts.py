"""What every query of a speed layer shares, and for how long a query may compute."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from master_log.causes import SPARK_ERRORS
from master_log.kafka import Brokers
from master_log.offsets import OffsetRange, Skipped, TopicPartition
from master_log.registry import KnownSchemas
from serving_layer.postgres.database import Database
from serving_layer.postgres.phases import Phases
from speed_layer.computation import Computation
from speed_layer.jobs import Jobs
from speed_layer.prepared import Prepared, reads_our_files
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from master_log.archive import MasterLog

log = logging.getLogger("lamina.speed")


class TooLong(Exception):
    """A micro-batch was given up because Spark had been computing it for too long.

    skipped: what of its range had been skipped when it was read.
    """

    def __init__(self, range: OffsetRange, jobs: Jobs, skipped: Skipped) -> None:
        each = "; ".join(f"{range.start[at]} to {end} of partition {at.partition}" for at, end in range.moved.items())
        super().__init__(f"Spark had been computing the offsets {each} for {jobs.seconds:.0f} s")
        self.range, self.jobs, self.skipped = range, jobs, skipped


class Probe(Protocol):
    """A process of its own that computes ranges of one source, and writes nothing, until one takes too long."""

    def longest(self, range: OffsetRange) -> tuple[TopicPartition, int] | None:
        """The record with the longest value."""

    def computes(self, range: OffsetRange, seconds: float) -> bool:
        """False if its tasks ran for that many seconds and had to be killed. A range that fails is none of these."""

    def close(self) -> None:
        """Kills it, whatever it computes; `computes` returns at once."""


@dataclass(frozen=True)
class Patience:
    """Seconds for which the tasks of a micro-batch may run.

    shared: of a member of a shared run, before it leaves the run. Others wait for it meanwhile, and are to be counted
    within half a minute. alone: of a query with a run of its own; micro-batches that take longer are halved. A single
    record may take as long. probed: of a range in which an endless record is looked for. It is as long as `shared`, so
    that what had to leave the run for a record's sake is found again. per_record: the same, for each record of a range:
    a log's are long.
    """

    shared: float = 10.0
    alone: float = 60.0
    probed: float = 10.0
    per_record: float = 0.0

    def of(self, range: OffsetRange) -> float:
        """Seconds within which a range is computed that has no endless record."""
        return self.probed + self.per_record * range.size


@dataclass(frozen=True)
class Parts:
    """What every query of a speed layer shares.

    session: gives Spark's session. checkpoints: folder of the runs' checkpoints. max_records: bound of a micro-batch,
    in offsets. log: the master log. renew: ends Spark's process with all that runs in it, and starts another; None if
    that is not ours to do. probe: starts a process that tries ranges of a source. at: called at named places of a
    micro-batch; the tests stop there. phases: adds up the seconds of micro-batches. schemas: those of records.
    """

    session: Callable[[], SparkSession]
    database: Database
    brokers: Brokers
    schemas: KnownSchemas
    checkpoints: Path
    max_records: int
    log: Callable[[], MasterLog]
    renew: Callable[[], None] | None
    probe: Callable[[Source], Probe]
    patience: Patience = field(default_factory=Patience)
    at: Callable[[str], None] = lambda place: None
    phases: Phases = field(default_factory=Phases)

    @property
    def spark(self) -> SparkSession:
        """Spark's session, which is another one once Spark was renewed."""
        return self.session()

    def prepared(self, computation: Computation, *, interpreted: bool) -> Prepared | None:
        """What small micro-batches run; None where Spark would have to plan it anew for each."""
        if not reads_our_files(self.spark):
            return None
        try:
            made = Prepared(self.spark, computation, self.checkpoints / "few", interpreted=interpreted)
        except (*SPARK_ERRORS, OSError):
            log.debug("%s: could not be prepared", computation.source.name, exc_info=True)
            return None
        if made.stateful:
            log.debug("%s: planned anew for each micro-batch: %s", computation.source.name, made.stateful)
        return None if made.stateful else made
