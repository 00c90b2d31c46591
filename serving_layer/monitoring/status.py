"""What operators ask first: is every view fresh, is every query moving, what did the last rebuild find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, text

from serving_layer.catalog import lookup
from serving_layer.change import previews
from serving_layer.change.previews import PreviewedView
from serving_layer.monitoring import alarms, standbys
from serving_layer.monitoring.alarms import Limits, Topic
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import generation, rebuild, view
from serving_layer.promise import progress, quarantine, skipping
from view_algebra.language.quoting import quoted

COUNTS_AT_ONCE = 20

_FRESHNESS = text("SELECT view, seconds_behind, fresh_within FROM lamina.freshness")
_NEWEST_PROOFS = text(
    "SELECT DISTINCT ON (view) view, cells, differing FROM lamina.proof ORDER BY view, proved_at DESC"
)


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
        views=_views(connection, {name: live[id] for name, id in published.items() if id in live}),
        queries=_queries(connection, topics, problems),
        generations=[
            {"view": each.view, "generation": each.id, "state": each.state, "published": published.get(each.view) == id}
            for id, each in live.items()
        ],
        rebuild=dict(last) if last else None,
        alarms=[*alarms.listed(problems), *alarms.of_everything(connection, limits)],
        previews=previews.listed(connection),
        standby=standbys.behind(connection),
    )


def _views(connection: Connection, shown: Mapping[str, lookup.Generation]) -> list[ViewStatus]:
    """Every view, by the generation that it is read from."""
    views = connection.execute(select(view).order_by(view.c.position)).all()
    rows = _counts(connection, {each.name: [f"analytics.{quoted(each.name)}"] for each in views if each.served})
    touched = {
        name: [f"{place} WHERE touched >= {each.id}" for place in each.places.values()] for name, each in shown.items()
    }
    provisional = _counts(connection, touched)
    freshness = {row.view: row for row in connection.execute(_FRESHNESS)}
    proofs = {
        row.view: f"{row.cells:,} cells compared, {row.differing:,} differ"
        for row in connection.execute(_NEWEST_PROOFS)
        if row.view in shown
    }
    return [
        ViewStatus(
            view=each.name,
            kind=each.kind,
            rows=rows.get(each.name),
            generation=shown[each.name].id if each.name in shown else None,
            freshness=freshness[each.name].seconds_behind if each.name in shown or each.kind == "derived" else None,
            provisional=provisional.get(each.name),
            proof=proofs.get(each.name),
            fresh_within=freshness[each.name].fresh_within,
        )
        for each in views
    ]


def _counts(connection: Connection, among: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """For each name, the rows of what stands after FROM, in statements of some counts each.

    Postgres holds the memory of all counts of a statement until its end.
    """
    names, found = list(among), dict.fromkeys(among, 0)
    counts = [
        f"SELECT {number} AS number, count(*) AS rows FROM {each}"
        for number, several in enumerate(among.values())
        for each in several
    ]
    for start in range(0, len(counts), COUNTS_AT_ONCE):
        for row in cells.run(connection, " UNION ALL ".join(counts[start : start + COUNTS_AT_ONCE])):
            found[names[row.number]] += row.rows
    return found


def _queries(
    connection: Connection, topics: Mapping[str, Topic], problems: Mapping[str, list[str]]
) -> list[QueryStatus]:
    """The queries of deployed sources, with their problems."""
    starts, reached = progress.starts_of_each(connection, problems), progress.of_each(connection, problems)
    bad, bad_fields = quarantine.counted_by_source(connection)
    skipped = Counter(at.topic for at, _ in skipping.read(connection))
    return [
        QueryStatus(
            query=name,
            topic=each.topic,
            begins=str(starts[name].positive),
            progress=str(reached[name]),
            lag=alarms.lag(topics[name].end, reached[name]) if name in topics else None,
            committed_at=each.committed_at,
            quarantined=bad[name] - bad_fields[name],
            bad_fields=bad_fields[name],
            skipped=skipped[each.topic],
            duplicates=each.duplicates,
            conflicts=each.conflicts,
            writer=_writer(each, alarms.silent(connection, each)),
            problem="; ".join(problems[name]) or None,
        )
        for name, each in progress.queries(connection).items()
        if name in problems
    ]


def _writer(query: progress.Query, silent: float | None) -> str | None:
    return query.writer if silent is None else f"{query.writer}, gone for {alarms.age(silent)}"
