"""Problems reported for other systems: Lamina's views show the right rows of their records."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cases import CHECKED, DATA
from tests.fix_lamina import Deployed

REPORTS = DATA / "reports"
pytestmark = pytest.mark.skipif(
    not REPORTS.exists(), reason=f"the problems reported for other systems were not tried: {REPORTS} is missing"
)

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Catalog:
    """One catalog of a report.

    edits: parts of the declarations, and the texts that replace them
    rows: the right rows of views whose published rows are wrong
    """

    report: str
    folder: str = "catalog"
    edits: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """The prefix of its names in the catalog of all reports."""
        return f"r{self.report[:2]}{self.folder.removeprefix('catalog')}_"

    def sql(self) -> str:
        """Its declarations, with the prefix in every name and topic."""
        texts = [path.read_text() for path in sorted((self.path / self.folder).glob("*.sql"))]
        sql = "\n".join(texts)
        for old, new in self.edits.items():
            assert old in sql, (self.report, old)
            sql = sql.replace(old, new)
        sql = re.sub(r"topic '([^']+)'", rf"topic '{{topics}}_{self.prefix}\1'", sql)
        names = re.findall(r"CREATE (?:TABLE|VIEW) (\w+)", sql)
        return re.sub(rf"(?<![\w.'])(?<!AS )({'|'.join(names)})\b(?!')", rf"{self.prefix}\1", sql)

    @property
    def path(self) -> Path:
        """The folder of the report."""
        return REPORTS / self.report

    def sources(self) -> list[str]:
        """Its sources, by the names in its own files."""
        return [name.removeprefix(self.prefix) for name in re.findall(r"CREATE TABLE (\w+)", self.sql())]

    def expected(self) -> Iterator[tuple[str, list[str], Rows]]:
        """The name, columns and rows of every view whose rows are known."""
        for view, published in json.loads((self.path / "expected.json").read_text()).items():
            if f" {self.prefix}{view} " in self.sql() or f" {self.prefix}{view}(" in self.sql():
                rows = self.rows.get(view, published["rows"])
                yield self.prefix + view, published["columns"], Counter(tuple(row) for row in rows)


LAST: list[tuple[Any, ...]] = [("Acme", 1), ("BOLT", 1), ("Dyn", 1), (None, 2)]
"""Rows if a map has a key twice: the last entry counts. The published rows have the first one, as Spark does."""

CATALOGS = [
    Catalog("01-delete-then-insert-again"),
    Catalog("02-toast-placeholder"),
    Catalog("02-toast-placeholder", "catalog_way_out"),
    Catalog("04-decimal-precise-base64"),
    Catalog("08-truncate-and-reload"),
    Catalog("11-infinity-in-validity-columns"),
    Catalog("15-epoch-millis-birthdays", edits={"'registered_at')": "'registered_at', 'epoch' = 'ms')"}),
    Catalog("15-epoch-millis-birthdays", "catalog_way_out"),
    Catalog(
        "17-empty-strings-and-zero-dates",
        edits={"format 'json');": "format 'json') TBLPROPERTIES ('on_bad_field' = 'null');"},
    ),
    Catalog("17-empty-strings-and-zero-dates", "catalog_way_out"),
    Catalog(
        "20-keys-twice-and-keys-in-two-cases", rows=dict.fromkeys(("brands", "brands_above", "brands_of_rows"), LAST)
    ),
    Catalog("32-rolling-seven-day-distinct", "catalog_way_out"),
    Catalog("34-spans-into-hours", edits={"FROM spans)": "FROM spans WHERE t2 <= t1 + INTERVAL 7 DAYS)"}),
    Catalog("34-spans-into-hours", "catalog_way_out"),
    Catalog("57-local-days-shown-one-day-off"),
]


def send(deployed: Deployed, catalog: Catalog) -> None:
    """Sends the records of a catalog's sources with their keys, partitions and timestamps."""
    for source in catalog.sources():
        lines = [json.loads(line) for line in _records(catalog, source).read_text().splitlines()]
        for line in lines:
            key, value = (None if line[part] is None else line[part].encode() for part in ("key", "value"))
            deployed.producer.send(
                deployed.topic(catalog.prefix + source),
                value,
                key=key,
                partition=line["partition"],
                timestamp_ms=line["timestamp"],
            )
    deployed.producer.flush()


def _records(catalog: Catalog, source: str) -> Path:
    """The file of a source's records. Without one, the file of another source over the same topic."""
    own = catalog.path / "records" / f"{source}.jsonl"
    return own if own.exists() else next((catalog.path / "records").iterdir())


def plain(value: Any) -> Any:
    """A value in the form in which the reports write it."""
    if isinstance(value, datetime):
        utc = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return utc.isoformat() + ("Z" if value.tzinfo else "")
    return str(value) if isinstance(value, Decimal | date) else value


def differing(deployed: Deployed) -> dict[str, tuple[Rows, Rows]]:
    """Missing and surplus rows of the views that differ, by view."""
    wrong = {}
    for catalog in CATALOGS:
        for view, columns, expected in catalog.expected():
            rows = deployed.rows(f"SELECT {', '.join(columns)} FROM {view}")
            shown = Counter(tuple(map(plain, row)) for row in rows)
            if shown != expected:
                wrong[view] = (expected - shown, shown - expected)
    return wrong


def test_every_report_shows_the_right_rows_live_and_rebuilt(deployed: Deployed) -> None:
    deployed.apply(**{catalog.prefix: catalog.sql() for catalog in CATALOGS})
    for catalog in CATALOGS:
        send(deployed, catalog)
    deployed.catch_up()
    assert differing(deployed) == {}
    answered = {view for catalog in CATALOGS for view, *_ in catalog.expected()}
    deployed.check(*set(deployed.deployment.deployed().views) - answered, *sorted(answered)[::CHECKED])
    deployed.deployment.batch.rebuild()
    assert deployed.owner("SELECT sum(differing) FROM lamina.proof") == [(0,)]
    assert differing(deployed) == {}
