"""The cost of a single broker having a record on disk before it acknowledges the record.

Three brokers, one after another, get the same records: one leaves writing to the operating system, one flushes each
second, one flushes with every append. Each takes records as fast as it can, and then 2,000 a second.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import click
from kafka import KafkaProducer

from benchmarks.figures import Figure, benchmark, percentile
from benchmarks.running import REPOSITORY
from lamina.services import kafka_broker
from lamina.services.jars import jar_files
from lamina.services.java import java_home
from lamina.terminal.render import Output
from master_log.kafka.brokers import Brokers

NEVER = str(2**63 - 1)
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "left to the system": {"log.flush.interval.messages": NEVER},
    "each second": {
        "log.flush.interval.messages": NEVER,
        "log.flush.interval.ms": "1000",
        "log.flush.scheduler.interval.ms": "500",
    },
    "every append": {"log.flush.interval.messages": "1"},
}

RATE = 2_000
RECORD = b"x" * 150


@click.command()
@click.option("--records", default=500_000, show_default=True, help="Records sent as fast as the broker takes them.")
@click.option("--seconds", default=20, show_default=True, help="Seconds with 2,000 records each.")
@benchmark
def main(output: Output, records: int, seconds: int) -> list[Figure]:
    """The cost of flushing for a broker that holds the only copy."""
    figures = []
    for name, settings in SETTINGS.items():
        rate, waits = _measure(settings, records, seconds)
        figures += [
            Figure(f"{name}: taken", rate, "records/s"),
            Figure(f"{name}: until acknowledged, p50", 1000 * percentile(waits, 0.5), "ms"),
            Figure(f"{name}: until acknowledged, p99", 1000 * percentile(waits, 0.99), "ms"),
        ]
        output.tell(f"{name}: {rate:,.0f} records/s")
    return figures


def _measure(settings: Mapping[str, str], records: int, seconds: int) -> tuple[float, list[float]]:
    home = Path(tempfile.mkdtemp(prefix="lamina-flush-"))
    (home / "jars").symlink_to(REPOSITORY / ".lamina" / "jars")
    java = java_home(REPOSITORY / ".lamina")
    files = jar_files(REPOSITORY / ".lamina", "kafka")
    broker = kafka_broker.start(home, java=java, jars=files, settings=settings, jvm_options=(), ports=None)
    try:
        with Brokers(broker.address) as brokers:
            brokers.create("events", 4)
            _flood(brokers, records // 5)  # warms the broker
            began = time.monotonic()
            _flood(brokers, records)
            rate = records / (time.monotonic() - began)
        return rate, sorted(_paced(broker.address, seconds))
    finally:
        broker.process.stop((signal.SIGTERM, 30.0))
        shutil.rmtree(home, ignore_errors=True)


def _flood(brokers: Brokers, records: int) -> None:
    with brokers.producer() as producer:
        for number in range(records):
            producer.send("events", RECORD, partition=number % 4)


def _paced(address: str, seconds: int) -> list[float]:
    """The seconds that each record waited for its acknowledgement, at the rate."""
    producer = KafkaProducer(bootstrap_servers=address, acks="all", linger_ms=5)
    waits: list[float] = []

    def acknowledged(sent: float) -> None:
        waits.append(time.monotonic() - sent)

    began = time.monotonic()
    for number in range(seconds * RATE):
        due = began + number / RATE
        if (early := due - time.monotonic()) > 0:
            time.sleep(early)
        sent = time.monotonic()
        producer.send("events", RECORD, partition=number % 4).add_callback(lambda _, sent=sent: acknowledged(sent))
    producer.flush()
    producer.close()
    return waits


if __name__ == "__main__":
    main()
