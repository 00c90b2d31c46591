"""NULL in place of times outside the years 1 to 9999, which many of Postgres' clients cannot read.

Only infinities, and times inside nested values of other views, may be outside: functions return NULL instead. Such
times are computed with unchanged, but are NULL in a view's rows and in the author's SELECT that `lamina check` runs.
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
from view_algebra.language.types import CALENDAR, FIRST_TIME, LAST_TIME
from view_algebra.language.walks import relations_in, walk

_IN_POSTGRES = {
    "TIMESTAMP": (f"timestamptz '{FIRST_TIME}+00'", f"timestamptz '{LAST_TIME}+00'"),
    "TIMESTAMP_NTZ": (f"timestamp '{FIRST_TIME}'", f"timestamp '{LAST_TIME}'"),
    "DATE": ("date '0001-01-01'", "date '9999-12-31'"),
}


ShownColumns = Sequence[tuple[str, tuple[str, str] | None]]
"""Columns, with the first and the last time shown for columns of times."""


def in_postgres(final: str, query: Query, typed: Query, keys: Collection[str]) -> str:
    """The text of a view in Postgres, with NULL for times that its clients cannot read. `keys`: keys of its groups.

    Readers find a cell by its key's index, which an expression over the key could not use. So readable keys stay
    unchanged, and the few others are separate rows.
    """
    leaving = _leaving(query) | _endless(typed)
    columns = [(postgres_name(name), _IN_POSTGRES.get(kind.name)) for name, kind in query.columns]
    indexed = sorted(leaving & _cell_keys(query, keys))[:1]
    if not indexed:
        return _shown(final, columns, leaving) if leaving else final
    name, years = columns[indexed[0]]
    assert years is not None
    within = f"shown.{name} BETWEEN {years[0]} AND {years[1]}"
    readable = f"{_shown(final, columns, leaving.difference(indexed))}\nWHERE {within}"
    without = [(column, None if number in indexed else of) for number, (column, of) in enumerate(columns)]
    kind = query.columns[indexed[0]][1].postgres
    others = _shown(final, without, leaving, {name: f"NULL::{kind} AS {name}"})
    return f"{readable}\nUNION ALL\n{others}\nWHERE ({within}) IS NOT TRUE"


def in_spark(select: str, query: Query) -> str:
    """The author's SELECT with NULL for the same times."""
    leaving = _leaving(query) | _endless(query)
    columns = [(spark_name(name), CALENDAR.get(kind.name)) for name, kind in query.columns]
    named = f" ({', '.join(name for name, _ in columns)})"
    return _shown(select, columns, leaving) + named if leaving else select


def _cell_keys(query: Query, keys: Collection[str]) -> frozenset[int]:
    """The numbers of the columns that are unchanged keys of cells, in a query without an order."""
    if not isinstance(query, Select) or query.order or query.distinct or query.limit is not None:
        return frozenset()
    if not isinstance(query.relation, Cells):
        return frozenset()
    columns = ((n, output.expression) for n, output in enumerate(query.outputs))
    return frozenset(n for n, column in columns if isinstance(column, Field) and column.path[0] in keys)


def _shown(
    text: str, shown: ShownColumns, leaving: Collection[int], instead: Mapping[str, str] = MappingProxyType({})
) -> str:
    columns = ((name, years if n in leaving else None) for n, (name, years) in enumerate(shown))
    joined = ",\n  ".join(instead.get(name) or _column(name, years) for name, years in columns)
    return f"SELECT\n  {joined}\nFROM (\n{text}\n) AS shown"


def _column(name: str, years: tuple[str, str] | None) -> str:
    return name if years is None else f"CASE WHEN {name} BETWEEN {years[0]} AND {years[1]} THEN {name} END AS {name}"


def _leaving(query: Query) -> frozenset[int]:
    """The numbers of the columns that may be outside the years."""
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
            return _comes_from_nested(part, relation)
    return False


def _comes_from_nested(column: Field, relation: Relation | None) -> bool:
    """True if the column may be outside because it comes from a subquery or a nested value."""
    for inner in relations_in(relation):
        if isinstance(inner, Nested) and inner.alias == column.relation:
            names = [name.lower() for name, _ in inner.query.columns]
            return any(names[number] == column.path[0].lower() for number in _leaving(inner.query))
        if isinstance(inner, Read) and inner.alias == column.relation and len(column.path) > 1:
            return True  # inside a nested value of a view, which is shown unchanged
    return False
