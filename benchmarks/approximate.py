"""Error of approx_count_distinct: many sets of known size, counted with the number of registers that views keep."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path

import click
from pyspark.sql import SparkSession

from benchmarks.figures import Figure, benchmark
from lamina.services.java import java_home
from lamina.terminal.render import Output
from view_algebra.language.aggregates import DEFAULT_REGISTERS
from view_algebra.typed.aggregation.estimates import estimate

AT_MOST = 0.033
SIZES = (10, 100, 1_000, 3_000, 5_000, 10_000, 100_000, 1_000_000)


@click.command()
@click.option("--sets", default=40, show_default=True, help="Number of sets of each size.")
@benchmark
def main(output: Output, sets: int) -> list[Figure]:
    """The error of HyperLogLog: the root of the mean square, relative to the size."""
    os.environ["JAVA_HOME"] = str(java_home(Path(tempfile.gettempdir())))
    spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    figures = []
    for size in SIZES:
        tried = max(3, min(sets, 4_000_000 // size))
        spark.range(size * tried).selectExpr(f"id DIV {size} AS k", "concat('v', id) AS v").createOrReplaceTempView("s")
        counted = spark.sql(f"SELECT {estimate('v', 'true', DEFAULT_REGISTERS)} AS n FROM s GROUP BY k").collect()
        error = math.sqrt(sum((row.n / size - 1) ** 2 for row in counted) / len(counted))
        figures.append(Figure(f"{size:,} values, {tried} sets", error, "", at_most=AT_MOST))
        output.tell(f"{size:,}: {error:.4f}")
    spark.stop()
    return [Figure("registers, so cells per group at most", DEFAULT_REGISTERS, ""), *figures]


if __name__ == "__main__":
    main()
