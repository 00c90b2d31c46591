"""The versions of views: the compiled texts of each, stored as long as a generation of it has cells.

A view's declared version is in the deployed catalog. Versions that are being computed, and versions kept for a return,
are stored here. Their cells are fed and read by the texts of their own version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Select, delete, func, insert, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from serving_layer.catalog import lookup
from serving_layer.catalog.compiled_json import from_json, to_json
from serving_layer.catalog.deployed import deployed
from serving_layer.catalog.lookup import Generation
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import cell_table, compiled, generation, generation_cells, publication, version
from serving_layer.postgres.cells import CellColumns
from serving_layer.postgres.states import GenerationState
from view_algebra.compiled import Catalog, CellTable, Source, View
from view_algebra.errors import LaminaError


@dataclass(frozen=True)
class Version:
    """A compiled view, with the sources that feed its cells as compiled at the same time."""

    view: View
    sources: Mapping[str, Source]


def lock(connection: Connection) -> None:
    """Locks the set of registered versions until the transaction ends. Reading them does not wait.

    A version may be registered before its generation is opened, so forgetting and opening must exclude each other.
    A transaction that also locks queries locks them first.
    """
    cells.run(connection, "LOCK TABLE lamina.version IN SHARE UPDATE EXCLUSIVE MODE")


def register(connection: Connection, view: View) -> None:
    """Registers a version's tables of cells: the query that feeds each, and the merge into it."""
    lock(connection)
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
        registered = connection.execute(select(cell_table.c.name).where(cell_table.c.name == table.name)).one_or_none()
        if registered is None:
            connection.execute(insert(cell_table).values(values))


def announced_tables(connection: Connection, query: str) -> set[str]:
    """A query's registered tables of cells without a generation. Their versions will be opened soon."""
    return set(connection.execute(_select_announced(query)).scalars())


def unprepared_tables(connection: Connection, query: str) -> set[str]:
    """The announced tables of cells that the query's writer has not prepared for."""
    return set(connection.execute(_select_announced(query).where(cell_table.c.prepared_at.is_(None))).scalars())


def _select_announced(query: str) -> Select[str]:
    opened = select(generation_cells.c.cell_table)
    return select(cell_table.c.name).where(cell_table.c.query == query, cell_table.c.name.not_in(opened))


def unprepared_queries(connection: Connection, names: Collection[str]) -> set[str]:
    """The queries of these tables of cells whose writers have not prepared."""
    lacking = select(cell_table.c.query).where(cell_table.c.name.in_(names), cell_table.c.prepared_at.is_(None))
    return set(connection.execute(lacking).scalars())


def note_prepared(connection: Connection, name: str) -> None:
    """Records that the writer of a table of cells has tried to prepare for it."""
    row = update(cell_table).where(cell_table.c.name == name)
    connection.execute(row.values(prepared_at=func.clock_timestamp()))


def forget_prepared(connection: Connection, names: Collection[str]) -> None:
    """Forgets that a writer has prepared for these tables of cells. Another one may have to."""
    connection.execute(update(cell_table).where(cell_table.c.name.in_(names)).values(prepared_at=None))


def store(connection: Connection, views: Iterable[View], catalog: Catalog, *, renew: bool = True) -> None:
    """Stores the compiled texts of versions of a catalog, in addition to the deployed catalog.

    renew: replaces the stored texts of a version, because its text above the cells may have changed
    """
    lock(connection)
    for view in (view for view in views if view.cell_tables):
        sources = {table.source: to_json(catalog.sources[table.source]) for table in view.cell_tables}
        texts = {"texts": to_json(view), "sources": sources}
        new = upsert(version).values(view=view.name, version=view.version, **texts)
        key = [version.c.view, version.c.version]
        renewed = new.on_conflict_do_update(index_elements=key, set_=texts)
        connection.execute(renewed if renew else new.on_conflict_do_nothing(index_elements=key))


def stored_versions(connection: Connection) -> list[Version]:
    """The versions stored in addition to the deployed catalog. The deployed ones may be among them."""
    rows = connection.execute(select(version).order_by(version.c.view, version.c.version))
    return [
        Version(from_json(View, row.texts), {name: from_json(Source, texts) for name, texts in row.sources.items()})
        for row in rows
    ]


def get(connection: Connection, name: str, wanted: str) -> Version:
    """The compiled texts of a version of a view."""
    catalog = deployed(connection)
    declared = catalog.views.get(name)
    if declared is not None and declared.version == wanted:
        return Version(declared, catalog.sources)
    for kept in stored_versions(connection):
        if (kept.view.name, kept.view.version) == (name, wanted):
            return kept
    raise LaminaError(
        f"Version {wanted} of {name} is no longer stored",
        evidence="it is neither in the deployed catalog nor among the versions that are kept",
        way_out="`lamina apply` computes it again from a catalog that declares it.",
    )


