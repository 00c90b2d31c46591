"""A changed catalog, reprocessed: new versions of its views are computed next to the old ones, then all move at once.

The steps are those of a rebuild (`BatchLayer.run`). In place of the hand-over the catalog is applied, unless a check
that it declares fails. Until then, nothing that is declared, read or kept has changed. Meanwhile, micro-batches feed
the old versions and the new ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from batch_layer import new_sources
from batch_layer.checking import checked
from batch_layer.new_sources import Behind
from batch_layer.patience import AGAIN_SECONDS, READERS_SECONDS_AT_ONCE, patiently
from batch_layer.rebuild import BatchLayer
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.change import registry, renames, trials
from serving_layer.change.catalog_changes import check_allowed
from serving_layer.change.planned_change import PlannedChange
from serving_layer.change.view_checks import Verdict
from serving_layer.postgres.database import Connection
from serving_layer.postgres.states import Step
from serving_layer.promise import generations, progress, rebuilds
from serving_layer.promise.proof import Proof
from serving_layer.promise.rebuilds import APPLY, Postponed, Purpose
from serving_layer.promise.source_queries import End, Topic
from serving_layer.readers import views
from view_algebra.compiled import Catalog, Source, View
from view_algebra.errors import Blocked

PREPARED_WITHIN = 20.0
"""Seconds that a busy writer has to run the statements of a new version once; then the version is opened anyway."""

SNAPSHOTS_SECONDS = 60.0
"""Seconds that a rename waits for transactions that began before the last move."""


@dataclass(frozen=True)
class Target:
    """A catalog to be deployed, as `registry.apply` takes it. topics: those of its new sources."""

    files: Mapping[str, str]
    catalog: Catalog
    topics: Mapping[str, Topic]
    prune: bool = False
    allow_break: bool = False


class Meanwhile(Postponed):
    """Another command changed what is deployed while a catalog was computed."""


def reprocess(batch: BatchLayer, target: Target) -> None:
    """Computes the new versions of a catalog and deploys it. Resumes an apply of the same versions that was stopped.

    If it fails or is interrupted, what was deployed is unchanged.
    """
    with batch.database.begin() as connection:
        before = {name: view.version for name, view in deployed(connection).views.items()}
    batch.run(_Reprocess(batch, target, before))


@dataclass(frozen=True)
class _Reprocess:
    """The plan of an apply. before: the version of each view at its start."""

    batch: BatchLayer
    target: Target
    before: Mapping[str, str]

    def seal(self) -> int:
        return announce_and_open(self.batch, self._announce, self._open)

    def _announce(self, connection: Connection) -> set[str]:
        after, wanted = registry.to_compute(connection, self.target.catalog, _allowed(connection, self.target))
        return registry.announce(connection, wanted, after)

    def _open(self, connection: Connection) -> int:
        changes = _allowed(connection, self.target)
        after, wanted = registry.to_compute(connection, self.target.catalog, changes)
        unread = registry.unread_sources(deployed(connection), wanted)
        ends = {name: _end(self.batch, after.sources[name]) for name in unread}
        change = (self.target.catalog, changes, self.target.topics, ends)
        return begun(
            connection, self.batch, APPLY, wanted, after, lambda new: registry.open_changed(connection, *change, new)
        )

    def check(self, id: int, proofs: Sequence[Proof]) -> None:
        new_sources.catch_up(self.batch, id)
        _refuse_unequal(self.batch, self.target, proofs)
        with self.batch.database.begin() as connection:
            planned = registry.catalog_after_apply(connection, self.target.catalog)
            trial = trials.of_catalog(connection, planned, lookup.of_rebuild(connection, id))
        _refuse_blocked(self.batch, self.batch.check(id, trial))

    def hand_over(self, id: int) -> None:
        _move(self.batch, id, self.target, self.before)
        self.batch.at("after hand-over")


def announce_and_open(
    batch: BatchLayer, announce: Callable[[Connection], set[str]], open: Callable[[Connection], int]
) -> int:
    """Opens new versions once busy writers have prepared for them; gives the id of the rebuild.

    announce: gives the tables of cells that writers prepare for.
    """
    soon, announced = batch.database.retrying(announce), time.monotonic()
    batch.spark()  # it takes some seconds to start, too
    are_awaited = partial(registry.are_awaited, names=soon)
    while time.monotonic() < announced + PREPARED_WITHIN and batch.database.retrying(are_awaited):
        time.sleep(0.1)
    batch.at("after announcing")
    id = batch.database.retrying(open)
    batch.at("after seal")
    return id


def begun(
    connection: Connection,
    batch: BatchLayer,
    purpose: Purpose,
    new: Sequence[View],
    catalog: Catalog,
    open: Callable[[int], None],
) -> int:
    """The rebuild that computes these versions of a catalog: one that a dead apply of them has left, or a new one."""
    wanted = {view.name: (view.version, {name: catalog.sources[name] for name in view.fed_by}) for view in new}
    left = rebuilds.left_by_apply(connection)
    if left is not None and _computes(connection, left) == wanted:
        batch.tell(f"continues rebuild {left}, which an earlier apply left unfinished: {', '.join(wanted)}")
        rebuilds.resume(connection, left, purpose)
        return left
    id = rebuilds.begin(connection, sorted(wanted), purpose=purpose)
    fed_by = {name for view in new for name in view.fed_by}
    registry.retire_the_dead(connection, beside=fed_by & progress.queries(connection).keys())
    open(id)
    rebuilds.record_finished(connection, id, Step.SEAL)
    batch.tell(f"computing new versions of {', '.join(wanted)}; until then, readers read the old ones")
    return id


def _computes(connection: Connection, id: int) -> dict[str, tuple[str, dict[str, Source]]]:
    """The versions that a rebuild computes, and the sources that feed them."""
    computed = {}
    for new in lookup.of_rebuild(connection, id):
        sources = versions.get(connection, new.view, new.version).sources
        computed[new.view] = (new.version, {name: sources[name] for name in new.queries})
    return computed


def _allowed(connection: Connection, target: Target) -> list[PlannedChange]:
    """The changes that the target makes; raises if they are not allowed."""
    changes = registry.plan(connection, target.catalog)
    check_allowed(changes, prune=target.prune, allow_break=target.allow_break)
    return changes


def _end(batch: BatchLayer, source: Source) -> End:
    """The present end of a new source's topic."""
    latest = batch.brokers.latest(source.topic)
    return End(latest, batch.brokers.tails(latest))


