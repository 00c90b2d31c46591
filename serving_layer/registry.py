"""The catalog that is deployed: what a changed one would do (`plan`), and doing it (`apply`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from master_log.offsets import Offsets
from serving_layer import checks, duplicates, generations, lookup, progress, quarantine, views
from serving_layer.bookkeeping import archived, cell_table, declaration, generation, publication, query, view
from serving_layer.bookkeeping import progress as progress_table
from serving_layer.deployed import deployed, keep
from view_algebra.compiled import Catalog, Column, View
from view_algebra.errors import LaminaError

Action = Literal["create", "update", "drop", "keep", "refuse", "nothing"]
"""`keep`: this Lamina would compile the same declaration otherwise, and goes on with what was deployed."""

NOTHING = Catalog(sources={}, views={})


@dataclass(frozen=True)
class Change:
    """What applying a catalog would do to one declaration, or to the database, and what that means."""

    kind: Literal["database", "source", "view"]
    name: str
    action: Action
    effect: str


@dataclass(frozen=True)
class Topic:
    """A topic as the brokers hold it: its id, and the first offset of each partition."""

    id: str
    earliest: Offsets


def plan(connection: Connection, catalog: Catalog) -> list[Change]:
    """What `apply` would do, without doing it; a change with the action `refuse` makes `apply` refuse the whole."""
    return _changes(deployed(connection), catalog, _queries_with_history(connection))


def kinds(connection: Connection) -> dict[str, str]:
    """The deployed views and their kinds: `aggregate`, `row` or `derived`."""
    return {row.name: row.kind for row in connection.execute(select(view.c.name, view.c.kind))}


def plan_of_nothing(catalog: Catalog) -> list[Change]:
    """The same for a database in which nothing is installed."""
    return _changes(NOTHING, catalog, set())


def _changes(before: Catalog, catalog: Catalog, moved: set[str]) -> list[Change]:
    changes = [_source_change(name, before, catalog) for name in sorted({*before.sources, *catalog.sources})]
    names = [*catalog.views, *(name for name in before.views if name not in catalog.views)]
    changes += [_view_change(name, before, catalog, moved) for name in names]
    return changes


class WouldDrop(LaminaError):
    """The catalog lacks declarations that are deployed: what is not in it would be dropped."""


def check_allowed(changes: Sequence[Change], *, prune: bool) -> None:
    """Raises unless all changes may be made; with `prune`, what the catalog no longer declares may be dropped."""
    refused = [change for change in changes if change.action == "refuse"]
    if refused:
        raise LaminaError(
            "This change of the catalog is not applied",
            evidence="\n".join(f"{change.kind} {change.name}: {change.effect}" for change in refused),
            way_out="Declare it under a new name, apply and rebuild, then drop the old one.",
        )
    dropped = [change for change in changes if change.action == "drop"]
    if dropped and not prune:
        raise WouldDrop(
            "This catalog would drop what is deployed; nothing was changed",
            evidence="\n".join(f"{change.kind} {change.name}: {change.effect}" for change in dropped),
            way_out="A deployment holds one catalog, and what is not in it is dropped. Name the catalog that declares"
            " these, too; or drop them: `lamina apply --prune`.",
        )


def apply(
    connection: Connection,
    files: Mapping[str, str],
    catalog: Catalog,
    topics: Mapping[str, Topic],
    *,
    prune: bool = False,
) -> list[Change]:
    """Deploys a catalog in one transaction; `topics` are those of its sources, by source name.

    The first view over a new source is live at once, at the earliest offsets the brokers hold. One over a source with
    history is registered, and served when the next rebuild has computed it. What is deployed and not in the catalog
    is dropped with `prune`; without it, such a catalog is refused.
    """
    progress.lock(connection, progress.queries(connection))
    changes = plan(connection, catalog)
    check_allowed(changes, prune=prune)
    catalog = _chosen(deployed(connection), catalog, changes)
    todo = {(change.kind, change.name): change.action for change in changes}
    for name in [name for kind, name in todo if kind == "source" and todo[kind, name] == "drop"]:
        connection.execute(delete(progress_table).where(progress_table.c.query == name))
        connection.execute(delete(archived).where(archived.c.query == name))
        duplicates.forget(connection, name)
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
    views.serve(connection)
    for name in reversed([name for kind, name in todo if kind == "view" and todo[kind, name] == "drop"]):
        _drop_view(connection, name)
    connection.execute(delete(declaration))
    if files:
        connection.execute(insert(declaration), [{"path": path, "sql": sql} for path, sql in sorted(files.items())])
    keep(connection, catalog)
    checks.forget(connection, catalog)
    return changes


def _source_change(name: str, before: Catalog, after: Catalog) -> Change:
    old, new = before.sources.get(name), after.sources.get(name)
    if new is None:
        return Change("source", name, "drop", "its query ends; its master log stays in the warehouse")
    if old is None:
        return Change("source", name, "create", f"a query reads topic {new.topic} from its first record")
    if (old.topic, old.parse, old.counted) == (new.topic, new.parse, new.counted):
        return Change("source", name, "nothing", "")
    if old.kind == new.kind == "table" and name not in before.views:  # deployed by a Lamina that did not read tables
        return Change("source", name, "update", "its rows are served from now on")
    if old.sql == new.sql:
        return Change("source", name, "keep", "this Lamina would read its records otherwise; it goes on as deployed")
    return Change(
        "source", name, "refuse", "its topic, its columns or what is UNIQUE changed, which is not supported yet"
    )


def _view_change(name: str, before: Catalog, after: Catalog, moved: set[str]) -> Change:
    old, new = before.views.get(name), after.views.get(name)
    if new is None:
        return Change("view", name, "drop", "it is no longer served; its cells are dropped")
    if old is None:
        lacking = [
            each for each in sorted({table.source for table in new.cell_tables}) if _reads_less(each, before, after)
        ]
        if lacking:
            return Change(
                "view", name, "refuse", f"an older Lamina deployed {lacking[0]}, and reads less of its records"
            )
        waits = sorted(moved & set(new.sources)) if new.cell_tables else []
        effect = f"served after `lamina rebuild {name}`: {', '.join(waits)} has history" if waits else "served at once"
        return Change("view", name, "create", effect)
    if _declared_alike(name, before, after):
        if old == new:
            return Change("view", name, "nothing", "")
        if old == replace(new, checks=old.checks):
            return Change("view", name, "update", "its checks changed: they are run before the next hand-over")
        effect = f"this Lamina would compile it otherwise ({_what_differs(old, new)}); it goes on as deployed"
        return Change("view", name, "keep", effect)
    if old.version != new.version:
        return Change("view", name, "refuse", "its cells changed, which is not supported yet")
    if _shape(old.columns) != _shape(new.columns[: len(old.columns)]):
        return Change("view", name, "refuse", "columns that readers use would go or change, which is not supported yet")
    if (old.final, old.columns, old.comment, old.properties) != (new.final, new.columns, new.comment, new.properties):
        return Change("view", name, "update", "only what is read from the cells changed: served at once")
    if old.checks != new.checks:
        return Change("view", name, "update", "its checks changed: they are run before the next hand-over")
    return Change("view", name, "nothing", "")


def _reads_less(name: str, before: Catalog, after: Catalog) -> bool:
    """Does a source go on as an older Lamina deployed it, without columns that are read of its records by now?"""
    old, new = before.sources.get(name), after.sources[name]
    return old is not None and name in before.views and old.sql == new.sql and old.read != new.read


def _declared_alike(name: str, before: Catalog, after: Catalog) -> bool:
    """Is all that a view is made of declared as it was: the view, and what it names, in the same words?"""
    old, new = (_declarations(catalog) for catalog in (before, after))
    seen, todo = {name}, [name]
    while todo:
        each = todo.pop()
        if old[each] != new.get(each):
            return False
        named = {word.lower() for word in re.findall(r"\w+", old[each])} & old.keys()
        todo += named - seen
        seen |= named
    return True


def _declarations(catalog: Catalog) -> dict[str, str]:
    sources = {name: source.sql for name, source in catalog.sources.items()}
    return sources | {name: each.sql for name, each in catalog.views.items()}


def _what_differs(old: View, new: View) -> str:
    """Which texts of a view differ, as a reason to read them."""
    pairs = list(zip(old.cell_tables, new.cell_tables, strict=False))
    names = [
        text for text in ("partial", "cells", "merge") if any(getattr(a, text) != getattr(b, text) for a, b in pairs)
    ]
    names += ["other tables of cells"] * (len(old.cell_tables) != len(new.cell_tables))
    names += [text for text in ("columns", "spelled") if getattr(old, text) != getattr(new, text)]
    names += ["final"] * (old.final != new.final and old.version == new.version)
    return ", ".join(names) or "how records are read"


def _chosen(before: Catalog, after: Catalog, changes: Iterable[Change]) -> Catalog:
    """The catalog that is deployed from now on: the new one, but for what goes on as it was."""
    kept = {(change.kind, change.name) for change in changes if change.action == "keep"}
    return Catalog(
        sources={n: before.sources[n] if ("source", n) in kept else each for n, each in after.sources.items()},
        views={
            n: replace(before.views[n], checks=each.checks)
            if ("view", n) in kept
            else _over_its_cells(before.views.get(n), each)
            for n, each in after.views.items()
        },
    )


def _over_its_cells(old: View | None, new: View) -> View:
    """A view of the version that is deployed goes on with the cells as they are computed: they are one thing."""
    return new if old is None or old.version != new.version else replace(new, cell_tables=old.cell_tables)


def _shape(columns: tuple[Column, ...]) -> list[tuple[str, str]]:
    return [(column.name, column.postgres) for column in columns]


def _queries_with_history(connection: Connection) -> set[str]:
    """The queries that have moved since they were created: a view that is new to them lacks what they have read."""
    moved = progress_table.c.next_offset != progress_table.c.start_offset
    return set(connection.execute(select(progress_table.c.query).where(moved).distinct()).scalars())


def _create_query(connection: Connection, name: str, topic: str, at: Topic) -> None:
    for other in progress.reading(connection, topic):
        if other.topic_id != at.id:
            raise LaminaError(
                f"{name}: topic {topic} is not the one that {other.name} reads",
                evidence=f"Found: topic id {at.id}.\nWanted: topic id {other.topic_id}.",
                way_out=f"The topic was created anew, and its records have one log: drop {other.name} first"
                " (`lamina apply --prune`).",
            )
    # A source that was dropped may have left its row, for tables of cells that are not dropped yet.
    again = upsert(query).values(name=name, topic=topic, topic_id=at.id)
    connection.execute(
        again.on_conflict_do_update(
            index_elements=[query.c.name],
            set_={
                "topic": topic,
                "topic_id": at.id,
                "fence": query.c.fence + 1,
                "created_at": func.clock_timestamp(),
                **dict.fromkeys(("writer", "stopped", "committed_at", "newest", "caught_up_at", "waiting")),
            },
        )
    )
    quarantine.forget(connection, name)  # of a source that was dropped: its records are read again
    duplicates.forget(connection, name)
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
    left = lookup.find(connection, generation.c.view == name, generation.c.state != "retired")
    generations.retire(connection, [each.id for each in left])
    connection.execute(delete(view).where(view.c.name == name))
