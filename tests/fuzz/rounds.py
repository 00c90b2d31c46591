"""One round: a catalog and its records through the real texts, each view against Spark's answer to its SELECT."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg2
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lamina.testing.duckdb_queries import agree
from tests.fuzz.duck import Duck
from tests.fuzz.joins import SOURCES
from tests.fuzz.values import SOURCE
from tests.laws.engines import Engines, Record, Row, cells_table, in_order, ordered, quick, same, types_in
from view_algebra import Catalog, View, compile_catalog

Batches = Sequence[Sequence[Record]]
UNANSWERED = "unanswered"
"""The kind of a SELECT at which Spark itself fails, so that there is nothing to compare."""

LARGE = 1e15
"""Only doubles below it are compared to four digits after the point."""

LAST = 9
"""The generation into which micro-batches are merged in the opposite order."""


@dataclass(frozen=True)
class Round:
    """Views by name, and the records of `s` in micro-batches. `others`: the records of the other sources of joins."""

    views: Mapping[str, str]
    batches: Batches
    others: Mapping[str, Batches] = field(default_factory=dict)

    def catalog(self) -> Catalog:
        """The compiled catalog. Raises Refused."""
        return compile_catalog({"fuzz.sql": catalog_text(self.views, joined=bool(self.others))})

    @property
    def records(self) -> Mapping[str, Batches]:
        """The records of all sources."""
        return {"s": self.batches, **self.others}

    def only(self, *names: str) -> Round:
        """The round with these views, and the views that they read."""
        kept: dict[str, str] = {}
        reads = {n: [r for r in v.reads if r in self.views] for n, v in self.catalog().views.items()}
        todo = list(names)
        while todo:
            name = todo.pop()
            kept[name] = self.views[name]
            todo += [other for other in reads[name] if other not in kept]
        return replace(self, views={n: s for n, s in self.views.items() if n in kept})


@dataclass(frozen=True)
class Finding:
    """A view whose rows differ from its SELECT, or that raised. `kind`: a wrong result, or the step that raised."""

    view: str
    kind: str
    error: str = ""
    expected: Sequence[Row] = ()
    actual: Sequence[Row] = ()


def catalog_text(views: Mapping[str, str], *, joined: bool = False) -> str:
    """The declarations of a round."""
    return (
        SOURCE
        + (SOURCES if joined else "")
        + "".join(f"CREATE VIEW {name} AS\n{select};\n" for name, select in views.items())
    )


def session(spark: SparkSession) -> SparkSession:
    """A session for little data: one partition, and no code is compiled for a plan that runs once."""
    return quick(spark.newSession())


def check(engines: Engines, duck: Duck, round_: Round) -> list[Finding]:
    """The faults of a round's views. Halving finds a view that raises."""
    catalog = round_.catalog()
    try:
        _run(engines, catalog, round_.records)
    except (psycopg2.Error, PySparkException, Py4JError, AssertionError) as error:
        engines.connection.rollback()
        names = list(round_.views)
        if len(names) == 1:
            return [Finding(names[0], "running", _first(error))]
        halves = [names[: len(names) // 2], names[len(names) // 2 :]]
        smaller = [part for half in halves if len((part := round_.only(*half)).views) < len(names)]
        if not smaller:
            return [Finding(names[-1], "running", _first(error))]
        findings = {finding.view: finding for part in smaller for finding in check(engines, duck, part)}
        return list(findings.values()) or [Finding(names[-1], "running together", _first(error))]
    values = [value for batch in round_.batches for value in batch if isinstance(value, bytes | None)]
    filled = duck if duck.fill(engines.spark, values) else None
    if filled is not None and round_.others:
        filled.fill_others(engines.spark)
    wrong = [finding for view in in_order(catalog) if (finding := _compared(engines, filled, view)) is not None]
    of_tables = [replace(fault, view=min(round_.views)) for fault in wrong if fault.view not in round_.views]
    return [fault for fault in wrong if fault.view in round_.views] or of_tables


def _run(engines: Engines, catalog: Catalog, records: Mapping[str, Batches]) -> None:
    """Writes each micro-batch into its own generation, and merges the generations in two orders."""
    with engines.connection.cursor() as cursor:
        for schema in ("analytics", "cells"):
            cursor.execute(f"DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema}")
    engines.deploy(catalog, generations=LAST)
    own = list(range(2, 2 + max(map(len, records.values()))))
    for name, batches in records.items():
        offset = 0
        for number, batch in enumerate(batches, 2):
            engines.feed(catalog, {name: [batch]}, number, offset)
            offset += len(batch)
    for view in in_order(catalog):
        for table in view.cell_tables:
            for into, order in ((1, own), (LAST, own[::-1])):
                for number in order:
                    engines.merge_cells(table, into, number)
    for name, batches in records.items():
        engines.from_memory(catalog.sources[name], [value for batch in batches for value in batch])


def _compared(engines: Engines, duck: Duck | None, view: View) -> Finding | None:
    try:
        frame = engines.spark.sql(view.spelled).toDF(*(c.name for c in view.columns))
        frame.createOrReplaceTempView(view.name)
        kinds = types_in(frame)
        declared = [c.spark.upper() for c in view.columns]
        if any(re.sub("[ `]", "", a) != re.sub("[ `]", "", b) for a, b in zip(kinds, declared, strict=True)):
            return Finding(view.name, "types", f"Spark has {kinds}, declared are {declared}")
        expected = engines.expected(view)
    except PySparkException as error:
        return Finding(view.name, "Spark", _first(error))
    except Py4JError as error:
        return Finding(view.name, UNANSWERED, _first(error))
    try:
        actual = _as_spark_has_floats(engines.actual(view), view)
    except psycopg2.Error as error:
        return Finding(view.name, "reading", _first(error), expected)
    except AssertionError:
        return Finding(view.name, "types of columns", view.final)
    if not alike(expected, actual):
        return Finding(view.name, "result", expected=expected, actual=actual)
    second = duck.answer(view) if duck is not None else None
    if second is not None and not agree(expected, second):
        return Finding(view.name, "DuckDB", expected=second, actual=actual)
    for table in view.cell_tables:
        forward, backward = engines.cells(table, 1), engines.cells(table, LAST)
        if not alike(forward, backward):
            return Finding(view.name, "order of merging", cells_table(table, LAST), forward, backward)
    return None


def _as_spark_has_floats(rows: Sequence[Row], view: View) -> list[Row]:
    """The rows with floats as Spark returns them. Postgres writes the fewest digits that distinguish a `real`."""
    floats = [c.spark == "FLOAT" for c in view.columns]

    def exact(value: Any, is_float: bool) -> Any:
        return struct.unpack("f", struct.pack("f", value))[0] if is_float and isinstance(value, float) else value

    return ordered([tuple(exact(v, f) for v, f in zip(row, floats, strict=True)) for row in rows])


def alike(expected: Sequence[Row], actual: Sequence[Row]) -> bool:
    """True for equal rows. Doubles may differ after four digits, because large ones cancel out."""
    if same(expected, actual):
        return True
    rows = [[[_rounded(v) for v in row] for row in ordered(list(rows))] for rows in (expected, actual)]
    left, right = (ordered([tuple(row) for row in side]) for side in rows)
    return same(left, right)


def _rounded(value: Any) -> Any:
    """A double without the digits that adding the numbers of `records.py` loses."""
    return (round(value, 4) + 0.0) if isinstance(value, float) and abs(value) < LARGE else value


def _first(error: Exception) -> str:
    return f"{type(error).__name__}: " + "\n".join(str(error).strip().splitlines()[:6])
