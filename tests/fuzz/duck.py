"""Answers the fuzzer's views in DuckDB, if DuckDB and Spark give the SELECT one meaning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
from pyspark.sql import SparkSession
from sqlglot import exp

from lamina.testing.duckdb_queries import translate, translated_view, with_wall_clocks
from tests.laws.engines import Row
from view_algebra import View

EXTREMES = (b"NaN", b"Infinity", str(2**63 - 1).encode())
"""Values of records at which sums and orders differ."""


TABLES = """
CREATE TABLE r AS SELECT * EXCLUDE nth FROM (
  SELECT *, row_number() OVER (PARTITION BY id ORDER BY kafka_timestamp, kafka_partition, kafka_offset) AS nth
  FROM copies_r
) WHERE nth = 1 OR id IS NULL;
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
  SELECT *,
    row_number() OVER (
      PARTITION BY k, kind
      ORDER BY coalesce(kafka_source_time, kafka_log_time) DESC, kafka_partition DESC, kafka_offset DESC
    ) AS nth,
    first_value(kafka_tombstone) OVER (
      PARTITION BY k, kind ORDER BY kafka_log_time DESC, kafka_partition DESC, kafka_offset DESC
    ) AS ends_deleted
  FROM (
    SELECT k, kind, label, ok, kafka_deleted, kafka_tombstone, kafka_source_time, kafka_log_time, kafka_partition,
      kafka_offset
    FROM changes_d
    UNION ALL
    SELECT kafka_moved_from.k, kafka_moved_from.kind, NULL, NULL, true, false, kafka_source_time, kafka_log_time,
      kafka_partition, kafka_offset
    FROM changes_d WHERE kafka_moved_from IS NOT NULL
  )
) WHERE nth = 1 AND NOT kafka_deleted AND NOT ends_deleted;
"""
"""The current rows of `r`, the tables of `joins.SOURCES`, and the versions of `t`, from their records."""


@dataclass
class Duck:
    """DuckDB with the records of one round, and the number of views that it answered in all rounds."""

    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    answered: int = 0

    def fill(self, spark: SparkSession, values: Sequence[bytes | None]) -> bool:
        """Takes the good records of `s` from Spark. Returns False, without asking DuckDB, if they have extremes."""
        if any(extreme in value for value in values if value is not None for extreme in EXTREMES):
            return False
        self.connection = duckdb.connect()
        self.connection.execute("SET ieee_floating_point_ops = false")  # x / 0 is NULL
        self._take(spark, "s", "s")
        return True

    def _take(self, spark: SparkSession, name: str, records: str) -> None:
        self.connection.register("arrow", with_wall_clocks(spark.table(f"`{records}`").toArrow()))
        self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
        self.connection.unregister("arrow")

    def fill_others(self, spark: SparkSession) -> None:
        """Takes the good records of the sources that `s` is joined with, and makes their tables and versions.

        DuckDB computes both itself: the newest row by row_number(), the versions by ASOF JOIN.
        """
        for name, records in (
            ("copies_r", "copies of r"),
            ("changes_t", "changes of t"),
            ("changes_d", "changes of d"),
        ):
            self._take(spark, name, records)
        self.connection.execute(TABLES)

    def answer(self, view: View) -> list[Row] | None:
        """DuckDB's rows of a view, or None if it cannot translate or run the SELECT. Views may read earlier views.

        NaN becomes NULL: DuckDB has it for statistics of too few rows, for which Spark has NULL.
        """
        if view.name in ("t", "d"):
            return [tuple(row) for row in self.connection.execute(f"SELECT * FROM {view.name}").fetchall()]
        select = as_of(view.select) if "SYSTEM_TIME" in view.select else translate(view.spelled)
        if select is None or (translated := translated_view(view, select)) is None:
            return None
        try:
            self.connection.execute(translated)
            rows = self.connection.execute(f"SELECT * FROM {view.name}").fetchall()
        except duckdb.Error:
            return None
        self.answered += 1
        return [tuple(None if value != value else value for value in row) for row in rows]


def as_of(select: str) -> str | None:
    """A SELECT with DuckDB's own ASOF JOIN of the versions. If the newest version was deleted, no row is joined.

    None for a SELECT with RIGHT or FULL JOIN: WHERE drops deleted versions, and would also drop the rows of the right
    side that have no version.
    """
    if re.search(r"\b(RIGHT|FULL) (OUTER )?JOIN\b", select):
        return None
    written = r"JOIN t FOR SYSTEM_TIME AS OF (\S+) AS (\w) ON \w\.k = (\S+)"
    plain = re.sub(written, r"JOIN versions_t AS \2 ON \2.key = \3 AND \2.since <= \1", select)
    translated = translate(plain, _dropping_deleted)
    return translated and re.sub(r'(LEFT )?JOIN "versions_t"', r'ASOF \1JOIN "versions_t"', translated)


def _dropping_deleted(select: exp.Select) -> None:
    for join in select.args.get("joins") or ():
        if join.this.name == "versions_t" and not join.side:
            select.where(f"{join.this.alias}.is_there", copy=False)
