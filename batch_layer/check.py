"""`lamina check`: the promise, tested.

The author's whole SELECT, run by Spark over every record below the progress that was read with the view in one
snapshot, equals what the view shows. Every row is compared.
"""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import re
import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from batch_layer.compute import counting, kept
from batch_layer.stalls import Stalled, Watching, Work, unwatched
from master_log.causes import SPARK_ERRORS, interrupted_at_once
from master_log.kafka import Brokers
from master_log.log import MasterLog
from master_log.offsets import OffsetRange, Offsets, Skipped
from serving_layer.catalog import definitions, lookup
from serving_layer.catalog.deployed import deployed
from serving_layer.change import previews
from serving_layer.postgres.database import Connection, Database, PostgresError, is_away, unreadable_time
from serving_layer.promise import history, progress, skipping
from serving_layer.promise.overwriting import DOUBLE_TOLERANCE, ROUNDING
from serving_layer.readers import views
from view_algebra.compiled import JSON_TIMES, SHORTENED, Catalog, View
from view_algebra.errors import LaminaError, Unknown
from view_algebra.language.quoting import quoted, spark_name
from view_algebra.language.times import NOW_IN_SPARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from view_algebra.language.types import Type

EXAMPLES = 5
"""Rows of each side that are shown if they differ."""

FLOAT = "real"
"""The column type of a FLOAT in Postgres."""

FLOAT_TOLERANCE = 2**-23
"""Relative, from one float to the next: a double's last digit may decide which of the two it is rounded to."""

_SHORTENED = re.compile(rf"{SHORTENED}(?P<digest>[0-9a-f]{{64}})$")
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Checked:
    """The result for one view: `missing` rows are in the SELECT's result only, `surplus` rows in the view only.

    skipped: the number of records of its sources below progress that were skipped by name, and are in neither. failure:
    the error with which Spark or Postgres could not compute the rows. begins: by source, the offsets below which
    records are not part of it, unless they are 0.
    """

    view: str
    rows: int
    below: Offsets
    missing: Sequence[Row]
    surplus: Sequence[Row]
    skipped: int = 0
    failure: Exception | None = None
    begins: Mapping[str, str] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        """True if the view shows what its SELECT gives."""
        return self.failure is None and not self.differs

    @property
    def differs(self) -> bool:
        """True if both were computed, and a row is in one of them only."""
        return bool(self.missing or self.surplus)


def check(
    database: Database,
    started: Callable[[], tuple[SparkSession, MasterLog]],
    brokers: Brokers,
    names: Iterable[str] = (),
    preview: str | None = None,
    *,
    watching: Watching = unwatched,
    done: Callable[[Checked], None] = lambda _: None,
) -> list[Checked]:
    """Checks the named views (by default all that are served), as of one snapshot of Postgres.

    A view whose rows cannot be computed has its `failure`; the other views have their results. preview: whose views to
    check in place of the deployed ones. started: gives Spark once the names are valid, and again after `watching` has
    ended it. done: takes each result as it comes.
    """
    with TemporaryDirectory(prefix="lamina-check-") as folder:
        shown = _Shown(Path(folder))
        asked = _read(database, names, preview, shown)
        spark, log = started()
        failures = {**_select_asked(asked, spark, log, brokers), **asked.failures}
        results = []
        for name in asked.wanted:
            compared = _compared(spark, asked, name, shown, failures.get(name), watching)
            if isinstance(compared.failure, Stalled) and name not in failures:
                failures |= _with_readers(asked.catalog, name, compared.failure)
                if not failures.keys() >= set(asked.wanted):
                    spark, log = started()
                    _select_asked(asked, spark, log, brokers)
            results.append(compared)
            done(compared)
        return results


@dataclass(frozen=True)
class _Shown:
    """The rows of views in one snapshot, in files, so that the rows of one view at a time are in memory."""

    folder: Path

    def keep(self, name: str, rows: list[Row]) -> None:
        """Keeps the rows of a view."""
        self._file(name).write_bytes(pickle.dumps(rows))

    def rows(self, name: str) -> list[Row]:
        """The rows that were kept."""
        rows: list[Row] = pickle.loads(self._file(name).read_bytes())  # noqa: S301 (we have written it)
        return rows

    def _file(self, name: str) -> Path:
        return self.folder / name.encode().hex()


