"""Grafana's provisioning: a Postgres data source, and a board with a panel per view."""

from __future__ import annotations

import json
from typing import Any

from lamina.generating.view_facts import SCHEMA, Address, chart, drawn_first, row, sentence, time_column
from lamina.generating.yaml_text import yaml
from lamina.reports.chart_choice import MOST_BARS, MOST_ROWS, Choice
from lamina.services.own_processes import is_loopback
from view_algebra.compiled import Catalog, View
from view_algebra.language.quoting import postgres_name

BOARD = "dashboards/lamina_views.json"

SOURCE = {"type": "grafana-postgresql-datasource", "uid": "lamina-views"}

FOLDER = "/etc/grafana/dashboards"
"""The folder of the board in Grafana's own container, if the files are mounted at /etc/grafana."""


def provisioning(catalog: Catalog, address: Address) -> dict[str, str]:
    """Grafana's files, by name. Grafana takes the password from the variable LAMINA_GRAFANA_PASSWORD."""
    source = {
        "name": "Lamina views",
        **SOURCE,
        "url": address.server,
        "user": address.user,
        "jsonData": {
            "database": address.database,
            "sslmode": _sslmode(address),
            "maxOpenConns": 3,  # a login has 5 connections
            "postgresVersion": 1500,
        },
        "secureJsonData": {"password": "$LAMINA_GRAFANA_PASSWORD"},
    }
    provider = {"name": "Lamina", "type": "file", "options": {"path": FOLDER}}
    return {
        "provisioning/datasources/lamina.yaml": yaml({"apiVersion": 1, "datasources": [source]}),
        "provisioning/dashboards/lamina.yaml": yaml({"apiVersion": 1, "providers": [provider]}),
        BOARD: board(catalog),
    }


def _sslmode(address: Address) -> str:
    """One of Grafana's modes. It lacks `prefer` and `allow`, which try two modes one after the other."""
    if address.sslmode not in ("prefer", "allow"):
        return address.sslmode
    return "disable" if is_loopback(address.host) else "require"


def board(catalog: Catalog) -> str:
    """A Grafana board with a panel for each view."""
    described = {
        "title": "Lamina views",
        "uid": "lamina-views",
        "schemaVersion": 39,
        "refresh": "10s",
        "timezone": "utc",
        "time": {"from": "now-30d", "to": "now"},
        "panels": [_panel(number, catalog, view) for number, view in enumerate(drawn_first(catalog))],
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _panel(number: int, catalog: Catalog, view: View) -> dict[str, Any]:
    chosen = chart(catalog, view)
    lines = chosen is not None and chosen.form == "lines"
    kind = "table" if chosen is None else "timeseries" if lines else "barchart"
    return {
        "id": number + 1,
        "type": kind,
        "title": view.name,
        "description": " ".join(filter(None, (sentence(view.comment), row(view)))),
        "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": "short"}, "overrides": []},
        "options": {"xField": view.columns[chosen.along].name} if chosen and not lines else {},
        "targets": [
            {
                "refId": "A",
                "datasource": SOURCE,
                "rawQuery": True,
                "editorMode": "code",
                "format": "time_series" if lines else "table",
                "rawSql": statement(view, chosen),
            }
        ],
    }


def statement(view: View, chosen: Choice | None) -> str:
    """The SELECT of a panel, with Grafana's macro for the time span of the board."""
    relation = f"{SCHEMA}.{postgres_name(view.name)}"
    if chosen is None:
        time = time_column(view)
        order = "" if time is None else f" ORDER BY {postgres_name(time)} DESC NULLS LAST"
        return f"SELECT * FROM {relation}{order} LIMIT {MOST_ROWS}"
    names = [postgres_name(column.name) for column in view.columns]
    along, numbers = names[chosen.along], [names[at] for at in chosen.numbers]
    if chosen.form == "bars":
        columns = ", ".join((along, *numbers))
        return f"SELECT {columns} FROM {relation} ORDER BY {numbers[0]} DESC NULLS LAST LIMIT {MOST_BARS}"
    metric = "" if chosen.category is None else f"{names[chosen.category]} AS metric, "
    columns = f'{along} AS "time", {metric}{", ".join(numbers)}'
    return f"SELECT {columns} FROM {relation} WHERE $__timeFilter({along}) ORDER BY 1"
