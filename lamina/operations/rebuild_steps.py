"""Rebuilds with their lineage events: all steps at once, or single steps for a scheduler that runs them one by one.

The process that seals begins the runs of the views, and the process that hands over or abandons ends them. The runs'
ids follow from the rebuild's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from batch_layer.rebuild import Observer
from lamina.operations import lineage_events
from lamina.operations.deployment import Deployment
from serving_layer.change import view_checks
from serving_layer.change.view_checks import Verdict
from serving_layer.postgres.states import Stop
from serving_layer.promise import proof, rebuilds
from serving_layer.promise.proof import Proof
from serving_layer.promise.rebuilds import Scheduler
from view_algebra.errors import LaminaError


def rebuild(
    deployment: Deployment,
    names: Sequence[str] = (),
    *,
    leap: bool = False,
    on_checked: Callable[[Sequence[Verdict]], None] = lambda verdicts: None,
) -> list[Proof]:
    """Runs all steps of a rebuild (`BatchLayer.rebuild`), with a run of lineage for each of its views."""
    with lineage_events.runs(deployment.settings, deployment.tell) as runs:

        def sealed(id: int) -> None:
            runs.start(deployment.deployed, lambda: _run_ids(deployment, id))

        def checked(verdicts: Sequence[Verdict]) -> None:
            runs.add_verdicts(verdicts)
            on_checked(verdicts)

        batch = replace(deployment.batch, observer=Observer(sealed, checked, runs.mark_held))
        proofs = batch.rebuild(names, leap=leap)
        runs.add_proofs(proofs)
    return proofs


def seal(deployment: Deployment, views: Sequence[str], *, leap: bool, by: Scheduler) -> int:
    """Begins a rebuild of these views, or of all if none is named. Returns its id."""
    batch = deployment.batch
    id = batch.leap_seal(views, by=by) if leap else batch.seal(views, by=by)
    runs = lineage_events.LineageRuns(deployment.settings, deployment.tell)
    runs.start(deployment.deployed, lambda: _run_ids(deployment, id))
    runs.close()
    return id


def hand_over(deployment: Deployment, id: int, names: Sequence[str] = (), *, anyway: bool) -> list[str]:
    """Publishes the new generations. Returns the views that are held back. `anyway` releases `names`, or all."""
    held = deployment.batch.release(id, names) if anyway else deployment.batch.hand_over(id)
    runs = _resumed_runs(deployment, id)
    if runs.started:
        with deployment.database.begin() as connection:
            runs.add_proofs(proof.proofs_of_rebuild(connection, id))
            runs.add_verdicts(view_checks.results(connection, id))
        runs.mark_held(held)
        runs.end()
    return held


def abandon(deployment: Deployment, id: int) -> None:
    """Gives up a rebuild. Readers see no change."""
    deployment.batch.abandon(id)
    _resumed_runs(deployment, id).end(LaminaError(Stop.GIVEN_UP.reason))


def _resumed_runs(deployment: Deployment, id: int) -> lineage_events.LineageRuns:
    """The runs that `seal` has begun in any process."""
    runs = lineage_events.LineageRuns(deployment.settings, deployment.tell)
    runs.resume(deployment.deployed, lambda: _run_ids(deployment, id))
    return runs


def _run_ids(deployment: Deployment, id: int) -> dict[str, str]:
    """The lineage run id of each view of a rebuild."""
    with deployment.database.begin() as connection:
        run = rebuilds.get(connection, id)
    return lineage_events.ids_of(deployment.settings.postgres, run.id, run.views)
