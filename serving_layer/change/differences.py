"""A comparison of a deployed view with the same view in a preview, row by row, in one snapshot.

If both views have the same group columns, rows are matched by these. Otherwise rows match only if they are equal in all
shared columns. Rows are compared as a multiset: a row that occurs twice needs two matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from serving_layer.catalog import lookup
from serving_layer.catalog.deployed import deployed
from serving_layer.change import previews
from serving_layer.postgres.cells import run
from serving_layer.promise.overwriting import differs
from serving_layer.readers import views
from serving_layer.readers.row_keys import group_columns
from view_algebra.compiled import Catalog
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import quoted

EXAMPLES = 5
"""Rows, or pairs of rows, that are shown as examples of a difference."""

_DOUBLES = ("double precision", "real")
_NUMBERS = ("smallint", "integer", "bigint", "numeric", *_DOUBLES)


@dataclass(frozen=True)
class ColumnDifference:
    """A column that differs: its type on each side (None: missing there), and the number of pairs of rows affected.

    differing is None for a column that one side lacks, and if rows were compared as a whole.
    """

    column: str
    here: str | None
    there: str | None
    differing: int | None


@dataclass(frozen=True)
class Example:
    """Two rows of one key that differ, or one row and None for the side that lacks it."""

    here: dict[str, Any] | None
    there: dict[str, Any] | None


@dataclass(frozen=True)
class Difference:
    """The result of a comparison. `here` is the deployed view, `there` the preview's.

    key: the columns that rows were matched by, or None if rows were compared as a whole
    same: rows that are equal in all shared columns
    differing: pairs of rows with one key that are not
    """

    view: str
    against: str
    key: list[str] | None
    rows_here: int
    rows_there: int
    only_here: int
    only_there: int
    same: int
    differing: int
    columns: list[ColumnDifference]
    examples: list[Example]

    @property
    def equal(self) -> bool:
        """True if both sides have the same columns and the same rows."""
        return not (self.only_here or self.only_there or self.differing or self.columns)


def between(connection: Connection, name: str, preview: str, key: Sequence[str] = ()) -> Difference:
    """Compares a view with that of a preview. The caller's transaction is one snapshot, so both count alike."""
    before, after = deployed(connection), previews.get(connection, preview)
    _check_served(connection, name, preview, after)
    types = [_types(connection, schema, name) for schema in ("analytics", preview)]
    common = [column for column in types[0] if column in types[1]]
    keyed = list(key) if key else _key(name, before, after, common)
    if unknown := [column for column in keyed or () if column not in common]:
        raise LaminaError(
            f"{name} has no column {unknown[0]} on both sides",
            evidence=f"columns of both: {', '.join(common) or 'none'}",
            way_out="Name some of these with --key, or none.",
        )
    sides = _sides(name, preview, common, *types)
    by = None if keyed is None else [_column_name(common.index(column)) for column in keyed]
    if by is not None and _has_repeats(connection, sides, by):
        if key:
            raise LaminaError(
                f"Several rows of {name} have the same {', '.join(key)}",
                evidence="a key must have each value once on each side",
                way_out="Name more columns with --key, or none to compare whole rows.",
            )
        keyed = by = None
    tolerant = [all(side[column] in _DOUBLES for side in types) for column in common]
    groups = _by_row(sides, len(common)) if by is None else _by_key(sides, by, tolerant)
    counted = run(connection, f"{groups} {_counts(common if keyed is not None else [])}").mappings().one()
    differing = _columns(types[0], types[1], dict(counted) if keyed is not None else {}, common)
    examples = _examples(connection, groups) if counted["apart"] else []
    numbers = {name: int(counted[name]) for name in _COUNTED}
    return Difference(name, preview, keyed, **numbers, columns=differing, examples=examples)


_COUNTED = ("rows_here", "rows_there", "only_here", "only_there", "same", "differing")


def _check_served(connection: Connection, name: str, preview: str, after: Catalog) -> None:
    served = views.served_views(connection)
    if name not in after.views or name not in served:
        both = [view for view in after.views if view in served]
        where = "analytics" if name in after.views else f"the preview {preview}" if name in served else "either"
        raise LaminaError(
            f"There is nothing to compare: {name} is not in {where}",
            evidence=f"in both: {', '.join(both) or 'none'}; previews: {', '.join(lookup.preview_names(connection))}",
            way_out="Name a view that both have.",
        )


