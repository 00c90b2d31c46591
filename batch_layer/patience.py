"""Views are renewed while people read them: tries that are short, and as many as it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from serving_layer import readers
from serving_layer.database import Connection, Database, PostgresError, is_lock_timeout

T = TypeVar("T")

READERS_SECONDS = 900.0
"""How long a computed version waits for readers who hold a view in a transaction: longer than a SELECT may take."""

READERS_SECONDS_AT_ONCE = 120.0
"""The same, of a change for which nothing was computed."""

AGAIN_SECONDS = 1.0
"""Between two tries, in which micro-batches go on: each try locks their queries."""


def patiently(
    database: Database,
    tell: Callable[[str], None],
    step: Callable[[Connection], T],
    *,
    within: float = READERS_SECONDS,
) -> T:
    """Renews views in a transaction, tried again for so many seconds while readers hold one of them."""
    deadline, told = time.monotonic() + within, False
    while True:
        try:
            return database.retrying(step, patience=0.0)
        except PostgresError as error:
            if not is_lock_timeout(error) or time.monotonic() > deadline:
                raise
        if not told:
            with database.begin() as connection:
                found = readers.in_the_way(connection)
            tell("\n".join(["waiting for readers that hold a view in an open transaction", *found]))
        told = True
        time.sleep(AGAIN_SECONDS)
