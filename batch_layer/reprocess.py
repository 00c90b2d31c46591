"""New versions of views are computed next to the old ones: for an apply, which then moves readers, or for a preview.

The steps are those of a rebuild (`BatchLayer.run`). In place of the hand-over, an apply deploys the catalog, unless a
check that it declares fails, and a preview serves its views in a schema of their own. Until then, nothing that is
declared, read or kept has changed. Meanwhile, micro-batches feed the old versions and the new ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from batch_layer import new_sources
from batch_layer.new_sources import Behind
from batch_layer.rebuild import BatchLayer
from batch_layer.renewals import PAUSE_SECONDS, READERS_SECONDS_AT_ONCE, renew
from batch_layer.verdicts import run_checks
from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.change import deploying, previews, renames, view_checks
from serving_layer.change.deploying import Target
from serving_layer.change.planned_change import PlannedChange
from serving_layer.change.view_checks import Verdict
from serving_layer.narration import waiting
from serving_layer.postgres.database import Connection
from serving_layer.postgres.states import RebuildKind, RebuildState, Step
from serving_layer.promise import generations, progress, rebuilds
from serving_layer.promise.proof import Proof
from serving_layer.promise.rebuilds import APPLY, Postponed, Purpose
from serving_layer.promise.source_queries import End
from serving_layer.readers import views
from view_algebra.compiled import Catalog, Source, View
from view_algebra.errors import Blocked

PREPARED_WITHIN = 20.0
"""Seconds that a busy writer has to run the statements of a new version once. Then the version is opened anyway."""

SNAPSHOTS_SECONDS = 60.0
"""Seconds that a rename waits for transactions that began before the last move."""


class ChangedMeanwhile(Postponed):
    """Raised if another command changed what is deployed while a catalog was computed."""


def reprocess(batch: BatchLayer, target: Target) -> None:
    """Computes the new versions of a catalog and deploys it. Resumes an interrupted apply of the same versions.

    If it fails or is interrupted, what was deployed is unchanged.
    """
    with batch.database.begin() as connection:
        before = {name: view.version for name, view in deployed(connection).views.items()}
    batch.run(_Apply(batch, target, before))


@dataclass(frozen=True)
class _Apply:
    """The plan of `lamina apply`.

    before: the version of each view at its start
    """

    batch: BatchLayer
    target: Target
    before: Mapping[str, str]

    def seal(self) -> int:
        return open_prepared(self.batch, self._announce, self._open)

    def _announce(self, connection: Connection) -> set[str]:
        changes = deploying.allowed_changes(connection, self.target)
        after, wanted = deploying.to_compute(connection, self.target.catalog, changes)
        return deploying.announce(connection, wanted, after)

    def _open(self, connection: Connection) -> int:
        changes = deploying.allowed_changes(connection, self.target)
        after, wanted = deploying.to_compute(connection, self.target.catalog, changes)
        unread = deploying.unread_sources(deployed(connection), wanted)
        ends = {name: _end(self.batch, after.sources[name]) for name in unread}
        id, is_new = resume_or_begin(connection, self.batch, APPLY, wanted, after)
        if is_new:
            deploying.open_changed(connection, self.target.catalog, changes, self.target.topics, ends, id)
            record_opened(connection, self.batch, id, wanted)
        return id

    def check(self, id: int, proofs: Sequence[Proof]) -> None:
        new_sources.catch_up(self.batch.database, self.batch.brokers, self.batch.tell, id)
        _refuse_differences(self.batch, self.target, proofs)
        with self.batch.database.begin() as connection:
            planned = deploying.catalog_after_apply(connection, self.target.catalog)
            trial = view_checks.trial_of_catalog(connection, planned, lookup.generations_of_rebuild(connection, id))
        _refuse_failed_checks(self.batch, self.batch.check(id, trial))

    def hand_over(self, id: int) -> None:
        _move(self.batch, id, self.target, self.before)
        self.batch.at("after hand-over")


def preview(batch: BatchLayer, name: str, catalog: Catalog) -> None:
    """Serves the views of a catalog in the schema `name`, in place of an earlier preview of that name.

    If it fails or is interrupted, the earlier preview is unchanged.
    """
    with batch.database.begin() as connection:
        previews.check_name(connection, name)
        lacking = previews.uncomputed_views(connection, previews.previewed_catalog(connection, catalog))
    if lacking:
        batch.run(_Preview(batch, name, catalog))
    else:
        renew(batch.database, batch.tell, lambda connection: previews.make(connection, name, catalog))


@dataclass(frozen=True)
class _Preview:
    """The plan of `lamina apply --preview NAME`. It reports failing checks, and an apply is refused for them."""

    batch: BatchLayer
    name: str
    catalog: Catalog

    def seal(self) -> int:
        return open_prepared(self.batch, self._announce, self._open)

    def _announce(self, connection: Connection) -> set[str]:
        after = previews.previewed_catalog(connection, self.catalog)
        return deploying.announce(connection, previews.uncomputed_views(connection, after), after)

    def _open(self, connection: Connection) -> int:
        after = previews.previewed_catalog(connection, self.catalog)
        lacking = previews.uncomputed_views(connection, after)
        purpose = Purpose(RebuildKind.PREVIEW, self.name)
        id, is_new = resume_or_begin(connection, self.batch, purpose, lacking, after)
        if is_new:
            deploying.open_versions(connection, lacking, after, id)
            record_opened(connection, self.batch, id, lacking)
        return id

    def check(self, id: int, proofs: Sequence[Proof]) -> None:  # noqa: ARG002 (a preview may differ)
        with self.batch.database.begin() as connection:
            compiled = previews.previewed_catalog(connection, self.catalog)
            trial = view_checks.trial_of_catalog(connection, compiled, lookup.generations_of_rebuild(connection, id))
        for verdict in run_checks(self.batch.database, self.batch.tell, trial):
            if verdict.failing:
                self.batch.tell(f"{verdict.sentence}{' (an apply is refused for it)' if verdict.blocked else ''}")

    def hand_over(self, id: int) -> None:
        def step(connection: Connection) -> None:
            rebuilds.lock_running(connection, id)
            ready = {new.view: new.id for new in lookup.generations_of_rebuild(connection, id)}
            previews.make(connection, self.name, self.catalog, ready)
            rebuilds.record_finished(connection, id, Step.RETIRE)
            rebuilds.end(connection, id, RebuildState.DONE)

        renew(self.batch.database, self.batch.tell, step)


def open_prepared(
    batch: BatchLayer, announce: Callable[[Connection], Collection[str]], open: Callable[[Connection], int]
) -> int:
    """Announces versions, and opens them once busy writers have prepared. Returns the id of the rebuild."""
    await_prepared(batch, batch.database.retrying(announce))
    id = batch.database.retrying(open)
    batch.at("after seal")
    return id


def await_prepared(batch: BatchLayer, announced: Collection[str]) -> None:
    """Starts Spark, and waits until busy writers have prepared for these tables of cells, or `PREPARED_WITHIN`."""
    are_awaited, began = partial(deploying.are_awaited, names=announced), time.monotonic()
    batch.spark()
    with waiting(batch.tell, "the speed layer prepares for the new versions"):
        while time.monotonic() < began + PREPARED_WITHIN and batch.database.retrying(are_awaited):
            time.sleep(0.1)
    batch.at("after announcing")


def resume_or_begin(
    connection: Connection, batch: BatchLayer, purpose: Purpose, new: Sequence[View], catalog: Catalog
) -> tuple[int, bool]:
    """Resumes the rebuild of a dead apply that computes these versions of a catalog, or begins one.

    Returns its id, and True if it is new, so that its generations are to be opened.
    """
    wanted = {view.name: (view.version, {name: catalog.sources[name] for name in view.fed_by}) for view in new}
    left = rebuilds.left_by_apply(connection)
    if left is not None and _versions_of(connection, left) == wanted:
        batch.tell(f"continues rebuild {left}, which an earlier apply left unfinished: {', '.join(wanted)}")
        rebuilds.resume(connection, left, purpose)
        return left, False
    id = rebuilds.begin(connection, sorted(wanted), purpose=purpose)
    fed_by = {name for view in new for name in view.fed_by}
    deploying.retire_leftovers(connection, also_lock=fed_by & progress.queries(connection).keys())
    return id, True


def record_opened(connection: Connection, batch: BatchLayer, id: int, new: Sequence[View]) -> None:
    """Records that the generations of a rebuild are open."""
    rebuilds.record_finished(connection, id, Step.SEAL)
    batch.tell(f"computing new versions of {', '.join(view.name for view in new)}; readers keep reading the old ones")


def _versions_of(connection: Connection, id: int) -> dict[str, tuple[str, dict[str, Source]]]:
    """The version of each view that a rebuild computes, and the sources that feed it."""
    computed = {}
    for new in lookup.generations_of_rebuild(connection, id):
        sources = versions.get(connection, new.view, new.version).sources
        computed[new.view] = (new.version, {name: sources[name] for name in new.queries})
    return computed


def _end(batch: BatchLayer, source: Source) -> End:
    """The present end of a new source's topic."""
    latest = batch.brokers.latest(source.topic)
    return End(latest, batch.brokers.tails(latest))


