"""The cases that other projects published: what they sent, and the rows that a query over all of it gives."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY.parent / "shared" / "data"
"""The cases themselves are not the repository's to hand on."""

TYPES = {"VARCHAR": "STRING", "INTEGER": "INT", "REAL": "FLOAT"}
"""DuckDB's names of types as Spark's, where they differ."""

SIGNIFICANT = 12
"""Digits to which fractions are compared: the published rows hold decimals as doubles."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Source:
    """A topic's columns, by DuckDB's types, and its records in the order in which they were sent."""

    columns: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]

    def declaration(self, name: str) -> str:
        """The source by that name, of one partition: arrival is an order."""
        columns = ", ".join(f"{column} {TYPES.get(kind, kind)}" for column, kind in self.columns)
        return f"""CREATE TABLE {name} ({columns}) USING kafka OPTIONS (topic '{{topics}}_{name}', format 'json')
            TBLPROPERTIES ('partitions' = '1');"""


@dataclass(frozen=True)
class Case:
    """One published case over one source."""

    name: str
    source_name: str
    source: Source
    published: tuple[Row, ...] | None
    reference: str

    @cached_property
    def expected(self) -> Counter[Row]:
        """The published rows; where those leave out late records or open windows, the reference query's over all."""
        return comparable(self.published if self.published is not None else self._over_all())

    def _over_all(self) -> list[Row]:
        columns = [f"{column} {kind}" for column, kind in self.source.columns]
        values = [[json.loads(line).get(column) for column, _ in self.source.columns] for line in self.source.lines]
        if "_arr" in self.reference:
            columns.append("_arr BIGINT")
            values = [[*row, arrived] for arrived, row in enumerate(values)]
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE {self.source_name} ({', '.join(columns)})")
            connection.executemany(f"INSERT INTO {self.source_name} VALUES ({', '.join('?' * len(columns))})", values)
            return list(connection.execute(self.reference).fetchall())


def read_cases() -> dict[str, Case]:
    """The cases over one stream, by name."""
    with gzip.open(DATA / "cases.json.gz", "rt", encoding="utf-8") as file:
        return {each["name"]: _case(each) for each in json.load(file) if each["issue"] == "B"}


def _case(found: dict[str, Any]) -> Case:
    [source] = found["sources"]
    if "events_file" in found:
        [path] = found["events_file"]
        with gzip.open(DATA / "events" / f"arroyo_{Path(path).stem}.jsonl.gz", "rt", encoding="utf-8") as file:
            lines = tuple(line.rstrip("\n") for line in file)
    else:
        lines = tuple(json.dumps(event["value"]) for event in found["events"])
    rows = found["expected"]["rows"] if found["equals_query_over_all_data"] else None
    return Case(
        found["name"],
        source["name"],
        Source(tuple((each["name"], each["type"].upper()) for each in source["columns"]), lines),
        None if rows is None else tuple(map(tuple, rows)),
        found["reference_sql_duckdb"],
    )


def read_selects() -> dict[str, str]:
    """The SELECTs of cases.sql, by the lines above them."""
    text = Path(__file__).with_name("cases.sql").read_text(encoding="utf-8")
    return dict(re.findall(r"^-- (\S+/.+)\n([^;]+);$", text, re.MULTILINE))


def comparable(rows: Sequence[Row]) -> Counter[Row]:
    """Rows without their order; a number is a number and a time is a time, whatever holds it."""
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: object) -> object:
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d", value):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, float | Decimal):
        return Decimal(f"{value:.{SIGNIFICANT}g}")
    return value
