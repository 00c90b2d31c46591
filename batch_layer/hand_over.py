"""The hand-over of a rebuild: its generations go live next to the published ones, and then take their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from batch_layer import rebuild_failures
from batch_layer.verdicts import held_views
from serving_layer.catalog import lookup
from serving_layer.catalog.lookup import Generation
from serving_layer.change import view_checks
from serving_layer.postgres import courtesy
from serving_layer.postgres.database import Connection, Database
from serving_layer.postgres.states import GenerationState, RebuildState, Step
from serving_layer.promise import generations, overwriting, progress, rebuilds
from serving_layer.readers import views
from serving_layer.upkeep import dropping


@dataclass(frozen=True)
class HandOver:
    """Brings new generations to readers in every rebuild except a leap.

    at: called at named points, where tests stop
    """

    database: Database
    at: Callable[[str], None]

    def go_live(self, id: int, new: Sequence[Generation]) -> None:
        """Folds the realtime views into the batch views. From then on micro-batches merge into the new cells."""
        ids = [generation.id for generation in new]
        for new_id in ids:
            generations.absorb(self.database, new_id)
        self.at("absorbed")

        def step(connection: Connection) -> None:
            rebuilds.lock_running(connection, id)
            generations.go_live(connection, ids)

        self.database.retrying(step)
        dropping.drop_unused(self.database)

    def hand_over(self, id: int, released: Sequence[str] | None) -> list[str]:
        """Lets readers read the new generations, all at once. Returns the views that are held back.

        released: None, or names to hand over even if they are held back. All are released if it is empty
        """
        self._note_differences(id)
        return self.database.retrying(partial(_publish, id=id, released=released))

    def _note_differences(self, id: int) -> None:
        """Notes the cells that differ from the published ones, without a lock, so that the hand-over is short."""
        with self.database.begin() as connection:
            new_generations = lookup.generations_of_rebuild(connection, id)
        for sealed in new_generations:
            with self.database.begin(isolation="REPEATABLE READ") as connection:
                courtesy.stand_back(connection)
                new = lookup.get(connection, sealed.id)
                old = lookup.get(connection, lookup.published(connection).get(new.view, new.id))
                if new.state is GenerationState.LIVE and old.id != new.id and old.version == new.version:
                    overwriting.note(connection, new, old)
        self.at("noted")


def _publish(connection: Connection, id: int, released: Sequence[str] | None) -> list[str]:
    """Hands the generations of a rebuild over, except those that are held back and not released."""
    run = rebuilds.lock_running(connection, id, or_held=released is not None)
    run.check_names(released or ())
    progress.lock(connection, {name for new in lookup.generations_of_rebuild(connection, id) for name in new.queries})
    sealed = lookup.generations_of_rebuild(connection, id)  # read under the lock: an apply may have dropped a view
    if not sealed:
        raise rebuild_failures.no_generation(id)
    ready = lookup.newer(connection, [new for new in sealed if not new.was_shown])
    releases_all = released is not None and not released
    held = [] if releases_all else held_views(connection, run, ready, released or ())
    new = {new.view: new.id for new in ready if new.view not in held}
    if released is not None and not new:
        raise rebuild_failures.nothing_to_release(id)
    generations.hand_over(connection, new)
    verdicts = view_checks.results(connection, id)
    view_checks.replace_live(connection, [verdict for verdict in verdicts if not held or verdict.view in new])
    views.serve(connection)
    if run.state is RebuildState.RUNNING:
        rebuilds.record_finished(connection, id, Step.HAND_OVER)
    elif not held:
        rebuilds.end(connection, id, RebuildState.DONE)
    return held
