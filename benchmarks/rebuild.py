"""A rebuild of two million cells under traffic: its effect on readers and the speed layer.

2,000 events a second arrive all the time, the speed layer runs as in `lamina up`, and a reader asks for one cell after
another through the analyst's view. The same is first measured for a while without a rebuild, which shows the machine's
part of the pauses. The output also shows how long the longest query waited for a processor. The speed layer's pause is
the time between two commits, as the analyst sees them. The pause with a target is the longest that touches the time
from the last loaded cell until the generation is live.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import click
import psycopg2

from benchmarks import events
from benchmarks.figures import Figure, benchmark, percentile
from benchmarks.running import catch_up, deployment, speed_layer
from benchmarks.traffic import Watcher, traffic
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.terminal.render import Output
from view_algebra.errors import LaminaError

RATE = 2_000
READER_PAUSE, SPEED_PAUSE = 50.0, 1.0
"""Limits in milliseconds for the reader, and in seconds for the speed layer."""

READ_EVERY = 0.002
"""Seconds between two queries of the reader."""

WARM_UP = 30.0
"""Seconds of traffic after the speed layer's start, before the measurement."""


class Look(NamedTuple):
    """One look-up of the reader: its start, its seconds, and the seconds for which it waited for a processor."""

    began: float
    took: float
    starved: float


@dataclass
class Reader:
    """Looks up one cell after another through the analyst's view, in its own process."""

    looks: list[Look] = field(default_factory=list)

    @contextmanager
    def reading(self, opened: Deployment, days: int) -> Iterator[None]:
        """Reads as long as the block lasts. `looks` is filled after the block."""
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=_read, args=(opened.settings.analyst, days, there), daemon=True)
        process.start()
        there.close()  # so that the end of the reader is noticed
        try:
            yield
        finally:
            here.send("stop")
            self.looks = here.recv()
            process.join()

    def of(self, begin: float, end: float) -> list[Look]:
        """The look-ups that ran in a span, the longest last."""
        return sorted(
            (look for look in self.looks if look.began + look.took > begin and look.began < end),
            key=lambda look: look.took,
        )


def _read(url: str, days: int, pipe: Any) -> None:
    """Looks up a cell every 2 ms until `pipe` says to stop. A missing cell ends it without an answer."""
    os.setsid()  # like a dashboard, since Linux shares processors between sessions first
    dice, first = random.Random(1), date.fromisoformat(events.FIRST_DAY)
    looks = []
    connection = psycopg2.connect(url)
    connection.autocommit = True
    mine = (connection.info.backend_pid, threading.get_native_id())
    with connection.cursor() as cursor:
        while not pipe.poll(READ_EVERY):
            asked = (first + timedelta(dice.randrange(days)), dice.randrange(events.USERS))
            starved, began = _starved(*mine), time.monotonic()
            cursor.execute("SELECT events, spent FROM analytics.user_days WHERE day = %s AND user_id = %s", asked)
            rows = cursor.fetchall()
            took = time.monotonic() - began
            looks.append(Look(began, took, _starved(*mine) - starved))
            if len(rows) != 1:
                raise LaminaError(f"The cell {asked} could not be read", evidence=f"found {len(rows)} rows")
    connection.close()
    pipe.send(looks)


def _starved(backend: int, thread: int) -> float:
    """Seconds for which Postgres' process and a thread of ours were ready to run but had no processor (Linux)."""
    files = (Path(f"/proc/{backend}/schedstat"), Path(f"/proc/self/task/{thread}/schedstat"))
    return sum(int(file.read_text().split()[1]) for file in files) / 1e9


@dataclass
class Steps:
    """The end of each step of a rebuild, by the places that `BatchLayer` names. Going live begins at `absorbed`."""

    began: float = 0.0
    at: list[tuple[str, float]] = field(default_factory=list)

    def note(self, place: str) -> None:
        """Notes the time. The batch layer calls it at each place."""
        if place == "absorbed" or place.startswith("after "):
            self.at.append((place.removeprefix("after "), time.monotonic()))

    def span(self, step: str) -> tuple[float, float]:
        """The span from the end of the step before to the end of this one."""
        number = [name for name, _ in self.at].index(step)
        return (self.at[number - 1][1] if number else self.began), self.at[number][1]


