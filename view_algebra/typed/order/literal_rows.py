"""Rows of literals: their values, and the columns that tell them apart.

VALUES, SELECT without FROM, and projections and UNION ALL of these have such rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from view_algebra.language.expressions import (
    Combined,
    Constant,
    Constants,
    Expr,
    Field,
    Nested,
    Query,
    Relation,
    Subquery,
    Windowed,
    bare_value,
)
from view_algebra.language.types import BIGINT, DATE, STRING, TIMESTAMP, Type
from view_algebra.language.walks import rewrite, walk

LiteralRows = tuple[tuple[Expr, ...], ...]


def rows_of(query: Query) -> LiteralRows | None:
    """The rows of a query as they are written in it, or None if it reads more than constants, or computes with columns.

    Computed columns are left alone, because Spark would give an expression of literals another type.
    """
    if query.limit is not None or query.offset is not None:
        return None
    if isinstance(query, Combined):
        left, right = rows_of(query.left), rows_of(query.right)
        return None if left is None or right is None or query.operator != "UNION ALL" else left + right
    below = rows_read(query.relation)
    outputs = [output.expression for output in query.outputs]
    plain = query.where is None and query.group is None and query.having is None and not query.distinct
    if below is None or not plain or not all(map(_is_plain, outputs)):
        return None
    return tuple(tuple(rewrite(value, lambda part, row=row: row.get(part)) for value in outputs) for row in below)  # type: ignore[misc]


def _is_plain(value: Expr) -> bool:
    value = bare_value(value)
    computed = not isinstance(value, Field) and any(
        isinstance(part, (Field, Windowed, Subquery)) for part in walk(value)
    )
    return not computed and not value.type.nested


def rows_read(relation: Relation | None) -> list[Mapping[Expr, Expr]] | None:
    """The rows that FROM reads, each by its columns."""
    if relation is None:
        return [{}]
    rows = relation.rows if isinstance(relation, Constants) else None
    if isinstance(relation, Nested):
        rows = rows_of(relation.query)
    if rows is None:
        return None
    assert isinstance(relation, (Constants, Nested))
    fields = [Field(relation.alias, (name,), kind) for name, kind in columns_read(relation)]
    return [dict(zip(fields, row, strict=True)) for row in rows]


def columns_read(relation: Constants | Nested) -> tuple[tuple[str, Type], ...]:
    """The columns of VALUES or of a subquery."""
    return relation.columns if isinstance(relation, Constants) else relation.query.columns


def distinct_columns(rows: LiteralRows) -> list[int]:
    """The positions of the columns in which all values differ."""
    columns = [[_bare(value) for value in column] for column in zip(*rows, strict=True)]
    return [number for number, column in enumerate(columns) if _all_differ(column)]


def unique_together(rows: LiteralRows) -> list[list[int]]:
    """The positions of columns whose literals tell the rows apart: each that does alone, else all together."""
    if single := distinct_columns(rows):
        return [[number] for number in single]
    columns = {number: [_bare(value) for value in column] for number, column in enumerate(zip(*rows, strict=True))}
    different = {number: column for number, column in columns.items() if None not in column and len({*column}) > 1}
    return [[*different]] if len({*zip(*different.values(), strict=True)}) == len(rows) else []


def _all_differ(column: Sequence[Constant | None]) -> bool:
    kinds = {value and value.type for value in column}
    return None not in column and len(kinds) == 1 and len({*column}) == len(column)


def _bare(value: Expr) -> Constant | None:
    """A literal in a form in which equal values have equal texts, or None if the value or its type has no such form."""
    value = bare_value(value)
    if not isinstance(value, Constant) or not (value.type.integral or value.type in (STRING, DATE, TIMESTAMP)):
        return None
    text = value.value
    if value.value is not None and value.type.integral:
        text = str(int(value.value))
    elif value.value is not None and value.type == TIMESTAMP:
        text = str(datetime.fromisoformat(value.value))
    return replace(value, value=text, type=BIGINT if value.type.integral else value.type, place=None)
