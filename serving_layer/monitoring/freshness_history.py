"""Seconds behind by source, one row a minute, for a week. The console draws the last hour.

For each view with a target, one bit a minute says if it was met. Reading the share of a day reads one row.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

KEPT_DAYS = 7
"""A week has 10,080 rows, of some 30 bytes per source."""

_NOTE = text("""
INSERT INTO lamina.freshness_history (minute, behind)
SELECT date_trunc('minute', now()),
       jsonb_object_agg(source, round(seconds_behind::numeric, 1))
FROM lamina.ages WHERE seconds_behind IS NOT NULL
HAVING count(*) > 0
ON CONFLICT (minute) DO NOTHING
""")

_NOTE_TARGETS = text("""
INSERT INTO lamina.freshness_target AS noted (view, since, minute, met)
SELECT f.view, now.minute, now.minute, (f.seconds_behind <= f.fresh_within)::int::bit(1440)
FROM lamina.freshness AS f
CROSS JOIN (SELECT date_trunc('minute', now()) AS minute) AS now
WHERE f.seconds_behind IS NOT NULL AND f.fresh_within IS NOT NULL
ON CONFLICT (view) DO UPDATE
SET minute = excluded.minute,
    met = noted.met << (extract(epoch FROM excluded.minute - noted.minute) / 60)::int | excluded.met
WHERE noted.minute < excluded.minute
""")

_FORGET_TARGETS = text("""
DELETE FROM lamina.freshness_target
WHERE view NOT IN (SELECT name FROM lamina.view WHERE fresh_within IS NOT NULL)
""")

_TRIM = text("""
DELETE FROM lamina.freshness_history WHERE minute < clock_timestamp() - make_interval(days => :days)
""")


def note(connection: Connection) -> None:
    """Records each source's seconds behind and each view's met target, unless this minute has a row.

    Deletes rows older than `KEPT_DAYS`, and those of views that no longer have a target.
    """
    if connection.execute(_NOTE).rowcount:
        connection.execute(_NOTE_TARGETS)
        connection.execute(_FORGET_TARGETS)
    connection.execute(_TRIM, {"days": KEPT_DAYS})
