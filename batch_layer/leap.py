"""A leap: a rebuild that takes its queries over and lands where the master log ends, which Kafka no longer reaches.

Between progress and its cut lie records that no micro-batch will read, so what a micro-batch keeps of them beside
cells (bad records, ids) is gathered before it lands, and written in the transaction in which it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batch_layer.gathering import Gathered, Passed, gather, write
from master_log.kafka import Brokers
from master_log.offsets import Offsets, TopicPartition
from serving_layer import generations, lookup, progress, rebuilds, registry
from serving_layer.database import Connection, Database
from serving_layer.deployed import deployed
from serving_layer.lookup import Generation
from serving_layer.rebuilds import Scheduler
from view_algebra.compiled import Catalog, Source

if TYPE_CHECKING:
    from master_log.archive import MasterLog


@dataclass(frozen=True)
class Begun:
    """A leap that has taken its queries over. opens: the views and sources of it; none where the step is repeated."""

    id: int
    catalog: Catalog
    views: Sequence[str]
    sources: Sequence[str]


@dataclass(frozen=True)
class Brought:
    """What a leap brings with it from below its cut. lost: the partitions whose end Kafka has lost since."""

    gathered: Gathered
    lost: Sequence[TopicPartition]


@dataclass(frozen=True)
class Leap:
    """The steps that a leap does otherwise than a rebuild. archive: takes a source up to these offsets into the log."""

    database: Database
    brokers: Brokers
    log: Callable[[], MasterLog]
    archive: Callable[[Source, Offsets], int]
    tell: Callable[[str], None]

    def begin(self, names: Sequence[str], by: Scheduler | None) -> Begun:
        """Takes over the queries that feed these views; others that they feed leap, too: their progress moves."""

        def step(connection: Connection) -> Begun:
            catalog = deployed(connection)
            if (known := rebuilds.begun(connection, by)) is not None:
                return Begun(known, catalog, [], [])
            wanted, sources = _closure(catalog, registry.with_cells(connection, names))
            id = rebuilds.begin(connection, wanted, leap=True, by=by)
            registry.retire_the_dead(connection)
            for name in sources:
                progress.take_over(connection, name, rebuilds.leap_writer(id))
            return Begun(id, catalog, wanted, sources)

        return self.database.retrying(step)

    def open(self, begun: Begun) -> None:
        """Archives all that Kafka holds of the sources, and opens a generation of each view where their log ends."""
        sources = [begun.catalog.sources[name] for name in begun.sources]
        ends = [self._archived_to_the_end(source) for source in sources]
        at = Offsets({place: offset for end in ends for place, offset in end.items()})
        tails = {
            place: tail
            for source, end in zip(sources, ends, strict=True)
            for place, tail in self.log().tails(source, end).items()
        }

        def step(connection: Connection) -> None:
            rebuilds.running(connection, begun.id)
            progress.lock(connection, begun.sources)
            declared = registry.with_cells(connection, ())
            for name in (name for name in begun.views if name in declared):  # others were dropped meanwhile
                generations.open_building(connection, name, rebuild=begun.id, at=at, tails=tails)
            rebuilds.finished(connection, begun.id, "seal")

        self.database.retrying(step)

    def _archived_to_the_end(self, source: Source) -> Offsets:
        """Where the master log of a source ends, after all of its topic was taken into it."""
        self.archive(source, self.brokers.latest(source.topic))
        return self.log().held(source)

    def gather(self, id: int) -> Brought:
        """What a leap will bring with it, for which Spark is asked; nothing of a rebuild, or a leap that has landed."""
        lost = self._lost(id)
        return Brought(gather(self.database, self.log, self._passed(id), {at.topic for at in lost}), lost)

    def land(self, connection: Connection, id: int, new: Sequence[Generation], brought: Brought) -> None:
        """Moves progress to the cut, and with it all that is known of the records below."""
        write(connection, brought.gathered)
        queries = progress.queries(connection)
        names = {name for each in new for name in each.queries}
        me = rebuilds.leap_writer(id)
        if taken := sorted(name for name in names if queries[name].writer != me):
            raise progress.Fenced(
                f"The query {taken[0]} was taken over by {queries[taken[0]].writer} during the leap",
                way_out="Stop the speed layer, or let it continue without a leap: `lamina rebuild`.",
            )
        fed = [(generation.id, name) for generation in new for name in generation.queries]
        to = Offsets({at: end for each in fed for at, end in lookup.cut_of(connection, *each).items()})
        tails = {at: tail for each in fed for at, tail in lookup.tails_of(connection, *each).items()}
        fences = {name: queries[name].fence for name in names}
        generations.land(connection, [each.id for each in new], fences, to, tails, brought.lost)

    def _passed(self, id: int) -> list[Passed]:
        """The sources of a leap that has not landed."""
        with self.database.begin() as connection:
            run = rebuilds.get(connection, id)
            if not run.leap or run.state != "running":
                return []
            catalog = deployed(connection)
            new = [each for each in lookup.of_rebuild(connection, id) if not each.was_shown]
            cuts = {name: lookup.cut_of(connection, each.id, name) for each in new for name in each.queries}
            return [
                Passed(
                    catalog.sources[name],
                    cut,
                    progress.read(connection, [name]),
                    progress.starts(connection, [name]),
                )
                for name, cut in sorted(cuts.items())
            ]

    def _lost(self, id: int) -> list[TopicPartition]:
        """The partitions whose end Kafka has lost since it was counted, of the queries that a leap has taken over."""
        with self.database.begin() as connection:
            if not rebuilds.get(connection, id).leap:
                return []
            names = {name for each in lookup.of_rebuild(connection, id, retired=True) for name in each.queries}
            known = [progress.known(connection, name) for name in sorted(names)]
        lost = [each for reached, tails in known for each in self.brokers.differing(reached, tails)]
        for each in lost:
            self.tell(f"{each.at.topic}: records that Kafka lost are no longer counted. {each}")
        return [each.at for each in lost]


def _closure(catalog: Catalog, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The views, and the queries, that share a query with the named ones, directly or through others."""
    views, sources = set(names), set[str]()
    while True:
        sources |= {source for name in views for source in catalog.views[name].fed_by}
        wider = {name for name, each in catalog.views.items() if each.fed_by & sources}
        if wider <= views:
            return sorted(views), sorted(sources)
        views |= wider
