"""New sources of a catalog whose views move to them, with all records of their topics.

The query of such a source begins where its topic ended when the versions were opened. The earlier records are computed
with the versions, and their bad records and ids are gathered before a generation is live. From then on a speed layer
reads the source, and a view moves to it once it is read as far as the source that it replaces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batch_layer import gathering
from batch_layer.gathering import UnreadRange
from master_log.kafka.brokers import Brokers
from master_log.offsets import OffsetRange, Offsets
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.narration import waiting
from serving_layer.postgres.database import Connection, Database
from serving_layer.promise import progress, rebuilds
from serving_layer.promise.rebuilds import Postponed
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from master_log.log import MasterLog

STANDS_STILL = 30.0
"""An apply stops waiting for a query after this many seconds without progress."""

LOCKED_SECONDS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Seconds for which successive tries lock the query of a source, so that its replacement can catch up."""


class Behind(Postponed):
    """Raised if a source that a view moves to is not read far enough."""


@dataclass(frozen=True)
class Replacement:
    """A view that reads the source `old` and moves to `new`, which is declared over the same topic."""

    view: str
    old: str
    new: str


def gather(database: Database, log: Callable[[], MasterLog], id: int) -> None:
    """Writes the bad records and ids below the cuts of new sources, before anybody reads these."""
    with database.begin() as connection:
        sources = _new(connection, id)
        if _are_read(connection, sources):
            return  # the step is being repeated
        unread = []
        for name, source in sorted(sources.items()):
            start = progress.starts(connection, [name])
            unread.append(UnreadRange(source, progress.read(connection, [name]), start, start))
    if not unread:
        return
    gathered = gathering.gather(database, log, unread, {source.topic for source in sources.values()})

    def step(connection: Connection) -> None:
        rebuilds.lock_running(connection, id)
        progress.lock(connection, sources)
        if not _are_read(connection, sources):  # another process may have resumed this rebuild
            gathering.write(connection, gathered)

    database.retrying(step)


def catch_up(database: Database, brokers: Brokers, tell: Callable[[str], None], id: int) -> None:
    """Waits until a speed layer has read new sources to their present ends, if one reads them."""
    with database.begin() as connection:
        sources = _new(connection, id)
    if not sources:
        return
    latest = brokers.latest(*{source.topic for source in sources.values()})
    ends = {name: Offsets.of(source.topic, latest.on(source.topic)) for name, source in sources.items()}
    before, deadline, advancing = None, 0.0, True
    with waiting(tell, f"the speed layer reads {', '.join(sorted(sources))} to the end"):
        while advancing:
            with database.begin() as connection:
                reached = {name: progress.read(connection, [name]) for name in sources}
                advancing = progress.are_read(connection)
            late = [name for name, end in ends.items() if not OffsetRange.since(reached[name], end).empty]
            if not late:
                return
            if reached != before:
                before, deadline = reached, time.monotonic() + STANDS_STILL
            advancing = advancing and time.monotonic() < deadline
            time.sleep(0.1)
    for name in late:
        tell(f"{name} is read up to {reached[name]} of {ends[name]}: the rest is counted after the move")


def replacements(connection: Connection, id: int) -> list[Replacement]:
    """The views that move to a new source of a topic that they read already."""
    now = deployed(connection)
    new = _new(connection, id)
    return [
        Replacement(generation.view, old, name)
        for generation in lookup.generations_of_rebuild(connection, id)
        for name in sorted(new.keys() & set(generation.queries))
        for old in sorted(now.views[generation.view].fed_by if generation.view in now.views else ())
        if now.sources[old].topic == new[name].topic
    ]


def await_replacements(connection: Connection, moving: Sequence[Replacement], seconds: float) -> None:
    """Locks the queries of replaced sources until the transaction ends, and waits for their replacements.

    Raises `Behind` if a replacement needs longer than `seconds` to catch up: readers would see fewer records.
    """
    progress.lock(connection, {replacement.old for replacement in moving})
    deadline = time.monotonic() + seconds
    for replacement in moving:
        shown = progress.read(connection, [replacement.old])
        while not OffsetRange.since(reached := progress.read(connection, [replacement.new]), shown).empty:
            if time.monotonic() >= deadline:
                raise _behind(connection, replacement, reached, shown)
            time.sleep(0.02)


def _behind(connection: Connection, replacement: Replacement, reached: Offsets, shown: Offsets) -> Behind:
    new, old = replacement.new, replacement.old
    stopped = progress.queries(connection)[new].stopped
    return Behind(
        f"{replacement.view} would show fewer records: {new} is not read as far as {old}",
        evidence=f"{new} is at {reached}, {old} at {shown}" + (f"\n{new}: {stopped}" if stopped else ""),
        way_out="Start the speed layer, or fix what stops it. Then repeat the apply, which resumes from here.",
    )


def _new(connection: Connection, id: int) -> dict[str, Source]:
    """The sources that feed what a rebuild computes and are not deployed."""
    declared = deployed(connection).sources.keys()
    new: dict[str, Source] = {}
    for generation in lookup.generations_of_rebuild(connection, id):
        if names := set(generation.queries) - declared:
            sources = versions.get(connection, generation.view, generation.version).sources
            new |= {name: sources[name] for name in names}
    return new


def _are_read(connection: Connection, sources: Mapping[str, Source]) -> bool:
    queries = progress.queries(connection)
    return any(queries[name].committed_at is not None for name in sources)