def awaited_sources(connection: Connection) -> dict[str, tuple[str, str]]:
    """The sources that feed a live generation and are not deployed yet, each with a view it feeds and the version.

    An apply is about to move the view to them. The bad records and ids below the cut are stored before the generation
    goes live.
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


def sources_to_read(connection: Connection) -> dict[str, Source]:
    """The sources that a speed layer reads: the deployed ones, and those of a running apply (`awaited_sources`)."""
    soon = {name: get(connection, *key).sources[name] for name, key in awaited_sources(connection).items()}
    return {**soon, **deployed(connection).sources}


def tables_by_parse(
    connection: Connection, source: Source, names: Collection[str]
) -> list[tuple[Source, list[CellTable]]]:
    """The named tables of cells, of any version, grouped by the text that parses the source's records.

    The first group uses the source as declared now, the others use earlier declarations. Within a group the tables are
    ordered by name, so the order does not depend on the deployed versions.
    """
    catalog = deployed(connection)
    versions = [*stored_versions(connection), *(Version(view, catalog.sources) for view in catalog.views.values())]
    tables = {table.name: (table, old.sources[table.source]) for old in versions for table in old.view.cell_tables}
    by_parse: dict[str, tuple[Source, list[CellTable]]] = {source.parse: (source, [])}
    for name in sorted(tables.keys() & set(names)):
        table, read = tables[name]
        by_parse.setdefault(read.parse, (read, []))[1].append(table)
    return list(by_parse.values())


@dataclass(frozen=True)
class SharedCells:
    """A table of cells with partials that two versions share: the old version's table, and the shared columns."""

    old: str
    columns: CellColumns


def shared_partials(new: Version, old: Version) -> dict[str, SharedCells]:
    """The partials that two versions of a view compute alike, over the same records and keys, by new table."""
    by_table = {}
    for table in (table for table in new.view.cell_tables if table.kind == "aggregate"):
        for other in old.view.cell_tables:
            partials = _alike_partials(table, other) if _count_the_same(table, other, new, old) else ()
            if partials:
                keys = tuple(key.name for key in table.keys)
                retained = table.retained or other.retained or None
                longer = min(t.longer for t in (table, other) if t.retained) if retained else 0
                exact = ("",) * len(partials)  # a partial with rounding noise is never shared
                by_table[table.name] = SharedCells(other.name, CellColumns(keys, partials, exact, retained, longer))
    return by_table


def _count_the_same(table: CellTable, other: CellTable, new: Version, old: Version) -> bool:
    """True if both tables count the same records by the same keys, and drop no old groups by different columns."""
    retained = {table.retained, other.retained} - {""}
    records = ((side.sources[t.source].parse, t.where, t.generators) for t, side in ((table, new), (other, old)))
    groups = ((t.source, t.kind, t.keys, t.key_inputs, t.spread) for t in (table, other))
    return len(set(records)) == len(set(groups)) == 1 and len(retained) <= 1


def _alike_partials(table: CellTable, other: CellTable) -> tuple[str, ...]:
    others = dict(zip(other.partials, other.partial_inputs, strict=True))
    inputs = zip(table.partials, table.partial_inputs, strict=True)
    return tuple(partial.column.name for partial, input in inputs if not partial.noise and others.get(partial) == input)


def kept_or_previewed(connection: Connection) -> dict[tuple[str, str], int]:
    """The live versions that are kept for a return or read by a preview, each with its generation.

    If a version has several such generations, the one that was shown last counts, or the newest if none was shown.
    """
    is_kept = generation.c.shown_until.is_not(None) | generation.c.id.in_(lookup.generations_of_previews(connection))
    rows = connection.execute(
        select(generation.c.view, generation.c.version, generation.c.id)
        .where(generation.c.state == GenerationState.LIVE, is_kept)
        .order_by(generation.c.shown_until.nulls_first(), generation.c.id)
    ).all()
    shown = select(generation.c.view, generation.c.version).join(
        publication, publication.c.generation == generation.c.id
    )
    published = {(row.view, row.version) for row in connection.execute(shown)}
    return {(row.view, row.version): row.id for row in rows if (row.view, row.version) not in published}


def readable_generations(connection: Connection, catalog: Catalog) -> dict[str, Generation]:
    """The live generation of each view's version in a catalog: the published one if its version matches."""
    ids = [*kept_or_previewed(connection).values(), *lookup.published(connection).values()]  # these share no version
    by_version = {(new.view, new.version): new for new in lookup.find(connection, generation.c.id.in_(ids))}
    declared = ((name, view.version) for name, view in catalog.views.items() if view.cell_tables)
    return {name: by_version[name, version] for name, version in declared if (name, version) in by_version}


def forget_unused(connection: Connection) -> None:
    """Deletes the stored versions whose generations have all been dropped."""
    in_use = select(generation.c.view, generation.c.version).where(generation.c.dropped_at.is_(None))
    connection.execute(delete(version).where(tuple_(version.c.view, version.c.version).not_in(in_use)))
