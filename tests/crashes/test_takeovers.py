"""A speed layer ends if its Spark stops or another takes over its queries. The next one loses no record."""

from __future__ import annotations

from pyspark.sql import SparkSession

from serving_layer.postgres.database import session_of
from serving_layer.promise import progress
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_lamina import CommandLine, Deployed, one, short_lived
from tests.fix_services import is_waited_for

SPARK_STOPS = """
import sys, threading, time
from pyspark import SparkContext
from pyspark.sql import SparkSession
from lamina.cli import main

def runs() -> bool:
    session = SparkSession._instantiatedSession
    return session is not None and not session._jsparkSession.sharedState().activeStreamingQueries().isEmpty()

def stop() -> None:  # as a master that removes the application does, or a person on Spark's page
    while not runs():
        time.sleep(0.1)
    SparkContext._active_spark_context._jsc.sc().stop()

threading.Thread(target=stop, daemon=True).start()
sys.argv[1:] = ["speed"]
main()
"""


def test_a_speed_layer_ends_with_its_spark_so_that_another_can_resume(deployed: Deployed, lamina: CommandLine) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    process = lamina.start_program("-c", SPARK_STOPS)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 1, stderr
    assert "Spark has stopped" in stderr
    assert "Start the speed layer again" in stderr
    deployed.send("events", event(1))
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (1,)


def test_a_second_speed_layer_takes_over_and_the_first_reports_it(deployed: Deployed, lamina: CommandLine) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    deployed.send("events", event(1))
    first = lamina.start("speed")
    deployed.wait_for("events")
    deployed.send("events", event(2))
    deployed.wait_for("events")
    deployed.catch_up()  # a second one, in this process
    deployed.send("events", event(3))
    _, stderr = first.communicate(timeout=300)
    assert first.returncode == 1
    assert "The query events was taken over" in stderr
    assert "StackOverflowError" not in stderr
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (3,)
    deployed.check()


def test_a_stopped_speed_layer_does_not_wait_for_a_lock(
    deployed: Deployed, lamina: CommandLine, spark: SparkSession
) -> None:
    deployed.apply(events=EVENTS, totals=TOTALS)
    database = deployed.deployment.database
    with short_lived(lamina, spark) as process:
        deployed.send("events", event(1))
        deployed.wait_for("events")
        with database.begin() as connection:
            progress.lock(connection, ["events"])
            deployed.send("events", event(2))
            deployed.until(lambda: is_waited_for(database, session_of(connection)), "the commit waits")
            process.terminate()
            _, stderr = process.communicate(timeout=60)
            assert process.returncode == 0, stderr
    deployed.catch_up()
    assert one(deployed.rows("SELECT events FROM totals")) == (2,)
