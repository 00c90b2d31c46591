"""DuckDB as a second, independent engine for the views on which it agrees with Spark.

sqlglot translates a view from plain Spark SQL. DuckDB is asked only if every part of the view is known to mean the same
in both engines. On extreme numbers the two differ by design: DuckDB raises an error where Spark wraps around, and it
has its own decimals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from typing import cast as typed

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from batch_layer.comparison import Row
from view_algebra.compiled import View
from view_algebra.language.quoting import words

CLOSE = 1e-4
"""Largest difference between two numbers that are not integers. An average of decimals is a decimal in Spark and a
double here.
"""

PLAIN: tuple[type[exp.Expr], ...] = tuple(
    getattr(exp, name)
    for name in words(
        "Select From Where Group Having Order Ordered Limit Offset With CTE Subquery TableAlias Table Column "
        "Identifier Alias Star Paren Literal Boolean Null Interval Var DataType DataTypeParam Join Union Except "
        "Intersect Tuple Window WindowSpec Filter Distinct WithinGroup Case If And Or Not "
        "EQ NEQ LT LTE GT GTE NullSafeEQ NullSafeNEQ Is In Between Like Exists Coalesce Nullif Add Sub Mul Neg "
        "Length Count Sum Avg Min Max LogicalOr LogicalAnd BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg "
        "StddevSamp Stddev StddevPop Variance VariancePop CovarSamp CovarPop "
        "Grouping RowNumber Rank DenseRank PercentRank CumeDist Ntile Lag Lead FirstValue LastValue NthValue Year "
        "Month Upper Lower DateBin Bracket RegrAvgx RegrAvgy RegrSxx RegrSyy RegrSxy RegrSlope "
        "RegrIntercept RegrR2 Corr Greatest Least Nvl2 DPipe Abs Mod Ceil Floor Div Sign Explode RegexpSplit"
    )
)
"""Nodes that mean the same in both engines as long as numbers are small.

A CAST means the same only for a literal. `count_if` without rows is NULL in DuckDB.
"""


BITS = {exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32, exp.DType.BIGINT: 64}
"""Widths of Spark's integer types."""


def answers(records: Mapping[str, pa.Table], views: Iterable[View]) -> dict[str, list[Row]]:
    """DuckDB's rows of the views that it can compute. `views` lists each view after the views that it reads. `records`
    are by name.

    A statistic of too few rows is NaN in DuckDB and NULL in Spark. Raises ImportError if DuckDB is not installed.
    """
    import duckdb

    rows_by_view: dict[str, list[Row]] = {}
    with duckdb.connect() as connection:
        connection.execute("SET ieee_floating_point_ops = false")  # x / 0 is NULL
        for name, table in records.items():
            connection.from_arrow(with_wall_clocks(table)).create(f'"{name}"')
        for view in views:
            if (translated := translated_view(view)) is not None:
                try:
                    connection.execute(translated)
                    rows = connection.execute(f'SELECT * FROM "{view.name}"').fetchall()
                except duckdb.Error:
                    continue
                rows_by_view[view.name] = [tuple(None if value != value else value for value in row) for row in rows]
    return rows_by_view


def with_wall_clocks(table: pa.Table) -> pa.Table:
    """Records with their instants as UTC's wall clock."""
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(place, column.name, table.column(place).cast(pa.timestamp("us")))
    return table


def translated_view(view: View, select: str | None = None) -> str | None:
    """A view in DuckDB's SQL, or None if a part of it may differ. `select` replaces its SELECT."""
    translated = translate(view.spelled) if select is None else select
    unlike = ("STRUCT", "ARRAY", "MAP", "INTERVAL")  # a difference of two days is a number in DuckDB
    if translated is None or any(column.spark.startswith(unlike) for column in view.columns):
        return None
    names = ", ".join(f'"{column.name}"' for column in view.columns)
    return f'CREATE VIEW "{view.name}" ({names}) AS {translated}'


def translate(select: str, edit: Callable[[exp.Select], None] = lambda select: None) -> str | None:
    """A SELECT in DuckDB's SQL, or None if a part of it may differ. `edit` changes every SELECT in it."""
    try:
        tree = parse_one(re.sub(r"(?i)\bwindow\(", "`window`(", select), dialect="spark")
    except (SqlglotError, RecursionError):
        return None
    tree = tree.transform(_unguarded)
    for block in list(tree.find_all(exp.Select)):
        _bucket(block)
        edit(block)
    if not all(_alike(node) for node in tree.walk()):
        return None
    return tree.sql(dialect="duckdb", identify=True)


