"""Plan, apply, preview and rollback: the operations that change which rows readers see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import view_algebra
from lamina.operations import lineage_events, source_topics
from lamina.operations.deployment import FEW, Deployment
from lamina.operations.installation import install
from serving_layer.catalog.deployed import sources
from serving_layer.change import deploying, previews
from serving_layer.change.catalog_changes import check_allowed
from serving_layer.change.deploying import Target
from serving_layer.change.planned_change import PlannedChange
from serving_layer.change.previews import PreviewedView
from serving_layer.narration import waiting
from serving_layer.readers import rights
from serving_layer.upkeep import dropping, indexes
from serving_layer.upkeep import install as installing
from view_algebra.compiled import Catalog

COMPUTED = ("create", "update", "reprocess")
"""Changes of a view that send lineage events."""


def plan(deployment: Deployment, files: Mapping[str, str]) -> list[PlannedChange]:
    """The changes that applying these files would make."""
    catalog = _compiled(deployment, files)
    changes = _changes(deployment, catalog)
    _narrate_sources(deployment, catalog, changes, "create", "update")
    new = [catalog.sources[change.name] for change in changes if change.kind == "source" and change.action == "create"]
    for line in source_topics.notes_on_new(deployment.brokers, new):
        deployment.tell(line)
    return changes


def apply(
    deployment: Deployment, files: Mapping[str, str], *, prune: bool = False, allow_break: bool = False
) -> list[PlannedChange]:
    """Deploys these files. Creates the missing topics of new sources, and computes new versions of views.

    Views and sources that are deployed but not in these files are dropped if `prune`. Columns that readers may use
    are dropped if `allow_break`. Without these, the change is refused.
    """
    catalog = _compiled(deployment, files)
    planned = _changes(deployment, catalog)
    # Before anything is installed, and before topics are created.
    check_allowed(planned, prune=prune, allow_break=allow_break)
    install(deployment)
    changed = [change.name for change in planned if change.kind == "view" and change.action in COMPUTED]
    with lineage_events.runs(deployment.settings, deployment.tell) as runs:
        runs.start(lambda: catalog, lambda: lineage_events.new_ids(changed))
        new = [change.name for change in planned if change.kind == "source" and change.action == "create"]
        ensure = partial(source_topics.ensure_topic, deployment.brokers, catalog=catalog, tell=deployment.tell)
        topics = {name: ensure(catalog.sources[name]) for name in new}
        _narrate_sources(deployment, catalog, planned, "update")
        target = Target(files, catalog, topics, prune=prune, allow_break=allow_break)
        with rights.naming_readers(deployment.database, "A reader holds a view that this change replaces"):
            changes = _deploy(deployment, target, planned)
    dropping.drop_unused(deployment.database)
    with waiting(deployment.tell, "building the indexes of views"):
        indexes.renew(deployment.database)
    return [change for change in planned if change.kind == "database"] + changes


def preview(deployment: Deployment, name: str, files: Mapping[str, str]) -> list[PreviewedView]:
    """Serves the views of these files in the schema `name`, next to the deployed ones, with live cells."""
    from batch_layer import reprocess

    deployment.require_installed()
    catalog = _compiled(deployment, files)
    reprocess.finish_moved_apply(deployment.batch)
    with rights.naming_readers(deployment.database, f"A reader holds a view of the preview {name}"):
        reprocess.preview(deployment.batch, name, catalog)
    dropping.drop_unused(deployment.database)
    with deployment.database.begin() as connection:
        return [view for view in previews.listed(connection) if view.preview == name]


def drop_preview(deployment: Deployment, name: str) -> None:
    """Ends a preview, and drops the cells that were computed for it alone."""
    deployment.require_installed()
    with rights.naming_readers(deployment.database, f"A reader holds a view of the preview {name}"):
        deployment.database.retrying(lambda connection: previews.drop(connection, name))
    dropping.drop_unused(deployment.database)


def roll_back(deployment: Deployment, view: str) -> tuple[int, int]:
    """Hands a view back to the generation before its published one. Returns (from, to)."""
    from batch_layer import renewals

    with rights.naming_readers(deployment.database, "A reader holds a view that the rollback replaces"):
        return renewals.roll_back(deployment.database, view, deployment.tell)


def _deploy(deployment: Deployment, target: Target, planned: list[PlannedChange]) -> list[PlannedChange]:
    """Deploys an allowed catalog: at once or, if new cells are needed, once they are computed."""
    from batch_layer import reprocess

    reprocess.finish_moved_apply(deployment.batch)
    reprocess.await_older_snapshots(deployment.batch, target)
    deployment.at("after planning")
    if not any(change.action == "reprocess" for change in planned):
        try:
            return reprocess.deploy(deployment.batch, target)
        except deploying.NotComputed:  # a source's first records were counted after the plan
            planned = _changes(deployment, target.catalog)
    is_short = sum(change.records or 0 for change in planned) <= FEW
    batch = replace(deployment.batch, spark=lambda: deployment.session(short_lived=is_short))
    reprocess.reprocess(batch, target)
    return [change for change in planned if change.kind != "database"]


def _changes(deployment: Deployment, catalog: Catalog) -> list[PlannedChange]:
    """The changes, without changing anything, not even a database in which nothing was installed."""
    with deployment.database.begin() as connection:
        installing.check_server(connection, deployment.database.name)
        is_installed = installing.is_installed(connection)
        changes = deploying.plan(connection, catalog) if is_installed else deploying.plan_of_nothing(catalog)
        pending = installing.pending(connection, deployment.settings.limits)
    if not pending:
        return changes
    name = str(deployment.database.url.database)
    effect = f"brought to what this Lamina installs: {', '.join(pending)}"
    if not is_installed:
        effect = "Lamina is installed: schemas, bookkeeping, functions and roles"
    return [PlannedChange("database", name, "update" if is_installed else "create", effect), *changes]


def _compiled(deployment: Deployment, files: Mapping[str, str]) -> Catalog:
    """The catalog in these files. Streams with UNIQUE are read in it as they are deployed."""
    catalog = view_algebra.compile_catalog(files)
    with deployment.database.begin() as connection:
        unique = {name: source for name, source in sources(connection).items() if source.ids}
    if all(catalog.sources.get(name) == source for name, source in unique.items()):
        return catalog
    return view_algebra.compile_catalog(files, unique)


def _narrate_sources(deployment: Deployment, catalog: Catalog, changes: Sequence[PlannedChange], *actions: str) -> None:
    """Narrates the properties of the changed sources' topics that their declarations may lead one not to expect."""
    changed = [
        catalog.sources[change.name] for change in changes if change.kind == "source" and change.action in actions
    ]
    for line in source_topics.notes_on_existing(deployment.brokers, changed):
        deployment.tell(line)
    for line in source_topics.notes_on_schemas(catalog.sources.values(), lambda: deployment.schemas.registry):
        deployment.tell(line)
