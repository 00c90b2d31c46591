"""A preview of a catalog: versions without a live generation are computed next to the others, and nothing moves.

The steps are those of a rebuild (`BatchLayer.run`). In place of the hand-over, the views of the preview are made.
Checks that fail are only told: an apply of the catalog would be refused for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from batch_layer.checking import checked
from batch_layer.patience import patiently
from batch_layer.rebuild import BatchLayer
from batch_layer.reprocess import announce_and_open, begun
from serving_layer.catalog import lookup
from serving_layer.change import previews, registry, trials
from serving_layer.postgres.database import Connection
from serving_layer.postgres.states import RebuildKind, RebuildState, Step
from serving_layer.promise import rebuilds
from serving_layer.promise.proof import Proof
from serving_layer.promise.rebuilds import Purpose
from view_algebra.compiled import Catalog


def preview(batch: BatchLayer, name: str, catalog: Catalog) -> None:
    """Serves the views of a catalog in the schema `name`, in place of an earlier preview of that name.

    If it fails or is interrupted, the earlier one is unchanged.
    """
    with batch.database.begin() as connection:
        previews.check_name(connection, name)
        lacking = previews.uncomputed_views(connection, previews.previewed_catalog(connection, catalog))
    if lacking:
        batch.run(_Preview(batch, name, catalog))
    else:
        patiently(batch.database, batch.tell, lambda connection: previews.make(connection, name, catalog))


@dataclass(frozen=True)
class _Preview:
    """The plan of `lamina apply --preview NAME`."""

    batch: BatchLayer
    name: str
    catalog: Catalog

    def seal(self) -> int:
        return announce_and_open(self.batch, self._announce, self._open)

    def _announce(self, connection: Connection) -> set[str]:
        after = previews.previewed_catalog(connection, self.catalog)
        return registry.announce(connection, previews.uncomputed_views(connection, after), after)

    def _open(self, connection: Connection) -> int:
        after = previews.previewed_catalog(connection, self.catalog)
        lacking = previews.uncomputed_views(connection, after)
        purpose = Purpose(RebuildKind.PREVIEW, self.name)
        open = partial(registry.open_versions, connection, lacking, after)
        return begun(connection, self.batch, purpose, lacking, after, open)

    def check(self, id: int, proofs: Sequence[Proof]) -> None:  # noqa: ARG002 (a preview may differ)
        with self.batch.database.begin() as connection:
            compiled = previews.previewed_catalog(connection, self.catalog)
            trial = trials.of_catalog(connection, compiled, lookup.of_rebuild(connection, id))
        for verdict in checked(self.batch.database, trial):
            if verdict.failing:
                self.batch.tell(f"{verdict.sentence}{' (an apply is refused for it)' if verdict.blocked else ''}")

    def hand_over(self, id: int) -> None:
        def step(connection: Connection) -> None:
            rebuilds.lock_running(connection, id)
            ready = {new.view: new.id for new in lookup.of_rebuild(connection, id)}
            previews.make(connection, self.name, self.catalog, ready)
            rebuilds.record_finished(connection, id, Step.RETIRE)
            rebuilds.end(connection, id, RebuildState.DONE)

        patiently(self.batch.database, self.batch.tell, step)
