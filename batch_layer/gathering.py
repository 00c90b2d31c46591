"""What a micro-batch would keep beside cells (bad records, ids), for records that no micro-batch reads.

A leap lands beyond such records. A source that is new begins beyond them, where its topic ends, if the history of the
views that move to it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from master_log.offsets import Offsets
from serving_layer.postgres.database import Connection, Database
from serving_layer.promise import duplicates, quarantine, skipping
from serving_layer.promise.duplicates import Found
from serving_layer.promise.quarantine import Bad
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from master_log.archive import MasterLog


@dataclass(frozen=True)
class Passed:
    """Records of a source that no micro-batch reads: from `reached` up to `cut`, of a source that begins at `start`."""

    source: Source
    cut: Offsets
    reached: Offsets
    start: Offsets


@dataclass(frozen=True)
class Gathered:
    """Bad records, and ids by query. anew: topics whose bad records replace those already kept."""

    bad: Sequence[Bad]
    ids: Mapping[str, Found]
    anew: Collection[str]


def gather(
    database: Database, log: Callable[[], MasterLog], passed: Sequence[Passed], anew: Collection[str]
) -> Gathered:
    """Asks Spark for them. Of a topic that is read `anew`, quarantine may hold records that Kafka has lost."""
    bad = [
        quarantine.bad_among(
            log().records_below(each.source, each.cut, since=each.start if each.source.topic in anew else each.reached),
            each.source,
        )
        for each in passed
    ]
    return Gathered(bad, _ids(database, log, passed), anew)


def _ids(database: Database, log: Callable[[], MasterLog], passed: Sequence[Passed]) -> dict[str, Found]:
    """The ids of all records below the cut, by query: of what was counted before, some may be lost."""
    found = {}
    for each in passed:
        if each.source.ids:
            records = log().records_below(each.source, each.cut, since=each.start)
            with database.begin() as connection:
                now = duplicates.now(connection)
            found[each.source.name] = duplicates.below(each.source, records, now)
    return found


def write(connection: Connection, gathered: Gathered) -> None:
    """Keeps and counts what was gathered."""
    for each in gathered.bad:
        if each.topic in gathered.anew:
            quarantine.forget(connection, each.source, but=skipping.SKIPPED)
        quarantine.stage(connection, each)
        quarantine.write(connection, each)
    for name, found in gathered.ids.items():
        duplicates.forget(connection, name)
        duplicates.stage(connection, found)
        duplicates.write(connection, name, found)
