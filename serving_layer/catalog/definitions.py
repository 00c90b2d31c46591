"""Definitions: everything that a view's SELECT meant when it was deployed, under one id, stored permanently.

A receipt names its definition, so it can be verified long after the view was changed, rolled back or dropped.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from serving_layer.catalog.compiled_json import from_json, to_json
from serving_layer.postgres.bookkeeping import definition
from view_algebra.compiled import ON_BAD_FIELD, Catalog, Source, View
from view_algebra.errors import LaminaError


def of(catalog: Catalog, name: str) -> Catalog:
    """The catalog of one view and everything it reads, without the parts that its rows do not depend on."""
    view = catalog.views[name]
    names = {name}
    for other in reversed(list(catalog.views.values())):  # a view comes after the views it reads
        names |= set(other.reads) if other.name in names else set()
    return Catalog(
        sources={source: _bare_source(catalog.sources[source]) for source in sorted(view.sources)},
        views={other.name: _bare_view(other) for other in catalog.views.values() if other.name in names},
    )


def store(connection: Connection, catalog: Catalog) -> dict[str, str]:
    """Stores the definition of every view of a catalog. Returns their ids by view."""
    ids = {}
    for name in catalog.views:
        texts = to_json(of(catalog, name))
        ids[name] = hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:16]
        values = insert(definition).values(id=ids[name], view=name, texts=texts)
        connection.execute(values.on_conflict_do_nothing())
    return ids


def get(connection: Connection, id: str, name: str) -> Catalog:
    """The definition of a view with this id."""
    texts = connection.execute(
        select(definition.c.texts).where(definition.c.id == id, definition.c.view == name)
    ).scalar()
    if texts is None:
        ids = connection.execute(select(definition.c.id).where(definition.c.view == name)).scalars().all()
        raise LaminaError(
            f"The SELECT of {name} that the receipt names was never deployed here",
            evidence=f"wanted definition {id}, stored for this view: {', '.join(ids) or 'none'}",
            way_out="Verify it where it was made: in its own deployment, or in one restored from a backup of it.",
        )
    return from_json(Catalog, texts)


def _bare_source(source: Source) -> Source:
    columns = tuple(replace(column, comment=None) for column in source.columns)
    properties = {name: value for name, value in source.properties.items() if name == ON_BAD_FIELD}
    return replace(source, columns=columns, comment=None, properties=properties, sql="")


def _bare_view(view: View) -> View:
    columns = tuple(replace(column, comment=None) for column in view.columns)
    nothing: dict[str, Any] = {"properties": {}, "lineage": (), "cell_tables": (), "checks": ()}
    nothing |= {"unique": (), "never_null": (), "additive": ()}
    return replace(view, columns=columns, comment=None, sql="", select="", final="", **nothing)
