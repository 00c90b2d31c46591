"""One Spark per run, and a session of it per test: its own views, its own settings, its own master log.

Starting Spark takes seconds and a further session milliseconds. A session has its own catalogs, so `lamina.<table>` is
in the test's own database and warehouse.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lamina.spark.spark_session
from lamina.configuration.settings import Settings
from lamina.services.jars import jar_files
from speed_layer.plans import INTERPRETED
from tests.fix_services import Services, quick_java
from tests.lent_spark import remember_java_names, sibling


@pytest.fixture(scope="session")
def spark_of_run(services: Services, run_home: Path) -> Iterator[SparkSession]:
    """The run's only Spark. Tests take a session of it, `spark`."""
    settings = Settings(
        postgres=services.addresses.postgres,
        analyst=services.addresses.analyst,
        kafka=services.addresses.kafka,
        warehouse=str(run_home / "warehouse"),
        spark_master="local[2]",
        home=run_home,
        embedded=True,
        spark_jars=tuple(map(str, jar_files(run_home, "s3"))),
    )
    remember_java_names()
    # What a query leaves behind is garbage at once. A heap that grows is collected as a whole each time.
    seldom_collected = ("-Xmn600m", "-Xms2048m")
    options = (*quick_java(run_home, "spark"), *seldom_collected)
    spark = lamina.spark.spark_session.session(settings, "tests", java_options=options)
    yield spark
    spark.stop()


@contextmanager
def session_of(spark_of_run: SparkSession, settings: Settings) -> Iterator[SparkSession]:
    """A Spark session whose catalog `lamina` is in the database and warehouse of `settings`."""
    session = sibling(spark_of_run, settings)
    for key, value in INTERPRETED.items():  # the laws, and commands with a JVM of their own, have code made
        session.conf.set(key, value)
    yield session
    for query in session.streams.active:
        query.stop()


@pytest.fixture
def spark(spark_of_run: SparkSession, settings: Settings) -> Iterator[SparkSession]:
    """A session of Spark over the test's own database and warehouse."""
    with session_of(spark_of_run, settings) as session:
        yield session
