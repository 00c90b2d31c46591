"""The runs of the batch layer: one at a time, found when they died.

A rebuild is alive while a session holds the lock of `lamina.rebuilding` (`lamina rebuild`: it ends with the process) or
until its lease runs out (a scheduler's, whose steps are separate processes).

Such locks are those of tables: a reader with no right to a table cannot take them, as anybody can an advisory lock.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    TextClause,
    cast,
    func,
    insert,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import INTERVAL
from sqlalchemy.exc import DBAPIError

from serving_layer.postgres.bookkeeping import archiving as archiving_table
from serving_layer.postgres.bookkeeping import generation, publication, rebuild, rebuilding
from serving_layer.postgres.cells import run
from serving_layer.postgres.database import Database, is_lock_timeout
from view_algebra.compiled import Catalog
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.serving")

LEASE = timedelta(hours=6)
"""How long a scheduler's rebuild stays alive between two of its steps: a failed task can be retried that long."""

GIVEN_UP, INTERRUPTED = "it was given up", "it was interrupted"

ENDED_BY_A_PERSON = (GIVEN_UP, INTERRUPTED)
"""Errors of rebuilds that a person has ended, who need not be told."""

APPLY = "apply"
"""The key of a rebuild that computes the new versions of a changed catalog: the command that does."""

PREVIEW = "apply --preview "
"""What the key of one begins with that computes them for a preview; its name follows."""

NO_REBUILD = 0
"""The id of none: a leap of this one holds nothing, so a speed layer takes over what it has."""

EARLY = timedelta(hours=1)
"""How much sooner a view is due: a run may begin some minutes earlier in the night than the last."""

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

    def check_names(self, names: Iterable[str]) -> None:
        """Raises unless all of these are views that it recomputes."""
        if unknown := sorted(set(names) - set(self.views)):
            raise LaminaError(
                f"Rebuild {self.id} has no view {unknown[0]}",
                evidence=f"its views: {', '.join(self.views)}",
                way_out="Name some of these, or none for all of them.",
            )


@contextlib.contextmanager
def in_one_process(database: Database) -> Iterator[None]:
    """Keeps the rebuild that is begun in this block alive as long as this process, and its connection, live."""
    with database.autocommit() as connection:
        try:
            if not _hold(connection, str(rebuilding)):
                with database.begin() as other:
                    raise _running(other)
            yield
        finally:
            _let_go(connection)


@dataclass(frozen=True)
class Scheduler:
    """Who runs a rebuild step by step. With a `key`, a request to begin it can be repeated: it begins once."""

    key: str | None = None


def due(connection: Connection, catalog: Catalog, names: Sequence[str]) -> list[str]:
    """Those of these views whose `rebuild_every` is over, or that are read from no generation yet.

    It counts from when the generation that is read was opened, so a view that was held back is due again. A view that
    says nothing always is.
    """
    opened = select(publication.c.view, generation.c.opened_at).join_from(
        publication, generation, publication.c.generation == generation.c.id
    )
    read = {row.view: row.opened_at for row in connection.execute(opened)}

    def over(name: str) -> bool:
        every = catalog.views[name].properties.get("rebuild_every")
        if every is None or name not in read:
            return True
        return connection.execute(select(read[name] + cast(every, INTERVAL) - EARLY <= func.now())).scalar_one() is True

    return [name for name in names if over(name)]


def begun(connection: Connection, by: Scheduler | None) -> int | None:
    """The running rebuild that this scheduler's key has begun and sealed."""
    if by is None or by.key is None:
        return None
    sealed = (rebuild.c.key == by.key, rebuild.c.state == "running", rebuild.c.step != "begin")
    return connection.execute(select(rebuild.c.id).where(*sealed)).scalar_one_or_none()


def begin(
    connection: Connection, views: Sequence[str], *, leap: bool, by: Scheduler | None, command: str | None = None
) -> int:
    """Records a new rebuild and gives its id; refused while another is alive, and the dead ones are failed.

    Without a scheduler, the caller is `in_one_process`. command: `APPLY`, or `PREVIEW` and a name, of one that computes
    the versions of a changed catalog.
    """
    key = by.key if by else command
    run(connection, f"LOCK TABLE {rebuild} IN SHARE UPDATE EXCLUSIVE MODE")  # which lets rows be written
    running = connection.execute(
        select(rebuild.c.id, rebuild.c.key, rebuild.c.lease_until > func.clock_timestamp()).where(
            rebuild.c.state == "running"
        )
    )
    for id, its_key, leased in running.all():
        repeated = by is not None and key is not None and its_key == key
        if (leased and not repeated) or (leased is None and by and held_by_a_process(connection)):
            raise _running(connection)
        end(connection, id, "failed", _interrupted(connection, id) or "its process died; the next rebuild found it")
    until = func.clock_timestamp() + LEASE if by else None
    new = insert(rebuild).values(views=sorted(views), leap=leap, key=key, step="begin", lease_until=until)
    return int(connection.execute(new.returning(rebuild.c.id)).scalar_one())


