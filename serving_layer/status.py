"""What operators ask first: is every view fresh, is every query moving, what did the last rebuild find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, text

from serving_layer import alarms, lookup, previews, progress, quarantine, skipping, standbys
from serving_layer.alarms import Limits, Topic
from serving_layer.bookkeeping import generation, proof, rebuild, view
from serving_layer.previews import PreviewedView
from view_algebra.language.quoting import quoted


@dataclass(frozen=True)
class ViewStatus:
    """A view: rows as they are served now; `freshness` is for how many seconds it may lack a record.

    fresh_within: the seconds that it may be behind, if its declaration says so.
    provisional: cells that realtime has touched since the cut of the generation that is read.
    """

    view: str
    kind: str
    rows: int | None
    generation: int | None
    freshness: float | None
    provisional: int | None
    proof: str | None
    fresh_within: float | None


@dataclass(frozen=True)
class QueryStatus:
    """A query: `lag` is an upper bound of the records behind (offsets, which markers take too).

    begins: the offsets below which records are not part of the source, of the partitions that do not begin at 0.
    bad_fields: records that count, with NULL for a field that could not be read; quarantine keeps them, too.
    skipped: records that were skipped by name; they are in quarantine, too. duplicates: records that are copies of a
    counted one; conflicts: those of them that would have counted in its place in a rebuild, and differ.
    """

    query: str
    topic: str
    begins: str
    progress: str
    lag: int | None
    committed_at: datetime | None
    quarantined: int
    bad_fields: int
    skipped: int
    duplicates: int
    conflicts: int
    writer: str | None
    problem: str | None


@dataclass(frozen=True)
class Status:
    """Views, queries, generations, previews, the last rebuild, and what needs attention.

    standby: seconds that this server is behind its primary; None if it is the primary.
    """

    views: list[ViewStatus]
    queries: list[QueryStatus]
    generations: list[dict[str, Any]]
    rebuild: dict[str, Any] | None
    alarms: list[str]
    previews: list[PreviewedView]
    standby: float | None


def status(connection: Connection, topics: Mapping[str, Topic], limits: Limits) -> Status:
    """All of it in one snapshot; `topics` are what the brokers hold, by query (missing when away)."""
    problems = alarms.by_query(connection, topics, limits)
    published = lookup.published(connection)
    live = {each.id: each for each in lookup.find(connection, generation.c.dropped_at.is_(None))}
    last = connection.execute(select(rebuild).order_by(rebuild.c.id.desc()).limit(1)).mappings().one_or_none()
    return Status(
        views=[
            _view(connection, row, live.get(published.get(row.name, -1)))
            for row in connection.execute(select(view).order_by(view.c.position)).all()
        ],
        queries=[
            _query(connection, query, topics.get(name), problems[name])
            for name, query in progress.queries(connection).items()
            if name in problems
        ],
        generations=[
            {"view": each.view, "generation": each.id, "state": each.state, "published": published.get(each.view) == id}
            for id, each in live.items()
        ],
        rebuild=dict(last) if last else None,
        alarms=[*alarms.listed(problems), *alarms.of_everything(connection, limits)],
        previews=previews.listed(connection),
        standby=standbys.behind(connection),
    )


def _view(connection: Connection, row: Any, now: lookup.Generation | None) -> ViewStatus:
    served = f"SELECT count(*) FROM analytics.{quoted(row.name)}"
    rows = connection.execute(text(served)).scalar_one() if row.served else None
    behind, target = connection.execute(
        text("SELECT seconds_behind, fresh_within FROM lamina.freshness WHERE view = :name"), {"name": row.name}
    ).one()
    if now is None:
        return ViewStatus(row.name, row.kind, rows, None, behind if row.kind == "derived" else None, None, None, target)
    provisional = sum(
        connection.execute(text(f"SELECT count(*) FROM {place} WHERE touched >= {now.id}")).scalar_one()
        for place in now.places.values()
    )
    proved = connection.execute(
        select(proof).where(proof.c.view == row.name).order_by(proof.c.proved_at.desc()).limit(1)
    ).one_or_none()
    said = f"{proved.cells:,} cells compared, {proved.differing:,} differ" if proved else None
    return ViewStatus(row.name, row.kind, rows, now.id, behind, provisional, said, target)


def _query(connection: Connection, query: progress.Query, topic: Topic | None, problems: list[str]) -> QueryStatus:
    reached = progress.read(connection, [query.name])
    bad_fields = quarantine.with_bad_fields(connection, query.name)
    gone = alarms.silent(connection, query)
    return QueryStatus(
        query=query.name,
        topic=query.topic,
        begins=str(progress.starts(connection, [query.name]).positive),
        progress=str(reached),
        lag=None if topic is None else alarms.lag(topic.end, reached),
        committed_at=query.committed_at,
        quarantined=quarantine.counted(connection, query.name) - bad_fields,
        bad_fields=bad_fields,
        skipped=sum(at.topic == query.topic for at, _ in skipping.read(connection)),
        duplicates=query.duplicates,
        conflicts=query.conflicts,
        writer=query.writer if gone is None else f"{query.writer}, gone for {alarms.age(gone)}",
        problem="; ".join(problems) or None,
    )
