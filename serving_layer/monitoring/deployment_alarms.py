"""The alarms of the whole deployment: each function returns sentences about views, rebuilds, checks or sessions."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, func, select, text

from serving_layer.catalog import lookup
from serving_layer.change import view_checks
from serving_layer.monitoring import delays
from serving_layer.monitoring.query_alarms import Thresholds
from serving_layer.narration import age, size
from serving_layer.postgres.database import FOREIGN_SNAPSHOT
from serving_layer.postgres.states import RebuildKind, RebuildState
from serving_layer.promise import proof, rebuilds
from serving_layer.promise.rebuilds import Rebuild
from serving_layer.readers import rights
from serving_layer.readers.views import ANALYST
from serving_layer.upkeep import indexes

LEFT_AFTER = 3600.0
"""Seconds since the last step of a scheduler's rebuild. No step on any measured data takes that long."""

SNAPSHOT_SECONDS = 3600.0
"""Seconds for which another session may hold a snapshot."""

SHOWN = 5
"""Settings that an alarm names."""

_LATE_STANDBYS = text("""
SELECT application_name, client_addr::text, extract(epoch FROM replay_lag)::float8 FROM pg_stat_replication
WHERE replay_lag > make_interval(secs => :seconds) ORDER BY pid
""")

_UNUSED_SLOTS = text("""
SELECT slot_name::text, extract(epoch FROM clock_timestamp() - inactive_since)::float8,
  pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint
FROM pg_replication_slots
WHERE slot_type = 'physical' AND inactive_since < clock_timestamp() - make_interval(secs => :seconds)
  AND restart_lsn IS NOT NULL
ORDER BY slot_name
""")


def missed_targets(connection: Connection, _: Thresholds) -> list[str]:
    """The views that exceed their `fresh_within`. A source that was never counted is as far behind as it is old."""
    late = text("""
        SELECT f.view, coalesce(f.seconds_behind, never.seconds), f.fresh_within, never.sources
        FROM lamina.freshness AS f
        CROSS JOIN LATERAL (
            SELECT string_agg(q.name, ', ' ORDER BY q.name) AS sources,
                extract(epoch FROM clock_timestamp() - min(q.created_at))::float8 AS seconds
            FROM (SELECT DISTINCT source FROM lamina.offsets WHERE view = f.view) AS o
            JOIN lamina.query AS q ON q.name = o.source
            WHERE f.seconds_behind IS NULL AND greatest(q.newest, q.caught_up_at) IS NULL
        ) AS never
        WHERE f.fresh_within < coalesce(f.seconds_behind, never.seconds)
        ORDER BY f.view
    """)
    return [
        f"{name}: {age(behind)} behind{f', because {never} was never counted' if never else ''}, and its fresh_within"
        f" is {age(target)}: `lamina status` says whether its sources are read, and how far they lag (a speed layer"
        " that runs and lags needs more cores or fewer views)"
        for name, behind, target, never in connection.execute(late)
    ]


def failed_rebuilds(connection: Connection, _: Thresholds) -> list[str]:
    """The rebuilds that failed by themselves and have a view that no later rebuild has computed."""
    alarms = []
    for id, step, kind, error in connection.execute(text(f"{rebuilds.FAILED_REBUILDS} ORDER BY id")):
        again = "the same `lamina apply`" if kind == RebuildKind.APPLY else "`lamina rebuild`"
        alarms.append(f"rebuild {id} failed after step `{step}`: {error} ({again} begins again)")
    return alarms


def abandoned_rebuild(connection: Connection, _: Thresholds) -> list[str]:
    """The alarm that a running rebuild died or was left by its scheduler."""
    newest = rebuilds.newest(connection)
    if (
        newest is None
        or newest.state is not RebuildState.RUNNING
        or not (reason := _reason_it_stopped(connection, newest))
    ):
        return []
    command = newest.purpose.command
    resume = f"repeat the `lamina {command}` that began it" if command else "continue its steps"
    abandon = f"`lamina step abandon --rebuild {newest.id}`, which loses nothing"
    return [f"rebuild {newest.id} {reason} after step `{newest.step}`: {resume}, or {abandon}"]


def overdue_rebuild(connection: Connection, thresholds: Thresholds) -> list[str]:
    """The alarm that no rebuild of declared versions has succeeded for too long."""
    if thresholds.rebuild_within is None:
        return []
    overdue = text(f"""
        SELECT extract(epoch FROM clock_timestamp() - coalesce(({rebuilds.LAST_SUCCESS}), min(created_at)))
        FROM lamina.query
        HAVING EXISTS (SELECT FROM lamina.view WHERE kind <> 'derived')
    """)
    seconds = connection.execute(overdue).scalar_one_or_none()
    if seconds is None or seconds <= thresholds.rebuild_within * 3600:
        return []
    return [f"no rebuild has succeeded for {age(float(seconds))}: run `lamina rebuild`, and see its schedule"]