def left_by_apply(connection: Connection) -> int | None:
    """The running rebuild of an apply, also of one for a preview, for a caller who knows that its process is dead or
    their own.
    """
    mine = (_of_apply(), rebuild.c.state == "running", rebuild.c.lease_until.is_(None))
    found: int | None = connection.execute(select(func.max(rebuild.c.id)).where(*mine)).scalar_one()
    return found


def go_on(connection: Connection, id: int, command: str) -> None:
    """Notes which command goes on with the rebuild that an apply has left."""
    connection.execute(update(rebuild).where(rebuild.c.id == id).values(key=command, error=None))


def interrupt(connection: Connection, id: int) -> None:
    """Notes that a person has interrupted a rebuild with which the same command is to go on."""
    mine = (rebuild.c.id == id, rebuild.c.state == "running")
    connection.execute(update(rebuild).where(*mine).values(error=INTERRUPTED))


def _interrupted(connection: Connection, id: int) -> str | None:
    return get(connection, id).error


def command(key: str | None) -> str | None:
    """The command that a rebuild with this key computes new versions for; None of any other rebuild.

    >>> command("apply"), command("apply --preview dev"), command("nightly"), command(None)
    ('apply', 'apply --preview dev', None, None)
    """
    return key if key is not None and (key == APPLY or key.startswith(PREVIEW)) else None


def scheduled() -> ScalarSelect[datetime]:
    """When the last rebuild ended well that was none of an apply."""
    well = (rebuild.c.state.in_(["done", "held"]), ~func.coalesce(_of_apply(), literal(value=False)))
    return select(func.max(rebuild.c.ended_at)).where(*well).scalar_subquery()


def _of_apply() -> ColumnElement[bool]:
    return (rebuild.c.key == APPLY) | rebuild.c.key.startswith(PREVIEW, autoescape=True)


def refuse_beside_apply(connection: Connection) -> None:
    """Raises while another process applies a catalog whose new versions it computes."""
    id = left_by_apply(connection)
    if id is not None and held_by_a_process(connection):
        raise _applying(connection, id)


def end_dead_apply(connection: Connection) -> None:
    """Notes that the rebuild of an apply failed whose process is dead, as the caller knows."""
    if (id := left_by_apply(connection)) is not None:
        died = "its process died; the next apply, of another catalog, found it"
        end(connection, id, "failed", _interrupted(connection, id) or died)


def _applying(connection: Connection, id: int) -> LaminaError:
    return LaminaError(
        "Another apply is running",
        evidence=f"rebuild {id} computes new versions of {', '.join(get(connection, id).views)}",
        way_out="Wait for it, or interrupt it: nothing is changed before it has computed all of them.",
    )


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
    return any(lease or (lease is None and held_by_a_process(connection)) for lease in leases)


def held_by_a_process(connection: Connection) -> bool:
    """Whether a process is in the middle of a whole rebuild."""
    return (
        connection.execute(
            text(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = to_regclass(:held) AND mode = 'ExclusiveLock'"
                " AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
            ),
            {"held": str(rebuilding)},
        ).scalar_one()
        is True
    )


def _running(connection: Connection) -> LaminaError:
    """None is running where one holds the lock and has not begun yet."""
    found = connection.execute(
        select(rebuild.c.id, rebuild.c.step, rebuild.c.lease_until, func.clock_timestamp().label("now"))
        .where(rebuild.c.state == "running")
        .order_by(rebuild.c.id.desc())
        .limit(1)
    ).one_or_none()
    one_at_a_time = "Only one rebuild runs at a time: two would seal, prove and hand over across each other."
    if found is not None and found.id == left_by_apply(connection):
        return _applying(connection, found.id)
    if found is None:
        return LaminaError("Another rebuild is beginning", evidence=one_at_a_time, way_out="Repeat the command.")
    if found.lease_until is None:
        state = f"It runs in a process of its own; the last step that was finished is {found.step}."
    else:
        since, left = LEASE - (found.lease_until - found.now), found.lease_until - found.now
        state = (
            f"It is run step by step; the last step, {found.step}, ended {_minutes(since)} ago."
            f" Another one may begin when it is done, or {_minutes(left)} from now if no further step ends."
        )
    return LaminaError(
        f"Rebuild {found.id} is running",
        evidence=f"{state}\n{one_at_a_time}",
        way_out="Wait for it, or continue its steps. If nobody will, give it up, and nothing that is read changes:"
        f" `lamina step abandon --rebuild {found.id}`.",
    )