def _refuse_unequal(batch: BatchLayer, target: Target, proofs: Sequence[Proof] = ()) -> None:
    """Raises if a view that holds on differences would move to a version that computes other numbers.

    proofs: those of versions that were computed now. A version that was kept is proven here, as is one whose proof was
    against a generation that is no longer published.
    """
    with batch.database.begin() as connection:
        planned, now = registry.catalog_after_apply(connection, target.catalog), lookup.published(connection)
        kept = versions.readable(connection, planned)
    proved = {proof.view: proof for proof in proofs}
    for name in (name for name, view in planned.views.items() if view.properties.get("on_difference") == "hold"):
        moves = name in kept and now.get(name, kept[name].id) != kept[name].id
        proof = proved.get(name)
        if proof is None or proof.against != now.get(name):  # a rollback may have published another generation since
            proof = batch.compare(kept[name]) if moves else None
        if proof is not None and proof.differing:
            raise Blocked(
                f"The catalog is not deployed: {name} computes other numbers than it shows",
                evidence=f"{proof.differing:,} of {proof.cells:,} cells that both versions have differ, and"
                f" 'on_difference' is 'hold'. For example: {proof.examples[0]}",
                way_out=f"`lamina check {name}` says which is wrong. `lamina rebuild {name}` recomputes what is read"
                " and, if it holds that back, says how to let it be read; then apply again.",
            )


def _refuse_blocked(batch: BatchLayer, verdicts: Sequence[Verdict]) -> None:
    """Tells which checks fail; raises if one of them blocks."""
    for verdict in verdicts:
        if verdict.failing:
            batch.tell(verdict.sentence)
    blocked = [verdict for verdict in verdicts if verdict.blocked]
    if blocked:
        raise Blocked(
            f"The catalog is not deployed: {', '.join(sorted({verdict.view for verdict in blocked}))} fails a check",
            evidence="\n".join(verdict.sentence for verdict in blocked),
            way_out="Nothing that is declared or read has changed. Correct what fails, or let the check warn:"
            " NOT ENFORCED.",
        )


