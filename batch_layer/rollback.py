"""A rollback: what the view has now is compared with what it returns to, and readers are waited for."""

from __future__ import annotations

from collections.abc import Callable

from batch_layer.patience import READERS_SECONDS_AT_ONCE, patiently
from serving_layer import dropping, lookup, overwriting, rollbacks
from serving_layer.database import Connection, Database


def roll_back(database: Database, name: str, tell: Callable[[str], None]) -> tuple[int, int]:
    """Hands a view back to the generation before the one it is read from; gives (from, to).

    One of another version brings the view's SELECT of then back with it.
    """
    with database.begin(isolation="REPEATABLE READ") as connection:
        now, before = lookup.before_published(connection, name)
        if before.version == now.version:
            overwriting.note(connection, before, now)

    def step(connection: Connection) -> tuple[int, int]:
        return rollbacks.roll_back(connection, name)

    handed = patiently(database, tell, step, within=READERS_SECONDS_AT_ONCE)
    dropping.drop_unused(database)
    return handed
