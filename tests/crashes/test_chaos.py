"""Faults of eleven kinds, one after the other, while readers compare every view with DuckDB (benchmarks/chaos)."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.chaos.__main__ import last_rebuild_and_check
from benchmarks.chaos.faults.service_faults import kill
from benchmarks.chaos.hostile import HOSTILE
from benchmarks.chaos.readers import Readers, ReadSnapshot
from benchmarks.chaos.stage import Stage, environment
from benchmarks.chaos.storm import Storm
from benchmarks.chaos.table import FAULTS
from benchmarks.chaos.world import SentRecord, World
from benchmarks.running import another_database
from lamina.configuration.settings import Settings
from lamina.operations.deployment import Deployment
from lamina.services.embedded import EmbeddedServices
from tests.fix_catalogs import EVENTS, TOTALS, event
from tests.fix_lamina import PATIENCE, Deployed, one
from tests.fix_services import new_home, quick_java, remove_home
from tests.lent_spark import lent, sibling, taken_back

QUICK = (
    "hostile_records_of_every_kind",
    "speed_killed",
    "connections_ended",
    "kafka_killed",
    "checkpoint_corrupted",
    "partition_added",
    "reader_holds_a_transaction",
    "postgres_killed",
    "transaction_left_open",
    "backend_stopped",
    "database_dumped",
)
"""Faults that start no Spark."""


@pytest.fixture(scope="module")
def apart() -> Iterator[EmbeddedServices]:
    """Services of their own, since other tests' services must not be stopped."""
    home = new_home("chaos")
    try:
        embedded = EmbeddedServices(home, kafka_jvm_options=quick_java(home, "kafka"))
        embedded.start()
        yield embedded
    finally:
        remove_home(home)


def test_every_snapshot_is_correct_during_faults(
    apart: EmbeddedServices, spark_of_run: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    there = _there(apart, settings)
    stage = Stage(
        there,
        World("chaos", seed=7),
        tmp_path,
        {**environment(there), **lent(spark_of_run)},
        services=apart,
        programs={"speed": (sys.executable, "-m", "tests.lent_spark", "speed")},
        pace=0.1,
    )
    storm = Storm(stage, seed=7)
    try:
        with storm.weather():
            storm.strike(iter([FAULTS[name] for name in QUICK]), lambda: False)
    finally:
        stage.close()
        taken_back(spark_of_run)
    assert [fault for fault in storm.struck if fault.failure] == []
    assert len(storm.struck) == len(QUICK)
    assert storm.readers.wrong == []
    assert storm.readers.snapshots > len(QUICK)
    deployment = Deployment(there, lent=sibling(spark_of_run, there))
    Deployed(deployment, None).check()
    deployment.close()


def test_a_starting_speed_layer_waits_for_kafka_and_a_stopping_one_not_for_postgres(
    apart: EmbeddedServices, spark_of_run: SparkSession, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    there = _there(apart, settings)
    opened = Deployment(there, lent=sibling(spark_of_run, there))
    with another_database(opened, "outage") as deployment:
        deployed = Deployed(deployment, None)
        deployed.apply(events=EVENTS, totals=TOTALS)
        _send(deployed, 500)
        with deployed.speed(max_records=10):
            deployed.until(lambda: any(deployed.progress("events").values()), "the replay has begun")
            kill(apart, "postgres")
            deployed.until(lambda: "is away" in caplog.text, "it waits")
            began = time.monotonic()
        assert time.monotonic() - began < 30
        apart.start()
        kill(apart, "kafka")
        starting = threading.Thread(target=deployed.catch_up)
        starting.start()
        deployed.until(lambda: "; waiting for it" in caplog.text, "it waits")
        apart.start()
        starting.join(PATIENCE)
        assert not starting.is_alive()
        assert one(deployed.rows("SELECT events FROM totals")) == (500,)
    opened.close()


def _there(apart: EmbeddedServices, settings: Settings) -> Settings:
    """The settings of the test with the addresses of these services."""
    addresses = apart.start()
    return replace(
        settings, postgres=addresses.postgres, analyst=addresses.analyst, kafka=addresses.kafka, home=apart.home
    )


def _send(deployed: Deployed, count: int) -> None:
    with deployed.deployment.brokers.producer() as producer:
        for number in range(count):
            producer.send(deployed.topic("events"), json.dumps(event(number)).encode())


def test_a_last_rebuild_that_is_killed_misses_its_bound(tmp_path: Path) -> None:
    programs = {"rebuild": ("sh", "-c", "kill -9 $$"), "check": ("true",)}
    nowhere = Settings("", None, "", "", "", tmp_path, embedded=True)
    rebuild, check = last_rebuild_and_check(Stage(nowhere, World("none", seed=1), tmp_path, {}, programs=programs))
    assert (rebuild.value, rebuild.missed, check.missed) == (9, True, False)


def test_a_snapshot_that_lacks_a_record_or_counts_it_twice_differs(tmp_path: Path) -> None:
    world = World("none", seed=1)
    nowhere = Settings("", None, "", "", "", tmp_path, embedded=True)
    readers = Readers(Stage(nowhere, world, tmp_path, {}))
    oracle = readers.stage.oracle
    oracle.declare(world.sources.values())
    for number in range(4):
        record = (
            HOSTILE["half an object"].record(number) if number == 3 else SentRecord(b"", {"kind": "gift", "n": number})
        )
        oracle.sent[str(number).encode()] = record
    oracle.take("orders", [(0, number, 0, str(number).encode()) for number in range(4)])

    def seen(orders: int, total: int | None, bad: int, declared: int = 3) -> list[str]:
        offsets = {("orders", 0): (0, 4)}
        shown = Counter([("gift", orders, total)])
        return readers.compare(
            ReadSnapshot(
                world.began,
                {"extra": shown},
                {"extra": 3},
                {"extra": declared},
                offsets,
                {"extra": offsets},
                {"extra": None},
                {"orders": bad},
            )
        )

    assert seen(3, 3, bad=1) == []
    assert seen(2, 1, bad=1) == ["extra: missing 1 rows, surplus 1"]
    assert seen(4, 5, bad=1) == ["extra: missing 1 rows, surplus 1"]
    assert seen(3, None, bad=1, declared=2) == [], "an older snapshot reads the older version"
    assert seen(3, 3, bad=1, declared=2) == ["extra: missing 1 rows, surplus 1"]
    assert seen(3, 3, bad=2) == ["orders: 1 bad records, 2 in quarantine"]
    assert len(readers.wrong) == 4
    assert json.loads(readers.wrong[0].read_text())["rows"]["extra"]["missing"] == [["gift", 3, 3]]