def narrate_steps(output: Output, steps: Steps, reader: Reader, watcher: Watcher) -> None:
    """Narrates the effect of each step on the reader and the speed layer."""
    for name, _ in steps.at:
        begin, ended = steps.span(name)
        looks, gaps = reader.of(begin, ended), watcher.gaps(begin, ended)
        longest = looks[-1] if looks else Look(begin, 0.0, 0.0)
        output.tell(
            f"{name}: {ended - begin:.2f} s; reader's longest {1000 * longest.took:.1f} ms"
            f" ({1000 * longest.starved:.1f} without a processor), two commits {max(gaps, default=0):.2f} s apart"
        )


@click.command()
@click.option("--records", default=2_500_000, show_default=True)
@click.option("--days", default=events.DAYS, show_default=True, help="Days with 5,000 cells each.")
@click.option("--calm", default=60, show_default=True, help="Measured seconds without a rebuild.")
@benchmark
def main(output: Output, records: int, days: int, calm: int) -> list[Figure]:
    """A rebuild under traffic: the longest pauses of a reader and of the speed layer."""
    steps = Steps()
    with deployment(output) as opened:
        applying.apply(opened, events.catalog(user_days=events.USER_DAYS, lanes=events.LANES))
        events.send_user_days(opened, records, days=days, users=events.USERS)
        output.tell(f"{records:,} records are in Kafka")
        catch_up(opened)
        with opened.database.autocommit() as connection:
            connection.exec_driver_sql("VACUUM (ANALYZE)")
        opened.at = steps.note
        batch, watcher, reader = opened.batch, Watcher(opened), Reader()
        with (
            speed_layer(opened),
            watcher.watching(),
            reader.reading(opened, days),
            traffic(opened, rate=RATE, first=records) as sending,
        ):
            watcher.wait_for(sending)
            time.sleep(WARM_UP)
            output.tell(f"watching for {calm} s without a rebuild")
            quiet = time.monotonic()
            time.sleep(calm)
            steps.began = time.monotonic()
            proofs = batch.rebuild(["user_days"])
            end, busy = time.monotonic(), os.getloadavg()[0]
            time.sleep(5)
    narrate_steps(output, steps, reader, watcher)
    before, during = reader.of(quiet, steps.began), reader.of(steps.began, end)
    loaded = steps.span("compute user_days")[1]
    live = steps.span("go-live")
    return [
        Figure("cells compared by the proof", sum(proof.cells for proof in proofs), ""),
        Figure("cells that differ", sum(proof.differing for proof in proofs), "", at_most=0),
        Figure("rebuild, all steps", end - steps.began, "s"),
        Figure("rebuild, all steps", records / (end - steps.began), "records/s"),
        *_pauses("reader without a rebuild", before),
        *_pauses("reader during the rebuild", during, at_most=READER_PAUSE),
        Figure("speed layer without a rebuild, max", max(watcher.gaps(quiet, steps.began)), "s"),
        Figure("speed layer during the rebuild, max", max(watcher.gaps(steps.began, end)), "s"),
        Figure("speed layer going live, max", max(watcher.gaps(loaded, live[1])), "s", at_most=SPEED_PAUSE),
        Figure("lock held to go live, at most", live[1] - live[0], "s"),
        Figure("load average at the end", busy, ""),
    ]


def _pauses(name: str, looks: Sequence[Look], at_most: float | None = None) -> list[Figure]:
    over = [look for look in looks if 1000 * look.took > READER_PAUSE]
    return [
        Figure(f"{name}, p50", 1000 * percentile([look.took for look in looks], 0.5), "ms"),
        Figure(f"{name}, p99", 1000 * percentile([look.took for look in looks], 0.99), "ms"),
        Figure(f"{name}, max", 1000 * looks[-1].took, "ms", at_most=at_most),
        Figure(f"{name}, max, of it without a processor", 1000 * looks[-1].starved, "ms"),
        Figure(f"{name}, queries over {READER_PAUSE:.0f} ms of {len(looks):,}", len(over), ""),
    ]


if __name__ == "__main__":
    main()