def failed_checks(connection: Connection, _: Thresholds) -> list[str]:
    """The alarms about new generations held back by a proof or a check, and about live views that fail a check."""
    alarms = []
    for id, generations in lookup.generations_held_by_rebuilds(connection).items():
        alarms += [
            f"{verdict.sentence}: rebuild {id} holds {_them(held)} back (correct what fails, and `lamina rebuild`; or"
            f" let {_them(held)} be read, `lamina step hand-over --anyway {' '.join(held)} --rebuild {id}`)"
            for verdict, held in view_checks.blocking(connection, id, [generation.view for generation in generations])
        ]
        alarms += [
            f"{name}: its proof found a difference, and rebuild {id} holds it back (`lamina check {name}` says"
            f" which is wrong; `lamina step hand-over --anyway {name} --rebuild {id}` lets the new one be read)"
            for name in proof.unproven_views(connection, generations)
        ]
    live = [verdict for verdict in view_checks.results(connection, None) if verdict.blocked]
    return alarms + [
        f"{verdict.sentence}: readers see this now (`lamina check --live` runs it again)" for verdict in live
    ]


def _them(views: Collection[str]) -> str:
    return "it" if len(views) == 1 else "them"


def changed_settings(connection: Connection, _: Thresholds) -> list[str]:
    """The alarm that the settings of the shared login were changed."""
    foreign = rights.foreign_settings(connection, ANALYST)
    if not foreign:
        return []
    listed = ", ".join(map(str, foreign[:SHOWN])) + (" …" if len(foreign) > SHOWN else "")
    alarm = (
        f"the role {ANALYST} has settings that Lamina did not set, and each of its sessions begins with them: {listed}"
        f" (`lamina apply` resets them; every user of the login {ANALYST} can set them, so give each person a login of"
        " their own: `lamina login NAME`)"
    )
    return [alarm]


def unbuilt_indexes(connection: Connection, _: Thresholds) -> list[str]:
    """The alarms about declared indexes that are not built."""
    return [
        f"{view}: a declared index ('index') is not built ({reason}): readers continue without it (`lamina maintain`"
        " builds it, or leave its column out of 'index' and apply)"
        for view, reason in indexes.unbuilt(connection).items()
    ]


def old_snapshots(connection: Connection, _: Thresholds) -> list[str]:
    """The alarm that another session has held a snapshot for long. Our own commands may hold one, and end."""
    rows = connection.execute(
        text(f"""
            SELECT pid, usename, extract(epoch FROM clock_timestamp() - xact_start)::float8
            FROM pg_stat_activity
            WHERE {FOREIGN_SNAPSHOT} AND xact_start < clock_timestamp() - make_interval(secs => :seconds)
            ORDER BY xact_start LIMIT 3
        """),
        {"seconds": SNAPSHOT_SECONDS},
    )
    return [
        f"a session of {login} has held a snapshot for {age(seconds)}: until its transaction ends, no vacuum removes"
        f" rows, and reading becomes slower (`SELECT pg_terminate_backend({pid})` ends it)"
        for pid, login, seconds in rows
    ]


def late_standbys(connection: Connection, thresholds: Thresholds) -> list[str]:
    """The alarm of a standby that is too far behind, or a primary's alarms about its standbys."""
    seconds, here = thresholds.after, delays.standby(connection)
    if here is not None:
        why = (
            "a long SELECT here may hold it back (`pg_stat_activity`; max_standby_streaming_delay bounds it)"
            if here.receives
            else "it does not reach its primary, and its log says why"
        )
        alarm = f"this server is a standby and {age(here.behind)} behind its primary: {why}"
        return [alarm] if here.behind > seconds else []
    lagging = [
        f"standby {name}{f' at {address}' if address else ''} is {age(lag)} behind: its readers see older"
        " views (a long SELECT there may hold it back; `lamina status` there says more)"
        for name, address, lag in connection.execute(_LATE_STANDBYS, {"seconds": seconds})
    ]
    return lagging + [
        f"replication slot {name} has had no standby for {age(lasts)}, and keeps {size(bytes_kept)} of write-ahead"
        f" log: start its standby, or drop it (`SELECT pg_drop_replication_slot('{name}')`)"
        for name, lasts, bytes_kept in connection.execute(_UNUSED_SLOTS, {"seconds": seconds})
    ]


def _reason_it_stopped(connection: Connection, newest: Rebuild) -> str | None:
    """The reason why a running rebuild has stopped: it died or was left. None if it is alive, or a person stopped it.

    A standby does not see a process' lock, so there a rebuild counts as alive.
    """
    if newest.lease_until is None:
        alive = rebuilds.is_run_by_a_process(connection) or delays.standby(connection) is not None
        return None if alive or newest.stopped else "died"
    idle = func.extract("epoch", func.clock_timestamp() - newest.lease_until) + rebuilds.LEASE.total_seconds()
    seconds = float(connection.execute(select(idle)).scalar_one())
    return f"was left {age(seconds)} ago" if seconds > LEFT_AFTER else None
