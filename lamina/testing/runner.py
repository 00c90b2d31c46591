"""`lamina test`: runs the tests of a catalog's views in every way in which a view gets its rows.

    live      micro-batches of random sizes, as the speed layer computes and commits them
    batch     a rebuild: partials over all records, loaded into a new generation, which is handed over
    duckdb    the author's SELECT in an independent engine, if the SELECT means the same there

Each test has its own database. Kafka is not needed.
"""

from __future__ import annotations

import functools
import json
import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from py4j.protocol import Py4JError

from batch_layer.comparison import Row, compare, shown_columns
from batch_layer.compute import records_that_count
from batch_layer.rebuild import BatchLayer
from batch_layer.stalls import Watch, Work
from lamina.authoring.catalog_files import catalog_files
from lamina.configuration.settings import Settings
from lamina.spark.spark_session import kill, session
from lamina.terminal.render import plain
from lamina.testing import duckdb_queries
from lamina.testing.fixtures import ENDING, Fixture, Line, Record, fixtures
from lamina.testing.scratch import Scratch, admitted, scratch
from master_log import log_times
from master_log.causes import interrupted_at_once
from master_log.kafka import Brokers
from master_log.kafka_reader import parsed
from master_log.log import MasterLog
from master_log.offsets import OffsetRange, Offsets
from master_log.record_decoding import given_as_json
from serving_layer.catalog.deployed import deployed
from serving_layer.change import registry
from serving_layer.narration import waiting
from serving_layer.postgres.database import Connection, Database, PostgresError, first_line
from serving_layer.promise import event_ids, generations, progress
from serving_layer.promise.event_ids import IdLookup
from serving_layer.promise.micro_batch import MicroBatch, Outcome, commit, maintained
from serving_layer.promise.rebuilds import Scheduler
from serving_layer.promise.source_queries import Topic
from serving_layer.readers import views
from speed_layer.statements import Statements
from view_algebra import compile_catalog
from view_algebra.compiled import Catalog, Source, View
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import quoted
from view_algebra.refusals import suggestion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RAW = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    }
)
"""The columns of a raw record, with their types."""

LOCAL = "spark.sql.execution.arrow.localRelationThreshold"
"""Bytes from which on given rows are read when a query runs, as Kafka's are. Fewer are computed while Spark plans."""

QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
}
"""Settings for few records: one partition, and no code compiled for a plan that runs once."""

MOST_MICRO_BATCHES = 3
"""Micro-batches of one source in a test. Each takes Spark some tenths of a second."""

Rows = Mapping[str, list[Row]]


@dataclass(frozen=True)
class Compared:
    """The result of one way for one view of a test. `missing` rows were only expected, `surplus` rows were only there.

    `columns` are those that the test names, and only they were compared. `left_out` is the reason if the way was
    skipped, or empty.
    """

    test: str
    view: str
    way: str
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
        values = (v if isinstance(v, (dict, list, bool, int, float, str, type(None))) else plain(v) for v in row)
        return dict(zip(self.columns, values, strict=True))


def run(folder: Path, names: Sequence[str], seed: int, tell: Callable[[str], None]) -> list[Compared]:
    """Runs the tests in a catalog's folder whose names begin with one of `names`, or all if `names` is empty."""
    catalog = compile_catalog(catalog_files(folder))
    wanted = tests_of(folder, catalog, names)
    with engines(tell) as (spark, server):
        runner = Runner(catalog, spark, server, seed)
        results = [compared for fixture in wanted for compared in runner.run_watched(fixture, tell)]
    tell_seed(results, seed, tell)
    return results


def tests_of(folder: Path, catalog: Catalog, names: Sequence[str]) -> list[Fixture]:
    """The tests in a folder whose names begin with one of `names`. Raises LaminaError if there are none."""
    wanted = [fixture for fixture in fixtures(folder, catalog) if not names or _is_named(fixture, tuple(names))]
    if not wanted:
        raise LaminaError(
            f"There is no test in {folder}" + (f" whose name begins with {' or '.join(names)}" if names else ""),
            evidence=f"wanted files *{ENDING} next to the .sql files",
            way_out="Write `-- given SOURCE` with JSON lines below it, and `-- expect VIEW` with the rows.",
        )
    return wanted


def any_seed() -> int:
    """A random seed, for a run without --seed."""
    return random.SystemRandom().randrange(10**6)


def tell_seed(results: Sequence[Compared], seed: int, tell: Callable[[str], None]) -> None:
    """Narrates the seed for repeating failed tests."""
    if not all(result.equal for result in results):
        tell(f"the micro-batches of these tests are cut by --seed {seed}")


