"""Batch overwrites realtime: two live generations of a view exchange exactly the cells in which they differ.

The exchange is small because two live generations take the same merges in the same transactions, so equal cells stay
equal. The differing cells can therefore be noted beforehand, while micro-batches continue (`note`), and the exchange
under the lock of the queries touches no other cell. Readers see an ordinary update: a snapshot shows all of it or
nothing, and nobody waits.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select, text

from serving_layer.catalog.lookup import Generation
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import noted as noted_table
from serving_layer.postgres.cells import CellColumns
from view_algebra.compiled import ONLY
from view_algebra.language.quoting import postgres_name

DOUBLE_TOLERANCE = 1e-9
"""Relative. Sums of doubles depend on their order. Sums of integers and decimals are compared exactly."""

ROUNDING = 1e-13
"""Relative to the squares that a variance is the small difference of. Some hundred times the precision of a double."""


def note(connection: Connection, new: Generation, old: Generation) -> None:
    """Stores the keys of the cells in which two live generations of one version differ.

    Runs in the snapshot that read the generations' places (REPEATABLE READ), because without a lock a hand-over could
    exchange them in between.
    """
    for name in new.tables:
        table = cells.columns_of(connection, name)
        values = {"cell_table": name, "new": new.id, "old": old.id}
        id = connection.execute(insert(noted_table).values(values).returning(noted_table.c.id)).scalar_one()
        note_name, keys = note_table(id), ", ".join(_keys(table))
        compared = comparison(connection, table, new.places[name], old.places[name])
        cells.run(connection, f'CREATE TABLE {note_name} AS WITH {compared} SELECT {keys} FROM groups WHERE "Differs"')
        cells.run(connection, f"ANALYZE {note_name}")


def exchange(connection: Connection, name: str, new: Generation, old: Generation) -> None:
    """Exchanges the differing cells of two live generations. The caller holds the lock of their queries.

    Compares the generations first if no note about them exists. `dropping.py` drops the note later: pg_dump may be
    reading it, and an exchange waits for no reader.
    """
    if new.places[name] == old.places[name]:
        raise AssertionError(f"generations {new.id} and {old.id} of {name} have one place")
    note_name = _note_of(connection, name, new, old) or _note_now(connection, name, new, old)
    table = cells.columns_of(connection, name)
    keys, since = ", ".join(_keys(table)), both_keep(new, old, table)
    if since is not None:  # older groups take merges in one generation only, so the note lacks some of them
        for place in (new.places[name], old.places[name]):
            long_ago = f"{postgres_name(table.retained or '')} < '{since}'"
            cells.run(connection, f"INSERT INTO {note_name} SELECT {keys} FROM {place} WHERE {long_ago}")
    columns = ", ".join(["touched", *(postgres_name(column) for column in (*table.keys, *table.partials))])
    places = {new.places[name]: "moved_new", old.places[name]: "moved_old"}
    for place, moved in places.items():
        cells.run(connection, f"CREATE TEMPORARY TABLE {moved} (LIKE {place}) ON COMMIT DROP")
        for condition in _matches(connection, table, note_name):
            cells.run(
                connection,
                f"WITH taken AS (DELETE FROM {place} AS cell USING {note_name} AS differing WHERE {condition}"
                f" RETURNING cell.*) INSERT INTO {moved} SELECT * FROM taken",
            )
    for place, moved in zip(reversed(places), places.values(), strict=True):
        cells.run(connection, f"INSERT INTO {place} ({columns}) SELECT {columns} FROM {moved}")
        cells.drop(connection, moved)
    connection.execute(delete(noted_table).where(noted_table.c.cell_table == name, _about(new.id, old.id)))


def both_keep(new: Generation, old: Generation, table: CellColumns) -> datetime | None:
    """The time from which both generations keep cells of a table, by its `retained` column. None: both keep all."""
    since = max((side.since for side in (new, old) if side.since is not None), default=None)
    return cells.kept_since(table, since)


def forget(connection: Connection, id: int) -> None:
    """Deletes the notes about a generation."""
    connection.execute(delete(noted_table).where(or_(noted_table.c.new == id, noted_table.c.old == id)))


def note_table(id: int | str) -> str:
    """The qualified name of the table that holds a note's keys."""
    return f'realtime."differing_{id}"'


