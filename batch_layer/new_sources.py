"""New sources of a catalog whose views move to them, with all records of their topics.

The query of such a source begins where its topic ended when the versions were opened. The earlier records are computed
with the versions. Their bad records and ids are gathered before a generation is live. From then on a speed layer reads
the source, and a view moves to it once it is read as far as the source that it replaces.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batch_layer.gathering import Passed, write
from batch_layer.gathering import gather as gathered_of
from master_log.offsets import Offsets, TopicPartition
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.narration import waiting
from serving_layer.postgres.database import Connection
from serving_layer.promise import progress, rebuilds
from serving_layer.promise.rebuilds import Postponed
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from batch_layer.rebuild import BatchLayer

STANDS_STILL = 30.0
"""Seconds without progress after which a query is no longer waited for."""

HOLDS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Seconds for which each try holds a source in place, until its replacement has caught up."""


class Behind(Postponed):
    """A source that a view moves to is not read far enough."""


@dataclass(frozen=True)
class Replaced:
    """A view that reads the source `old` and moves to `new`, which is declared over the same topic."""

    view: str
    old: str
    new: str


def gather(batch: BatchLayer, id: int) -> None:
    """Writes the bad records and ids below the cuts of new sources, before anybody reads these."""
    with batch.database.begin() as connection:
        sources = _new(connection, id)
        if _are_read(connection, sources):
            return  # this step is repeated
        passed = []
        for name, source in sorted(sources.items()):
            start = progress.starts(connection, [name])
            passed.append(Passed(source, progress.read(connection, [name]), start, start))
    if not passed:
        return
    gathered = gathered_of(batch.database, batch.log, passed, {source.topic for source in sources.values()})

    def step(connection: Connection) -> None:
        rebuilds.lock_running(connection, id)
        progress.lock(connection, sources)
        if not _are_read(connection, sources):  # another process may have resumed this rebuild
            write(connection, gathered)

    batch.database.retrying(step)


def catch_up(batch: BatchLayer, id: int) -> None:
    """Waits until a speed layer has read new sources to their present ends, if one reads them."""
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
    """The views that move to a new source of a topic that they read already."""
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
    """Holds sources in place until the transaction ends, and waits until their replacements have caught up.

    Raises `Behind` if that takes longer than `seconds`: readers would see fewer records.
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
                    way_out="Start the speed layer, or fix what stops it; then repeat the apply: what was computed is"
                    " taken from there.",
                )
            time.sleep(0.02)


def _new(connection: Connection, id: int) -> dict[str, Source]:
    """The sources that feed what a rebuild computes and are not deployed."""
    declared = deployed(connection).sources.keys()
    new: dict[str, Source] = {}
    for each in lookup.of_rebuild(connection, id):
        if names := set(each.queries) - declared:
            sources = versions.get(connection, each.view, each.version).sources
            new |= {name: sources[name] for name in names}
    return new


def _are_read(connection: Connection, sources: Mapping[str, Source]) -> bool:
    queries = progress.queries(connection)
    return any(queries[name].committed_at is not None for name in sources)


def _said(connection: Connection, each: Replaced, reached: Offsets, shown: Offsets) -> str:
    stopped = progress.queries(connection)[each.new].stopped
    return f"{each.new} is at {reached}, {each.old} at {shown}" + (f"\n{each.new}: {stopped}" if stopped else "")


def _reaches(reached: Offsets, end: Mapping[TopicPartition, int]) -> bool:
    return all(reached.get(at, 0) >= offset for at, offset in end.items())