def _types(connection: Connection, schema: str, name: str) -> dict[str, str]:
    """The columns of a view, and their types without precision."""
    query = text(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        " WHERE attrelid = to_regclass(:view) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    view = f"{quoted(schema)}.{quoted(name)}"
    return {row[0]: row[1] for row in connection.execute(query, {"view": view})}


def _key(name: str, before: Catalog, after: Catalog, common: Sequence[str]) -> list[str] | None:
    """The columns by which the rows of both sides are matched: a table's key, or the columns without aggregates."""
    keys = [_key_of(name, catalog) for catalog in (before, after)]
    if None in keys or any(column not in common for key in keys for column in key or ()) or keys[0] != keys[1]:
        return None
    return keys[0]


def _key_of(name: str, catalog: Catalog) -> list[str] | None:
    if (source := catalog.sources.get(name)) is not None:
        return sorted(source.unique)
    view = catalog.views[name]
    return sorted(group_columns(view)) if any(column.aggregates for column in view.lineage) else None


def _sides(name: str, preview: str, common: Sequence[str], old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Both views as one relation: the shared columns by number, and each row as JSON."""
    selects = []
    for schema, side in (("analytics", "old"), (preview, "new")):
        listed = [f"{_comparable(c, old[c], new[c])} AS {_column_name(n)}" for n, c in enumerate(common)]
        columns = ", ".join([*listed, 'to_jsonb(shown) AS "Row"', f"'{side}' AS {_SIDE}"])
        selects.append(f"SELECT {columns} FROM {quoted(schema)}.{quoted(name)} AS shown")
    return " UNION ALL ".join(selects)


_SIDE = '"Side"'


def _column_name(number: int) -> str:
    return f'"Column_{number}"'


def _comparable(column: str, old: str, new: str) -> str:
    """A shared column as it is compared. If its types differ, as a number if both are numeric, else as text."""
    if old == new or (old in _DOUBLES and new in _DOUBLES):
        return quoted(column)
    return f"{quoted(column)}::{'numeric' if old in _NUMBERS and new in _NUMBERS else 'text'}"


def _has_repeats(connection: Connection, sides: str, by: Sequence[str]) -> bool:
    twice = f"SELECT FROM ({sides}) AS sides GROUP BY {', '.join([*by, _SIDE])} HAVING count(*) > 1"
    return bool(run(connection, f"SELECT EXISTS ({twice})").scalar_one())


def _by_key(sides: str, by: Sequence[str], tolerant: Sequence[bool]) -> str:
    """A group per key: the rows of each side, their number, and True for each column that differs.

    tolerant: for each column, True if it holds doubles, whose last digits depend on the order of sums
    """
    flags = [f"{differs(_column_name(n), '', tolerant=ok)} AS {_flag(n)}" for n, ok in enumerate(tolerant)]
    either = " OR ".join(_flag(number) for number in range(len(flags))) or "false"
    columns = ", ".join([*_COUNTS, *_ROWS, *flags])
    grouped = f"SELECT {columns} FROM sides GROUP BY {', '.join(by) or '()'} HAVING count(*) > 0"
    compared = f'SELECT *, new_count = 1 AND old_count = 1 AND ({either}) AS "Differs" FROM ({grouped}) AS grouped'
    return f"WITH sides AS ({sides}), groups AS ({compared})"


def _by_row(sides: str, columns: int) -> str:
    """A group per distinct row, with its number on each side."""
    by = ", ".join(_column_name(number) for number in range(columns)) or _SIDE
    grouped = f'SELECT {", ".join([*_COUNTS, *_ROWS])}, false AS "Differs" FROM sides GROUP BY {by}'
    return f"WITH sides AS ({sides}), groups AS ({grouped})"


_COUNTS = (
    f"count(*) FILTER (WHERE {_SIDE} = 'old') AS old_count",
    f"count(*) FILTER (WHERE {_SIDE} = 'new') AS new_count",
)
_ROWS = tuple(f'(array_agg("Row") FILTER (WHERE {_SIDE} = \'{side}\'))[1] AS "Row_{side}"' for side in ("old", "new"))


def _flag(number: int) -> str:
    return f'"Differs_{number}"'


def _counts(columns: Sequence[str]) -> str:
    """The number of rows of each kind, and for each column the number of pairs of rows in which it differs."""
    by_column = [
        f"count(*) FILTER (WHERE new_count = 1 AND old_count = 1 AND {_flag(i)}) AS {_flag(i)}"
        for i in range(len(columns))
    ]
    named = {
        "rows_here": "coalesce(sum(old_count), 0)",
        "rows_there": "coalesce(sum(new_count), 0)",
        "only_here": "coalesce(sum(greatest(old_count - new_count, 0)), 0)",
        "only_there": "coalesce(sum(greatest(new_count - old_count, 0)), 0)",
        "same": 'coalesce(sum(least(new_count, old_count)) FILTER (WHERE NOT "Differs"), 0)',
        "differing": 'count(*) FILTER (WHERE "Differs")',
        "apart": 'count(*) FILTER (WHERE "Differs" OR new_count <> old_count)',
    }
    listed = [*(f"{value} AS {name}" for name, value in named.items()), *by_column]
    return f"SELECT {', '.join(listed)} FROM groups"


def _columns(
    old: Mapping[str, str], new: Mapping[str, str], counted: Mapping[str, Any], common: Sequence[str]
) -> list[ColumnDifference]:
    differing = []
    for column in {**old, **new}:
        both = column in common
        rows = int(counted[f"Differs_{common.index(column)}"]) if both and counted else None
        if not both or old[column] != new[column] or rows:
            differing.append(ColumnDifference(column, old.get(column), new.get(column), rows))
    return differing


def _examples(connection: Connection, groups: str) -> list[Example]:
    """Pairs that differ first, then rows that one side lacks."""
    first = f'WHERE "Differs" OR new_count <> old_count ORDER BY "Differs" DESC LIMIT {EXAMPLES}'
    rows = run(
        connection, f'{groups} SELECT new_count, old_count, "Differs", "Row_old", "Row_new" FROM groups {first}'
    ).mappings()
    return [
        Example(
            row["Row_old"] if row["Differs"] or row["old_count"] > row["new_count"] else None,
            row["Row_new"] if row["Differs"] or row["new_count"] > row["old_count"] else None,
        )
        for row in rows
    ]
