"""Columns of a view that may be outside of the years 1 to 9999, which many clients of Postgres cannot read.

Only infinities may be, and times inside nested values of other views: functions make NULL of any other. They are
computed with as they are, and NULL in what a view shows; in the author's SELECT that `lamina check` runs, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from view_algebra.language.expressions import (
    Cells,
    Combined,
    Expr,
    Field,
    Nested,
    Query,
    Read,
    Relation,
    Select,
    Subquery,
)
from view_algebra.language.quoting import postgres_name, spark_name
from view_algebra.language.relations import relations_in
from view_algebra.language.types import CALENDAR, FIRST_TIME, LAST_TIME
from view_algebra.language.walks import walk

_IN_POSTGRES = {
    "TIMESTAMP": (f"timestamptz '{FIRST_TIME}+00'", f"timestamptz '{LAST_TIME}+00'"),
    "TIMESTAMP_NTZ": (f"timestamp '{FIRST_TIME}'", f"timestamp '{LAST_TIME}'"),
    "DATE": ("date '0001-01-01'", "date '9999-12-31'"),
}


Given = Sequence[tuple[str, tuple[str, str] | None]]
"""Columns, and, of those with times, the first and the last that are shown."""


def in_postgres(final: str, query: Query, typed: Query, keys: Collection[str]) -> str:
    """The text of a view in Postgres, with NULL for what its clients cannot read; `keys` are those of its groups.

    A key of cells is found by index, which no expression of it is. So those that can be read stay as they are, and the
    others, which are few, are rows of their own.
    """
    leaving = _leaving(query) | _endless(typed)
    given = [(postgres_name(name), _IN_POSTGRES.get(kind.name)) for name, kind in query.columns]
    indexed = sorted(leaving & _keys_of_cells(query, keys))[:1]
    if not indexed:
        return _shown(final, given, leaving) if leaving else final
    name, years = given[indexed[0]]
    assert years is not None
    within = f"shown.{name} BETWEEN {years[0]} AND {years[1]}"
    readable = f"{_shown(final, given, leaving.difference(indexed))}\nWHERE {within}"
    without = [(each, None if number in indexed else of) for number, (each, of) in enumerate(given)]
    kind = query.columns[indexed[0]][1].postgres
    others = _shown(final, without, leaving, {name: f"NULL::{kind} AS {name}"})
    return f"{readable}\nUNION ALL\n{others}\nWHERE ({within}) IS NOT TRUE"


def in_spark(select: str, query: Query) -> str:
    """The author's SELECT with NULL for the same."""
    leaving = _leaving(query) | _endless(query)
    given = [(spark_name(name), CALENDAR.get(kind.name)) for name, kind in query.columns]
    named = f" ({', '.join(name for name, _ in given)})"
    return _shown(select, given, leaving) + named if leaving else select


def _keys_of_cells(query: Query, keys: Collection[str]) -> frozenset[int]:
    """The numbers of the columns that are keys of cells as they are, of rows that come in any order."""
    if not isinstance(query, Select) or query.order or query.distinct or query.limit is not None:
        return frozenset()
    if not isinstance(query.relation, Cells):
        return frozenset()
    columns = ((n, output.expression) for n, output in enumerate(query.outputs))
    return frozenset(n for n, column in columns if isinstance(column, Field) and column.path[0] in keys)


def _shown(text: str, given: Given, leaving: Collection[int], instead: Mapping[str, str] = MappingProxyType({})) -> str:
    columns = ((name, years if n in leaving else None) for n, (name, years) in enumerate(given))
    joined = ",\n  ".join(instead.get(name) or _column(name, years) for name, years in columns)
    return f"SELECT\n  {joined}\nFROM (\n{text}\n) AS shown"


def _column(name: str, years: tuple[str, str] | None) -> str:
    return name if years is None else f"CASE WHEN {name} BETWEEN {years[0]} AND {years[1]} THEN {name} END AS {name}"


def _leaving(query: Query) -> frozenset[int]:
    """The numbers of the columns that may be outside."""
    if isinstance(query, Combined):
        return _leaving(query.left) | _leaving(query.right)
    return frozenset(number for number, output in enumerate(query.outputs) if _may_leave(output.expression, query))


def _endless(query: Query) -> frozenset[int]:
    """The numbers of the columns that may be infinities."""
    return frozenset(number for number, (_, kind) in enumerate(query.columns) if kind.endless)


def _may_leave(expression: Expr, query: Select) -> bool:
    return expression.type.name in CALENDAR and any(_leaves(part, query.relation) for part in walk(expression))


def _leaves(part: Expr, relation: Relation | None) -> bool:
    match part:
        case Subquery():
            return bool(_leaving(part.query))
        case Field():
            return _given(part, relation)
    return False


def _given(column: Field, relation: Relation | None) -> bool:
    """Does a subquery in FROM give the column, and may it be outside?"""
    for each in relations_in(relation):
        if isinstance(each, Nested) and each.alias == column.relation:
            names = [name.lower() for name, _ in each.query.columns]
            return any(names[number] == column.path[0].lower() for number in _leaving(each.query))
        if isinstance(each, Read) and each.alias == column.relation and len(column.path) > 1:
            return True  # inside a nested value of a view, which is shown as it is
    return False
