"""A leap: a rebuild that takes over its queries and lands at the end of the master log, beyond what Kafka still has.

No micro-batch will read the records between progress and its cut. So their bad records and ids are gathered before it
lands, and written in the transaction in which it lands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from batch_layer import rebuild_failures
from batch_layer.archiving import Logs
from batch_layer.gathering import GatheredRecords, UnreadRange, gather, write
from batch_layer.verdicts import refuse_failed_checks
from master_log.kafka.tails import Tails
from master_log.offsets import Offsets, TopicPartition
from serving_layer.catalog import lookup
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.change import deploying
from serving_layer.postgres.database import Connection
from serving_layer.postgres.states import RebuildState, Step, WriterKind
from serving_layer.promise import generations, progress, rebuilds
from serving_layer.promise.rebuilds import Scheduler
from serving_layer.readers import views
from view_algebra.compiled import Catalog
from view_algebra.errors import LaminaError


@dataclass(frozen=True)
class Takeover:
    """The queries that a leap has taken over: those of these views and sources. It is empty if the step is repeated."""

    id: int
    catalog: Catalog
    views: Sequence[str]
    sources: Sequence[str]


@dataclass(frozen=True)
class Landing:
    """The progress at which a leap lands, with the bad records and ids below.

    to: by query, its new progress and Kafka's last batches below it
    lost: the partitions whose end Kafka has lost
    """

    bad_and_ids: GatheredRecords
    to: Mapping[str, tuple[Offsets, Tails]]
    lost: Sequence[TopicPartition]


@dataclass(frozen=True)
class Leap:
    """The steps that a leap takes differently from a rebuild. It archives into these logs, and reads them."""

    logs: Logs

    def take_over(self, names: Sequence[str], by: Scheduler | None) -> Takeover:
        """Takes over the queries of these views and sources, or of all.

        Other views that these queries feed leap as well, since the progress moves.
        """

        def step(connection: Connection) -> Takeover:
            catalog = deployed(connection)
            if (repeated := rebuilds.sealed_by(connection, by)) is not None:
                return Takeover(repeated, catalog, [], [])
            wanted, sources = _closure(catalog, *_targets(connection, catalog, names))
            if not sources:
                deploying.with_cells(connection, ())  # raises: there is nothing to rebuild
            id = rebuilds.begin(connection, wanted, leap=True, by=by)
            deploying.retire_leftovers(connection, also_lock=sources)
            for name in sources:
                progress.take_over(connection, name, rebuilds.leap_writer(id), WriterKind.LEAP)
            return Takeover(id, catalog, wanted, sources)

        return self.logs.database.retrying(step)

    def open(self, takeover: Takeover) -> None:
        """Archives the sources to their ends, and opens a generation of each view at the end of their log."""
        if not takeover.sources:
            return  # the step is being repeated
        ends = {name: end for name in takeover.sources if (end := self._archive_to_the_end(takeover, name)) is not None}
        cut = Offsets({at: offset for end in ends.values() for at, offset in end.items()})
        tails = {
            at: tail
            for name, end in ends.items()
            for at, tail in self.logs.log().tails(takeover.catalog.sources[name], end).items()
        }

        def step(connection: Connection) -> None:
            rebuilds.lock_running(connection, takeover.id)
            progress.lock(connection, takeover.sources)
            declared = deployed(connection).views
            # The other views were dropped meanwhile, or no longer have cells.
            for name in (name for name in takeover.views if name in declared and declared[name].cell_tables):
                generations.open_building(connection, name, rebuild=takeover.id, at=cut, tails=tails)
            rebuilds.record_finished(connection, takeover.id, Step.SEAL)

        self.logs.database.retrying(step)

    def _archive_to_the_end(self, takeover: Takeover, name: str) -> Offsets | None:
        """Archives a source's whole topic. Returns the end of its log.

        Returns None if that fails and the source feeds no view that leaps: the views do not wait for it.
        """
        source = takeover.catalog.sources[name]
        try:
            self.logs.archive(source, self.logs.brokers.latest(source.topic))
        except LaminaError as error:
            if not takeover.views or any(name in takeover.catalog.views[view].fed_by for view in takeover.views):
                raise
            self.logs.tell(f"{name}, which feeds no view, is left out: {error}")
            with self.logs.database.begin() as connection:
                progress.take_over(connection, name, rebuilds.leap_writer(rebuilds.NO_REBUILD), WriterKind.LEAP)
            return None
        return self.logs.log().held(source)

    def go_live(self, id: int, new: Sequence[Generation]) -> None:
        """Does nothing: a leap goes live in the transaction in which it lands."""

    def hand_over(self, id: int, released: Sequence[str] | None) -> list[str]:
        """Lands, unless it has landed: hands all of its views over at the cut. Raises Blocked if a check fails.

        released: None, or names to land even if a check fails

        Returns no view, since a leap holds none back.
        """
        landing = self._gather(id)

        def step(connection: Connection) -> None:
            run = rebuilds.lock_running(connection, id, or_held=released is not None)
            run.check_names(released or ())
            fed = {name for new in lookup.generations_of_rebuild(connection, id) for name in new.queries}
            progress.lock(connection, fed | (landing.to.keys() & progress.queries(connection).keys()))
            new = lookup.generations_of_rebuild(connection, id)  # read under the lock: an apply may have dropped a view
            if run.is_handed_over or (new and all(generation.was_shown for generation in new)):
                return  # the step is being repeated
            if not new and not landing.to:
                raise rebuild_failures.no_generation(id)
            if released is None:
                refuse_failed_checks(connection, id, new)
            self._land(connection, id, new, landing)
            views.serve(connection)
            rebuilds.record_finished(connection, id, Step.HAND_OVER)

        self.logs.database.retrying(step)
        return []

    def _gather(self, id: int) -> Landing:
        """Gathers the bad records and ids below the cut: none once the leap has landed."""
        with self.logs.database.begin() as connection:
            run = rebuilds.get(connection, id)
            if run.state is not RebuildState.RUNNING or run.is_handed_over:
                return Landing(GatheredRecords([], {}, ()), {}, [])
            sources = {name: deployed(connection).sources[name] for name in _queries_of(connection, id)}
            reached = {name: progress.read_with_tails(connection, name) for name in sources}
            starts = {name: progress.starts(connection, [name]) for name in sources}
            to = lookup.cuts(connection, lookup.generations_of_rebuild(connection, id))
        for name in sources.keys() - to.keys():  # it feeds no view
            held = self.logs.log().held(sources[name])
            to[name] = held, self.logs.log().tails(sources[name], held)
        lost = self._report_losses(reached.values())
        unread = [UnreadRange(sources[name], to[name][0], reached[name][0], starts[name]) for name in sorted(sources)]
        return Landing(gather(self.logs.database, self.logs.log, unread, {at.topic for at in lost}), to, lost)

    def _land(self, connection: Connection, id: int, new: Sequence[Generation], landing: Landing) -> None:
        """Moves progress to the cut, and writes the bad records and ids below it."""
        queries, own_queries = progress.queries(connection), _queries_of(connection, id)
        names = landing.to.keys() & deployed(connection).sources.keys()
        if taken := sorted(names.union(*(generation.queries for generation in new)) - own_queries):
            raise progress.Fenced(
                f"The query {taken[0]} was taken over by {queries[taken[0]].writer} during the leap",
                way_out="Stop the speed layer, or let it continue without a leap: `lamina rebuild`.",
            )
        write(connection, landing.bad_and_ids)
        fences = {name: queries[name].fence for name in names}
        to = {name: landing.to[name] for name in names}
        generations.land(connection, [generation.id for generation in new], fences, to, landing.lost)

    def _report_losses(self, counted: Iterable[tuple[Offsets, Tails]]) -> list[TopicPartition]:
        """Reports the partitions whose end Kafka has lost since it was counted, and returns them."""
        lost = [differing for reached, tails in counted for differing in self.logs.brokers.differing(reached, tails)]
        for differing in lost:
            self.logs.tell(f"{differing.at.topic}: records that Kafka has lost are no longer counted. {differing}")
        return [differing.at for differing in lost]


def _queries_of(connection: Connection, id: int) -> set[str]:
    """The declared queries that a leap has taken over and nobody has since."""
    leap, declared = rebuilds.leap_writer(id), deployed(connection).sources.keys()
    return {name for name, query in progress.queries(connection).items() if query.writer == leap and name in declared}


def _targets(connection: Connection, catalog: Catalog, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The views with cells and the sources among these names, or all views and sources if there are no names."""
    if not names:
        return [name for name, view in catalog.views.items() if view.cell_tables], list(catalog.sources)
    sources = [name for name in names if name in catalog.sources]
    views = [name for name in names if name in catalog.views or name not in sources]
    return deploying.with_cells(connection, views) if views else [], sources


def _closure(catalog: Catalog, names: Iterable[str], named: Iterable[str]) -> tuple[list[str], list[str]]:
    """The views, and the queries, that share a query with these views or sources, directly or through others."""
    views, sources = set(names), set(named)
    while True:
        sources |= {source for name in views for source in catalog.views[name].fed_by}
        wider = {name for name, view in catalog.views.items() if view.fed_by & sources}
        if wider <= views:
            return sorted(views), sorted(sources)
        views |= wider
