"""A rebuild in steps: seal, archive, compute, go live, prove, check, hand over, retire.

`BatchLayer.run` is the list of steps. A rebuild, an apply and a preview share it, and differ in their `RebuildPlan`.
New generations reach readers by a `HandOver` or, in a leap, by the landing of a `Leap`.

Another process can repeat each step after a crash: it looks up in Postgres what is left to do. A rebuild that died
before the hand-over has changed nothing that anybody reads, and the next one retires its generations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from batch_layer import compute, new_sources, rebuild_failures, renewals
from batch_layer.archiving import Logs
from batch_layer.compute import SharedRecords
from batch_layer.hand_over import HandOver
from batch_layer.leap import Leap
from batch_layer.stalls import Stalled, Watching, Work, unwatched
from batch_layer.verdicts import run_checks
from master_log.causes import SPARK_ERRORS
from master_log.kafka.brokers import Brokers
from master_log.offsets import OffsetRange
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.change import deploying, view_checks
from serving_layer.change.view_checks import Trial, Verdict
from serving_layer.narration import waiting
from serving_layer.postgres import courtesy
from serving_layer.postgres.database import Connection, Database
from serving_layer.postgres.states import GenerationState, RebuildState, Step, Stop
from serving_layer.promise import generations, loading, progress, proof, rebuilds
from serving_layer.promise.proof import Proof
from serving_layer.promise.rebuilds import Rebuild, Scheduler
from serving_layer.upkeep import dropping, indexes
from view_algebra.compiled import CellTable, Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from master_log.log import MasterLog


class RebuildPlan(Protocol):
    """The steps that a rebuild, an apply and a preview take differently."""

    def seal(self) -> int:
        """Opens the generations to compute. Returns the id of the rebuild."""

    def check(self, id: int, proofs: Sequence[Proof]) -> None:
        """Runs the checks over the rows that readers would see.

        If one blocks, it raises, or the hand-over holds views back.
        """

    def hand_over(self, id: int) -> None:
        """Lets readers read the new generations."""


@dataclass(frozen=True)
class Observer:
    """Functions that are called in the course of a rebuild.

    sealed: takes the id of a rebuild of declared versions
    checked: takes the results of its checks
    held: takes the views that it holds back
    """

    sealed: Callable[[int], None] = lambda rebuild: None
    checked: Callable[[Sequence[Verdict]], None] = lambda verdicts: None
    held: Callable[[Sequence[str]], None] = lambda views: None


@dataclass(frozen=True)
class BatchLayer:
    """The steps of a rebuild over one deployment.

    spark: returns the session, which it starts if necessary
    dsn: the address of Postgres for executors
    tell: prints a line of narration
    at: called at named points, where tests stop
    give_up: ends Spark, and its computation, at once
    watching: ends a computation that makes no progress
    """

    database: Database
    brokers: Brokers
    spark: Callable[[], SparkSession]
    log: Callable[[], MasterLog]
    dsn: str
    tell: Callable[[str], None] = logging.getLogger("lamina.batch").info
    at: Callable[[str], None] = lambda point: None
    give_up: Callable[[], None] = lambda: None
    watching: Watching = unwatched
    observer: Observer = field(default_factory=Observer)

    def rebuild(self, names: Sequence[str] = (), *, leap: bool = False) -> list[Proof]:
        """Recomputes these views, or all, and hands them over. Returns the proofs.

        A view that differs is handed over only if its policy allows it, and a view that fails a blocking check never
        is. A view that Spark cannot compute stays as it is, and an error names it after the hand-over.
        """
        return self.run(_Recompute(self, names, leap=leap))

    def run(self, plan: RebuildPlan) -> list[Proof]:
        """All steps, in one process."""
        with rebuilds.in_one_process(self.database):
            id = plan.seal()
            with self._recording_failure(id):
                self.archive(id)
                left_out = self.compute_all(id)
                self.go_live(id)
                proofs = self.prove(id)
                plan.check(id, proofs)
                plan.hand_over(id)
                self.retire(id, left_out)
        if left_out:
            raise rebuild_failures.not_computed(left_out)
        return proofs

    def seal(self, names: Sequence[str] = (), *, by: Scheduler | None = None) -> int:
        """Opens a generation of each view at its cut. Returns the id of the rebuild."""

        def step(connection: Connection) -> int:
            if (repeated := rebuilds.sealed_by(connection, by)) is not None:
                return repeated
            wanted = deploying.with_cells(connection, names)
            id = rebuilds.begin(connection, wanted, by=by)
            views = deployed(connection).views
            # All queries are locked before the first generation is opened, so that all lock in one order.
            deploying.retire_leftovers(
                connection, also_lock={source for name in wanted for source in views[name].fed_by}
            )
            for name in wanted:
                generations.open_building(connection, name, rebuild=id)
            rebuilds.record_finished(connection, id, Step.SEAL)
            return id

        id = self.database.retrying(step)
        self.observer.sealed(id)
        self.at("after seal")
        return id

    def leap_seal(self, names: Sequence[str] = (), *, by: Scheduler | None = None) -> int:
        """Takes over the queries of these views or sources, archives to their end, and opens generations there.

        All views that a query feeds leap with it, since its progress moves for all of them.
        """
        leap = Leap(self.logs)
        takeover = leap.take_over(names, by)
        with self._recording_failure(takeover.id):  # or the speed layer would wait for it
            leap.open(takeover)
        self.observer.sealed(takeover.id)
        self.at("after seal")
        return takeover.id

    def archive(self, id: int) -> None:
        """Archives every record below the cuts of the rebuild in the master log."""
        self._expect(id)
        self.logs.archive_below_cuts(self.generations(id))
        self._finish_step(id, Step.ARCHIVE)

    def compute_all(self, id: int) -> Mapping[str, str]:
        """Computes every view, and leaves out those that Spark cannot compute. Returns the reason for each of these.

        A leap and an apply hand over all views or none, so they end at the first such view.
        """
        run, sealed = self._expect(id), self.generations(id)
        reasons: dict[str, str] = {}
        with compute.sharing(self.database, sealed) as shared:
            for new in sealed:
                try:
                    self.compute(id, new.view, shared)
                except (*SPARK_ERRORS, Stalled) as error:
                    if run.is_resumable:
                        raise
                    reasons[new.view] = rebuild_failures.reason(error)
                    if run.leap or len(reasons) == len(sealed):
                        raise rebuild_failures.not_computed(reasons) from error
                    self.tell(f"{new.view}: Spark cannot compute it, so it is left out and stays as it is")
                    self.database.retrying(partial(generations.retire, ids=[new.id]))
        return reasons

    def compute(self, id: int, name: str, shared: SharedRecords | None = None) -> None:
        """Computes and loads one view's cells of all records below its cut, unless `apply` dropped it meanwhile."""
        shared = shared or SharedRecords()
        try:
            with waiting(self.tell, f"{name}: computing and loading the cells of all records"):
                self._expect(id)
                with self.database.begin() as connection:
                    new = lookup.generation_of_rebuild(connection, id, name)
                    version = versions.get(connection, name, new.version)
                    todo = loading.not_loaded(connection, new.id)
                tables = [table for table in version.view.cell_tables if table.name in todo]
                total = sum(self._compute_table(new, version.sources[table.source], table, shared) for table in tables)
                self.tell(f"{name}: {total:,} cells computed" if todo else f"{name}: its cells were computed before")
                self._finish_step(id, Step.COMPUTE, name)
        except Exception:
            shared.forget()  # with Spark's process, if it was ended
            if name not in self._expect(id).views or name in {new.view for new in self.generations(id)}:
                raise
            self.tell(f"{name}: left out, because it was dropped meanwhile")

    def _compute_table(self, new: Generation, source: Source, table: CellTable, shared: SharedRecords) -> int:
        """Computes and loads one table of cells. Returns the number of cells."""
        with self.database.begin() as connection:
            attempt = loading.begin_attempt(connection, new.id, table.name)
            cut = lookup.cut_of(connection, new.id, table.source)
            start = progress.starts(connection, [table.source])
        cells = compute.cells_of(shared.records(self.log(), source, cut, start), table, new.since)
        with self.watching(Work(new.view, {source.name: (source, OffsetRange.since(start, cut))}, [table])):
            parts = compute.load(cells, self.dsn, new.id, table.name, attempt)
        self.at(f"compute {new.view}")
        with self.database.begin() as connection:
            loading.complete(connection, new.id, table.name, attempt, parts.keys())
        return sum(parts.values())

    def go_live(self, id: int) -> None:
        """Folds the realtime views into the batch views. From then on micro-batches merge into the new cells.

        A leap goes live when it lands.
        """
        with waiting(self.tell, "merging the records that were counted meanwhile"):
            run = self._expect(id)
            indexes.renew(self.database)
            if run.is_resumable:  # only an apply or a preview may read new sources
                new_sources.gather(self.database, self.log, id)
            self._delivery(run).go_live(id, self.generations(id))
            self._finish_step(id, Step.GO_LIVE)

    def prove(self, id: int, names: Sequence[str] = ()) -> list[Proof]:
        """Compares every cell of the new generations of these views, or of all, with the published one.

        A view that was dropped meanwhile has no proof. Nor has a view that leaps, because its published generation does
        not count the records that the leap passes.
        """
        with waiting(self.tell, "comparing every new cell with the published one"):
            run = self._expect(id)
            run.check_names(names)
            named = [new for new in self.generations(id) if new.view in (names or run.views)]
            proofs = [] if run.leap else [proof for new in named if (proof := self.compare(new, id)) is not None]
            self._finish_step(id, Step.PROVE, *names)
        return proofs

    def compare(self, new: Generation, rebuild: int | None = None) -> Proof | None:
        """Proves a generation against the published one, in one snapshot, and keeps the result.

        Returns None if it is the published one, or if their versions share no column.
        """
        with self.database.snapshot() as connection:
            courtesy.stand_back(connection)
            result = proof.prove(connection, new.id)
        if result is None:
            return None
        with self.database.begin() as connection:
            proof.record(connection, result, rebuild)
        both_versions = f" of both versions compared ({', '.join(result.shared)})" if result.shared else " compared"
        self.tell(f"{result.view}: {result.cells:,} cells{both_versions}, {result.differing:,} differ")
        return result

    def check(self, id: int, trial: Trial | None = None) -> list[Verdict]:
        """Runs the checks of views over the new generations, before anybody reads them, and keeps the results.

        It checks all views that would change, also those over the rebuilt ones. `trial` describes the rows after the
        deployment of another catalog. By default, they are those after the hand-over.
        """
        self._expect(id)
        if trial is None:
            with self.database.begin() as connection:
                catalog, new = deployed(connection), lookup.generations_of_rebuild(connection, id)
                trial = view_checks.trial_of_handover(connection, catalog, new)
        verdicts = run_checks(self.database, self.tell, trial)
        with self.database.begin() as connection:
            view_checks.record(connection, verdicts, id)
        self._finish_step(id, Step.CHECK)
        self.observer.checked(verdicts)
        return verdicts

    def hand_over(self, id: int) -> list[str]:
        """Lets readers read the new generations, all at once. Returns the views that are held back.

        A view is held back by its proof, by a check, or because a view that it was checked with is held back. A
        generation that was rolled back since is not handed over again. A leap hands over all or nothing: a check that
        blocks refuses it.
        """
        return self._hand_over(id, released=None)

    def release(self, id: int, names: Sequence[str] = ()) -> list[str]:
        """Hands over the named views, or all, even if they are held back, also after the rebuild.

        Returns the views that stay held back.
        """
        return self._hand_over(id, released=names)

    def _hand_over(self, id: int, released: Sequence[str] | None) -> list[str]:
        with waiting(self.tell, "noting the cells that differ, and handing over"):
            with self.database.begin() as connection:
                run = rebuilds.get(connection, id)
            if held := self._delivery(run).hand_over(id, released):
                self.observer.held(held)
            self.at("after hand-over")
        return held

    def retire(self, id: int, left_out: Mapping[str, str] = MappingProxyType({})) -> None:
        """Ends the rebuild, retires generations that nobody reads or may roll back to, and drops their tables.

        left_out: the views that could not be computed, with the reason for each. The rebuild counts as failed for them
            if it holds no view back
        """
        with self.database.begin() as connection:
            run = rebuilds.get(connection, id)
        if run.state in (RebuildState.DONE, RebuildState.HELD):  # it has ended, so only tables are left to drop
            dropping.drop_unused(self.database)
            return
        if run.state is RebuildState.RUNNING and not run.is_handed_over:
            raise LaminaError(
                f"Rebuild {id} was not handed over",
                evidence=f"its last finished step is {run.step}",
                way_out="Run its steps in this order: " + ", ".join(rebuilds.STEPS) + ".",
            )

        def step(connection: Connection) -> None:
            rebuilds.lock_running(connection, id)
            sealed = lookup.all_generations_of_rebuild(connection, id)
            ids = {new.id for new in sealed}  # a person may still hand over one that is held back
            surplus = [old for new in sealed for old in generations.superseded(connection, new.view) if old not in ids]
            generations.retire(connection, surplus)
            published = lookup.published(connection)
            unread = [new for new in sealed if not new.was_shown and published.get(new.view) != new.id]
            if any(new.state is not GenerationState.RETIRED for new in unread):
                state = RebuildState.HELD
            else:
                state = RebuildState.FAILED if left_out else RebuildState.DONE
            rebuilds.end(connection, id, state, rebuild_failures.not_computed(left_out).what if left_out else None)

        self.database.retrying(step)
        dropping.drop_unused(self.database)
        self.at("after retire")

    @contextmanager
    def _recording_failure(self, id: int) -> Iterator[None]:
        """Records why a rebuild fails in the block: see `rebuild_failures.record`. Ctrl-C also ends Spark."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                self.give_up()
            rebuild_failures.record(self.database, id, error, self.tell)
            raise

    def abandon(self, id: int) -> None:
        """Gives a rebuild up and retires its generations. Readers see no change."""

        def step(connection: Connection) -> None:
            rebuilds.lock_running(connection, id)
            rebuilds.stop(connection, id, Stop.GIVEN_UP)
            deploying.retire_leftovers(connection)

        self.database.retrying(step)
        dropping.drop_unused(self.database)

    def due(self, names: Sequence[str] = ()) -> list[str]:
        """The views among these names, or among all views, that a scheduler has to rebuild now."""
        with self.database.begin() as connection:
            if not names and set(deploying.kinds(connection).values()) <= {"derived"}:
                return []
            return rebuilds.due(connection, deployed(connection), deploying.with_cells(connection, names))

    def tidy(self) -> list[int]:
        """Retires the generations of dead rebuilds, and drops tables that nobody reads. Returns the dropped ones."""
        self.database.retrying(deploying.retire_leftovers)
        renewals.settle(self.database)
        return dropping.drop_unused(self.database)

    def generations(self, id: int) -> list[Generation]:
        """The generations of a rebuild that are not retired."""
        with self.database.begin() as connection:
            return lookup.generations_of_rebuild(connection, id)

    @property
    def logs(self) -> Logs:
        """The master logs, to archive into and to maintain."""
        return Logs(self.database, self.brokers, self.log, self.tell)

    def _delivery(self, run: Rebuild) -> HandOver | Leap:
        """The steps that bring the rebuild's generations to readers."""
        return Leap(self.logs) if run.leap else HandOver(self.database, self.at)

    def _expect(self, id: int) -> Rebuild:
        with self.database.begin() as connection:
            return rebuilds.lock_running(connection, id)

    def _finish_step(self, id: int, step: Step, *names: str) -> None:
        with self.database.begin() as connection:
            rebuilds.record_finished(connection, id, step, *names)
        self.at(" ".join(["after", step, *names]))


@dataclass(frozen=True)
class _Recompute:
    """The plan of `lamina rebuild`: recomputes the declared versions of these views, or of all."""

    batch: BatchLayer
    names: Sequence[str]
    leap: bool

    def seal(self) -> int:
        return (self.batch.leap_seal if self.leap else self.batch.seal)(self.names)

    def check(self, id: int, proofs: Sequence[Proof]) -> None:  # noqa: ARG002 (the hand-over reads the proofs)
        self.batch.check(id)

    def hand_over(self, id: int) -> None:
        if held := self.batch.hand_over(id):
            self.batch.tell(f"held back, and read as before: {', '.join(held)}")
