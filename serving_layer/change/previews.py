"""Previews: the views of a catalog in a schema of their own, next to the deployed ones, over live cells.

A view whose version is deployed or kept reads the existing cells. For any other version a generation is computed and
fed, as before a move (`deploying.py`), but nothing moves. A preview names the places that it reads, and a hand-over
leaves these where they are. So a preview keeps working through rebuilds, rollbacks and changes of the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, delete, insert, select, text

from serving_layer.catalog import lookup, versions
from serving_layer.catalog.compiled_json import from_json, to_json
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.change import deploying, facts, renames
from serving_layer.change.catalog_changes import check_allowed, compare
from serving_layer.postgres.bookkeeping import generation, preview, previewed
from serving_layer.postgres.cells import run
from serving_layer.postgres.database import wait_shortly_for_readers
from serving_layer.postgres.states import GenerationState
from serving_layer.promise import generations, progress, rebuilds
from serving_layer.readers import dependents, views
from serving_layer.readers.sides import in_schema, with_places
from view_algebra.compiled import Catalog, Source, View
from view_algebra.errors import LaminaError, Unknown
from view_algebra.language.quoting import postgres_name, postgres_text, quoted

RESERVED_SCHEMAS = ("lamina", "cells", "realtime", "analytics", "spark", "iceberg", "public", "information_schema")
"""Schemas that no preview may be named after, besides those that begin with `pg_`."""


class CellsOrigin(StrEnum):
    """The cells that a previewed view reads: its own, the deployed view's, none (a derived view), or retired ones."""

    OWN = "own"
    SHARED = "shared"
    NONE = "none"
    RETIRED = "retired"


@dataclass(frozen=True)
class PreviewedView:
    """A view of a preview."""

    preview: str
    view: str
    version: str
    cells: CellsOrigin
    made_at: datetime


def check_name(connection: Connection, name: str) -> None:
    """Raises unless a preview may have this name: a valid schema name that no foreign schema has."""
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", name) or postgres_name(name) != name:
        raise LaminaError(
            f"{name!r} cannot be the name of a preview",
            evidence="It must be a name that needs no quotes in SQL: a-z, 0-9 and _, no leading digit, at most"
            " 63 characters, no reserved word.",
            way_out="Name it after its purpose or a branch: `--preview dev`, `--preview fix_1234`.",
        )
    if name in RESERVED_SCHEMAS or name.startswith("pg_"):
        raise LaminaError(
            f"{name} cannot be the name of a preview",
            evidence="The schema is Lamina's or Postgres' own.",
            way_out="Choose another name: `--preview dev`.",
        )
    schema = connection.execute(text("SELECT FROM pg_namespace WHERE nspname = :name"), {"name": name}).one_or_none()
    if schema is not None and name not in lookup.preview_names(connection):
        raise LaminaError(
            f"{name} cannot be the name of a preview: another schema has it",
            evidence=f"The schema {name} exists, and no preview is called {name}.",
            way_out="Choose another name. Lamina never changes a schema that it did not create.",
        )


def previewed_catalog(connection: Connection, catalog: Catalog) -> Catalog:
    """The catalog that a preview serves, as an apply would deploy it. Raises if it has a new source."""
    before = deployed(connection)
    if new := sorted(catalog.sources.keys() - before.sources.keys()):
        raise LaminaError(
            f"{', '.join(new)} cannot be previewed: no source is deployed by that name",
            evidence="A preview reads the records that deployed sources have counted. A new source is read once it is"
            " applied.",
            way_out="Add the source to the deployed catalog and `lamina apply` it, then preview.",
        )
    if renaming := renames.declared_renames(before, catalog):
        new_name, old = next(iter(renaming.items()))
        raise LaminaError(
            f"{new_name} cannot be previewed as another name of {old}",
            evidence=f"It declares 'renamed_from' = '{old}', and a rename would move the cells to the new name.",
            way_out="Apply the rename alone and preview the rest, or preview it without the property.",
        )
    present = replace(facts.read(connection), others={})  # deployed views stay, so their readers do not matter
    check_allowed(compare(before, catalog, present), prune=True, allow_break=True)
    planned = deploying.catalog_after_apply(connection, catalog)
    for name, source in planned.sources.items():
        if source.ids and source.parse != before.sources[name].parse:
            raise LaminaError(
                f"{name} cannot be previewed with other columns: its events count once",
                evidence="The copy of an event that counts is chosen once for all views, among the records that the"
                " deployed source can read.",
                way_out="Apply the source with its new columns, then preview views of them.",
            )
    return planned


