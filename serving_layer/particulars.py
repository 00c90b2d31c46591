"""The bookkeeping of one view, or of one source, for a page about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

REASONS = 20
"""Newest reasons for quarantine that are shown."""

_GENERATIONS = text("""
SELECT g.id, g.version, g.state, p.generation IS NOT NULL AS published, g.rebuild, g.opened_at, g.live_at, g.shown_at,
       g.retired_at, f.cells AS compared, f.differing, f.against, f.proved_at
FROM lamina.generation AS g
LEFT JOIN lamina.publication AS p ON p.generation = g.id
LEFT JOIN LATERAL (
  SELECT * FROM lamina.proof WHERE generation = g.id ORDER BY proved_at DESC LIMIT 1
) AS f ON true
WHERE g.view = :view
ORDER BY g.id DESC LIMIT :most
""")

_PARTITIONS = text("""
SELECT p.partition, p.start_offset, p.next_offset, coalesce(a.held, p.start_offset) AS archived, a.archived_at
FROM lamina.progress AS p
LEFT JOIN lamina.archived AS a USING (query, topic, partition)
WHERE p.query = :source
ORDER BY p.partition
""")

_REASONS = text("""
SELECT error, records, first, last FROM lamina.bad_count WHERE source = :source ORDER BY last DESC LIMIT :most
""")

_DUPLICATES = text("SELECT duplicates, conflicts FROM lamina.query WHERE name = :source")


@dataclass(frozen=True)
class Generation:
    """A generation of a view, and its newest proof: cells compared and differing, against which generation."""

    id: int
    version: str
    state: str
    published: bool
    rebuild: int | None
    opened_at: datetime
    live_at: datetime | None
    shown_at: datetime | None
    retired_at: datetime | None
    compared: int | None
    differing: int | None
    against: int | None
    proved_at: datetime | None


@dataclass(frozen=True)
class Partition:
    """A partition of a source: the first offset that counts, progress, and the offset below which it is archived."""

    partition: int
    start_offset: int
    next_offset: int
    archived: int
    archived_at: datetime | None


@dataclass(frozen=True)
class Reason:
    """Why records of a source went to quarantine, how many, and when the first and the last did."""

    error: str
    records: int
    first: datetime
    last: datetime


@dataclass(frozen=True)
class SourceParticulars:
    """All of one source. duplicates: copies of counted records; conflicts: those that differ and come before."""

    partitions: list[Partition]
    reasons: list[Reason]
    duplicates: int
    conflicts: int


def generations(connection: Connection, view: str, most: int = 50) -> list[Generation]:
    """The newest generations of a view, dropped ones included, newest first."""
    return [Generation(*row) for row in connection.execute(_GENERATIONS, {"view": view, "most": most})]


def of_source(connection: Connection, source: str) -> SourceParticulars:
    """Reads in the snapshot of the connection. Raises `NoResultFound` if no query has this name."""
    given = {"source": source, "most": REASONS}
    duplicates, conflicts = connection.execute(_DUPLICATES, {"source": source}).one()
    return SourceParticulars(
        partitions=[Partition(*row) for row in connection.execute(_PARTITIONS, {"source": source})],
        reasons=[Reason(*row) for row in connection.execute(_REASONS, given)],
        duplicates=duplicates,
        conflicts=conflicts,
    )
