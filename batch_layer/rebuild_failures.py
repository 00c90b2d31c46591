"""Failures of rebuilds: what is recorded, what a person reads, and which rebuilds can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from batch_layer.stalls import Stalled
from master_log.causes import cause
from serving_layer.change import deploying
from serving_layer.postgres.database import Connection, Database, PostgresError, PostgresUnavailable, is_lock_timeout
from serving_layer.postgres.states import RebuildState
from serving_layer.promise import rebuilds
from serving_layer.promise.rebuilds import Rebuild
from serving_layer.upkeep import dropping
from view_algebra.errors import LaminaError


def record(database: Database, id: int, error: BaseException, tell: Callable[[str], None]) -> None:
    """Records why a rebuild failed and retires its generations, unless an apply or a preview can be resumed.

    They can be resumed after Ctrl-C, and if a reader or another command was in the way. If Postgres is away, the
    next rebuild finds this one dead.
    """
    interrupted = isinstance(error, KeyboardInterrupt)

    def step(connection: Connection) -> tuple[Rebuild, bool]:
        run = rebuilds.get(connection, id)
        stays = run.is_resumable and (interrupted or _is_in_the_way(error))
        if not stays:
            rebuilds.fail(connection, id, error)
            deploying.retire_leftovers(connection)
        elif interrupted:
            rebuilds.interrupt(connection, id)
        return run, stays

    with suppress(PostgresUnavailable, PostgresError):
        run, stays = database.retrying(step)
        if interrupted:
            tell(_after_interrupt(run))
        if not stays:
            dropping.drop_unused(database)


def _is_in_the_way(error: BaseException) -> bool:
    """True if a reader or another command kept views from moving to their new versions."""
    return isinstance(error, rebuilds.Postponed) or (isinstance(error, PostgresError) and is_lock_timeout(error))


def _after_interrupt(run: Rebuild) -> str:
    """The sentence for a person who has interrupted a rebuild in this state."""
    if run.state is not RebuildState.RUNNING:
        return f"rebuild {run.id} had ended: it is {run.state}"
    if run.is_handed_over:
        return "readers already see the new rows, and the next apply or rebuild removes the old tables"
    if run.is_resumable:
        return (
            f"rebuild {run.id} is interrupted, and nothing that is read has changed. The same command resumes it until"
            f" another apply or rebuild begins, and `lamina step abandon --rebuild {run.id}` gives it up"
        )
    return f"rebuild {run.id} is given up: nothing that is read has changed"


def reason(error: Exception) -> str:
    """The reason why Spark could not compute a view, in a line."""
    if isinstance(error, Stalled):
        return f"{error.what.partition(': ')[2]}: {error.evidence}. {error.way_out}"
    return cause(str(error))


def not_computed(reasons: Mapping[str, str]) -> LaminaError:
    """The error that names the views that were left out, each with its reason."""
    return LaminaError(
        f"Spark could not compute {', '.join(reasons)}",
        evidence="\n".join(f"{name}: {reason}" for name, reason in reasons.items()),
        way_out="These views stay as they are. Correct the cause of each error, and rebuild them.",
    )


def no_generation(id: int) -> LaminaError:
    """The error raised if all views of a rebuild were dropped meanwhile."""
    return LaminaError(f"Rebuild {id} has no generation left", way_out="Begin one with `lamina rebuild`.")


def nothing_to_release(id: int) -> LaminaError:
    """The error for a person who releases views although none is held back."""
    return LaminaError(
        f"Rebuild {id} has nothing left to hand over",
        evidence="its views are read from later generations, or were rolled back from these",
        way_out="`lamina rebuild` computes them again. `lamina rollback VIEW` returns to earlier ones.",
    )
