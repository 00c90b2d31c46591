"""One deployment, put together from its settings. Each part is opened on first use."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import view_algebra
from lamina.configuration.settings import Settings
from lamina.operations import lineage_events, schema_warnings, source_topics
from lamina.services import folders
from master_log.offsets import Offsets, Skipped, TopicPartition
from serving_layer.catalog.deployed import deployed, is_anything_deployed, sources
from serving_layer.change import previews, registry, view_checks
from serving_layer.change.catalog_changes import check_allowed
from serving_layer.change.planned_change import PlannedChange
from serving_layer.change.previews import PreviewedView
from serving_layer.change.view_checks import Verdict
from serving_layer.narration import waiting
from serving_layer.postgres.database import Database, login_of, with_login
from serving_layer.promise import progress, rebuilds, skipping
from serving_layer.promise.proof import Proof
from serving_layer.promise.quarantine import BadRecord
from serving_layer.readers import rights, views
from serving_layer.readers.analyst_limits import superusers_script
from serving_layer.upkeep import dropping, indexes, install
from view_algebra.compiled import Catalog, Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from batch_layer.rebuild import BatchLayer
    from batch_layer.reprocess import Target
    from batch_layer.stalls import Watching
    from master_log.kafka import Brokers
    from master_log.log import MasterLog
    from serving_layer.promise.kept_schemas import KeptSchemas
    from speed_layer.endless import Patience
    from speed_layer.layer import SpeedLayer

log = logging.getLogger("lamina")

FEW = 500_000
"""Largest number of records for which a command's JVM ends before it has made its code fast."""

DEPLOYED = ("create", "update", "reprocess")
"""Changes of a view that send lineage events."""

SPEED_NICENESS = 3
"""Readers come before micro-batches: at 3, a process has half the share of one at 0."""

BATCH_NICENESS = 7
"""A rebuild comes after both but is never starved: at 7, it has a fifth of the share of a process at 0. At 19 it would
have a seventieth, and a rebuild of minutes would take hours next to other work.
"""