def _refuse_differences(batch: BatchLayer, target: Target, proofs: Sequence[Proof] = ()) -> None:
    """Raises if a view with `on_difference = 'hold'` would move to a version that computes other numbers.

    proofs: those of newly computed versions. A version is proven here if it was kept, or if its proof was against a
        generation that is no longer published
    """
    with batch.database.begin() as connection:
        planned, now = deploying.catalog_after_apply(connection, target.catalog), lookup.published(connection)
        kept = versions.readable_generations(connection, planned)
    by_view = {proof.view: proof for proof in proofs}
    for name in (name for name, view in planned.views.items() if view.properties.get("on_difference") == "hold"):
        moves = name in kept and now.get(name, kept[name].id) != kept[name].id
        proof = by_view.get(name)
        if proof is None or proof.against != now.get(name):  # a rollback may have published another generation since
            proof = batch.compare(kept[name]) if moves else None
        if proof is not None and proof.differing:
            raise Blocked(
                f"The catalog is not deployed: {name} computes other numbers than it shows",
                evidence=f"{proof.differing:,} of {proof.cells:,} cells that both versions have differ, and"
                f" 'on_difference' is 'hold'. For example: {proof.examples[0]}",
                way_out=f"`lamina check {name}` says which version is wrong. `lamina rebuild {name}` recomputes the"
                " published one and, if it holds that back, says how to publish it. Then apply again.",
            )


