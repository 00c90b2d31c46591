"""The two engines: a quick session of the Spark of the whole run, and an empty database per module."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest
from pyspark.sql import SparkSession

from tests.fix_services import Databases
from tests.fuzz.rounds import session
from tests.laws.engines import Engines


@pytest.fixture(scope="module")
def engines(spark_of_run: SparkSession, databases: Databases) -> Iterator[Engines]:
    """Spark and Postgres with the schemas that the texts name."""
    connection = psycopg2.connect(databases())
    both = Engines(session(spark_of_run), connection, compiling=False)
    both.prepare()
    yield both
    connection.close()
