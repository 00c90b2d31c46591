"""`lamina test`: the tests beside the views of a catalog, each run in the ways by which a view comes to its rows.

live      micro-batches of random sizes, as the speed layer computes and commits them
batch     a rebuild: partials over all records, loaded into a new generation, which is handed over
duckdb    the author's SELECT in an engine that knows nothing of ours, where it means the same there

Each test has a database of its own. Kafka is not needed.
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

from batch_layer.check import Row, compare, shown_columns
from batch_layer.compute import counting
from batch_layer.rebuild import BatchLayer
from batch_layer.stalls import Watch, Work
from lamina.catalogs import catalog_files
from lamina.render import plain
from lamina.settings import Settings
from lamina.spark import kill, session
from lamina.testing import duck
from lamina.testing.fixtures import ENDING, Fixture, Line, Record, fixtures
from lamina.testing.scratch import Scratch, admitted, scratch
from master_log import log_times
from master_log.archive import MasterLog
from master_log.causes import interrupted_at_once
from master_log.decoding import given_as_json
from master_log.kafka import Brokers
from master_log.offsets import OffsetRange, Offsets
from master_log.reading import parsed
from serving_layer.catalog.deployed import deployed
from serving_layer.change import registry
from serving_layer.narration.waiting import waiting
from serving_layer.postgres.database import Connection, Database, PostgresError, first_line
from serving_layer.promise import duplicates, generations, progress
from serving_layer.promise.duplicates import Found
from serving_layer.promise.micro_batch import MicroBatch, Outcome, commit, maintained
from serving_layer.promise.queries import Topic
from serving_layer.promise.rebuilds import Scheduler
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
"""Bytes from which on given rows are read when a query runs, as Kafka's are; of fewer, Spark computes as it plans."""

QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
}
"""For few records: one partition, and no code is compiled for a plan that runs once."""

MOST_MICRO_BATCHES = 3
"""Of a source, in a test: each takes Spark some tenths of a second."""

Rows = Mapping[str, list[Row]]