@dataclass(frozen=True)
class _Asked:
    """The views to check and the offsets of their sources, read in one snapshot.

    log_begins, topic_ids: of the sources' topics. since: the time of each view's first groups. clock: the value of
    `now()`. failures: by view, the error with which Postgres could not compute it.
    """

    catalog: Catalog
    wanted: Sequence[str]
    below: Mapping[str, Offsets]
    starts: Mapping[str, Offsets]
    log_begins: Mapping[str, Offsets]
    topic_ids: Mapping[str, str]
    since: Mapping[str, datetime | None]
    skipped: Skipped
    clock: datetime
    failures: Mapping[str, Exception]

    @property
    def selected(self) -> list[View]:
        """The views whose sources are read, each after the views that it reads."""
        return [view for view in self.catalog.views.values() if set(view.sources) <= self.below.keys()]

    def work(self, name: str) -> Work:
        """The computation of a view's SELECT, to be watched."""
        under = definitions.of(self.catalog, name).views.keys()
        reads = {
            source: (self.catalog.sources[source], OffsetRange.since(self.starts[source], self.below[source]))
            for source in self.catalog.views[name].sources
        }
        return Work(name, reads, [table for each in under for table in self.catalog.views[each].cell_tables])


def _read(database: Database, names: Iterable[str], preview: str | None, shown: _Shown) -> _Asked:
    """Reads views and progress in one snapshot, and keeps what the views show."""
    with database.snapshot() as connection:
        catalog = deployed(connection) if preview is None else previews.get(connection, preview)
        served = views.served_views(connection) if preview is None else set(catalog.views)
        wanted = list(names) or [name for name in catalog.views if name in served]
        for name in wanted:
            if name not in catalog.views:
                raise Unknown("view", name, sorted(served), state="served", way_out="`lamina status` lists the views.")
            if name not in served:
                raise LaminaError(
                    f"{name} is not served",
                    evidence="served: " + (", ".join(sorted(served)) or "none"),
                    way_out=f"`lamina rebuild {name}` computes it.",
                )
        sources = sorted({source for name in wanted for source in catalog.views[name].sources})
        below = {source: progress.read(connection, [source]) for source in sources}
        starts = {source: progress.starts(connection, [source]) for source in sources}
        log_begins = {source: progress.begins(connection, catalog.sources[source].topic) for source in sources}
        begins = _begins(connection, preview)
        skipped = skipping.read(connection)
        topic_ids = {name: query.topic_id for name, query in progress.queries(connection).items()}
        failures: dict[str, Exception] = {}
        clock = history.now(connection)
        for name in wanted:
            columns = shown_columns(catalog.views[name])
            try:
                with connection.begin_nested():
                    shown.keep(name, views.rows(connection, name, columns, schema=preview or "analytics"))
            except (PostgresError, LaminaError) as error:
                if is_away(error):
                    raise
                failures[name] = error
    return _Asked(catalog, wanted, below, starts, log_begins, topic_ids, begins, skipped, clock, failures)


def _select_asked(asked: _Asked, spark: SparkSession, log: MasterLog, brokers: Brokers) -> dict[str, Exception]:
    """Makes the records, and the SELECT of each view, tables of Spark; gives the failures by view."""
    for name, below in asked.below.items():
        source = asked.catalog.sources[name]
        log.create(source, asked.topic_ids[name], asked.log_begins[name])
        records = log.records(source, below, brokers, since=asked.starts[name])
        counting(records, source).createOrReplaceTempView(spark_name(source.records))
    set_clock(spark, asked.selected, asked.clock)
    return _select_each(spark, asked.selected, asked.since)


def _with_readers(catalog: Catalog, name: str, failure: Exception) -> dict[str, Exception]:
    """A failure of a view, for it and for all views that read it."""
    failures = {name: failure}
    for view in catalog.views.values():
        if failures.keys() & set(view.reads):
            failures[view.name] = failure
    return failures


