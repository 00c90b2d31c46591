"""Twenty changes of one catalog in a row, under load: their effect on readers, the speed layer and the disk.

A shop's orders and payments arrive all the time, and customers move. The speed layer runs as in `lamina up`, and every
change is the command `lamina apply`. Readers look at the views that count orders in one snapshot after another. They
must see no error, no view that lacks an order, no snapshot whose views disagree about the number of orders, and never
fewer orders than before. After the last change, `lamina check` compares every view with its SELECT, and no table or
file is left without a generation.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.sharedctypes import Synchronized
from typing import Any

import click
import psycopg2

from benchmarks.changing_catalog import (
    BEFORE,
    CHANGES,
    CITIES,
    CURRENCIES,
    CUSTOMERS,
    GOODS,
    RENAMED_OR_DROPPED,
    SUMS,
    Catalog,
    CatalogChange,
)
from benchmarks.figures import Figure, benchmark, percentile
from benchmarks.running import catch_up, deployment, environment_for, folder_of, speed_layer, threads
from benchmarks.traffic import SPAWN, sender
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.services import folders
from lamina.terminal.render import Output
from master_log.kafka.brokers import Brokers
from serving_layer.upkeep import dropping

LOOK_EVERY = 0.5
"""Seconds between two looks of a reader."""


@dataclass
class DashboardReaders:
    """Reads the views that count orders in one snapshot after another, and notes errors and times."""

    url: str
    wrong: list[str] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    snapshots: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads as long as the block lasts."""
        with threads(self.stopping, self._read, self._read):
            yield

    def _read(self) -> None:
        connection, most = self._connect(), 0
        while not self.stopping.wait(LOOK_EVERY):
            try:
                with connection, connection.cursor() as cursor:
                    most = self._look(cursor, most)
                    self.snapshots += 1
            except psycopg2.Error as error:
                gone = isinstance(error, psycopg2.errors.UndefinedTable) and any(
                    name in str(error) for name in RENAMED_OR_DROPPED
                )
                if not gone:
                    self.wrong.append(f"{type(error).__name__}: {error}")
                if connection.closed:
                    connection = self._connect()
        connection.close()

    def _connect(self) -> psycopg2.extensions.connection:
        connection = psycopg2.connect(self.url)
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        return connection

    def _look(self, cursor: psycopg2.extensions.cursor, most: int) -> int:
        cursor.execute("SELECT orders FROM analytics.total")
        [(total,)] = cursor.fetchall()
        if total < most:
            self.wrong.append(f"{total} orders after {most}")
        cursor.execute("SELECT viewname FROM pg_views WHERE schemaname = 'analytics'")
        names = {name for (name,) in cursor.fetchall()} & SUMS
        for name in sorted(names):
            began = time.monotonic()
            cursor.execute(f"SELECT sum(orders) FROM analytics.{name}")
            [(counted,)] = cursor.fetchall()
            self.took.append(time.monotonic() - began)
            if (counted or 0) != total:
                self.wrong.append(f"{name}: {counted} orders of {total}")
        return int(total)


@contextmanager
def sending(opened: Deployment, rate: int) -> Iterator[Synchronized[int]]:
    """Sends orders at a rate, most of them paid, and moves a customer with every tenth, as long as the block lasts."""
    sent = SPAWN.Value("q", 0)
    with sender(_send, opened.settings.kafka, rate, sent):
        yield sent


def _send(stopping: Any, servers: str, rate: int, sent: Synchronized[int]) -> None:
    dice, began = random.Random(1), time.monotonic()
    with Brokers(servers) as brokers, brokers.producer() as producer:
        while not stopping.is_set():
            while sent.value < (time.monotonic() - began) * rate:
                _order(producer, dice, sent.value)
                sent.value += 1
            producer.flush()
            time.sleep(0.02)


def _order(producer: Any, dice: random.Random, id: int) -> None:
    def send(topic: str, key: object, value: dict[str, object]) -> None:
        data = json.dumps(value, default=str).encode()
        producer.send(topic, data, key=json.dumps(key).encode(), partition=dice.randrange(2))

    now = datetime.now(UTC)
    order = {
        "id": id,
        "customer_id": dice.randrange(CUSTOMERS),
        "good_id": dice.randrange(GOODS),
        "currency": dice.choice(CURRENCIES),
        "amount": f"{dice.randrange(1, 99_999) / 100}",
        "ts": now,
        "note": dice.choice(("gift", "in a hurry", None)),
    }
    send("orders", id, order)
    if dice.random() < 0.7:
        send("payments", id, {"order_id": id, "ts": now + timedelta(minutes=dice.randrange(-1, 20))})
    if id % 10 == 0:
        send_move(producer, dice.randrange(CUSTOMERS), dice.choice(CITIES), now)


def send_move(producer: Any, customer: int, city: str, at: datetime) -> None:
    """Sends a customer's new city."""
    value = {"id": customer, "city": city, "moved_at": at.isoformat()}
    producer.send(
        "customers", json.dumps(value).encode(), key=json.dumps({"id": customer}).encode(), partition=customer % 2
    )


def settle(opened: Deployment) -> None:
    """Gives every customer a city before the first order, and fills a topic of goods that nothing reads yet."""
    opened.brokers.create("goods", 1)
    with opened.brokers.producer() as producer:
        for good in range(GOODS):
            value = {"id": good, "origin": CITIES[good % len(CITIES)]}
            producer.send("goods", json.dumps(value).encode(), key=json.dumps({"id": good}).encode(), partition=0)
        for customer in range(CUSTOMERS):
            send_move(producer, customer, CITIES[customer % len(CITIES)], datetime(2026, 1, 1, tzinfo=UTC))
        producer.flush()


