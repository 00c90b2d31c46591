"""Renames: a view gets another name and keeps its cells. Everything recorded of it moves to the new name, row by row.

Afterwards the rows read as if the view had always had its new name, so plan, apply, rollback and rebuilds know nothing
of renames. Tables that hold cells keep their names. They end in a generation's number, so a view that takes the old
name uses other tables. A micro-batch that was computed for the old names is computed again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlalchemy import Connection, delete, func, insert, literal, select, text, update

from serving_layer.catalog import versions
from serving_layer.catalog.compiled_json import from_json, to_json
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import (
    cell_table,
    checked,
    freshness_target,
    generation,
    generation_cells,
    history,
    load,
    noted,
    proof,
    publication,
    rebuild,
    version,
    view,
)
from serving_layer.postgres.database import wait_shortly_for_readers
from serving_layer.postgres.states import RebuildState
from serving_layer.readers.sides import Side, needed_sides, place_of, places, with_places
from view_algebra.compiled import Catalog, Check, View, stem
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import postgres_name, quoted
from view_algebra.text_relations import reading

STALE = " before the rename"
"""Makes the recorded content of a view differ from every other, so that `views.serve` replaces the view."""


def declared_renames(before: Catalog, after: Catalog) -> dict[str, str]:
    """The old name of each view to be renamed, except renames that were applied or whose old view does not exist."""
    declared = {name: compiled.properties.get("renamed_from", "") for name, compiled in after.views.items()}
    return {new: old for new, old in declared.items() if new not in before.views and old in before.views}


def renamed_catalog(catalog: Catalog, names: Mapping[str, str]) -> Catalog:
    """A catalog as if its views had always had their new names. `names` maps old names to new ones."""
    views = (renamed_view(compiled, names) for compiled in catalog.views.values())
    return replace(catalog, views={compiled.name: compiled for compiled in views})


def renamed_view(compiled: View, names: Mapping[str, str]) -> View:
    """A compiled view under its new name, reading the new names of other views."""
    from view_algebra.written.naming import under_another_name

    name = names.get(compiled.name, compiled.name)
    tables = {t.name: _table(t.name, compiled.name, name, compiled.version) for t in compiled.cell_tables}
    return replace(
        compiled,
        name=name,
        sql=compiled.sql if name == compiled.name else under_another_name(compiled.sql, name),
        final=_spelled(_spelled(compiled.final, "cells", tables), "analytics", names),
        reads=tuple(sorted(names.get(read, read) for read in compiled.reads)),
        cell_tables=tuple(replace(t, name=tables[t.name]) for t in compiled.cell_tables),
        checks=tuple(_check(check, names) for check in compiled.checks),
    )


def why_not(old: str, new: str, renaming: Mapping[str, str], before: Catalog, after: Catalog) -> str | None:
    """The reason why a view cannot be renamed, or None."""
    if old in before.sources or new in after.sources:
        return "a table has the name of its source"
    if list(renaming.values()).count(old) > 1:
        return "another view declares the same rename"
    if old in after.views and after.views[old].properties.get("renamed_from") in before.views:
        return f"{old} is renamed in the same apply: rename one, apply, then rename the other"
    if before.views[old].version != after.views[new].version:
        return "its cells would change: rename it with its present SELECT, apply, and change it then"
    if old in after.views and after.views[old].select == before.views[old].select:
        return f"{old} is declared as it was: leave out one of the two, or the property"
    return None


def way_to_keep(old: View, before: Catalog, after: Catalog) -> str:
    """A hint for a dropped view: how to keep its cells if a new view is the same except for its name."""
    for new in after.views.values():
        is_same = (new.select, new.version, new.columns) == (old.select, old.version, old.columns)
        if new.name not in before.views and is_same and not {old.name, new.name} & {*before.sources, *after.sources}:
            line = f"TBLPROPERTIES ('renamed_from' = '{old.name}')"
            return f". {new.name} has the same SELECT: to keep the cells under that name, declare it with {line}"
    return ""


def apply(connection: Connection, before: Catalog, names: Mapping[str, str]) -> Catalog:
    """Moves everything recorded of views to their new names, in the transaction of an apply. Returns that catalog.

    The caller holds the lock of the queries, so no micro-batch is in progress.
    """
    if not names:
        return before
    versions.lock(connection)  # first, as in every transaction that changes tables of cells
    if (shown := unsettled(connection, names)) is not None:
        raise LaminaError(
            "A view cannot be renamed while a transaction from before the last move is open",
            evidence=f"it still sees the previous {shown}",
            way_out="Apply again when that transaction has ended (`pg_stat_activity` lists them).",
        )
    running = select(rebuild.c.id).where(rebuild.c.state == RebuildState.RUNNING).limit(1)
    if (id := connection.execute(running).scalar()) is not None:
        raise LaminaError(
            "A view cannot be renamed while a rebuild runs, because its steps use the view's name",
            evidence=f"rebuild {id}",
            way_out=f"Apply again when it has ended, or `lamina step abandon --rebuild {id}`.",
        )
    for name, sides in _older(connection).items():  # drop unneeded sides: they may use a renamed name
        connection.execute(update(view).where(view.c.name == name).values(before=[vars(side) for side in sides]))
    wait_shortly_for_readers(connection)
    now = renamed_catalog(before, names)
    for old, new in names.items():
        _move_cells(connection, before.views[old], new)
        _move_view(connection, old, now.views[new])
    for name, compiled in now.views.items():
        values: dict[str, object] = {"final": compiled.final, "reads": list(compiled.reads)}
        if set(compiled.reads) & set(names.values()):  # Postgres' view follows the rename, and its text does not
            values["served"] = view.c.served + STALE
        connection.execute(update(view).where(view.c.name == name).values(values))
    _move_versions(connection, names)
    return now


def unsettled(connection: Connection, names: Collection[str]) -> str | None:
    """A view whose state before the last move an older snapshot may need, and that is or reads one of these views."""
    for name, sides in _older(connection).items():
        if sides and (name in names or any(old in side.final for side in sides for old in names)):
            return name
    return None


def _older(connection: Connection) -> dict[str, list[Side]]:
    """By view, the older sides that a snapshot may still need."""
    rows = connection.execute(select(view.c.name, view.c.before).where(func.jsonb_array_length(view.c.before) > 0))
    return {row.name: needed_sides(connection, row.before) for row in rows.all()}


def _move_view(connection: Connection, old: str, renamed: View) -> None:
    """Renames the analyst's view and its row, and adds a side for snapshots in which the old name is published."""
    new, where = renamed.name, places(connection)
    row = connection.execute(select(view).where(view.c.name == old)).one()
    place = place_of(old, where)
    before = []
    if place is not None and row.served:
        before = [vars(Side({old: place}, with_places(renamed.final, where), row.columns, list(renamed.reads)))]
    if row.served:
        cells.run(connection, f"ALTER VIEW analytics.{quoted(old)} RENAME TO {quoted(new)}")
    connection.execute(update(view).where(view.c.name == old).values(name=new, before=before))
    connection.execute(delete(freshness_target).where(freshness_target.c.view == new))
    for table in (generation, publication, proof, checked, freshness_target):
        connection.execute(update(table).where(table.c.view == old).values(view=new))
    # Earlier definitions are recorded under the old name only.
    connection.execute(update(history).where(history.c.view == old).values(view=new, definition=None))
    connection.execute(update(rebuild).values(views=func.array_replace(rebuild.c.views, old, new)))


