"""The runs of the batch layer. One run is alive at a time. The next one detects and ends a dead one.

A rebuild is alive while a session holds the lock on `lamina.rebuilding` (`lamina rebuild`: the lock ends with the
process), or until its lease expires (a scheduler's rebuild, whose steps are separate processes).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    TextClause,
    cast,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import INTERVAL

from serving_layer.postgres import work_locks
from serving_layer.postgres.bookkeeping import generation, publication, rebuild, rebuilding
from serving_layer.postgres.cells import run
from serving_layer.postgres.database import Database
from serving_layer.postgres.states import RebuildKind, RebuildState, Step, Stop
from view_algebra.compiled import Catalog
from view_algebra.errors import LaminaError

LEASE = timedelta(hours=6)
"""Time that a scheduler's rebuild stays alive between two steps. A failed task can be retried within it."""

NO_REBUILD = 0
"""An id that no rebuild has. A leap under this id has ended, so a speed layer takes its queries over."""

EARLY = timedelta(hours=1)
"""Time by which a view is due early, because a nightly run may begin some minutes earlier than the last."""

STEPS = tuple(step for step in Step if step is not Step.BEGIN)
"""The steps of a rebuild, in order."""

LAST_SUCCESS = "SELECT max(ended_at) FROM lamina.rebuild WHERE kind = 'rebuild' AND state IN ('done', 'held')"
"""SQL of the end of the last successful rebuild of declared versions, or NULL."""

FAILED_REBUILDS = """
WITH lately AS (
    SELECT * FROM lamina.rebuild WHERE kind <> 'preview' ORDER BY id DESC LIMIT 100
), tried AS (
    SELECT id, state, step, kind, error, unnest(views) AS view FROM lately
    WHERE NOT (state = 'failed' AND stopped IS NOT NULL)
), last AS (
    SELECT DISTINCT ON (view) * FROM tried
    WHERE view IN (SELECT name FROM lamina.view WHERE kind <> 'derived')
        OR id = (SELECT max(id) FROM lately)
    ORDER BY view, id DESC
)
SELECT DISTINCT id, step, kind, error FROM last WHERE state = 'failed'"""
"""SQL of the rebuilds that failed by themselves and have a view that no later rebuild has computed.

Only the last hundred rebuilds are read. Previews do not count: the person who makes one sees the failure, and no
deployed view waits for it.
"""


@dataclass(frozen=True)
class Purpose:
    """The reason for a rebuild: an apply and a preview compute versions that are not deployed."""

    kind: RebuildKind
    preview: str | None = None

    @property
    def command(self) -> str | None:
        """The command that resumes the rebuild, or None if no command does.

        >>> Purpose(RebuildKind.APPLY).command, Purpose(RebuildKind.PREVIEW, "dev").command, RECOMPUTE.command
        ('apply', 'apply --preview dev', None)
        """
        of_preview = f"apply --preview {self.preview}"
        return {RebuildKind.APPLY: "apply", RebuildKind.PREVIEW: of_preview}.get(self.kind)


RECOMPUTE, APPLY = Purpose(RebuildKind.REBUILD), Purpose(RebuildKind.APPLY)


class Rebuild(NamedTuple):
    """A run of the batch layer, as recorded.

    step: the last finished step
    stopped: how a person stopped it
    lease_until: a scheduled rebuild lives until then between its steps
    """

    id: int
    views: list[str]
    leap: bool
    step: str
    state: RebuildState
    lease_until: datetime | None
    error: str | None
    kind: RebuildKind
    preview: str | None
    stopped: Stop | None

    @property
    def purpose(self) -> Purpose:
        """The reason for the rebuild."""
        return Purpose(self.kind, self.preview)

    @property
    def is_handed_over(self) -> bool:
        """True if readers read what it computed, and it has not ended yet."""
        return self.step == Step.HAND_OVER

    @property
    def is_resumable(self) -> bool:
        """True if the command that began it resumes it after an interrupt."""
        return self.purpose != RECOMPUTE

    def check_names(self, names: Iterable[str]) -> None:
        """Raises unless the rebuild recomputes all of these views."""
        if unknown := sorted(set(names) - set(self.views)):
            raise LaminaError(
                f"Rebuild {self.id} has no view {unknown[0]}",
                evidence=f"its views: {', '.join(self.views)}",
                way_out="Name some of these, or none for all of them.",
            )


