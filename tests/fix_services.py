"""One real Kafka and one real Postgres per run, and in them a database or a topic per test.

A run's folder names the process that owns it. A killed run leaves its services behind. The next run of any tests
finds the folders without an owner, stops their services and removes them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import psutil
import psycopg2
import pytest
from kafka import KafkaAdminClient, KafkaProducer
from sqlalchemy import text

from lamina.configuration.settings import Settings
from lamina.services import kafka_broker, postgres, s3
from lamina.services.embedded import Addresses, EmbeddedServices
from lamina.services.jars import jar_files, resolve
from lamina.services.java import QUICK_COMPILER, archive_options, java_home
from lamina.services.own_processes import locked
from serving_layer.postgres.database import Database
from serving_layer.upkeep.install import install

REPOSITORY = Path(__file__).resolve().parents[1]
RUNS = REPOSITORY / ".lamina" / "tests"

OWNERLESS_SECONDS = 60.0
"""Seconds after which a folder without an owner is abandoned. Until then, a run may be making or removing it."""

REMOVED_WITHIN = 300.0
"""Seconds for which a run waits while another removes the homes of killed runs."""

Topic = Callable[..., str]
Databases = Callable[..., str]


def new_home(name: str) -> Path:
    """A fresh LAMINA_HOME that shares the repository's jars. Homes of killed runs are removed first."""
    resolve(REPOSITORY / ".lamina")
    RUNS.mkdir(parents=True, exist_ok=True)
    remove_what_killed_runs_left()
    home = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=RUNS))
    me = psutil.Process()
    (home / "owner").write_text(f"{me.pid} {me.create_time()}")
    (home / "jars").symlink_to(REPOSITORY / ".lamina" / "jars")
    return home


def quick_java(home: Path, group: str) -> tuple[str, ...]:
    """JVM options for a short life on few processors: the compiler that is quick, not the one whose code is, and a
    garbage collector without threads of its own, which each thousand new classes would wake.
    """
    return (
        *archive_options(home, group),
        *QUICK_COMPILER.split(),
        "-XX:+UseSerialGC",
        "-XX:MetaspaceSize=512m",
    )


def service_processes(home: Path) -> dict[str, psutil.Process]:
    """The processes of the embedded services that run in a home, by service."""
    running = {"kafka": kafka_broker.find(home), "postgres": postgres.find(home), "s3": s3.find(home)}
    processes = {}
    for name, service in running.items():
        with contextlib.suppress(psutil.NoSuchProcess):  # another may end it
            if service is not None:
                processes[name] = psutil.Process(service.process.pid)
    return processes


def remove_home(home: Path) -> None:
    """Ends what runs in a home and removes it: nobody needs what a good end would write to the disk."""
    for name, process in service_processes(home).items():
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGQUIT if name == "postgres" else signal.SIGKILL)  # to Postgres: at once
    EmbeddedServices(home).stop()
    shutil.rmtree(home, ignore_errors=True)


def remove_what_killed_runs_left() -> None:
    """Stops and removes every home whose owner is gone. Homes of live runs stay. Parallel runs take turns."""
    with locked(RUNS.with_suffix(".lock"), patience=REMOVED_WITHIN):
        for left in RUNS.iterdir():
            if _owner_is_gone(left):
                remove_home(left)


def _owner_is_gone(home: Path) -> bool:
    try:
        pid, created = (home / "owner").read_text().split()
        return bool(abs(psutil.Process(int(pid)).create_time() - float(created)) > 2.0)
    except (OSError, ValueError):
        with contextlib.suppress(FileNotFoundError):  # its owner has removed it meanwhile
            return time.time() - home.stat().st_mtime > OWNERLESS_SECONDS
        return False
    except psutil.NoSuchProcess:
        return True


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@pytest.fixture(scope="session")
def run_home() -> Iterator[Path]:
    """This run's LAMINA_HOME."""
    signal.signal(signal.SIGTERM, _interrupt)  # as Ctrl-C does: fixtures are torn down
    home = new_home("run")
    yield home
    remove_home(home)


@dataclass(frozen=True)
class Services:
    """The running services of this run."""

    embedded: EmbeddedServices
    addresses: Addresses

    def database_url(self, name: str, role: str = postgres.OWNER) -> str:
        """The URL of one database, as "lamina" (owner), "analyst" or "postgres" (superuser)."""
        port = int(self.addresses.postgres.rpartition(":")[2].partition("/")[0])
        return postgres.url(self.embedded.home, port, role=role, database=name)


