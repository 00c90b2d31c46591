"""`lamina demo`: the first five minutes. Real invoices arrive, views fill, and a rebuild runs meanwhile and is
proven.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq
from rich.console import Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    RenderableColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from lamina.authoring.catalog_files import catalog_files
from lamina.configuration.settings import Settings
from lamina.local import stack
from lamina.operations import applying, installation
from lamina.operations.daemon_threads import in_daemon_thread
from lamina.operations.deployment import Deployment
from lamina.operations.topic_records import wait_until_counted
from lamina.reports.statuses import read_status
from lamina.services.background import ConsoleProcess, SpeedProcess
from lamina.services.embedded import EmbeddedServices
from lamina.services.own_processes import RunningProcess
from lamina.terminal.render import Output, cell, seconds
from master_log.kafka.producer import Producer
from serving_layer.narration import waiting
from serving_layer.promise import progress
from serving_layer.promise.rebuilds import STEPS
from serving_layer.readers.analyst import select
from view_algebra.errors import LaminaError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "online_retail"
LINES = EXAMPLE / "data" / "online_retail.parquet"

FIRST = 500
"""Lines sent before the speed layer counts. The others wait for it, so that all of them are seen arriving."""

FAST, STEADY = 25_000, 2_000
"""Records a second: while the views fill, and while the rebuild runs."""

LEAD = 50_000
"""Lines that may be sent but not yet counted while the views fill. So rows are seen moving even on a slow machine."""

LINE_EVERY = 5.0
"""Seconds between two lines about the views, if stderr is not a terminal."""

NICENESS = 4
"""Niceness of the rebuild. It runs behind the speed layer, but may use all processors, because somebody waits
for it.
"""

BEFORE_THE_REBUILD = 0.83
"""Share of the records sent before the rebuild. The rest arrives while it runs and after it."""

LATE = {
    "line_no": 541_909,
    "invoice_no": "999999",
    "stock_code": "85123A",
    "description": "WHITE HANGING HEART T-LIGHT HOLDER",
    "quantity": 100,
    "invoice_date": "2010-12-01T08:59:59Z",
    "unit_price": 2.55,
    "customer_id": 17850,
    "country": "United Kingdom",
}
"""A line of the shop's first hour that arrives after everything else."""

LATE_SQL = (
    "SELECT hour, country, lines, pieces, revenue FROM revenue"
    " WHERE hour = '2010-12-01 08:00Z' AND country = 'United Kingdom'"
)


@dataclass
class Traffic:
    """The shop's invoice lines, sent in order of arrival at a rate that may change."""

    deployment: Deployment
    total: int
    rate: int = FAST
    sent: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    may_send: int = FIRST
    _sending: Future[None] | None = None

    def __rich__(self) -> str:
        """The number of lines that have been sent, as the progress bar of the rebuild shows it."""
        return f"{self.sent:,} lines sent"

    def start(self) -> None:
        """Sends the lines that may be sent, in a thread."""
        self._sending = in_daemon_thread("traffic", self._run)

    def stop(self) -> None:
        """Ends the traffic after the current batch."""
        self.stopping.set()
        if self._sending is not None:
            wait([self._sending])

    def wait(self) -> None:
        """Returns once every line was sent."""
        assert self._sending is not None
        self._sending.result()

    def check(self) -> None:
        """Raises the error that ended the traffic early."""
        if self._sending is not None and self._sending.done():
            self._sending.result()

    def _run(self) -> None:
        with self.deployment.brokers.producer() as producer:
            for batch in pq.ParquetFile(LINES).iter_batches(batch_size=FIRST):
                batch = batch[: self.total - self.sent]  # noqa: PLW2901
                began = time.monotonic()
                for row in batch.to_pylist():
                    producer.send("invoice_lines", json.dumps(row, default=_json_value).encode())
                self.sent += batch.num_rows
                self._wait_until_counted(producer)
                if self.stopping.wait(max(0.0, batch.num_rows / self.rate - (time.monotonic() - began))):
                    return

    def _wait_until_counted(self, producer: Producer) -> None:
        """Returns once more lines may be sent."""
        if self.may_send <= self.sent < self.total:
            producer.flush()
        while self.may_send <= self.sent < self.total and not self.stopping.wait(0.1):
            pass


