"""The two engines that run the laws: the Spark of the whole run, and an empty database per module."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest
from pyspark.sql import SparkSession

from tests.fix_services import Databases
from tests.laws.engines import Engines

OF_QUERIES = {"test_joins", "test_newest", "test_tables"}
"""Laws for which Spark interprets its plans, as for a small micro-batch. For the others, which are about functions and
values, it compiles code, as for a large one. That takes four times as long.
"""


@pytest.fixture(scope="module")
def engines(spark_of_run: SparkSession, databases: Databases, request: pytest.FixtureRequest) -> Iterator[Engines]:
    """Spark and Postgres with the schemas that the texts name."""
    connection = psycopg2.connect(databases())
    both = Engines(spark_of_run.newSession(), connection, compiling=request.path.stem not in OF_QUERIES)
    both.prepare()
    yield both
    connection.close()