@dataclass
class Deployment:
    """Kafka, Postgres, Spark and the master log of one set of settings. `tell` takes lines of narration.

    A `lent` Spark session is used in place of an own one, and stays open when the deployment is closed. `one_command`
    means that an own session computes for one command only. `nice` is its niceness (`session` in
    `lamina/spark/spark_session.py`).
    """

    settings: Settings
    tell: Callable[[str], None] = log.info
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
        from master_log.kafka import Brokers

        return Brokers(self.settings.kafka, self.settings.login)

    @cached_property
    def schemas(self) -> KeptSchemas:
        """The registry of the schemas that records are written with."""
        from master_log.schema_registry import Registry
        from serving_layer.promise.kept_schemas import KeptSchemas

        addresses = self.settings.schema_registry
        return KeptSchemas(self.database, Registry(addresses) if addresses else None)

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started on first use (some seconds). Readers and the speed layer have priority over it."""
        if self._started is not None or self.lent is not None:
            return self._session(self.nice)
        return self._session(self.nice, short_lived=self.one_command and self.has_few_records())

    def has_few_records(self) -> bool:
        """True if the topics hold few records that a command can read. False if Kafka does not say."""
        with self.database.begin() as connection:
            starts = progress.starts(connection, list(progress.queries(connection)))
        with suppress(LaminaError):
            ends = self.brokers.latest(*starts.topics()) if starts else {}
            return sum(max(0, end - starts.get(at, 0)) for at, end in ends.items()) <= FEW
        return False

    def _session(self, nice: int, *, short_lived: bool = False) -> SparkSession:
        if self.lent is not None:
            return self.lent
        if self._started is None:
            from lamina.spark.spark_session import session

            self.tell("starting Spark")
            with waiting(self.tell, "starting Spark", shown=True):
                self._started = session(self.settings, "lamina", nice=nice, short_lived=short_lived)
        return self._started

    @property
    def log(self) -> MasterLog:
        """The master log."""
        from lamina.spark.spark_session import CATALOG
        from master_log.log import MasterLog

        return MasterLog(self.spark, CATALOG, self._skipped, self.schemas)

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
            spark=lambda: self.spark,
            log=lambda: self.log,
            dsn=self.settings.postgres,
            tell=self.tell,
            at=self.at,
            give_up=self.give_up,
            watching=self.watching,
        )

    @property
    def watching(self) -> Watching:
        """A watch that ends Spark if its computation stands still. It never ends a lent session."""
        from batch_layer.stalls import Watch, unwatched

        if self.lent is not None:
            return unwatched
        from lamina.operations.stuck_records import finder
        from lamina.spark.spark_session import forget

        def end() -> None:
            self.give_up()
            forget()

        return Watch(lambda: self.spark, end, finder(self.settings), self.tell)

    def give_up(self) -> None:
        """Ends Spark at once, together with its computation. A lent session keeps running."""
        if self.lent is None:
            from lamina.spark.spark_session import kill

            kill()
            self._started = None

    def speed(self, stopping: threading.Event, *, max_records: int, patience: Patience | None = None) -> SpeedLayer:
        """The speed layer, to be run until `stopping` is set."""
        from lamina.operations.probing import ProbeProcess
        from lamina.spark.spark_session import forget
        from speed_layer.endless import Patience
        from speed_layer.layer import SpeedLayer
        from speed_layer.resources import Resources

        def session() -> SparkSession:
            return self._session(nice=SPEED_NICENESS)

        def renew() -> None:
            self.give_up()
            forget()
            session()

        self.one_command = False  # the speed layer computes for as long as it runs
        ours = self.lent is None and self.settings.spark_master.startswith("local")
        session()
        return SpeedLayer(
            Resources(
                session=session,
                database=self.database,
                brokers=self.brokers,
                schemas=self.schemas,
                checkpoints=folders.of_this_process(self.settings.home / "checkpoints"),
                max_records=max_records,
                log=lambda: self.log,
                renew=renew if ours else None,
                probe=lambda source: ProbeProcess(self.settings, source),
                patience=patience or Patience(),
                at=self.at,
            ),
            stopping,
        )

    def install(self) -> None:
        """Makes the database a serving layer, or upgrades it to this version. Narrates the steps that only a superuser
        may do.
        """
        with rights.naming_readers(
            self.database, "Lamina cannot be installed while a reader holds a view that it replaces"
        ):
            done = install.install(
                self.database,
                analyst_password=login_of(self.settings.analyst)[1],
                limits=self.settings.limits,
            )
        if not done:
            return
        for part in done:
            if part.startswith(install.SETTINGS_OF):
                self.tell(f"{part} were reset to Lamina's")
        with self.database.begin() as connection:
            if lacking := rights.unguarded(connection):
                self.tell(
                    f"{'; '.join(lacking)}. Only a superuser can change that, by running this in the database:"
                    f"\n\n{superusers_script().strip()}\n"
                )

    def set_password(self) -> str:
        """Sets the password of LAMINA_ANALYST's role to the one in the URL. Returns the role's name."""
        role, password = login_of(self.settings.analyst)
        if not role or not password:
            raise LaminaError(
                "LAMINA_ANALYST has no password to set",
                evidence="it has a user but no password" if self.settings.analyst else "it is not set",
                way_out="Set it to postgresql://analyst:password@host:5432/database.",
            )
        with self.database.begin() as connection:
            rights.set_password(connection, role, password)
        return role

    def make_login(self, name: str, connections: int | None = None) -> tuple[str, bool]:
        """The URL of a person's login, with a new password, and True if the login is new. `connections` limits the
        simultaneous ones.
        """
        self.require_installed()
        password = secrets.token_urlsafe(24)
        with self.database.begin() as connection:
            new = rights.make_login(connection, name, views.ANALYST, password, connections)
        return with_login(self.settings.analyst or self.settings.postgres, name, password), new

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
        """Raises LaminaError unless something was applied to this database before."""
        if not install.installed(self.database):
            raise LaminaError(
                "Nothing is deployed here",
                evidence=f"{self.database.name} holds no schema `lamina`",
                way_out="Deploy a catalog with `lamina apply --catalog DIR`.",
            )
        with self.database.begin() as connection:
            if install.known_revision(connection) != install.newest_revision():
                raise LaminaError(
                    "This database belongs to an older Lamina",
                    evidence=f"its bookkeeping is not at revision {install.newest_revision()}",
                    way_out="`lamina plan` shows the upgrade, `lamina apply` performs it.",
                )

    def plan(self, files: Mapping[str, str]) -> list[PlannedChange]:
        """The changes that applying these files would make."""
        catalog = self._compiled(files)
        changes = self._plan(catalog)
        self._tell_of_topics(catalog, changes, "create", "update")
        new = [
            catalog.sources[change.name] for change in changes if change.kind == "source" and change.action == "create"
        ]
        for line in source_topics.notes_on_new(self.brokers, new) if new else ():
            self.tell(line)
        return changes

    def _tell_of_topics(self, catalog: Catalog, changes: Sequence[PlannedChange], *actions: str) -> None:
        """Narrates the properties of the changed sources' topics that their declarations may lead one not to expect."""
        changed = [change.name for change in changes if change.kind == "source" and change.action in actions]
        for line in (
            source_topics.notes_on_existing(self.brokers, [catalog.sources[name] for name in changed])
            if changed
            else ()
        ):
            self.tell(line)
        for line in schema_warnings.warnings_about(catalog.sources.values(), lambda: self.schemas.registry):
            self.tell(line)

    def _compiled(self, files: Mapping[str, str]) -> Catalog:
        """The catalog in these files. Streams with UNIQUE are read in it as they are deployed."""
        catalog = view_algebra.compile_catalog(files)
        with self.database.begin() as connection:
            unique = {name: source for name, source in sources(connection).items() if source.ids}
        if all(catalog.sources.get(name) == source for name, source in unique.items()):
            return catalog
        return view_algebra.compile_catalog(files, unique)

    def _plan(self, catalog: Catalog) -> list[PlannedChange]:
        """The changes, without changing anything, not even a database in which nothing was installed."""
        with self.database.begin() as connection:
            install.check(connection, self.database.name)
            there = install.is_installed(connection)
            changes = registry.plan(connection, catalog) if there else registry.plan_of_nothing(catalog)
            pending = install.pending(connection, self.settings.limits)
        if not pending:
            return changes
        name = str(self.database.url.database)
        effect = f"brought to what this Lamina installs: {', '.join(pending)}"
        if not there:
            effect = "Lamina is installed: schemas, bookkeeping, functions and roles"
        return [PlannedChange("database", name, "update" if there else "create", effect), *changes]

    def apply(self, files: Mapping[str, str], *, prune: bool = False, allow_break: bool = False) -> list[PlannedChange]:
        """Deploys these files. Creates the missing topics of new sources, and computes new versions of views.

        Views and sources that are deployed but not in these files are dropped if `prune`. Columns that readers may use
        are dropped if `allow_break`. Without these, the change is refused.
        """
        from batch_layer.reprocess import Target

        catalog = self._compiled(files)
        planned = self._plan(catalog)
        # Before anything is installed, and before topics are created.
        check_allowed(planned, prune=prune, allow_break=allow_break)
        self.install()
        changed = [change.name for change in planned if change.kind == "view" and change.action in DEPLOYED]
        with lineage_events.runs(self.settings, self.tell) as runs:
            runs.start(lambda: catalog, lambda: lineage_events.new_ids(changed))
            new = [change.name for change in planned if change.kind == "source" and change.action == "create"]
            topics = {
                name: source_topics.opened(self.brokers, catalog.sources[name], catalog, self.tell) for name in new
            }
            self._tell_of_topics(catalog, planned, "update")
            target = Target(files, catalog, topics, prune=prune, allow_break=allow_break)
            with rights.naming_readers(self.database, "A reader holds a view that this change replaces"):
                changes = self._deploy(target, planned)
        dropping.drop_unused(self.database)
        with waiting(self.tell, "building the indexes of views"):
            indexes.renew(self.database)
        return [change for change in planned if change.kind == "database"] + changes

    def _deploy(self, target: Target, planned: list[PlannedChange]) -> list[PlannedChange]:
        """Deploys an allowed catalog: at once or, if new cells are needed, once they are computed."""
        from batch_layer import reprocess

        reprocess.end_what_a_dead_apply_left(self.batch)
        reprocess.await_older_snapshots(self.batch, target)
        self.at("after planning")
        if not any(change.action == "reprocess" for change in planned):
            try:
                return reprocess.deploy(self.batch, target)
            except registry.NotComputed:  # a source's first records were counted after the plan
                planned = self._plan(target.catalog)
        few = sum(change.records or 0 for change in planned) <= FEW
        batch = replace(self.batch, spark=lambda: self._session(self.nice, short_lived=few))
        reprocess.reprocess(batch, target)
        return [change for change in planned if change.kind != "database"]

    def rebuild(
        self,
        names: Sequence[str] = (),
        *,
        leap: bool = False,
        on_checked: Callable[[Sequence[Verdict]], None] = lambda verdicts: None,
    ) -> list[Proof]:
        """Runs all steps of a rebuild (`BatchLayer.rebuild`), with a run of lineage for each of its views."""
        with lineage_events.runs(self.settings, self.tell) as runs:

            def sealed(id: int) -> None:
                runs.start(self.deployed, lambda: self.run_ids(id))

            def checked(verdicts: Sequence[Verdict]) -> None:
                runs.checked(verdicts)
                on_checked(verdicts)

            batch = replace(self.batch, on_sealed=sealed, on_checked=checked, on_held=runs.held)
            proofs = batch.rebuild(names, leap=leap)
            runs.proved(proofs)
        return proofs

    def roll_back(self, view: str) -> tuple[int, int]:
        """Hands a view back to the generation before its published one. Returns (from, to)."""
        from batch_layer import rollback

        with rights.naming_readers(self.database, "A reader holds a view that the rollback replaces"):
            return rollback.roll_back(self.database, view, self.tell)

    def run_ids(self, id: int) -> dict[str, str]:
        """The lineage run id of each view of a rebuild."""
        with self.database.begin() as connection:
            run = rebuilds.get(connection, id)
        return lineage_events.ids_of(self.settings.postgres, run.id, run.views)

    def preview(self, name: str, files: Mapping[str, str]) -> list[PreviewedView]:
        """Serves the views of these files in the schema `name`, next to the deployed ones, with live cells."""
        from batch_layer import reprocess
        from batch_layer.preview import preview

        self.require_installed()
        catalog = self._compiled(files)
        reprocess.end_what_a_dead_apply_left(self.batch)
        with rights.naming_readers(self.database, f"A reader holds a view of the preview {name}"):
            preview(self.batch, name, catalog)
        dropping.drop_unused(self.database)
        with self.database.begin() as connection:
            return [view for view in previews.listed(connection) if view.preview == name]

    def drop_preview(self, name: str) -> None:
        """Ends a preview, and drops the cells that were computed for it alone."""
        self.require_installed()
        with rights.naming_readers(self.database, f"A reader holds a view of the preview {name}"):
            self.database.retrying(lambda connection: previews.drop(connection, name))
        dropping.drop_unused(self.database)

    def check_live(self, names: Sequence[str] = ()) -> list[Verdict]:
        """Runs the checks of views as readers see them now, and stores the results. Without names, runs the checks of
        all views.
        """
        with self.database.snapshot() as connection:
            catalog, served = deployed(connection), views.served_views(connection)
            for name in names:
                if name not in served:
                    raise LaminaError(
                        f"{name} is not served",
                        evidence="served: " + (", ".join(sorted(served)) or "none"),
                        way_out="`lamina status` lists the views.",
                    )
            wanted = names or [name for name in catalog.views if name in served]
            verdicts = view_checks.of_live(connection, catalog, wanted)
        with self.database.begin() as connection:
            view_checks.record(connection, verdicts, None)
            view_checks.forget(connection, deployed(connection))  # meanwhile, an apply may have removed some of them
        return verdicts

    def skip(self, source: Source, partition: int, offset: int, reason: str) -> bool:
        """Quarantines a record by name. After that, nothing reads it. Returns False if it was skipped already."""
        at = TopicPartition(source.topic, partition)
        first, end = (ends.get(at) for ends in (self.brokers.earliest(source.topic), self.brokers.latest(source.topic)))
        if first is None or end is None or not first <= offset < end:
            raise LaminaError(
                f"{source.topic} has no record at partition {partition}, offset {offset}",
                evidence=f"partition {partition} holds offsets from {first} up to {end} (not including it)"
                if first is not None
                else f"its partitions are {', '.join(map(str, self.brokers.partitions(source.topic)))}",
                way_out="`lamina status` names the record that stops a query.",
            )
        key, value = self.brokers.record(source.topic, partition, offset) or (None, None)
        tail = self.brokers.tails(Offsets({at: offset + 1})).get(at)
        bad = BadRecord(source.topic, partition, offset, None, skipping.SKIPPED, key, value)
        return self.database.retrying(lambda connection: skipping.skip(connection, source.name, bad, tail, reason))

    def close(self) -> None:
        """Closes the connections and the session that it opened."""
        if self._started is not None:
            self._started.stop()
        for part in ("brokers", "database"):
            if part in vars(self):
                getattr(self, part).close()
