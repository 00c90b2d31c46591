"""Delays: the reason why records are not counted yet, the age of each writer's heartbeat, and the lag of a standby.

A standby shows what its primary showed some moments ago. It is as consistent, because views, offsets and receipts come
from one log. Nothing writes there, and it does not see locks of the primary's sessions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, column, func, select, table, text

from master_log.offsets import OffsetRange, Offsets
from master_log.reading.log_times import RAW_LOG_TIME
from serving_layer.catalog.deployed import kinds_of_sources, sources
from serving_layer.postgres.bookkeeping import query
from serving_layer.postgres.states import WriterKind
from serving_layer.promise import progress

GONE_AFTER = 30.0
"""Seconds without a heartbeat after which a writer is gone. It sends one a second (`speed_layer/layer.py`)."""

BEATS_MISSED = 8.0
"""Seconds without a heartbeat after which `status` mentions it."""

_AGES = table("ages", column("source"), column("heard_age"), schema="lamina")

_BEHIND = text("""
SELECT CASE
  WHEN NOT pg_is_in_recovery() THEN NULL
  WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() AND EXISTS (SELECT FROM pg_stat_wal_receiver) THEN 0
  ELSE extract(epoch FROM clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))
END::float8, EXISTS (SELECT FROM pg_stat_wal_receiver)
""")


class Ages(NamedTuple):
    """Seconds since events of a query, and its backlog.

    since_heard: since the writer's last heartbeat or commit
    since_moved: since progress moved or was at the end
    since_shrunk: since the backlog shrank
    backlog: the records that wait
    """

    since_heard: float | None
    since_moved: float
    since_shrunk: float | None
    backlog: int | None


def ages(connection: Connection, name: str) -> Ages:
    """The present ages of a query."""
    since_heard = select(_AGES.c.heard_age).where(_AGES.c.source == name).scalar_subquery()
    moved_at = func.greatest(query.c.committed_at, query.c.caught_up_at, query.c.created_at)
    since = (func.extract("epoch", func.clock_timestamp() - time) for time in (moved_at, query.c.waiting_at))
    row = select(since_heard, *since, query.c.waiting).where(query.c.name == name)
    return Ages(*connection.execute(row).one())


def silent(connection: Connection, state: progress.RecordedQuery) -> float | None:
    """Seconds since the last heartbeat of a query's writer if it is gone, else None. A leap sends no heartbeats."""
    return gone_for(state, ages(connection, state.name).since_heard)


def gone_for(state: progress.RecordedQuery, since_heard: float | None) -> float | None:
    """`since_heard` if the query's writer is gone, else None."""
    return since_heard if since_heard is not None and since_heard > GONE_AFTER and state.is_read else None


def sources_of(connection: Connection, views: Collection[str]) -> list[str]:
    """The queries that feed these views, directly or through other views."""
    rows = connection.execute(text("SELECT DISTINCT view, source FROM lamina.offsets ORDER BY source"))
    return list(dict.fromkeys(source for view, source in rows if view in views))


def waits_for(connection: Connection, name: str, *, starting: bool) -> str | None:
    """The reason why records of a topic are not counted yet. None if they are about to be, or if an alarm says why.

    `starting`: a speed layer runs but may not have begun to read.
    """
    queries = progress.queries(connection)
    state = queries[name]
    if state.stopped or state.writer_kind is WriterKind.LEAP or name not in kinds_of_sources(connection):
        return None
    reads_on = state.is_read and silent(connection, state) is None
    if (reads_on or starting) and _lacks_log_times(connection, name):
        return "the speed layer reads the log once, for log times of older records"
    if not reads_on:
        return "the speed layer is starting" if starting else "no speed layer runs (`lamina up`, or `lamina speed`)"
    since_heard = ages(connection, name).since_heard
    if since_heard is not None and since_heard > BEATS_MISSED:
        return f"the speed layer has sent no heartbeat for {since_heard:.0f} s (`lamina status` names its process)"
    if state.committed_at is None:
        has_begun = any(other.writer == state.writer and other.committed_at for other in queries.values())
        return "the speed layer counts its first records" if has_begun else "the speed layer is starting"
    since_caught_up = func.extract("epoch", func.clock_timestamp() - query.c.caught_up_at)
    late = connection.execute(select(since_caught_up).where(query.c.name == name)).scalar()
    return "the speed layer is catching up" if late is None or late > 2 * progress.WAITS_AFTER else None


def _lacks_log_times(connection: Connection, name: str) -> bool:
    """True if a table's records were counted without log times: by a leap, or by an older Lamina."""
    return progress.lacks_log_times(connection, name) and RAW_LOG_TIME in sources(connection)[name].parse


def lag(end: Offsets, reached: Offsets) -> int:
    """An upper bound of the records between progress and the end. It counts offsets, and some of them are markers."""
    return OffsetRange.since(reached, end).size


class Standby(NamedTuple):
    """A standby's delay.

    behind: seconds that it is behind its primary
    receives: it is connected to its primary
    """

    behind: float
    receives: bool


def standby(connection: Connection) -> Standby | None:
    """The delay of this server, or None for a primary. It is 0 if the standby has replayed everything it received.

    If the primary cannot be reached, the seconds count from the newest replayed transaction.
    """
    behind, receives = connection.execute(_BEHIND).one()
    return None if behind is None else Standby(behind, receives)


def behind_primary(connection: Connection) -> float | None:
    """Seconds that this server is behind its primary, or None for a primary."""
    delay = standby(connection)
    return None if delay is None else delay.behind
