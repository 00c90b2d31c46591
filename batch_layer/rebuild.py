"""A rebuild, step by step: seal, archive, compute, go live, prove, hand over, retire.

Each step can be repeated, by another process, after a crash: it looks up in Postgres what is left to do. A rebuild
that died before the hand-over has changed nothing that anybody reads; the next one retires its generations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from batch_layer import compute
from master_log.archive import MasterLog
from master_log.kafka import Brokers
from master_log.offsets import Offsets
from serving_layer import (
    courtesy,
    generations,
    loading,
    overwriting,
    progress,
    proof,
    quarantine,
    rebuilds,
    registry,
    views,
)
from serving_layer.bookkeeping import generation, generation_cells
from serving_layer.bookkeeping import proof as proof_table
from serving_layer.bookkeeping import rebuild as rebuild_table
from serving_layer.bookkeeping import view as view_table
from serving_layer.database import Database
from serving_layer.generations import Generation
from serving_layer.proof import Proof
from serving_layer.rebuilds import Scheduler
from view_algebra.compiled import Catalog, Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class BatchLayer:
    """The steps of a rebuild over one deployment.

    spark: gives the session when a step needs one. dsn: how executors reach Postgres. tell: takes a line of narration.
    at: called at named places; the tests stop there.
    """

    database: Database
    brokers: Brokers
    spark: Callable[[], SparkSession]
    log: Callable[[], MasterLog]
    dsn: str
    tell: Callable[[str], None] = logging.getLogger("lamina.batch").info
    at: Callable[[str], None] = lambda place: None

    def rebuild(self, names: Sequence[str] = (), *, leap: bool = False) -> list[Proof]:
        """All steps in one process; gives the proofs. A view that differs is handed over only if its policy says so."""
        with rebuilds.in_one_process(self.database):
            id = self.leap_seal(names) if leap else self.seal(names)
            try:
                self.archive(id)
                for each in self.generations(id):
                    self.compute(id, each.view)
                self.go_live(id)
                proofs = self.prove(id)
                self.hand_over(id)
                self.retire(id)
            except BaseException as error:
                with self.database.begin() as connection:
                    rebuilds.end(connection, id, "failed", _why(error))
                raise
        return proofs

    def seal(self, names: Sequence[str] = (), *, by: Scheduler | None = None) -> int:
        """Opens a generation of each view at its cut; gives the id of the rebuild."""

        def step(connection: Connection) -> int:
            if (known := rebuilds.begun(connection, by)) is not None:
                return known
            wanted = self._with_cells(connection, names)
            id = rebuilds.begin(connection, wanted, leap=False, by=by)
            _retire_the_dead(connection)
            # All queries are locked before the first generation is opened: the order of locking is one.
            _, catalog = registry.deployed(connection)
            progress.lock(connection, {source for name in wanted for source in _fed_by(catalog, name)})
            for name in wanted:
                generations.open_building(connection, name, rebuild=id)
            rebuilds.finished(connection, id, "seal")
            return id

        id = self.database.retrying(step)
        self.at("after seal")
        return id

    def archive(self, id: int) -> None:
        """Takes every record below the cuts of the rebuild into the master log."""
        self._expect(id)
        with self.database.begin() as connection:
            _, catalog = registry.deployed(connection)
            cuts: dict[str, Offsets] = {}
            for each in generations.find(connection, generation.c.rebuild == id, generation.c.state != "retired"):
                for name in each.queries:
                    cuts[name] = generations.cut_of(connection, each.id, name)
        for name, cut in sorted(cuts.items()):
            self.archive_source(catalog.sources[name], cut)
        self._done(id, "archive")

    def archive_source(self, source: Source, to: Offsets, *, accept_loss: bool = False) -> int:
        """Takes the records of one source below `to` into the master log; gives how many it took."""
        with self.database.begin() as connection:
            topic_id = progress.queries(connection)[source.name].topic_id
            start = progress.starts(connection, [source.name])
        with rebuilds.archiving(self.database):
            master_log = self.log()
            master_log.create(source, topic_id, start)
            archived = master_log.archive(source, to, self.brokers, accept_loss=accept_loss)
            with self.database.begin() as connection:
                progress.archived(connection, source.name, archived.held)
        self.tell(f"{source.name}: {archived.records:,} records archived")
        return archived.records

    def compute(self, id: int, name: str) -> int:
        """Computes the cells of all records below the cut of one view and loads them; gives the number of cells."""
        self._expect(id)
        with self.database.begin() as connection:
            each = self._generation(connection, id, name)
            _, catalog = registry.deployed(connection)
            todo = set(
                connection.execute(
                    select(generation_cells.c.cell_table).where(
                        generation_cells.c.generation == each.id, generation_cells.c.loaded_at.is_(None)
                    )
                ).scalars()
            )
        if todo - {table.name for table in catalog.views[name].cell_tables}:
            raise LaminaError(
                f"{name} is compiled otherwise than when rebuild {id} was sealed",
                evidence=f"its cells were to be those of version {each.version}",
                way_out=f"Run all steps with one Lamina: `lamina step abandon --rebuild {id}`, and begin anew.",
            )
        total = 0
        for table in catalog.views[name].cell_tables:
            if table.name not in todo:
                continue
            with self.database.begin() as connection:
                attempt = loading.prepare(connection, each.id, table.name)
                cut = generations.cut_of(connection, each.id, table.source)
            source = catalog.sources[table.source]
            records = self.log().records_below(source, cut)
            computed = compute.cells_of(records, source, table, each.since)
            total += compute.load(computed, compute.Target(self.dsn, each.id, table, attempt))
            self.at(f"compute {name}")
            with self.database.begin() as connection:
                loading.complete(connection, each.id, table.name, attempt)
        self.tell(f"{name}: {total:,} cells computed")
        self._done(id, f"compute {name}")
        return total

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
        self._done(id, "go-live")

    def prove(self, id: int) -> list[Proof]:
        """Compares every cell of each new generation with the published one, in one snapshot, and keeps the result."""
        run = self._expect(id)
        proofs = []
        if not run.leap:
            for sealed in self.generations(id):
                with self.database.snapshot() as connection:
                    courtesy.stand_back(connection)
                    each = generations.get(connection, sealed.id)
                    now = generations.published(connection).get(each.view)
                    if now is None or now == each.id:
                        continue
                    old = generations.get(connection, now)
                    if old.version != each.version:
                        continue
                    proved = proof.prove(connection, each, old)
                with self.database.begin() as connection:
                    proof.record(connection, proved, id)
                proofs.append(proved)
                self.tell(f"{each.view}: {proved.cells:,} cells compared, {proved.differing:,} differ")
        self._done(id, "prove")
        return proofs

    def hand_over(self, id: int, *, anyway: bool = False) -> list[str]:
        """Lets readers read the new generations, all at once; gives the views that are held back by their proof.

        `anyway` hands over what the proof has held back, of a rebuild that ended so, too.
        """
        for sealed in self.generations(id):
            with self.database.begin(isolation="REPEATABLE READ") as connection:
                courtesy.stand_back(connection)
                new = generations.get(connection, sealed.id)
                old = generations.get(connection, generations.published(connection).get(new.view, new.id))
                if new.state == "live" and old.id != new.id and old.version == new.version:
                    overwriting.note(connection, new, old)
        self.at("noted")

        def step(connection: Connection) -> list[str]:
            run = rebuilds.running(connection, id, or_held=anyway)
            new = generations.find(connection, generation.c.rebuild == id, generation.c.state != "retired")
            progress.lock(connection, {name for each in new for name in each.queries})
            if not new:
                raise LaminaError(
                    f"Rebuild {id} has no generation left", way_out="Begin another with `lamina rebuild`."
                )
            held = [] if run.leap or anyway else _held(connection, new)
            if run.step == "hand-over" and not anyway:
                return held  # it is repeated: what was rolled back since stays so
            if run.leap:
                self._land(connection, id, new)
            else:
                now = generations.published(connection)
                newer = {each.view: each.id for each in new if each.id > now.get(each.view, 0)}
                generations.hand_over(connection, {view: id for view, id in newer.items() if view not in held})
            views.serve(connection)
            rebuilds.finished(connection, id, "hand-over")
            if run.state == "held":
                rebuilds.end(connection, id, "done")
            return held

        held = self.database.retrying(step)
        self.at("after hand-over")
        return held

    def roll_back(self, view_name: str) -> tuple[int, int]:
        """Hands a view back to the generation before the one it is read from; gives (from, to)."""
        with self.database.begin(isolation="REPEATABLE READ") as connection:
            now, before = generations.before_published(connection, view_name)
            overwriting.note(connection, before, now)
        return self.database.retrying(lambda connection: generations.roll_back(connection, view_name))

    def retire(self, id: int) -> None:
        """Ends the maintenance of generations that nobody reads or may roll back to, and drops what none can see."""
        with self.database.begin() as connection:
            run = rebuilds.get(connection, id)
        if run.state in ("done", "held"):  # it is repeated: what is left is to drop
            generations.drop_retired(self.database)
            return
        if run.state == "running" and run.step != "hand-over":
            raise LaminaError(
                f"Rebuild {id} was not handed over",
                evidence=f"the last step that was finished is {run.step}",
                way_out="Run its steps in their order: " + ", ".join(rebuilds.STEPS) + ".",
            )

        def step(connection: Connection) -> None:
            rebuilds.running(connection, id)
            new = generations.find(connection, generation.c.rebuild == id)
            mine = {each.id for each in new}  # one that is held back may be handed over yet
            surplus = [old for each in new for old in generations.superseded(connection, each.view) if old not in mine]
            generations.retire(connection, surplus)
            published = generations.published(connection)
            held = [each.view for each in new if published.get(each.view) != each.id]
            rebuilds.end(connection, id, "held" if held else "done")

        self.database.retrying(step)
        generations.drop_retired(self.database)
        self.at("after retire")

    def abandon(self, id: int) -> None:
        """Gives a rebuild up: its generations are retired, nothing that is read changes."""

        def step(connection: Connection) -> None:
            rebuilds.running(connection, id)
            rebuilds.end(connection, id, "failed", "it was given up")
            _retire_the_dead(connection)

        self.database.retrying(step)
        generations.drop_retired(self.database)

    def leap_seal(self, names: Sequence[str] = (), *, by: Scheduler | None = None) -> int:
        """Takes the queries over, archives to the end of the log and opens generations there.

        All views that a query feeds leap with it, since its progress moves for all of them.
        """
        with self.database.begin() as connection:
            if (known := rebuilds.begun(connection, by)) is not None:
                return known
            _, catalog = registry.deployed(connection)
            wanted, sources = _closure(catalog, self._with_cells(connection, names))
            id = rebuilds.begin(connection, wanted, leap=True, by=by)
            _retire_the_dead(connection)
            for name in sources:
                progress.take_over(connection, name, rebuilds.leap_writer(id))
        try:
            to = {name: self._archived_to_the_end(catalog.sources[name]) for name in sources}
        except BaseException as error:
            with self.database.begin() as connection:  # or the speed layer would wait for it
                rebuilds.end(connection, id, "failed", _why(error))
            raise

        def step(connection: Connection) -> None:
            rebuilds.running(connection, id)
            progress.lock(connection, sources)
            for name in wanted:
                at = Offsets({place: offset for end in to.values() for place, offset in end.items()})
                generations.open_building(connection, name, rebuild=id, at=at)
            rebuilds.finished(connection, id, "seal")

        self.database.retrying(step)
        self.at("after seal")
        return id

    def _archived_to_the_end(self, source: Source) -> Offsets:
        """Where the master log of a source ends, after all of its topic was taken into it."""
        self.archive_source(source, self.brokers.latest(source.topic))
        held = self.log().held(source)
        self._quarantine(source, held)
        return held

    def _quarantine(self, source: Source, to: Offsets) -> None:
        """Keeps the bad records between progress and `to`, which no micro-batch will read; before progress is there."""
        with self.database.begin() as connection:
            since = progress.read(connection, [source.name])
        for bad in compute.quarantined(self.log().records_below(source, to, since=since), source):
            with self.database.begin() as connection:
                quarantine.write(connection, bad)

    def generations(self, id: int) -> list[Generation]:
        """The generations that a rebuild has opened and that are not retired."""
        with self.database.begin() as connection:
            return generations.find(connection, generation.c.rebuild == id, generation.c.state != "retired")

    def _land(self, connection: Connection, id: int, new: Sequence[Generation]) -> None:
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
                for at, end in generations.cut_of(connection, each.id, name).items()
            }
        )
        generations.land(connection, [each.id for each in new], {name: queries[name].fence for name in names}, to)

    def _with_cells(self, connection: Connection, names: Iterable[str]) -> list[str]:
        """The views asked for (all, when none is named) that have cells; an unknown name is refused."""
        kinds = {row.name: row.kind for row in connection.execute(select(view_table.c.name, view_table.c.kind))}
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
        found = generations.find(
            connection, generation.c.rebuild == id, generation.c.view == name, generation.c.state != "retired"
        )
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


def _held(connection: Connection, new: Sequence[Generation]) -> list[str]:
    """The views whose policy is to hold and whose generation is not proven equal to the one that is read."""
    policy = {row.name: row.on_difference for row in connection.execute(select(view_table))}
    now = generations.published(connection)
    proven = set(
        connection.execute(
            select(proof_table.c.generation, proof_table.c.against).where(
                proof_table.c.generation.in_([each.id for each in new]), proof_table.c.differing == 0
            )
        ).all()
    )
    return [
        each.view
        for each in new
        if policy.get(each.view) == "hold"
        and now.get(each.view, each.id) != each.id
        and (each.id, now[each.view]) not in proven
    ]


def _retire_the_dead(connection: Connection) -> None:
    """Retires what rebuilds that failed have left: generations that were never handed over."""
    failed = select(rebuild_table.c.id).where(rebuild_table.c.state == "failed")
    now = generations.published(connection)
    left = generations.find(connection, generation.c.rebuild.in_(failed), generation.c.state != "retired")
    generations.retire(connection, [each.id for each in left if each.id > now.get(each.view, 0)])
