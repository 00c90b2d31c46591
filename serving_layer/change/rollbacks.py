"""Rollbacks: a view returns to its previous generation, or to its previous version with the SELECT of that version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from sqlalchemy import Connection, select, update

from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed, state
from serving_layer.catalog.lookup import Generation
from serving_layer.catalog.versions import Version
from serving_layer.change import deploying
from serving_layer.change.view_change import breaks
from serving_layer.postgres.bookkeeping import generation
from serving_layer.promise import generations, progress
from view_algebra.compiled import Catalog, Column, View
from view_algebra.errors import LaminaError, Refused

KEPT = "Apply the previous catalog: the version is kept live, so nothing is computed."
KEPT_ABOVE = "Apply the previous catalog: versions that are kept live are not computed again."
RENAMED = (
    "Declare its previous SELECT with the new name, and apply: versions that are kept live are not computed again."
)
AS_IT_IS = "Declare its previous SELECT over the present source, and apply."


class RollbackObstacle(NamedTuple):
    """A reason why a view cannot be rolled back alone."""

    why: str
    evidence: str
    way_out: str


def roll_back(connection: Connection, name: str) -> tuple[int, int]:
    """Hands a view back to the newest live generation before the published one. Returns the ids (from, to).

    A version that is returned to becomes the declared one again. This is refused if the view would not equal its SELECT
    or if views above it could not continue. In that case, applying the previous catalog brings everything back.
    """

    def look() -> tuple[object, Generation, Generation]:
        return state(connection), *lookup.before_published(connection, name)

    judged = look()
    _refuse(connection, *judged[1:])  # before the lock: it may compile, and micro-batches wait for the lock
    progress.lock(connection, progress.queries(connection))
    _, now, before = present = look()
    if present != judged:
        _refuse(connection, now, before)
    with _keeping_first_shown(connection, before.id):
        if now.version == before.version:
            generations.hand_over(connection, {name: before.id})
        else:
            catalog = deployed(connection)
            version = versions.get(connection, name, before.version)
            views = _in_order({**catalog.views, name: version.view})
            deploying.deploy(connection, catalog, replace(catalog, views=views), {name: before.id})
    return now.id, before.id


@contextmanager
def _keeping_first_shown(connection: Connection, id: int) -> Iterator[None]:
    """Keeps the time at which a generation was first shown, while the block publishes it again. A second rollback then
    goes further back, not to the generation that was just withdrawn.
    """
    is_generation = generation.c.id == id
    shown_at = connection.execute(select(generation.c.shown_at).where(is_generation)).scalar_one()
    yield
    connection.execute(update(generation).where(is_generation).values(shown_at=shown_at))


def _refuse(connection: Connection, now: Generation, before: Generation) -> None:
    if now.version == before.version:
        return
    catalog = deployed(connection)
    version = versions.get(connection, now.view, before.version)
    for why, evidence, way_out in chain(obstacles_in_version(version, catalog), obstacles_above(version.view, catalog)):
        raise LaminaError(f"{now.view} cannot be rolled back alone: {why}", evidence=evidence, way_out=way_out)


def obstacles_in_version(version: Version, catalog: Catalog) -> Iterator[RollbackObstacle]:
    """The reasons why a version cannot be declared again, found in what it reads."""
    old = version.view
    otherwise = sorted(n for n, source in version.sources.items() if source.parse != catalog.sources[n].parse)
    if otherwise:
        unique = any(catalog.sources[name].ids for name in otherwise)  # no apply changes how such a stream is read
        evidence = f"version {old.version} reads an earlier declaration of {', '.join(otherwise)}"
        yield RollbackObstacle("its source was declared differently", evidence, AS_IT_IS if unique else KEPT)
    streams = {name for name, source in catalog.sources.items() if source.kind == "stream"}
    read = {name for check in old.checks for name in check.reads}
    made_of = ", ".join(sorted((_named(old) | read) - streams - {old.name}))
    now = {current.properties.get("renamed_from"): name for name, current in catalog.views.items()}
    if called := sorted(name for name in _named(old) & now.keys() if name not in catalog.views):
        names = ", ".join(now[name] for name in called)
        why = f"{', '.join(called)} is called {names} now"
        yield RollbackObstacle(why, "its previous SELECT uses the old name", RENAMED)
    elif made_of and not _compiles_to(version, catalog):
        evidence = f"over the present {made_of} its SELECT is not version {old.version}"
        yield RollbackObstacle(f"{made_of} changed since", evidence, KEPT)


def obstacles_above(old: View, catalog: Catalog) -> Iterator[RollbackObstacle]:
    """The reasons why views above this one cannot continue over its older version."""
    name = old.name
    unread = (view for view in catalog.views.values() if name not in view.reads)
    if through := sorted(view.name for view in unread if name in _named(view)):
        evidence = f"its SELECT names {name} and reads the same source"
        yield RollbackObstacle(f"{', '.join(through)} is computed from its records", evidence, KEPT_ABOVE)
    on_top = sorted(other for other, view in catalog.views.items() if name in view.reads)
    as_it_is = f"{', '.join(on_top)} reads its present form"
    if on_top and old.sources != catalog.views[name].sources:
        yield RollbackObstacle(as_it_is, f"version {old.version} reads {', '.join(old.sources)}", KEPT)
    if on_top and (lacking := breaks(catalog.views[name].columns, old.columns)):
        yield RollbackObstacle(as_it_is, f"in version {old.version} {', '.join(lacking)}", KEPT)
    if on_top and _groups(old) != _groups(catalog.views[name]):
        yield RollbackObstacle(as_it_is, f"version {old.version} has other groups, and ties are broken by groups", KEPT)


def _named(view: View) -> frozenset[str]:
    """The names in the text of a view. A named view that it does not read is folded into it."""
    from view_algebra.written.naming import names_in

    return names_in(view)


def _compiles_to(version: Version, catalog: Catalog) -> bool:
    """True if the version's SELECT compiles to the same version over the views that are declared now.

    Otherwise those views have changed, or continue over the newer one, or another Lamina compiled the version.
    """
    from view_algebra import compile_catalog

    old = version.view
    declared = {**catalog.views, old.name: old}
    needed, named = set[str](), {old.name}.union(*(check.reads for check in old.checks))
    while new := named & declared.keys() - needed:
        needed |= new
        named = set[str]().union(*(_named(declared[name]) for name in new))
    files = {name: source.sql for name, source in catalog.sources.items()}
    files |= {name: declared[name].sql for name in needed}  # a table is both, with the same text
    files |= {f"{old.name}: {check.name}": check.sql for check in old.checks}
    try:
        again = compile_catalog(files, {name: unique for name, unique in catalog.sources.items() if unique.ids})
    except Refused:
        return False
    return _meaning(again.views[old.name]) == _meaning(old)


def _meaning(view: View) -> tuple[object, ...]:
    """Everything that readers and checks see of a view."""
    return view.version, view.final, view.columns, [check.failing for check in view.checks]


def _in_order(views: Mapping[str, View]) -> dict[str, View]:
    """The views, each after those it reads."""
    in_order: dict[str, View] = {}

    def add(name: str) -> None:
        if name not in in_order:
            for read in views[name].reads:
                add(read)
            in_order[name] = views[name]

    for name in views:
        add(name)
    return in_order


def _groups(view: View) -> frozenset[Column]:
    """The key columns that all tables of cells of a view share."""
    return frozenset.intersection(*(frozenset(table.keys) for table in view.cell_tables))
