"""Many small sources: the time to catch up with all of them, their freshness, and the use of the cores.

Every source has a topic of two partitions and two views of its records. There is a backlog before the speed layer
starts, as `lamina up` starts it. Then records trickle into each source, which is measured. Then no records come.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import click
import psutil

from benchmarks.figures import Figure, benchmark, percentile
from benchmarks.running import analyst, deployment, speed_layer, threads
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.services.background import SpeedProcess
from lamina.terminal.render import Output

P99, LONGEST_START = 2.0, 60.0

SOURCE = """
CREATE TABLE s{n} (id BIGINT, country STRING, price DECIMAL(8,2), ts TIMESTAMP)
USING kafka OPTIONS (topic 's{n}', format 'json') TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');
CREATE VIEW count{n} AS SELECT count(*) AS records FROM s{n};
CREATE VIEW sales{n} AS
SELECT date_trunc('HOUR', ts) AS hour, country, count(*) AS records, sum(price) AS spent, max(ts) AS last_seen
FROM s{n} GROUP BY date_trunc('HOUR', ts), country;
"""

LOOK_EVERY = 0.05
"""Seconds between two looks of the reader at all counts."""


@dataclass
class Trickle:
    """Sends a record to each source every `every` seconds, one source after another, and notes when it could
    be read.
    """

    opened: Deployment
    sources: int
    every: float
    sent: list[list[float]] = field(default_factory=list)
    fresh: list[tuple[float, float]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def send(self) -> None:
        """Sends until it is stopped. A record's measured time begins when the record is due."""
        self.sent = [[] for _ in range(self.sources)]
        began, number = time.monotonic(), 0
        with self.opened.brokers.producer() as producer:
            while not self.stopping.is_set():
                due = began + number * self.every / self.sources
                if self.stopping.wait(max(0.0, due - time.monotonic())):
                    break
                source = number % self.sources
                producer.send(f"s{source}", record(number), partition=number // self.sources % 2)
                self.sent[source].append(due)
                number += 1

    def watch(self, held: int) -> None:
        """Notes for each record when it was due, and the seconds until it could be read."""
        counts = " UNION ALL ".join(f"SELECT {n}, records FROM analytics.count{n}" for n in range(self.sources))
        seen = [0] * self.sources
        with analyst(self.opened) as connection, connection.cursor() as cursor:
            while not self.stopping.wait(LOOK_EVERY):
                cursor.execute(counts)
                now = time.monotonic()
                for source, records in cursor.fetchall():
                    new = self.sent[source][seen[source] : records - held]
                    self.fresh += [(due, now - due) for due in new]
                    seen[source] += len(new)

    @contextmanager
    def going(self, held: int) -> Iterator[None]:
        """Sends and watches as long as the block lasts. Each source had `held` records before."""
        self.sent = [[] for _ in range(self.sources)]
        with threads(self.stopping, self.send, partial(self.watch, held)):
            yield


def record(number: int) -> bytes:
    """A record of one of twenty countries."""
    value = {"id": number, "country": f"C{number % 20}", "price": f"{number % 1000}.25", "ts": "2026-01-01T00:00:00Z"}
    return json.dumps(value).encode()


def cpu_seconds(opened: Deployment) -> float:
    """CPU seconds that the speed layer's processes have used so far."""
    running = SpeedProcess(opened.settings.home).background.find()
    assert running is not None
    process = psutil.Process(running.pid)
    times = [member.cpu_times() for member in (process, *process.children(recursive=True))]
    return float(sum(spent.user + spent.system for spent in times))


def wait_until_counted(opened: Deployment, sources: int, records: int) -> float:
    """Seconds until every source's view counts this many records."""
    began = time.monotonic()
    counts = " UNION ALL ".join(f"SELECT records FROM analytics.count{n}" for n in range(sources))
    with analyst(opened) as connection, connection.cursor() as cursor:
        while True:
            cursor.execute(f"SELECT count(*) FILTER (WHERE records >= {records}) FROM ({counts}) AS counts")
            (done,) = cursor.fetchone() or (0,)
            if done == sources:
                return time.monotonic() - began
            time.sleep(LOOK_EVERY)


@click.command()
@click.option("--sources", default=40, show_default=True, help="Number of sources.")
@click.option("--held", default=100, show_default=True, help="Records of each source before the speed layer starts.")
@click.option("--every", default=2.0, show_default=True, help="Seconds between two records of a source.")
@click.option("--warm-up", default=60, show_default=True, help="Seconds of traffic that are not measured.")
@click.option("--seconds", default=120, show_default=True, help="Seconds of measured traffic.")
@benchmark
def main(output: Output, sources: int, held: int, every: float, warm_up: int, seconds: int) -> list[Figure]:
    """Many small sources: catching up, freshness, and cores in use."""
    with deployment(output) as opened:
        applying.apply(opened, {f"s{n}.sql": SOURCE.format(n=n) for n in range(sources)})
        with opened.brokers.producer() as producer:
            for number in range(held * sources):
                producer.send(f"s{number % sources}", record(number), partition=number // sources % 2)
        with speed_layer(opened):
            caught_up = wait_until_counted(opened, sources, held)
            output.tell(f"all of {sources} sources have caught up after {caught_up:.1f} s")
            trickle = Trickle(opened, sources, every)
            with trickle.going(held):
                time.sleep(warm_up)
                begin, used = time.monotonic(), cpu_seconds(opened)
                time.sleep(seconds)
                end, busy = time.monotonic(), (cpu_seconds(opened) - used) / seconds
                load = os.getloadavg()[1]
                time.sleep(10)  # the last records become visible
            wait_until_counted(opened, sources, held + min(map(len, trickle.sent)))
            used = cpu_seconds(opened)
            time.sleep(20)
            idle = (cpu_seconds(opened) - used) / 20
    ages = sorted(waited for due, waited in trickle.fresh if begin <= due < end)
    sent = sum(begin <= due < end for dues in trickle.sent for due in dues)
    return [
        Figure("caught up after the start", caught_up, "s", at_most=LONGEST_START),
        Figure("records measured", len(ages), ""),
        Figure("records never seen", sent - len(ages), "", at_most=0),
        Figure("p50", percentile(ages, 0.5), "s"),
        Figure("p99", percentile(ages, 0.99), "s", at_most=P99),
        Figure("max", ages[-1], "s"),
        Figure("cores used while records trickle", busy, ""),
        Figure("cores used while none come", idle, ""),
        Figure("load average while measuring", load, ""),
    ]


if __name__ == "__main__":
    main()
