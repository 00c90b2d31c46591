"""The bookkeeping behind the page of one view, one row or one source."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from serving_layer.postgres.phases import PHASES
from serving_layer.promise import progress, quarantine
from serving_layer.promise.progress import RecordedQuery

REASONS = 20
"""Newest reasons for quarantine that are shown."""

_PROOF_OF_GENERATION = "SELECT * FROM lamina.proof WHERE generation = g.id ORDER BY proved_at DESC LIMIT 1"

_GENERATIONS = text(f"""
SELECT g.id, g.version, g.state, p.generation IS NOT NULL AS published, g.rebuild, g.opened_at, g.live_at, g.shown_at,
       g.retired_at, f.cells AS compared, f.differing, f.against, f.proved_at
FROM lamina.generation AS g
LEFT JOIN lamina.publication AS p ON p.generation = g.id
LEFT JOIN LATERAL ({_PROOF_OF_GENERATION}) AS f ON true
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

_MINUTES = text("""
SELECT extract(epoch FROM clock_timestamp() - minute)::float8 AS ago, m.*
FROM lamina.micro_batch_seconds AS m
WHERE query = :source AND minute > clock_timestamp() - interval '1 hour'
ORDER BY minute
""")

_STEPS = text(f"""
SELECT h.at, h.query, h.partitions, h.first, h.next, h.view, h.generation, g.rebuild, r.leap, f.cells, f.differing
FROM lamina.history AS h
LEFT JOIN lamina.generation AS g ON g.id = h.generation
LEFT JOIN lamina.rebuild AS r ON r.id = g.rebuild
LEFT JOIN LATERAL ({_PROOF_OF_GENERATION}) AS f ON h.view IS NOT NULL
WHERE h.query = ANY (:sources) OR h.view = ANY (:views)
ORDER BY h.id DESC LIMIT :most
""")


@dataclass(frozen=True)
class Minute:
    """The micro-batches of a source in one minute, `ago` seconds ago, and their mean seconds by phase."""

    ago: float
    micro_batches: int
    means: Mapping[str, float]


@dataclass(frozen=True)
class HistoryRow:
    """A row of the history.

    query: its progress moved from `first` to below `next` in each of `partitions`
    view: it shows `generation` from this time on
    rebuild, leap: the origin of that generation
    compared, differing: cells of its proof
    """

    at: datetime
    query: str | None
    partitions: list[int] | None
    first: list[int] | None
    next: list[int] | None
    view: str | None
    generation: int | None
    rebuild: int | None
    leap: bool | None
    compared: int | None
    differing: int | None

    @property
    def offsets(self) -> str:
        """The counted offsets, the last ones included: `0:1-3 1:7`."""
        ranges = zip(self.partitions or (), self.first or (), self.next or (), strict=True)
        return " ".join(f"{at}:{a}" + (f"-{b - 1}" if b - a > 1 else "") for at, a, b in ranges)


@dataclass(frozen=True)
class GenerationRow:
    """A generation of a view and its newest proof: cells compared, cells differing, and the other generation."""

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
    """A partition of a source: its first offset, progress, and the offset below which it is archived."""

    partition: int
    start_offset: int
    next_offset: int
    archived: int
    archived_at: datetime | None


@dataclass(frozen=True)
class Reason:
    """A reason why records of a source went to quarantine, their number, and the times of the first and the last."""

    error: str
    records: int
    first: datetime
    last: datetime


@dataclass(frozen=True)
class SourceDetails:
    """The bookkeeping of one source.

    bad: records that went to quarantine
    minutes: the minutes of the last hour with a micro-batch, oldest first
    """

    query: RecordedQuery
    bad: int
    partitions: list[Partition]
    reasons: list[Reason]
    minutes: list[Minute]

    @property
    def counted(self) -> int:
        """Offsets below progress."""
        return sum(partition.next_offset - partition.start_offset for partition in self.partitions)


def generations(connection: Connection, view: str, most: int = 50) -> list[GenerationRow]:
    """The newest generations of a view, newest first, with dropped ones."""
    return [GenerationRow(*row) for row in connection.execute(_GENERATIONS, {"view": view, "most": most})]


def freshness_met(connection: Connection, view: str) -> list[tuple[str, float]]:
    """The shares of the last hour and day in which a view met its `fresh_within`. Empty if it has none."""
    met = text("SELECT span, met FROM lamina.freshness_met WHERE view = :view ORDER BY span DESC")
    return [(span, share) for span, share in connection.execute(met, {"view": view})]


def source_details(connection: Connection, source: str) -> SourceDetails | None:
    """The details of a source in the connection's snapshot, or None if no query has this name."""
    parameters = {"source": source, "most": REASONS}
    query = progress.queries(connection).get(source)
    if query is None:
        return None
    bad = quarantine.count(connection, source)
    partitions = [Partition(*values) for values in connection.execute(_PARTITIONS, parameters)]
    reasons = [Reason(*values) for values in connection.execute(_REASONS, parameters)]
    minutes = [
        Minute(sums["ago"], sums["micro_batches"], {name: sums[name] / sums["micro_batches"] for name in PHASES})
        for sums in connection.execute(_MINUTES, parameters).mappings()
    ]
    return SourceDetails(query, bad, partitions, reasons, minutes)


def steps(connection: Connection, sources: Collection[str], views: Collection[str], most: int) -> list[HistoryRow]:
    """The newest steps of the history of these sources and views, newest first."""
    parameters = {"sources": list(sources), "views": list(views), "most": most}
    return [HistoryRow(*row) for row in connection.execute(_STEPS, parameters)]
