"""Seconds behind by source, one row a minute, for a week. The console draws the last hour."""

from __future__ import annotations

from sqlalchemy import Connection, text

KEPT_DAYS = 7
"""A week has 10,080 rows, of some 30 bytes per source."""

_NOTE = text("""
INSERT INTO lamina.freshness_history (minute, behind)
SELECT date_trunc('minute', clock_timestamp()),
       jsonb_object_agg(source, round(seconds_behind::numeric, 1))
FROM lamina.ages WHERE seconds_behind IS NOT NULL
HAVING count(*) > 0
ON CONFLICT (minute) DO NOTHING
""")

_TRIM = text("""
DELETE FROM lamina.freshness_history WHERE minute < clock_timestamp() - make_interval(days => :days)
""")


def note(connection: Connection) -> None:
    """Inserts each source's seconds behind, unless this minute has a row. Deletes rows older than `KEPT_DAYS`."""
    connection.execute(_NOTE)
    connection.execute(_TRIM, {"days": KEPT_DAYS})


def is_late(seconds_behind: float | None, fresh_within: float | None) -> bool:
    """True if a view is further behind than its `fresh_within`.

    >>> is_late(6.0, 5.0), is_late(6.0, None), is_late(None, 5.0)
    (True, False, False)
    """
    return seconds_behind is not None and fresh_within is not None and seconds_behind > fresh_within
