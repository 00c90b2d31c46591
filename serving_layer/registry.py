"""The catalog that is deployed: what a changed one would do (`plan`), and doing it (`apply`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from master_log.offsets import Offsets
from serving_layer import cells, generations, progress, views
from serving_layer.bookkeeping import archived, cell_table, declaration, generation, publication, query, view
from serving_layer.bookkeeping import progress as progress_table
from view_algebra import compile_catalog
from view_algebra.compiled import Catalog, Column, View
from view_algebra.errors import LaminaError

Action = Literal["create", "update", "drop", "refuse", "nothing"]


@dataclass(frozen=True)
class Change:
    """What applying a catalog would do to one declaration, and what that means."""

    kind: Literal["source", "view"]
    name: str
    action: Action
    effect: str


@dataclass(frozen=True)
class Topic:
    """A topic as the brokers hold it: its id, and the first offset of each partition."""

    id: str
    earliest: Offsets


def deployed(connection: Connection) -> tuple[dict[str, str], Catalog]:
    """The catalog that was applied last: its files, and compiled."""
    files = {row.path: row.sql for row in connection.execute(select(declaration))}
    return files, compile_catalog(files)


def check_versions(connection: Connection, catalog: Catalog) -> None:
    """Raises unless the deployed catalog compiles to the versions that are registered: else cells would be others."""
    recorded = _versions(connection)
    other = [name for name, compiled in catalog.views.items() if recorded[name] != compiled.version]
    if other:
        raise LaminaError(
            f"This Lamina compiles {other[0]} otherwise than the one that deployed it",
            evidence=f"version {catalog.views[other[0]].version}, deployed is {recorded[other[0]]}",
            way_out="Run the Lamina that deployed it; or drop the view, and declare it again with this one.",
        )


def plan(connection: Connection, catalog: Catalog) -> list[Change]:
    """What `apply` would do, without doing it; a change with the action `refuse` makes `apply` refuse the whole."""
    _, before = deployed(connection)
    recorded = _versions(connection)
    changes = [_source_change(name, before, catalog) for name in sorted({*before.sources, *catalog.sources})]
    names = [*catalog.views, *(name for name in before.views if name not in catalog.views)]
    moved = _queries_with_history(connection)
    changes += [_view_change(name, before, catalog, moved, recorded.get(name, "")) for name in names]
    return changes


def apply(
    connection: Connection, files: Mapping[str, str], catalog: Catalog, topics: Mapping[str, Topic]
) -> list[Change]:
    """Deploys a catalog in one transaction; `topics` are those of its sources, by source name.

    The first view over a new source is live at once, at the earliest offsets the brokers hold. One over a source with
    history is registered, and served when the next rebuild has computed it.
    """
    progress.lock(connection, progress.queries(connection))
    changes = plan(connection, catalog)
    refused = [change for change in changes if change.action == "refuse"]
    if refused:
        raise LaminaError(
            "This change of the catalog is not applied",
            evidence="\n".join(f"{change.kind} {change.name}: {change.effect}" for change in refused),
            way_out="Declare it under a new name, apply and rebuild, then drop the old one.",
        )
    todo = {(change.kind, change.name): change.action for change in changes}
    for name, source in catalog.sources.items():
        if todo["source", name] == "create":
            _create_query(connection, name, source.topic, topics[name])
    moved = _queries_with_history(connection)
    for position, (name, compiled) in enumerate(catalog.views.items()):
        _record(connection, compiled, position)
        if todo["view", name] == "create" and compiled.cell_tables:
            _create_cells(connection, compiled)
            if not moved & {table.source for table in compiled.cell_tables}:
                _open_empty(connection, name)
    cells.run(connection, f"SET LOCAL lock_timeout = {generations.READER_PATIENCE_MS}")
    views.serve(connection)
    for name in reversed([name for kind, name in todo if kind == "view" and todo[kind, name] == "drop"]):
        _drop_view(connection, name)
    for name in [name for kind, name in todo if kind == "source" and todo[kind, name] == "drop"]:
        connection.execute(delete(progress_table).where(progress_table.c.query == name))
        connection.execute(delete(archived).where(archived.c.query == name))
    connection.execute(delete(declaration))
    if files:
        connection.execute(insert(declaration), [{"path": path, "sql": sql} for path, sql in sorted(files.items())])
    return changes


def _versions(connection: Connection) -> dict[str, str]:
    """The version that is registered of each view."""
    return {row.name: row.version for row in connection.execute(select(view.c.name, view.c.version))}


def _source_change(name: str, before: Catalog, after: Catalog) -> Change:
    old, new = before.sources.get(name), after.sources.get(name)
    if new is None:
        return Change("source", name, "drop", "its query ends; its master log stays in the warehouse")
    if old is None:
        return Change("source", name, "create", f"a query reads topic {new.topic} from its first record")
    if (old.topic, old.parse) == (new.topic, new.parse):
        return Change("source", name, "nothing", "")
    return Change("source", name, "refuse", "its topic or its columns changed, which is not supported yet")


def _view_change(name: str, before: Catalog, after: Catalog, moved: set[str], recorded: str) -> Change:
    old, new = before.views.get(name), after.views.get(name)
    if new is None:
        return Change("view", name, "drop", "it is no longer served; its cells are dropped")
    if old is None:
        waits = sorted(moved & set(new.sources)) if new.cell_tables else []
        effect = f"served after `lamina rebuild {name}`: {', '.join(waits)} has history" if waits else "served at once"
        return Change("view", name, "create", effect)
    if old.version != new.version:
        return Change("view", name, "refuse", "its cells changed, which is not supported yet")
    if recorded != new.version:
        return Change("view", name, "refuse", "this Lamina compiles it otherwise, which is not supported yet")
    if _shape(old.columns) != _shape(new.columns[: len(old.columns)]):
        return Change("view", name, "refuse", "columns that readers use would go or change, which is not supported yet")
    if (old.final, old.columns, old.comment, old.properties) != (new.final, new.columns, new.comment, new.properties):
        return Change("view", name, "update", "only what is read from the cells changed: served at once")
    return Change("view", name, "nothing", "")


def _shape(columns: tuple[Column, ...]) -> list[tuple[str, str]]:
    return [(column.name, column.postgres) for column in columns]


def _queries_with_history(connection: Connection) -> set[str]:
    """The queries that have moved since they were created: a view that is new to them lacks what they have read."""
    moved = progress_table.c.next_offset != progress_table.c.start_offset
    return set(connection.execute(select(progress_table.c.query).where(moved).distinct()).scalars())


def _create_query(connection: Connection, name: str, topic: str, at: Topic) -> None:
    # A source that was dropped may have left its row, for tables of cells that are not dropped yet.
    again = upsert(query).values(name=name, topic=topic, topic_id=at.id)
    connection.execute(
        again.on_conflict_do_update(
            index_elements=[query.c.name],
            set_={"topic": topic, "topic_id": at.id, "stopped": None, "newest": None, "fence": query.c.fence + 1},
        )
    )
    for place, offset in at.earliest.items():
        connection.execute(
            insert(progress_table).values(
                query=name, topic=topic, partition=place.partition, start_offset=offset, next_offset=offset
            )
        )


def _record(connection: Connection, compiled: View, position: int) -> None:
    values = {
        "kind": compiled.kind,
        "version": compiled.version,
        "position": position,
        "final": compiled.final,
        "columns": [
            {"name": column.name, "type": column.postgres, "comment": column.comment} for column in compiled.columns
        ],
        "comment": compiled.comment,
        "reads": list(compiled.reads),
        "keep_generations": int(compiled.properties.get("keep_generations", "1")),
        "on_difference": compiled.properties.get("on_difference", "publish"),
        "retain": compiled.properties.get("retain"),
    }
    statement = upsert(view).values(name=compiled.name, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=[view.c.name], set_=values))


def _create_cells(connection: Connection, compiled: View) -> None:
    for table in compiled.cell_tables:
        known = connection.execute(select(cell_table.c.name).where(cell_table.c.name == table.name)).one_or_none()
        if known is None:
            connection.execute(
                insert(cell_table).values(
                    name=table.name,
                    view=compiled.name,
                    version=compiled.version,
                    query=table.source,
                    ddl=table.cells,
                    merge=table.merge,
                    keys=[column.name for column in table.keys],
                    partials=[partial.column.name for partial in table.partials],
                    noise=[partial.noise for partial in table.partials],
                    retained=table.retained or None,
                )
            )


def _open_empty(connection: Connection, name: str) -> None:
    """A generation at the first offsets that Lamina answers for: there is nothing below its cut to compute."""
    new = generations.open_building(connection, name, rebuild=None)
    for table in new.tables:
        generations.loaded(connection, new.id, table, attempt=0)
    generations.go_live(connection, [new.id])
    generations.hand_over(connection, {name: new.id})


def _drop_view(connection: Connection, name: str) -> None:
    views.withdraw(connection, name)
    connection.execute(delete(publication).where(publication.c.view == name))
    left = generations.find(connection, generation.c.view == name, generation.c.state != "retired")
    generations.retire(connection, [each.id for each in left])
    connection.execute(delete(view).where(view.c.name == name))