def _minutes(length: timedelta) -> str:
    """A length of time in hours and minutes.

    >>> _minutes(timedelta(hours=5, minutes=58)), _minutes(timedelta(seconds=80))
    ('5 h 58 min', '1 min')
    """
    hours, minutes = divmod(max(0, int(length.total_seconds())) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


ARCHIVING_WITHIN = "1 h"
"""For so long a process waits for another that writes the master log: it may hold what that one waits for."""


@contextlib.contextmanager
def archiving(database: Database) -> Iterator[None]:
    """Keeps every other writer away from the master log; waits for the one that is writing, but not for ever."""
    with database.autocommit() as connection:
        try:
            if not _hold(connection, str(archiving_table)):
                log.info("waiting for another process that writes the master log")
                if not _hold(connection, str(archiving_table), within=ARCHIVING_WITHIN):
                    raise LaminaError(
                        f"Another process has been writing the master log for {ARCHIVING_WITHIN}",
                        evidence="it may be frozen, or wait for cores of Spark that this one holds",
                        way_out="Repeat the command; `pg_locks` shows who holds lamina.archiving.",
                    )
            yield
        finally:
            _let_go(connection)


def _hold(connection: Connection, table: str, *, within: str | None = None) -> bool:
    """Takes the lock of an empty table until the session ends; False where another has it, and keeps it for so long.

    The transaction that holds it has neither an id nor a snapshot, so it keeps nothing from being vacuumed. It is idle
    for as long as the work takes.
    """
    run(connection, "BEGIN ISOLATION LEVEL READ COMMITTED")
    run(connection, "SET LOCAL idle_in_transaction_session_timeout = 0")
    run(connection, "SET LOCAL transaction_timeout = 0")
    if within is not None:
        run(connection, f"SET LOCAL lock_timeout = '{within}'")
    try:
        run(connection, f"LOCK TABLE {table} IN EXCLUSIVE MODE" + (" NOWAIT" if within is None else ""))
    except DBAPIError as error:
        if not is_lock_timeout(error):
            raise
        run(connection, "ROLLBACK")
        return False
    return True


def _let_go(connection: Connection) -> None:
    """Gives the session's lock back, and ends it: it may be broken, and in the pool would go on holding it.

    A statement that Ctrl-C interrupted has ended the session already.
    """
    if not connection.invalidated:
        with contextlib.suppress(DBAPIError):
            run(connection, "ROLLBACK")
    connection.invalidate()


def largest(connection: Connection) -> tuple[int, int, float] | None:
    """The rebuild that read the most, of the newest ten that ended well: its number, its offsets, and its seconds.

    It counts, for each view, the offsets below its cut. Of rebuilds that read nearly nothing, the seconds are those of
    Spark's start alone.
    """
    row = connection.execute(
        text(
            'SELECT r.id, sum(c."offset" - p.start_offset)::bigint,'
            " extract(epoch FROM r.ended_at - r.started_at)::float8"
            " FROM (SELECT * FROM lamina.rebuild WHERE state = 'done' ORDER BY id DESC LIMIT 10) AS r"
            " JOIN lamina.generation AS g ON g.rebuild = r.id"
            " JOIN lamina.cut AS c ON c.generation = g.id"
            " JOIN lamina.progress AS p USING (query, topic, partition)"
            ' GROUP BY r.id, r.ended_at, r.started_at HAVING sum(c."offset" - p.start_offset) > 0'
            " ORDER BY 2 DESC, 1 DESC LIMIT 1"
        )
    ).one_or_none()
    return None if row is None else (row[0], row[1], row[2])


def finished(connection: Connection, id: int, step: str) -> None:
    """Records a step that was finished, and renews the lease of a rebuild that has one."""
    connection.execute(
        update(rebuild)
        .where(rebuild.c.id == id, rebuild.c.lease_until.is_not(None))
        .values(lease_until=func.clock_timestamp() + LEASE)
    )
    connection.execute(update(rebuild).where(rebuild.c.id == id).values(step=step, seconds=_with_seconds_of(step)))


def _with_seconds_of(step: str) -> TextClause:
    """The seconds by step, with those since the end of the step before: together, they are those of the rebuild."""
    return text(
        "seconds || jsonb_build_object(cast(:timed AS text), coalesce((seconds ->> :timed)::float8, 0)"
        " + extract(epoch FROM clock_timestamp() - started_at)::float8"
        " - (SELECT coalesce(sum(value::float8), 0) FROM jsonb_each_text(seconds)))"
    ).bindparams(timed=step)


def end(connection: Connection, id: int, state: str, error: str | None = None) -> None:
    """Records how a running rebuild ended, once: `done`, `failed`, or `held` when a difference holds a view back."""
    if state != "failed":
        retired = update(rebuild).where(rebuild.c.id == id, rebuild.c.state == "running")
        connection.execute(retired.values(seconds=_with_seconds_of(STEPS[-1])))
    connection.execute(
        update(rebuild)
        .where(rebuild.c.id == id, rebuild.c.state.in_(["running", "held"] if state == "done" else ["running"]))
        .values(state=state, error=error, ended_at=func.clock_timestamp(), lease_until=None)
    )


def why(error: BaseException) -> str:
    """What is recorded of an error that ended a rebuild: its first line."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return str(error).splitlines()[0] if str(error) else repr(error)


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
