"""Durations as text."""

from __future__ import annotations

import datetime as dt


def interval(length: dt.timedelta) -> str:
    """The duration as Postgres writes and reads it.

    >>> [interval(dt.timedelta(days=days, seconds=seconds)) for days, seconds in ((1, -5400), (0, -0.5), (2, 0))]
    ['22:30:00', '-00:00:00.5', '2 days']
    >>> interval(dt.timedelta(days=-1, seconds=-1)), interval(dt.timedelta(0))
    ('-1 days -00:00:01', '00:00:00')
    """
    sign, size = ("-", -length) if length < dt.timedelta(0) else ("", length)
    days = f"{sign}{size.days} day" + ("" if f"{sign}{size.days}" == "1" else "s") if size.days else ""
    minutes, seconds = divmod(size.seconds, 60)
    fraction = f".{size.microseconds:06d}".rstrip("0").rstrip(".")
    time = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}{fraction}"
    rest = size != dt.timedelta(size.days)
    return " ".join(part for part in (days, time if rest or not days else "") if part)