def comparison(
    connection: Connection, table: CellColumns, new: str, old: str, extra_column: str = "", condition: str = "true"
) -> str:
    """Common table expressions over two tables of cells: the `unequal` rows, and their `groups` with `"Differs"`.

    Columns of cells have no capital letters, so they never collide with our names.

    A row that both tables hold is counted twice by one GROUP BY over all columns and drops out. GROUP BY, unlike a
    join, takes NULLs as equal. Only the remaining rows are compared column by column. `extra_column` is another
    column of `groups`. `condition` limits the cells that are compared.
    """
    # Readers and micro-batches need the other processors.
    cells.run(connection, "SET LOCAL max_parallel_workers_per_gather = 0")
    keys = _keys(table)
    partials = {name: postgres_name(name) for name in table.partials}
    columns = ", ".join([*keys, *partials.values()])
    sides = {"new": new, "old": old}
    both = " UNION ALL ".join(
        f"SELECT {columns}, '{side}' AS \"Side\" FROM {place} WHERE {condition}" for side, place in sides.items()
    )
    doubles = _doubles(connection, new)
    noise = dict(zip(table.partials, table.noise, strict=True))
    conditions = [differs(column, noise[name], tolerant=name in doubles) for name, column in partials.items()]
    more = f", {extra_column}" if extra_column else ""
    return f"""unequal AS (
            SELECT {columns}, min("Side") AS "Side" FROM ({both}) AS both_sides GROUP BY {columns} HAVING count(*) = 1
        ), groups AS (
            SELECT {", ".join(keys)}, {" OR ".join(["count(*) <> 2", *conditions])} AS "Differs"{more}
            FROM unequal GROUP BY {", ".join(keys)}
        )"""


def _keys(table: CellColumns) -> list[str]:
    return [postgres_name(key) for key in table.keys] or [ONLY]


def _note_of(connection: Connection, name: str, new: Generation, old: Generation) -> str | None:
    newest = select(noted_table.c.id).order_by(noted_table.c.id.desc()).limit(1)
    pair = (noted_table.c.new == new.id, noted_table.c.old == old.id)
    id = connection.execute(newest.where(noted_table.c.cell_table == name, *pair)).scalar()
    return None if id is None else note_table(id)


def _note_now(connection: Connection, name: str, new: Generation, old: Generation) -> str:
    note(connection, new, old)
    note_name = _note_of(connection, name, new, old)
    assert note_name is not None
    return note_name


def _about(one: int, other: int) -> ColumnElement[bool]:
    pairs = ((one, other), (other, one))
    return or_(*(and_(noted_table.c.new == new, noted_table.c.old == old) for new, old in pairs))


def _matches(connection: Connection, table: CellColumns, note_name: str) -> list[str]:
    """Conditions that match a cell with a noted key: one condition for each combination of NULL keys in the note.

    Each condition can use an index. IS NOT DISTINCT FROM could not.
    """
    keys = _keys(table)
    nulls = connection.execute(text(f"SELECT DISTINCT {', '.join(f'{key} IS NULL' for key in keys)} FROM {note_name}"))
    return [
        " AND ".join(
            f"differing.{key} IS NULL AND cell.{key} IS NULL" if null else f"differing.{key} = cell.{key}"
            for key, null in zip(keys, combination, strict=True)
        )
        for combination in nulls.all()
    ]


def differs(column: str, noise: str, *, tolerant: bool) -> str:
    """A condition that a column differs, in a group with one row from each `"Side"`."""
    new, old = (f"(array_agg({column}) FILTER (WHERE \"Side\" = '{side}'))[1]" for side in ("new", "old"))
    unequal = f"{new} IS DISTINCT FROM {old}"
    if not tolerant:
        return unequal
    # NaN and infinity are near nothing else, and Postgres raises if a difference exceeds the range of doubles.
    x, y = f"{new}::float8", f"{old}::float8"
    largest = f"greatest(abs({x}), abs({y}), 1e-290::float8)"
    finite = f"{x} > '-Infinity' AND {y} > '-Infinity' AND {largest} < 'Infinity'"
    near = f"(sign({x}) = sign({y}) OR {largest} < 1e300) AND abs({x} - {y}) <= {DOUBLE_TOLERANCE} * {largest}"
    if noise:
        near += f" + {ROUNDING} * coalesce(max({noise}), 0)"
    return f"({unequal} AND (CASE WHEN {finite} THEN {near} END) IS NOT TRUE)"


def _doubles(connection: Connection, table: str) -> set[str]:
    return set(
        connection.execute(
            text(
                "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(:table)"
                " AND atttypid IN ('float8'::regtype, 'float4'::regtype) AND NOT attisdropped"
            ),
            {"table": table},
        ).scalars()
    )
