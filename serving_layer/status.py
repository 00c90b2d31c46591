"""What operators ask first: is every view fresh, is every query moving, what did the last rebuild find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select, text

from master_log.offsets import Offsets, TopicPartition
from serving_layer import generations, progress
from serving_layer.bookkeeping import archived, generation, proof, quarantine, rebuild, view
from serving_layer.views import quoted


@dataclass(frozen=True)
class ViewStatus:
    """A view: rows as they are served now; `freshness` is for how many seconds it may lack a record.

    provisional: cells that realtime has touched since the cut of the generation that is read.
    """

    view: str
    kind: str
    rows: int | None
    generation: int | None
    freshness: float | None
    provisional: int | None
    proof: str | None


@dataclass(frozen=True)
class QueryStatus:
    """A query: `lag` is an upper bound of the records behind (offsets, which markers take too)."""

    query: str
    topic: str
    progress: str
    lag: int | None
    committed_at: datetime | None
    quarantined: int
    writer: str | None
    problem: str | None


@dataclass(frozen=True)
class Status:
    """Views, queries, generations and the last rebuild."""

    views: list[ViewStatus]
    queries: list[QueryStatus]
    generations: list[dict[str, Any]]
    rebuild: dict[str, Any] | None

    @property
    def alarms(self) -> list[str]:
        """What needs a person."""
        return [_alarm(query.query, query.problem) for query in self.queries if query.problem]


def alarms(connection: Connection, earliest: Mapping[str, Offsets]) -> list[str]:
    """What needs a person, without counting anything; `earliest` as for `status`."""
    problems = {query.name: _problem(connection, query, earliest.get(query.name)) for query in _moving(connection)}
    return [_alarm(name, problem) for name, problem in problems.items() if problem]


def _alarm(query: str, problem: str) -> str:
    return f"{query}: {problem}"


def _moving(connection: Connection) -> list[progress.Query]:
    """The queries that read a topic."""
    return [query for name, query in progress.queries(connection).items() if progress.read(connection, [name])]


def status(connection: Connection, ends: Mapping[str, Offsets], earliest: Mapping[str, Offsets]) -> Status:
    """All of it in one snapshot; `ends` and `earliest` are what the brokers hold, by query (missing when away)."""
    published = generations.published(connection)
    live = {each.id: each for each in generations.find(connection, generation.c.dropped_at.is_(None))}
    last = connection.execute(select(rebuild).order_by(rebuild.c.id.desc()).limit(1)).mappings().one_or_none()
    return Status(
        views=[
            _view(connection, row, live.get(published.get(row.name, -1)))
            for row in connection.execute(select(view).order_by(view.c.position)).all()
        ],
        queries=[
            _query(connection, query, ends.get(query.name), earliest.get(query.name)) for query in _moving(connection)
        ],
        generations=[
            {"view": each.view, "generation": each.id, "state": each.state, "published": published.get(each.view) == id}
            for id, each in live.items()
        ],
        rebuild=dict(last) if last else None,
    )


def _view(connection: Connection, row: Any, now: generations.Generation | None) -> ViewStatus:
    served = f"SELECT count(*) FROM analytics.{quoted(row.name)}"
    rows = connection.execute(text(served)).scalar_one() if row.served else None
    if now is None:
        return ViewStatus(row.name, row.kind, rows, None, None, None, None)
    provisional = sum(
        connection.execute(text(f"SELECT count(*) FROM {place} WHERE touched >= {now.id}")).scalar_one()
        for place in now.places.values()
    )
    behind = connection.execute(
        text("SELECT seconds_behind FROM lamina.freshness WHERE view = :name"), {"name": row.name}
    ).scalar()
    proved = connection.execute(
        select(proof).where(proof.c.view == row.name).order_by(proof.c.proved_at.desc()).limit(1)
    ).one_or_none()
    said = f"{proved.cells:,} cells compared, {proved.differing:,} differ" if proved else None
    return ViewStatus(row.name, row.kind, rows, now.id, behind, provisional, said)


def _query(connection: Connection, query: progress.Query, end: Offsets | None, first: Offsets | None) -> QueryStatus:
    reached = progress.read(connection, [query.name])
    bad = select(func.count()).select_from(quarantine).where(quarantine.c.topic == query.topic)
    return QueryStatus(
        query=query.name,
        topic=query.topic,
        progress=str(reached),
        lag=None if end is None else sum(max(0, end[at] - reached.get(at, 0)) for at in end),
        committed_at=query.committed_at,
        quarantined=connection.execute(bad).scalar_one(),
        writer=query.writer,
        problem=_problem(connection, query, first),
    )


def _problem(connection: Connection, query: progress.Query, first: Offsets | None) -> str | None:
    return query.stopped or _lost(connection, query.name, first)


def _lost(connection: Connection, name: str, first: Offsets | None) -> str | None:
    """The alarm that records left Kafka before they were archived: a rebuild would lack what realtime counted."""
    rows = connection.execute(
        select(archived.c.topic, archived.c.partition, archived.c.held).where(archived.c.query == name)
    ).all()
    held = progress.starts(connection, [name]).updated(
        {TopicPartition(topic, partition): offset for topic, partition, offset in rows}
    )
    gone = [(at, held[at], first[at]) for at in held if first and at in first and first[at] > held[at]]
    if not gone:
        return None
    at, kept, present = gone[0]
    return (
        f"records of {at.topic} partition {at.partition} from {kept} to {present} were removed by retention before they"
        " were archived: views still count them, a rebuild could not (`lamina archive --accept-loss` records the loss)"
    )
