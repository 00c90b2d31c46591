"""A second engine that knows nothing of ours: DuckDB, of the views for which both mean the same.

A view is translated by sqlglot from plain Spark SQL, and asked only where everything in it is known to be alike; where
numbers are extreme the two differ by design (DuckDB raises where Spark wraps around, and has decimals of its own).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from tests.laws.engines import Row
from view_algebra import View
from view_algebra.language.quoting import words

EXTREMES = (b"NaN", b"Infinity", str(2**63 - 1).encode())
"""Values of records at which sums and orders differ."""

CLOSE = 1e-4
"""Numbers that are no integers may differ by so much: an average of decimals is a decimal in Spark, here a double."""

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
"""What means the same in both, as long as numbers are small.

A CAST does of a literal alone; `count_if` of nothing is NULL in DuckDB.
"""


TABLES = """
CREATE TABLE t AS SELECT k, kind, label, rank, "at" FROM (
  SELECT *, row_number() OVER (
    PARTITION BY k ORDER BY coalesce("at", kafka_timestamp) DESC, kafka_partition DESC, kafka_offset DESC
  ) AS nth FROM changes_t
) WHERE nth = 1 AND NOT kafka_deleted;
CREATE TABLE versions_t AS SELECT k AS key, since, NOT kafka_deleted AS is_there,
  CASE WHEN NOT kafka_deleted THEN k END AS k, CASE WHEN NOT kafka_deleted THEN kind END AS kind,
  CASE WHEN NOT kafka_deleted THEN label END AS label, CASE WHEN NOT kafka_deleted THEN rank END AS rank,
  CASE WHEN NOT kafka_deleted THEN "at" END AS "at"
FROM (
  SELECT *, coalesce("at", kafka_timestamp) AS since, row_number() OVER (
    PARTITION BY k, coalesce("at", kafka_timestamp) ORDER BY kafka_partition DESC, kafka_offset DESC
  ) AS nth FROM changes_t
) WHERE nth = 1;
CREATE TABLE d AS SELECT k, kind, label, ok FROM (
  SELECT *, row_number() OVER (
    PARTITION BY k, kind ORDER BY kafka_timestamp DESC, kafka_partition DESC, kafka_offset DESC
  ) AS nth FROM (
    SELECT k, kind, label, ok, kafka_deleted, kafka_timestamp, kafka_partition, kafka_offset FROM changes_d
    UNION ALL
    SELECT kafka_moved_from.k, kafka_moved_from.kind, NULL, NULL, true, kafka_timestamp, kafka_partition, kafka_offset
    FROM changes_d WHERE kafka_moved_from IS NOT NULL
  )
) WHERE nth = 1 AND NOT kafka_deleted;
"""
"""The tables of `joins.SOURCES`, and the versions of `t`, from their records."""


@dataclass
class Duck:
    """A DuckDB of the records of one round, and how many views were answered in all rounds."""

    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    answered: int = 0

    def fill(self, spark: SparkSession, values: Sequence[bytes | None]) -> bool:
        """Takes the good records of `s` from Spark; False where they have extremes and nothing is to be asked."""
        if any(extreme in value for value in values if value is not None for extreme in EXTREMES):
            return False
        self.connection = duckdb.connect()
        self.connection.execute("SET ieee_floating_point_ops = false")  # x / 0 is NULL
        self._take(spark, "s", "s")
        return True

    def _take(self, spark: SparkSession, name: str, records: str) -> None:
        table = spark.table(f"`{records}`").toArrow()
        for place, column in enumerate(table.schema):
            if pa.types.is_timestamp(column.type):  # instants as UTC's wall clock
                table = table.set_column(place, column.name, table.column(place).cast(pa.timestamp("us")))
        self.connection.register("arrow", table)
        self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
        self.connection.unregister("arrow")

    def fill_others(self, spark: SparkSession) -> None:
        """Takes the good records of the sources that `s` is joined with, and makes tables and their versions of them.

        Of its own: newest by a row number, versions by ASOF JOIN.
        """
        for name, records in (("r", "r"), ("changes_t", "changes of t"), ("changes_d", "changes of d")):
            self._take(spark, name, records)
        self.connection.execute(TABLES)

    def answer(self, view: View) -> list[Row] | None:
        """DuckDB's rows of a view, or None where it is not asked or fails; views may read those before them.

        Its NaN is a statistic of too few rows, which is NULL in Spark.
        """
        if view.name in ("t", "d"):
            return [tuple(row) for row in self.connection.execute(f"SELECT * FROM {view.name}").fetchall()]
        translated = as_of(view.select) if "SYSTEM_TIME" in view.select else translate(view.spelled)
        if translated is None or any(column.spark.startswith(("STRUCT", "ARRAY", "MAP")) for column in view.columns):
            return None
        names = ", ".join(f'"{column.name}"' for column in view.columns)
        try:
            self.connection.execute(f"CREATE VIEW {view.name} ({names}) AS {translated}")
            rows = self.connection.execute(f"SELECT * FROM {view.name}").fetchall()
        except duckdb.Error:
            return None
        self.answered += 1
        return [tuple(None if value != value else value for value in row) for row in rows]


def as_of(select: str) -> str | None:
    """A SELECT with DuckDB's own ASOF JOIN of the versions; where the newest one was deleted, no row is joined."""
    written = r"JOIN t FOR SYSTEM_TIME AS OF (\S+) AS (\w) ON \w\.k = (\S+)"
    plain = re.sub(written, r"JOIN versions_t AS \2 ON \2.key = \3 AND \2.since <= \1", select)
    translated = translate(plain, dropping_deleted=True)
    return translated and re.sub(r'(LEFT )?JOIN "versions_t"', r'ASOF \1JOIN "versions_t"', translated)


