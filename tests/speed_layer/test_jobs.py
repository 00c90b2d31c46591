"""Only a computing task becomes overdue, so no record looks endless on a busy machine."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from speed_layer.jobs import Jobs

SECONDS = 6.0
BRIEFLY = 0.1
"""Ten times this has passed before the question, so processor time does not matter."""
MILLISECONDS = int((SECONDS + 60) * 1000)
SLEEPS = f"reflect('java.lang.Thread', 'sleep', CAST({MILLISECONDS} + id AS BIGINT))"


def test_a_starved_task_is_not_overdue(spark: SparkSession) -> None:
    def compute(expression: str) -> None:
        spark.range(0, 1, 1, 1).selectExpr(expression).write.format("noop").mode("overwrite").save()

    compute(SLEEPS.replace(f"{MILLISECONDS} +", ""))  # the first statement of a Spark takes seconds of the processor
    jobs = Jobs(spark)

    def run() -> None:
        with jobs.group():
            compute(SLEEPS)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run)
        while not jobs.run_longer_than(BRIEFLY):
            assert not running.done()
            time.sleep(0.05)
        time.sleep(SECONDS)
        assert not jobs.run_longer_than(SECONDS), "it slept"
        assert not running.done()
        jobs.cancel()
        assert running.exception() is not None
