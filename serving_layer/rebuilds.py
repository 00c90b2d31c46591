"""The runs of the batch layer: one at a time, found when they died.

A rebuild is alive while a session holds its advisory lock (`lamina rebuild`: it ends with the process) or until its
lease runs out (a scheduler's, whose steps are separate processes).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from serving_layer.bookkeeping import rebuild
from serving_layer.database import Database
from view_algebra.errors import LaminaError

LOCK = 0x6C616D69
"""First key of the advisory locks of rebuilds; the second is `BEGINNING` or `IN_ONE_PROCESS`."""

BEGINNING, IN_ONE_PROCESS = 0, 1

ARCHIVE_LOCK = 0x6C616D6A
"""First key of the advisory locks of the archive: one writer of the master log at a time."""

LEASE = timedelta(hours=6)
"""How long a scheduler's rebuild stays alive between two of its steps: a failed task can be retried that long."""

STEPS = ("seal", "archive", "compute", "go-live", "prove", "hand-over", "retire")
"""The steps of a rebuild, in their order."""


@dataclass(frozen=True)
class Rebuild:
    """A run of the batch layer; `step` is the last one that was finished."""

    id: int
    views: tuple[str, ...]
    leap: bool
    step: str
    state: str
    started_at: datetime
    ended_at: datetime | None
    error: str | None


@contextlib.contextmanager
def in_one_process(database: Database) -> Iterator[None]:
    """Keeps the rebuild that is begun in this block alive as long as this process, and its connection, live."""
    with database.autocommit() as connection:
        got = connection.execute(
            text("SELECT pg_try_advisory_lock(:lock, :one)"), {"lock": LOCK, "one": IN_ONE_PROCESS}
        ).scalar_one()
        if not got:
            with database.begin() as other:
                newest = select(func.max(rebuild.c.id)).where(rebuild.c.state == "running")
                raise _running(other.execute(newest).scalar_one())
        try:
            yield
        finally:
            _let_go(connection)


@dataclass(frozen=True)
class Scheduler:
    """Who runs a rebuild step by step. With a `key`, a request to begin it can be repeated: it begins once."""

    key: str | None = None


def begun(connection: Connection, by: Scheduler | None) -> int | None:
    """The running rebuild that this scheduler's key has begun and sealed."""
    if by is None or by.key is None:
        return None
    sealed = (rebuild.c.key == by.key, rebuild.c.state == "running", rebuild.c.step != "begin")
    return connection.execute(select(rebuild.c.id).where(*sealed)).scalar_one_or_none()


def begin(connection: Connection, views: Sequence[str], *, leap: bool, by: Scheduler | None) -> int:
    """Records a new rebuild and gives its id; refused while another is alive, and the dead ones are failed.

    Without a scheduler, the caller is `in_one_process`.
    """
    key = by.key if by else None
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock, :beginning)"), {"lock": LOCK, "beginning": BEGINNING})
    running = connection.execute(
        select(rebuild.c.id, rebuild.c.key, rebuild.c.lease_until > func.clock_timestamp()).where(
            rebuild.c.state == "running"
        )
    )
    for id, its_key, leased in running.all():
        repeated = key is not None and its_key == key
        if (leased and not repeated) or (leased is None and by and _held_by_a_process(connection)):
            raise _running(id)
        end(connection, id, "failed", "its process died; the next rebuild found it")
    until = func.clock_timestamp() + LEASE if by else None
    new = insert(rebuild).values(views=sorted(views), leap=leap, key=key, step="begin", lease_until=until)
    return int(connection.execute(new.returning(rebuild.c.id)).scalar_one())


def leap_writer(id: int) -> str:
    """What a leap that has taken a query over is called as its writer."""
    return f"rebuild {id} (leap)"


def is_leap(writer: str | None) -> bool:
    """Is it a leap that writes a query?

    >>> is_leap(leap_writer(7)), is_leap("process 7 on (leap)s"), is_leap(None)
    (True, False, False)
    """
    return re.fullmatch(r"rebuild \d+ \(leap\)", writer or "") is not None


