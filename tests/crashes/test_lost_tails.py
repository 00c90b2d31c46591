"""Kafka loses the end of a log, as in a power cut, and reuses the offsets. No view counts both records."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from pyspark.sql import SparkSession

from lamina.configuration.settings import Settings
from lamina.operations import installation, topic_records
from lamina.operations.deployment import Deployment
from lamina.reports.statuses import read_status
from lamina.services import kafka_broker
from lamina.services.jars import jar_files
from lamina.services.java import java_home
from lamina.services.own_processes import port_is_free
from master_log.kafka.tails import HEADER
from serving_layer.promise.skipping import SKIPPED
from speed_layer.continuity import CannotContinue
from tests.fix_catalogs import EVENTS
from tests.fix_lamina import Deployed
from tests.fix_services import new_home, quick_java, remove_home
from tests.lent_spark import sibling
from view_algebra.errors import LaminaError

TOTALS = "CREATE VIEW totals AS SELECT count(*) AS events, sum(n) AS n FROM events;"

ROWS = "CREATE VIEW numbers AS SELECT n, kafka_offset AS at FROM events;"


@dataclasses.dataclass
class OwnBroker:
    """The test's own broker. Its log can be cut while the broker is down."""

    home: Path
    running: kafka_broker.Broker | None = None

    def start(self) -> str:
        java = java_home(self.home)
        options = quick_java(self.home, "kafka")
        ports = (self.running.port, self.running.controller_port) if self.running else None
        files = jar_files(self.home, "kafka")
        self.running = kafka_broker.start(
            self.home, java=java, jars=files, settings={}, jvm_options=options, ports=ports
        )
        return self.running.address

    def lose(self, topic: str, end: int) -> None:
        """Kills the broker, removes the batches from `end` on from partition 0, and restarts the broker."""
        assert self.running is not None
        self.running.process.stop((signal.SIGKILL, 30.0))
        folder = self.home / "kafka" / "data"
        [segment] = (folder / f"{topic}-0").glob("*.log")
        data, at = segment.read_bytes(), 0
        while HEADER.unpack_from(data, at)[0] < end:
            at += 12 + HEADER.unpack_from(data, at)[1]
        assert HEADER.unpack_from(data, at)[0] == end, "a batch begins there"
        with segment.open("r+b") as file:
            file.truncate(at)
        # A power cut loses the newest checkpoints, which the broker writes at intervals.
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            (folder / name).unlink(missing_ok=True)
        while not port_is_free(self.running.port):  # a killed JVM releases its port a moment later
            time.sleep(0.02)
        self.start()


@pytest.fixture
def broker() -> Iterator[OwnBroker]:
    own = OwnBroker(new_home("tails"))
    yield own
    if own.running:
        own.running.process.stop((signal.SIGKILL, 30.0))
    remove_home(own.home)


@pytest.fixture
def fragile(broker: OwnBroker, settings: Settings, spark_of_run: SparkSession) -> Iterator[Deployed]:
    """A deployment over a broker that loses records."""
    settings = dataclasses.replace(settings, kafka=broker.start())
    deployment = Deployment(settings, lent=sibling(spark_of_run, settings))
    installation.install(deployment)
    deployed = Deployed(deployment, None)
    deployment.brokers.create(f"{deployed.prefix}_events", 1)
    deployed.apply(events=EVENTS, totals=TOTALS, numbers=ROWS)
    yield deployed
    deployment.close()


BAD_RECORDS = "SELECT error, records FROM lamina.bad_records"


def send(deployed: Deployed, numbers: range) -> None:
    """Sends records in batches of ten."""
    for start in range(numbers.start, numbers.stop, 10):
        with deployed.deployment.brokers.producer() as producer:
            for n in range(start, min(start + 10, numbers.stop)):
                producer.send(deployed.topic("events"), json.dumps({"n": n}).encode(), partition=0)


def compacted(deployed: Deployed, topic: str, policy: str) -> None:
    """Changes whether Kafka compacts a topic, which moves no partition's end."""
    brokers = deployed.deployment.brokers
    admin = KafkaAdminClient(bootstrap_servers=brokers.bootstrap_servers)
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"cleanup.policy": policy})])
    admin.close()
    deployed.until(lambda: brokers.retention(topic).compacted == (policy == "compact"), f"{topic}: {policy}")


def refused(what: Callable[[], object], match: str) -> LaminaError:
    with pytest.raises(LaminaError, match=match) as raised:
        what()
    return raised.value


def totals(deployed: Deployed) -> tuple[int, int]:
    [(events, n)] = deployed.rows("SELECT events, n FROM totals")
    return events, n


def test_lost_records_are_never_counted_together_with_those_that_reuse_their_offsets(
    fragile: Deployed, broker: OwnBroker
) -> None:
    for lose in (lose_counted_records, lose_archived_records, lose_a_skipped_record, lose_records_next_to_skipped_ones):
        lose(fragile, broker)
        fragile.check()


