"""What analysts see: one plain SQL view per declared view, in schema `analytics`, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

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
from serving_layer.readers.sides import Side, body, needed, place_of, placed, places, transactions
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
"""What a view raises in a snapshot that is older than its first publication."""

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
"""What a view of a preview raises where its cells are not kept current."""

UNDEFINED_COLUMN = "42703"
"""Postgres' code for a column that is not there."""

ANALYST = "analyst"
"""The read-only role of dashboards and analysts."""


def serve(connection: Connection, *, but: Collection[str] = ()) -> list[str]:
    """Makes or renews the analyst's view of every declared view that can be read; gives the names of those.

    A view with cells can be read once a generation of it is published, a derived view once all that it reads can.
    Until then it is absent: an empty view would be untrue, and so would be what a snapshot of before shows of it (its
    cells as far as they were loaded), which is why a view asks what is published in the reader's snapshot.
    A view that a reader holds is waited for shortly (`wait_shortly_for_readers`), and so is anything after it in this
    transaction: see `Database.retrying`. `but` are views that are about to go.
    """
    wait_shortly_for_readers(connection)
    readable: set[str] = set(connection.execute(select(publication.c.view)).scalars())
    where = places(connection)
    made: list[str] = []
    missing: dict[str, list[str]] = {}
    rows = connection.execute(select(view).where(view.c.name.not_in(but)).order_by(view.c.position)).all()
    for again in (False, True):  # an older side may read what is made later, and go when that is dropped
        for row in rows:
            if row.kind == "derived" and set(row.reads) <= readable:
                readable.add(row.name)
            final = _body(row, where)
            body = json.dumps([final, row.columns, row.comment])
            if row.name not in readable or ((again or row.served == body) and row.name not in missing):
                continue
            missing |= _create(connection, row, final)
            for right in missing.pop(row.name, []):
                _give_back(connection, right)
            connection.execute(update(view).where(view.c.name == row.name).values(served=body))
            made.append(row.name)
    connection.execute(update(view).where(view.c.name.in_(missing)).values(served=None))
    return made


def _give_back(connection: Connection, right: str) -> None:
    """Gives a right back to who had it; one on a column that has gone is gone with it."""
    try:
        with connection.begin_nested():
            run(connection, right)
    except DBAPIError as error:
        if getattr(error.orig, "pgcode", None) != UNDEFINED_COLUMN:
            raise


def set_aside(connection: Connection, moving: Collection[str], catalog: Catalog) -> None:
    """Keeps what views are now for the snapshots of now, before `moving` are read from other cells, or from none.

    That is every one of these, and every other that reads one of them and of which the text changes, too, or which has
    an older side already: that is told by where those are read from. What reads columns that go cannot be kept: it
    raises in such a snapshot.
    """
    where = places(connection)
    rows = {row.name: row for row in connection.execute(select(view)).all()}
    changing = {name for name, row in rows.items() if not _goes_on(row, catalog.views.get(name))}
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
            kept[name] = [Side(at, placed(row.final, where), row.columns, list(row.reads)), *kept[name]]
    for name, sides in _without_circles(kept, catalog).items():
        before = [vars(side) for side in sides]
        if before != rows[name].before:
            connection.execute(update(view).where(view.c.name == name).values(before=before))


def _without_circles(kept: Mapping[str, Sequence[Side]], catalog: Catalog) -> dict[str, list[Side]]:
    """Without the sides that read what reads the view by now: Postgres would refuse to read any of them."""
    reads = {name: set(view.reads) for name, view in catalog.views.items()}
    for name, sides in kept.items():
        reads.setdefault(name, set()).update(each for side in sides for each in side.reads)
    return {
        name: [side for side in sides if not any(name in reached(each, reads) for each in side.reads)]
        for name, sides in kept.items()
    }


def settle(database: Database, *, patience_ms: int = READER_PATIENCE_MS) -> bool:
    """Renews the views whose older sides no snapshot needs any more; False where one is left as it is.

    Because a reader still may need a side, or holds the view for longer than `patience_ms`. What is open when the first
    transaction looks may have a snapshot of before the move; what begins later has none.
    """
    left = [name for name in database.retrying(_note_readers) if not _settled(database, name, patience_ms)]
    return not left


def _note_readers(connection: Connection) -> list[str]:
    """Notes which transactions may need the older sides of views that have moved; gives all views that have some."""
    rows = _locked(connection)
    open_now = transactions(connection)
    for row in rows:
        sides = [side if side.readers is not None else replace(side, readers=open_now) for side in _sides(row)]
        connection.execute(update(view).where(view.c.name == row.name).values(before=[vars(side) for side in sides]))
    return [row.name for row in rows]