def _move_cells(connection: Connection, compiled: View, new: str) -> None:
    """Renames the tables of cells of all versions: copies their rows under the new names, then deletes the old rows."""
    for row in connection.execute(select(cell_table).where(cell_table.c.view == compiled.name)).mappings().all():
        old, name = row["name"], _table(row["name"], compiled.name, new, row["version"])
        connection.execute(insert(cell_table).values({**row, "name": name, "view": new}))
        old_rows = generation_cells.c.cell_table == old
        _rename_realtime(connection, old, name)
        columns = [literal(name) if c.name == "cell_table" else c for c in generation_cells.c]
        named = [c.name for c in generation_cells.c]
        connection.execute(insert(generation_cells).from_select(named, select(*columns).where(old_rows)))
        connection.execute(update(load).where(load.c.cell_table == old).values(cell_table=name))
        connection.execute(update(noted).where(noted.c.cell_table == old).values(cell_table=name))
        connection.execute(delete(generation_cells).where(old_rows))
        connection.execute(delete(cell_table).where(cell_table.c.name == old))


def _rename_realtime(connection: Connection, old: str, new: str) -> None:
    """Renames realtime tables. Leftovers are found by the name of the table of cells in theirs."""
    tables = text(
        "SELECT relname FROM pg_class WHERE relnamespace = 'realtime'::regnamespace AND relkind = 'r'"
        " AND relname ~ :pattern"
    )
    pattern = f"^{re.escape(old)}_g[0-9]+_[0-9]+$"
    for name in connection.execute(tables, {"pattern": pattern}).scalars().all():
        cells.run(connection, f"ALTER TABLE realtime.{quoted(name)} RENAME TO {quoted(new + name[len(old) :])}")


def _move_versions(connection: Connection, names: Mapping[str, str]) -> None:
    """Renames the stored versions of these views and of the views that read them."""
    for row in connection.execute(select(version)).all():
        compiled = renamed_view(from_json(View, row.texts), names)
        same = (version.c.view == row.view) & (version.c.version == row.version)
        values = {"view": compiled.name, "texts": to_json(compiled)}
        connection.execute(update(version).where(same).values(values))


def _table(table: str, old: str, new: str, version: str) -> str:
    """The name of a table of cells after its view was renamed, as the compiler would name it.

    >>> _table("sums_12345678_2", "sums", "totals", "12345678")
    'totals_12345678_2'
    """
    return table if old == new else f"{stem(new)}{table[table.rindex(f'_{version}') :]}"


def _spelled(sql: str, schema: str, names: Mapping[str, str]) -> str:
    """SQL with relations of a schema renamed. A relation that qualifies columns keeps its old name as an alias.

    >>> _spelled("SELECT 'analytics.a' FROM analytics.a CROSS JOIN analytics.ab", "analytics", {"a": "b"})
    "SELECT 'analytics.a' FROM analytics.b CROSS JOIN analytics.ab"
    >>> _spelled("SELECT a.k FROM analytics.a JOIN analytics.b ON a.k = b.k", "analytics", {"a": "z"})
    'SELECT a.k FROM analytics.z AS a JOIN analytics.b ON a.k = b.k'
    """
    spelled = {old: f"{schema}.{postgres_name(new)}" for old, new in names.items()}
    qualifying = [old for old in names if re.search(rf"(?<!\w){re.escape(postgres_name(old))}\.", sql)]
    return reading(sql, schema, spelled.get, qualifying)


def _check(check: Check, names: Mapping[str, str]) -> Check:
    failing = _spelled(_spelled(check.failing, "analytics", names), "published", names)
    return replace(check, failing=failing, reads=tuple(sorted(names.get(read, read) for read in check.reads)))
