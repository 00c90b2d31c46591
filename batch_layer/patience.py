"""Views are renewed while people read them: tries that are short, and as many as it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from serving_layer.postgres.database import READER_PATIENCE_MS, Connection, Database, PostgresError, is_lock_timeout
from serving_layer.readers import rights, views
from serving_layer.readers.rights import Holder

T = TypeVar("T")

READERS_SECONDS = 900.0
"""How long a computed version waits for readers who hold a view in a transaction: longer than a SELECT may take."""

READERS_SECONDS_AT_ONCE = 120.0
"""The same, of a change for which nothing was computed."""

LONGER, MOST_MILLISECONDS = 1.15, 100.0
"""By how much each try waits longer for a view, from `READER_PATIENCE_MS` on, and how long it waits at the most."""

AGAIN_SECONDS = 1.0
"""Between two tries, in which micro-batches go on: each try locks their queries."""

SETTLING_TRIES = 15
"""How often views are to forget what they were before a move, where somebody waits neither for it nor behind it."""


def patiently(
    database: Database,
    tell: Callable[[str], None],
    step: Callable[[Connection], T],
    *,
    within: float = READERS_SECONDS,
) -> T:
    """Renews views in a transaction, tried again for so many seconds while readers hold one of them.

    Where all of them run a SELECT, each try waits a little longer, and others behind it: of many short ones at a time,
    one always holds a view. Nobody waits behind a reader who is idle in a transaction.
    """
    deadline, told, milliseconds = time.monotonic() + within, False, float(READER_PATIENCE_MS)

    def tried(connection: Connection) -> T:
        return step(connection.execution_options(reader_patience_ms=round(milliseconds)))

    while True:
        try:
            return database.retrying(tried, patience=0.0)
        except PostgresError as error:
            if not is_lock_timeout(error) or time.monotonic() > deadline:
                raise
        with database.begin() as connection:
            found = rights.in_the_way(connection)
        if not told:
            tell("\n".join(["waiting for readers that hold a view in an open transaction", *map(str, found)]))
        told, milliseconds = True, _next(milliseconds, found)
        time.sleep(AGAIN_SECONDS)


def settle(database: Database) -> bool:
    """Lets views forget what they were before they moved (`views.settle`), also those that many read all the time."""
    milliseconds = float(READER_PATIENCE_MS)
    for _ in range(SETTLING_TRIES):
        if views.settle(database, patience_ms=round(milliseconds)):
            return True
        with database.begin() as connection:
            milliseconds = _next(milliseconds, rights.in_the_way(connection))
        time.sleep(AGAIN_SECONDS)
    return False


def _next(milliseconds: float, found: Sequence[Holder]) -> float:
    """How long the next try waits for a view that these hold."""
    longer = all(each.reads for each in found)
    return min(MOST_MILLISECONDS, milliseconds * LONGER) if longer else float(READER_PATIENCE_MS)
