"""`lamina test`: runs the tests of a catalog's views in every way in which a view gets its rows.

    live      micro-batches of random sizes, as the speed layer computes and commits them
    batch     a rebuild: partials over all records, loaded into a new generation, which is handed over
    duckdb    the author's SELECT in an independent engine, if the SELECT means the same there

Each test has its own database. Kafka is not needed.
"""

from __future__ import annotations

import functools
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError

from batch_layer.rebuild import BatchLayer
from batch_layer.stalls import StallWatch, Work
from lamina.authoring.catalog_files import catalog_files
from lamina.configuration.settings import Settings
from lamina.spark.spark_session import kill, session
from lamina.testing.fixtures import Fixture, Record, needed, tests_of
from lamina.testing.results import Comparison, compare_in_duckdb, compare_served, expected_rows
from lamina.testing.scratch import Scratch, make_folder, scratch
from master_log.kafka.brokers import Brokers
from master_log.log import MasterLog
from master_log.offsets import OffsetRange, Offsets
from master_log.reading import log_times
from master_log.reading.kafka_reader import parsed
from master_log.reading.record_decoding import as_decoded_json
from serving_layer.change import deploying
from serving_layer.change.deploying import Target
from serving_layer.narration import waiting
from serving_layer.postgres.database import Database
from serving_layer.promise import event_ids, generations, progress
from serving_layer.promise.event_ids import IdLookup
from serving_layer.promise.micro_batch import MicroBatch, Outcome, commit, maintained
from serving_layer.promise.rebuilds import Scheduler
from serving_layer.promise.source_queries import Topic
from speed_layer.statements import Statements
from view_algebra import compile_catalog
from view_algebra.compiled import Catalog, Source

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


def run(folder: Path, names: Sequence[str], seed: int, tell: Callable[[str], None]) -> list[Comparison]:
    """Runs the tests in a catalog's folder whose names begin with one of `names`, or all if `names` is empty."""
    catalog = compile_catalog(catalog_files(folder))
    wanted = tests_of(folder, catalog, names)
    with engines(tell) as (spark, server):
        runner = Runner(catalog, spark, server, seed)
        results = [compared for fixture in wanted for compared in runner.run_watched(fixture, tell)]
    tell_seed(results, seed, tell)
    return results


def any_seed() -> int:
    """A random seed, for a run without --seed."""
    return random.SystemRandom().randrange(10**6)


def tell_seed(results: Sequence[Comparison], seed: int, tell: Callable[[str], None]) -> None:
    """Narrates the seed for repeating failed tests."""
    if not all(result.equal for result in results):
        tell(f"the micro-batches of these tests are cut by --seed {seed}")


@contextmanager
def engines(tell: Callable[[str], None]) -> Iterator[tuple[SparkSession, Scratch]]:
    """Spark and a Postgres with Lamina in it, started at the same time and stopped when the block ends."""
    home = Settings.home_of()
    settings = Settings("", None, "nowhere:0", "", "local[2]", home, embedded=False)
    make_folder(home)
    with ExitStack() as running:
        with waiting(tell, "starting Postgres and Spark for the tests"), ThreadPoolExecutor(1) as starting:
            server = starting.submit(running.enter_context, scratch(home))
            spark = session(settings, "lamina test", short_lived=True)
            running.callback(_stop, spark)
            server.result()
        yield spark, server.result()


def _stop(spark: SparkSession) -> None:
    with suppress(Py4JError, ConnectionError):  # it was killed because it stood still
        spark.stop()


def _no_record(work: Work, over: threading.Event) -> None:
    """Finds no record. A test has few, and its author can look at them."""


@dataclass(frozen=True)
class Runner:
    """Runs the tests of a catalog. `seed` decides the sizes of the micro-batches."""

    catalog: Catalog
    spark: SparkSession
    scratch: Scratch
    seed: int

    def run_watched(self, fixture: Fixture, tell: Callable[[str], None]) -> list[Comparison]:
        """Runs one test in all ways. If Spark stands still, ends it and raises `Stalled`."""
        with StallWatch(lambda: self.spark, kill, _no_record, tell)(Work(fixture.name, {})):
            return self.run(fixture)

    def run(self, fixture: Fixture) -> list[Comparison]:
        """Runs one test in all ways."""
        for key, value in QUICK.items():
            self.spark.conf.set(key, value)
        catalog = needed(self.catalog, fixture.expect)
        raw = {name: self._raw(source, fixture.records.get(name, ())) for name, source in catalog.sources.items()}
        with self.scratch.database() as (database, dsn):
            _deploy(database, catalog)
            database.retrying(generations.keep_all)  # a test's records may be of any age
            with database.begin() as connection:
                expected = {
                    n: expected_rows(connection, catalog.views[n], lines) for n, lines in fixture.expect.items()
                }
            counts = {name: len(fixture.records.get(name, ())) for name in catalog.sources}
            chosen = random.Random(f"{self.seed} {fixture.name}")  # noqa: S311 (nothing is secret)
            _stream(database, catalog, raw, _micro_batches(counts, chosen))
            live = compare_served(database, fixture, expected, "live")
            _rebuild(BatchLayer(database, Brokers("nowhere:0"), lambda: self.spark, lambda: _Log(self.spark, raw), dsn))
            batch = compare_served(database, fixture, expected, "batch")
        return [*live, *batch, *compare_in_duckdb(catalog, raw, fixture, expected)]

    def _raw(self, source: Source, records: Sequence[Record]) -> DataFrame:
        rows = [
            (source.topic, 0, offset, record.timestamp, record.key, record.value, record.headers)
            for offset, record in enumerate(records)
        ]
        return as_decoded_json(log_times.with_log_times(raw_records(self.spark, rows), source.topic, {}), source)


def raw_records(spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Raw records of these values, in the order of `RAW`. A query that reads them starts no Python process."""
    table = pa.Table.from_pylist([dict(zip(RAW.names, row, strict=True)) for row in rows], RAW)
    spark.conf.set(LOCAL, 0)
    try:
        return spark.createDataFrame(table)
    finally:
        spark.conf.unset(LOCAL)


def _deploy(database: Database, catalog: Catalog) -> None:
    topics = {name: Topic(source.topic, Offsets.of(source.topic, {0: 0})) for name, source in catalog.sources.items()}
    database.retrying(lambda connection: deploying.apply(connection, Target({}, catalog, topics)))


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


class _Log(MasterLog):
    """A master log with the records of a test, from the first offset to progress."""

    def __init__(self, spark: SparkSession, raw: Mapping[str, DataFrame]) -> None:
        super().__init__(spark)
        self._raw = raw

    def records_below(self, source: Source, cut: Offsets, *, since: Offsets | None = None) -> DataFrame:  # noqa: ARG002
        """All records of the source."""
        return parsed(self._raw[source.name], source)


def _rebuild(batch: BatchLayer) -> None:
    """Runs the steps of a rebuild, except those that need Kafka's records or that compare with the published cells."""
    quiet = replace(batch, tell=lambda line: None)
    id = quiet.seal(by=Scheduler())
    batch.database.retrying(generations.keep_all)
    for generation in quiet.generations(id):
        quiet.compute(id, generation.view)
    quiet.go_live(id)
    quiet.release(id)
