"""Physical standbys for readers, and how far they are behind their primary, as either server sees it.

A standby shows what the primary showed some moments ago. It is as consistent, because views, offsets and receipts come
from one log. Nothing writes there, and it does not see locks of the primary's sessions.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from serving_layer.narration import duration, size

_BEHIND = text("""
SELECT CASE
  WHEN NOT pg_is_in_recovery() THEN NULL
  WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() AND EXISTS (SELECT FROM pg_stat_wal_receiver) THEN 0
  ELSE extract(epoch FROM clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))
END::float8, EXISTS (SELECT FROM pg_stat_wal_receiver)
""")

_OF_STANDBYS = text("""
SELECT application_name, client_addr::text, extract(epoch FROM replay_lag)::float8 FROM pg_stat_replication
WHERE replay_lag > make_interval(secs => :seconds) ORDER BY pid
""")

_LEFT = text("""
SELECT slot_name::text, extract(epoch FROM clock_timestamp() - inactive_since)::float8,
  pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint
FROM pg_replication_slots
WHERE slot_type = 'physical' AND inactive_since < clock_timestamp() - make_interval(secs => :seconds)
  AND restart_lsn IS NOT NULL
ORDER BY slot_name
""")


def behind(connection: Connection) -> float | None:
    """Seconds that this server is behind its primary, 0 if it has replayed everything it received, None for a primary.

    If the primary cannot be reached, they count from the newest replayed transaction.
    """
    seconds: float | None = connection.execute(_BEHIND).one()[0]
    return seconds


def alarms(connection: Connection, seconds: float) -> list[str]:
    """The alarm of a standby that is more than `seconds` behind, or a primary's alarms about its standbys."""
    late, receives = connection.execute(_BEHIND).one()
    if late is not None:
        why = (
            "a long SELECT here may hold it back (`pg_stat_activity`; max_standby_streaming_delay bounds it)"
            if receives
            else "it does not reach its primary, and its log says why"
        )
        return [f"this server is a standby and {duration(late)} behind its primary: {why}"] if late > seconds else []
    late_standbys = [
        f"standby {name}{f' at {address}' if address else ''} is {duration(lag)} behind: its readers see older"
        " views (a long SELECT there may hold it back; `lamina status` there says more)"
        for name, address, lag in connection.execute(_OF_STANDBYS, {"seconds": seconds})
    ]
    return late_standbys + [
        f"replication slot {name} has had no standby for {duration(lasts)}, and keeps {size(bytes_kept)} of write-ahead"
        f" log: start its standby, or drop it (`SELECT pg_drop_replication_slot('{name}')`)"
        for name, lasts, bytes_kept in connection.execute(_LEFT, {"seconds": seconds})
    ]
