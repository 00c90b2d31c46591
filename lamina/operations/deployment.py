"""One deployment, put together from its settings. Each part is opened on first use."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from lamina.configuration.settings import Settings
from lamina.services import folders
from master_log.offsets import Skipped
from serving_layer.catalog.deployed import deployed, is_anything_deployed
from serving_layer.narration import waiting
from serving_layer.postgres.database import Database
from serving_layer.promise import progress, skipping
from serving_layer.upkeep import install
from view_algebra.compiled import Catalog
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from batch_layer.rebuild import BatchLayer
    from batch_layer.stalls import Watching
    from master_log.kafka.brokers import Brokers
    from master_log.log import MasterLog
    from serving_layer.promise.kept_schemas import KeptSchemas
    from speed_layer.endless import TimeLimits
    from speed_layer.layer import SpeedLayer

logger = logging.getLogger("lamina")

FEW = 500_000
"""Largest number of records for which a command's JVM ends before it has made its code fast."""

SPEED_NICENESS = 3
"""Readers come before micro-batches: at 3, a process has half the share of one at 0."""

BATCH_NICENESS = 7
"""A rebuild comes after both but is never starved: at 7, it has a fifth of the share of a process at 0. At 19 it would
have a seventieth, and a rebuild of minutes would take hours next to other work.
"""


