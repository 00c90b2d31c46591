"""Values for the templates of the pages about one view, one source and one SELECT."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote, urlencode

from lamina.console.charts import chart_of, stack_of
from lamina.console.lineage_drawing import Node, graph
from lamina.operations.deployment import Deployment
from lamina.reports import receipt_lines, statuses
from lamina.reports.chart_choice import MOST_ROWS
from lamina.reports.lag_lines import tables_of
from serving_layer.catalog import definitions
from serving_layer.monitoring import details
from serving_layer.monitoring.details import Minute
from serving_layer.monitoring.query_alarms import TopicState
from serving_layer.monitoring.view_states import view_state
from serving_layer.postgres.database import login_of
from serving_layer.postgres.phases import PHASES
from serving_layer.readers import row_keys
from serving_layer.readers.analyst import Forbidden, PageSelect, answer, cost, select
from view_algebra.compiled import View
from view_algebra.errors import LaminaError, Unknown
from view_algebra.explain import explain, origins
from view_algebra.language.quoting import postgres_text, quoted

T = TypeVar("T")

ROWS_SHOWN = 50
"""Rows of a view on its page."""

HOUR = (720, 90)
"""Width and height of the hour's chart, in pixels."""

STEPS = 50
"""Steps of the history on the page about a row."""

LONGEST_LINK = 2_000
"""Characters of the values in the address of a row."""

SAMPLES = 20
"""Newest bad records on a source's page."""

LONGEST_SAMPLE = 600
"""Characters shown of a bad record."""


