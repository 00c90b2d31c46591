"""The versions of views: what each was compiled to, as long as a generation of it has cells.

The declared version of a view is in the deployed catalog. One that is being computed, and one that is kept to return
to, are here: their cells are fed and read by the texts that they were compiled to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Select, delete, func, insert, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from serving_layer.catalog import lookup
from serving_layer.catalog.compiled_json import dumped, loaded
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import cell_table, compiled, generation, generation_cells, publication, version
from serving_layer.postgres.states import GenerationState
from serving_layer.promise.overwriting import Compared
from view_algebra.compiled import Catalog, CellTable, Source, View
from view_algebra.errors import LaminaError


@dataclass(frozen=True)
class Version:
    """A view as it was compiled once, with the sources that feed its cells as they were read then."""

    view: View
    sources: Mapping[str, Source]


def alone(connection: Connection) -> None:
    """Until the transaction ends, no other makes versions known or forgets them; reading them waits for nothing.

    A version may be known before it is opened. Whoever forgets it must not do so while another opens it. Who locks
    queries, too, locks them before.
    """
    cells.run(connection, "LOCK TABLE lamina.version IN SHARE UPDATE EXCLUSIVE MODE")


def register(connection: Connection, view: View) -> None:
    """Makes the tables of cells of a version known: what feeds each, and how cells merge into it."""
    alone(connection)
    for table in view.cell_tables:
        values = {
            "name": table.name,
            "view": view.name,
            "version": view.version,
            "query": table.source,
            "ddl": table.cells,
            "merge": table.merge,
            "keys": [column.name for column in table.keys],
            "partials": [partial.column.name for partial in table.partials],
            "noise": [partial.noise for partial in table.partials],
            "retained": table.retained or None,
            "longer": table.longer,
        }
        known = connection.execute(select(cell_table.c.name).where(cell_table.c.name == table.name)).one_or_none()
        if known is None:
            connection.execute(insert(cell_table).values(values))


def announced(connection: Connection, query: str) -> set[str]:
    """The tables of cells of a query that no generation has had so far: those of versions that are opened soon."""
    return set(connection.execute(_announced(query)).scalars())


def to_prepare(connection: Connection, query: str) -> set[str]:
    """Of the announced tables of cells of a query those that its writer has not prepared for."""
    return set(connection.execute(_announced(query).where(cell_table.c.prepared_at.is_(None))).scalars())


def _announced(query: str) -> Select[str]:
    opened = select(generation_cells.c.cell_table)
    return select(cell_table.c.name).where(cell_table.c.query == query, cell_table.c.name.not_in(opened))


def unprepared(connection: Connection, names: Collection[str]) -> set[str]:
    """The queries of those tables of cells for which their writers have not prepared."""
    lacking = select(cell_table.c.query).where(cell_table.c.name.in_(names), cell_table.c.prepared_at.is_(None))
    return set(connection.execute(lacking).scalars())


def note_prepared(connection: Connection, name: str, *, prepared: bool = True) -> None:
    """Notes that the writer of a table of cells has prepared for it, or has tried to; or that it has to anew."""
    at = func.clock_timestamp() if prepared else None
    connection.execute(update(cell_table).where(cell_table.c.name == name).values(prepared_at=at))


def keep(connection: Connection, views: Iterable[View], catalog: Catalog, *, anew: bool = True) -> None:
    """Keeps what versions of a catalog were compiled to, beside the one that is deployed.

    anew: also where the same version is kept with another text above its cells. It is the text to return to.
    """
    alone(connection)
    for each in (view for view in views if view.cell_tables):
        sources = {table.source: dumped(catalog.sources[table.source]) for table in each.cell_tables}
        texts = {"texts": dumped(each), "sources": sources}
        statement = upsert(version).values(view=each.name, version=each.version, **texts)
        key = [version.c.view, version.c.version]
        statement = (
            statement.on_conflict_do_update(index_elements=key, set_=texts)
            if anew
            else statement.on_conflict_do_nothing(index_elements=key)
        )
        connection.execute(statement)


def stored(connection: Connection) -> list[Version]:
    """The versions that are kept beside the deployed catalog; what is deployed now may be among them."""
    rows = connection.execute(select(version).order_by(version.c.view, version.c.version))
    return [
        Version(loaded(View, row.texts), {name: loaded(Source, each) for name, each in row.sources.items()})
        for row in rows
    ]


def get(connection: Connection, name: str, wanted: str) -> Version:
    """What a version of a view was compiled to."""
    catalog = deployed(connection)
    declared = catalog.views.get(name)
    if declared is not None and declared.version == wanted:
        return Version(declared, catalog.sources)
    for each in stored(connection):
        if (each.view.name, each.view.version) == (name, wanted):
            return each
    raise LaminaError(
        f"Version {wanted} of {name} is not known any more",
        evidence="neither the deployed catalog has it, nor a version that is kept",
        way_out="`lamina apply` computes it again from a catalog that declares it.",
    )


def awaited(connection: Connection) -> dict[str, tuple[str, str]]:
    """The sources that are not deployed and feed a live generation, each with a view that it feeds and its version.

    An apply moves that view to them. What the records below the cut bring beside cells is there before one is live.
    """
    declared = select(compiled.c.name).where(compiled.c.kind == "source")
    rows = connection.execute(
        select(cell_table.c.query, generation.c.view, generation.c.version)
        .join_from(generation_cells, cell_table, generation_cells.c.cell_table == cell_table.c.name)
        .join(generation, generation_cells.c.generation == generation.c.id)
        .where(generation.c.state == GenerationState.LIVE, cell_table.c.query.not_in(declared), declared.exists())
        .order_by(cell_table.c.query, generation.c.id)
    )
    return {row.query: (row.view, row.version) for row in rows}


def read(connection: Connection) -> dict[str, Source]:
    """The sources that a speed layer reads: those that are deployed, and those that an apply awaits."""
    found = {name: get(connection, *of).sources[name] for name, of in awaited(connection).items()}
    return {**found, **deployed(connection).sources}


def readings(connection: Connection, source: Source, names: Collection[str]) -> list[tuple[Source, list[CellTable]]]:
    """The compiled tables of cells by these names, of whichever versions, by how the records of a source are read.

    First those that are fed by the source as it is declared; then, where it was declared otherwise before, the others.
    The tables are in the order of their names, whichever versions are deployed.
    """
    catalog = deployed(connection)
    known = [*stored(connection), *(Version(view, catalog.sources) for view in catalog.views.values())]
    tables = {table.name: (table, each.sources[table.source]) for each in known for table in each.view.cell_tables}
    found: dict[str, tuple[Source, list[CellTable]]] = {source.parse: (source, [])}
    for name in sorted(tables.keys() & set(names)):
        table, read = tables[name]
        found.setdefault(read.parse, (read, []))[1].append(table)
    return list(found.values())


def shared(new: Version, old: Version) -> dict[str, Compared]:
    """The partials that two versions of a view compute alike, over the same records and by the same keys.

    By table of cells of the new version. A partial that may be the rounding of other numbers is not among them.
    """
    alike_by_table = {}
    for table in (each for each in new.view.cell_tables if each.kind == "aggregate"):
        for other in old.view.cell_tables:
            alike = _computed_alike(table, other) if _of_the_same(table, other, new, old) else ()
            if alike:
                keys = tuple(key.name for key in table.keys)
                retained = table.retained or other.retained or None
                longer = min(each.longer for each in (table, other) if each.retained) if retained else 0
                noise = ("",) * len(alike)
                alike_by_table[table.name] = Compared(other.name, keys, alike, noise, retained, longer)
    return alike_by_table


def _of_the_same(table: CellTable, other: CellTable, new: Version, old: Version) -> bool:
    """True if both are about the same records, grouped by the same keys, and retain them by the same column."""
    retained = {table.retained, other.retained} - {""}
    records = ((each.sources[t.source].parse, t.where, t.generators) for t, each in ((table, new), (other, old)))
    groups = ((t.source, t.kind, t.keys, t.key_inputs, t.spread) for t in (table, other))
    return len(set(records)) == len(set(groups)) == 1 and len(retained) <= 1


def _computed_alike(table: CellTable, other: CellTable) -> tuple[str, ...]:
    theirs = dict(zip(other.partials, other.partial_inputs, strict=True))
    inputs = zip(table.partials, table.partial_inputs, strict=True)
    return tuple(each.column.name for each, input in inputs if not each.noise and theirs.get(each) == input)


def live(connection: Connection) -> dict[tuple[str, str], int]:
    """The versions of views that are kept to return to, or for a preview: of each the generation that was shown last,
    the newest where none was.

    It is live, and was shown or is read by a preview.
    """
    kept = generation.c.shown_until.is_not(None) | generation.c.id.in_(lookup.of_previews(connection))
    rows = connection.execute(
        select(generation.c.view, generation.c.version, generation.c.id)
        .where(generation.c.state == GenerationState.LIVE, kept)
        .order_by(generation.c.shown_until.nulls_first(), generation.c.id)
    ).all()
    shown = select(generation.c.view, generation.c.version).join(
        publication, publication.c.generation == generation.c.id
    )
    published = {(row.view, row.version) for row in connection.execute(shown)}
    return {(row.view, row.version): row.id for row in rows if (row.view, row.version) not in published}


def readable(connection: Connection, catalog: Catalog) -> dict[str, Generation]:
    """The generation that is live of the version that each view has in a catalog: first of all the published one."""
    ids = [*live(connection).values(), *lookup.published(connection).values()]  # no version is in both
    found = {(each.view, each.version): each for each in lookup.find(connection, generation.c.id.in_(ids))}
    wanted = ((name, view.version) for name, view in catalog.views.items() if view.cell_tables)
    return {name: found[name, version] for name, version in wanted if (name, version) in found}


def forget_unused(connection: Connection) -> None:
    """Forgets the versions of which no generation has cells any more."""
    left = select(generation.c.view, generation.c.version).where(generation.c.dropped_at.is_(None))
    connection.execute(delete(version).where(tuple_(version.c.view, version.c.version).not_in(left)))