@contextmanager
def engines(tell: Callable[[str], None]) -> Iterator[tuple[SparkSession, Scratch]]:
    """Spark and a Postgres with Lamina in it, started at the same time and stopped when the block ends."""
    home = Settings.home_of().absolute()
    settings = Settings("", None, "nowhere:0", "", "local[2]", home, embedded=False)
    admitted(home)
    with ExitStack() as running:
        with waiting(tell, "starting Postgres and Spark for the tests"), ThreadPoolExecutor(1) as starting:
            server = starting.submit(running.enter_context, scratch(home))
            spark = session(settings, "lamina test", short_lived=True, log=False)
            running.callback(_stop, spark)
            server.result()
        yield spark, server.result()


def _stop(spark: SparkSession) -> None:
    with suppress(Py4JError, ConnectionError):  # it was killed because it stood still
        spark.stop()


def _no_record(work: Work, over: threading.Event) -> None:
    """Finds nothing: a test has few records, and a person can look at them."""


def _is_named(fixture: Fixture, names: tuple[str, ...]) -> bool:
    return fixture.name.startswith(names) or Path(fixture.name).name.startswith(names)


@dataclass(frozen=True)
class Runner:
    """Runs the tests of a catalog. `seed` decides the sizes of the micro-batches."""

    catalog: Catalog
    spark: SparkSession
    scratch: Scratch
    seed: int

    def run_watched(self, fixture: Fixture, tell: Callable[[str], None]) -> list[Compared]:
        """Runs one test in all ways. If Spark stands still, ends it and raises `Stalled`."""
        with Watch(lambda: self.spark, kill, _no_record, tell)(Work(fixture.name, {})):
            return self.run(fixture)

    def run(self, fixture: Fixture) -> list[Compared]:
        """Runs one test in all ways."""
        for key, value in QUICK.items():
            self.spark.conf.set(key, value)
        catalog = needed(self.catalog, fixture.expect)
        raw = {name: self._raw(source, fixture.records.get(name, ())) for name, source in catalog.sources.items()}
        with self.scratch.database() as (database, dsn):
            _deploy(database, catalog)
            database.retrying(generations.keep_all)  # a test's records may be of any age
            with database.begin() as connection:
                expected = {n: _expected(connection, catalog.views[n], lines) for n, lines in fixture.expect.items()}
            counts = {name: len(fixture.records.get(name, ())) for name in catalog.sources}
            _stream(database, catalog, raw, _micro_batches(counts, self._random(fixture)))
            live = _compare_served(database, fixture, expected, "live")
            _rebuild(BatchLayer(database, Brokers("nowhere:0"), lambda: self.spark, lambda: _log(raw), dsn))
            batch = _compare_served(database, fixture, expected, "batch")
        return [*live, *batch, *_compare_in_duckdb(catalog, raw, fixture, expected)]

    def _random(self, fixture: Fixture) -> random.Random:
        return random.Random(f"{self.seed} {fixture.name}")  # noqa: S311 (nothing is secret)

    def _raw(self, source: Source, records: Sequence[Record]) -> DataFrame:
        rows = [
            (source.topic, 0, offset, record.timestamp, record.key, record.value, record.headers)
            for offset, record in enumerate(records)
        ]
        return given_as_json(log_times.of_raw(raw_records(self.spark, rows), source.topic, {}), source)


