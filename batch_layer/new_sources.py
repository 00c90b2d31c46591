"""Sources that are new in a catalog whose views move to them, with all that their topics hold.

The query of such a source begins where its topic ended when the versions were opened; the records before are computed
with these. What those bring beside cells is gathered before a generation is live. From then on a speed layer reads the
source, and a view moves to it once it is read as far as the source that it takes the place of.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from batch_layer.gathering import Passed, write
from batch_layer.gathering import gather as gathered_of
from batch_layer.rebuild import BatchLayer
from master_log.offsets import Offsets, TopicPartition
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.narration.waiting import waiting
from serving_layer.postgres.database import Connection
from serving_layer.promise import progress, rebuilds
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

STANDS_STILL = 30.0
"""Seconds after which a query that has not moved is not waited for."""

HOLDS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Seconds for which one try after the other keeps a source where it is, until the one that takes its place is there."""


class Behind(LaminaError):
    """A source that a view moves to is not read as far as it has to be."""


@dataclass(frozen=True)
class Replaced:
    """A view that reads the source `old`, and moves to `new`, which is declared over the same topic."""

    view: str
    old: str
    new: str


def gather(batch: BatchLayer, id: int) -> None:
    """Writes the bad records and ids of what is computed of new sources, before anybody reads these."""
    with batch.database.begin() as connection:
        sources = _new(connection, id)
        if _are_read(connection, sources):
            return  # it was done
        passed = []
        for name, source in sorted(sources.items()):
            start = progress.starts(connection, [name])
            passed.append(Passed(source, progress.read(connection, [name]), start, start))
    if not passed:
        return
    gathered = gathered_of(batch.database, batch.log, passed, {source.topic for source in sources.values()})

    def step(connection: Connection) -> None:
        rebuilds.running(connection, id)
        progress.lock(connection, sources)
        if not _are_read(connection, sources):  # another process may have gone on with what this one left
            write(connection, gathered)

    batch.database.retrying(step)


def catch_up(batch: BatchLayer, id: int) -> None:
    """Waits until a speed layer, where one goes on with new sources, has read what they hold by now."""
    with batch.database.begin() as connection:
        sources = _new(connection, id)
    if not sources:
        return
    latest = batch.brokers.latest(*{each.topic for each in sources.values()})
    ends = {name: Offsets.of(each.topic, latest.on(each.topic)) for name, each in sources.items()}
    seen, deadline, goes_on = None, 0.0, True
    with waiting(batch.tell, f"the speed layer reads {', '.join(sorted(sources))} up to its end"):
        while goes_on:
            with batch.database.begin() as connection:
                reached = {name: progress.read(connection, [name]) for name in sources}
                goes_on = progress.are_read(connection)
            late = [name for name, end in ends.items() if not _reaches(reached[name], end)]
            if not late:
                return
            if reached != seen:
                seen, deadline = reached, time.monotonic() + STANDS_STILL
            goes_on = goes_on and time.monotonic() < deadline
            time.sleep(0.1)
    for name in late:
        said = f"{name} is read up to {reached[name]}, and ends at {ends[name]}"
        batch.tell(f"{said}: what is between is counted after the move")


def replaced(connection: Connection, id: int) -> list[Replaced]:
    """The new sources to which views move that read the same topic already."""
    now = deployed(connection)
    new = _new(connection, id)
    return [
        Replaced(each.view, old, name)
        for each in lookup.of_rebuild(connection, id)
        for name in sorted(new.keys() & set(each.queries))
        for old in sorted(now.views[each.view].fed_by if each.view in now.views else ())
        if now.sources[old].topic == new[name].topic
    ]


def hold(connection: Connection, moving: Sequence[Replaced], seconds: float) -> None:
    """Keeps sources where they are until the transaction ends, and waits until those in their place are as far.

    Raises `Behind` where they are not in time: readers would see fewer records.
    """
    progress.lock(connection, {each.old for each in moving})
    deadline = time.monotonic() + seconds
    for each in moving:
        shown = progress.read(connection, [each.old])
        while not _reaches(reached := progress.read(connection, [each.new]), shown):
            if time.monotonic() >= deadline:
                raise Behind(
                    f"{each.view} would show fewer records: {each.new} is not read as far as {each.old}",
                    evidence=_said(connection, each, reached, shown),
                    way_out="Start the speed layer, or mend what stops it; then repeat the apply: what was computed is"
                    " taken from there.",
                )
            time.sleep(0.02)


def _new(connection: Connection, id: int) -> dict[str, Source]:
    """The sources that feed what a rebuild computes and are not deployed."""
    there = deployed(connection).sources.keys()
    found: dict[str, Source] = {}
    for each in lookup.of_rebuild(connection, id):
        if names := set(each.queries) - there:
            sources = versions.get(connection, each.view, each.version).sources
            found |= {name: sources[name] for name in names}
    return found


def _are_read(connection: Connection, sources: Mapping[str, Source]) -> bool:
    queries = progress.queries(connection)
    return any(queries[name].committed_at is not None for name in sources)


def _said(connection: Connection, each: Replaced, reached: Offsets, shown: Offsets) -> str:
    stopped = progress.queries(connection)[each.new].stopped
    return f"{each.new} is at {reached}, {each.old} at {shown}" + (f"\n{each.new}: {stopped}" if stopped else "")


def _reaches(reached: Offsets, end: Mapping[TopicPartition, int]) -> bool:
    return all(reached.get(at, 0) >= offset for at, offset in end.items())