def uncomputed_views(connection: Connection, catalog: Catalog) -> list[View]:
    """The views of a compiled catalog whose versions have no live generation and must be computed."""
    readable = versions.readable_generations(connection, catalog)
    return [view for name, view in catalog.views.items() if view.cell_tables and name not in readable]


def make(connection: Connection, name: str, catalog: Catalog, ready: Mapping[str, int] | None = None) -> None:
    """Creates or replaces a preview in one transaction. `ready` are the generations that were computed for it.

    Replacing views waits only shortly for their readers (`wait_shortly_for_readers`).
    """
    progress.lock(connection, progress.queries(connection))
    if ready is None and name in lookup.preview_names(connection):
        rebuilds.refuse_during_apply(connection)  # it may move a view to a generation of the earlier preview
    check_name(connection, name)
    catalog = previewed_catalog(connection, catalog)
    computed = {view: lookup.get(connection, id) for view, id in (ready or {}).items()}
    generation_of = versions.readable_generations(connection, catalog) | computed
    for view in (view for view in catalog.views.values() if view.cell_tables):
        cells = generation_of.get(view.name)
        if cells is None or (cells.version, cells.state) != (view.version, GenerationState.LIVE):
            raise LaminaError(
                f"The cells of {view.name} are not computed yet",
                evidence=f"version {view.version} has no live generation",
                way_out="Make the preview again: the cells were computed for another catalog.",
            )
    declared = deployed(connection).views
    others = (view for view in catalog.views.values() if declared.get(view.name) != view)
    versions.store(connection, others, catalog, renew=False)
    before = _places(connection, name)
    _withdraw(connection, name)
    _record(connection, name, catalog, generation_of)
    run(connection, f"CREATE SCHEMA IF NOT EXISTS {quoted(name)}")
    run(connection, f"GRANT USAGE ON SCHEMA {quoted(name)} TO {views.ANALYST}")
    for view in catalog.views.values():
        _create(connection, name, view, catalog, generation_of.get(view.name))
    _retire_unread(connection, before)


def drop(connection: Connection, name: str) -> None:
    """Ends a preview: drops its views and its schema, and retires the generations that it alone read."""
    if name not in lookup.preview_names(connection):
        way_out = "`lamina status` lists the previews."
        raise Unknown("preview", name, lookup.preview_names(connection), state="previews", way_out=way_out)
    progress.lock(connection, progress.queries(connection))
    rebuilds.refuse_during_apply(connection)  # it may move a view to a generation of the preview
    before = _places(connection, name)
    _withdraw(connection, name)
    with _refused_if_read(name):
        run(connection, f"DROP SCHEMA IF EXISTS {quoted(name)}")
    _retire_unread(connection, before)


def get(connection: Connection, name: str) -> Catalog:
    """The catalog that a preview serves."""
    sources = connection.execute(select(preview.c.sources).where(preview.c.name == name)).scalar()
    if sources is None:
        way_out = f"`lamina apply --preview {name}` makes it of a catalog."
        raise Unknown("preview", name, lookup.preview_names(connection), state="previews", way_out=way_out)
    rows = connection.execute(select(previewed).where(previewed.c.preview == name).order_by(previewed.c.position))
    shown = {row.view: from_json(View, row.texts) for row in rows}
    return Catalog(sources={source: from_json(Source, texts) for source, texts in sources.items()}, views=shown)


def generations_read(connection: Connection, name: str) -> dict[str, Generation]:
    """The live generation of each view with cells in a preview."""
    read = {place for places in _places(connection, name).values() for place in places}
    return {opened.view: opened for opened in _generations_read(connection) if read.issuperset(opened.places.values())}


