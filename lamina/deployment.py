"""One deployment, put together from its settings: each part is opened when it is first needed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from batch_layer.rebuild import BatchLayer
from lamina.settings import Settings
from master_log.archive import MasterLog
from master_log.kafka import Brokers
from serving_layer import install, registry
from serving_layer.database import Database, is_lock_timeout
from serving_layer.registry import Change, Topic
from speed_layer.layer import SpeedLayer
from speed_layer.query import Parts
from view_algebra import compile_catalog
from view_algebra.compiled import Catalog, Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("lamina")

DEFAULT_PARTITIONS = 4
"""Partitions of a topic that `apply` has to create, unless the source's property `partitions` says otherwise."""

SPEED_NICENESS = 3
"""Readers come before micro-batches: at 3, a process has half the share of one at 0."""

BATCH_NICENESS = 19
"""A rebuild takes the processors that readers and the speed layer leave: at 19, a sixtieth of a process at 0."""


@dataclass
class Deployment:
    """Kafka, Postgres, Spark and the master log of one set of settings. `tell` takes lines of narration.

    A Spark session that is `lent` is used in place of one of its own, and goes on when the deployment is closed.
    """

    settings: Settings
    tell: Callable[[str], None] = log.info
    at: Callable[[str], None] = lambda place: None
    lent: SparkSession | None = field(default=None, repr=False)
    _started: SparkSession | None = field(default=None, init=False, repr=False)

    @cached_property
    def database(self) -> Database:
        """The serving layer's database."""
        return Database(self.settings.postgres)

    @cached_property
    def brokers(self) -> Brokers:
        """The Kafka cluster."""
        return Brokers(self.settings.kafka, self.settings.login)

    @property
    def spark(self) -> SparkSession:
        """The Spark session; starting it takes some seconds. It stands back behind readers and the speed layer."""
        return self._session(nice=BATCH_NICENESS)

    def _session(self, nice: int) -> SparkSession:
        if self.lent is not None:
            return self.lent
        if self._started is None:
            from lamina.spark import session

            self.tell("starting Spark")
            self._started = session(self.settings, "lamina", nice=nice)
        return self._started

    @property
    def log(self) -> MasterLog:
        """The master log."""
        from lamina.spark import CATALOG

        return MasterLog(self.spark, CATALOG)

    @property
    def batch(self) -> BatchLayer:
        """The batch layer."""
        return BatchLayer(
            database=self.database,
            brokers=self.brokers,
            spark=lambda: self.spark,
            log=lambda: self.log,
            dsn=self.settings.postgres,
            tell=self.tell,
            at=self.at,
        )

    def speed(self, stopping: threading.Event, *, max_records: int) -> SpeedLayer:
        """The speed layer, to be run until `stopping` is set."""
        return SpeedLayer(
            Parts(
                spark=self._session(nice=SPEED_NICENESS),
                database=self.database,
                brokers=self.brokers,
                checkpoints=self.settings.home / "checkpoints",
                max_records=max_records,
                at=self.at,
            ),
            stopping,
        )

    def install(self) -> None:
        """Makes the database a serving layer, or brings it to this version."""
        from sqlalchemy import make_url

        analyst = self.settings.analyst
        install.install(self.database, analyst_password=make_url(analyst).password if analyst else None)

    def deployed(self) -> Catalog:
        """The catalog that was applied last."""
        self.require_installed()
        with self.database.begin() as connection:
            return registry.deployed(connection)[1]

    def require_installed(self) -> None:
        """Raises unless something was applied to this database before."""
        if not install.installed(self.database):
            raise LaminaError(
                "Nothing is deployed here",
                evidence=f"{self.database.name} holds no schema `lamina`",
                way_out="Deploy a catalog with `lamina apply --catalog DIR`.",
            )

    def plan(self, files: Mapping[str, str]) -> list[Change]:
        """What applying these files would change."""
        catalog = compile_catalog(files)
        self.install()
        with self.database.begin() as connection:
            return registry.plan(connection, catalog)

    def apply(self, files: Mapping[str, str]) -> list[Change]:
        """Deploys these files; topics that do not exist are created."""
        catalog = compile_catalog(files)
        self.install()
        topics = {name: self._topic(source) for name, source in catalog.sources.items()}
        try:
            return self.database.retrying(lambda connection: registry.apply(connection, files, catalog, topics))
        except DBAPIError as error:
            if not is_lock_timeout(error):
                raise
            raise LaminaError(
                "A reader holds a view that this change renews",
                evidence="its transaction is still open; pg_stat_activity lists it",
                way_out="Nothing was changed, and nobody waits. Apply again when the reader has ended.",
            ) from error

    def _topic(self, source: Source) -> Topic:
        id = self.brokers.topic_id(source.topic)
        if id is None:
            partitions = int(source.properties.get("partitions", DEFAULT_PARTITIONS))
            self.brokers.create(source.topic, partitions)
            self.tell(f"{source.name}: topic {source.topic} created with {partitions} partitions")
            id = self.brokers.topic_id(source.topic)
        if id is None:
            raise LaminaError(f"The topic {source.topic} was deleted while it was deployed", way_out="Apply again.")
        if self.brokers.retention(source.topic).compacted:
            raise LaminaError(
                f"{source.name}: topic {source.topic} is compacted",
                evidence="Kafka drops a record of it when a newer one has its key, also before it is archived:"
                " views would count what a rebuild cannot.",
                way_out="Set its cleanup.policy to delete, or copy it to a topic that keeps every record.",
            )
        return Topic(id, self.brokers.earliest(source.topic))

    def close(self) -> None:
        """Gives back what it opened."""
        if self._started is not None:
            self._started.stop()
        self.brokers.close()
        self.database.close()


def catalog_files(folder: Path) -> dict[str, str]:
    """The `.sql` files of a catalog, by their path relative to its folder."""
    if not folder.is_dir():
        raise LaminaError(
            f"There is no catalog at {folder}",
            evidence="wanted a folder of .sql files",
            way_out="Name it with --catalog DIR or LAMINA_CATALOG.",
        )
    files = {str(path.relative_to(folder)): _read(path) for path in sorted(folder.rglob("*.sql"))}
    if not files:
        raise LaminaError(
            f"The catalog at {folder} is empty",
            evidence="found no .sql file in it",
            way_out="Declare a source and a view; `examples/` shows some.",
        )
    return files


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LaminaError(
            f"{path} cannot be read", evidence=str(error), way_out="A catalog's files are readable UTF-8."
        ) from error