def _move(batch: BatchLayer, id: int, target: Target, before: Mapping[str, str]) -> None:
    """Applies the catalog: readers read the new versions in their next snapshot."""
    sources = target.catalog.sources  # retention went on meanwhile, so new sources may begin later by now
    begins = {name: batch.brokers.earliest(sources[name].topic) for name in target.topics}
    topics = {name: replace(topic, earliest=begins[name]) for name, topic in target.topics.items()}

    with batch.database.begin() as connection:
        moving = new_sources.replaced(connection, id)

    def step(connection: Connection) -> None:
        if rebuilds.lock_running(connection, id).is_handed_over:
            return
        ready = {new.view: new.id for new in lookup.of_rebuild(connection, id)}
        new_sources.hold(connection, moving, seconds)
        registry.lock(connection)
        _refuse_moved(connection, before, ready)
        if new_sources.replaced(connection, id) != moving:
            raise Meanwhile("A view was rolled back while its new version was waited for", way_out="Apply again.")
        apply(connection, replace(target, topics=topics), ready)
        rebuilds.record_finished(connection, id, Step.HAND_OVER)

    for seconds in new_sources.HOLDS:
        try:
            patiently(batch.database, batch.tell, step)
            break
        except Behind:
            if seconds == new_sources.HOLDS[-1]:
                raise
        time.sleep(AGAIN_SECONDS)  # micro-batches go on meanwhile
    batch.tell("the new versions are what readers read from now on")


def _refuse_moved(connection: Connection, before: Mapping[str, str], ready: Mapping[str, int]) -> None:
    """Raises if a view has another version by now, as after a rollback: this catalog would silently undo it."""
    now = {name: view.version for name, view in deployed(connection).views.items()}
    moved = [name for name, version in before.items() if name not in ready and now.get(name, version) != version]
    if moved:
        raise Meanwhile(
            f"{moved[0]} was given another version while the catalog was computed",
            evidence=f"it had version {before[moved[0]]}, and now has {now[moved[0]]}",
            way_out=f"Declare {moved[0]} as it is to be, and repeat the apply: what was computed is taken from there.",
        )


def apply(connection: Connection, target: Target, ready: Mapping[str, int] | None = None) -> list[PlannedChange]:
    """Deploys the catalog in this transaction: see `registry.apply`."""
    allowed = {"prune": target.prune, "allow_break": target.allow_break}
    return registry.apply(connection, target.files, target.catalog, target.topics, **allowed, ready=ready)


def deploy(batch: BatchLayer, target: Target) -> list[PlannedChange]:
    """Deploys a catalog for which nothing is to be computed, once it has passed its checks.

    Raises NotComputed, and changes nothing, if by now there is something to compute.
    """
    _refuse_unequal(batch, target)
    with batch.database.begin() as connection:
        trial = trials.of_catalog(connection, registry.catalog_after_apply(connection, target.catalog), [])
    _refuse_blocked(batch, checked(batch.database, trial))

    def step(connection: Connection) -> tuple[list[PlannedChange], list[str]]:
        before = lookup.published(connection)
        changes, after = apply(connection, target), lookup.published(connection)
        return changes, [name for name, id in after.items() if before.get(name) not in (None, id)]

    changes, moved = patiently(batch.database, batch.tell, step, within=READERS_SECONDS_AT_ONCE)
    if moved:
        batch.database.retrying(lambda connection: generations.retire_superseded(connection, moved))
    return changes


def await_older_snapshots(batch: BatchLayer, target: Target) -> None:
    """Waits, for SNAPSHOTS_SECONDS at most, until no snapshot needs the views as they were before the last move.

    A rename requires this. It names the transactions that are still in the way after that time.
    """
    deadline, is_first = time.monotonic() + SNAPSHOTS_SECONDS, True
    while time.monotonic() < deadline:
        with batch.database.begin() as connection:
            named = renames.declared_renames(deployed(connection), target.catalog).values()
            if renames.unsettled(connection, named) is None:
                return
        views.settle(batch.database)
        if is_first:
            batch.tell("waiting for transactions that began before the last move")
        else:
            time.sleep(AGAIN_SECONDS)
        is_first = False


def end_what_a_dead_apply_left(batch: BatchLayer) -> None:
    """Ends the rebuild of an apply that was killed after it had moved its views: only retiring and dropping is left."""
    with batch.database.begin() as connection:
        left = rebuilds.left_by_apply(connection)
        moved = left is not None and rebuilds.get(connection, left).is_handed_over
        alive = rebuilds.is_run_by_a_process(connection)
    if left is not None and moved and not alive:
        batch.retire(left)
