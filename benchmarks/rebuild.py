"""A rebuild of two million cells under traffic: what readers and the speed layer notice of it.

2,000 events a second go on all the while, the speed layer runs as `lamina up` runs it, and a reader asks for one cell
after the other through the analyst's view. Before, the same is watched for a while without a rebuild: what both show is
the machine's, not the rebuild's. The speed layer's pause is the time between two commits, as the analyst sees them; the
one that counts touches the time from the last cell loaded until the generation is live.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta

import click

from benchmarks import events
from benchmarks.common import Figure, analyst, benchmark, catch_up, deployment, percentile, speed_layer
from benchmarks.traffic import Watcher, traffic
from lamina.deployment import Deployment
from lamina.render import Output
from view_algebra.errors import LaminaError

RATE = 2_000
READER_PAUSE, SPEED_PAUSE = 50.0, 1.0
"""Milliseconds and seconds."""

READ_EVERY = 0.002
"""Seconds between two queries of the reader."""

WARM_UP = 30.0
"""Seconds of traffic after the speed layer's start, before anything is watched."""


@dataclass
class Reader:
    """One look-up after the other; keeps when each began and how long it took."""

    opened: Deployment
    days: int
    took: list[tuple[float, float]] = field(default_factory=list)
    failed: BaseException | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads as long as the block lasts."""
        thread = threading.Thread(target=self._read, name="reader")
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()
        if self.failed is not None:
            raise self.failed

    def of(self, begin: float, end: float) -> list[float]:
        """Milliseconds of the queries that ran in a span, sorted."""
        return sorted(1000 * seconds for at, seconds in self.took if at + seconds > begin and at < end)

    def _read(self) -> None:
        dice, first = random.Random(1), date.fromisoformat(events.FIRST_DAY)
        try:
            connection = analyst(self.opened)
            with connection.cursor() as cursor:
                while not self._stopping.wait(READ_EVERY):
                    asked = (first + timedelta(dice.randrange(self.days)), dice.randrange(events.USERS))
                    began = time.monotonic()
                    cursor.execute(
                        "SELECT events, spent FROM analytics.user_days WHERE day = %s AND user_id = %s", asked
                    )
                    rows = cursor.fetchall()
                    self.took.append((began, time.monotonic() - began))
                    if len(rows) != 1:
                        raise LaminaError(f"The cell {asked} was not to be read", evidence=f"found {len(rows)} rows")
            connection.close()
        except BaseException as error:  # noqa: BLE001 (raised by whoever started it)
            self.failed = error


@dataclass
class Steps:
    """When each step of a rebuild ended, by the places that `BatchLayer` names; going live begins at `absorbed`."""

    began: float = 0.0
    at: list[tuple[str, float]] = field(default_factory=list)

    def note(self, place: str) -> None:
        """Called by the batch layer."""
        if place == "absorbed" or place.startswith("after "):
            self.at.append((place.removeprefix("after "), time.monotonic()))

    def span(self, step: str) -> tuple[float, float]:
        """From the end of the step before until the end of this one."""
        number = [name for name, _ in self.at].index(step)
        return (self.at[number - 1][1] if number else self.began), self.at[number][1]


@click.command()
@click.option("--records", default=2_500_000, show_default=True)
@click.option("--days", default=events.DAYS, show_default=True, help="Each with 5,000 cells.")
@click.option("--calm", default=60, show_default=True, help="Seconds that are watched without a rebuild.")
@benchmark
def main(output: Output, records: int, days: int, calm: int) -> list[Figure]:
    """A rebuild under traffic: the longest pauses of a reader and of the speed layer."""
    steps = Steps()
    with deployment(output) as opened:
        opened.apply(events.catalog(user_days=events.USER_DAYS, lanes=events.LANES))
        events.send_user_days(opened, records, days=days, users=events.USERS)
        output.tell(f"{records:,} records are in Kafka")
        catch_up(opened)
        with opened.database.autocommit() as connection:
            connection.exec_driver_sql("VACUUM (ANALYZE)")
        opened.at = steps.note
        batch, watcher, reader = opened.batch, Watcher(opened), Reader(opened, days)
        with (
            speed_layer(opened),
            watcher.watching(),
            reader.reading(),
            traffic(opened, rate=RATE, first=records) as told,
        ):
            watcher.wait_for(told)
            time.sleep(WARM_UP)
            output.tell(f"watching for {calm} s without a rebuild")
            quiet = time.monotonic()
            time.sleep(calm)
            steps.began = time.monotonic()
            proofs = batch.rebuild(["user_days"])
            end, busy = time.monotonic(), os.getloadavg()[0]
            time.sleep(5)
    for name, _ in steps.at:
        begin, ended = steps.span(name)
        reads, gaps = reader.of(begin, ended), watcher.gaps(begin, ended)
        output.tell(
            f"{name}: {ended - begin:.2f} s; reader's longest {max(reads, default=0):.1f} ms,"
            f" between two commits at most {max(gaps, default=0):.2f} s"
        )
    before, during = reader.of(quiet, steps.began), reader.of(steps.began, end)
    loaded = steps.span("compute user_days")[1]
    live = steps.span("go-live")
    return [
        Figure("cells compared by the proof", sum(proof.cells for proof in proofs), ""),
        Figure("cells that differ", sum(proof.differing for proof in proofs), "", at_most=0),
        Figure("rebuild, all steps", end - steps.began, "s"),
        Figure("rebuild, all steps", records / (end - steps.began), "records/s"),
        Figure("reader without a rebuild, p99", percentile(before, 0.99), "ms"),
        Figure("reader without a rebuild, max", before[-1], "ms"),
        Figure("reader during the rebuild, p99", percentile(during, 0.99), "ms"),
        Figure("reader during the rebuild, max", during[-1], "ms", at_most=READER_PAUSE),
        Figure("speed layer without a rebuild, max", max(watcher.gaps(quiet, steps.began)), "s"),
        Figure("speed layer during the rebuild, max", max(watcher.gaps(steps.began, end)), "s"),
        Figure("speed layer going live, max", max(watcher.gaps(loaded, live[1])), "s", at_most=SPEED_PAUSE),
        Figure("lock held to go live, at most", live[1] - live[0], "s"),
        Figure("load average at the end", busy, ""),
    ]


if __name__ == "__main__":
    main()