def _unguarded(node: exp.Expr) -> exp.Expr:
    """A time without the guard that makes it NULL outside the calendar. The records given to DuckDB have no such times.

    >>> guarded = "CASE WHEN t BETWEEN TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59' THEN t END"
    >>> parse_one(guarded, dialect="spark").transform(_unguarded).sql()
    't'
    """
    if not isinstance(node, exp.Case) or len(node.args["ifs"]) != 1 or node.args.get("default"):
        return node
    within, time = node.args["ifs"][0].this, node.args["ifs"][0].args["true"]
    if not isinstance(within, exp.Between) or within.this != time or "0001-01-01" not in within.args["low"].sql():
        return node
    return typed("exp.Expr", time.transform(_unguarded))


def _bucket(select: exp.Select) -> None:
    """Writes a tumbling window as its start, which identifies it. Its end follows from that."""
    group = select.args.get("group")
    calls = [call for call in (group.expressions if group else ()) if isinstance(call, exp.Anonymous)]
    if [call.name for call in calls] != ["window"] or len(calls[0].expressions) != 2:
        return
    time, size = (argument.sql("spark") for argument in calls[0].expressions)
    select.where(f"{time} IS NOT NULL", copy=False, dialect="duckdb")  # a record without a time is in no window
    start = parse_one(f"time_bucket(INTERVAL {size}, {time})", dialect="duckdb")
    end = parse_one(f"time_bucket(INTERVAL {size}, {time}) + INTERVAL {size}", dialect="duckdb")
    grouped = calls[0].sql("spark")
    calls[0].replace(start.copy())
    for field in list(select.find_all(exp.Dot, exp.Column)):
        of_window = field.table == "window" if isinstance(field, exp.Column) else field.this.sql("spark") == grouped
        if of_window and field.parent_select is select:
            field.replace({"start": start, "end": exp.paren(end)}[field.name].copy())


def _alike(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name in ("mean", "time_bucket")
    if isinstance(node, exp.Lateral):
        return not node.args.get("outer")
    if isinstance(node, exp.Cast):
        whole = node.to.is_type(*exp.DataType.INTEGER_TYPES)
        return isinstance(node.this, (exp.Literal, exp.Neg)) and (not whole or _fits(node))
    return isinstance(node, PLAIN)


def _fits(cast: exp.Cast) -> bool:
    """True if a literal fits the integer type of its cast. DuckDB rounds fractions, and has NULL above the largest."""
    text = cast.this.sql().strip("'")
    bits = BITS.get(cast.to.this)
    return bits is not None and bool(re.fullmatch(r"-?\d+", text)) and -(1 << bits - 1) <= int(text) < 1 << bits - 1


def agree(expected: Sequence[Row], actual: Sequence[Row]) -> bool:
    """True if the rows are equal, up to `CLOSE` for numbers that are not integers."""
    return len(expected) == len(actual) and all(
        _near(x, y)
        for a, b in zip(_ordered(expected), _ordered(actual), strict=True)
        for x, y in zip(a, b, strict=True)
    )


def differing(expected: Sequence[Row], actual: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Missing rows (only in `expected`) and surplus rows (only in `actual`). Both are empty if the rows agree."""
    if agree(expected, actual):
        return [], []
    sides = [[tuple(map(_comparable, row)) for row in rows] for rows in (expected, actual)]
    missing = [row for row, comparable in zip(expected, sides[0], strict=True) if comparable not in sides[1]]
    surplus = [row for row, comparable in zip(actual, sides[1], strict=True) if comparable not in sides[0]]
    return (missing, surplus) if missing or surplus else (list(expected), list(actual))


def _ordered(rows: Sequence[Row]) -> list[list[Any]]:
    comparable = [[_comparable(value) for value in row] for row in rows]
    return sorted(
        comparable, key=lambda row: [(v is None, f"{v:.2f}" if isinstance(v, float) else str(v)) for v in row]
    )


def _comparable(value: Any) -> Any:
    """A value in the form that both engines share: a time as text, a number as a double."""
    if isinstance(value, datetime):
        value = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return value.isoformat(" ", "microseconds")
    if isinstance(value, date):
        return f"{value} 00:00:00.000000"
    if isinstance(value, (Decimal, float)):
        return float(value) + 0.0  # -0.0 is 0.0
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else value


def _near(x: Any, y: Any) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        return (math.isnan(x) and math.isnan(y)) or math.isclose(x, y, rel_tol=1e-9, abs_tol=CLOSE)
    return bool(x == y)