class Postponed(LaminaError):
    """Readers cannot move to new versions now. The command that computed the versions can resume from there."""


@contextlib.contextmanager
def in_one_process(database: Database) -> Iterator[None]:
    """Keeps the rebuild that the block begins alive as long as this process and its connection live."""
    with work_locks.attempt(database, rebuilding) as is_ours:
        if not is_ours:
            with database.begin() as connection:
                raise _another_running(connection)
        yield


@dataclass(frozen=True)
class Scheduler:
    """A scheduler that runs a rebuild step by step. With a `key`, its request to begin is idempotent."""

    key: str | None = None


def due(connection: Connection, catalog: Catalog, names: Sequence[str]) -> list[str]:
    """Those of these views whose `rebuild_every` has passed, or that have no published generation.

    The time counts from the opening of the published generation, so a view that was held back is due again. A view
    without `rebuild_every` is always due.
    """
    opened = select(publication.c.view, generation.c.opened_at).join_from(
        publication, generation, publication.c.generation == generation.c.id
    )
    read = {row.view: row.opened_at for row in connection.execute(opened)}

    def is_due(name: str) -> bool:
        every = catalog.views[name].properties.get("rebuild_every")
        if every is None or name not in read:
            return True
        return connection.execute(select(read[name] + cast(every, INTERVAL) - EARLY <= func.now())).scalar_one() is True

    return [name for name in names if is_due(name)]


def sealed_by(connection: Connection, by: Scheduler | None) -> int | None:
    """The running rebuild that this scheduler began and that is sealed."""
    if by is None or by.key is None:
        return None
    sealed = (rebuild.c.key == by.key, _is_running(), rebuild.c.step != Step.BEGIN)
    return connection.execute(select(rebuild.c.id).where(*sealed)).scalar_one_or_none()


def begin(
    connection: Connection,
    views: Sequence[str],
    *,
    leap: bool = False,
    by: Scheduler | None = None,
    purpose: Purpose = RECOMPUTE,
) -> int:
    """Records a new rebuild and returns its id. Raises if another is alive. Dead ones are recorded as failed.

    Without a scheduler, the caller is `in_one_process`.
    """
    key = by.key if by else None
    run(connection, f"LOCK TABLE {rebuild} IN SHARE UPDATE EXCLUSIVE MODE")  # which allows writing rows
    running = connection.execute(
        select(rebuild.c.id, rebuild.c.key, rebuild.c.lease_until > func.clock_timestamp()).where(_is_running())
    )
    for id, its_key, leased in running.all():
        repeated = key is not None and its_key == key
        if (leased and not repeated) or (leased is None and by and is_run_by_a_process(connection)):
            raise _another_running(connection)
        _end_dead(connection, id, "the next rebuild")
    until = func.clock_timestamp() + LEASE if by else None
    reason = {"kind": purpose.kind, "preview": purpose.preview, "key": key}
    new = insert(rebuild).values(views=sorted(views), leap=leap, step=Step.BEGIN, lease_until=until, **reason)
    return int(connection.execute(new.returning(rebuild.c.id)).scalar_one())


def left_by_apply(connection: Connection) -> int | None:
    """The running rebuild of an apply or a preview. The caller knows that its process is dead or their own."""
    computing = (rebuild.c.kind != RebuildKind.REBUILD, _is_running(), rebuild.c.lease_until.is_(None))
    id: int | None = connection.execute(select(func.max(rebuild.c.id)).where(*computing)).scalar_one()
    return id