def _refuse_failed_checks(batch: BatchLayer, verdicts: Sequence[Verdict]) -> None:
    """Reports the failing checks. Raises if one of them blocks."""
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
    """Deploys the catalog, so that readers read the new versions in their next snapshot."""
    sources = target.catalog.sources  # a new source may begin later now, since retention has removed records meanwhile
    begins = {name: batch.brokers.earliest(sources[name].topic) for name in target.topics}
    topics = {name: replace(topic, earliest=begins[name]) for name, topic in target.topics.items()}

    with batch.database.begin() as connection:
        moving = new_sources.replacements(connection, id)

    def step(connection: Connection, seconds: float) -> None:
        if rebuilds.lock_running(connection, id).is_handed_over:
            return
        ready = {new.view: new.id for new in lookup.generations_of_rebuild(connection, id)}
        new_sources.await_replacements(connection, moving, seconds)
        deploying.lock(connection)
        _refuse_moved(connection, before, ready)
        if new_sources.replacements(connection, id) != moving:
            raise ChangedMeanwhile(
                "A view was rolled back while its new version waited for readers", way_out="Apply again."
            )
        deploying.apply(connection, replace(target, topics=topics), ready)
        rebuilds.record_finished(connection, id, Step.HAND_OVER)

    for seconds in new_sources.LOCKED_SECONDS:
        try:
            renew(batch.database, batch.tell, partial(step, seconds=seconds))
            break
        except Behind:
            if seconds == new_sources.LOCKED_SECONDS[-1]:
                raise
        time.sleep(PAUSE_SECONDS)  # micro-batches continue meanwhile
    batch.tell("readers read the new versions from now on")


def _refuse_moved(connection: Connection, before: Mapping[str, str], ready: Mapping[str, int]) -> None:
    """Raises if a view has another version now, as after a rollback, which this catalog would silently undo."""
    now = {name: view.version for name, view in deployed(connection).views.items()}
    moved = [name for name, version in before.items() if name not in ready and now.get(name, version) != version]
    if moved:
        raise ChangedMeanwhile(
            f"{moved[0]} was given another version while the catalog was computed",
            evidence=f"it had version {before[moved[0]]}, and now has {now[moved[0]]}",
            way_out=f"Declare {moved[0]} as it should be, and repeat the apply, which resumes from here.",
        )


def deploy(batch: BatchLayer, target: Target) -> list[PlannedChange]:
    """Deploys a catalog that needs no computation, once it has passed its checks.

    Raises `NotComputed`, and changes nothing, if it needs one now.
    """
    _refuse_differences(batch, target)
    with batch.database.begin() as connection:
        trial = view_checks.trial_of_catalog(connection, deploying.catalog_after_apply(connection, target.catalog), [])
    _refuse_failed_checks(batch, run_checks(batch.database, batch.tell, trial))

    def step(connection: Connection) -> tuple[list[PlannedChange], list[str]]:
        before = lookup.published(connection)
        changes, after = deploying.apply(connection, target), lookup.published(connection)
        return changes, [name for name, id in after.items() if before.get(name) not in (None, id)]

    changes, moved = renew(batch.database, batch.tell, step, within=READERS_SECONDS_AT_ONCE)
    if moved:
        batch.database.retrying(lambda connection: generations.retire_superseded(connection, moved))
    return changes


def await_older_snapshots(batch: BatchLayer, target: Target) -> None:
    """Waits up to SNAPSHOTS_SECONDS until no snapshot needs the views as they were before the last move.

    Only a rename requires this. Afterwards, its refusal names the transactions that are still in the way.
    """
    deadline, is_first = time.monotonic() + SNAPSHOTS_SECONDS, True
    while time.monotonic() < deadline:
        with batch.database.begin() as connection:
            renamed = renames.declared_renames(deployed(connection), target.catalog).values()
            if renames.unsettled(connection, renamed) is None:
                return
        views.settle(batch.database)
        if is_first:
            batch.tell("waiting for transactions that began before the last move")
        else:
            time.sleep(PAUSE_SECONDS)
        is_first = False


def finish_moved_apply(batch: BatchLayer) -> None:
    """Ends the rebuild of an apply that was killed after it had moved its views: it retires and drops the old cells."""
    with batch.database.begin() as connection:
        left = rebuilds.left_by_apply(connection)
        moved = left is not None and rebuilds.get(connection, left).is_handed_over
        alive = rebuilds.is_run_by_a_process(connection)
    if left is not None and moved and not alive:
        batch.retire(left)