def lose_counted_records(fragile: Deployed, broker: OwnBroker) -> None:
    """The log holds 50 records, and 100 are counted. Kafka loses 10 of these, and 20 others reuse their offsets."""
    deployment, batch, topic = fragile.deployment, fragile.deployment.batch, fragile.topic("events")
    send(fragile, range(50))
    fragile.catch_up()
    batch.rebuild()
    send(fragile, range(50, 100))
    fragile.catch_up()
    broker.lose(topic, 90)
    send(fragile, range(1000, 1020))
    error = refused(fragile.catch_up, "Kafka has lost records of .* that were counted")
    assert isinstance(error, CannotContinue)
    evidence = (
        r"Partition 0, below offset 100: expected offsets \d+ to 99 \(epoch 0, .*; found offsets \d+ to \d+ \(epoch 2,"
    )
    assert re.search(evidence, error.evidence)
    assert totals(fragile) == (100, sum(range(100)))
    [alarm] = read_status(deployment).alarms
    assert "events: Kafka has lost records" in alarm
    assert "lamina rebuild --leap" in alarm
    assert "--leap" in refused(batch.rebuild, "has lost records of .* that were counted").way_out
    batch.rebuild(leap=True)
    assert totals(fragile) == (110, sum(range(90)) + sum(range(1000, 1020)))
    moved = fragile.owner("SELECT count(*) FROM lamina.history WHERE query IS NOT NULL")
    assert moved == [(0,)], "the history up to 100 was of other records"
    assert read_status(deployment).alarms == []
    send(fragile, range(1020, 1030))
    fragile.catch_up()
    assert totals(fragile)[0] == 120


def lose_archived_records(fragile: Deployed, broker: OwnBroker) -> None:
    """The log holds all records, and Kafka loses some. Their offsets are the log's until Kafka reuses them."""
    deployment, batch, topic = fragile.deployment, fragile.deployment.batch, fragile.topic("events")
    source = deployment.deployed().sources["events"]
    batch.logs.archive(source, deployment.brokers.latest(topic))
    broker.lose(topic, 110)
    refused(fragile.catch_up, "found the end of the topic at 110")
    compacted(fragile, topic, "compact")
    refused(fragile.catch_up, "found the end of the topic at 110")
    compacted(fragile, topic, "delete")
    send(fragile, range(2000, 2005))
    for attempt in (
        lambda: batch.logs.archive(source, deployment.brokers.latest(topic)),
        lambda: batch.rebuild(leap=True),
    ):
        assert "--accept-loss" in refused(attempt, "has lost records of .* that the master log holds").way_out
    lines: list[str] = []
    dataclasses.replace(batch.logs, tell=lines.append).archive(
        source, deployment.brokers.latest(topic), accept_loss=True
    )
    line = rf"other records from {topic} 0:110 to {topic} 0:120 than the log\. .* tag replaced_\d+"
    assert re.search(line, "\n".join(lines)), lines
    batch.rebuild(leap=True)
    assert totals(fragile) == (115, sum(range(90)) + sum(range(1000, 1020)) + sum(range(2000, 2005)))
    fragile.check()
    refs = deployment.spark().sql(f"SELECT name FROM lamina.log.`{topic}`.refs WHERE type = 'TAG'").collect()
    assert [ref.name.startswith("replaced_") for ref in refs] == [True], "a tag keeps the removed records"


def lose_a_skipped_record(fragile: Deployed, broker: OwnBroker) -> None:
    """A skip applies to the named record only. No counted record is lost here: another record reuses offset 120."""
    deployment, topic = fragile.deployment, fragile.topic("events")
    source = deployment.deployed().sources["events"]
    send(fragile, range(2100, 2110))
    assert topic_records.skip(deployment, source, 0, 120, "no view can count it")
    assert fragile.rows(BAD_RECORDS) == [(SKIPPED, 1)]
    broker.lose(topic, 115)
    send(fragile, range(3000, 3010))
    fragile.catch_up()
    assert totals(fragile)[0] == 125, "the record that now has the offset is counted"
    assert fragile.rows(BAD_RECORDS) == []
    assert {query.skipped for query in read_status(deployment).queries} == {0}


def lose_records_next_to_skipped_ones(fragile: Deployed, broker: OwnBroker) -> None:
    """The log may hold a record that is skipped later, and its neighbors. It is cut back only to Kafka's loss."""
    deployment, batch, topic = fragile.deployment, fragile.deployment.batch, fragile.topic("events")
    source = deployment.deployed().sources["events"]
    send(fragile, range(4000, 4010))
    send(fragile, range(4010, 4020))
    batch.logs.archive(source, deployment.brokers.latest(topic))
    assert topic_records.skip(deployment, source, 0, 127, "before the loss")
    assert topic_records.skip(deployment, source, 0, 137, "lost")
    broker.lose(topic, 135)
    send(fragile, range(5000, 5020))
    batch.logs.archive(source, deployment.brokers.latest(topic), accept_loss=True)
    fragile.catch_up()
    assert totals(fragile)[0] == 125 + 9 + 20
    batch.rebuild(leap=True)
    assert totals(fragile)[0] == 125 + 9 + 20
    assert fragile.rows(BAD_RECORDS) == [(SKIPPED, 1)]


def test_records_read_ahead_and_lost_before_their_micro_batch_are_not_counted(
    fragile: Deployed, broker: OwnBroker
) -> None:
    deployment, topic, followed = fragile.deployment, fragile.topic("events"), 0

    def lose(place: str) -> None:
        nonlocal followed
        followed += place == "before a micro-batch"
        if followed == 2 and place == "before a micro-batch":
            # The first micro-batch read 100 records and counted 50. The second is planned when others replace the rest.
            broker.lose(topic, 60)
            send(fragile, range(1000, 1040))

    send(fragile, range(100))
    deployment.at = lose
    with fragile.speed(max_records=50):
        fragile.wait_for("events")
    assert followed >= 2
    assert fragile.rows("SELECT events, n FROM totals") == [(100, sum(range(60)) + sum(range(1000, 1040)))]
    fragile.check()
