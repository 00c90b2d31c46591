"""A rebuild, step by step: seal, archive, compute, go live, prove and check, hand over, retire.

Each step can be repeated, by another process, after a crash: it looks up in Postgres what is left to do. A rebuild
that died before the hand-over has changed nothing that anybody reads; the next one retires its generations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batch_layer import checking, compute, patience
from batch_layer.archiving import Logs
from batch_layer.leap import Leap
from batch_layer.shared import Shared
from batch_layer.stalls import Stalled, Watching, Work, unwatched
from master_log.causes import SPARK_ERRORS, cause
from master_log.kafka import Brokers
from master_log.offsets import OffsetRange, Offsets
from master_log.tails import Tails
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.change import checks, registry, trials
from serving_layer.change.checks import Verdict
from serving_layer.change.trials import Trial
from serving_layer.narration.waiting import waited_for, waiting
from serving_layer.postgres import courtesy
from serving_layer.postgres.database import Connection, Database, PostgresAway, PostgresError
from serving_layer.promise import generations, loading, overwriting, progress, proof, rebuilds
from serving_layer.promise.proof import Proof
from serving_layer.promise.rebuilds import Scheduler
from serving_layer.readers import views
from serving_layer.upkeep import dropping, indexes
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from master_log.archive import MasterLog


@dataclass(frozen=True)
class BatchLayer:
    """The steps of a rebuild over one deployment.

    spark: gives the session when a step needs one. dsn: how executors reach Postgres. tell: takes a line of narration.
    at: called at named places; the tests stop there. give_up: ends at once what Spark computes, and Spark with it.
    watching: ends what stands still. on_held: takes the views that a rebuild does not hand over.
    """

    database: Database
    brokers: Brokers
    spark: Callable[[], SparkSession]
    log: Callable[[], MasterLog]
    dsn: str
    tell: Callable[[str], None] = logging.getLogger("lamina.batch").info
    at: Callable[[str], None] = lambda place: None
    give_up: Callable[[], None] = lambda: None
    watching: Watching = unwatched
    on_held: Callable[[Sequence[str]], None] = lambda views: None

    def rebuild(
        self,
        names: Sequence[str] = (),
        *,
        leap: bool = False,
        on_checks: Callable[[Sequence[Verdict]], None] = lambda verdicts: None,
    ) -> list[Proof]:
        """All steps in one process; gives the proofs, and `on_checks` what the checks found.

        A view that differs is handed over only if its policy says so, and one that fails a check that blocks never. A
        view that Spark cannot compute is left out and stays as it is. After the hand-over, an error names it.
        """
        with rebuilds.in_one_process(self.database):
            id = (self.leap_seal if leap else self.seal)(names)
            try:
                self.archive(id)
                broken = self._compute_each(id, leap=leap)
                self.go_live(id)
                proofs = self.prove(id)
                on_checks(self.check(id))
                if held := self.hand_over(id):
                    self.on_held(held)
                    self.tell(f"held back, and read as before: {', '.join(held)}")
                self.retire(id, broken)
            except BaseException as error:
                self.failed(id, error)
                raise
        if broken is not None:
            raise broken
        return proofs

    def _compute_each(self, id: int, *, leap: bool) -> LaminaError | None:
        """Computes every view; leaves out those that Spark cannot compute, and gives the error that names them.

        A leap, which hands all views over or none, ends with the first of them.
        """
        sealed = self.generations(id)
        reasons: dict[str, str] = {}
        with self.sharing(sealed) as shared:
            for each in sealed:
                try:
                    self.compute_unless_dropped(id, each.view, shared)
                except (*SPARK_ERRORS, Stalled) as error:
                    reasons[each.view] = _reason(error)
                    if leap or len(reasons) == len(sealed):
                        raise _not_computed(reasons) from error
                    self.tell(f"{each.view}: Spark cannot compute it, so it is left out and stays as it is")
                    self._leave_out(each)
                    shared.forget()  # with Spark's process, if it was ended
        return _not_computed(reasons) if reasons else None

    @contextmanager
    def sharing(self, sealed: Sequence[Generation]) -> Iterator[Shared]:
        """Lets these generations share the records that they are computed from."""
        with self.database.begin() as connection:
            read = [versions.get(connection, each.view, each.version) for each in sealed]
        shared = Shared([(each.sources[table.source], table) for each in read for table in each.view.cell_tables])
        try:
            yield shared
        finally:
            shared.forget()

    def _leave_out(self, left: Generation) -> None:
        def step(connection: Connection) -> None:
            generations.retire(connection, [left.id])

        self.database.retrying(step)

    def failed(self, id: int, error: BaseException) -> None:
        """Records why a rebuild failed and retires what it leaves; where Postgres is away, the next rebuild does."""
        if isinstance(error, KeyboardInterrupt):
            self.give_up()

        def step(connection: Connection) -> str:
            rebuilds.end(connection, id, "failed", rebuilds.why(error))
            registry.retire_the_dead(connection)
            return rebuilds.get(connection, id).step

        with suppress(PostgresAway, PostgresError):
            if self.database.retrying(step) not in ("hand-over", "retire") and isinstance(error, KeyboardInterrupt):
                self.tell(f"rebuild {id} is given up: nothing that is read has changed")
            dropping.drop_unused(self.database)

    def seal(self, names: Sequence[str] = (), *, by: Scheduler | None = None) -> int:
        """Opens a generation of each view at its cut; gives the id of the rebuild."""

        def step(connection: Connection) -> int:
            if (known := rebuilds.begun(connection, by)) is not None:
                return known
            wanted = registry.with_cells(connection, names)
            id = rebuilds.begin(connection, wanted, leap=False, by=by)
            views = deployed(connection).views
            # All queries are locked before the first generation is opened: the order of locking is one.
            registry.retire_the_dead(connection, beside={source for name in wanted for source in views[name].fed_by})
            for name in wanted:
                generations.open_building(connection, name, rebuild=id)
            rebuilds.finished(connection, id, "seal")
            return id

        id = self.database.retrying(step)
        self.at("after seal")
        return id

    def due(self, names: Sequence[str] = ()) -> list[str]:
        """Those of the named views (of all, when none is named) that a scheduler is to rebuild now."""
        with self.database.begin() as connection:
            if not names and set(registry.kinds(connection).values()) <= {"derived"}:
                return []
            return rebuilds.due(connection, deployed(connection), registry.with_cells(connection, names))

    def archive(self, id: int) -> None:
        """Takes every record below the cuts of the rebuild into the master log."""
        self._expect(id)
        with self.database.begin() as connection:
            sources: dict[str, Source] = {}
            cuts: dict[str, Offsets] = {}
            tails: dict[str, Tails] = {}
            for each in lookup.of_rebuild(connection, id):
                sources |= versions.get(connection, each.view, each.version).sources
                for name in each.queries:
                    cuts[name] = lookup.cut_of(connection, each.id, name)
                    tails[name] = lookup.tails_of(connection, each.id, name)
        for name, cut in sorted(cuts.items()):
            self.logs.archive(sources[name], cut, tails=tails[name])
        self._done(id, "archive")

    def tidy(self) -> list[int]:
        """Retires what dead rebuilds have left and drops what nobody reads; gives the generations that were dropped."""
        self.database.retrying(registry.retire_the_dead)
        patience.settle(self.database)
        return dropping.drop_unused(self.database)

    def compute(self, id: int, name: str, shared: Shared | None = None) -> int:
        """Computes the cells of all records below the cut of one view and loads them; gives the number of cells."""
        with waiting(self.tell, f"{name}: cells are computed from all records and loaded"):
            return self._compute(id, name, shared or Shared())

    def _compute(self, id: int, name: str, shared: Shared) -> int:
        self._expect(id)
        with self.database.begin() as connection:
            each = lookup.of_view(connection, id, name)
            version = versions.get(connection, name, each.version)
            todo = loading.not_loaded(connection, each.id)
        total = 0
        for table in version.view.cell_tables:
            if table.name not in todo:
                continue
            with self.database.begin() as connection:
                attempt = loading.prepare(connection, each.id, table.name)
                cut = lookup.cut_of(connection, each.id, table.source)
                start = progress.starts(connection, [table.source])
            source = version.sources[table.source]
            counted = shared.counting(self.log(), source, cut, start)
            computed = compute.cells_of(counted, table, each.since)
            with self.watching(Work(name, {source.name: (source, OffsetRange.since(start, cut))}, [table])):
                parts = compute.load(computed, compute.Target(self.dsn, each.id, table, attempt))
            total += sum(parts.values())
            self.at(f"compute {name}")
            with self.database.begin() as connection:
                loading.complete(connection, each.id, table.name, attempt, parts.keys())
        self.tell(f"{name}: {total:,} cells computed" if todo else f"{name}: its cells were computed before")
        self._done(id, f"compute {name}")
        return total

    def compute_unless_dropped(self, id: int, name: str, shared: Shared | None = None) -> None:
        """Computes a view; one that `apply` drops meanwhile is left out, and the others go on."""
        try:
            self.compute(id, name, shared)
        except Exception:
            if name not in self._expect(id).views or name in {each.view for each in self.generations(id)}:
                raise
            if shared is not None:
                shared.forget()  # with Spark's process, if it was ended
            self.tell(f"{name}: dropped meanwhile, so it is left out")

    @waited_for("what was counted meanwhile is merged")
    def go_live(self, id: int) -> None:
        """Folds the realtime views into the batch views; from then on micro-batches merge into the new cells.

        A leap does not go live before it lands: see `hand_over`.
        """
        run = self._expect(id)
        indexes.renew(self.database)
        if not run.leap:
            ids = [each.id for each in self.generations(id)]
            for each in ids:
                generations.absorb(self.database, each)
            self.at("absorbed")

            def step(connection: Connection) -> None:
                rebuilds.running(connection, id)
                generations.go_live(connection, ids)

            self.database.retrying(step)
            dropping.drop_unused(self.database)
        self._done(id, "go-live")

    @waited_for("every new cell is compared with the one that is read")
    def prove(self, id: int, names: Sequence[str] = ()) -> list[Proof]:
        """Compares every cell of each new generation with the published one, in one snapshot, and keeps the result.

        Of the views named, or of all. A view that was dropped meanwhile has nothing left to prove.
        """
        run = self._expect(id)
        run.check_names(names)
        proofs = []
        if not run.leap:
            for sealed in (each for each in self.generations(id) if each.view in (names or run.views)):
                with self.database.snapshot() as connection:
                    courtesy.stand_back(connection)
                    each = lookup.get(connection, sealed.id)
                    now = lookup.published(connection).get(each.view)
                    if now is None or now == each.id:
                        continue
                    old = lookup.get(connection, now)
                    if old.version != each.version:
                        continue
                    proved = proof.prove(connection, each, old)
                with self.database.begin() as connection:
                    proof.record(connection, proved, id)
                proofs.append(proved)
                self.tell(f"{each.view}: {proved.cells:,} cells compared, {proved.differing:,} differ")
        self._done(id, " ".join(["prove", *names]))
        return proofs

    @waited_for("the checks are run over what would be read")
    def check(self, id: int, trial: Trial | None = None) -> list[Verdict]:
        """Runs the checks of views over the new generations, before anybody reads them, and keeps what they find.

        Of all views that would change, also of those over the rebuilt ones. `trial` is what the deployment of these
        generations with another catalog would show; by default their hand-over.
        """
        self._expect(id)
        if trial is None:
            with self.database.begin() as connection:
                trial = trials.of_handover(connection, deployed(connection), lookup.of_rebuild(connection, id))
        found = checking.checked(self.database, trial)
        with self.database.begin() as connection:
            checks.record(connection, found, id)
        self.at("checked")
        return found

    @waited_for("what differs is noted, and handed over")
    def hand_over(self, id: int, names: Sequence[str] = (), *, anyway: bool = False) -> list[str]:
        """Lets readers read the new generations, all at once; gives the views that are held back.

        By their proof, by a check, or because what they were checked with is held back. `anyway` hands those of the
        named views over, too (of all, where none is named), also of a rebuild that ended so. What was rolled back from
        since is not handed over again. A leap, which hands all over or nothing, is refused where a check blocks it.
        """
        for sealed in self.generations(id):
            with self.database.begin(isolation="REPEATABLE READ") as connection:
                courtesy.stand_back(connection)
                new = lookup.get(connection, sealed.id)
                old = lookup.get(connection, lookup.published(connection).get(new.view, new.id))
                if new.state == "live" and old.id != new.id and old.version == new.version:
                    overwriting.note(connection, new, old)
        self.at("noted")
        brought = self._leap.gather(id)

        def step(connection: Connection) -> list[str]:
            run = rebuilds.running(connection, id, or_held=anyway)
            run.check_names(names)
            fed = {name for each in lookup.of_rebuild(connection, id) for name in each.queries}
            progress.lock(connection, fed | (brought.to.keys() & progress.queries(connection).keys()))
            new = lookup.of_rebuild(connection, id)  # only now: an apply may have dropped a view until we had the lock
            unread = [each for each in new if not each.was_shown]
            if run.leap and (run.step == "hand-over" or (new and not unread)):
                return []  # it is repeated
            if not new and not brought.to:
                raise LaminaError(f"Rebuild {id} has no generation left", way_out="Begin one with `lamina rebuild`.")
            if not run.leap:
                new = lookup.newer(connection, unread)
            all_of_them = anyway and (run.leap or not names)
            held = [] if all_of_them else checking.held_back(connection, run, new, names if anyway else ())
            if run.leap:
                self._leap.land(connection, id, new, brought)
            else:
                handed = {each.view: each.id for each in new if each.view not in held}
                if anyway and not handed:
                    raise LaminaError(
                        f"Rebuild {id} has nothing left to hand over",
                        evidence="its views are read from later generations, or were rolled back from these",
                        way_out="`lamina rebuild` computes them again; `lamina rollback VIEW` returns to earlier ones.",
                    )
                generations.hand_over(connection, handed)
                found = checks.results(connection, id)
                checks.replace_live(connection, [each for each in found if not held or each.view in handed])
            views.serve(connection)
            rebuilds.finished(connection, id, "hand-over")
            if run.state == "held" and not held:
                rebuilds.end(connection, id, "done")
            return held

        held = self.database.retrying(step)
        self.at("after hand-over")
        return held

    def leap_seal(self, names: Sequence[str] = (), *, by: Scheduler | None = None) -> int:
        """Takes the queries of these views or sources over, archives to the end of the log and opens generations there.

        All views that a query feeds leap with it, since its progress moves for all of them.
        """
        begun = self._leap.begin(names, by)
        if begun.sources:
            try:
                self._leap.open(begun)
            except BaseException as error:
                self.failed(begun.id, error)  # or the speed layer would wait for it
                raise
            self.at("after seal")
        return begun.id

    @property
    def logs(self) -> Logs:
        """The master log, to be archived into and maintained."""
        return Logs(self.database, self.brokers, self.log, self.tell)

    @property
    def _leap(self) -> Leap:
        return Leap(self.database, self.brokers, self.log, self.logs.archive, self.tell)

    def retire(self, id: int, broken: LaminaError | None = None) -> None:
        """Ends the maintenance of generations that nobody reads or may roll back to, and drops what none can see.

        `broken` names the views that were left out. It is recorded, and without a view that is held back the rebuild
        counts as failed.
        """
        with self.database.begin() as connection:
            run = rebuilds.get(connection, id)
        if run.state in ("done", "held"):  # it is repeated: what is left is to drop
            dropping.drop_unused(self.database)
            return
        if run.state == "running" and run.step != "hand-over":
            raise LaminaError(
                f"Rebuild {id} was not handed over",
                evidence=f"the last step that was finished is {run.step}",
                way_out="Run its steps in their order: " + ", ".join(rebuilds.STEPS) + ".",
            )

        def step(connection: Connection) -> None:
            rebuilds.running(connection, id)
            new = lookup.of_rebuild(connection, id, retired=True)
            mine = {each.id for each in new}  # one that is held back may be handed over yet
            surplus = [old for each in new for old in generations.superseded(connection, each.view) if old not in mine]
            generations.retire(connection, surplus)
            published = lookup.published(connection)
            unread = [each for each in new if not each.was_shown and published.get(each.view) != each.id]
            held = [each.view for each in unread if each.state != "retired"]
            state = "held" if held else "done" if broken is None else "failed"
            rebuilds.end(connection, id, state, None if broken is None else broken.what)

        self.database.retrying(step)
        dropping.drop_unused(self.database)
        self.at("after retire")

    def abandon(self, id: int) -> None:
        """Gives a rebuild up: its generations are retired, nothing that is read changes."""

        def step(connection: Connection) -> None:
            rebuilds.running(connection, id)
            rebuilds.end(connection, id, "failed", rebuilds.GIVEN_UP)
            registry.retire_the_dead(connection)

        self.database.retrying(step)
        dropping.drop_unused(self.database)

    def generations(self, id: int) -> list[Generation]:
        """The generations that a rebuild has opened and that are not retired."""
        with self.database.begin() as connection:
            return lookup.of_rebuild(connection, id)

    def _expect(self, id: int) -> rebuilds.Rebuild:
        with self.database.begin() as connection:
            return rebuilds.running(connection, id)

    def _done(self, id: int, step: str) -> None:
        with self.database.begin() as connection:
            rebuilds.finished(connection, id, step)
        self.at(f"after {step}")


def _reason(error: Exception) -> str:
    if isinstance(error, Stalled):
        return f"{error.what.partition(': ')[2]}: {error.evidence}. {error.way_out}"
    return cause(str(error))


def _not_computed(reasons: Mapping[str, str]) -> LaminaError:
    return LaminaError(
        f"Spark could not compute {', '.join(reasons)}",
        evidence="\n".join(f"{name}: {reason}" for name, reason in reasons.items()),
        way_out="These views stay as they are. Correct what their error names, and rebuild them.",
    )