@dataclass
class Deployment:
    """Kafka, Postgres, Spark and the master log of one set of settings.

    tell: takes lines of narration
    at: takes the name of each place that a rebuild or a micro-batch reaches
    lent: a Spark session used in place of its own. It stays open when the deployment is closed
    one_command: its own session computes for one command only
    nice: the niceness of its own session
    """

    settings: Settings
    tell: Callable[[str], None] = logger.info
    at: Callable[[str], None] = lambda place: None
    lent: SparkSession | None = field(default=None, repr=False)
    one_command: bool = False
    nice: int = BATCH_NICENESS
    _started: SparkSession | None = field(default=None, init=False, repr=False)

    @cached_property
    def database(self) -> Database:
        """The serving layer's database."""
        return Database(self.settings.postgres)

    @cached_property
    def brokers(self) -> Brokers:
        """The Kafka cluster."""
        from master_log.kafka.brokers import Brokers

        return Brokers(self.settings.kafka, self.settings.login)

    @cached_property
    def schemas(self) -> KeptSchemas:
        """The registry of the schemas that records are written with."""
        from master_log.reading.schema_registry import Registry
        from serving_layer.promise.kept_schemas import KeptSchemas

        addresses = self.settings.schema_registry
        return KeptSchemas(self.database, Registry(addresses) if addresses else None)

    def spark(self) -> SparkSession:
        """The Spark session, started by the first call (some seconds). Readers and the speed layer have priority over
        it. Asks Kafka and Postgres for the number of records if it starts for one command.
        """
        opens = self._started is None and self.lent is None
        return self.session(short_lived=opens and self.one_command and self.has_few_records())

    def session(self, *, nice: int | None = None, short_lived: bool = False) -> SparkSession:
        """The Spark session, started by the first call. `nice` is by default the deployment's. `short_lived` is for few
        records.
        """
        if self.lent is not None:
            return self.lent
        if self._started is None:
            from lamina.spark.spark_session import session

            self.tell("starting Spark")
            with waiting(self.tell, "starting Spark", shown=True):
                nice = self.nice if nice is None else nice
                self._started = session(self.settings, "lamina", nice=nice, short_lived=short_lived)
        return self._started

    def has_few_records(self) -> bool:
        """True if sources have at most `FEW` records from their starts on. False if Kafka does not answer."""
        with self.database.begin() as connection:
            starts = progress.starts(connection, list(progress.queries(connection)))
        with suppress(LaminaError):
            ends = self.brokers.latest(*starts.topics()) if starts else {}
            return sum(max(0, end - starts.get(at, 0)) for at, end in ends.items()) <= FEW
        return False

    def log(self) -> MasterLog:
        """The master log over the Spark session."""
        return self._log_over(self.spark())

    def _log_over(self, spark: SparkSession) -> MasterLog:
        from lamina.spark.spark_configuration import CATALOG
        from master_log.log import MasterLog

        return MasterLog(spark, CATALOG, self._skipped, self.schemas)

    def _skipped(self) -> Skipped:
        with self.database.begin() as connection:
            return skipping.read(connection)

    @property
    def batch(self) -> BatchLayer:
        """The batch layer."""
        from batch_layer.rebuild import BatchLayer

        return BatchLayer(
            database=self.database,
            brokers=self.brokers,
            spark=self.spark,
            log=self.log,
            dsn=self.settings.postgres,
            tell=self.tell,
            at=self.at,
            give_up=self.give_up,
            watching=self.watching,
        )

    @property
    def watching(self) -> Watching:
        """A watch that ends Spark if its computation stands still. It never ends a lent session."""
        from batch_layer.stalls import StallWatch, unwatched

        if self.lent is not None:
            return unwatched
        from lamina.operations.probing import finder
        from lamina.spark.spark_session import forget

        def end() -> None:
            self.give_up()
            forget()

        return StallWatch(self.spark, end, finder(self.settings), self.tell)

    def give_up(self) -> None:
        """Ends Spark at once, together with its computation. A lent session keeps running."""
        if self.lent is None:
            from lamina.spark.spark_session import kill

            kill()
            self._started = None

    def speed(self, stopping: threading.Event, *, max_records: int, limits: TimeLimits | None = None) -> SpeedLayer:
        """The speed layer, to be run until `stopping` is set."""
        from lamina.operations.probing import ProbeProcess
        from lamina.spark.spark_session import forget
        from speed_layer.endless import TimeLimits
        from speed_layer.layer import SpeedLayer
        from speed_layer.resources import Resources

        def session() -> SparkSession:
            return self.session(nice=SPEED_NICENESS)

        def renew() -> None:
            self.give_up()
            forget()
            session()

        is_local = self.lent is None and self.settings.spark_master.startswith("local")
        session()
        return SpeedLayer(
            Resources(
                session=session,
                database=self.database,
                brokers=self.brokers,
                schemas=self.schemas,
                checkpoints=folders.own_folder(self.settings.home / "checkpoints"),
                max_records=max_records,
                log=lambda: self._log_over(session()),
                renew=renew if is_local else None,
                probe=lambda source: ProbeProcess(self.settings, source),
                limits=limits or TimeLimits(),
                at=self.at,
            ),
            stopping,
        )

    def is_deployed(self) -> bool:
        """True if a catalog was applied here, by this Lamina or by another version."""
        with self.database.begin() as connection:
            return install.is_installed(connection) and is_anything_deployed(connection)

    def deployed(self) -> Catalog:
        """The catalog that was applied last."""
        self.require_installed()
        with self.database.begin() as connection:
            return deployed(connection)

    def require_installed(self) -> None:
        """Raises LaminaError unless this version of Lamina is installed in the database."""
        with self.database.begin() as connection:
            if not install.is_installed(connection):
                raise LaminaError(
                    "Nothing is deployed here",
                    evidence=f"{self.database.name} holds no schema `lamina`",
                    way_out="Deploy a catalog with `lamina apply --catalog DIR`.",
                )
            if install.known_revision(connection) != install.newest_revision():
                raise LaminaError(
                    "This database belongs to an older Lamina",
                    evidence=f"its bookkeeping is not at revision {install.newest_revision()}",
                    way_out="`lamina plan` shows the upgrade, `lamina apply` performs it.",
                )

    def close(self) -> None:
        """Closes the connections and the session that it opened."""
        if self._started is not None:
            self._started.stop()
        for part in ("brokers", "database"):
            if part in vars(self):
                getattr(self, part).close()
