"""Commands for rebuilds, whole or step by step, and for rollback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from lamina.commands.command import Different, command, lamina, look_up, open_deployment, show_verdicts, tell_failing
from lamina.terminal.render import Output

if TYPE_CHECKING:
    from lamina.operations.deployment import Deployment
    from serving_layer.change.view_checks import Verdict
    from serving_layer.promise.proof import Proof


def with_rebuild(function: Callable[..., None]) -> Callable[..., None]:
    """Adds `--rebuild ID`, by default the running rebuild."""
    return click.option("--rebuild", "id", type=int, help="The rebuild's id, by default the running one.")(function)


@command()
@click.argument("views", nargs=-1)
@click.option("--leap", is_flag=True, help="Take over the queries and continue from the end of the log.")
def rebuild(output: Output, views: Sequence[str], leap: bool) -> None:
    """Recompute views from the master log, and compare them.

    Without VIEWS, all are recomputed. A rebuild covers the records counted when it starts. The new rows are proven and
    checked, and then handed over to readers. With `--leap`, VIEWS may be sources.
    """
    from lamina.operations import rebuild_steps

    with open_deployment(output, installed=True) as deployment:
        verdicts: list[Verdict] = []
        proofs = rebuild_steps.rebuild(deployment, views, leap=leap, on_checked=verdicts.extend)
        _show_proofs(output, proofs)
        show_verdicts(output, verdicts)
        if tell_failing(output, verdicts) or any(proof.differing for proof in proofs):
            raise Different


@lamina.group()
def step() -> None:
    """The steps of a rebuild, one by one, for a scheduler. Each can be repeated."""


@command(parent=step)
@click.argument("views", nargs=-1)
@click.option("--leap", is_flag=True, help="Take over the queries and continue from the end of the log.")
@click.option("--key", help="A name for this request. Repeating it returns the same rebuild.")
@click.option("--due", is_flag=True, help="Leave out views whose `rebuild_every` has not passed.")
def seal(output: Output, views: Sequence[str], leap: bool, key: str | None, due: bool) -> None:
    """Begin a rebuild: open a generation of each view at its cut.

    Prints the rebuild's id and its views. If no view is due, no rebuild begins.
    """
    from lamina.operations import rebuild_steps
    from serving_layer.promise.rebuilds import Scheduler

    with open_deployment(output, installed=True) as deployment:
        if due and not (views := deployment.batch.due(views)):
            output.text("no view is due", rebuild=None, views=[])
            return
        id = rebuild_steps.seal(deployment, views, leap=leap, by=Scheduler(key))
        names = [generation.view for generation in deployment.batch.generations(id)]
        output.text(f"rebuild {id}: {', '.join(names)}", rebuild=id, views=names)


@command(parent=step, name="archive")
@with_rebuild
def step_archive(output: Output, id: int | None) -> None:
    """Archive every record below the cuts."""
    with open_deployment(output) as deployment:
        deployment.batch.archive(_rebuild_id(deployment, id))


@command(parent=step)
@click.argument("views", nargs=-1)
@with_rebuild
def compute(output: Output, views: Sequence[str], id: int | None) -> None:
    """Compute the cells of views (all, by default) below their cuts."""
    with open_deployment(output) as deployment:
        id = _rebuild_id(deployment, id)
        for name in views or [generation.view for generation in deployment.batch.generations(id)]:
            deployment.batch.compute(id, name)


@command(parent=step)
@with_rebuild
def go_live(output: Output, id: int | None) -> None:
    """Fold the realtime views into the new cells.

    From then on, micro-batches merge into the new cells. Prints the rebuild's id and its views.
    """
    with open_deployment(output) as deployment:
        id = _rebuild_id(deployment, id)
        deployment.batch.go_live(id)
        names = [generation.view for generation in deployment.batch.generations(id)]
        output.text(f"rebuild {id}: {', '.join(names)}", rebuild=id, views=names)


@command(parent=step)
@click.argument("views", nargs=-1)
@with_rebuild
def prove(output: Output, views: Sequence[str], id: int | None) -> None:
    """Compare every new cell with the one that is served.

    Without VIEWS, all views are compared. `lamina step check` runs their checks.
    """
    with open_deployment(output) as deployment:
        _show_proofs(output, deployment.batch.prove(_rebuild_id(deployment, id), views))


@command(parent=step, name="check")
@with_rebuild
def step_check(output: Output, id: int | None) -> None:
    """Run the checks of views over the new generations."""
    with open_deployment(output) as deployment:
        show_verdicts(output, deployment.batch.check(_rebuild_id(deployment, id)))


@command(parent=step)
@click.argument("views", nargs=-1)
@with_rebuild
@click.option("--anyway", is_flag=True, help="Hand over these views (all, by default) even if they are held back.")
def hand_over(output: Output, views: Sequence[str], id: int | None, anyway: bool) -> None:
    """Publish the new generations, all at once.

    With `--anyway`, VIEWS may follow, even after the rebuild. Prints the views that were handed over, the views over
    them, and the views that are held back.
    """
    from batch_layer import verdicts
    from lamina.operations import rebuild_steps

    if views and not anyway:
        raise click.UsageError("VIEWS need --anyway: without it, every view that is not held back is handed over")
    with open_deployment(output) as deployment:
        id = _rebuild_id(deployment, id)
        held = rebuild_steps.hand_over(deployment, id, views, anyway=anyway)
        moved = verdicts.views_with_new_rows(deployment.database, id)
        if held:
            for reason in verdicts.reasons_for_holding(deployment.database, id, held):
                output.tell(reason)
            output.tell(f"held back, and read as before: {', '.join(held)}")
        output.text(f"handed over: {', '.join(moved) or 'none'}", rebuild=id, handed_over=moved, held=held)
        if held:
            raise Different


@command(parent=step)
@with_rebuild
def retire(output: Output, id: int | None) -> None:
    """End the rebuild, and retire generations that nobody needs."""
    with open_deployment(output) as deployment:
        deployment.batch.retire(_rebuild_id(deployment, id))


@command(parent=step)
@with_rebuild
def abandon(output: Output, id: int | None) -> None:
    """Give up a rebuild. Readers see no change."""
    from lamina.operations import rebuild_steps

    with open_deployment(output) as deployment:
        rebuild_steps.abandon(deployment, _rebuild_id(deployment, id))


@command()
@click.argument("view")
def rollback(output: Output, view: str) -> None:
    """Return a view to its previous generation or version.

    The previous one was kept current, so readers lose no records.
    """
    from lamina.operations import applying

    with open_deployment(output) as deployment:
        views = deployment.deployed().views
        look_up(views, view, "view")
        before, after = applying.roll_back(deployment, view)
        if deployment.deployed().views[view].version != views[view].version:
            output.tell(
                f"The catalog's files still declare the newer version of {view}, which the next `lamina apply` would"
                " deploy again. Put its previous SELECT into them."
            )
        output.text(f"{view}: generation {before} → {after}", view=view, before=before, after=after)


def _rebuild_id(deployment: Deployment, id: int | None) -> int:
    from serving_layer.promise import rebuilds

    deployment.require_installed()
    with deployment.database.begin() as connection:
        return rebuilds.get(connection, id).id


def _show_proofs(output: Output, proofs: Sequence[Proof]) -> None:
    output.table(
        ("view", "generation", "against", "cells", "differing"),
        [(proof.view, proof.generation, proof.against, proof.cells, proof.differing) for proof in proofs],
    )
    for proof in proofs:
        for example in proof.examples:
            output.tell(f"{proof.view}: {example}")
