"""Renewals of views that people are reading, in many short tries. A rollback is one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from serving_layer.catalog import lookup
from serving_layer.change import rollbacks
from serving_layer.narration import waiting
from serving_layer.postgres.database import READER_PATIENCE_MS, Connection, Database, PostgresError, is_lock_timeout
from serving_layer.promise import overwriting
from serving_layer.readers import dependents, rights, views
from serving_layer.readers.rights import Holder
from serving_layer.upkeep import dropping

T = TypeVar("T")

READERS_SECONDS = 900.0
"""Seconds that a computed version waits for readers who lock a view in a transaction: longer than a SELECT may take."""

READERS_SECONDS_AT_ONCE = 120.0
"""Seconds that a change without a computation waits for such readers."""

LONGER, MOST_MILLISECONDS = 1.15, 100.0
"""Each try waits for a view by this factor longer, from `READER_PATIENCE_MS` up to the longest wait."""

PAUSE_SECONDS = 1.0
"""Seconds between two tries. Each try locks queries, so micro-batches continue in between."""

SETTLING_TRIES = 15
"""Tries to drop the older sides of views after a move. Nobody waits for that."""


def renew(
    database: Database,
    tell: Callable[[str], None],
    step: Callable[[Connection], T],
    *,
    within: float = READERS_SECONDS,
) -> T:
    """Renews views in a transaction, which is repeated for `within` seconds while readers lock one of them.

    If all these readers run a SELECT, each try waits a little longer, and other readers wait behind it: among many
    short SELECTs, one always locks a view. Nobody waits behind a reader who is idle in a transaction.
    """
    deadline, is_first, milliseconds = time.monotonic() + within, True, float(READER_PATIENCE_MS)

    def try_once(connection: Connection) -> T:
        return step(connection.execution_options(reader_patience_ms=round(milliseconds)))

    while True:
        try:
            return database.retrying(try_once, patience=0.0)
        except PostgresError as error:
            if not is_lock_timeout(error) or time.monotonic() > deadline:
                raise
        with database.begin() as connection:
            holders = rights.in_the_way(connection)
        if is_first:
            tell("\n".join(["waiting for readers that hold a view in an open transaction", *map(str, holders)]))
        is_first, milliseconds = False, _next(milliseconds, holders)
        time.sleep(PAUSE_SECONDS)


def settle(database: Database) -> bool:
    """Drops the sides that views kept for snapshots from before a move. Some views are read all the time."""
    milliseconds = float(READER_PATIENCE_MS)
    for _ in range(SETTLING_TRIES):
        if views.settle(database, patience_ms=round(milliseconds)):
            return True
        with database.begin() as connection:
            milliseconds = _next(milliseconds, rights.in_the_way(connection))
        time.sleep(PAUSE_SECONDS)
    return False


def _next(milliseconds: float, holders: Sequence[Holder]) -> float:
    """The milliseconds that the next try waits for a view that these readers lock."""
    longer = all(holder.reads for holder in holders)
    return min(MOST_MILLISECONDS, milliseconds * LONGER) if longer else float(READER_PATIENCE_MS)


def roll_back(database: Database, name: str, tell: Callable[[str], None]) -> tuple[int, int]:
    """Hands a view back to the previously published generation. Returns both ids: (from, to).

    A generation of another version brings back the SELECT of its time. `tell` also names the analysts' own views that
    are dropped with the columns they read.
    """
    comparing = waiting(tell, f"{name}: comparing its cells with those of the previous generation")
    with comparing, database.begin(isolation="REPEATABLE READ") as connection:
        now, before = lookup.before_published(connection, name)
        if before.version == now.version:
            overwriting.note(connection, before, now)

    def step(connection: Connection) -> tuple[tuple[int, int], list[str]]:
        before = _analysts_views(connection)
        ids = rollbacks.roll_back(connection, name)
        after = _analysts_views(connection)
        return ids, [view for view in before if view not in after]

    ids, dropped = renew(database, tell, step, within=READERS_SECONDS_AT_ONCE)
    if dropped:
        views_were, them = ("view {} was", "it") if len(dropped) == 1 else ("views {} were", "them")
        subject = views_were.format(", ".join(dropped))
        tell(f"the analysts' {subject} dropped, because {name} has other columns now: create {them} again")
    dropping.drop_unused(database)
    return ids


def _analysts_views(connection: Connection) -> list[str]:
    """The analysts' own views that read deployed ones."""
    _, droppable = dependents.of_others(connection)
    return sorted({view for views in droppable.values() for view in views})