def _compared(
    spark: SparkSession, asked: _Asked, name: str, shown: _Shown, failure: Exception | None, watching: Watching
) -> Checked:
    """The result of comparing the rows of a view with those of its SELECT, or its failure."""
    view = asked.catalog.views[name]
    below = _over(asked.below, view.sources)
    result = None
    if failure is None:
        try:
            with watching(asked.work(name)):
                selected = rows_of(spark.table(name))
            result = compare(view, selected, shown.rows(name), below)
        except (*SPARK_ERRORS, Stalled) as error:
            failure = error
        except (ValueError, OverflowError) as error:
            failure = unreadable_time(error)
    result = result or Checked(name, 0, below, [], [], failure=failure)
    skipped = sum(offset < below.get(at, 0) for at, offset in asked.skipped)
    begins = {source: str(asked.starts[source].positive) for source in view.sources if asked.starts[source].positive}
    return replace(result, skipped=skipped, begins=begins)


def _begins(connection: Connection, preview: str | None) -> dict[str, datetime | None]:
    """The time from which each view keeps groups."""
    if preview is not None:
        return {name: each.since for name, each in previews.generations_read(connection, preview).items()}
    return {name: lookup.get(connection, id).since for name, id in lookup.published(connection).items()}


def _select_each(
    spark: SparkSession, views: Iterable[View], since: Mapping[str, datetime | None]
) -> dict[str, Exception]:
    """Makes the SELECT of each view a table of Spark; gives the failures by view, also those of views that it reads."""
    failures: dict[str, Exception] = {}
    for view in views:
        failing = next((failures[name] for name in view.reads if name in failures), None)
        try:
            if failing is None:
                _select(spark, view, since.get(view.name))
        except SPARK_ERRORS as error:
            failing = error
        if failing is not None:
            failures[view.name] = failing
    return failures


def set_clock(spark: SparkSession, views: Iterable[View], at: datetime) -> None:
    """Sets the value of `now()` in the SELECTs of views: the time of the snapshot that they were read in."""
    if any(NOW_IN_SPARK in view.spelled for view in views):
        text = f"TIMESTAMP '{at.astimezone(UTC).isoformat()}'"
        spark.sql(f"DECLARE OR REPLACE VARIABLE lamina_now TIMESTAMP DEFAULT {text}")


def select_all(
    spark: SparkSession, views: Collection[View], since: Mapping[str, datetime | None], clock: datetime
) -> None:
    """Makes the author's SELECT of each view a table of Spark. Its records, and the views that it reads, are there.

    since: by view, the time from which it keeps groups. clock: the value of `now()`.
    """
    set_clock(spark, views, clock)
    for view in views:
        _select(spark, view, since.get(view.name))


def _select(spark: SparkSession, view: View, begins: datetime | None) -> None:
    selected = spark.sql(view.spelled).toDF(*[column.name for column in view.columns])
    rows = selected if begins is None else selected.where(kept(view.retained, begins))
    rows.createOrReplaceTempView(view.name)


def shown_columns(view: View) -> str:
    """SQL of the view's columns: a FLOAT as a double, since its text has fewer digits, and bytes as base64."""
    shown = {FLOAT: "{}::float8", "bytea": "translate(encode({}, 'base64'), E'\\n', '')"}
    return ", ".join(shown.get(column.postgres, "{}").format(quoted(column.name)) for column in view.columns)


def _over(below: Mapping[str, Offsets], sources: Sequence[str]) -> Offsets:
    return Offsets({at: offset for source in sources for at, offset in below[source].items()})


