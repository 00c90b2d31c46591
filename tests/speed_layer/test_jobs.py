"""A task is overdue by what it computes: a machine that is busy with other things makes no record an endless one."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from speed_layer.jobs import STARVED, Jobs

SECONDS = 6.0
SLEEPS = f"reflect('java.lang.Thread', 'sleep', CAST({int((SECONDS + 2) * 1000)} + id AS BIGINT))"


def test_a_task_that_gets_no_processor_is_not_overdue(spark: SparkSession) -> None:
    jobs = Jobs(spark)

    def run() -> None:
        with jobs.counted():
            spark.range(0, 1, 1, 1).selectExpr(SLEEPS).write.format("noop").mode("overwrite").save()

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run)
        while jobs.seconds < SECONDS + 0.5:
            time.sleep(0.1)
        assert not running.done()
        assert not jobs.run_longer_than(SECONDS), "it slept"
        assert jobs.run_longer_than(SECONDS / STARVED / 100), "its planning took more of the processor than that"
        running.result()
