"""Bad records and ids, which micro-batches keep besides cells, of records that no micro-batch reads.

A leap lands beyond such records. A new source begins beyond them, at the end of its topic, if the versions of the views
that move to it are computed from its earlier records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from master_log.offsets import Offsets
from serving_layer.postgres.database import Connection, Database
from serving_layer.promise import event_ids, quarantine, skipping
from serving_layer.promise.event_ids import IdLookup
from serving_layer.promise.quarantine import Bad
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from master_log.log import MasterLog


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
    ids: Mapping[str, IdLookup]
    anew: Collection[str]


def gather(
    database: Database, log: Callable[[], MasterLog], passed: Sequence[Passed], anew: Collection[str]
) -> Gathered:
    """Reads bad records and ids from the log. anew: topics with quarantined records that Kafka may have lost."""
    bad = [
        quarantine.bad_among(
            log().records_below(part.source, part.cut, since=part.start if part.source.topic in anew else part.reached),
            part.source,
        )
        for part in passed
    ]
    return Gathered(bad, _ids(database, log, passed), anew)


def _ids(database: Database, log: Callable[[], MasterLog], passed: Sequence[Passed]) -> dict[str, IdLookup]:
    """The ids of all records below the cut, by query: Kafka may have lost some of the records counted before."""
    ids = {}
    for part in passed:
        if part.source.ids:
            records = log().records_below(part.source, part.cut, since=part.start)
            with database.begin() as connection:
                now = event_ids.now(connection)
            ids[part.source.name] = event_ids.below(part.source, records, now)
    return ids


def write(connection: Connection, gathered: Gathered) -> None:
    """Writes the gathered bad records, with their counts, and the gathered ids."""
    for bad in gathered.bad:
        if bad.topic in gathered.anew:
            quarantine.forget(connection, bad.source, but=skipping.SKIPPED)
        quarantine.stage(connection, bad)
        quarantine.write(connection, bad)
    for name, ids in gathered.ids.items():
        event_ids.forget(connection, name)
        event_ids.stage(connection, ids)
        event_ids.write(connection, name, ids)
