"""How far each source was behind, minute by minute, for a week: what a line over the last hour is drawn of."""

from __future__ import annotations

from sqlalchemy import Connection, text

KEPT_DAYS = 7
"""A week has 10,080 rows, of some 30 bytes per source."""

_NOTE = text("""
INSERT INTO lamina.freshness_history (minute, behind)
SELECT date_trunc('minute', clock_timestamp()),
       jsonb_object_agg(name, round(extract(epoch FROM clock_timestamp() - greatest(newest, caught_up_at)), 1))
FROM lamina.query WHERE greatest(newest, caught_up_at) IS NOT NULL
HAVING count(*) > 0
ON CONFLICT (minute) DO NOTHING
""")

_TRIM = text("""
DELETE FROM lamina.freshness_history WHERE minute < clock_timestamp() - make_interval(days => :days)
""")


def note(connection: Connection) -> None:
    """Keeps how far all sources are behind now, if nothing is kept of this minute; forgets what is too old."""
    connection.execute(_NOTE)
    connection.execute(_TRIM, {"days": KEPT_DAYS})