@dataclass(frozen=True)
class Compared:
    """What one way gave for one view of a test: `missing` rows are expected only, `surplus` rows are there only.

    columns: those that the test names, and that were compared. left_out: why the way was not gone, or empty.
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
        """True unless the way was gone and gave other rows."""
        return not self.missing and not self.surplus

    @property
    def result(self) -> str:
        """`equal`, `DIFFERENT` or `left out`."""
        return "left out" if self.left_out else "equal" if self.equal else "DIFFERENT"

    @property
    def difference(self) -> list[str]:
        """A line for each row that is missing (-) or surplus (+)."""
        sides = (("-", self.missing), ("+", self.surplus))
        return [f"{sign} {json.dumps(self.named(row), ensure_ascii=False)}" for sign, rows in sides for row in rows]

    def record(self) -> dict[str, Any]:
        """All of it, as JSON holds it."""
        sides = {"missing": self.missing, "surplus": self.surplus}
        rows = {side: [self.named(row) for row in given] for side, given in sides.items()}
        told = {"test": self.test, "view": self.view, "way": self.way, "rows": self.rows, "result": self.result}
        return {**told, **rows, "left_out": self.left_out}

    def named(self, row: Row) -> dict[str, Any]:
        """A row as JSON holds it."""
        values = (v if isinstance(v, (dict, list, bool, int, float, str, type(None))) else plain(v) for v in row)
        return dict(zip(self.columns, values, strict=True))


def run(folder: Path, names: Sequence[str], seed: int, tell: Callable[[str], None]) -> list[Compared]:
    """Runs the tests in the folder of a catalog whose names begin with one of `names`; all, when there is none."""
    catalog = compile_catalog(catalog_files(folder))
    wanted = tests_of(folder, catalog, names)
    with engines(tell) as (spark, server):
        runner = Runner(catalog, spark, server, seed)
        found = [compared for each in wanted for compared in runner.watched(each, tell)]
    tell_seed(found, seed, tell)
    return found


def tests_of(folder: Path, catalog: Catalog, names: Sequence[str]) -> list[Fixture]:
    """The tests in a folder whose names begin with one of `names`. Raises LaminaError if there are none."""
    wanted = [each for each in fixtures(folder, catalog) if not names or _is_named(each, tuple(names))]
    if not wanted:
        raise LaminaError(
            f"There is no test in {folder}" + (f" whose name begins with {' or '.join(names)}" if names else ""),
            evidence=f"wanted files *{ENDING} beside the .sql files",
            way_out="Write `-- given SOURCE` with JSON lines below it, and `-- expect VIEW` with the rows.",
        )
    return wanted


def any_seed() -> int:
    """A seed for those who name none."""
    return random.SystemRandom().randrange(10**6)


def tell_seed(found: Sequence[Compared], seed: int, tell: Callable[[str], None]) -> None:
    """Tells the seed by which failed tests can be repeated."""
    if not all(each.equal for each in found):
        tell(f"the micro-batches of these tests are cut by --seed {seed}")


@contextmanager
def engines(tell: Callable[[str], None]) -> Iterator[tuple[SparkSession, Scratch]]:
    """Spark and a Postgres with Lamina in it, started at the same time, until the block ends."""
    home = Settings.home_of().absolute()
    settings = Settings("", None, "nowhere:0", "", "local[2]", home, embedded=False)
    admitted(home)
    with ExitStack() as running:
        with waiting(tell, "starting Postgres and Spark for the tests"), ThreadPoolExecutor(1) as beside:
            server = beside.submit(running.enter_context, scratch(home))
            spark = session(settings, "lamina test", short_lived=True, log=False)
            running.callback(_stop, spark)
            server.result()
        yield spark, server.result()


def _stop(spark: SparkSession) -> None:
    with suppress(Py4JError, ConnectionError):  # it was ended because it stood still
        spark.stop()


def _not_found(work: Work, over: threading.Event) -> None:
    """The records of a test are few, and a person can look at them."""


def _is_named(each: Fixture, names: tuple[str, ...]) -> bool:
    return each.name.startswith(names) or Path(each.name).name.startswith(names)


@dataclass(frozen=True)
class Runner:
    """Runs the tests of a catalog; `seed` decides how records fall into micro-batches."""

    catalog: Catalog
    spark: SparkSession
    scratch: Scratch
    seed: int

    def watched(self, fixture: Fixture, tell: Callable[[str], None]) -> list[Compared]:
        """All ways of one test. Spark is ended if it stands still, and `Stalled` is raised."""
        with Watch(lambda: self.spark, kill, _not_found, tell)(Work(fixture.name, {})):
            return self.run(fixture)

    def run(self, fixture: Fixture) -> list[Compared]:
        """All ways of one test."""
        for key, value in QUICK.items():
            self.spark.conf.set(key, value)
        catalog = needed(self.catalog, fixture.expect)
        raw = {name: self._raw(source, fixture.given.get(name, ())) for name, source in catalog.sources.items()}
        with self.scratch.database() as (database, dsn):
            _deploy(database, catalog)
            database.retrying(generations.keep_all)  # however old the records of a test are
            with database.begin() as connection:
                expected = {n: _expected(connection, catalog.views[n], lines) for n, lines in fixture.expect.items()}
            counts = {name: len(fixture.given.get(name, ())) for name in catalog.sources}
            _stream(database, catalog, raw, _micro_batches(counts, self._random(fixture)))
            live = _compared(database, fixture, expected, "live")
            _rebuild(BatchLayer(database, Brokers("nowhere:0"), lambda: self.spark, lambda: _log(raw), dsn))
            batch = _compared(database, fixture, expected, "batch")
        return [*live, *batch, *_by_duckdb(catalog, raw, fixture, expected)]

    def _random(self, fixture: Fixture) -> random.Random:
        return random.Random(f"{self.seed} {fixture.name}")  # noqa: S311 (nothing is secret)

    def _raw(self, source: Source, records: Sequence[Record]) -> DataFrame:
        rows = [
            (source.topic, 0, offset, each.timestamp, each.key, each.value, each.headers)
            for offset, each in enumerate(records)
        ]
        return given_as_json(log_times.of_raw(raw_records(self.spark, rows), source.topic, {}), source)


def raw_records(spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Raw records of these values, in the order of `RAW`: a query that reads them starts no Python process."""
    table = pa.Table.from_pylist([dict(zip(RAW.names, row, strict=True)) for row in rows], RAW)
    spark.conf.set(LOCAL, 0)
    try:
        return spark.createDataFrame(table)
    finally:
        spark.conf.unset(LOCAL)


