"""Half an hour at two micro-batches a second over the same hot cells, while an idle reader holds a snapshot.

Twice a second a hundred events are sent, all within one hour, so every micro-batch merges into the same cells as the
one before. The idle reader keeps Postgres from removing rows that the reader might still need: old versions of those
cells, and rows of Postgres' own tables. The reader is an analyst, so the limit of idle transactions ends its session,
and it returns at once with a new snapshot. With `--owner`, the owner holds one snapshot, which no limit ends. The
benchmark compares the time from sending until progress has passed the events, at the beginning and at the end, and the
size of all growing tables.
"""

from __future__ import annotations

import select
import time
from datetime import UTC, datetime
from itertools import pairwise

import click
import psycopg2

from benchmarks import events
from benchmarks.figures import Figure, benchmark, percentile
from benchmarks.running import deployment, speed_layer
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output
from serving_layer.promise import progress

EVERY = 0.5
"""Seconds between two micro-batches."""

SLOWER = 1.5
"""Largest ratio of the last micro-batches' time to the first ones'."""

WARM_UP = 120
"""Micro-batches after the start, which warm up Java."""


@click.command()
@click.option("--minutes", default=30, show_default=True)
@click.option("--cells", default=100, show_default=True, help="Hot cells of each of two views.")
@click.option("--owner", is_flag=True, help="Hold one snapshot until the end, as only the owner may.")
@benchmark
def main(output: Output, minutes: int, cells: int, owner: bool) -> list[Figure]:
    """Two micro-batches a second over the same cells under an idle snapshot: the slowdown of the last ones."""
    views = {name: sql for name, sql in events.VIEWS.items() if name in ("places", "products")}
    with deployment(output) as opened:
        applying.apply(opened, events.catalog(**views))
        with speed_layer(opened), opened.brokers.producer() as producer:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            wanted = range(max(6, minutes * 120))
            took: list[float] = []
            commits: list[float] = []
            before: dict[str, float] = {}
            reader = IdleReader(opened.settings.postgres if owner else opened.settings.analyst or "")
            for number in range(-WARM_UP, len(wanted)):
                if number == 0:
                    before = _sizes(opened)
                if number >= 0 and number % 2 == 0:
                    reader.hold()
                began = time.monotonic()
                for event in range(cells):
                    producer.send("events", _event(event, now), partition=event % events.PARTITIONS)
                producer.flush()
                spent = _until_caught_up(opened, began)
                if number >= 0:
                    took.append(spent)
                    commits.append(time.monotonic())
                    if (number + 1) % 600 == 0:
                        output.tell(f"{number + 1} micro-batches: {1000 * percentile(sorted(took[-300:]), 0.5):.0f} ms")
                time.sleep(max(0.0, began + EVERY - time.monotonic()))
            after = _sizes(opened)
            reader.close()
    part = max(1, len(took) // 6)
    first, last = (percentile(sorted(some), 0.5) for some in (took[:part], took[-part:]))
    gaps = sorted(b - a for a, b in pairwise(commits))
    return [
        Figure("micro-batches", len(took), ""),
        Figure("between two of them, p50", percentile(gaps, 0.5), "s"),
        Figure("from sending to progress, first sixth, p50", 1000 * first, "ms"),
        Figure("from sending to progress, last sixth, p50", 1000 * last, "ms"),
        Figure("snapshots that the idle reader held", reader.snapshots, ""),
        Figure("last by first", last / first, "", at_most=SLOWER),
        *(Figure(f"{name}, before", before[name], "KB") for name in before),
        *(Figure(f"{name}, after", after[name], "KB") for name in after),
    ]


def _event(number: int, ts: str) -> bytes:
    return (
        f'{{"seq":{number},"user_id":{number},"kind":"view","country":"C{number % 20}","city":"city {number}",'
        f'"product_id":{number},"price":1.25,"quantity":1,"ts":"{ts}"}}'
    ).encode()


def _until_caught_up(opened: Deployment, began: float) -> float:
    end = opened.brokers.latest("events")
    while True:
        with opened.database.begin() as connection:
            if progress.read(connection, ["events"]).reaches(end):
                return time.monotonic() - began
        time.sleep(0.005)


class IdleReader:
    """Reads once, and then holds its snapshot until the server ends the session."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._open: psycopg2.extensions.connection | None = None
        self.snapshots = 0

    def hold(self) -> None:
        """Takes a new snapshot if the server has ended the session."""
        if self._open is not None and not _ended(self._open):
            return
        self.close()
        self._open = psycopg2.connect(self._url)
        self._open.set_session(isolation_level="REPEATABLE READ", readonly=True)
        self._open.cursor().execute("SELECT count(*) FROM analytics.places")
        self.snapshots += 1

    def close(self) -> None:
        """Ends its session."""
        if self._open is not None:
            self._open.close()


def _ended(connection: psycopg2.extensions.connection) -> bool:
    """True if the server has ended the session. The server is not asked, because a query would end the idleness."""
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable)


def _sizes(opened: Deployment) -> dict[str, float]:
    """Kilobytes of Postgres' own tables that a table per micro-batch would fill, and of the cells."""
    query = """
        SELECT 'pg_class and pg_attribute', sum(pg_total_relation_size(oid)) / 1024 FROM pg_class
        WHERE oid IN ('pg_class'::regclass, 'pg_attribute'::regclass)
        UNION ALL SELECT 'cells', sum(pg_total_relation_size(oid)) / 1024 FROM pg_class
        WHERE relnamespace = 'cells'::regnamespace AND relkind = 'r'
        UNION ALL SELECT 'bookkeeping', sum(pg_total_relation_size(oid)) / 1024 FROM pg_class
        WHERE relnamespace = 'lamina'::regnamespace AND relkind = 'r'"""
    with opened.database.begin() as connection:
        return {name: float(size) for name, size in connection.exec_driver_sql(query)}


if __name__ == "__main__":
    main()
