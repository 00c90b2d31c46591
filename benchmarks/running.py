"""Shared parts of all benchmarks: a deployment in its own folder, and a figure with its target."""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import click
import psutil
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


@dataclass(frozen=True)
class Figure:
    """One measured value. A figure with a bound is met or missed. Without a bound it is only for reading."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        """The bound, as the table shows it."""
        bound, sign = (self.at_least, "≥") if self.at_least is not None else (self.at_most, "≤")
        return "" if bound is None else f"{sign} {shown(bound)} {self.unit}".rstrip()

    @property
    def missed(self) -> bool:
        """True if there is a bound and the value lies beyond it."""
        low = self.at_least is not None and self.value < self.at_least
        return low or (self.at_most is not None and self.value > self.at_most)

    @property
    def met(self) -> str:
        """The verdict on the bound for the table: `yes`, `no` or empty."""
        return "" if not self.target else "no" if self.missed else "yes"


def shown(value: float) -> str:
    """The value with three significant digits, and with all digits before the point.

    >>> shown(0.61234), shown(12.345), shown(151234.4)
    ('0.612', '12.3', '151,234')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def benchmark(measure: Callable[..., Sequence[Figure]]) -> Callable[..., None]:
    """The command of a figure. It measures the figure, prints the results, and exits 1 if a bound is missed.

    `measure` takes the Output first, then the options that are declared above it.
    """

    @click.option("--json", "as_json", is_flag=True, help="Results as JSON, one object per line.")
    def command(*, as_json: bool, **options: Any) -> None:
        # As on Ctrl-C, everything that was started is stopped.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        output = Output(as_json=as_json)
        busy = os.getloadavg()[0]
        began = datetime.now(UTC)
        figures = measure(output, **options)
        memory = psutil.virtual_memory().total / 2**30
        output.text(
            f"{began:%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, {memory:.0f} GiB, load average {busy:.2f} before",
            began=began.isoformat(timespec="seconds"),
            cores=os.cpu_count(),
            memory_gib=round(memory),
            load_average_before=busy,
        )
        output.table(
            ("figure", "measured", "unit", "target", "met"),
            [(f.name, f.value if as_json else shown(f.value), f.unit, f.target, f.met) for f in figures],
        )
        sys.exit(1 if any(figure.missed for figure in figures) else 0)

    command.__name__ = measure.__module__.rpartition(".")[2]
    command.__doc__ = measure.__doc__
    return command


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


MAX_RECORDS = 500_000
"""Records of a micro-batch at most: the default of `lamina speed`."""


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


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies (nearest rank). `values` must be sorted.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5), percentile([1.0, 2.0, 3.0, 4.0], 1.0)
    (2.0, 4.0)
    """
    return values[max(0, -(-int(share * 1_000_000) * len(values) // 1_000_000) - 1)]


def in_turns(output: Output, sides: Mapping[str, Callable[[int], float]], turns: int) -> dict[str, list[float]]:
    """The seconds that each side takes, measured in turns. The first turn of each side is a warm-up, and does not
    count.
    """
    took: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(turns + 1):
        for name, run in sides.items():
            seconds = run(turn)
            output.tell(f"{'warming' if turn == 0 else f'turn {turn}'}: {name}, {seconds:.1f} s")
            took[name] += [seconds] if turn else []
    output.tell(spread(took))
    return took


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the ratios between values of the same turn."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def spread(seconds: Mapping[str, Sequence[float]]) -> str:
    """Measured seconds per side, for narration."""
    return "; ".join(f"{name} {', '.join(f'{s:.1f}' for s in took)} s" for name, took in seconds.items())
