"""Reads the facts that decide what a new catalog changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select, text

from serving_layer.catalog import lookup, versions
from serving_layer.postgres.bookkeeping import progress
from serving_layer.readers import dependents

COMPARABLE = 20
"""A rebuild predicts durations of up to this many times its own records. A smaller one mostly measures Spark's
start."""

_LARGEST_REBUILD = text("""
SELECT r.id, sum(c."offset" - p.start_offset)::bigint, extract(epoch FROM r.ended_at - r.started_at)::float8
FROM (SELECT * FROM lamina.rebuild WHERE state = 'done' ORDER BY id DESC LIMIT 10) AS r
JOIN lamina.generation AS g ON g.rebuild = r.id
JOIN lamina.cut AS c ON c.generation = g.id
JOIN lamina.progress AS p USING (query, topic, partition)
GROUP BY r.id, r.ended_at, r.started_at HAVING sum(c."offset" - p.start_offset) > 0
ORDER BY 2 DESC, 1 DESC LIMIT 1
""")


@dataclass(frozen=True)
class MeasuredRebuild:
    """The offsets that a finished rebuild read, and the seconds that it ran."""

    rebuild: int
    offsets: int
    seconds: float

    def seconds_for(self, records: int) -> float | None:
        """Predicted seconds for this many records, or None if the rebuild was too small.

        >>> MeasuredRebuild(3, offsets=1_000, seconds=20.0).seconds_for(2_000)
        40.0
        >>> MeasuredRebuild(3, offsets=5, seconds=20.0).seconds_for(2_000) is None
        True
        """
        return self.seconds * records / self.offsets if records <= COMPARABLE * self.offsets else None


@dataclass(frozen=True)
class Facts:
    """The facts about a database, other than its catalog, that decide what a new catalog changes.

    counted: per query, the offsets below its progress
    kept: the live unpublished versions of views, for a return or a preview, each with its generation
    measured: the largest rebuild
    sizes: bytes of the published cells of each view
    others: per view, other roles' relations that read it, directly or through our views, and block a drop
    droppable: per view, relations in analysts' schemas, which an apply may drop
    previewed: per view name, the previews with such a view
    reading: per source, the previews with a view that it feeds
    sparks: per view, the version of Spark that computed it
    """

    counted: Mapping[str, int] = field(default_factory=dict)
    kept: Mapping[tuple[str, str], int] = field(default_factory=dict)
    measured: MeasuredRebuild | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    droppable: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    previewed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reading: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sparks: Mapping[str, str] = field(default_factory=dict)

    @property
    def with_records(self) -> set[str]:
        """The queries with counted records. A view that is new to them lacks these records."""
        return {name for name, offsets in self.counted.items() if offsets}


def read(connection: Connection) -> Facts:
    """The facts about the deployed database."""
    blocking, droppable = dependents.of_others(connection)
    counted = select(progress.c.query, func.sum(progress.c.next_offset - progress.c.start_offset))
    return Facts(
        counted={name: int(offsets) for name, offsets in connection.execute(counted.group_by(progress.c.query))},
        kept=versions.kept_or_previewed(connection),
        measured=largest_rebuild(connection),
        sizes=lookup.sizes(connection),
        sparks=lookup.sparks(connection),
        others=blocking,
        droppable=droppable,
        previewed=lookup.previewed_views(connection),
        reading=lookup.previewed_sources(connection),
    )


def largest_rebuild(connection: Connection) -> MeasuredRebuild | None:
    """The rebuild that read the most offsets, among the newest ten that succeeded. A small one measures Spark's start.

    The offsets below its cut count once for each view.
    """
    row = connection.execute(_LARGEST_REBUILD).one_or_none()
    return None if row is None else MeasuredRebuild(*row)
