"""The status for operators: the freshness of each view, the progress of each query, and the last rebuild."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from serving_layer.catalog import lookup
from serving_layer.change import previews
from serving_layer.change.previews import PreviewedView
from serving_layer.monitoring import alarms, delays
from serving_layer.monitoring.query_alarms import Thresholds, TopicState
from serving_layer.monitoring.view_states import ViewState, view_states
from serving_layer.narration import age
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import generation, rebuild
from serving_layer.postgres.states import GenerationState
from serving_layer.promise import progress, quarantine, skipping
from serving_layer.readers import rights
from view_algebra.language.quoting import quoted

COUNTS_AT_ONCE = 20


@dataclass(frozen=True)
class ViewStatus:
    """A view with the rows it serves now.

    provisional: cells that micro-batches have touched since the cut of the published generation
    """

    state: ViewState
    rows: int | None
    provisional: int | None

    @property
    def freshness(self) -> float | None:
        """Seconds for which it may lack a record. None until it has a generation that is read."""
        is_read = self.state.generation is not None or self.state.kind == "derived"
        return self.state.seconds_behind if is_read else None


@dataclass(frozen=True)
class QueryStatus:
    """A query.

    lag: an upper bound of the records behind. It counts offsets, and some of them are markers
    begins: the offsets at which partitions begin to count, for those that do not begin at 0
    bad_fields: records that count, with NULL for an unreadable field. They are in quarantine too
    skipped: records skipped by name. They are in quarantine too
    duplicates: records that are copies of a counted one
    conflicts: copies that differ from the counted record, and that a rebuild counts in its place
    problem: its alarms
    waits_for: the reason why records are not counted yet, if no alarm says it
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
    waits_for: str | None


@dataclass(frozen=True)
class GenerationStatus:
    """A generation whose tables exist. `published`: readers read it."""

    view: str
    generation: int
    state: GenerationState
    published: bool


@dataclass(frozen=True)
class Status:
    """Views, queries, generations, previews, the last rebuild, and the alarms.

    rebuild: the row of the newest rebuild, by column
    standby: seconds that this server is behind its primary, or None for a primary
    unguarded: protections that only a superuser can set up, and that are missing
    """

    views: list[ViewStatus]
    queries: list[QueryStatus]
    generations: list[GenerationStatus]
    rebuild: dict[str, Any] | None
    alarms: list[str]
    previews: list[PreviewedView]
    standby: float | None
    unguarded: list[str]


def status(
    connection: Connection, topics: Mapping[str, TopicState], thresholds: Thresholds, *, starting: bool
) -> Status:
    """The whole status in one snapshot. `topics` are those that the brokers reported, by query.

    `starting`: a speed layer runs but may not have begun to read.
    """
    problems = alarms.of_queries(connection, topics, thresholds)
    published = lookup.published(connection)
    existing = {opened.id: opened for opened in lookup.find(connection, generation.c.dropped_at.is_(None))}
    last = connection.execute(select(rebuild).order_by(rebuild.c.id.desc()).limit(1)).mappings().one_or_none()
    return Status(
        views=_views(connection, {name: existing[id] for name, id in published.items() if id in existing}),
        queries=_queries(connection, topics, problems, starting=starting),
        generations=[
            GenerationStatus(one.view, id, one.state, published.get(one.view) == id) for id, one in existing.items()
        ],
        rebuild=dict(last) if last else None,
        alarms=[*alarms.with_names(problems), *alarms.of_the_deployment(connection, thresholds)],
        previews=previews.listed(connection),
        standby=delays.behind_primary(connection),
        unguarded=rights.unguarded(connection),
    )


def _views(connection: Connection, shown: Mapping[str, lookup.Generation]) -> list[ViewStatus]:
    """The status of every view, by its published generation."""
    states = view_states(connection)
    rows = _counts(connection, {state.name: [f"analytics.{quoted(state.name)}"] for state in states if state.served})
    touched = {
        name: [f"{place} WHERE touched >= {one.id}" for place in one.places.values()] for name, one in shown.items()
    }
    provisional = _counts(connection, touched)
    return [ViewStatus(state, rows.get(state.name), provisional.get(state.name)) for state in states]


def _counts(connection: Connection, among: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """For each name, the rows that the texts after FROM count, in statements of `COUNTS_AT_ONCE` counts.

    Postgres holds the memory of all counts of a statement until it ends.
    """
    names, totals = list(among), dict.fromkeys(among, 0)
    counts = [
        f"SELECT {number} AS number, count(*) AS rows FROM {relation}"
        for number, several in enumerate(among.values())
        for relation in several
    ]
    for start in range(0, len(counts), COUNTS_AT_ONCE):
        for row in cells.run(connection, " UNION ALL ".join(counts[start : start + COUNTS_AT_ONCE])):
            totals[names[row.number]] += row.rows
    return totals


def _queries(
    connection: Connection, topics: Mapping[str, TopicState], problems: Mapping[str, list[str]], *, starting: bool
) -> list[QueryStatus]:
    """The status of each deployed source's query, with its problems."""
    starts, reached = progress.starts_by_query(connection, problems), progress.read_by_query(connection, problems)
    bad, bad_fields = quarantine.counts_by_source(connection)
    skipped = Counter(at.topic for at, _ in skipping.read(connection))
    queries = []
    for name, state in progress.queries(connection).items():
        if name not in problems:
            continue
        lag = delays.lag(topics[name].end, reached[name]) if name in topics else None
        waits = lag and not problems[name]
        queries.append(
            QueryStatus(
                query=name,
                topic=state.topic,
                begins=str(starts[name].positive),
                progress=str(reached[name]),
                lag=lag,
                committed_at=state.committed_at,
                quarantined=bad[name] - bad_fields[name],
                bad_fields=bad_fields[name],
                skipped=skipped[state.topic],
                duplicates=state.duplicates,
                conflicts=state.conflicts,
                writer=_writer(state, delays.silent(connection, state)),
                problem="; ".join(problems[name]) or None,
                waits_for=delays.waits_for(connection, name, starting=starting) if waits else None,
            )
        )
    return queries


def _writer(query: progress.RecordedQuery, silent: float | None) -> str | None:
    return query.writer if silent is None else f"{query.writer}, gone for {age(silent)}"
