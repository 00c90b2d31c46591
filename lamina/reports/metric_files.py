"""Files made from the list of metrics: Prometheus' alert rules, a Grafana board, and the table of docs/metrics.md.

`python -m lamina.reports.metric_files` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from lamina.reports.metrics import EVERY
from serving_layer.monitoring.metric_table import Metric

REPOSITORY = Path(__file__).resolve().parents[2]

UNITS = {"_seconds": "s", "_behind": "s", "_bytes": "bytes", "_ratio": "percentunit"}
"""Grafana's units, by the endings of names."""


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