def files(catalog: Catalog) -> dict[str, str]:
    """The declarations of a catalog, each in its own file."""
    return {f"{name}.sql": sql for name, sql in catalog.items()}


def time_apply(opened: Deployment, catalog: Catalog, change: CatalogChange) -> tuple[float, str]:
    """Runs `lamina apply`, and returns its seconds and its output."""
    with folder_of(files(catalog)) as folder:
        command = [sys.executable, "-m", "lamina", "apply", "--catalog", str(folder), *change.options]
        began, lines = time.monotonic(), []
        with subprocess.Popen(
            command,
            env=environment_for(opened),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as run:
            assert run.stderr is not None
            lines += [f"{time.monotonic() - began:6.1f} s  {line.rstrip()}" for line in run.stderr]
        took = time.monotonic() - began
    text = "\n".join(lines)
    assert run.returncode == change.exit_code, f"{change.what}: ended with {run.returncode}\n{text}"
    return took, text


def time_changes(
    output: Output, opened: Deployment, catalog: Catalog, skip: int, rest: float, readers: DashboardReaders
) -> list[float]:
    """Makes the changes after the first `skip`, one after another, and returns the seconds of each."""
    took = []
    for number, change in enumerate(CHANGES[skip:], skip + 1):
        seconds, output_of_apply = time_apply(opened, change.files(catalog), change)
        output.tell(f"{number}. {change.what}: {seconds:.1f} s, {len(readers.wrong)} looks went wrong so far")
        output.tell(output_of_apply)
        took.append(seconds)
        catalog = change.after(catalog)
        time.sleep(rest)
    return took


def drop_and_list_unused(opened: Deployment) -> list[str]:
    """Drops what is unused, and returns the tables of cells that no generation refers to."""
    dropping.drop_unused(opened.database)
    with opened.database.begin() as connection:
        tables = connection.exec_driver_sql(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'cells'::regnamespace"
            " AND NOT EXISTS (SELECT FROM lamina.generation_cells g WHERE to_regclass(g.place) = pg_class.oid)"
        )
        return [name for (name,) in tables.all()]


def remove_orphans(opened: Deployment) -> int:
    """Removes the files of the log that no snapshot refers to, and returns their number."""
    again = Deployment(opened.settings)  # with its own Spark
    try:
        now = int(time.time() * 1000)
        return sum(again.log().table(source).remove_orphans(now) for source in again.deployed().sources.values())
    finally:
        again.close()


@click.command()
@click.option("--rate", default=200, show_default=True, help="Orders a second.")
@click.option("--rest", default=5, show_default=True, help="Seconds between two changes.")
@click.option("--skip", default=0, show_default=True, help="Changes that the catalog has from the beginning.")
@benchmark
def main(output: Output, rate: int, rest: int, skip: int) -> list[Figure]:
    """Twenty changes of a catalog under load."""
    catalog = BEFORE
    for change in CHANGES[:skip]:
        catalog = change.after(catalog)
    with deployment(output) as opened:
        assert opened.settings.analyst is not None
        applying.apply(opened, files(catalog))
        settle(opened)
        catch_up(opened)
        opened.spark().stop()  # frees its memory and its threads for the speed layer and the commands
        readers = DashboardReaders(opened.settings.analyst)
        with speed_layer(opened), readers.reading():
            with sending(opened, rate) as sent:
                time.sleep(rest)
                took = time_changes(output, opened, catalog, skip, rest, readers)
                orders = sent.value
            while orders_seen(opened) < orders:
                time.sleep(0.2)
        differ = count_differing(opened)
        surplus, files_surplus = drop_and_list_unused(opened), remove_orphans(opened)
        folders_left = sum(folders.sweep(opened.settings.home / kept) for kept in ("checkpoints", "spark"))
    for problem in sorted(set(readers.wrong))[:20]:
        output.tell(problem)
    looks = sorted(readers.took)
    return [
        Figure("changes", len(took), ""),
        Figure("orders", orders, ""),
        Figure("a change, median", percentile(sorted(took), 0.5), "s"),
        Figure("a change, max", max(took), "s"),
        Figure("snapshots read", readers.snapshots, ""),
        Figure("that were wrong", len(readers.wrong), "", at_most=0),
        Figure("a reader's query, p50", 1000 * percentile(looks, 0.5), "ms"),
        Figure("a reader's query, max", 1000 * looks[-1], "ms"),
        Figure("views that differ from their SELECT", differ, "", at_most=0),
        Figure("tables of cells that nothing refers to", len(surplus), "", at_most=0),
        Figure("files of the log that nothing refers to", files_surplus, "", at_most=0),
        Figure("folders of processes that have ended", folders_left, "", at_most=0),
    ]


def orders_seen(opened: Deployment) -> int:
    """The orders that readers see."""
    with opened.database.snapshot() as connection:
        return int(connection.exec_driver_sql("SELECT orders FROM analytics.total").scalar_one())


def count_differing(opened: Deployment) -> int:
    """Runs `lamina check`, and returns the number of views that differ."""
    command = [sys.executable, "-m", "lamina", "check", "--json"]
    done = subprocess.run(command, env=environment_for(opened), capture_output=True, text=True, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert results, done.stderr
    return sum(result["result"] != "equal" for result in results)


if __name__ == "__main__":
    main()
