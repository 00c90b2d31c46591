"""Trials: what views would read once generations are handed over or a catalog is deployed, so checks can run first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from serving_layer.catalog import lookup, versions
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.change import renames
from serving_layer.readers import views
from view_algebra.compiled import Catalog


@dataclass(frozen=True)
class Trial:
    """A catalog as it would be read.

    places: the places of the tables of cells, by name. Tables without a place are empty.
    changed: the views that would show other rows, or their first ones.
    new: the names that nobody can read yet.
    """

    catalog: Catalog
    places: Mapping[str, str]
    changed: frozenset[str]
    new: frozenset[str] = frozenset()


def of_handover(connection: Connection, catalog: Catalog, new: Sequence[Generation]) -> Trial:
    """The deployed catalog after these generations are handed over. Generations of other versions are ignored."""
    declared = {(view.name, view.version) for view in catalog.views.values()}
    new = [opened for opened in new if (opened.view, opened.version) in declared]
    read = versions.readable(connection, catalog) | {opened.view: opened for opened in new}
    unread = catalog.views.keys() - views.served_views(connection)
    return Trial(catalog, _places(read.values()), frozenset(opened.view for opened in new), frozenset(unread))


def of_catalog(connection: Connection, catalog: Catalog, ready: Sequence[Generation]) -> Trial:
    """A planned catalog after it is deployed. `ready` are the generations that were computed for it."""
    before = deployed(connection)
    named = renames.declared_renames(before, catalog)
    old = renames.renamed_catalog(before, {was: name for name, was in named.items()}).views
    published = lookup.published(connection)
    read = versions.readable(connection, catalog) | {opened.view: opened for opened in ready}
    places = _places(read.values())
    for name in (name for name, was in named.items() if was in published):
        there = lookup.get(connection, published[named[name]]).places
        tables = zip(before.views[named[name]].cell_tables, old[name].cell_tables, strict=True)
        places |= {table.name: there[other.name] for other, table in tables if other.name in there}
    new = (catalog.views.keys() - old.keys()) | named.keys()
    now = {name: opened.id for name, opened in read.items()}
    changed = {
        name
        for name, view in catalog.views.items()
        if name in old
        and (old[name].final != view.final or (name not in named and now.get(name) != published.get(name)))
    }
    unread = catalog.views.keys() - views.served_views(connection)
    first = {name for name in new - named.keys() if _has_cells(catalog, name, places)}
    return Trial(catalog, places, frozenset(changed | first), frozenset(new | unread))


def _has_cells(catalog: Catalog, name: str, places: Mapping[str, str]) -> bool:
    """True if a new view would have cells to show, and so would all views that it reads."""
    view = catalog.views[name]
    own = all(table.name in places for table in view.cell_tables)
    return own and all(_has_cells(catalog, read, places) for read in view.reads)


def _places(read: Iterable[Generation]) -> dict[str, str]:
    return {table: place for opened in read for table, place in opened.places.items()}
