"""A deployment over the run's Kafka, the test's own database and warehouse: in this process, or by its command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from batch_layer.check import CheckResult, check
from lamina.authoring.catalog_files import catalog_files
from lamina.configuration.settings import Settings
from lamina.operations import applying, installation
from lamina.operations.deployment import Deployment
from lamina.services.java import QUICK_COMPILER
from master_log.offsets import Offsets
from serving_layer.promise import progress
from tests.fix_services import Databases, Services, own_database, settings_over
from tests.fix_spark import session_of
from tests.lent_spark import lent, taken_back

PATIENCE = 300.0
"""Seconds after which a test that waits for the speed layer has failed. On a busy machine, the JVM of a rebuild, which
leaves the processors to everybody else, alone takes two minutes to start.
"""


class Killed(BaseException):
    """Stands for kill -9 at a named step."""


@dataclass
class Deployed:
    """A deployment in this process, whose topics are the test's own (a source's topic is named after the database)."""

    deployment: Deployment
    producer: KafkaProducer
    files: dict[str, str] = field(default_factory=dict)
    ended: list[BaseException] = field(default_factory=list)

    def apply(self, **files: str) -> None:
        """Adds declarations to the catalog and deploys it. `{topics}` becomes the test's own prefix."""
        self._apply(files, allow_break=False)

    def apply_break(self, **files: str) -> None:
        """Deploys a catalog that takes columns or names from readers."""
        self._apply(files, allow_break=True)

    def _apply(self, files: Mapping[str, str], *, allow_break: bool) -> None:
        self.files |= {f"{name}.sql": sql.replace("{topics}", self.prefix) for name, sql in files.items()}
        applying.apply(self.deployment, self.files, prune=True, allow_break=allow_break)

    @property
    def prefix(self) -> str:
        """The prefix that makes a topic's name the test's own."""
        return self.deployment.settings.postgres.rpartition("/")[2]

    def copied(self, example: Path, to: Path) -> Path:
        """The catalog of an example, its topics the test's own."""
        for file, sql in catalog_files(example).items():
            copy = to / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(sql.replace("(topic '", f"(topic '{self.prefix}_"))
        return to

    def topic(self, source: str) -> str:
        """The name of the topic of a source."""
        return self.deployment.deployed().sources[source].topic

    def send(self, source: str, *values: object, partition: int | None = None) -> None:
        """Sends dicts as JSON, bytes and None unchanged. A pair is a key and a value.

        Returns when the brokers hold the records.
        """
        topic = self.topic(source)
        for record in values:
            key, value = record if isinstance(record, tuple) else (None, record)
            data = value if value is None or isinstance(value, bytes) else json.dumps(value, default=str).encode()
            # A record without a value needs a key: Kafka's clients refuse one that has neither.
            self.producer.send(topic, data, key=b"key" if data is key is None else key, partition=partition)
        self.producer.flush()

    def catch_up(self) -> None:
        """Runs the speed layer until every record that is in Kafka now is in Postgres."""
        stopping = threading.Event()
        patience = threading.Timer(PATIENCE, stopping.set)
        patience.start()
        try:
            self.deployment.speed(stopping, max_records=100_000).run(until_caught_up=True)
        finally:
            patience.cancel()
        assert not stopping.is_set(), f"the speed layer did not catch up within {PATIENCE:.0f} s"

    @contextmanager
    def speed(self, **options: Any) -> Iterator[None]:
        """The speed layer, running in the background."""
        stopping = threading.Event()
        layer = self.deployment.speed(stopping, max_records=options.get("max_records", 100_000))
        layer.clock = options.get("clock", layer.clock)
        layer.resources = replace(layer.resources, today=options.get("today", layer.resources.today))
        self.ended.clear()

        def run() -> None:
            try:
                layer.run()
            except BaseException as error:  # noqa: BLE001 (raised by whoever started it)
                self.ended.append(error)

        thread = threading.Thread(target=run, name="speed layer")
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(PATIENCE)
        if self.ended:
            raise self.ended[0]

    @contextmanager
    def killed_at(self, step: str) -> Iterator[None]:
        """The block reaches this step, and dies there as by kill -9."""

        def die(reached: str) -> None:
            if reached == step:
                raise Killed

        self.deployment.at = die
        with pytest.raises(Killed):
            yield
        self.deployment.at = lambda _: None

    def wait_for(self, source: str, end: Offsets | None = None) -> None:
        """Returns when progress has reached the end of the source's topic, or `end`."""
        end = end or self.deployment.brokers.latest(self.topic(source))
        self.until(lambda: self.progress(source).reaches(end), f"{source} reaches {end}")

    def until(self, condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
        """Returns when the condition holds."""
        deadline = time.monotonic() + patience
        while not condition():
            if self.ended:
                raise self.ended[0]
            assert time.monotonic() < deadline, f"waited {patience:.0f} s in vain until {what}"
            time.sleep(0.02)

    def progress(self, source: str) -> Offsets:
        """The progress of a query."""
        with self.deployment.database.begin() as connection:
            return progress.read(connection, [source])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of the analyst's SELECT."""
        assert self.deployment.settings.analyst is not None
        connection = psycopg2.connect(self.deployment.settings.analyst, options="-c timezone=UTC")
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute("SET search_path = analytics")
                cursor.execute(query)
                return [tuple(row) for row in cursor.fetchall()]
        finally:
            connection.close()

    def owner(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement that the database's owner runs."""
        with self.deployment.database.begin() as connection:
            result = connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
            return [tuple(row) for row in result.all()] if result.returns_rows else []

    def check(self, *views: str) -> list[CheckResult]:
        """Asserts that every view equals its SELECT over all records below progress."""
        opened = self.deployment
        results = check(opened.database, lambda: (opened.spark(), opened.log()), opened.brokers, views)
        for result in results:
            differing = f"missing {result.missing}, surplus {result.surplus}"
            assert result.equal, f"{result.view} below {result.below}: {differing}"
        return results


@pytest.fixture
def deployed(settings: Settings, spark: SparkSession, producer: KafkaProducer) -> Iterator[Deployed]:
    """A deployment with an empty catalog."""
    deployment = Deployment(settings, lent=spark)
    installation.install(deployment)
    yield Deployed(deployment, producer)
    deployment.close()


@pytest.fixture(scope="module")
def shared_deployment(
    databases: Databases,
    installed: str,
    services: Services,
    spark_of_run: SparkSession,
    producer: KafkaProducer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployed]:
    """A deployment for all tests of a file, which leave it as they found it."""
    with own_database(databases, services, installed) as url:
        settings = settings_over(services, url, tmp_path_factory.mktemp("warehouse"))
        with session_of(spark_of_run, settings) as spark:
            deployment = Deployment(settings, lent=spark)
            installation.install(deployment)
            yield Deployed(deployment, producer)
            deployment.close()


def hurried() -> float:
    """A clock on which minutes pass as seconds, so a speed layer soon tries again what it put off."""
    return 60 * time.monotonic()


@dataclass(frozen=True)
class Result:
    """The output of a command and its exit code."""

    code: int
    out: str
    err: str

    def lines(self) -> list[dict[str, Any]]:
        """Its JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class CommandLine:
    """Runs `lamina` as a person or a scheduler does."""

    environment: Mapping[str, str]
    folder: Path
    program: str = "lamina"
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def over(self, spark: SparkSession) -> CommandLine:
        """The same commands, which compute in the tests' JVM instead of starting their own."""
        return replace(self, environment={**self.environment, **lent(spark)}, program="tests.lent_spark")

    def __call__(
        self, *arguments: str, code: int | None = 0, stdin: str | None = None, timeout: float = 600, **environment: str
    ) -> Result:
        """Runs a command to its end. `code` is its required exit code (None: any)."""
        done = subprocess.run(
            [sys.executable, "-m", self.program, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.folder,
            env={**self.environment, **environment},
            check=False,
        )
        result = Result(done.returncode, done.stdout, done.stderr)
        assert code is None or done.returncode == code, (
            f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return result

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Starts a command, and returns at once."""
        return self.start_program("-m", self.program, *arguments, **environment)

    def start_program(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Starts Python, and returns at once. A process that still runs after the test is killed."""
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**self.environment, **environment},
        )
        self.started.append(process)
        return process


@pytest.fixture
def lamina(settings: Settings, tmp_path: Path) -> Iterator[CommandLine]:
    """The command line over the test's own database."""
    assert settings.analyst is not None
    others = {name: value for name, value in os.environ.items() if not name.startswith("LAMINA_")}
    repository = str(Path(__file__).resolve().parents[1])
    ours = {
        "LAMINA_POSTGRES": settings.postgres,
        "LAMINA_ANALYST": settings.analyst,
        "LAMINA_KAFKA": settings.kafka,
        "LAMINA_WAREHOUSE": settings.warehouse,
        "LAMINA_HOME": str(settings.home),
        "LAMINA_SPARK_MASTER": "local[2]",
        "PYTHONPATH": repository,
        "SPARK_SUBMIT_OPTS": QUICK_COMPILER,  # of JVMs that live for some seconds
    }
    commands = CommandLine({**others, **ours}, tmp_path)
    yield commands
    for process in commands.started:
        process.kill()


@pytest.fixture
def quick_lamina(lamina: CommandLine, spark: SparkSession) -> CommandLine:
    """The command line over the test's own database and the tests' JVM."""
    return lamina.over(spark)


@contextmanager
def short_lived(
    lamina: CommandLine, spark: SparkSession, max_records: int = 500_000, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """A speed layer over the JVM of the tests, killed (-9) at the end of the block."""
    process = lamina.over(spark).start("speed", "--max-records", str(max_records), **environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        taken_back(spark)


def one(rows: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The only row."""
    assert len(rows) == 1, rows
    return rows[0]
