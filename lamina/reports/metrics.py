"""`lamina metrics`: the numbers of `serving_layer.monitoring.metric_table` for Prometheus, and those of the brokers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from lamina import __version__
from lamina.operations.deployment import Deployment
from lamina.reports.statuses import LITTLE_ROOM, free_bytes
from master_log.kafka.brokers import Brokers
from master_log.offsets import TopicPartition
from serving_layer.monitoring.metric_table import METRICS, Alert, Metric, MetricSample, read
from serving_layer.postgres.database import PostgresError, is_unavailable
from serving_layer.promise import progress
from view_algebra.errors import LaminaError

UP = (
    Metric(
        "lamina_postgres_up",
        "1 if the serving database answers.",
        alert=Alert(
            "LaminaPostgresDown",
            "lamina_postgres_up == 0",
            "Start Postgres. Nothing is lost.",
            summary="Postgres does not answer.",
            lasts="1m",
        ),
    ),
    Metric(
        "lamina_kafka_up",
        "1 if the brokers answer.",
        alert=Alert(
            "LaminaKafkaDown",
            "lamina_kafka_up == 0",
            "Start the brokers. Nothing is lost.",
            summary="The brokers do not answer.",
            lasts="1m",
        ),
    ),
    Metric(
        "lamina_disk_free_bytes",
        "Bytes that are free for LAMINA_HOME and for the warehouse, if these are folders of this machine.",
        ("folder",),
        alert=Alert(
            "LaminaDiskFull",
            f"lamina_disk_free_bytes < {LITTLE_ROOM}",
            "Make room on the disk of that folder before nothing can be written.",
        ),
    ),
    Metric("lamina_build_info", "1, with the versions that run.", ("version", "spark")),
)
"""Metrics that have a sample even if every service is down."""

EVERY = (*UP, *METRICS)


@dataclass(frozen=True, eq=False)
class MetricCollector(Collector):
    """Collects the numbers of a deployment at each request. Threads may share it."""

    deployment: Deployment

    def collect(self) -> Iterator[Family]:
        """A family per metric, with or without samples."""
        samples = list(self.samples())
        for metric in EVERY:
            family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            named = family(metric.name.removesuffix("_total"), metric.help, labels=metric.labels)
            for sample in samples:
                if sample.metric == metric.name:
                    named.add_metric(sample.labels, sample.value)
            yield named

    def samples(self) -> Iterator[MetricSample]:
        """The current samples. If Postgres or Kafka does not answer, its `…_up` is 0.

        The metrics that only Kafka knows then have no samples. Without Postgres, only `UP` has samples.
        """
        yield MetricSample("lamina_build_info", (__version__, version("pyspark")), 1)
        for folder, free in free_bytes(self.deployment).items():
            yield MetricSample("lamina_disk_free_bytes", (folder,), free)
        brokers = self.deployment.brokers
        answers = brokers.listening()
        yield MetricSample("lamina_kafka_up", (), float(answers))
        try:
            with self.deployment.database.snapshot() as connection:
                samples = list(read(connection))
                topics = {name: query.topic for name, query in progress.queries(connection).items()}
        except (PostgresError, LaminaError) as error:
            if not is_unavailable(error):
                raise
            yield MetricSample("lamina_postgres_up", (), 0)
            return
        yield MetricSample("lamina_postgres_up", (), 1)
        yield from samples
        for source, topic in topics.items() if answers else ():
            with suppress(LaminaError):  # the source's topic is gone, or Kafka went down meanwhile
                yield from _broker_samples(brokers, source, topic, samples)


def _broker_samples(
    brokers: Brokers, source: str, topic: str, samples: Sequence[MetricSample]
) -> Iterator[MetricSample]:
    """The lag of a source behind the end of its topic, and the number of archived records that Kafka still holds.

    `samples` are those from Postgres, with the counted and archived offsets.
    """
    ends, earliest = brokers.latest(topic), brokers.earliest(topic)
    unarchived = {sample.labels: sample.value for sample in samples if sample.metric == "lamina_archive_lag_offsets"}
    for sample in samples:
        if sample.metric != "lamina_source_next_offset" or sample.labels[0] != source:
            continue
        at = TopicPartition(topic, int(sample.labels[1]))
        yield MetricSample(
            "lamina_source_lag_offsets", sample.labels, max(0, ends.get(at, sample.value) - sample.value)
        )
        if at in earliest:
            headroom = sample.value - unarchived[sample.labels] - earliest[at]
            yield MetricSample("lamina_archive_headroom_offsets", sample.labels, headroom)


def labels_of(name: str) -> tuple[str, ...]:
    """The names of a metric's labels."""
    return next(metric.labels for metric in EVERY if metric.name == name)


def registry(deployment: Deployment) -> CollectorRegistry:
    """The registry that Prometheus' client writes out or serves."""
    collectors = CollectorRegistry(auto_describe=False)
    collectors.register(MetricCollector(deployment))
    return collectors
