"""Longest text that a thread's stack can bear if a regular expression recurses for every character."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from benchmarks.figures import Figure, benchmark
from lamina.services.java import java_home
from lamina.spark.spark_configuration import THREAD_STACK
from lamina.terminal.render import Output

AT_LEAST = 20_000
"""Characters."""


@click.command()
@benchmark
def main(output: Output) -> list[Figure]:
    """The length of a text that `(a|b)*`, which views may not have, matches before the stack ends."""
    os.environ["JAVA_HOME"] = str(java_home(Path(tempfile.gettempdir())))
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", THREAD_STACK)
    spark = builder.config("spark.executor.killOnFatalError.depth", "0").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    length = 1_000
    while _goes_through(spark, length * 5 // 4):
        length = length * 5 // 4
        output.tell(f"{length:,} characters")
    spark.stop()
    return [Figure(f"characters, with {THREAD_STACK}", length, "", at_least=AT_LEAST)]


def _goes_through(spark: SparkSession, length: int) -> bool:
    try:
        spark.sql(f"SELECT repeat('a', {length}) RLIKE concat('^(a|', char(98 + id), ')*$') FROM range(1)").collect()
    except Py4JJavaError:
        return False
    return True


if __name__ == "__main__":
    main()
