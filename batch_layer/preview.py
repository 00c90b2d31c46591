"""A preview of a catalog: the versions that no live generation has are computed beside the others, and nothing moves.

The steps are those of a changed catalog (`reprocess.py`): seal, archive, compute, go live, prove and check. Then the
views of the preview are made in place of the move. Checks that fail are told: what they keep from readers is an apply.
"""

from __future__ import annotations

from batch_layer.checking import checked
from batch_layer.patience import patiently
from batch_layer.rebuild import BatchLayer
from batch_layer.reprocess import begun, computed
from serving_layer.catalog import lookup
from serving_layer.change import previews, registry, trials
from serving_layer.postgres.database import Connection
from serving_layer.promise import rebuilds
from view_algebra.compiled import Catalog


def preview(batch: BatchLayer, name: str, catalog: Catalog) -> None:
    """Serves the views of a catalog in the schema `name`, in place of an earlier preview of that name.

    Where it fails, or is interrupted, an earlier one is as it was.
    """
    with batch.database.begin() as connection:
        previews.check_name(connection, name)
        lacking = previews.lacking(connection, previews.compiled(connection, catalog))
    if not lacking:
        patiently(batch.database, batch.tell, lambda connection: previews.make(connection, name, catalog))
        return

    def make(id: int) -> None:
        _check(batch, id, catalog)
        patiently(batch.database, batch.tell, lambda connection: _made(connection, id, name, catalog))
        batch.at("after preview")

    def announce(connection: Connection) -> set[str]:
        after = previews.compiled(connection, catalog)
        return registry.announce(connection, previews.lacking(connection, after), after)

    computed(batch, announce, lambda connection: _begun(connection, batch, name, catalog), make)


def _begun(connection: Connection, batch: BatchLayer, name: str, catalog: Catalog) -> int:
    """The rebuild that computes what the preview lacks."""
    after = previews.compiled(connection, catalog)
    lacking = previews.lacking(connection, after)
    command = f"{rebuilds.PREVIEW}{name}"

    def open(id: int) -> None:
        registry.open_versions(connection, lacking, after, id)

    return begun(connection, batch, command, lacking, after, open)


def _check(batch: BatchLayer, id: int, catalog: Catalog) -> None:
    """Runs the checks of the catalog over what was computed; an apply of it would be refused for those that block."""
    with batch.database.begin() as connection:
        trial = trials.of_catalog(connection, previews.compiled(connection, catalog), lookup.of_rebuild(connection, id))
    for each in checked(batch.database, trial):
        if each.failing:
            batch.tell(f"{each.sentence}{' (an apply is refused for it)' if each.blocked else ''}")


def _made(connection: Connection, id: int, name: str, catalog: Catalog) -> None:
    rebuilds.running(connection, id)
    ready = {each.view: each.id for each in lookup.of_rebuild(connection, id)}
    previews.make(connection, name, catalog, ready)
    rebuilds.finished(connection, id, rebuilds.STEPS[-1])
    rebuilds.end(connection, id, "done")
