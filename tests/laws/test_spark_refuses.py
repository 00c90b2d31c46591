"""Spark refuses the SELECTs of `spark_refuses.sql`, except those that the cases call answered."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.algebra.spark_cases import CASES


@pytest.fixture(scope="module")
def session(spark_of_run: SparkSession) -> SparkSession:
    quick = spark_of_run.newSession()
    quick.sql(
        "SELECT * FROM VALUES ('a', 1, 2, array('x'), TIMESTAMP '2024-01-01 00:00:00') AS s(k, n, day, tags, ts)"
    ).createOrReplaceTempView("s")
    quick.sql("SELECT k, n, count(*) AS c FROM s GROUP BY k, n").createOrReplaceTempView("t")
    return quick


REFUSED = [(what, select) for _, answered, what, select in CASES if not answered]
ANSWERED = [(what, select) for _, answered, what, select in CASES if answered]


@pytest.mark.parametrize(("what", "select"), REFUSED, ids=[what for what, _ in REFUSED])
def test_spark_refuses_a_select_that_the_compiler_refuses_for_it(session: SparkSession, what: str, select: str) -> None:
    with pytest.raises((PySparkException, Py4JError)):
        session.sql(select).collect()


@pytest.mark.parametrize(("what", "select"), ANSWERED, ids=[what for what, _ in ANSWERED])
def test_spark_answers_the_selects_that_the_cases_call_answered(session: SparkSession, what: str, select: str) -> None:
    session.sql(select).collect()
