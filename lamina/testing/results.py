"""The results of `lamina test`: the rows that a test expects, compared with those of each way of computing a view."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from batch_layer.comparison import Row, compare, shown_columns
from batch_layer.compute import records_that_count
from interchange.json_text import as_written
from lamina.terminal.render import json_value
from lamina.testing import duckdb_queries
from lamina.testing.fixtures import Fixture, FixtureLine, needed
from master_log.causes import interrupted_at_once
from master_log.reading.kafka_reader import parsed
from serving_layer.catalog.deployed import deployed
from serving_layer.postgres.database import Connection, Database, PostgresError, first_line
from serving_layer.readers import views
from view_algebra.compiled import Catalog, View
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import quoted
from view_algebra.refusals import suggestion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Way = Literal["live", "batch", "duckdb"]
"""A way in which a view gets its rows (`runner`)."""

Rows = Mapping[str, list[Row]]
"""Rows by view."""


@dataclass(frozen=True)
class Comparison:
    """The result of one way for one view of a test. `missing` rows were only expected, `surplus` rows were only there.

    `columns` are those that the test names, and only they were compared. `left_out` is the reason if the way was
    skipped, or empty.
    """

    test: str
    view: str
    way: Way
    columns: Sequence[str]
    rows: int = 0
    missing: Sequence[Row] = ()
    surplus: Sequence[Row] = ()
    left_out: str = ""

    @property
    def equal(self) -> bool:
        """True unless the way gave other rows."""
        return not self.missing and not self.surplus

    @property
    def result(self) -> str:
        """`equal`, `DIFFERENT` or `left out`."""
        return "left out" if self.left_out else "equal" if self.equal else "DIFFERENT"

    @property
    def difference(self) -> list[str]:
        """A line for each row that is missing (-) or surplus (+)."""
        sides = (("-", self.missing), ("+", self.surplus))
        return [f"{sign} {json.dumps(self.as_json(row), ensure_ascii=False)}" for sign, rows in sides for row in rows]

    def record(self) -> dict[str, Any]:
        """The result in a form that JSON can hold."""
        sides = {"missing": self.missing, "surplus": self.surplus}
        rows = {side: [self.as_json(row) for row in side_rows] for side, side_rows in sides.items()}
        fields = {"test": self.test, "view": self.view, "way": self.way, "rows": self.rows, "result": self.result}
        return {**fields, **rows, "left_out": self.left_out}

    def as_json(self, row: Row) -> dict[str, Any]:
        """A row in a form that JSON can hold."""
        values = (v if isinstance(v, (dict, list, bool, int, float, str, type(None))) else json_value(v) for v in row)
        return dict(zip(self.columns, values, strict=True))


def _with_columns_of(view: View, lines: Sequence[FixtureLine]) -> View:
    """A view with only those columns that a test's rows name, or with all if it expects no row."""
    named = {name: line.place for line in lines for name in line.value}
    columns = [column.name for column in view.columns]
    for name, place in named.items():
        if name not in columns:
            raise LaminaError(f"{place}: {view.name} has no column {name}", way_out=suggestion(name, columns))
    return replace(view, columns=tuple(column for column in view.columns if column.name in named or not named))


def expected_rows(connection: Connection, whole: View, lines: Sequence[FixtureLine]) -> list[Row]:
    """The rows that a test expects. Postgres reads each value from JSON in its column's type."""
    view = _with_columns_of(whole, lines)
    types = ", ".join(f"{quoted(column.name)} {_unbounded(column.postgres)}" for column in view.columns)
    query = f"SELECT {shown_columns(view)} FROM jsonb_to_recordset(".replace("%", "%%") + "%s::jsonb"
    rows: list[Row] = []
    for line in lines:
        try:
            with connection.begin_nested():
                parsed_rows = connection.exec_driver_sql(
                    query + f") AS expected ({types})".replace("%", "%%"), (as_written([line.value]),)
                )
                rows += [tuple(row) for row in parsed_rows]
        except PostgresError as error:
            what = f"{line.place}: a value does not fit its column of {view.name}"
            way_out = f"The columns are {types}."
            raise LaminaError(what, evidence=first_line(error), way_out=way_out) from error
    return rows


def _unbounded(kind: str) -> str:
    """A type that rounds and cuts nothing, so that a test with too many digits fails.

    >>> _unbounded("numeric(31,2)"), _unbounded("timestamptz")
    ('numeric', 'timestamptz')
    """
    return re.sub(r"\(.*?\)", "", kind)


def compare_served(database: Database, fixture: Fixture, expected: Rows, way: Way) -> list[Comparison]:
    """Compares the rows that Postgres serves now, as they came in this way."""
    results = []
    with database.snapshot() as connection:
        catalog = deployed(connection)
        for name, lines in fixture.expect.items():
            view = _with_columns_of(catalog.views[name], lines)
            shown = views.rows(connection, name, shown_columns(view))
            compared = compare(view, expected[name], shown)
            columns = [column.name for column in view.columns]
            tested = Comparison(fixture.name, name, way, columns, len(shown), compared.missing, compared.surplus)
            results.append(tested)
    return results


def compare_in_duckdb(
    catalog: Catalog, raw: Mapping[str, DataFrame], fixture: Fixture, expected: Rows
) -> list[Comparison]:
    """DuckDB's results for the views that it can compute."""
    names = [name for name in fixture.expect if duckdb_queries.translated_view(catalog.views[name])]
    translatable = needed(catalog, names)
    records = {
        source.records: interrupted_at_once(records_that_count(parsed(raw[name], source), source).toArrow)
        for name, source in translatable.sources.items()
    }
    try:
        answers = duckdb_queries.answers(records, translatable.views.values())
        reason = "its SQL may mean something else in DuckDB"
    except ImportError:
        answers, reason = {}, "DuckDB is not installed (`pip install duckdb`)"
    results = []
    for name, lines in fixture.expect.items():
        view = catalog.views[name]
        columns = [column.name for column in _with_columns_of(view, lines).columns]
        if name not in answers:
            results.append(Comparison(fixture.name, name, "duckdb", columns, left_out=reason))
            continue
        places = [number for number, column in enumerate(view.columns) if column.name in columns]
        rows = [tuple(row[place] for place in places) for row in answers[name]]
        missing, surplus = duckdb_queries.differing(expected[name], rows)
        results.append(Comparison(fixture.name, name, "duckdb", columns, len(rows), missing, surplus))
    return results
