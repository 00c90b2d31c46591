"""A rollback: compares the generation that is read with the one before it, and waits for readers."""

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

    A generation of another version brings back the SELECT of that time. `tell` takes the names of the analysts' own
    views that are dropped with it.
    """
    with database.begin(isolation="REPEATABLE READ") as connection:
        now, before = lookup.before_published(connection, name)
        if before.version == now.version:
            overwriting.note(connection, before, now)

    def step(connection: Connection) -> tuple[tuple[int, int], list[str]]:
        before = _of_analysts(connection)
        handed = rollbacks.roll_back(connection, name)
        after = _of_analysts(connection)
        return handed, [view for view in before if view not in after]

    handed, dropped = patiently(database, tell, step, within=READERS_SECONDS_AT_ONCE)
    if dropped:
        was, it = ("was", "it") if len(dropped) == 1 else ("were", "them")
        tell(f"{', '.join(dropped)}, of analysts, {was} dropped, because {name} has other columns now: make {it} again")
    dropping.drop_unused(database)
    return handed


def _of_analysts(connection: Connection) -> list[str]:
    """The views in schemas of analysts that read views of ours, by name."""
    readers = dependents.of_others(connection, giving_way=True).values()
    return sorted({view for views in readers for view in views})