def leaping(connection: Connection) -> bool:
    """Whether a leap is running: it has taken queries over, and gives them back when it has landed or died."""
    leased = select(rebuild.c.lease_until > func.clock_timestamp()).where(rebuild.c.state == "running", rebuild.c.leap)
    leases: Sequence[bool | None] = connection.execute(leased).scalars().all()
    return any(lease or (lease is None and _held_by_a_process(connection)) for lease in leases)


def _held_by_a_process(connection: Connection) -> bool:
    return (
        connection.execute(
            text(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = :lock AND objid = :one"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
            ),
            {"lock": LOCK, "one": IN_ONE_PROCESS},
        ).scalar_one()
        is True
    )


def _running(id: int | None) -> LaminaError:
    """`id` is None where it holds the lock and has not begun yet."""
    give_up = "" if id is None else f" To give it up: `lamina step abandon --rebuild {id}`."
    return LaminaError(
        "Another rebuild is beginning" if id is None else f"Rebuild {id} is running",
        evidence="only one rebuild runs at a time: two would seal, prove and hand over across each other",
        way_out=f"Wait for it; `lamina status` shows its step.{give_up}",
    )


@contextlib.contextmanager
def archiving(database: Database) -> Iterator[None]:
    """Keeps every other writer away from the master log; waits for the one that is writing."""
    with database.autocommit() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:lock, 0)"), {"lock": ARCHIVE_LOCK})
        try:
            yield
        finally:
            _let_go(connection)


def _let_go(connection: Connection) -> None:
    """Gives the session's locks back, and ends it: it may be broken, and in the pool would go on holding them."""
    with contextlib.suppress(DBAPIError):
        connection.execute(text("SELECT pg_advisory_unlock_all()"))
    connection.invalidate()


def finished(connection: Connection, id: int, step: str) -> None:
    """Records a step that was finished, and renews the lease of a rebuild that has one."""
    connection.execute(
        update(rebuild)
        .where(rebuild.c.id == id, rebuild.c.lease_until.is_not(None))
        .values(lease_until=func.clock_timestamp() + LEASE)
    )
    connection.execute(update(rebuild).where(rebuild.c.id == id).values(step=step))


def end(connection: Connection, id: int, state: str, error: str | None = None) -> None:
    """Records how a running rebuild ended, once: `done`, `failed`, or `held` when a difference holds a view back."""
    connection.execute(
        update(rebuild)
        .where(rebuild.c.id == id, rebuild.c.state.in_(["running", "held"] if state == "done" else ["running"]))
        .values(state=state, error=error, ended_at=func.clock_timestamp(), lease_until=None)
    )


def running(connection: Connection, id: int, *, or_held: bool = False) -> Rebuild:
    """The rebuild, which stays running until this transaction ends; raises when it has ended or was given up."""
    connection.execute(select(rebuild.c.id).where(rebuild.c.id == id).with_for_update(read=True))
    found = get(connection, id)
    if found.state != "running" and not (or_held and found.state == "held"):
        raise LaminaError(
            f"Rebuild {id} is {found.state}" + (f": {found.error}" if found.error else ""),
            way_out="Begin another with `lamina rebuild`.",
        )
    return found


def get(connection: Connection, id: int | None = None) -> Rebuild:
    """The rebuild with this id; without one, the newest that is running."""
    query = select(rebuild).order_by(rebuild.c.id.desc()).limit(1)
    query = query.where(rebuild.c.id == id) if id is not None else query.where(rebuild.c.state == "running")
    row = connection.execute(query).one_or_none()
    if row is None:
        raise LaminaError(
            "No rebuild is running" if id is None else f"There is no rebuild {id}",
            way_out="Begin one with `lamina rebuild`, or step by step with `lamina step seal`.",
        )
    return Rebuild(row.id, tuple(row.views), row.leap, row.step, row.state, row.started_at, row.ended_at, row.error)