def rows_of(result: DataFrame) -> list[Row]:
    """The rows of the author's SELECT, nested values as the JSON that the view shows, and bytes in base64."""
    from pyspark.sql.functions import base64, col, to_json, translate

    kinds = [field.dataType.typeName() for field in result.schema]
    nested = [kind in ("struct", "array", "map") for kind in kinds]
    as_shown = {"binary": lambda name: translate(base64(name), "\r\n", "")}
    as_shown |= dict.fromkeys(("struct", "array", "map"), lambda name: to_json(name, JSON_TIMES))
    names = [f"`{column}`" for column in result.columns]
    selected = result.select([as_shown.get(kind, col)(name) for name, kind in zip(names, kinds, strict=True)])
    table = interrupted_at_once(selected.toArrow)
    columns = [
        [None if value is None else json.loads(value) for value in column.to_pylist()] if json_ else column.to_pylist()
        for column, json_ in zip(table.columns, nested, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else []


def compare(view: View, wanted: list[Row], shown: list[Row], below: Offsets) -> Checked:
    """Compares multisets of rows: equal rows cancel, and the others are paired within the tolerance of doubles."""
    inside = {n: kind for n, column in enumerate(view.columns) if (kind := _with_fractions(column.spark)) is not None}
    if inside:
        wanted, shown = ([_row_as_held(row, inside) for row in rows] for rows in (wanted, shown))
    left, right = Counter(map(exact, wanted)), Counter(map(exact, shown))
    missing, surplus = list((left - right).elements()), list((right - left).elements())
    tolerances = [FLOAT_TOLERANCE if column.postgres == FLOAT else DOUBLE_TOLERANCE for column in view.columns]
    unmatched = []
    candidates: dict[Row, list[Row]] = {}
    for row in surplus:
        candidates.setdefault(tuple(map(_as_shown, row)), []).append(row)
    for row in missing:
        near = candidates.get(tuple(map(_as_selected, row)), [])
        match = next((other for other in near if _near(row, other, tolerances, ROUNDING if view.rounded else 0)), None)
        if match is None:
            unmatched.append(row)
        else:
            near.remove(match)
    return Checked(view.name, len(shown), below, unmatched, [row for rows in candidates.values() for row in rows])


def _with_fractions(spark: str) -> Type | None:
    """The type of a column, if it is nested and has a FLOAT or a DOUBLE inside."""
    if spark in ("FLOAT", "DOUBLE") or not any(kind in spark for kind in ("FLOAT", "DOUBLE")):
        return None
    from sqlglot import exp

    from view_algebra.language.types import read

    return read(exp.DataType.build(spark, dialect="spark"))


def _row_as_held(row: Row, inside: Mapping[int, Type]) -> Row:
    """A row with its nested fractions as numbers, since the engines print them differently.

    Spark prints a FLOAT as 1.4E-45 and Postgres as 1e-45; jsonb prints all digits of the DOUBLE 1e39.
    """
    return tuple(_as_held(value, inside[n]) if n in inside else value for n, value in enumerate(row))


def _as_held(value: Any, kind: Type) -> Any:
    if kind.name == "FLOAT" and isinstance(value, (int, float)):
        [held] = struct.unpack("f", struct.pack("f", value))
        return held
    if kind.name == "DOUBLE" and isinstance(value, int):
        return float(value)
    if isinstance(value, list) and kind.element is not None:
        return [_as_held(item, kind.element) for item in value]
    if isinstance(value, dict) and kind.name == "MAP" and kind.element is not None:
        return {key: _as_held(item, kind.element) for key, item in value.items()}
    if isinstance(value, dict):
        fields = dict(kind.fields)
        return {key: _as_held(item, fields[key]) if key in fields else item for key, item in value.items()}
    return value


def exact(row: Row) -> Row:
    """A hashable row that equals every row with the same values, NaN and nested ones included."""
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else _hashable(value) for value in row)


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((key, _hashable(item)) for key, item in value.items()))
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value  # which Postgres cannot hold


def _as_selected(value: Any) -> Any:
    """A value that is equal for values within the tolerances: the type of a double, the digest of a text."""
    if isinstance(value, str):
        return hashlib.sha256(value.encode()).hexdigest()
    if isinstance(value, list):
        return tuple(_as_selected(float(item) if isinstance(item, int) else item) for item in value)
    return float if isinstance(value, float) else _hashable(value)


def _as_shown(value: Any) -> Any:
    if isinstance(value, str) and (shortened := _SHORTENED.search(value)):
        return shortened["digest"]
    return _as_selected(value)


def _near(row: Row, other: Row, tolerances: Sequence[float], rounding: float) -> bool:
    return all(_close(a, b, tolerance, rounding) for a, b, tolerance in zip(row, other, tolerances, strict=True))


def _close(a: Any, b: Any, tolerance: float, rounding: float) -> bool:
    """True if two values with the same `_as_selected` are within the tolerance."""
    if isinstance(a, list):
        return len(a) == len(b) and all(_close(x, y, tolerance, rounding) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=rounding)
    return bool(a == b) if isinstance(a, int) else True  # other values are equal if `_as_selected` is
