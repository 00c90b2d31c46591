"""Views are renewed while people read them: tries that are short, and as many as it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from serving_layer import readers
from serving_layer.database import READER_PATIENCE_MS, Connection, Database, PostgresError, is_lock_timeout

T = TypeVar("T")

READERS_SECONDS = 900.0
"""How long a computed version waits for readers who hold a view in a transaction: longer than a SELECT may take."""

READERS_SECONDS_AT_ONCE = 120.0
"""The same, of a change for which nothing was computed."""

LONGER, MOST_MILLISECONDS = 1.15, 500.0
"""By how much each try waits longer for readers, and the longest wait, which the 24th try has."""

AGAIN_SECONDS = 1.0
"""Between two tries, in which micro-batches go on: each try locks their queries."""


def patiently(
    database: Database,
    tell: Callable[[str], None],
    step: Callable[[Connection], T],
    *,
    within: float = READERS_SECONDS,
) -> T:
    """Renews views in a transaction, tried again for so many seconds while readers hold one of them.

    Each try waits a little longer, and other readers behind it: one of many short SELECTs at once always holds a view.
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
        if not told:
            with database.begin() as connection:
                found = readers.in_the_way(connection)
            tell("\n".join(["waiting for readers that hold a view in an open transaction", *found]))
        told, milliseconds = True, min(MOST_MILLISECONDS, milliseconds * LONGER)
        time.sleep(AGAIN_SECONDS)
