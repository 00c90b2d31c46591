"""Postgres and Kafka go away and come back: the speed layer waits, says so, and loses nothing."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

import lamina.spark
from lamina.deployment import Deployment
from lamina.services.embedded import Embedded
from lamina.settings import Settings
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_lamina import Deployed, one
from tests.fix_services import new_home, remove_home


@pytest.mark.parametrize("service", ["postgres", "kafka"])
def test_a_service_that_is_restarted_in_mid_replay_changes_nothing(
    service: str, spark_of_run: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Services of the test's own: nobody else's may be stopped."""
    home = new_home("outage")
    try:
        embedded = Embedded(home)
        addresses = embedded.start()
        settings = Settings(
            postgres=addresses.postgres,
            analyst=addresses.analyst,
            kafka=addresses.kafka,
            warehouse=str(tmp_path / "warehouse"),
            spark_master="local[2]",
            home=home,
            catalog=None,
            embedded=True,
        )
        deployment = Deployment(settings, lent=lamina.spark.sibling(spark_of_run, settings))
        deployment.install()
        deployed = Deployed(deployment, None)
        deployed.apply(events=EVENTS, totals=TOTALS)
        with deployed.speed(max_records=500):
            _send(deployed, 0, 5_000)
            deployed.until(lambda: any(deployed.progress("events").values()), "the replay has begun")
            _kill(embedded, service)
            again = embedded.start()
            assert (again.postgres, again.kafka) == (addresses.postgres, addresses.kafka)
            _send(deployed, 5_000, 6_000)
            deployed.wait_for("events")
        reached = deployed.progress("events")
        assert one(deployed.rows("SELECT events FROM totals")) == (6_000,)
        deployed.check()
        if service == "postgres":  # which a speed layer that is stopped does not wait for
            with deployed.speed(max_records=10):
                _send(deployed, 6_000, 6_500)
                deployed.until(lambda: deployed.progress("events") != reached, "it commits")
                caplog.clear()
                _kill(embedded, service)
                deployed.until(lambda: "is away" in caplog.text, "it waits")
                began = time.monotonic()
            assert time.monotonic() - began < 30
        deployment.close()
    finally:
        remove_home(home)


def _send(deployed: Deployed, start: int, end: int) -> None:
    import json

    topic = deployed.topic("events")
    with deployed.deployment.brokers.producer() as producer:
        for number in range(start, end):
            producer.send(topic, json.dumps(event(number)).encode())


def _kill(embedded: Embedded, service: str) -> None:
    import os
    import signal

    [found] = [each for each in embedded.status() if each.name == service]
    assert found.pid is not None
    os.kill(found.pid, signal.SIGKILL)
    # Only then is its port free, so that it comes back where its clients look for it.
    psutil.Process(found.pid).wait(30)
