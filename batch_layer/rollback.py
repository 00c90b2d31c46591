"""A rollback: what the view has now is compared with what it returns to, and readers are waited for."""

from __future__ import annotations

from collections.abc import Callable

from batch_layer.patience import READERS_SECONDS_AT_ONCE, patiently
from serving_layer.catalog import lookup
from serving_layer.change import rollbacks
from serving_layer.postgres.database import Connection, Database
from serving_layer.promise import overwriting
from serving_layer.readers import dependents
from serving_layer.upkeep import dropping


def roll_back(database: Database, name: str, tell: Callable[[str], None]) -> tuple[int, int]:
    """Hands a view back to the generation before the one it is read from; gives (from, to).

    One of another version brings the view's SELECT of then back with it. `tell` gets the names of what analysts have
    made over the view and lose by that.
    """
    with database.begin(isolation="REPEATABLE READ") as connection:
        now, before = lookup.before_published(connection, name)
        if before.version == now.version:
            overwriting.note(connection, before, now)

    def step(connection: Connection) -> tuple[tuple[int, int], list[str]]:
        theirs = _of_analysts(connection)
        handed = rollbacks.roll_back(connection, name)
        left = _of_analysts(connection)
        return handed, [each for each in theirs if each not in left]

    handed, dropped = patiently(database, tell, step, within=READERS_SECONDS_AT_ONCE)
    if dropped:
        was, it = ("was", "it") if len(dropped) == 1 else ("were", "them")
        tell(f"{', '.join(dropped)}, of analysts, {was} dropped, because {name} has other columns now: make {it} again")
    dropping.drop_unused(database)
    return handed


def _of_analysts(connection: Connection) -> list[str]:
    """The views in schemas of analysts that read views of ours, by name."""
    readers = dependents.of_others(connection, giving_way=True).values()
    return sorted({each for some in readers for each in some})
