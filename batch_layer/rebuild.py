"""A rebuild, step by step: seal, archive, compute, go live, prove and check, hand over, retire.

Each step can be repeated, by another process, after a crash: it looks up in Postgres what is left to do. A rebuild
that died before the hand-over has changed nothing that anybody reads; the next one retires its generations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from batch_layer import compute
from master_log import durable
from master_log.archive import Maintained, MasterLog
from master_log.kafka import Brokers
from master_log.offsets import Offsets, TopicPartition
from master_log.tails import Tails
from serving_layer import (
    checks,
    courtesy,
    dropping,
    duplicates,
    generations,
    loading,
    log_catalog,
    lookup,
    overwriting,
    progress,
    proof,
    quarantine,
    rebuilds,
    registry,
    skipping,
    versions,
    views,
)
from serving_layer.checks import Verdict
from serving_layer.database import Connection, Database, PostgresAway, PostgresError
from serving_layer.deployed import deployed
from serving_layer.duplicates import Found
from serving_layer.lookup import Generation
from serving_layer.proof import Proof
from serving_layer.quarantine import Bad
from serving_layer.rebuilds import Scheduler
from view_algebra.compiled import Catalog, Source
from view_algebra.errors import Blocked, LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class BatchLayer:
    """The steps of a rebuild over one deployment.

    spark: gives the session when a step needs one. dsn: how executors reach Postgres. tell: takes a line of narration.
    at: called at named places; the tests stop there. give_up: ends at once what Spark computes, and Spark with it.
    """

    database: Database
    brokers: Brokers
    spark: Callable[[], SparkSession]
    log: Callable[[], MasterLog]
    dsn: str
    tell: Callable[[str], None] = logging.getLogger("lamina.batch").info
    at: Callable[[str], None] = lambda place: None
    give_up: Callable[[], None] = lambda: None

    def rebuild(
        self,
        names: Sequence[str] = (),
        *,
        leap: bool = False,
        on_checks: Callable[[Sequence[Verdict]], None] = lambda verdicts: None,
    ) -> list[Proof]:
        """All steps in one process; gives the proofs, and `on_checks` what the checks found.

        A view that differs is handed over only if its policy says so, and one that fails a check that blocks never.
        """
        with rebuilds.in_one_process(self.database):
            id = self.leap_seal(names) if leap else self.seal(names)
            try:
                self.archive(id)
                for each in self.generations(id):
                    self._compute_unless_dropped(id, each.view)
                self.go_live(id)
                proofs = self.prove(id)
                on_checks(self.check(id))
                if held := self.hand_over(id):
                    self.tell(f"held back, and read as before: {', '.join(held)}")
                self.retire(id)
            except BaseException as error:
                self.failed(id, error)
                raise
        return proofs

    def failed(self, id: int, error: BaseException) -> None:
        """Records why a rebuild failed and retires what it leaves; where Postgres is away, the next rebuild does."""
        if isinstance(error, KeyboardInterrupt):
            self.give_up()

        def step(connection: Connection) -> None:
            rebuilds.end(connection, id, "failed", _why(error))
            registry.retire_the_dead(connection)

        with suppress(PostgresAway, PostgresError):
            self.database.retrying(step)
            dropping.drop_unused(self.database)

    def seal(self, names: Sequence[str] = (), *, by: Scheduler | None = None) -> int:
        """Opens a generation of each view at its cut; gives the id of the rebuild."""

        def step(connection: Connection) -> int:
            if (known := rebuilds.begun(connection, by)) is not None:
                return known
            wanted = self._with_cells(connection, names)
            id = rebuilds.begin(connection, wanted, leap=False, by=by)
            registry.retire_the_dead(connection)
            # All queries are locked before the first generation is opened: the order of locking is one.
            catalog = deployed(connection)
            progress.lock(connection, {source for name in wanted for source in _fed_by(catalog, name)})
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
            return rebuilds.due(connection, deployed(connection), self._with_cells(connection, names))

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
            self.archive_source(sources[name], cut, tails=tails[name])
        self._done(id, "archive")

    def archive_source(
        self, source: Source, to: Offsets, *, accept_loss: bool = False, tails: Tails | None = None
    ) -> int:
        """Takes the records of one source below `to` into the master log; gives how many it took.

        Refused where Kafka no longer has there what was counted: `tails` stood below `to`.
        """
        with self.database.begin() as connection:
            topic_id = progress.queries(connection)[source.name].topic_id
            start = progress.begins(connection, source.topic)
        with rebuilds.archiving(self.database):
            master_log = self._whole_log(source)
            master_log.create(source, topic_id, start)
            for at, offset in skipping.forget_lost(self.database, self.brokers, source.topic):
                self.tell(f"{source.name}: the record skipped at partition {at.partition}, offset {offset} is lost")
            archived = master_log.archive(source, to, self.brokers, accept_loss=accept_loss, tails=tails)
            with self.database.begin() as connection:
                progress.archived(connection, source.name, archived.held)
        self.tell(f"{source.name}: {archived.records:,} records archived")
        return archived.records

    def maintain_log(self, source: Source, before: datetime) -> Maintained:
        """Maintains the log of one source so that every backup made since `before` can be restored."""
        with rebuilds.archiving(self.database):
            return self._whole_log(source).maintain(source, before)

    def tidy(self) -> list[int]:
        """Retires what dead rebuilds have left and drops what nobody reads; gives the generations that were dropped."""
        self.database.retrying(registry.retire_the_dead)
        return dropping.drop_unused(self.database)

    def _whole_log(self, source: Source) -> MasterLog:
        """The master log, in which a power cut may have torn the newest metadata of this source's log.

        Then those before are the newest again. Nobody has acted on the commit that is lost by that: what is held is
        told to others only after the files of a commit are on the disk.
        """
        with self.database.begin() as connection:
            present, before = log_catalog.named(connection, source.topic) or ("", None)
            if not present or durable.whole(present):
                return self.log()
            if before is None or not durable.whole(before):
                raise LaminaError(
                    f"{source.name}: its log cannot be read",
                    evidence=f"{present} is not there, or not whole",
                    way_out="See that the warehouse is mounted and LAMINA_WAREHOUSE is right, or restore its backup.",
                )
            log_catalog.step_back(connection, source.topic, torn=present, before=before)
        self.tell(f"{source.name}: its log goes back to the metadata before {present}, which a power cut has torn")
        return self.log()

    def compute(self, id: int, name: str) -> int:
        """Computes the cells of all records below the cut of one view and loads them; gives the number of cells."""
        self._expect(id)
        with self.database.begin() as connection:
            each = self._generation(connection, id, name)
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
            records = self.log().records_below(source, cut, since=start)
            computed = compute.cells_of(records, source, table, each.since)
            parts = compute.load(computed, compute.Target(self.dsn, each.id, table, attempt))
            total += sum(parts.values())
            self.at(f"compute {name}")
            with self.database.begin() as connection:
                loading.complete(connection, each.id, table.name, attempt, parts.keys())
        self.tell(f"{name}: {total:,} cells computed")
        self._done(id, f"compute {name}")
        return total

    def _compute_unless_dropped(self, id: int, name: str) -> None:
        """Computes a view; one that `apply` drops meanwhile is left out, and the others go on."""
        try:
            self.compute(id, name)
        except Exception:
            if name in {each.view for each in self.generations(id)}:
                raise
            self.tell(f"{name}: dropped meanwhile, so it is left out")

    def go_live(self, id: int) -> None:
        """Folds the realtime views into the batch views; from then on micro-batches merge into the new cells.

        A leap does not go live before it lands: see `hand_over`.
        """
        run = self._expect(id)
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

    def prove(self, id: int, names: Sequence[str] = ()) -> list[Proof]:
        """Compares every cell of each new generation with the published one, in one snapshot, and keeps the result.

        Of the views named, or of all. A view that was dropped meanwhile has nothing left to prove.
        """
        run = self._expect(id)
        if unknown := sorted(set(names) - set(run.views)):
            raise LaminaError(
                f"Rebuild {id} has no view {unknown[0]}",
                evidence=f"its views: {', '.join(run.views)}",
                way_out="Name some of these, or none to prove all of them.",
            )
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

    def check(self, id: int, catalog: Catalog | None = None) -> list[Verdict]:
        """Runs the checks of views over the new generations, before anybody reads them, and keeps what they find.

        Of all views that would change, also of those over the rebuilt ones; a snapshot for each. `catalog` is the one
        that is to be deployed with these generations; by default the one that is.
        """
        self._expect(id)
        new = self.generations(id)
        found: list[Verdict] = []
        if catalog is None:
            with self.database.begin() as connection:
                catalog = deployed(connection)
        for name in (name for name, each in catalog.views.items() if each.checks):
            with self.database.begin(isolation="REPEATABLE READ") as connection:
                courtesy.stand_back(connection)
                found += checks.of_rebuild(connection, catalog, new, name)
        with self.database.begin() as connection:
            checks.record(connection, found, id)
        self.at("checked")
        return found

    def handed_over(self, id: int, held: Collection[str] = ()) -> list[str]:
        """The views whose rows a hand-over changes: those it does not hold back, and the derived ones over them."""
        with self.database.begin() as connection:
            catalog = deployed(connection)
            moved = [each.view for each in lookup.of_rebuild(connection, id) if each.view not in held]
        return [name for name, changed in checks.affected(catalog, moved).items() if changed]

    def verdicts(self, id: int) -> list[Verdict]:
        """What the checks of a rebuild have found."""
        with self.database.begin() as connection:
            return checks.results(connection, id)

    def hand_over(self, id: int, *, anyway: bool = False) -> list[str]:
        """Lets readers read the new generations, all at once; gives the views that are held back.

        By their proof, by a check, or because what they were checked with is held back. `anyway` hands these over, too,
        also of a rebuild that ended so. A leap, which hands all over or nothing, is refused where a check blocks it.
        """
        for sealed in self.generations(id):
            with self.database.begin(isolation="REPEATABLE READ") as connection:
                courtesy.stand_back(connection)
                new = lookup.get(connection, sealed.id)
                old = lookup.get(connection, lookup.published(connection).get(new.view, new.id))
                if new.state == "live" and old.id != new.id and old.version == new.version:
                    overwriting.note(connection, new, old)
        self.at("noted")
        lost = self._lost(id)

        def step(connection: Connection) -> list[str]:
            run = rebuilds.running(connection, id, or_held=anyway)
            new = lookup.of_rebuild(connection, id)
            progress.lock(connection, {name for each in new for name in each.queries})
            if not new:
                raise LaminaError(
                    f"Rebuild {id} has no generation left", way_out="Begin another with `lamina rebuild`."
                )
            held = [] if anyway else self._held_back(connection, run, new)
            if run.step == "hand-over" and not anyway:
                return held  # it is repeated: what was rolled back since stays so
            if run.leap:
                anew = {at.topic for at in lost}
                for each in bad:
                    if each.topic in anew:
                        quarantine.forget(connection, each.source, but=skipping.SKIPPED)
                    quarantine.stage(connection, each)
                    quarantine.write(connection, each)
                for name, found in ids.items():
                    duplicates.forget(connection, name)
                    duplicates.stage(connection, found)
                    duplicates.write(connection, name, found)
                self._land(connection, id, new, lost)
            else:
                now = lookup.published(connection)
                newer = {each.view: each.id for each in new if each.id > now.get(each.view, 0)}
                generations.hand_over(connection, {view: id for view, id in newer.items() if view not in held})
            views.serve(connection)
            rebuilds.finished(connection, id, "hand-over")
            if run.state == "held":
                rebuilds.end(connection, id, "done")
            return held

        bad, ids = self._leapt_over(id, lost), self._ids_of_leap(id)
        held = self.database.retrying(step)
        self.at("after hand-over")
        return held

    def _held_back(self, connection: Connection, run: rebuilds.Rebuild, new: Sequence[Generation]) -> list[str]:
        catalog = deployed(connection)
        by_checks = checks.held_back(connection, catalog, run.id, new)
        if not run.leap:
            return sorted(checks.held_together(catalog, new, by_checks.union(proof.held_back(connection, new))))
        if by_checks and run.step != "hand-over":
            blocked = [each.sentence for each in checks.results(connection, run.id) if each.blocked]
            raise Blocked(
                f"The leap is not handed over: {', '.join(sorted(by_checks))} fails a check",
                evidence="\n".join(blocked) or "its checks were not run: `lamina step prove` runs them",
                way_out="Nothing that is read has changed. Correct what fails, or let the check warn: NOT ENFORCED.",
            )
        return []

    def roll_back(self, view_name: str) -> tuple[int, int]:
        """Hands a view back to the generation before the one it is read from; gives (from, to).

        One of another version brings the view's SELECT of then back with it.
        """
        with self.database.begin(isolation="REPEATABLE READ") as connection:
            now, before = generations.before_published(connection, view_name)
            if before.version == now.version:
                overwriting.note(connection, before, now)
        handed = self.database.retrying(lambda connection: registry.roll_back(connection, view_name))
        dropping.drop_unused(self.database)
        return handed

    def retire(self, id: int) -> None:
        """Ends the maintenance of generations that nobody reads or may roll back to, and drops what none can see."""
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
            held = [each.view for each in new if published.get(each.view) != each.id]
            rebuilds.end(connection, id, "held" if held else "done")

        self.database.retrying(step)
        dropping.drop_unused(self.database)
        self.at("after retire")

    def abandon(self, id: int) -> None:
        """Gives a rebuild up: its generations are retired, nothing that is read changes."""

        def step(connection: Connection) -> None:
            rebuilds.running(connection, id)
            rebuilds.end(connection, id, "failed", "it was given up")
            registry.retire_the_dead(connection)

        self.database.retrying(step)
        dropping.drop_unused(self.database)

    def leap_seal(self, names: Sequence[str] = (), *, by: Scheduler | None = None) -> int:
        """Takes the queries over, archives to the end of the log and opens generations there.

        All views that a query feeds leap with it, since its progress moves for all of them.
        """

        def begin(connection: Connection) -> tuple[int, Catalog, list[str], list[str]]:
            catalog = deployed(connection)
            if (known := rebuilds.begun(connection, by)) is not None:
                return known, catalog, [], []
            wanted, sources = _closure(catalog, self._with_cells(connection, names))
            id = rebuilds.begin(connection, wanted, leap=True, by=by)
            registry.retire_the_dead(connection)
            for name in sources:
                progress.take_over(connection, name, rebuilds.leap_writer(id))
            return id, catalog, wanted, sources

        id, catalog, wanted, sources = self.database.retrying(begin)
        if not wanted:  # the step is repeated
            return id
        try:
            to = {name: self._archived_to_the_end(catalog.sources[name]) for name in sources}
            tails = {
                at: tail for name in sources for at, tail in self.log().tails(catalog.sources[name], to[name]).items()
            }
        except BaseException as error:
            self.failed(id, error)  # or the speed layer would wait for it
            raise

        def step(connection: Connection) -> None:
            rebuilds.running(connection, id)
            progress.lock(connection, sources)
            at = Offsets({place: offset for end in to.values() for place, offset in end.items()})
            declared = set(self._with_cells(connection, ()))
            for name in (name for name in wanted if name in declared):  # others were dropped meanwhile
                generations.open_building(connection, name, rebuild=id, at=at, tails=tails)
            rebuilds.finished(connection, id, "seal")

        self.database.retrying(step)
        self.at("after seal")
        return id

    def _archived_to_the_end(self, source: Source) -> Offsets:
        """Where the master log of a source ends, after all of its topic was taken into it."""
        self.archive_source(source, self.brokers.latest(source.topic))
        return self.log().held(source)

    def _leapt_over(self, id: int, lost: Sequence[TopicPartition]) -> list[Bad]:
        """The bad records between progress and the cut of a leap, which no micro-batch will read.

        They are quarantined in the transaction that moves progress, and gathered before it: what Spark is asked for
        takes long. Of a topic whose end Kafka has lost, they are all: in quarantine may be what was lost.
        """
        anew = {at.topic for at in lost}
        return [
            quarantine.bad_among(
                self.log().records_below(source, cut, since=start if source.topic in anew else reached), source
            )
            for source, cut, reached, start in self._to_land(id)
        ]

    def _ids_of_leap(self, id: int) -> dict[str, Found]:
        """The ids of all records below the cut of a leap, by query: of what was counted before, some may be lost."""
        told_apart = [(source, cut, start) for source, cut, _, start in self._to_land(id) if source.ids]
        found = {}
        for source, cut, start in told_apart:
            records = self.log().records_below(source, cut, since=start)
            with self.database.begin() as connection:
                now = duplicates.now(connection)
            found[source.name] = duplicates.below(source, records, now)
        return found

    def _to_land(self, id: int) -> list[tuple[Source, Offsets, Offsets, Offsets]]:
        """The sources of a leap that has not landed, each with its cut, its progress and its first offsets."""
        with self.database.begin() as connection:
            run = rebuilds.get(connection, id)
            if not run.leap or run.state != "running" or run.step == "hand-over":
                return []
            catalog = deployed(connection)
            new = lookup.of_rebuild(connection, id)
            cuts = {name: lookup.cut_of(connection, each.id, name) for each in new for name in each.queries}
            return [
                (
                    catalog.sources[name],
                    cuts[name],
                    progress.read(connection, [name]),
                    progress.starts(connection, [name]),
                )
                for name in sorted(cuts)
            ]

    def generations(self, id: int) -> list[Generation]:
        """The generations that a rebuild has opened and that are not retired."""
        with self.database.begin() as connection:
            return lookup.of_rebuild(connection, id)

    def _lost(self, id: int) -> list[TopicPartition]:
        """The partitions whose end Kafka has lost since it was counted, of the queries that a leap has taken over."""
        with self.database.begin() as connection:
            if not rebuilds.get(connection, id).leap:
                return []
            names = {name for each in lookup.of_rebuild(connection, id, retired=True) for name in each.queries}
            known = [progress.known(connection, name) for name in sorted(names)]
        lost = [each for reached, tails in known for each in self.brokers.differing(reached, tails)]
        for each in lost:
            self.tell(f"{each.at.topic}: what Kafka lost is counted no more. {each}")
        return [each.at for each in lost]

    def _land(self, connection: Connection, id: int, new: Sequence[Generation], lost: Sequence[TopicPartition]) -> None:
        queries = progress.queries(connection)
        names = {name for each in new for name in each.queries}
        me = rebuilds.leap_writer(id)
        taken = [name for name in names if queries[name].writer != me]
        if taken:
            raise progress.Fenced(
                f"The query {min(taken)} was taken over by {queries[min(taken)].writer} during the leap",
                way_out="Stop the speed layer, or let it go on without a leap: `lamina rebuild`.",
            )
        to = Offsets(
            {
                at: end
                for each in new
                for name in each.queries
                for at, end in lookup.cut_of(connection, each.id, name).items()
            }
        )
        tails = {
            at: tail
            for each in new
            for name in each.queries
            for at, tail in lookup.tails_of(connection, each.id, name).items()
        }
        fences = {name: queries[name].fence for name in names}
        generations.land(connection, [each.id for each in new], fences, to, tails, lost)

    def _with_cells(self, connection: Connection, names: Iterable[str]) -> list[str]:
        """The views asked for (all, when none is named) that have cells; an unknown name is refused."""
        kinds = registry.kinds(connection)
        unknown = sorted(set(names) - set(kinds))
        if unknown:
            raise LaminaError(
                f"There is no view named {unknown[0]}",
                evidence="deployed: " + (", ".join(sorted(kinds)) or "none"),
                way_out="`lamina apply` deploys the views of a catalog.",
            )
        wanted = sorted(name for name in (names or kinds) if kinds[name] != "derived")
        if not wanted:
            raise LaminaError(
                "There is nothing to rebuild",
                evidence="derived views hold no cells of their own" if kinds else "no view is deployed",
                way_out="Name a view with cells, or deploy a catalog with `lamina apply`.",
            )
        return wanted

    def _generation(self, connection: Connection, id: int, name: str) -> Generation:
        found = [each for each in lookup.of_rebuild(connection, id) if each.view == name]
        if not found:
            raise LaminaError(
                f"Rebuild {id} has no generation of {name}",
                way_out="`lamina status` shows which views it rebuilds.",
            )
        return found[0]

    def _expect(self, id: int) -> rebuilds.Rebuild:
        with self.database.begin() as connection:
            return rebuilds.running(connection, id)

    def _done(self, id: int, step: str) -> None:
        with self.database.begin() as connection:
            rebuilds.finished(connection, id, step)
        self.at(f"after {step}")


def _why(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return str(error).splitlines()[0] if str(error) else repr(error)


def _fed_by(catalog: Catalog, name: str) -> set[str]:
    return {table.source for table in catalog.views[name].cell_tables}


def _closure(catalog: Catalog, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The views, and the queries, that share a query with the named ones, directly or through others."""
    views_, sources = set(names), set[str]()
    while True:
        sources |= {source for name in views_ for source in _fed_by(catalog, name)}
        wider = {name for name in catalog.views if _fed_by(catalog, name) & sources}
        if wider <= views_:
            return sorted(views_), sorted(sources)
        views_ |= wider
