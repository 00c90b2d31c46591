"""`lamina check`: the promise, tested.

The author's whole SELECT, run by Spark over every record below the progress that was read with the view in one
snapshot, equals what the view shows. Every row is compared.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from batch_layer.comparison import Row, RowDifference, compare, shown_columns
from batch_layer.compute import records_that_count
from batch_layer.selects import not_served, rows_of, select, set_clock, work_of
from batch_layer.stalls import Stalled, Watching, unwatched
from master_log.causes import SPARK_ERRORS
from master_log.kafka.brokers import Brokers
from master_log.log import MasterLog
from master_log.offsets import Offsets, Skipped
from serving_layer.catalog import lookup
from serving_layer.catalog.deployed import deployed
from serving_layer.change import previews
from serving_layer.postgres.database import Connection, Database, PostgresError, is_unavailable, unreadable_time
from serving_layer.promise import history, progress, skipping
from serving_layer.readers import views
from view_algebra.compiled import Catalog, View
from view_algebra.errors import LaminaError, Unknown
from view_algebra.language.quoting import spark_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


EXAMPLES = 5
"""Rows of each side that are shown if they differ."""


@dataclass(frozen=True)
class CheckResult:
    """The result for one view: `missing` rows are in the SELECT's result only, `surplus` rows in the view only.

    skipped: the number of skipped records below progress, which are on neither side
    failure: the error with which Spark or Postgres could not compute the rows
    begins: by source, its first offsets, if they are above 0
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
        """True if the view shows the rows of its SELECT."""
        return self.failure is None and not self.differs

    @property
    def differs(self) -> bool:
        """True if a row is on one side only."""
        return bool(self.missing or self.surplus)


def check(
    database: Database,
    started: Callable[[], tuple[SparkSession, MasterLog]],
    brokers: Brokers,
    names: Iterable[str] = (),
    preview: str | None = None,
    *,
    watching: Watching = unwatched,
    done: Callable[[CheckResult], None] = lambda _: None,
) -> list[CheckResult]:
    """Checks the named views, or all that are served, as of one snapshot of Postgres.

    A view whose rows cannot be computed has a `failure`, and the other views still have results.

    started: returns Spark, once the names are valid and again after `watching` has ended it
    preview: checks the views of this preview instead of the deployed ones
    done: takes each result as it comes
    """
    with TemporaryDirectory(prefix="lamina-check-") as folder:
        shown = _KeptRows(Path(folder))
        request = _read(database, names, preview, shown)
        spark, log = started()
        failures = {**_select_views(request, spark, log, brokers), **request.failures}
        results = []
        for name in request.wanted:
            result = _compare_view(spark, request, name, shown, failures.get(name), watching)
            if isinstance(result.failure, Stalled) and name not in failures:
                failures |= _with_readers(request.catalog, name, result.failure)
                if not failures.keys() >= set(request.wanted):
                    spark, log = started()
                    _select_views(request, spark, log, brokers)
            results.append(result)
            done(result)
        return results


@dataclass(frozen=True)
class _KeptRows:
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
class _Request:
    """The views to check and the offsets of their sources, read in one snapshot.

    log_begins, topic_ids: those of the sources' topics
    since: the time of each view's first groups
    clock: the value of `now()`
    failures: by view, the error with which Postgres could not compute it
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


def _read(database: Database, names: Iterable[str], preview: str | None, shown: _KeptRows) -> _Request:
    """Reads views and progress in one snapshot, and keeps the rows of the views."""
    with database.snapshot() as connection:
        catalog = deployed(connection) if preview is None else previews.get(connection, preview)
        served = views.served_views(connection) if preview is None else set(catalog.views)
        wanted = list(names) or [name for name in catalog.views if name in served]
        for name in wanted:
            if name not in catalog.views:
                raise Unknown("view", name, sorted(served), state="served", way_out="`lamina status` lists the views.")
            if name not in served:
                raise not_served(name, "served: " + (", ".join(sorted(served)) or "none"))
        sources = sorted({source for name in wanted for source in catalog.views[name].sources})
        below = {source: progress.read(connection, [source]) for source in sources}
        starts = {source: progress.starts(connection, [source]) for source in sources}
        log_begins = {source: progress.begins(connection, catalog.sources[source].topic) for source in sources}
        begins = _kept_since(connection, preview)
        skipped = skipping.read(connection)
        topic_ids = {name: query.topic_id for name, query in progress.queries(connection).items()}
        failures: dict[str, Exception] = {}
        clock = history.snapshot_time(connection)
        for name in wanted:
            columns = shown_columns(catalog.views[name])
            try:
                with connection.begin_nested():
                    shown.keep(name, views.rows(connection, name, columns, schema=preview or "analytics"))
            except (PostgresError, LaminaError) as error:
                if is_unavailable(error):
                    raise
                failures[name] = error
    return _Request(catalog, wanted, below, starts, log_begins, topic_ids, begins, skipped, clock, failures)


def _select_views(request: _Request, spark: SparkSession, log: MasterLog, brokers: Brokers) -> dict[str, Exception]:
    """Makes the records, and the SELECT of each view, tables of Spark. Returns the failures by view.

    If a view fails, so do all views that read it.
    """
    for name, below in request.below.items():
        source = request.catalog.sources[name]
        log.create(source, request.topic_ids[name], request.log_begins[name])
        records = log.records(source, below, brokers, since=request.starts[name])
        records_that_count(records, source).createOrReplaceTempView(spark_name(source.records))
    set_clock(spark, request.selected, request.clock)
    failures: dict[str, Exception] = {}
    for view in request.selected:
        failing = next((failures[name] for name in view.reads if name in failures), None)
        try:
            if failing is None:
                select(spark, view, request.since.get(view.name))
        except SPARK_ERRORS as error:
            failing = error
        if failing is not None:
            failures[view.name] = failing
    return failures


def _with_readers(catalog: Catalog, name: str, failure: Exception) -> dict[str, Exception]:
    """The failure of a view, for it and for all views that read it."""
    failures = {name: failure}
    for view in catalog.views.values():
        if failures.keys() & set(view.reads):
            failures[view.name] = failure
    return failures


def _compare_view(
    spark: SparkSession, request: _Request, name: str, shown: _KeptRows, failure: Exception | None, watching: Watching
) -> CheckResult:
    """Compares the rows of a view with those of its SELECT."""
    view = request.catalog.views[name]
    below = Offsets({at: offset for source in view.sources for at, offset in request.below[source].items()})
    number, difference = 0, RowDifference([], [])
    if failure is None:
        try:
            with watching(work_of(request.catalog, name, request.starts, request.below)):
                selected = rows_of(spark.table(name))
            rows = shown.rows(name)
            number, difference = len(rows), compare(view, selected, rows)
        except (*SPARK_ERRORS, Stalled) as error:
            failure = error
        except (ValueError, OverflowError) as error:
            failure = unreadable_time(error)
    skipped = sum(offset < below.get(at, 0) for at, offset in request.skipped)
    starts = {source: request.starts[source].positive for source in view.sources}
    begins = {source: str(start) for source, start in starts.items() if start}
    return CheckResult(name, number, below, difference.missing, difference.surplus, skipped, failure, begins)


def _kept_since(connection: Connection, preview: str | None) -> dict[str, datetime | None]:
    """The time from which each view keeps groups."""
    if preview is not None:
        return {name: version.since for name, version in previews.generations_read(connection, preview).items()}
    return {name: lookup.get(connection, id).since for name, id in lookup.published(connection).items()}
