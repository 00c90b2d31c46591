"""A changed catalog, reprocessed: new versions of its views are computed beside the old ones, then all move at once.

The steps are those of a rebuild (`batch_layer/rebuild.py`): seal, archive, compute, go live, prove and check. Then the
catalog is applied in place of the hand-over, unless a check that it declares fails. Until then nothing that is
declared, read or kept has changed. Micro-batches feed the old versions and the new ones all the while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from batch_layer import new_sources
from batch_layer.checking import checked
from batch_layer.new_sources import Behind
from batch_layer.patience import AGAIN_SECONDS, READERS_SECONDS_AT_ONCE, patiently
from batch_layer.rebuild import BatchLayer
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.change import registry, renames, trials
from serving_layer.change.changes import Change, check_allowed
from serving_layer.change.checks import Verdict
from serving_layer.postgres import courtesy
from serving_layer.postgres.database import Connection, PostgresAway, PostgresError, is_lock_timeout
from serving_layer.promise import generations, progress, proof, rebuilds
from serving_layer.promise.proof import Proof
from serving_layer.promise.queries import End, Topic
from serving_layer.readers import views
from view_algebra.compiled import Catalog, Source, View
from view_algebra.errors import Blocked, LaminaError

PREPARED_WITHIN = 20.0
"""Seconds that a busy writer has to run the statements of a new version once; then the version is opened anyway."""

SNAPSHOTS_SECONDS = 60.0
"""For which a rename waits for transactions of before the last move."""


@dataclass(frozen=True)
class Target:
    """The catalog that is to be deployed, as `registry.apply` takes it; topics: those of its new sources."""

    files: Mapping[str, str]
    catalog: Catalog
    topics: Mapping[str, Topic]
    prune: bool = False
    allow_break: bool = False


class Meanwhile(LaminaError):
    """Another command changed what is deployed while a catalog was computed."""


def reprocess(batch: BatchLayer, target: Target) -> None:
    """Computes the new versions of a catalog and deploys it, going on with what an apply that was stopped has left.

    Where it fails, or is interrupted, what was deployed is as it was.
    """
    with batch.database.begin() as connection:
        before = {name: each.version for name, each in deployed(connection).views.items()}

    def deploy(id: int) -> None:
        new_sources.catch_up(batch, id)
        _refuse_unequal(batch, target, batch.generations(id))
        _check(batch, target, id)
        _move(batch, id, target, before)
        batch.at("after hand-over")
        batch.retire(id)

    def announce(connection: Connection) -> set[str]:
        after, wanted = registry.to_compute(connection, target.catalog, _allowed(connection, target))
        return registry.announce(connection, wanted, after)

    computed(batch, announce, lambda connection: _begun(connection, batch, target), deploy)


def computed(
    batch: BatchLayer,
    announce: Callable[[Connection], set[str]],
    begin: Callable[[Connection], int],
    then: Callable[[int], None],
) -> None:
    """Computes the versions of the rebuild that `begin` gives, live and proven; `then` does what they are for.

    announce: tells writers of them before, and gives the tables of cells that busy ones prepare for. Where `begin` or
    `then` fails, or is interrupted, nothing that is read has changed. What was computed stays where a person interrupts
    it, or a reader or another command is in the way: the same command goes on from there.
    """
    with rebuilds.in_one_process(batch.database):
        soon, announced = batch.database.retrying(announce), time.monotonic()
        batch.spark()  # which takes some seconds to start, too
        are_awaited = partial(registry.are_awaited, names=soon)
        while time.monotonic() < announced + PREPARED_WITHIN and batch.database.retrying(are_awaited):
            time.sleep(0.1)
        batch.at("after announcing")
        id = batch.database.retrying(begin)
        batch.at("after seal")
        try:
            batch.archive(id)
            sealed = batch.generations(id)
            with batch.sharing(sealed) as shared:
                for each in sealed:
                    batch.compute(id, each.view, shared)
            new_sources.gather(batch, id)
            batch.go_live(id)
            for generation in batch.generations(id):
                _prove(batch, id, generation)
            then(id)
        except KeyboardInterrupt:
            batch.give_up()
            with suppress(PostgresAway, PostgresError):
                batch.tell(batch.database.retrying(partial(_interrupted, id=id)))
            raise
        except BaseException as error:
            if not (
                isinstance(error, Meanwhile | Behind) or (isinstance(error, PostgresError) and is_lock_timeout(error))
            ):
                batch.failed(id, error)
            raise


def _interrupted(connection: Connection, id: int) -> str:
    """Notes that a rebuild was interrupted, and says what became of it."""
    rebuilds.interrupt(connection, id)
    run = rebuilds.get(connection, id)
    if run.state != "running":
        return f"rebuild {id} had ended: it is {run.state}"
    if run.step == "hand-over":
        return "the new versions are what readers read; the next apply drops what is left of the old ones"
    return (
        f"rebuild {id} is interrupted, and nothing that is read has changed: until another apply or rebuild begins, the"
        f" same command goes on with what is computed; `lamina step abandon --rebuild {id}` gives it up"
    )


def _allowed(connection: Connection, target: Target) -> list[Change]:
    """What the target changes; raises where that may not be."""
    changes = registry.plan(connection, target.catalog)
    check_allowed(changes, prune=target.prune, allow_break=target.allow_break)
    return changes


def _begun(connection: Connection, batch: BatchLayer, target: Target) -> int:
    """The rebuild that computes the target: one that a dead apply of the same versions has left, or a new one."""
    changes = _allowed(connection, target)
    after, wanted = registry.to_compute(connection, target.catalog, changes)
    ends = {name: _end(batch, after.sources[name]) for name in registry.unread(deployed(connection), wanted)}
    given = (target.catalog, changes, target.topics, ends)
    return begun(connection, batch, rebuilds.APPLY, wanted, after, lambda it: registry.prepare(connection, *given, it))


def _end(batch: BatchLayer, source: Source) -> End:
    """Where the topic of a source that is new ends by now."""
    latest = batch.brokers.latest(source.topic)
    return End(latest, batch.brokers.tails(latest))


def begun(
    connection: Connection,
    batch: BatchLayer,
    command: str,
    new: Sequence[View],
    catalog: Catalog,
    open: Callable[[int], None],
) -> int:
    """The rebuild that computes these versions of a catalog: one that a dead apply of them has left, or a new one.

    command: what is to be repeated where this one dies, too.
    """
    wanted = {each.name: (each.version, {name: catalog.sources[name] for name in each.fed_by}) for each in new}
    left = rebuilds.left_by_apply(connection)
    if left is not None and _computes(connection, left) == wanted:
        batch.tell(f"continues rebuild {left}, which an earlier apply left unfinished: {', '.join(wanted)}")
        rebuilds.go_on(connection, left, command)
        return left
    id = rebuilds.begin(connection, sorted(wanted), leap=False, by=None, command=command)
    known = progress.queries(connection)
    registry.retire_the_dead(connection, beside={name for each in new for name in each.fed_by if name in known})
    open(id)
    rebuilds.finished(connection, id, "seal")
    batch.tell(f"computing new versions of {', '.join(wanted)}; until then, readers read the old ones")
    return id


def _computes(connection: Connection, id: int) -> dict[str, tuple[str, dict[str, Source]]]:
    """The versions that a rebuild computes, and the sources that feed them."""
    found = {}
    for each in lookup.of_rebuild(connection, id):
        sources = versions.get(connection, each.view, each.version).sources
        found[each.view] = (each.version, {name: sources[name] for name in each.queries})
    return found


def _prove(batch: BatchLayer, id: int | None, new: Generation) -> Proof | None:
    """Compares what the new version computes like the one that is read, in one snapshot, and keeps the result."""
    with batch.database.snapshot() as connection:
        courtesy.stand_back(connection)
        now = lookup.published(connection).get(new.view)
        if now is None or now == new.id:
            return None
        old = lookup.get(connection, now)
        alike = versions.shared(*(versions.get(connection, each.view, each.version) for each in (new, old)))
        if not alike:
            return None
        proved = proof.prove_shared(connection, lookup.get(connection, new.id), old, alike)
    with batch.database.begin() as connection:
        proof.record(connection, proved, id)
    columns = ", ".join(name for each in alike.values() for name in each.partials)
    batch.tell(f"{new.view}: {proved.cells:,} cells of both versions compared ({columns}), {proved.differing:,} differ")
    return proved


def _refuse_unequal(batch: BatchLayer, target: Target, computed: Sequence[Generation] = ()) -> None:
    """Raises where a view moves to a version that finds other numbers than it shows, and says to hold it then."""
    with batch.database.begin() as connection:
        planned, now = registry.planned(connection, target.catalog), lookup.published(connection)
        read = versions.readable(connection, planned) | {each.view: each for each in computed}
    for name, new in read.items():
        held = planned.views[name].properties.get("on_difference") == "hold"
        each = _prove(batch, None, new) if held and now.get(name, new.id) != new.id else None
        if each is not None and each.differing:
            raise Blocked(
                f"The catalog is not deployed: {each.view} computes other numbers than it shows",
                evidence=f"Of {each.cells:,} cells that both versions have, {each.differing:,} differ, and"
                f" 'on_difference' is 'hold'. For example: {each.examples[0]}",
                way_out=f"`lamina check {each.view}` says which is wrong. `lamina rebuild {each.view}` computes anew"
                " what is read and, where it holds that back, says how to let it be read; then apply again.",
            )


def _check(batch: BatchLayer, target: Target, id: int | None = None) -> None:
    """Runs the checks of all that readers would see change, as if it had; raises for one that blocks and fails."""
    with batch.database.begin() as connection:
        ready = [] if id is None else lookup.of_rebuild(connection, id)
        trial = trials.of_catalog(connection, registry.planned(connection, target.catalog), ready)
    _blocked(batch, checked(batch.database, trial) if id is None else batch.check(id, trial))


def deploy(batch: BatchLayer, target: Target) -> list[Change]:
    """Deploys a catalog for which nothing is to be computed, once it has passed its checks.

    Raises NotComputed, and changes nothing, where by now there is something to compute.
    """
    _refuse_unequal(batch, target)
    _check(batch, target)

    def step(connection: Connection) -> tuple[list[Change], list[str]]:
        before = lookup.published(connection)
        changes, after = apply(connection, target), lookup.published(connection)
        return changes, [name for name, id in after.items() if before.get(name) not in (None, id)]

    changes, moved = patiently(batch.database, batch.tell, step, within=READERS_SECONDS_AT_ONCE)
    if moved:
        batch.database.retrying(lambda connection: generations.retire_superseded(connection, moved))
    return changes


def _blocked(batch: BatchLayer, verdicts: Sequence[Verdict]) -> None:
    for each in verdicts:
        if each.failing:
            batch.tell(each.sentence)
    blocked = [each for each in verdicts if each.blocked]
    if blocked:
        raise Blocked(
            f"The catalog is not deployed: {', '.join(sorted({each.view for each in blocked}))} fails a check",
            evidence="\n".join(each.sentence for each in blocked),
            way_out="Nothing that is declared or read has changed. Correct what fails, or let the check warn:"
            " NOT ENFORCED.",
        )


def _move(batch: BatchLayer, id: int, target: Target, before: Mapping[str, str]) -> None:
    """Applies the catalog: readers read the new versions in their next snapshot. before: the versions at the start."""
    sources = target.catalog.sources  # where a new one begins is asked again: retention went on meanwhile
    begins = {name: batch.brokers.earliest(sources[name].topic) for name in target.topics}
    topics = {name: replace(each, earliest=begins[name]) for name, each in target.topics.items()}

    with batch.database.begin() as connection:
        moving = new_sources.replaced(connection, id)

    def step(connection: Connection) -> None:
        if rebuilds.running(connection, id).step == "hand-over":
            return
        ready = {each.view: each.id for each in lookup.of_rebuild(connection, id)}
        new_sources.hold(connection, moving, seconds)
        registry.lock(connection)
        _refuse_moved(connection, before, ready)
        if new_sources.replaced(connection, id) != moving:
            raise Meanwhile("A view was rolled back while its new version was waited for", way_out="Apply again.")
        apply(connection, replace(target, topics=topics), ready)
        rebuilds.finished(connection, id, "hand-over")

    for seconds in new_sources.HOLDS:
        try:
            patiently(batch.database, batch.tell, step)
            break
        except Behind:
            if seconds == new_sources.HOLDS[-1]:
                raise
        time.sleep(AGAIN_SECONDS)  # in which micro-batches go on
    batch.tell("the new versions are what readers read from now on")


def _refuse_moved(connection: Connection, before: Mapping[str, str], ready: Mapping[str, int]) -> None:
    """Raises where a view has another version by now, as after a rollback, which this catalog would undo unsaid."""
    now = {name: each.version for name, each in deployed(connection).views.items()}
    moved = [name for name, version in before.items() if name not in ready and now.get(name, version) != version]
    if moved:
        raise Meanwhile(
            f"{moved[0]} was given another version while the catalog was computed",
            evidence=f"it had version {before[moved[0]]}, and now has {now[moved[0]]}",
            way_out=f"Declare {moved[0]} as it is to be, and repeat the apply: what was computed is taken from there.",
        )


def apply(connection: Connection, target: Target, ready: Mapping[str, int] | None = None) -> list[Change]:
    """Deploys the catalog in this transaction: see `registry.apply`."""
    given = (target.files, target.catalog, target.topics)
    return registry.apply(connection, *given, prune=target.prune, allow_break=target.allow_break, ready=ready)


def await_older_snapshots(batch: BatchLayer, target: Target) -> None:
    """Waits until views show no snapshot what they were before the last move, as a rename asks for; not for long.

    Whoever is still in the way then, the rename says.
    """
    deadline, told = time.monotonic() + SNAPSHOTS_SECONDS, False
    while time.monotonic() < deadline:
        with batch.database.begin() as connection:
            named = renames.wanted(deployed(connection), target.catalog).values()
            if renames.unsettled(connection, named) is None:
                return
        views.settle(batch.database)
        if told:
            time.sleep(AGAIN_SECONDS)
        else:
            batch.tell("waiting for transactions that began before the last move")
        told = True


def end_what_a_dead_apply_left(batch: BatchLayer) -> None:
    """Ends the rebuild of an apply that was killed after it had moved its views: what is left is to retire and drop."""
    with batch.database.begin() as connection:
        left = rebuilds.left_by_apply(connection)
        moved = left is not None and rebuilds.get(connection, left).step == "hand-over"
        alive = rebuilds.held_by_a_process(connection)
    if left is not None and moved and not alive:
        batch.retire(left)
