"""Values for the templates of the pages about one view, one source and one SELECT."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lamina import receipts, statuses
from lamina.console.charts import MOST_ROWS, drawn
from lamina.deployment import Deployment
from serving_layer import particulars
from serving_layer.analyst import Forbidden, Statement, answer, select
from serving_layer.database import login_of
from serving_layer.overview import overview
from view_algebra.compiled import Catalog, View
from view_algebra.errors import LaminaError
from view_algebra.explain import explain, origins
from view_algebra.language.quoting import postgres_text, quoted

NEWEST = 50
"""Rows of a view that its page shows."""


SAMPLES = 20
"""Newest bad records of a source that its page shows."""

LONGEST_SAMPLE = 600
"""Characters of a bad record that are shown."""


class Unknown(LaminaError):
    """The address names a view or a source that is not deployed."""


class About:
    """Reads a deployment for its pages, in the thread that asks."""

    def __init__(self, opened: Deployment) -> None:
        self._opened = opened

    def view(self, name: str, statement: Statement) -> dict[str, Any]:
        """A view: its declaration, lineage, generations with proofs, and newest rows, which `statement` reads."""
        catalog = self._opened.deployed()
        view = _known(catalog.views, name, "view")
        with self._opened.database.snapshot() as connection:
            now = _still(overview(connection).views, name, "view")
            generations = particulars.generations(connection, name)
        values: dict[str, Any] = {"answer": None, "chart": None, "error": None}
        try:
            values |= self.sql(_newest(view), statement, NEWEST)
        except LaminaError as error:
            values["error"] = error
        return {
            **values,
            "view": view,
            "now": now,
            "generations": generations,
            "direct": _direct(catalog, view),
            "dependents": [each.name for each in catalog.views.values() if name in each.reads],
            "origins": origins(view),
            "explained": explain(view),
        }

    def receipt(self, name: str, statement: Statement) -> dict[str, Any]:
        """A receipt of a view, as the analyst gets it."""
        _known(self._opened.deployed().views, name, "view")
        return {"name": name, "line": receipts.line_of(self._opened.settings.reader(), name, statement)}

    def source(self, name: str, statement: Statement) -> dict[str, Any]:
        """A source: its declaration, partitions, quarantine and undeclared fields."""
        catalog = self._opened.deployed()
        source = _known(catalog.sources, name, "source")
        with self._opened.database.snapshot() as connection:
            now = _still(overview(connection).sources, name, "source")
            found = particulars.of_source(connection, name)
        return {
            "source": source,
            "now": now,
            "found": found,
            **self._samples(name, statement),
            "ends": self._ends(source.topic),
            "undeclared": statuses.undeclared(self._opened).get(name, []) if self._opened.brokers.listening() else None,
            "dependents": [each.name for each in catalog.views.values() if name in each.fed_by],
        }

    def sql(self, query: str, statement: Statement, most: int = MOST_ROWS) -> dict[str, Any]:
        """The answer to a SELECT of the analyst, and its chart."""
        found = answer(self._opened.settings.reader(), query, statuses.tables_of(query), most, statement)
        shown, numbers = drawn(found.columns, found.rows)
        return {"answer": found, "chart": shown, "numbers": numbers}

    def _samples(self, source: str, statement: Statement) -> dict[str, Any]:
        """The newest bad records, as far as the analyst may read their values; `refused` is why not."""
        query = (
            f'SELECT partition, "offset", error, left(value, {LONGEST_SAMPLE}) FROM lamina.bad_values'
            f" WHERE source = {postgres_text(source)} ORDER BY quarantined_at DESC LIMIT {SAMPLES}"
        )
        reader = self._opened.settings.reader()
        try:
            return {"samples": select(reader, query, statement=statement)[1], "refused": None}
        except Forbidden:
            return {"samples": [], "refused": login_of(reader)[0]}

    def _ends(self, topic: str) -> Mapping[int, int]:
        """The end of each partition; nothing if Kafka does not say."""
        try:
            brokers = self._opened.brokers
            return {at.partition: end for at, end in brokers.latest(topic).items()} if brokers.listening() else {}
        except LaminaError:
            return {}


def _still(shown: Iterable[Any], name: str, what: str) -> Any:
    """The overview's line of a view or a source, which may have been dropped since the catalog was read."""
    return _known({each.name: each for each in shown}, name, what)


def _known(declared: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in declared:
        raise Unknown(
            f"There is no {what} named {name}",
            evidence=f"deployed: {', '.join(declared) or 'none'}",
            way_out="The first page lists the views and sources.",
        )
    return declared[name]


def _direct(catalog: Catalog, view: View) -> list[tuple[str, str]]:
    """The sources and views that a view reads. A table is the view of its newest records, and its own source."""
    sources = [("source", name) for name in sorted(view.fed_by)]
    return sources + [("view", name) for name in view.reads if name in catalog.views and name != view.name]


def _newest(view: View) -> str:
    """The newest rows by the first column of times; without one, any rows."""
    times = [column.name for column in view.columns if column.postgres.startswith(("timestamp", "date"))]
    order = f" ORDER BY {quoted(times[0])} DESC NULLS LAST" if times else ""
    return f"SELECT * FROM {quoted(view.name)}{order} LIMIT {NEWEST}"
