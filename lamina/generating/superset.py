"""A bundle for `superset import-dashboards`: the database, a dataset and a chart per view, one dashboard.

Ids are derived from names, so importing another bundle updates the objects of the first.
"""

from __future__ import annotations

import io
import json
import re
import uuid
import zipfile
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from lamina.generating.view_facts import (
    SCHEMA,
    Address,
    chart,
    description,
    drawn_first,
    kinds,
    row,
    sentence,
    time_column,
)
from lamina.generating.yaml_text import yaml
from lamina.reports.chart_choice import MOST_BARS, MOST_ROWS
from view_algebra.compiled import Catalog, View
from view_algebra.language.quoting import quoted

FILE = "lamina_superset.zip"

DATABASE = "Lamina"

VERSION = "1.0.0"
"""Version of Superset's bundle format."""

REFRESH_SECONDS = 30

NO_CACHE = -1

ROW_COUNT = {"metric_name": "rows", "expression": "COUNT(*)", "description": "rows of the view"}

_SAME_EACH_TIME = (1980, 1, 1, 0, 0, 0)
"""Modification time of each file in the bundle: the earliest that a zip file can hold."""


def bundle(catalog: Catalog, address: Address) -> bytes:
    """The zip file. It has no password: `superset set-database-uri` sets that after the import."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files(catalog, address).items():
            archive.writestr(zipfile.ZipInfo(f"lamina/{name}", _SAME_EACH_TIME), yaml(content))
    return written.getvalue()


def files(catalog: Catalog, address: Address) -> dict[str, Mapping[str, Any]]:
    """The contents of the bundle's files, by name."""
    views = drawn_first(catalog)
    contents: dict[str, Mapping[str, Any]] = {
        "metadata.yaml": {"version": VERSION},  # without a type, so that `import-datasources` can read it
        f"databases/{DATABASE}.yaml": _database(address),
        "dashboards/views.yaml": _dashboard(views, address),
    }
    for number, view in enumerate(views):
        file = f"{number}_{re.sub(r'[^A-Za-z0-9]', '_', view.name)}.yaml"
        contents[f"datasets/{DATABASE}/{file}"] = _dataset(catalog, view, address)
        contents[f"charts/{file}"] = _chart(catalog, view, address)
    return contents


def _id(address: Address, kind: str, name: str = "") -> str:
    """The id of an object of this kind and name in Superset."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"lamina://{address.server}/{address.database}/{kind}/{name}"))


def _database(address: Address) -> Mapping[str, Any]:
    query = "" if address.sslmode == "prefer" else f"?sslmode={address.sslmode}"
    user, name = quote(address.user, safe=""), quote(address.database, safe="")
    return {
        "database_name": DATABASE,
        "sqlalchemy_uri": f"postgresql+psycopg2://{user}@{address.server}/{name}{query}",
        "expose_in_sqllab": True,
        "allow_run_async": False,
        "allow_ctas": False,
        "allow_cvas": False,
        "allow_dml": False,
        "allow_csv_upload": False,
        "extra": {"allows_virtual_table_explore": True},
        "uuid": _id(address, "database"),
        "version": VERSION,
    }


def _dataset(catalog: Catalog, view: View, address: Address) -> Mapping[str, Any]:
    shown = kinds(catalog, view)
    times = [column.name for column, kind in zip(view.columns, shown, strict=True) if kind == "time"]
    measures = [column.name for column, kind in zip(view.columns, shown, strict=True) if kind == "number"]
    return {
        "table_name": view.name,
        "main_dttm_col": times[0] if times else time_column(view),
        "description": description(catalog, view),
        "cache_timeout": NO_CACHE,
        "schema": SCHEMA,
        "filter_select_enabled": True,
        "extra": {"certification": {"certified_by": DATABASE, "details": _certified(view)}},
        "uuid": _id(address, "dataset", view.name),
        "columns": [
            {
                "column_name": column.name,
                "is_dttm": column.postgres.startswith(("timestamp", "date")),
                "type": column.postgres.upper(),
                "groupby": column.name not in measures,
                "filterable": True,
                "description": column.comment,
            }
            for column in view.columns
        ],
        "metrics": [ROW_COUNT, *(_metric(view, name) for name in measures)],
        "version": VERSION,
        "database_uuid": _id(address, "database"),
    }


def _certified(view: View) -> str:
    return f"Equals its SELECT over every record below its offsets. {row(view)}".strip()


def _metric(view: View, name: str) -> Mapping[str, Any]:
    """A measure: the sum over rows if they may be added up, otherwise the largest value, which is one row's value."""
    added = name in view.additive
    comment = next(column.comment for column in view.columns if column.name == name)
    details = (
        "No record is in two rows: rows may be added up."
        if added
        else "Rows may not be added up: group by all columns that tell rows apart."
    )
    return {
        "metric_name": metric_name(view, name),
        "verbose_name": name,
        "expression": f"{'SUM' if added else 'MAX'}({quoted(name)})",
        "description": sentence(comment),
        "extra": {"certification": {"certified_by": DATABASE, "details": details}},
    }


