"""The compiled texts of the deployed catalog. Speed layer, rebuilds and checks read them here and compile nothing.

So a newer Lamina keeps running the texts of an older one. `plan` shows whether it would compile other texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

import view_algebra
from serving_layer.catalog import definitions
from serving_layer.catalog.compiled_json import from_json, to_json
from serving_layer.postgres.bookkeeping import compiled, declaration, view
from view_algebra.compiled import Catalog, Source, View, renamed_fields
from view_algebra.errors import LaminaError


def deployed(connection: Connection) -> Catalog:
    """The catalog that was applied last, as compiled then."""
    texts = select(compiled).order_by(compiled.c.position, compiled.c.name)
    rows = connection.execute(texts).all() if _has_texts(connection) else ()
    if not rows:
        return _recompile(connection)
    return Catalog(
        sources={row.name: from_json(Source, row.texts) for row in rows if row.kind == "source"},
        views={row.name: from_json(View, row.texts) for row in rows if row.kind == "view"},
    )


def sources(connection: Connection) -> dict[str, Source]:
    """The deployed sources as compiled. Empty if Lamina is not installed, or stored no texts."""
    return {name: from_json(Source, texts) for name, texts in _of_sources(connection, compiled.c.texts).items()}


@dataclass(frozen=True)
class JsonFields:
    """The fields that a source declares.

    flat: no field has fields of its own
    """

    topic: str
    names: frozenset[str]
    flat: bool


def json_fields(connection: Connection) -> dict[str, JsonFields]:
    """The declared fields of each deployed JSON source, read without validating its texts."""
    is_json = func.coalesce(compiled.c.texts["format"].astext, "json") == "json"
    declared = {}
    for name, texts in _of_sources(connection, compiled.c.texts, is_json).items():
        renamed, columns = renamed_fields(texts["properties"]), texts["columns"]
        names = frozenset(renamed.get(column["name"], column["name"]) for column in columns)
        declared[name] = JsonFields(texts["topic"], names, all("<" not in column["spark"] for column in columns))
    return declared


def kinds_of_sources(connection: Connection) -> dict[str, str]:
    """The kind of each deployed source: `stream` or `table`."""
    return _of_sources(connection, compiled.c.texts["kind"].astext)


def _of_sources(connection: Connection, value: ColumnElement[Any], *where: ColumnElement[bool]) -> dict[str, Any]:
    """A value of each deployed source that meets all conditions. Empty if Lamina is not installed, or has no texts."""
    if not _has_texts(connection):
        return {}
    rows = connection.execute(select(compiled.c.name, value).where(compiled.c.kind == "source", *where))
    return {row[0]: row[1] for row in rows}


def _has_texts(connection: Connection) -> bool:
    """True if the table of compiled texts exists. Early versions of Lamina had none."""
    return connection.execute(select(func.to_regclass(str(compiled)))).scalar() is not None


def is_anything_deployed(connection: Connection) -> bool:
    """True if a catalog was applied to this database. Lamina must be installed."""
    return connection.execute(select(declaration.c.path).limit(1)).scalar() is not None


def state(connection: Connection) -> tuple[object, ...]:
    """A value that changes with every `apply` that changed something and every rollback to another version."""
    applied = connection.execute(select(func.max(declaration.c.applied_at), func.count())).one()
    versions = connection.execute(select(view.c.name, view.c.version).order_by(view.c.name)).all()
    return (*applied, *versions)


def store(connection: Connection, catalog: Catalog) -> None:
    """Stores `catalog` as the deployed one."""
    of_sources = [("source", name, to_json(value)) for name, value in catalog.sources.items()]
    of_views = [("view", name, to_json(value)) for name, value in catalog.views.items()]
    definition_ids = definitions.store(connection, catalog)
    connection.execute(delete(compiled))
    rows = [
        {
            "kind": kind,
            "name": name,
            "position": position,
            "texts": texts,
            "definition": definition_ids[name] if kind == "view" else None,
        }
        for position, (kind, name, texts) in enumerate((*of_sources, *of_views))
    ]
    if rows:
        connection.execute(insert(compiled), rows)


def _recompile(connection: Connection) -> Catalog:
    """The catalog of a Lamina that stored no texts, recompiled. Raises if a version differs from the registered one."""
    files = {row.path: row.sql for row in connection.execute(select(declaration.c.path, declaration.c.sql))}
    catalog = view_algebra.compile_catalog(files)
    registered = {row.name: row.version for row in connection.execute(select(view.c.name, view.c.version))}
    other = [name for name, new in catalog.views.items() if registered.get(name) != new.version]
    if other:
        raise LaminaError(
            f"This Lamina compiles {other[0]} differently from the one that deployed it, which stored no texts",
            evidence=f"version {catalog.views[other[0]].version}, deployed is {registered.get(other[0])}",
            way_out="Run the Lamina that deployed it; or drop the view, and declare it again with this one.",
        )
    return catalog