@pytest.fixture(scope="session")
def services(run_home: Path) -> Services:
    """Kafka and Postgres, started once per run."""
    soon = {"log.cleaner.backoff.ms": "250"}  # a topic that is to be compacted
    embedded = EmbeddedServices(run_home, kafka_settings=soon, kafka_jvm_options=quick_java(run_home, "kafka"))
    return Services(embedded, embedded.start())


@pytest.fixture(scope="session")
def store(services: Services) -> s3.Store:
    """An object storage, started once per run that needs it."""
    home = services.embedded.home
    return s3.start(home, java=java_home(home), jars=jar_files(home, "s3_server"))


@pytest.fixture(scope="session")
def kafka(services: Services) -> str:
    """Bootstrap servers."""
    return services.addresses.kafka


@pytest.fixture(scope="session")
def databases(services: Services) -> Databases:
    """Makes a database: `databases(template="template0") -> url`. Names never repeat within a run."""
    numbers = itertools.count(1)

    def create(template: str = "template0") -> str:
        name = f"test_{next(numbers)}"
        connection = psycopg2.connect(services.database_url("postgres"))
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE {name} TEMPLATE "{template}" STRATEGY wal_log')
        connection.close()
        return services.database_url(name)

    return create


@pytest.fixture(scope="session")
def installed(databases: Databases) -> str:
    """The name of an installed serving layer that tests have copies of: a copy is there sooner than it is installed."""
    opened = Database(databases())
    install(opened)
    opened.close()
    return str(opened.url.database)


@contextlib.contextmanager
def own_database(databases: Databases, services: Services, template: str = "template0") -> Iterator[str]:
    """The URL of a new database. Its sessions end with the block: Spark keeps one for its catalog."""
    url = databases(template=template)
    yield url
    connection = psycopg2.connect(services.database_url("postgres", "postgres"))
    connection.autocommit = True
    with connection.cursor() as cursor:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        cursor.execute(ended, [url.rpartition("/")[2]])
    connection.close()


def is_waited_for(database: Database, session: int) -> bool:
    """True if another session waits for a lock that this one holds.

    The question has a transaction of its own: a transaction that asks `pg_stat_activity` twice finds the sessions of
    its first look, and nothing that connects after it.
    """
    waiting = text("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE :session = ANY (pg_blocking_pids(pid)))")
    with database.begin() as connection:
        return bool(connection.execute(waiting, {"session": session}).scalar_one())


def settings_over(services: Services, database: str, warehouse: Path) -> Settings:
    """Settings for a database and a warehouse, and the run's Kafka."""
    return Settings(
        postgres=database,
        analyst=services.database_url(database.rpartition("/")[2], postgres.ANALYST),
        kafka=services.addresses.kafka,
        warehouse=str(warehouse),
        spark_master="local[2]",
        home=services.embedded.home,
        embedded=True,
    )


@pytest.fixture
def database(databases: Databases, services: Services, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of the test's own database, which is empty unless the test takes an installed serving layer."""
    takes_installed = {"serving", "deployed"}.intersection(request.fixturenames)
    template = request.getfixturevalue("installed") if takes_installed else "template0"
    with own_database(databases, services, template) as url:
        yield url


@pytest.fixture
def settings(services: Services, database: str, tmp_path: Path) -> Settings:
    """Settings for the test's own database and warehouse, and the run's Kafka."""
    return settings_over(services, database, tmp_path / "warehouse")


@pytest.fixture(scope="session")
def kafka_admin(kafka: str) -> Iterator[KafkaAdminClient]:
    """To change topics: partitions, deletion, removal of records."""
    admin = KafkaAdminClient(bootstrap_servers=kafka)
    yield admin
    admin.close()


@pytest.fixture(scope="session")
def topic(kafka_admin: KafkaAdminClient) -> Topic:
    """Makes a topic: `topic(partitions=1, name="topic", **configs) -> name`. A number makes each name new."""
    numbers = itertools.count(1)

    def create(partitions: int = 1, name: str = "topic", **configs: str) -> str:
        fresh = f"{name}_{os.getpid()}_{next(numbers)}"
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
        kafka_admin.create_topics({fresh: options}, wait_for_metadata=True)
        return fresh

    return create


@pytest.fixture(scope="module")
def producer(kafka: str) -> Iterator[KafkaProducer]:
    """Sends bytes: `producer.send(topic, value, key=…, partition=…, timestamp_ms=…)`, then `producer.flush()`.

    One for each file of tests: when a topic that it has sent to is deleted, kafka-python asks for its leader without
    end, which takes half a core.
    """
    sender = KafkaProducer(bootstrap_servers=kafka, acks="all", linger_ms=5, max_request_size=8 * 1024 * 1024)
    yield sender
    sender.close()