class PageReader:
    """Reads a deployment for its pages, in the calling thread."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def view(self, name: str, statement: PageSelect) -> dict[str, Any]:
        """A view: its declaration, lineage, generations with proofs, and newest rows, which `statement` reads."""
        catalog = self._deployment.deployed()
        view = _look_up(catalog.views, name, "view")
        with self._deployment.database.snapshot() as connection:
            state = view_state(connection, name)
            generations = details.generations(connection, name)
            met = details.freshness_met(connection, name)
        values: dict[str, Any] = {"answer": None, "chart": None, "error": None}
        try:
            values |= self.sql(_newest(view), statement, ROWS_SHOWN)
            values["links"] = [_link(view, values["answer"].columns, row) for row in values["answer"].rows]
        except LaminaError as error:
            values["error"] = error
        return {
            **values,
            "view": view,
            "state": state or _unknown(name, "view", catalog.views),
            "generations": generations,
            "graph": graph(catalog, Node("view", name)),
            "columns": list(zip(view.columns, origins(view), strict=True)),
            "met": met,
            "explained": explain(view),
        }

    def row(self, name: str, values_of_groups: Mapping[str, str], statement: PageSelect) -> dict[str, Any]:
        """Rows of a view by the values of its group columns, and the newest steps that may have moved them."""
        catalog = self._deployment.deployed()
        view = _look_up(catalog.views, name, "view")
        groups = row_keys.group_columns(view)
        words = [f"{column}={values_of_groups[column]}" for column in groups if values_of_groups.get(column)]
        with self._deployment.database.snapshot() as connection:
            steps = details.steps(connection, view.sources, list(definitions.of(catalog, name).views), STEPS)
        values: dict[str, Any] = {"answer": None, "chart": None, "command": None, "error": None}
        if words or not groups:
            values["command"] = shlex.join(["lamina", "blame", name, *words])
            try:
                key = row_keys.read(self._deployment.database, view, words)
                query = f"SELECT * FROM {quoted(name)} WHERE {key.postgres(view)}"
                values |= {**self.sql(query, statement, ROWS_SHOWN), "chart": None}
            except LaminaError as error:
                values["error"] = error
        return {
            **values,
            "view": view,
            "groups": {column: values_of_groups.get(column, "") for column in groups},
            "steps": steps,
        }

    def receipt(self, name: str, statement: PageSelect) -> dict[str, Any]:
        """A receipt of a view, as the analyst gets it."""
        _look_up(self._deployment.deployed().views, name, "view")
        return {"name": name, "line": receipt_lines.line_of(self._deployment.settings.reader(), name, statement)}

    def cost(self, name: str, statement: PageSelect) -> dict[str, Any]:
        """The measured cost of one read of a view."""
        _look_up(self._deployment.deployed().views, name, "view")
        return {"name": name, "cost": cost(self._deployment.settings.reader(), name, statement)}

    def source(self, name: str, statement: PageSelect) -> dict[str, Any]:
        """A source: its declaration, partitions, quarantine and undeclared fields."""
        catalog = self._deployment.deployed()
        source = _look_up(catalog.sources, name, "source")
        with self._deployment.database.snapshot() as connection:
            counted = details.source_details(connection, name)
        return {
            "source": source,
            "details": counted or _unknown(name, "source", catalog.sources),
            **self._samples(name, statement),
            "topic": self._topic(source.topic),
            "undeclared": statuses.undeclared_fields(self._deployment, [name]).get(name, [])
            if self._deployment.brokers.listening()
            else None,
            "graph": graph(catalog, Node("source", name)),
            **(_phases(counted.minutes) if counted else {}),
        }

    def sql(self, query: str, statement: PageSelect, most: int = MOST_ROWS) -> dict[str, Any]:
        """The answer to a SELECT of the analyst, and its chart."""
        rows_read = answer(self._deployment.settings.reader(), query, tables_of(query), most, statement)
        shown, numbers = chart_of(rows_read.columns, rows_read.rows)
        return {"answer": rows_read, "chart": shown, "numbers": numbers}

    def _samples(self, source: str, statement: PageSelect) -> dict[str, Any]:
        """The newest bad records, as far as the analyst may read their values. If not, `refused` is the
        analyst's role.
        """
        query = (
            f'SELECT partition, "offset", error, left(value, {LONGEST_SAMPLE}) FROM lamina.bad_values'
            f" WHERE source = {postgres_text(source)} ORDER BY quarantined_at DESC LIMIT {SAMPLES}"
        )
        reader = self._deployment.settings.reader()
        try:
            return {"samples": select(reader, query, statement=statement)[1], "refused": None}
        except Forbidden:
            return {"samples": [], "refused": login_of(reader)[0]}

    def _topic(self, topic: str) -> TopicState | None:
        """The topic as the brokers hold it now, or None if they do not answer."""
        brokers = self._deployment.brokers
        return statuses.topic_states(brokers, [topic]).get(topic) if brokers.listening() else None


def _look_up(declared: Mapping[str, T], name: str, kind: str) -> T:
    return declared[name] if name in declared else _unknown(name, kind, declared)


def _unknown(name: str, kind: str, declared: Mapping[str, object]) -> NoReturn:
    """Raises `Unknown`, also if an apply has dropped the name meanwhile."""
    raise Unknown(kind, name, declared, way_out="The first page lists the views and sources.")


def _link(view: View, columns: Sequence[str], row: Sequence[Any]) -> str | None:
    """The address of the page about a row, or None if the values of its group columns cannot be part of an address."""
    values = {
        column: value for column, value in zip(columns, row, strict=True) if column in row_keys.group_columns(view)
    }
    if any(isinstance(value, dict | list | bytes | memoryview | timedelta) for value in values.values()):
        return None
    query = urlencode({column: row_keys.NULL if value is None else str(value) for column, value in values.items()})
    return f"/view/{quote(view.name, safe='')}/row?{query}" if len(query) <= LONGEST_LINK else None


def _phases(minutes: Sequence[Minute]) -> dict[str, Any]:
    """The phases of the last hour's micro-batches: their number, mean seconds by phase, and a chart."""
    count = sum(minute.micro_batches for minute in minutes)
    sums = {name: sum(minute.micro_batches * minute.means[name] for minute in minutes) for name in PHASES}
    stack = stack_of(
        [(minute.ago, minute.means) for minute in minutes], *HOUR, span=3660
    )  # the last minute began up to 3660 s ago
    return {
        "micro_batches": count,
        "phases": {name: seconds / max(1, count) for name, seconds in sums.items()},
        "stack": stack,
    }


def _newest(view: View) -> str:
    """A SELECT of the newest rows by the first time column. Without such a column, of any rows."""
    times = [column.name for column in view.columns if column.postgres.startswith(("timestamp", "date"))]
    order = f" ORDER BY {quoted(times[0])} DESC NULLS LAST" if times else ""
    return f"SELECT * FROM {quoted(view.name)}{order} LIMIT {ROWS_SHOWN}"