def run(output: Output, *, once: bool, lines: int | None = None) -> None:
    """Runs the demo with `lines` invoice lines, by default all. With `once` it ends by itself. Nothing is left
    running.
    """
    every = pq.ParquetFile(LINES).metadata.num_rows
    total = every if lines is None else min(lines, every)
    before = round(total * BEFORE_THE_REBUILD)
    home = _fresh_home()
    began = time.monotonic()
    with waiting(output.tell, f"starting Kafka and Postgres in {home}"):
        EmbeddedServices(home).start()
    settings = Settings.read(home, {"LAMINA_HOME": str(home)})
    deployment = Deployment(settings, tell=lambda line: None, nice=NICENESS)
    speed = SpeedProcess(home)
    traffic = Traffic(deployment, total)
    try:
        output.tell(f"Kafka and Postgres run in {home}.")
        installation.install(deployment)
        running = speed.start(alone=True)  # Spark starts while the catalog is deployed
        applying.apply(deployment, catalog_files(EXAMPLE))
        console = ConsoleProcess(home).start(alone=True)
        output.tell("The catalog examples/online_retail is deployed. The speed layer is starting.")
        output.tell(f"See the views fill: {console}\n")
        traffic.start()
        _fill(output, deployment, traffic, expect=lambda: speed.expect(running), until=before, began=began)
        traffic.rate = STEADY
        _rebuild(output, deployment, traffic)
        traffic.rate = FAST
        traffic.wait()
        _late_record(output, deployment)
        if once:
            output.tell("\nStopping everything. Without --once the demo keeps running, and you can query its views.")
        else:
            _keep_running(output, home, speed, running, console)
    except KeyboardInterrupt:
        output.tell("\nstopping")
        if once:  # the demo was to end by itself, with its proof
            raise
    finally:
        traffic.stop()
        deployment.close()
        stack.stop_all(home)


def _keep_running(output: Output, home: Path, speed: SpeedProcess, running: RunningProcess, console: str) -> NoReturn:
    """Says how to connect, and waits for Ctrl-C. Raises LaminaError if the speed layer ends."""
    how_to_connect(output, home, speed, console)
    output.tell("\nPress Ctrl-C to stop everything.")
    while True:
        speed.expect(running)
        time.sleep(1)


def _fresh_home() -> Path:
    """An empty folder of the demo's own. It never touches the services of `lamina up`, but shares the jars."""
    outer = Settings.home_of()
    home = outer / "demo"
    if home.exists():
        stack.stop_all(home)
        shutil.rmtree(home)
    home.mkdir(parents=True)
    (outer / "jars").mkdir(exist_ok=True)
    (home / "jars").symlink_to(outer / "jars")
    return home


def _counted(deployment: Deployment) -> int:
    """Invoice lines in Postgres. The topic's offsets begin at 0, and only lines take offsets."""
    with deployment.database.begin() as connection:
        return sum(progress.read(connection, ["invoice_lines"]).values())


def _fill(
    output: Output,
    deployment: Deployment,
    traffic: Traffic,
    *,
    expect: Callable[[], None],
    until: int,
    began: float,
) -> None:
    """Shows the views until `until` lines are sent and half of them counted. `began` is the start of the demo."""
    with Live(console=output.err, refresh_per_second=4) if output.err.is_terminal else nullcontext() as live:
        shown_at, counted = 0.0, 0
        while traffic.sent < until or counted < until // 2:
            expect()
            traffic.check()
            counted = _counted(deployment)
            if counted and traffic.may_send == FIRST:
                output.tell(f"The first rows are there, {time.monotonic() - began:.0f} s after the start.")
            traffic.may_send = counted + LEAD if counted else FIRST
            if isinstance(live, Live):
                live.update(Group(*_dashboard(deployment, traffic, counted)))
            elif counted and time.monotonic() - shown_at >= LINE_EVERY:
                output.tell(_line(deployment, traffic, counted))
                shown_at = time.monotonic()
            time.sleep(0.5)
    traffic.may_send = traffic.total
    if live is None:
        output.err.print(Group(*_dashboard(deployment, traffic, counted)))