def translate(select: str, *, dropping_deleted: bool = False) -> str | None:
    """A SELECT in DuckDB's SQL, or None where something in it is not known to be alike."""
    try:
        tree = parse_one(re.sub(r"\bwindow\(", "`window`(", select), dialect="spark")
    except SqlglotError:
        return None
    for each in list(tree.find_all(exp.Select)):
        _bucket(each)
        for join in each.args.get("joins") or () if dropping_deleted else ():
            if join.this.name == "versions_t" and not join.side:
                each.where(f"{join.this.alias}.is_there", copy=False)
    if not all(_alike(node) for node in tree.walk()):
        return None
    return tree.sql(dialect="duckdb", identify=True)


def _bucket(select: exp.Select) -> None:
    """Writes a tumbling window as its start, which tells it from others, and its end as what follows from that."""
    group = select.args.get("group")
    calls = [call for call in (group.expressions if group else ()) if isinstance(call, exp.Anonymous)]
    if [call.name for call in calls] != ["window"] or len(calls[0].expressions) != 2:
        return
    time, size = (each.sql("spark") for each in calls[0].expressions)
    select.where(f"{time} IS NOT NULL", copy=False, dialect="duckdb")  # which is in no window
    start = parse_one(f"time_bucket(INTERVAL {size}, {time})", dialect="duckdb")
    end = parse_one(f"time_bucket(INTERVAL {size}, {time}) + INTERVAL {size}", dialect="duckdb")
    calls[0].replace(start.copy())
    for column in list(select.find_all(exp.Column)):
        if column.table == "window" and column.parent_select is select:
            column.replace({"start": start, "end": exp.paren(end)}[column.name].copy())


def _alike(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name in ("mean", "time_bucket")
    if isinstance(node, exp.Lateral):
        return not node.args.get("outer")
    if isinstance(node, exp.Cast):
        whole = node.to.is_type(*exp.DataType.INTEGER_TYPES)  # to which DuckDB rounds
        return isinstance(node.this, (exp.Literal, exp.Neg)) and not (whole and "." in node.this.sql())
    return isinstance(node, PLAIN)


def agree(expected: Sequence[Row], found: Sequence[Row]) -> bool:
    """Equal rows, where numbers that are no integers are near each other."""
    return len(expected) == len(found) and all(
        _near(x, y) for a, b in zip(_ordered(expected), _ordered(found), strict=True) for x, y in zip(a, b, strict=True)
    )


def _ordered(rows: Sequence[Row]) -> list[list[Any]]:
    told = [[_told(value) for value in row] for row in rows]
    return sorted(told, key=lambda row: [(v is None, f"{v:.2f}" if isinstance(v, float) else str(v)) for v in row])


def _told(value: Any) -> Any:
    """A value as both give it: a time as text, any number that is no integer as a double."""
    if isinstance(value, datetime):
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
