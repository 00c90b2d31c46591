"""A deployment in its own folder, and what benchmarks do with it."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

import psycopg2
from pyspark.sql import DataFrame
from sqlalchemy import make_url

from lamina.configuration.settings import Settings
from lamina.operations import installation
from lamina.operations.deployment import Deployment
from lamina.services.background import SpeedProcess
from lamina.services.embedded import EmbeddedServices
from lamina.terminal.render import Output

REPOSITORY = Path(__file__).resolve().parents[1]

MAX_RECORDS = 500_000
"""Records of a micro-batch at most: the default of `lamina speed`."""


@contextmanager
def deployment(output: Output, *, store: bool = False) -> Iterator[Deployment]:
    """A deployment with an empty catalog, over services that live as long as the block.

    With `store`, the master log is in an object storage.
    """
    home = Path(tempfile.mkdtemp(prefix="lamina-benchmark-"))
    (home / "jars").symlink_to(REPOSITORY / ".lamina" / "jars")
    opened: Deployment | None = None
    try:
        EmbeddedServices(home).start(store=store)
        opened = Deployment(Settings.read(home, {"LAMINA_HOME": str(home)}), tell=output.tell)
        installation.install(opened)
        yield opened
    finally:
        try:
            SpeedProcess(home).stop()
            if opened is not None:
                opened.close()
        finally:  # a Spark that has ended refuses to be closed
            EmbeddedServices(home).stop()
            shutil.rmtree(home, ignore_errors=True)


@contextmanager
def another_database(opened: Deployment, name: str) -> Iterator[Deployment]:
    """The same services and the same Spark, with an empty database: progress begins where the topics begin."""
    with opened.database.autocommit() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")

    def there(url: str) -> str:
        return make_url(url).set(database=name).render_as_string(hide_password=False)

    assert opened.settings.analyst is not None
    settings = replace(
        opened.settings, postgres=there(opened.settings.postgres), analyst=there(opened.settings.analyst)
    )
    other = Deployment(settings, tell=opened.tell, lent=opened.spark())
    try:
        yield other
    finally:
        other.close()
        with opened.database.autocommit() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name}")


def catch_up(opened: Deployment) -> float:
    """Runs the speed layer until every record that is in Kafka now is in Postgres. Returns the seconds it took."""
    layer = opened.speed(threading.Event(), max_records=MAX_RECORDS)
    began = monotonic()
    layer.run(until_caught_up=True)
    return monotonic() - began


@contextmanager
def speed_layer(opened: Deployment) -> Iterator[None]:
    """The speed layer in its own process, as `lamina up` starts it."""
    process = SpeedProcess(opened.settings.home)
    running = process.start()
    try:
        yield
        process.expect(running)
    finally:
        process.stop()


def environment(**ours: str) -> dict[str, str]:
    """The environment of a Lamina command: our settings, and none of the person who measures."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LAMINA_")} | ours


def environment_for(opened: Deployment) -> dict[str, str]:
    """The environment of a command that works on this deployment."""
    return environment(LAMINA_HOME=str(opened.settings.home))


@contextmanager
def folder_of(files: Mapping[str, str]) -> Iterator[Path]:
    """A folder with the files of a catalog, as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="lamina-benchmark-catalog-") as folder:
        for name, sql in files.items():
            (Path(folder) / name).write_text(sql)
        yield Path(folder)


@contextmanager
def threads(stopping: threading.Event, *run: Callable[[], None]) -> Iterator[None]:
    """Runs each function in its own thread. At the end of the block, sets `stopping`, waits for the threads, and
    raises the first error of a thread.

    >>> with threads(threading.Event(), lambda: {}["cell"]):
    ...     pass
    Traceback (most recent call last):
    KeyError: 'cell'
    """
    with ThreadPoolExecutor(max(1, len(run))) as pool:
        started = [pool.submit(work) for work in run]
        try:
            yield
        finally:
            stopping.set()
    for thread in started:
        thread.result()


def analyst(opened: Deployment) -> psycopg2.extensions.connection:
    """A connection of the analyst's, with a new snapshot for every statement."""
    assert opened.settings.analyst is not None
    connection = psycopg2.connect(opened.settings.analyst, options="-c timezone=UTC")
    connection.autocommit = True
    return connection


def nowhere(rows: DataFrame) -> None:
    """Computes every row and writes none."""
    rows.write.format("noop").mode("overwrite").save()