def _settled(database: Database, name: str, patience_ms: int) -> bool:
    """Lets one view forget its older sides; a reader who holds it keeps no other view from forgetting its own."""
    try:
        with database.begin() as connection:
            connection.execution_options(reader_patience_ms=patience_ms)
            sides = next((needed(connection, row.before) for row in _locked(connection) if row.name == name), [])
            connection.execute(update(view).where(view.c.name == name).values(before=[vars(side) for side in sides]))
            serve(connection)
    except DBAPIError as error:
        if not is_lock_timeout(error) and not is_deadlock(error):
            raise
        return False
    return not sides


def shown_columns(compiled: View) -> list[dict[str, Any]]:
    """The columns of a view as they are recorded: name, type in Postgres, comment."""
    return [{"name": column.name, "type": column.postgres, "comment": column.comment} for column in compiled.columns]


def _locked(connection: Connection) -> list[Any]:
    """The views that have an older side. No view moves until this transaction ends."""
    rows = connection.execute(select(view).order_by(view.c.name).with_for_update()).all()
    return [row for row in rows if row.before]


def served(connection: Connection) -> set[str]:
    """The declared views that can be read."""
    return set(connection.execute(select(view.c.name).where(view.c.served.is_not(None))).scalars())


def rows(
    connection: Connection, name: str, columns: str, where: str = "true", schema: str = "analytics"
) -> list[tuple[Any, ...]]:
    """The rows of a view as an analyst reads them; `columns` is a list of expressions over its columns."""
    try:
        found = run(connection, f"SELECT {columns} FROM {quoted(schema)}.{quoted(name)} WHERE {where}")
        return [tuple(row) for row in found]
    except ValueError as error:
        raise unreadable_time(error) from error


def withdraw(connection: Connection, names: Collection[str]) -> None:
    """Drops analysts' views; refused while somebody's own view reads one."""
    if names:
        dependents.drop_all(connection, names)


def _body(row: Any, where: Mapping[tuple[str, str], str]) -> str:
    """The body of an analyst's view, with a side for each version that a snapshot may need."""
    before = _sides(row)
    at = _at(row.name, (), before, where)
    final = placed(row.final, where)
    return body(row.name, Side(at, final, row.columns), before) if at else final


def _at(
    name: str, asked: Collection[str], before: Sequence[Side], where: Mapping[tuple[str, str], str]
) -> dict[str, str | None]:
    """What is asked of a snapshot that shows a view as it is now: the place of its cells, if it has any, of the views
    that are `asked`, and of those by which its older sides are told.
    """
    own = set() if place_of(name, where) is None else {name}
    return {each: place_of(each, where) for each in own.union(asked, *(side.at for side in before))}


def _sides(row: Any) -> list[Side]:
    return [Side(**side) for side in row.before]


def _goes_on(row: Any, compiled: View | None) -> bool:
    """Does the text of a view stay as it is?"""
    return compiled is not None and (row.final, row.columns) == (compiled.final, shown_columns(compiled))


def _breaks(row: Any, compiled: View | None) -> bool:
    """Would a text that reads all columns of a view no longer find them?"""
    now = {} if compiled is None else {column.name: column.postgres for column in compiled.columns}
    return any(now.get(column["name"]) != column["type"] for column in row.columns)


def _below(name: str, rows: Mapping[str, Any]) -> set[str]:
    """The views that a view reads, directly or through others."""
    return reached(name, {each: row.reads for each, row in rows.items()}) - {name}


def reached(name: str, reads: Mapping[str, Iterable[str]]) -> set[str]:
    """A view and all that it reads, directly or through others."""
    found, todo = {name}, [name]
    while todo:
        new = set(reads.get(todo.pop(), ())) - found
        found |= new
        todo += new
    return found


def _create(connection: Connection, row: Any, final: str) -> dict[str, list[str]]:
    """Makes or renews a view; one of another shape is dropped first, with those that read it.

    Gives the names of those that were dropped, each with the rights that others have been given on it.
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
    tell_readers(connection, name, row.comment, row.columns)
    return dropped


def tell_readers(
    connection: Connection, name: str, comment: str | None, columns: Collection[Mapping[str, Any]]
) -> None:
    """Gives a view that was made its comments, and lets analysts read it."""
    run(connection, f"COMMENT ON VIEW {name} IS {_literal(connection, comment)}")
    for column in columns:
        said = _literal(connection, column["comment"])
        run(connection, f"COMMENT ON COLUMN {name}.{quoted(column['name'])} IS {said}")
    run(connection, f"GRANT SELECT ON {name} TO {ANALYST}")


def _literal(connection: Connection, value: str | None) -> str:
    return str(connection.execute(text("SELECT quote_nullable(:value)"), {"value": value}).scalar_one())
