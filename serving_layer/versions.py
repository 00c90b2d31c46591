"""The versions of views: what each was compiled to, as long as a generation of it has cells.

The declared version of a view is in the deployed catalog. One that is being computed, and one that is kept to return
to, are here: their cells are fed and read by the texts that they were compiled to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pydantic import TypeAdapter
from sqlalchemy import Connection, delete, insert, select, tuple_
from sqlalchemy.dialects.postgresql import insert as upsert

from serving_layer.bookkeeping import cell_table, generation, publication, version
from serving_layer.deployed import deployed
from view_algebra.compiled import CellTable, View
from view_algebra.errors import LaminaError

_VIEW = TypeAdapter(View)


def register(connection: Connection, compiled: View) -> None:
    """Makes the tables of cells of a version known: what feeds each, and how cells merge into it."""
    for table in compiled.cell_tables:
        values = {
            "name": table.name,
            "view": compiled.name,
            "version": compiled.version,
            "query": table.source,
            "ddl": table.cells,
            "merge": table.merge,
            "keys": [column.name for column in table.keys],
            "partials": [partial.column.name for partial in table.partials],
            "noise": [partial.noise for partial in table.partials],
            "retained": table.retained or None,
        }
        known = connection.execute(select(cell_table.c.name).where(cell_table.c.name == table.name)).one_or_none()
        if known is None:
            connection.execute(insert(cell_table).values(values))


def keep(connection: Connection, views: Iterable[View]) -> None:
    """Keeps what versions were compiled to, beside the catalog that is deployed."""
    for each in views:
        values = {"view": each.name, "version": each.version, "texts": _VIEW.dump_python(each, mode="json")}
        if each.cell_tables:
            connection.execute(upsert(version).values(values).on_conflict_do_nothing())


def stored(connection: Connection) -> list[View]:
    """The versions that are kept beside the deployed catalog, those of before it among them."""
    return [_VIEW.validate_python(texts) for texts in connection.execute(select(version.c.texts)).scalars()]


def get(connection: Connection, name: str, wanted: str) -> View:
    """What a version of a view was compiled to."""
    declared = deployed(connection).views.get(name)
    if declared is not None and declared.version == wanted:
        return declared
    for each in stored(connection):
        if (each.name, each.version) == (name, wanted):
            return each
    raise LaminaError(
        f"Version {wanted} of {name} is not known any more",
        evidence="neither the deployed catalog has it, nor a version that is kept",
        way_out="`lamina apply` computes it again from a catalog that declares it.",
    )


def tables(connection: Connection, names: Collection[str]) -> list[CellTable]:
    """The compiled tables of cells by these names, of whichever versions: what a query's micro-batches compute."""
    known = [*deployed(connection).views.values(), *stored(connection)]
    found = {table.name: table for view in known for table in view.cell_tables if table.name in names}
    return [found[name] for name in sorted(found)]


def live(connection: Connection) -> dict[tuple[str, str], int]:
    """The versions of views of which a generation is live, each with the newest, but for the published versions."""
    rows = connection.execute(
        select(generation.c.view, generation.c.version, generation.c.id)
        .where(generation.c.state == "live")
        .order_by(generation.c.id)
    ).all()
    shown = select(generation.c.view, generation.c.version).join(
        publication, publication.c.generation == generation.c.id
    )
    published = {(row.view, row.version) for row in connection.execute(shown)}
    return {(row.view, row.version): row.id for row in rows if (row.view, row.version) not in published}


def forget_unused(connection: Connection) -> None:
    """Forgets the versions of which no generation has cells any more."""
    left = select(generation.c.view, generation.c.version).where(generation.c.dropped_at.is_(None))
    connection.execute(delete(version).where(tuple_(version.c.view, version.c.version).not_in(left)))
