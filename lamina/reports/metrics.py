"""`lamina metrics`: the numbers of `serving_layer.monitoring.metric_table` for Prometheus, and those of the brokers.

`python -m lamina.reports.metrics` writes the alert rules and the Grafana board from the same list. docs/metrics.md has
its table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

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
            "1m",
            "Start Postgres. Nothing is lost.",
            "Postgres does not answer.",
        ),
    ),
    Metric(
        "lamina_kafka_up",
        "1 if the brokers answer.",
        alert=Alert(
            "LaminaKafkaDown",
            "lamina_kafka_up == 0",
            "1m",
            "Start the brokers. Nothing is lost.",
            "The brokers do not answer.",
        ),
    ),
    Metric(
        "lamina_disk_free_bytes",
        "Bytes that are free for LAMINA_HOME and for the warehouse, if these are folders of this machine.",
        ("folder",),
        alert=Alert(
            "LaminaDiskFull",
            f"lamina_disk_free_bytes < {LITTLE_ROOM}",
            "0m",
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
        """The current samples. If Postgres or Kafka does not answer, its `…_up` is 0 and its other metrics have no
        samples.
        """
        yield MetricSample("lamina_build_info", (__version__, version("pyspark")), 1)
        for folder, free in free_bytes(self.deployment).items():
            yield MetricSample("lamina_disk_free_bytes", (folder,), free)
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
        brokers = self.deployment.brokers
        answers = brokers.listening()
        yield MetricSample("lamina_kafka_up", (), answers)
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


def rules() -> str:
    """Prometheus' alert rules, one for each metric with an alert."""
    alerting = [(metric, metric.alert) for metric in EVERY if metric.alert is not None]
    listed = [
        {
            "alert": alert.name,
            "expr": alert.when,
            "for": alert.lasts,
            "annotations": {"summary": alert.summary or metric.help, "description": alert.way_out},
        }
        for metric, alert in alerting
    ]
    return json.dumps({"groups": [{"name": "lamina", "rules": listed}]}, indent=2) + "\n"


def board() -> str:
    """A Grafana board with a panel for each metric."""
    shown = [metric for metric in EVERY if metric.name != "lamina_build_info"]
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    described = {
        "title": "Lamina",
        "uid": "lamina",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [_panel(number, metric) for number, metric in enumerate(shown)],
    }
    return json.dumps(described, indent=2) + "\n"


def _panel(number: int, metric: Metric) -> dict[str, object]:
    """A chart of a metric, two in a row. For a counter it shows the rate."""
    query = f"rate({metric.name}[1m])" if metric.kind == "counter" else metric.name
    unit = next((UNITS[ending] for ending in UNITS if metric.name.endswith(ending)), "short")
    legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": metric.name,
        "description": metric.help,
        "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [{"refId": "A", "expr": query, "legendFormat": legend}],
    }


REPOSITORY = Path(__file__).resolve().parents[2]

UNITS = {"_seconds": "s", "_behind": "s", "_bytes": "bytes", "_ratio": "percentunit"}
"""Grafana's units, by the endings of names."""


def document() -> str:
    """docs/metrics.md: its head, and a row for each metric with its labels, meaning and alert."""
    table = "| metric | labels | value | alert |"
    head, *_ = (REPOSITORY / "docs/metrics.md").read_text().partition(table)
    rows = [
        f"| `{metric.name}` | {', '.join(metric.labels)} | {metric.help} | {_alert_cell(metric)} |" for metric in EVERY
    ]
    return head + "\n".join([table, "|---|---|---|---|", *rows]) + "\n"


def _alert_cell(metric: Metric) -> str:
    alert = metric.alert
    if alert is None:
        return ""
    lasts = "" if alert.lasts == "0m" else f" for {alert.lasts}"
    return f"`{alert.when}`{lasts}. {alert.way_out}".replace("|", "\\|")


FILES: dict[str, Callable[[], str]] = {
    "deploy/prometheus/lamina.rules.json": rules,
    "deploy/grafana/lamina.json": board,
    "docs/metrics.md": document,
}
"""Files made from the list of metrics, and the functions that make them."""

if __name__ == "__main__":
    for name, text_of in FILES.items():
        path = REPOSITORY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of())