def needed(catalog: Catalog, views: Iterable[str]) -> Catalog:
    """The part of a catalog that these views are made of."""
    wanted, todo = set[str](), list(views)
    while todo:
        name = todo.pop()
        todo += [each for each in catalog.views[name].reads if each not in wanted]
        wanted.add(name)
    chosen = {name: replace(each, checks=()) for name, each in catalog.views.items() if name in wanted}
    sources = {source for each in chosen.values() for source in each.sources}
    return Catalog({name: each for name, each in catalog.sources.items() if name in sources}, chosen)


def _deploy(database: Database, catalog: Catalog) -> None:
    topics = {name: Topic(each.topic, Offsets.of(each.topic, {0: 0})) for name, each in catalog.sources.items()}
    database.retrying(lambda connection: registry.apply(connection, {}, catalog, topics))


def _micro_batches(counts: Mapping[str, int], chosen: random.Random) -> list[tuple[str, int, int]]:
    """Sources, each with a range of offsets: a source's ranges in their order, the sources in any.

    >>> _micro_batches({"a": 1, "b": 0}, random.Random(1))
    [('a', 0, 1)]
    """
    ranges = {}
    for name, count in counts.items():
        between = range(1, count)
        cuts = sorted(chosen.sample(between, chosen.randint(0, min(MOST_MICRO_BATCHES - 1, len(between)))))
        ranges[name] = list(zip([0, *cuts], [*cuts, count], strict=True)) if count else []
    turns = [name for name, each in ranges.items() for _ in each]
    chosen.shuffle(turns)
    return [(name, *ranges[name].pop(0)) for name in turns]


def _stream(
    database: Database,
    catalog: Catalog,
    raw: Mapping[str, DataFrame],
    micro_batches: Sequence[tuple[str, int, int]],
) -> None:
    """Every micro-batch through the code of the speed layer and into its one transaction."""
    with database.begin() as connection:
        fences = {name: progress.take_over(connection, name, "lamina test") for name in catalog.sources}
        fed = {name: {each.cell_table for each in maintained(connection, name)} for name in catalog.sources}
    tables = [table for view in catalog.views.values() for table in view.cell_tables]
    for name, start, end in micro_batches:
        source = catalog.sources[name]
        statements = Statements.of(source, [table for table in tables if table.name in fed[name]])
        given = raw[name].where(f"offset >= {start} AND offset < {end}")
        effect = statements.compute(given, functools.partial(_found, database, source))
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


def _found(database: Database, source: Source, ids: pa.Table) -> Found:
    with database.begin() as connection:
        return duplicates.find(connection, source, ids)


@dataclass(frozen=True)
class _Log:
    """A master log that holds the records of a test."""

    raw: Mapping[str, DataFrame]

    def records_below(self, source: Source, cut: Offsets, *, since: Offsets | None = None) -> DataFrame:  # noqa: ARG002
        """All of them: they begin at the first offset and end at progress."""
        return parsed(self.raw[source.name], source)


def _log(raw: Mapping[str, DataFrame]) -> MasterLog:
    return cast("MasterLog", _Log(raw))