def resume(connection: Connection, id: int, purpose: Purpose) -> None:
    """Records the command that resumes an interrupted apply's rebuild."""
    resumed = {"kind": purpose.kind, "preview": purpose.preview, "stopped": None, "error": None}
    connection.execute(update(rebuild).where(rebuild.c.id == id).values(resumed))


def interrupt(connection: Connection, id: int) -> None:
    """Records that a person interrupted a rebuild. The same command resumes it."""
    interrupted = {"stopped": Stop.INTERRUPTED, "error": Stop.INTERRUPTED.reason}
    connection.execute(update(rebuild).where(rebuild.c.id == id, _is_running()).values(interrupted))


def _end_dead(connection: Connection, id: int, finder: str) -> None:
    """Records that a rebuild failed because its process died, or because a person had interrupted it."""
    dead = get(connection, id)
    end(connection, id, RebuildState.FAILED, dead.error or f"its process died; {finder} found it", dead.stopped)


def _is_running() -> ColumnElement[bool]:
    return rebuild.c.state == RebuildState.RUNNING


def refuse_during_apply(connection: Connection) -> None:
    """Raises while another process applies a catalog and computes its new versions."""
    id = left_by_apply(connection)
    if id is not None and is_run_by_a_process(connection):
        raise _applying(connection, id)


def end_dead_apply(connection: Connection) -> None:
    """Records that the rebuild of an apply has failed. The caller knows that its process is dead."""
    if (id := left_by_apply(connection)) is not None:
        _end_dead(connection, id, "the next apply, of another catalog,")


def _applying(connection: Connection, id: int) -> LaminaError:
    return LaminaError(
        "Another apply is running",
        evidence=f"rebuild {id} computes new versions of {', '.join(get(connection, id).views)}",
        way_out="Wait for it, or interrupt it: nothing is changed before it has computed all of them.",
    )


def leap_writer(id: int) -> str:
    """The writer name of a leap that has taken a query over."""
    return f"rebuild {id} (leap)"


def is_leaping(connection: Connection) -> bool:
    """True if a leap is running. It has taken queries over, and releases them when it lands or dies."""
    leased = select(rebuild.c.lease_until > func.clock_timestamp()).where(_is_running(), rebuild.c.leap)
    leases: Sequence[bool | None] = connection.execute(leased).scalars().all()
    return any(lease or (lease is None and is_run_by_a_process(connection)) for lease in leases)


def is_run_by_a_process(connection: Connection) -> bool:
    """True if a process is running a whole rebuild."""
    return work_locks.is_held(connection, rebuilding)


def _another_running(connection: Connection) -> LaminaError:
    """The error raised if another rebuild is running, or is beginning (it holds the lock and has no row yet)."""
    one_at_a_time = (
        "Only one rebuild runs at a time: two would interfere with each other's seals, proofs and hand-overs."
    )
    running = newest(connection, _is_running())
    if running is None:
        return LaminaError("Another rebuild is beginning", evidence=one_at_a_time, way_out="Repeat the command.")
    if running.id == left_by_apply(connection):
        return _applying(connection, running.id)
    if running.lease_until is None:
        state = f"It runs in its own process, and its last finished step is {running.step}."
    else:
        left = running.lease_until - connection.execute(select(func.clock_timestamp())).scalar_one()
        state = (
            f"It runs step by step, and its last step, {running.step}, ended {_minutes(LEASE - left)} ago."
            f" Another may begin when it is done, or {_minutes(left)} from now if no further step ends."
        )
    return LaminaError(
        f"Rebuild {running.id} is running",
        evidence=f"{state}\n{one_at_a_time}",
        way_out="Wait for it, or continue its steps. If nobody will, give it up, and nothing that is read changes:"
        f" `lamina step abandon --rebuild {running.id}`.",
    )


