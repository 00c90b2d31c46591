"""`make setup` runs this once: it fetches the jars, and records one short run of both services and Spark.

Java keeps the classes of that run in an archive, and a later JVM that uses it starts in half the time. The run also
shows that everything works on this machine before anybody waits for it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from lamina.configuration.settings import Settings
from lamina.services.embedded import EmbeddedServices
from lamina.services.jars import resolve
from lamina.services.java import archive, make_base_archive, recording_options
from lamina.services.own_processes import locked
from lamina.spark.spark_session import end_in_order, forget, session
from master_log.kafka.brokers import Brokers
from master_log.reading.kafka_reader import KAFKA_READER

EXIT_SECONDS = 180.0
"""Seconds for writing Spark's archive of 200 MB. It takes ten on an idle core."""


def prepare(home: Path, *others: str) -> None:
    """Completes the jars and the archives under `home`. Does nothing if they are complete.

    `others` are groups of jars that not everybody needs, such as the client of S3. Raises LaminaError if the jars
    cannot be fetched or a service does not start.
    """
    home = home.absolute()
    resolve(home, groups=("spark", "kafka", *others))
    if archive(home, "kafka").exists() and archive(home, "spark").exists():
        return
    with locked(home / "prepare.lock", patience=EXIT_SECONDS):
        for left in home.glob("prepare-*"):  # by a killed process
            EmbeddedServices(left).stop()
            shutil.rmtree(left)
        with tempfile.TemporaryDirectory(prefix="prepare-", dir=home) as folder:
            _record(home, Path(folder))


def _record(home: Path, trial: Path) -> None:
    (trial / "jars").symlink_to(home / "jars")
    make_base_archive(home)
    drafts = {group: trial / f"{group}.jsa" for group in ("kafka", "spark")}
    recording = {group: tuple(recording_options(home, draft)) for group, draft in drafts.items()}
    embedded = EmbeddedServices(trial, kafka_jvm_options=recording["kafka"])
    try:
        addresses = embedded.start()
        settings = Settings.read(trial, {"LAMINA_HOME": str(trial), "LAMINA_SPARK_MASTER": "local[2]"})
        spark = session(settings, "prepare", java_options=recording["spark"])
        _exercise(spark, addresses.kafka, trial)
        gateway = SparkContext._gateway  # noqa: SLF001 - PySpark does not publish its process
        spark.stop()
        end_in_order(gateway, EXIT_SECONDS)  # the JVM writes its archive as it exits
        forget()
    finally:
        embedded.stop()
    for group, draft in drafts.items():
        draft.touch()  # empty if this Java writes no archive: everything works without one, but more slowly
        draft.chmod(0o644)
        draft.replace(archive(home, group))


def _exercise(spark: SparkSession, kafka: str, trial: Path) -> None:
    """Runs a little of everything that is used daily: records are read, parsed and aggregated, a stream, an append to
    the log.
    """
    with Brokers(kafka) as brokers:
        brokers.create("prepare", partitions=2)
        with brokers.producer() as producer:
            for number in range(20):
                producer.send("prepare", b'{"k": "a", "n": %d}' % number, partition=number % 2)

    def aggregate(records: DataFrame, _: int = 0) -> None:
        parsed = "from_json(string(value), 'k STRING, n DECIMAL(12, 2)') AS r"
        cells = records.selectExpr("offset", "timestamp", parsed).where("r.n > 1").groupBy("r.k", "timestamp")
        cells.agg({"r.n": "sum", "offset": "max"}).collect()

    options = {**KAFKA_READER, "kafka.bootstrap.servers": kafka, "subscribe": "prepare", "startingOffsets": "earliest"}
    records = spark.read.format("kafka").options(**options).load()
    aggregate(records)
    stream = spark.readStream.format("kafka").options(**options).load().writeStream.foreachBatch(aggregate)
    stream.option("checkpointLocation", str(trial / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
    spark.sql("CREATE NAMESPACE lamina.prepare")
    records.drop("timestampType").writeTo("lamina.prepare.log").using("iceberg").create()
    aggregate(spark.table("lamina.prepare.log"))
    records.drop("timestampType").writeTo("lamina.prepare.log").append()
    spark.range(3).toPandas()


if __name__ == "__main__":
    from view_algebra.errors import LaminaError

    try:
        prepare(Path(sys.argv[1]), *sys.argv[2:])
    except LaminaError as error:
        sys.exit(f"{error}")
