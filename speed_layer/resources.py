"""The resources of a speed layer: Spark, Postgres, Kafka, the log, and settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from master_log.kafka.brokers import Brokers
from master_log.reading.schema_registry import KnownSchemas
from serving_layer.postgres.database import Database
from serving_layer.postgres.phases import Phases
from speed_layer.endless import Probe, TimeLimits
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from master_log.log import MasterLog


@dataclass(frozen=True)
class Resources:
    """The services and settings that all queries of a speed layer share.

    session: returns Spark's session
    schemas: the schemas of records that a registry has answered
    checkpoints: the folder of the runs' checkpoints
    max_records: bound of a micro-batch, in offsets
    log: returns the master log
    renew: replaces Spark's process, with everything that runs in it. None if it is not ours to end
    probe: starts a process that tries ranges of a source
    at: called at named points of a micro-batch, where tests stop
    today: returns the date in UTC. Plans are kept for a day
    phases: sums the seconds of micro-batches
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
    limits: TimeLimits = field(default_factory=TimeLimits)
    at: Callable[[str], None] = lambda point: None
    today: Callable[[], date] = lambda: datetime.now(UTC).date()
    phases: Phases = field(default_factory=Phases)

    @property
    def spark(self) -> SparkSession:
        """Spark's session, which `renew` replaces."""
        return self.session()