def _minutes(length: timedelta) -> str:
    """A duration in hours and minutes.

    >>> _minutes(timedelta(hours=5, minutes=58)), _minutes(timedelta(seconds=80))
    ('5 h 58 min', '1 min')
    """
    hours, minutes = divmod(max(0, int(length.total_seconds())) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def record_finished(connection: Connection, id: int, step: Step, *views: str) -> None:
    """Records a finished step, of these views if they are named, and renews the lease of a rebuild that has one."""
    named = " ".join([step, *views])
    connection.execute(
        update(rebuild)
        .where(rebuild.c.id == id, rebuild.c.lease_until.is_not(None))
        .values(lease_until=func.clock_timestamp() + LEASE)
    )
    connection.execute(update(rebuild).where(rebuild.c.id == id).values(step=named, seconds=_with_seconds_of(named)))


def _with_seconds_of(step: str) -> TextClause:
    """SQL of the seconds by step, with those since the previous step ended. Their sum is the time of the rebuild."""
    return text(
        "seconds || jsonb_build_object(cast(:timed AS text), coalesce((seconds ->> :timed)::float8, 0)"
        " + extract(epoch FROM clock_timestamp() - started_at)::float8"
        " - (SELECT coalesce(sum(value::float8), 0) FROM jsonb_each_text(seconds)))"
    ).bindparams(timed=step)


def end(
    connection: Connection, id: int, state: RebuildState, error: str | None = None, stopped: Stop | None = None
) -> None:
    """Records the end of a running rebuild. One that held views back ended then, and is done once they are released."""
    if state is not RebuildState.FAILED:
        retired = update(rebuild).where(rebuild.c.id == id, _is_running())
        connection.execute(retired.values(seconds=_with_seconds_of(Step.RETIRE)))
    may_end = [RebuildState.RUNNING, RebuildState.HELD] if state is RebuildState.DONE else [RebuildState.RUNNING]
    ended = {"state": state, "error": error, "stopped": stopped, "lease_until": None}
    ended_at = func.coalesce(rebuild.c.ended_at, func.clock_timestamp())
    ending = update(rebuild).where(rebuild.c.id == id, rebuild.c.state.in_(may_end))
    connection.execute(ending.values(ended_at=ended_at, **ended))


def fail(connection: Connection, id: int, error: BaseException) -> None:
    """Records that an error ended a rebuild, by the error's first line. Ctrl-C is a person's stop."""
    if isinstance(error, KeyboardInterrupt):
        stop(connection, id, Stop.INTERRUPTED)
    else:
        end(connection, id, RebuildState.FAILED, str(error).splitlines()[0] if str(error) else repr(error))


def stop(connection: Connection, id: int, how: Stop) -> None:
    """Records that a person ended a rebuild for good."""
    end(connection, id, RebuildState.FAILED, how.reason, how)


def lock_running(connection: Connection, id: int, *, or_held: bool = False) -> Rebuild:
    """The rebuild, locked so that it does not end before this transaction. Raises if it has ended or was given up."""
    connection.execute(select(rebuild.c.id).where(rebuild.c.id == id).with_for_update(read=True))
    locked = get(connection, id)
    if not (locked.state is RebuildState.RUNNING or (or_held and locked.state is RebuildState.HELD)):
        raise LaminaError(
            f"Rebuild {id} is {locked.state}" + (f": {locked.error}" if locked.error else ""),
            way_out="Begin another with `lamina rebuild`.",
        )
    return locked


def get(connection: Connection, id: int | None = None) -> Rebuild:
    """The rebuild with this id, or the newest running one."""
    wanted = newest(connection, _is_running() if id is None else rebuild.c.id == id)
    if wanted is None:
        raise LaminaError(
            "No rebuild is running" if id is None else f"There is no rebuild {id}",
            way_out="Begin one with `lamina rebuild`, or step by step with `lamina step seal`.",
        )
    return wanted


def newest(connection: Connection, *where: ColumnElement[bool]) -> Rebuild | None:
    """The newest rebuild that meets all conditions, or None."""
    fields = (rebuild.c[name] for name in Rebuild._fields)
    row = connection.execute(select(*fields).where(*where).order_by(rebuild.c.id.desc()).limit(1)).one_or_none()
    return None if row is None else Rebuild(*row)