def metric_name(view: View, column: str) -> str:
    """The name of a measure's metric.

    >>> from view_algebra import compile_catalog
    >>> from view_algebra.passes import EXAMPLE
    >>> metric_name(compile_catalog({"example.sql": EXAMPLE}).views["top"], "users")
    'max_users'
    """
    return f"{'sum' if column in view.additive else 'max'}_{column}"


def _chart(catalog: Catalog, view: View, address: Address) -> Mapping[str, Any]:
    parameters = _parameters(catalog, view)
    return {
        "slice_name": view.name,
        "description": description(catalog, view),
        "certified_by": DATABASE,
        "certification_details": _certified(view),
        "viz_type": parameters["viz_type"],
        "params": parameters,
        "uuid": _id(address, "chart", view.name),
        "version": VERSION,
        "dataset_uuid": _id(address, "dataset", view.name),
    }


def _parameters(catalog: Catalog, view: View) -> dict[str, Any]:
    """The form of the chart that draws a view."""
    chosen = chart(catalog, view)
    names = [column.name for column in view.columns]
    if chosen is None:
        order = time_column(view)
        return {
            "viz_type": "table",
            "query_mode": "raw",
            "all_columns": names,
            "order_by_cols": [] if order is None else [json.dumps([order, False])],
            "row_limit": MOST_ROWS,
            "show_cell_bars": False,
            "adhoc_filters": [],
        }
    parameters: dict[str, Any] = {
        "x_axis": names[chosen.along],
        "metrics": [metric_name(view, names[at]) for at in chosen.numbers],
        "groupby": [] if chosen.category is None else [names[chosen.category]],
        "show_legend": True,
        "rich_tooltip": True,
    }
    if chosen.form == "bars":
        # Horizontal bars leave room for texts. They are drawn from below, so the largest comes last.
        largest = {"x_axis_sort": parameters["metrics"][0], "x_axis_sort_asc": True}
        largest |= {"order_desc": True, "row_limit": MOST_BARS}
        across = {"viz_type": "echarts_timeseries_bar", "orientation": "horizontal"}
        return {**across, **parameters, **largest, "adhoc_filters": []}
    any_time = {
        "clause": "WHERE",
        "expressionType": "SIMPLE",
        "subject": names[chosen.along],
        "operator": "TEMPORAL_RANGE",
        "comparator": "No filter",
    }
    whole = {"time_grain_sqla": None, "row_limit": 10_000, "limit": 10, "adhoc_filters": [any_time]}
    return {"viz_type": "echarts_timeseries_line", **parameters, **whole}


def _dashboard(views: list[View], address: Address) -> Mapping[str, Any]:
    """A dashboard with all charts, two in a row."""
    position: dict[str, Any] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "HEADER_ID": {"type": "HEADER", "id": "HEADER_ID", "meta": {"text": "Lamina views"}},
    }
    rows = []
    for first in range(0, len(views), 2):
        id = f"ROW-{first // 2}"
        charts = {f"CHART-{first + at}": view for at, view in enumerate(views[first : first + 2])}
        rows.append(id)
        parents = ["ROOT_ID", "GRID_ID"]
        meta = {"background": "BACKGROUND_TRANSPARENT"}
        position[id] = {"type": "ROW", "id": id, "children": list(charts), "parents": parents, "meta": meta}
        for at, (name, view) in enumerate(charts.items()):
            about = {
                "chartId": first + at + 1,
                "uuid": _id(address, "chart", view.name),
                "sliceName": view.name,
                "width": 6,
                "height": 50,
            }
            position[name] = {"type": "CHART", "id": name, "children": [], "parents": [*parents, id], "meta": about}
    position["GRID_ID"] = {"type": "GRID", "id": "GRID_ID", "children": rows, "parents": ["ROOT_ID"]}
    return {
        "dashboard_title": "Lamina views",
        "description": "A chart of each view.",
        "slug": "lamina-views",
        "certified_by": DATABASE,
        "published": True,
        "uuid": _id(address, "dashboard"),
        "position": position,
        "metadata": {"refresh_frequency": REFRESH_SECONDS, "timed_refresh_immune_slices": [], "expanded_slices": {}},
        "version": VERSION,
    }