def raw_records(spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Raw records of these values, in the order of `RAW`. A query that reads them starts no Python process."""
    table = pa.Table.from_pylist([dict(zip(RAW.names, row, strict=True)) for row in rows], RAW)
    spark.conf.set(LOCAL, 0)
    try:
        return spark.createDataFrame(table)
    finally:
        spark.conf.unset(LOCAL)


def needed(catalog: Catalog, views: Iterable[str]) -> Catalog:
    """The part of a catalog that these views need."""
    wanted, todo = set[str](), list(views)
    while todo:
        name = todo.pop()
        todo += [read for read in catalog.views[name].reads if read not in wanted]
        wanted.add(name)
    chosen = {name: replace(view, checks=()) for name, view in catalog.views.items() if name in wanted}
    sources = {source for view in chosen.values() for source in view.sources}
    return Catalog({name: source for name, source in catalog.sources.items() if name in sources}, chosen)


def _deploy(database: Database, catalog: Catalog) -> None:
    topics = {name: Topic(source.topic, Offsets.of(source.topic, {0: 0})) for name, source in catalog.sources.items()}
    database.retrying(lambda connection: registry.apply(connection, {}, catalog, topics))


def _micro_batches(counts: Mapping[str, int], chosen: random.Random) -> list[tuple[str, int, int]]:
    """A random sequence of micro-batches: (source, first offset, end). A source's ranges stay in order.

    >>> _micro_batches({"a": 1, "b": 0}, random.Random(1))
    [('a', 0, 1)]
    """
    ranges = {}
    for name, count in counts.items():
        between = range(1, count)
        cuts = sorted(chosen.sample(between, chosen.randint(0, min(MOST_MICRO_BATCHES - 1, len(between)))))
        ranges[name] = list(zip([0, *cuts], [*cuts, count], strict=True)) if count else []
    turns = [name for name, source_ranges in ranges.items() for _ in source_ranges]
    chosen.shuffle(turns)
    return [(name, *ranges[name].pop(0)) for name in turns]


def _stream(
    database: Database,
    catalog: Catalog,
    raw: Mapping[str, DataFrame],
    micro_batches: Sequence[tuple[str, int, int]],
) -> None:
    """Runs every micro-batch through the speed layer's code and commits it in one transaction."""
    with database.begin() as connection:
        fences = {name: progress.take_over(connection, name, "lamina test") for name in catalog.sources}
        fed = {name: {table.cell_table for table in maintained(connection, name)} for name in catalog.sources}
    tables = [table for view in catalog.views.values() for table in view.cell_tables]
    for name, start, end in micro_batches:
        source = catalog.sources[name]
        statements = Statements.of(source, [table for table in tables if table.name in fed[name]])
        records = raw[name].where(f"offset >= {start} AND offset < {end}")
        effect = statements.compute(records, functools.partial(_counted_ids, database, source))
        batch = MicroBatch(
            query=name,
            fence=fences[name],
            range=OffsetRange(Offsets.of(source.topic, {0: start}), Offsets.of(source.topic, {0: end})),
            cell_tables=frozenset(fed[name]),
            staged=effect.staged,
            bad=effect.bad,
            newest=effect.newest,
            ids=effect.ids,
        )
        with database.begin() as connection:
            outcome = commit(connection, batch)
        assert outcome is Outcome.APPLIED, outcome


def _counted_ids(database: Database, source: Source, ids: pa.Table) -> IdLookup:
    with database.begin() as connection:
        return event_ids.look_up(connection, source, ids)


@dataclass(frozen=True)
class _Log:
    """A master log with the records of a test."""

    raw: Mapping[str, DataFrame]

    def records_below(self, source: Source, cut: Offsets, *, since: Offsets | None = None) -> DataFrame:  # noqa: ARG002
        """All records: they begin at the first offset and end at progress."""
        return parsed(self.raw[source.name], source)


def _log(raw: Mapping[str, DataFrame]) -> MasterLog:
    return cast("MasterLog", _Log(raw))


def _rebuild(batch: BatchLayer) -> None:
    """Runs the steps of a rebuild, except those that need Kafka's records or that compare with the published cells."""
    quiet = replace(batch, tell=lambda line: None)
    id = quiet.seal(by=Scheduler())
    batch.database.retrying(generations.keep_all)
    for generation in quiet.generations(id):
        quiet.compute(id, generation.view)
    quiet.go_live(id)
    quiet.hand_over(id, anyway=True)


def _with_columns_of(view: View, lines: Sequence[Line]) -> View:
    """A view with only those columns that a test's rows name, or with all if it expects no row."""
    named = {name: line.place for line in lines for name in line.value}
    columns = [column.name for column in view.columns]
    for name, place in named.items():
        if name not in columns:
            raise LaminaError(f"{place}: {view.name} has no column {name}", way_out=suggestion(name, columns))
    return replace(view, columns=tuple(column for column in view.columns if column.name in named or not named))


def _expected(connection: Connection, whole: View, lines: Sequence[Line]) -> list[Row]:
    """The rows that a test expects. Postgres reads each value from JSON in its column's type."""
    view = _with_columns_of(whole, lines)
    types = ", ".join(f"{quoted(column.name)} {_unbounded(column.postgres)}" for column in view.columns)
    query = f"SELECT {shown_columns(view)} FROM jsonb_to_recordset(".replace("%", "%%") + "%s::jsonb"
    rows: list[Row] = []
    for line in lines:
        try:
            with connection.begin_nested():
                parsed_rows = connection.exec_driver_sql(
                    query + f") AS expected ({types})".replace("%", "%%"), (json.dumps([line.value]),)
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


def _compare_served(database: Database, fixture: Fixture, expected: Rows, way: str) -> list[Compared]:
    results = []
    with database.snapshot() as connection:
        catalog = deployed(connection)
        for name, lines in fixture.expect.items():
            view = _with_columns_of(catalog.views[name], lines)
            shown = views.rows(connection, name, shown_columns(view))
            compared = compare(view, expected[name], shown)
            columns = [column.name for column in view.columns]
            tested = Compared(fixture.name, name, way, columns, len(shown), compared.missing, compared.surplus)
            results.append(tested)
    return results


def _compare_in_duckdb(
    catalog: Catalog, raw: Mapping[str, DataFrame], fixture: Fixture, expected: Rows
) -> list[Compared]:
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
            results.append(Compared(fixture.name, name, "duckdb", columns, left_out=reason))
            continue
        places = [number for number, column in enumerate(view.columns) if column.name in columns]
        rows = [tuple(row[place] for place in places) for row in answers[name]]
        missing, surplus = duckdb_queries.differing(expected[name], rows)
        results.append(Compared(fixture.name, name, "duckdb", columns, len(rows), missing, surplus))
    return results
