"""The views that analysts see: one plain SQL view per declared view, in schema `analytics`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, select, text, update
from sqlalchemy.exc import DBAPIError

from serving_layer.postgres.bookkeeping import publication, view
from serving_layer.postgres.cells import run
from serving_layer.postgres.database import (
    READER_PATIENCE_MS,
    Database,
    is_deadlock,
    is_lock_timeout,
    is_other_shape,
    unreadable_time,
    wait_shortly_for_readers,
)
from serving_layer.readers import dependents
from serving_layer.readers.sides import Side, body, needed_sides, place_of, places, transactions, with_places
from view_algebra.compiled import Catalog, View
from view_algebra.language.quoting import quoted

NOT_PUBLISHED_YET = """
CREATE OR REPLACE FUNCTION lamina.not_published_yet(view text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
BEGIN
  RAISE object_not_in_prerequisite_state USING
    MESSAGE = format('%s was published after this transaction began to read', view),
    HINT = 'Begin another transaction: it reads the view as it is then.';
END
$$
"""
"""Raised by a view in a snapshot from before its first publication."""

NOT_PREVIEWED = """
CREATE OR REPLACE FUNCTION lamina.not_previewed(preview text, view text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
BEGIN
  RAISE object_not_in_prerequisite_state USING
    MESSAGE = format('%s.%s has no live cells in this snapshot', preview, view),
    DETAIL = 'A leap has retired them, or their source was dropped; or the snapshot is older than the preview.',
    HINT = format('Begin another transaction; or make the preview again: lamina apply --preview %s', preview);
END
$$
"""
"""Raised by a view of a preview whose cells are not maintained."""

UNDEFINED_COLUMN = "42703"
"""Postgres' code for a missing column."""

ANALYST = "analyst"
"""The read-only role of dashboards and analysts."""


class ViewRow(NamedTuple):
    """A declared view as recorded.

    served: the body that the analyst's view has now
    before: its older sides
    """

    name: str
    kind: str
    final: str
    columns: list[dict[str, Any]]
    comment: str | None
    served: str | None
    reads: list[str]
    before: list[dict[str, Any]]


_ROWS = select(*(view.c[field] for field in ViewRow._fields))


def serve(connection: Connection, *, except_for: Collection[str] = ()) -> list[str]:
    """Creates or replaces the analyst's view of every declared view that can be read. Returns the changed names.

    A view with cells can be read once a generation is published, a derived view once everything it reads can be. Before
    that the view is absent, because an empty view would be wrong. So would be the half-loaded cells that an older
    snapshot sees, which is why every view checks the publication in the reader's snapshot.

    If a reader holds a view, this and all later statements of the transaction wait only shortly
    (`wait_shortly_for_readers`, `Database.retrying`). `except_for` are views that are about to be dropped.
    """
    wait_shortly_for_readers(connection)
    readable: set[str] = set(connection.execute(select(publication.c.view)).scalars())
    where = places(connection)
    changed: list[str] = []
    missing: dict[str, list[str]] = {}
    rows = [
        ViewRow(*row)
        for row in connection.execute(_ROWS.where(view.c.name.not_in(except_for)).order_by(view.c.position))
    ]
    for again in (False, True):  # an older side may read a view created later, and is dropped with it
        for row in rows:
            if row.kind == "derived" and set(row.reads) <= readable:
                readable.add(row.name)
            final = _body(row, where)
            content = json.dumps([final, row.columns, row.comment])
            if row.name not in readable or ((again or row.served == content) and row.name not in missing):
                continue
            missing |= _create(connection, row, final)
            for right in missing.pop(row.name, []):
                _restore_right(connection, right)
            connection.execute(update(view).where(view.c.name == row.name).values(served=content))
            changed.append(row.name)
    connection.execute(update(view).where(view.c.name.in_(missing)).values(served=None))
    return changed


def _restore_right(connection: Connection, right: str) -> None:
    """Grants a right again to its previous holder. A right on a dropped column is gone."""
    try:
        with connection.begin_nested():
            run(connection, right)
    except DBAPIError as error:
        if getattr(error.orig, "pgcode", None) != UNDEFINED_COLUMN:
            raise


def set_aside(connection: Connection, moving: Collection[str], catalog: Catalog) -> None:
    """Stores the present form of views for present snapshots, before the `moving` views read other cells or
    lose theirs.

    This includes all `moving` views, and views that read them and whose text changes or that have an older side
    already: a side is identified by the places of the views below it. A view that reads dropped columns cannot be
    stored. It raises in such a snapshot.
    """
    where = places(connection)
    rows = {row.name: ViewRow(*row) for row in connection.execute(_ROWS)}
    changing = {name for name, row in rows.items() if not _is_unchanged(row, catalog.views.get(name))}
    broken = {name for name in changing if _breaks(rows[name], catalog.views.get(name))}
    kept: dict[str, list[Side]] = {}
    for name, row in rows.items():
        kept[name] = [side for side in _sides(row) if not broken & set(side.reads)]
        below = set(moving) & _below(name, rows)
        if (
            row.served
            and (name in moving or ((name in changing or kept[name]) and below))
            and not broken & set(row.reads)
        ):
            at = _at(name, {*below, *({name} & set(moving))}, kept[name], where)
            kept[name] = [Side(at, with_places(row.final, where), row.columns, list(row.reads)), *kept[name]]
    for name, sides in _without_circles(kept, catalog).items():
        before = [vars(side) for side in sides]
        if before != rows[name].before:
            connection.execute(update(view).where(view.c.name == name).values(before=before))


def _without_circles(kept: Mapping[str, Sequence[Side]], catalog: Catalog) -> dict[str, list[Side]]:
    """The sides without those that now form a cycle: Postgres would refuse to read any view in it."""
    reads = {name: set(view.reads) for name, view in catalog.views.items()}
    for name, sides in kept.items():
        reads.setdefault(name, set()).update(read for side in sides for read in side.reads)
    return {
        name: [side for side in sides if not any(name in reachable(read, reads) for read in side.reads)]
        for name, sides in kept.items()
    }


def settle(database: Database, *, patience_ms: int = READER_PATIENCE_MS) -> bool:
    """Removes the older sides that no snapshot needs. False if a view still has some.

    A view keeps them while a reader may need a side or holds the view for longer than `patience_ms`. Transactions that
    are open at the first look may have a snapshot from before the move. Later ones do not.
    """
    unsettled = [name for name in database.retrying(_note_readers) if not _settle_one(database, name, patience_ms)]
    return not unsettled


def _note_readers(connection: Connection) -> list[str]:
    """Records the transactions that may need the older sides of moved views. Returns the views with older sides."""
    rows = _lock_moving(connection)
    open_now = transactions(connection)
    for row in rows:
        sides = [side if side.readers is not None else replace(side, readers=open_now) for side in _sides(row)]
        connection.execute(update(view).where(view.c.name == row.name).values(before=[vars(side) for side in sides]))
    return [row.name for row in rows]


def _settle_one(database: Database, name: str, patience_ms: int) -> bool:
    """Removes one view's unneeded sides, in a transaction of its own, so a reader who holds it delays no other view."""
    try:
        with database.begin() as connection:
            connection.execution_options(reader_patience_ms=patience_ms)
            sides = next(
                (needed_sides(connection, row.before) for row in _lock_moving(connection) if row.name == name), []
            )
            connection.execute(update(view).where(view.c.name == name).values(before=[vars(side) for side in sides]))
            serve(connection)
    except DBAPIError as error:
        if not is_lock_timeout(error) and not is_deadlock(error):
            raise
        return False
    return not sides


def shown_columns(compiled: View) -> list[dict[str, Any]]:
    """The columns of a view as recorded: name, type in Postgres, comment."""
    return [{"name": column.name, "type": column.postgres, "comment": column.comment} for column in compiled.columns]


def _lock_moving(connection: Connection) -> list[ViewRow]:
    """The views that have an older side. No view moves until this transaction ends."""
    rows = connection.execute(_ROWS.order_by(view.c.name).with_for_update())
    return [ViewRow(*row) for row in rows if row.before]


def served_views(connection: Connection) -> set[str]:
    """The declared views that can be read."""
    return set(connection.execute(select(view.c.name).where(view.c.served.is_not(None))).scalars())


def rows(
    connection: Connection, name: str, columns: str, where: str = "true", schema: str = "analytics"
) -> list[tuple[Any, ...]]:
    """The rows of a view as an analyst reads them. `columns` is a list of expressions over its columns."""
    try:
        shown = run(connection, f"SELECT {columns} FROM {quoted(schema)}.{quoted(name)} WHERE {where}")
        return [tuple(row) for row in shown]
    except ValueError as error:
        raise unreadable_time(error) from error


def withdraw(connection: Connection, names: Collection[str]) -> None:
    """Drops analysts' views. Raises if a relation of another role reads one."""
    if names:
        dependents.drop_all(connection, names)


def _body(row: ViewRow, where: Mapping[tuple[str, str], str]) -> str:
    """The body of an analyst's view, with a side for each version that a snapshot may need."""
    before = _sides(row)
    at = _at(row.name, (), before, where)
    final = with_places(row.final, where)
    return body(row.name, Side(at, final, row.columns), before) if at else final


def _at(
    name: str, others: Collection[str], before: Sequence[Side], where: Mapping[tuple[str, str], str]
) -> dict[str, str | None]:
    """The places that a snapshot must publish for the present form of a view to hold.

    They are the view's own (if it has cells), those of `others`, and those by which its older sides are identified.
    """
    own = set() if place_of(name, where) is None else {name}
    return {view: place_of(view, where) for view in own.union(others, *(side.at for side in before))}


def _sides(row: ViewRow) -> list[Side]:
    return [Side(**side) for side in row.before]


def _is_unchanged(row: ViewRow, compiled: View | None) -> bool:
    """True if the text of a view stays the same."""
    return compiled is not None and (row.final, row.columns) == (compiled.final, shown_columns(compiled))


def _breaks(row: ViewRow, compiled: View | None) -> bool:
    """True if a text that reads all columns of a view would fail on the new view."""
    now = {} if compiled is None else {column.name: column.postgres for column in compiled.columns}
    return any(now.get(column["name"]) != column["type"] for column in row.columns)


def _below(name: str, rows: Mapping[str, ViewRow]) -> set[str]:
    """The views that a view reads, directly or through other views."""
    return reachable(name, {view: row.reads for view, row in rows.items()}) - {name}


def reachable(name: str, reads: Mapping[str, Iterable[str]]) -> set[str]:
    """A view and all views that it reads, directly or through other views."""
    views, todo = {name}, [name]
    while todo:
        new = set(reads.get(todo.pop(), ())) - views
        views |= new
        todo += new
    return views


def _create(connection: Connection, row: ViewRow, final: str) -> dict[str, list[str]]:
    """Creates or replaces a view. A view of another shape is dropped first, with the views that read it.

    Returns the names of the dropped views, each with the rights that others had on it.
    """
    name = f"analytics.{quoted(row.name)}"
    columns = ", ".join(quoted(column["name"]) for column in row.columns)
    dropped: dict[str, list[str]] = {}
    try:
        with connection.begin_nested():
            run(connection, f"CREATE OR REPLACE VIEW {name} ({columns}) AS\n{final}")
    except DBAPIError as error:
        if not is_other_shape(error):
            raise
        dropped = dependents.drop(connection, row.name)
        run(connection, f"CREATE VIEW {name} ({columns}) AS\n{final}")
    publish_view(connection, name, row.comment, row.columns)
    return dropped


def publish_view(
    connection: Connection, name: str, comment: str | None, columns: Collection[Mapping[str, Any]]
) -> None:
    """Sets the comments of a new view, and grants analysts the right to read it."""
    run(connection, f"COMMENT ON VIEW {name} IS {_literal(connection, comment)}")
    for column in columns:
        literal = _literal(connection, column["comment"])
        run(connection, f"COMMENT ON COLUMN {name}.{quoted(column['name'])} IS {literal}")
    run(connection, f"GRANT SELECT ON {name} TO {ANALYST}")


def _literal(connection: Connection, value: str | None) -> str:
    return str(connection.execute(text("SELECT quote_nullable(:value)"), {"value": value}).scalar_one())