def listed(connection: Connection) -> list[PreviewedView]:
    """The views of all previews, with the origin of their cells."""
    shown = set(lookup.published(connection).values())
    read = _generations_read(connection)
    is_shown = {place: opened.id in shown for opened in read for place in opened.places.values()}
    rows = connection.execute(
        select(previewed, preview.c.made_at).join(preview).order_by(preview.c.name, previewed.c.position)
    )
    by_name: dict[tuple[str, str], PreviewedView] = {}
    for row in rows:
        below = [by_name[row.preview, read].cells for read in row.texts["reads"]]
        if CellsOrigin.RETIRED in below or any(place not in is_shown for place in row.places):
            cells = CellsOrigin.RETIRED
        elif not row.places:
            cells = CellsOrigin.NONE
        else:
            cells = CellsOrigin.SHARED if all(is_shown[place] for place in row.places) else CellsOrigin.OWN
        by_name[row.preview, row.view] = PreviewedView(row.preview, row.view, row.texts["version"], cells, row.made_at)
    return list(by_name.values())


def _generations_read(connection: Connection) -> list[Generation]:
    """The live generations that previews read."""
    read = generation.c.id.in_(lookup.generations_of_previews(connection))
    return lookup.find(connection, read, generation.c.state == GenerationState.LIVE)


def _record(connection: Connection, name: str, catalog: Catalog, generation_of: Mapping[str, Generation]) -> None:
    sources = {source: to_json(compiled) for source, compiled in catalog.sources.items()}
    connection.execute(delete(preview).where(preview.c.name == name))
    connection.execute(insert(preview).values(name=name, sources=sources))
    for position, (view, compiled) in enumerate(catalog.views.items()):
        places = sorted(generation_of[view].places.values()) if view in generation_of else []
        values = {"position": position, "texts": to_json(compiled), "places": places}
        connection.execute(insert(previewed).values(preview=name, view=view, **values))


def _create(connection: Connection, name: str, shown: View, catalog: Catalog, cells: Generation | None) -> None:
    """Creates a view of a preview. It raises in a snapshot in which its cells are not maintained."""
    at = {} if cells is None else {(shown.name, table): place for table, place in cells.places.items()}
    body = in_schema(with_places(shown.final, at), catalog.views.keys(), name)
    columns = views.shown_columns(shown)
    listed = ", ".join(quoted(column["name"]) for column in columns)
    if at:
        places = ", ".join(postgres_text(place) for place in sorted(at.values()))
        body = (
            f"SELECT * FROM (\n{body}\n) AS served ({listed})\nWHERE (SELECT coalesce((\n"
            "  SELECT true FROM lamina.generation_cells AS c JOIN lamina.generation AS g ON g.id = c.generation\n"
            f"  WHERE g.state = 'live' AND c.place IN ({places}) HAVING count(*) = {len(at)}),\n"
            f"  lamina.not_previewed({postgres_text(name)}, {postgres_text(shown.name)})))"
        )
    view = f"{quoted(name)}.{quoted(shown.name)}"
    run(connection, f"CREATE VIEW {view} ({listed}) AS\n{body}")
    views.publish_view(connection, view, shown.comment, columns)


def _withdraw(connection: Connection, name: str) -> None:
    """Drops the views and the record of a preview, if it exists. Raises if a relation of another role reads a view."""
    wait_shortly_for_readers(connection)
    names = [f"{quoted(name)}.{quoted(view)}" for view in _places(connection, name)]
    if names:
        with _refused_if_read(name):
            run(connection, f"DROP VIEW IF EXISTS {', '.join(names)}")
    connection.execute(delete(preview).where(preview.c.name == name))


def _refused_if_read(name: str) -> AbstractContextManager[None]:
    """Raises in our words if other roles have created something over a preview's views or in its schema."""
    what = f"Other roles have relations over the preview {name} or in its schema; nothing was changed"
    return dependents.refused_if_read(what, "Drop these relations, and repeat the command.")


def _places(connection: Connection, name: str) -> dict[str, list[str]]:
    rows = connection.execute(select(previewed).where(previewed.c.preview == name).order_by(previewed.c.position))
    return {row.view: row.places for row in rows}


def _retire_unread(connection: Connection, before: Mapping[str, Iterable[str]]) -> None:
    """Retires the generations that a preview has read, unless they are read elsewhere or kept for a return."""
    read = {place for places in before.values() for place in places}
    still_read = set(lookup.published(connection).values()) | lookup.generations_of_previews(connection)
    surplus = [
        live.id
        for live in lookup.find(
            connection, generation.c.state == GenerationState.LIVE, generation.c.id.not_in(still_read)
        )
        if read & set(live.places.values())
        and (not live.was_shown or live.id in generations.superseded(connection, live.view))
    ]
    generations.retire(connection, surplus)
