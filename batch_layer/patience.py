"""Renewing views while people read them: many short tries."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from serving_layer.postgres.database import READER_PATIENCE_MS, Connection, Database, PostgresError, is_lock_timeout
from serving_layer.readers import rights, views
from serving_layer.readers.rights import Holder

T = TypeVar("T")

READERS_SECONDS = 900.0
"""Seconds that a computed version waits for readers who hold a view in a transaction: longer than a SELECT may take."""

READERS_SECONDS_AT_ONCE = 120.0
"""Seconds that a change waits for which nothing was computed."""

LONGER, MOST_MILLISECONDS = 1.15, 100.0
"""The factor by which each try waits longer for a view, from `READER_PATIENCE_MS` on, and the longest wait."""

AGAIN_SECONDS = 1.0
"""Seconds between two tries. Each try locks queries, so micro-batches continue in between."""

SETTLING_TRIES = 15
"""Tries to let views forget what they were before a move. Nobody waits for that."""


def patiently(
    database: Database,
    tell: Callable[[str], None],
    step: Callable[[Connection], T],
    *,
    within: float = READERS_SECONDS,
) -> T:
    """Renews views in a transaction, repeated for some seconds (`within`) while readers hold one of them.

    If all these readers run a SELECT, each try waits a little longer, and other readers behind it: with many short
    SELECTs, one of them always holds a view. Nobody waits behind a reader who is idle in a transaction.
    """
    deadline, is_first, milliseconds = time.monotonic() + within, True, float(READER_PATIENCE_MS)

    def tried(connection: Connection) -> T:
        return step(connection.execution_options(reader_patience_ms=round(milliseconds)))

    while True:
        try:
            return database.retrying(tried, patience=0.0)
        except PostgresError as error:
            if not is_lock_timeout(error) or time.monotonic() > deadline:
                raise
        with database.begin() as connection:
            holders = rights.in_the_way(connection)
        if is_first:
            tell("\n".join(["waiting for readers that hold a view in an open transaction", *map(str, holders)]))
        is_first, milliseconds = False, _next(milliseconds, holders)
        time.sleep(AGAIN_SECONDS)


def settle(database: Database) -> bool:
    """Lets views forget what they were before a move (`views.settle`), also views that are read all the time."""
    milliseconds = float(READER_PATIENCE_MS)
    for _ in range(SETTLING_TRIES):
        if views.settle(database, patience_ms=round(milliseconds)):
            return True
        with database.begin() as connection:
            milliseconds = _next(milliseconds, rights.in_the_way(connection))
        time.sleep(AGAIN_SECONDS)
    return False


def _next(milliseconds: float, holders: Sequence[Holder]) -> float:
    """The milliseconds that the next try waits for a view with these holders."""
    longer = all(holder.reads for holder in holders)
    return min(MOST_MILLISECONDS, milliseconds * LONGER) if longer else float(READER_PATIENCE_MS)
