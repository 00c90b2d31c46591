"""The bad records and ids among records that no micro-batch reads. Micro-batches would keep them next to the cells.

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
from serving_layer.promise.quarantine import BadRecords
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from master_log.log import MasterLog


@dataclass(frozen=True)
class UnreadRange:
    """Records of a source that no micro-batch reads: from `reached` up to `cut`.

    start: the source's first offsets
    """

    source: Source
    cut: Offsets
    reached: Offsets
    start: Offsets


@dataclass(frozen=True)
class GatheredRecords:
    """Bad records, and ids by query.

    replaced: topics whose bad records replace those already kept
    """

    bad: Sequence[BadRecords]
    ids: Mapping[str, IdLookup]
    replaced: Collection[str]


def gather(
    database: Database, log: Callable[[], MasterLog], unread: Sequence[UnreadRange], replaced: Collection[str]
) -> GatheredRecords:
    """Reads bad records and ids from the log.

    replaced: topics with quarantined records that Kafka may have lost
    """
    bad = []
    for records in unread:
        since = records.start if records.source.topic in replaced else records.reached
        below = log().records_below(records.source, records.cut, since=since)
        bad.append(quarantine.bad_among(below, records.source))
    return GatheredRecords(bad, _ids(database, log, unread), replaced)


def _ids(database: Database, log: Callable[[], MasterLog], unread: Sequence[UnreadRange]) -> dict[str, IdLookup]:
    """The ids of all records below the cut, by query: Kafka may have lost some of the records counted before."""
    ids = {}
    for records in unread:
        if records.source.ids:
            below = log().records_below(records.source, records.cut, since=records.start)
            with database.begin() as connection:
                now = event_ids.clock_micros(connection)
            ids[records.source.name] = event_ids.ids_below_cut(records.source, below, now)
    return ids


def write(connection: Connection, gathered: GatheredRecords) -> None:
    """Writes the bad records, with their counts, and the ids."""
    for bad in gathered.bad:
        if bad.topic in gathered.replaced:
            quarantine.forget(connection, bad.source, except_for=skipping.SKIPPED)
        quarantine.stage(connection, bad)
        quarantine.write(connection, bad)
    for name, ids in gathered.ids.items():
        event_ids.forget(connection, name)
        event_ids.stage(connection, ids)
        event_ids.write(connection, name, ids)