def _line(deployment: Deployment, traffic: Traffic, counted: int) -> str:
    """The views fed by the invoice lines in one line, with their rows and the oldest freshness."""
    views = [view for view in read_status(deployment).views if view.rows is not None]
    rows = ", ".join(f"{view.state.name} {view.rows:,}" for view in views)
    oldest = max((view.freshness for view in views if view.freshness is not None), default=None)
    return f"{traffic.sent:,} lines sent, {counted:,} counted, at most {seconds(oldest)} behind; rows: {rows}"


def _dashboard(deployment: Deployment, traffic: Traffic, counted: int) -> list[Any]:
    sent, status = traffic.sent, read_status(deployment)
    table = Table("view", "rows", "freshness", "counted", "generation", box=None, pad_edge=False, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for view in status.views:
        table.add_row(
            view.state.name,
            f"{view.rows:,}" if view.rows is not None else "",
            seconds(view.freshness),
            f"{min(1.0, counted / max(1, sent)):.0%}",
            str(view.state.generation or ""),
        )
    left = max(0, sent - counted)
    return [table, "", f"{sent:,} of {traffic.total:,} invoice lines sent, {left:,} not yet counted", ""]


def _rebuild(output: Output, deployment: Deployment, traffic: Traffic) -> None:
    output.tell("A rebuild from the master log, while lines keep arriving:")
    began = time.monotonic()
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        RenderableColumn(traffic),
        console=output.err,
        disable=not output.err.is_terminal,
    ) as bar:
        computed = [view for view in read_status(deployment).views if view.state.kind != "derived"]
        task = bar.add_task("starting Spark", total=len(STEPS) - 1 + len(computed))

        def show(place: str) -> None:
            step = place.removeprefix("after ")
            if step != place:
                if not output.err.is_terminal:
                    output.tell(f"  {step}, after {time.monotonic() - began:.0f} s")
                bar.update(task, advance=1, description=f"{step}: done")

        deployment.spark()  # started here, so that the bar shows the time
        proofs = replace(deployment.batch, at=show).rebuild()
    cells, differing = sum(proof.cells for proof in proofs), sum(proof.differing for proof in proofs)
    for proof in proofs:
        output.text(
            f"{proof.view}: generation {proof.generation} (batch) against {proof.against} (realtime):"
            f" {proof.cells:,} cells compared, {proof.differing:,} differ"
        )
    output.text(f"{cells:,} cells compared, {differing:,} differ")
    if differing:
        raise LaminaError("The proof found a difference", way_out="Please report it: this must not happen.")


def _late_record(output: Output, deployment: Deployment) -> None:
    for source in deployment.deployed().sources.values():
        wait_until_counted(deployment, source, deployment.brokers.latest(source.topic))
    before = _rows(deployment, LATE_SQL)
    with deployment.brokers.producer() as producer:
        producer.send("invoice_lines", json.dumps(LATE).encode())
    began = time.monotonic()
    while (after := _rows(deployment, LATE_SQL)) == before:
        if time.monotonic() - began > 60:
            raise LaminaError("The late record did not arrive within a minute", way_out="See the speed layer's log.")
        time.sleep(0.02)
    took = time.monotonic() - began
    output.tell("\nA line of the first hour arrives a year late, and its hour is corrected at once:")
    columns = ("", "hour", "country", "lines", "pieces", "revenue")
    output.table(columns, [("before", *before[0]), (f"after {took:.1f} s", *after[0])])


def _rows(deployment: Deployment, query: str) -> Sequence[Sequence[Any]]:
    return select(deployment.settings.reader(), query)[1]


def how_to_connect(output: Output, home: Path, speed: SpeedProcess, console: str) -> None:
    """Prints the addresses of the demo's services, and a command that reads one of its views."""
    output.tell("\nHow to connect:")
    output.table(("what", "where"), stack.connections(EmbeddedServices(home).addresses(), speed, console))
    here, lamina = (shlex.quote(str(path)) for path in (home, Path(sys.executable).with_name("lamina")))
    output.text(f'\nLAMINA_HOME={here} {lamina} sql "SELECT * FROM customers ORDER BY revenue DESC LIMIT 5"')


def _json_value(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else cell(value).replace(" ", "T") + "Z"