def _rebuild(batch: BatchLayer) -> None:
    """The steps of a rebuild but those that need Kafka's records, or that compare with what is read."""
    quiet = replace(batch, tell=lambda line: None)
    id = quiet.seal(by=Scheduler())
    batch.database.retrying(generations.keep_all)
    for each in quiet.generations(id):
        quiet.compute(id, each.view)
    quiet.go_live(id)
    quiet.hand_over(id, anyway=True)


def _chosen(view: View, lines: Sequence[Line]) -> View:
    """A view with only those columns that the rows of a test name; all of them, where it expects no row."""
    named = {name: line.place for line in lines for name in line.value}
    columns = [column.name for column in view.columns]
    for name, place in named.items():
        if name not in columns:
            raise LaminaError(f"{place}: {view.name} has no column {name}", way_out=suggestion(name, columns))
    return replace(view, columns=tuple(each for each in view.columns if each.name in named or not named))


def _expected(connection: Connection, whole: View, lines: Sequence[Line]) -> list[Row]:
    """The rows that a test expects, each value of its column's type, as Postgres reads it in JSON."""
    view = _chosen(whole, lines)
    types = ", ".join(f"{quoted(each.name)} {_unbounded(each.postgres)}" for each in view.columns)
    query = f"SELECT {shown_columns(view)} FROM jsonb_to_recordset(".replace("%", "%%") + "%s::jsonb"
    rows: list[Row] = []
    for line in lines:
        try:
            with connection.begin_nested():
                told = connection.exec_driver_sql(
                    query + f") AS expected ({types})".replace("%", "%%"), (json.dumps([line.value]),)
                )
                rows += [tuple(row) for row in told]
        except PostgresError as error:
            what = f"{line.place}: a value does not fit its column of {view.name}"
            way_out = f"The columns are {types}."
            raise LaminaError(what, evidence=first_line(error), way_out=way_out) from error
    return rows


def _unbounded(kind: str) -> str:
    """A type that rounds and cuts nothing: a test that expects more digits than there are is to fail.

    >>> _unbounded("numeric(31,2)"), _unbounded("timestamptz")
    ('numeric', 'timestamptz')
    """
    return re.sub(r"\(.*?\)", "", kind)


def _compared(database: Database, fixture: Fixture, expected: Rows, way: str) -> list[Compared]:
    found = []
    with database.snapshot() as connection:
        catalog = deployed(connection)
        for name, lines in fixture.expect.items():
            view = _chosen(catalog.views[name], lines)
            shown = views.rows(connection, name, shown_columns(view))
            compared = compare(view, expected[name], shown, Offsets({}))
            columns = [column.name for column in view.columns]
            tested = Compared(fixture.name, name, way, columns, len(shown), compared.missing, compared.surplus)
            found.append(tested)
    return found


def _by_duckdb(catalog: Catalog, raw: Mapping[str, DataFrame], fixture: Fixture, expected: Rows) -> list[Compared]:
    """What DuckDB gives, of the views for which it is asked."""
    asked = needed(catalog, [name for name in fixture.expect if duck.translated_view(catalog.views[name])])
    records = {
        source.records: interrupted_at_once(counting(parsed(raw[name], source), source).toArrow)
        for name, source in asked.sources.items()
    }
    try:
        answers, why = duck.answers(records, asked.views.values()), "something in its SQL may mean another there"
    except ImportError:
        answers, why = {}, "DuckDB is not installed (`pip install duckdb`)"
    found = []
    for name, lines in fixture.expect.items():
        view = catalog.views[name]
        columns = [column.name for column in _chosen(view, lines).columns]
        if name not in answers:
            found.append(Compared(fixture.name, name, "duckdb", columns, left_out=why))
            continue
        places = [number for number, column in enumerate(view.columns) if column.name in columns]
        rows = [tuple(row[place] for place in places) for row in answers[name]]
        missing, surplus = duck.differing(expected[name], rows)
        found.append(Compared(fixture.name, name, "duckdb", columns, len(rows), missing, surplus))
    return found
