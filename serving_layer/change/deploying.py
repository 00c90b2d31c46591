"""Deploying a catalog: `plan` lists its changes, `apply` makes them."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed, store
from serving_layer.change import facts, renames, view_checks
from serving_layer.change.catalog_changes import NOTHING, check_allowed, compare, deployable
from serving_layer.change.facts import Facts
from serving_layer.change.planned_change import PlannedChange
from serving_layer.postgres.bookkeeping import declaration, generation, publication, view
from serving_layer.postgres.cells import run
from serving_layer.postgres.states import GenerationState
from serving_layer.promise import generations, history, progress, rebuilds, source_queries
from serving_layer.promise.source_queries import End, Topic
from serving_layer.readers import views
from view_algebra.compiled import Catalog, View
from view_algebra.errors import LaminaError, Unknown


def plan(connection: Connection, catalog: Catalog) -> list[PlannedChange]:
    """The changes that `apply` would make. A change with the action `refuse` makes `apply` refuse the whole catalog."""
    return compare(deployed(connection), catalog, facts.read(connection))


def kinds(connection: Connection) -> dict[str, str]:
    """The kind of each deployed view: `aggregate`, `row` or `derived`."""
    return {row.name: row.kind for row in connection.execute(select(view.c.name, view.c.kind))}


def with_cells(connection: Connection, names: Iterable[str]) -> list[str]:
    """Those of the named views (of all views, if none is named) that have cells. Raises if a name is unknown."""
    declared = kinds(connection)
    unknown = sorted(set(names) - set(declared))
    if unknown:
        way_out = "`lamina apply` deploys the views of a catalog."
        raise Unknown("view", unknown[0], sorted(declared), way_out=way_out)
    rebuilt = sorted({name for name in (names or declared) if declared[name] != "derived"})
    if not rebuilt:
        raise LaminaError(
            "There is nothing to rebuild",
            evidence="derived views hold no cells of their own" if declared else "no view is deployed",
            way_out="Name a view with cells, or deploy a catalog with `lamina apply`.",
        )
    return rebuilt


def plan_of_nothing(catalog: Catalog) -> list[PlannedChange]:
    """The changes that a first apply would make, in a database in which Lamina is not installed."""
    return compare(NOTHING, catalog, Facts())


def announce(connection: Connection, coming_versions: Sequence[View], catalog: Catalog) -> set[str]:
    """Registers versions that will be opened soon. Returns the tables of cells that busy writers prepare for.

    A version that is not opened after all is forgotten with the other unused versions.
    """
    sources = deployed(connection).sources.keys()
    fed = [new for new in coming_versions if new.fed_by <= sources]  # a new source has no writer yet
    progress.lock(connection, {source for new in fed for source in new.fed_by})
    versions.store(connection, fed, catalog)
    for new in fed:
        versions.register(connection, new)
    busy = {source for new in fed for source in new.fed_by if progress.are_busy(connection, {source})}
    announced = {name for source in busy for name in versions.announced_tables(connection, source)}
    soon = {table.name for new in fed for table in new.cell_tables} & announced
    versions.forget_prepared(connection, soon)
    return soon


def are_awaited(connection: Connection, names: Collection[str]) -> bool:
    """True if a busy writer is still preparing for at least one of these tables of cells."""
    return progress.are_busy(connection, versions.unprepared_queries(connection, names))


def open_changed(
    connection: Connection,
    catalog: Catalog,
    changes: Sequence[PlannedChange],
    topics: Mapping[str, Topic],
    ends: Mapping[str, End],
    rebuild: int,
) -> None:
    """Opens a generation, at one cut, of every version that must be computed before the catalog can be applied.

    Nothing that is declared, served or kept changes. The query of a new source exists from now on. The records below
    the end of its topic are computed with the versions. Micro-batches continue from there once the versions are live.
    """
    after, opened = to_compute(connection, catalog, changes)
    for name in unread_sources(deployed(connection), opened):
        source_queries.create(connection, name, after.sources[name].topic, _topic(topics, name), ends[name])
    open_versions(connection, opened, after, rebuild)


def _topic(topics: Mapping[str, Topic], name: str) -> Topic:
    if name not in topics:
        raise LaminaError(f"The source {name} was dropped while this command ran", way_out="Repeat the command.")
    return topics[name]


def unread_sources(before: Catalog, opened: Iterable[View]) -> set[str]:
    """The new sources of these versions: none of them is deployed, so no speed layer reads them yet."""
    return {source for new in opened for source in new.fed_by} - before.sources.keys()


def open_versions(connection: Connection, opened: Sequence[View], catalog: Catalog, rebuild: int) -> None:
    """Opens a generation of each of these views, at one cut."""
    progress.lock(connection, {source for new in opened for source in new.fed_by})
    versions.store(connection, opened, catalog)
    for new in opened:
        versions.register(connection, new)
        generations.open_building(connection, new.name, rebuild=rebuild, other=new)


def to_compute(
    connection: Connection, catalog: Catalog, changes: Sequence[PlannedChange]
) -> tuple[Catalog, list[View]]:
    """The catalog as deployed after an apply, and the versions that must be computed before it."""
    after = deployable(deployed(connection), catalog, changes, _stored_views(connection))
    return after, views_to_compute(after, changes, versions.kept_or_previewed(connection))


def catalog_after_apply(connection: Connection, catalog: Catalog) -> Catalog:
    """The catalog as deployed after an apply."""
    return deployable(deployed(connection), catalog, plan(connection, catalog), _stored_views(connection))


def views_to_compute(
    catalog: Catalog, changes: Iterable[PlannedChange], live: Container[tuple[str, str]]
) -> list[View]:
    """The views to compute: those with new cells and, so that all are served together, the new views.

    `live` are the versions that a preview has computed or that are kept.
    """
    changed = {change.name for change in changes if change.action == "reprocess"}
    new = {change.name for change in changes if change.kind == "view" and change.action == "create"}
    new = {name for name in new if (name, catalog.views[name].version) not in live}
    return [
        view
        for name, view in catalog.views.items()
        if view.cell_tables and (name in changed or (changed and name in new))
    ]


def lock(connection: Connection) -> None:
    """Locks everything that an apply may change until the transaction ends."""
    # Two first applies share no query that one could wait for.
    run(connection, f"LOCK TABLE {declaration} IN SHARE ROW EXCLUSIVE MODE")
    progress.lock(connection, progress.queries(connection))


@dataclass(frozen=True)
class Target:
    """A catalog to deploy, with its files.

    topics: those of its new sources, by source name
    prune: deployed views and sources that it lacks are dropped. Otherwise it is refused if it lacks one
    allow_break: readers may lose columns. Otherwise it is refused if they would
    """

    files: Mapping[str, str]
    catalog: Catalog
    topics: Mapping[str, Topic]
    prune: bool = False
    allow_break: bool = False


def apply(connection: Connection, target: Target, ready: Mapping[str, int] | None = None) -> list[PlannedChange]:
    """Deploys a catalog in one transaction.

    A view over a new source is live at once, from the offsets at which the source begins. A new view over a source with
    history is registered now and served after the next rebuild. A view with another version moves to the generation
    that is `ready`, or to one that is kept live, and readers see all moves in one snapshot.
    Raises NotComputed, before any change, if cells must be computed first.
    """
    lock(connection)
    if ready is None:
        rebuilds.refuse_during_apply(connection)
        rebuilds.end_dead_apply(connection)
        retire_leftovers(connection)  # also drops queries that were created for another catalog
    changes = allowed_changes(connection, target)
    if lacking := [new.name for new in changes if new.action == "reprocess" and new.name not in (ready or {})]:
        raise _not_computed(lacking[0], target.catalog.views[lacking[0]].version)
    declared = deployed(connection)
    renamed = {old: new for new, old in renames.declared_renames(declared, target.catalog).items()}
    before = renames.apply(connection, declared, renamed)
    catalog = deployable(before, target.catalog, changes, _stored_views(connection))
    actions = {change.name: change.action for change in changes if change.kind == "source"}
    dropped = [name for name, action in actions.items() if action == "drop"]
    for name in dropped:
        source_queries.forget(connection, name)
    for name, source in catalog.sources.items():
        if actions[name] == "create" and not progress.starts(connection, [name]):
            source_queries.create(connection, name, source.topic, _topic(target.topics, name))
    deploy(connection, before, catalog, ready or {})
    kept_for_rollbacks = generations.fed_by(connection, dropped)  # nothing maintains them any more
    generations.retire(connection, [orphan.id for orphan in kept_for_rollbacks])
    connection.execute(delete(declaration))
    if target.files:
        files = [{"path": path, "sql": sql} for path, sql in sorted(target.files.items())]
        connection.execute(insert(declaration), files)
    view_checks.forget(connection, catalog)
    return changes


def allowed_changes(connection: Connection, target: Target) -> list[PlannedChange]:
    """The changes that a target makes. Raises if they are not allowed."""
    changes = plan(connection, target.catalog)
    check_allowed(changes, prune=target.prune, allow_break=target.allow_break)
    return changes


def deploy(connection: Connection, before: Catalog, catalog: Catalog, ready: Mapping[str, int]) -> None:
    """Replaces the deployed catalog `before` by `catalog`. The caller holds the lock of the queries.

    The views are replaced last, because readers wait for that.
    """
    moving = _moving(connection, before, catalog, ready)
    declared = catalog.views
    replaced = [old for n, old in before.views.items() if n not in declared or declared[n].version != old.version]
    versions.store(connection, replaced, before)  # for rollbacks and previews
    store(connection, catalog)
    emptied = {
        n for n, old in before.views.items() if old.cell_tables and n in declared and not declared[n].cell_tables
    }
    views.set_aside(connection, moving.keys() | emptied, catalog)
    with_history = source_queries.with_history(connection)
    for position, (name, compiled) in enumerate(catalog.views.items()):
        _record(connection, compiled, position)
        old = before.views.get(name)
        if old is not None and old.version != compiled.version and not compiled.cell_tables:
            _withdraw_cells(connection, name)
        if old is None or old.version != compiled.version:
            versions.register(connection, compiled)
        if old is None and compiled.cell_tables and name not in moving and not with_history & compiled.fed_by:
            _open_empty(connection, name)
    generations.hand_over(connection, moving)
    gone = [name for name in before.views if name not in catalog.views]
    for name in gone:
        _withdraw_cells(connection, name)
    views.serve(connection, except_for=gone)
    views.withdraw(connection, gone)
    connection.execute(delete(view).where(view.c.name.in_(gone)))
    history.record_shown(connection, list(catalog.views))


def _moving(connection: Connection, before: Catalog, catalog: Catalog, ready: Mapping[str, int]) -> dict[str, int]:
    """The generation that each view moves to: views with another version, and new views that are ready."""
    live = versions.kept_or_previewed(connection)
    targets = {}
    for name, compiled in catalog.views.items():
        old = before.views.get(name)
        if not compiled.cell_tables or (old is not None and old.version == compiled.version):
            continue
        id = ready.get(name, live.get((name, compiled.version)))
        if id is not None and lookup.get(connection, id).version == compiled.version:
            targets[name] = id
        elif old is not None:
            raise _not_computed(name, compiled.version)
    return targets


class NotComputed(LaminaError):
    """The catalog has a view whose cells must be computed before it can be served."""


def _not_computed(name: str, version: str) -> NotComputed:
    return NotComputed(
        f"The cells of {name} are not computed yet",
        evidence=f"version {version} has no live generation",
        way_out="Apply again: the cells were computed for another catalog, or its sources were still empty.",
    )


def retire_leftovers(connection: Connection, *, also_lock: Iterable[str] = ()) -> None:
    """Retires the leftovers of failed rebuilds and applies.

    Also locks the queries in `also_lock`, which the caller needs next: all locks are taken in one order.
    """
    dead = lookup.left_by_failures(connection)
    progress.lock(connection, {*also_lock, *(name for leftover in dead for name in leftover.queries)})
    generations.retire(connection, [leftover.id for leftover in dead])
    source_queries.forget_undeployed(connection)


def _stored_views(connection: Connection) -> list[View]:
    return [stored.view for stored in versions.stored_versions(connection)]


def _record(connection: Connection, compiled: View, position: int) -> None:
    values = {
        "kind": compiled.kind,
        "version": compiled.version,
        "position": position,
        "final": compiled.final,
        "columns": views.shown_columns(compiled),
        "comment": compiled.comment,
        "reads": list(compiled.reads),
        "keep_generations": int(compiled.properties.get("keep_generations", "1")),
        "keep_versions": int(compiled.properties.get("keep_versions", "1")),
        "on_difference": compiled.properties.get("on_difference", "publish"),
        "retain": compiled.properties.get("retain"),
        "fresh_within": compiled.properties.get("fresh_within"),
    }
    statement = upsert(view).values(name=compiled.name, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=[view.c.name], set_=values))


def _open_empty(connection: Connection, name: str) -> None:
    """Opens a generation at the first offsets and makes it live: no record below its cut needs computing."""
    new = generations.open_building(connection, name, rebuild=None)
    for table in new.tables:
        generations.record_loaded(connection, new.id, table, attempt=0)
    generations.go_live(connection, [new.id])
    generations.hand_over(connection, {name: new.id})


def _withdraw_cells(connection: Connection, name: str) -> None:
    """Retires the generations of a view that no longer has cells, except those that a preview reads."""
    connection.execute(delete(publication).where(publication.c.view == name))
    remaining = lookup.find(connection, generation.c.view == name, generation.c.state != GenerationState.RETIRED)
    for_previews = lookup.generations_of_previews(connection)
    generations.retire(connection, [opened.id for opened in remaining if opened.id not in for_previews])
