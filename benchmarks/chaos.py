"""Everything at once, and killed at moments that nobody chose: what a reader sees is compared all the while.

A producer sends; speed layers, rebuilds and leaps run as processes of their own, and each is killed (-9) at a random
moment or runs to its end; views are rolled back in between. A reader takes one snapshot after the other, in which every
view must say the same of the same records: as many as lie below the progress of that snapshot. At the end `check`
compares every row with the SELECT of its author.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import click
import psycopg2

from batch_layer.check import check
from benchmarks.common import Figure, benchmark, deployment
from lamina.deployment import Deployment
from lamina.render import Output
from tests.fix_catalogs import CATALOG, event
from view_algebra.errors import LaminaError

TOPIC = "chaos"
RATE = 100
"""Records a second, while everything is killed and started."""

SAME = """
    SELECT (SELECT sum(next_offset) FROM lamina.progress),
           (SELECT events FROM analytics.totals),
           (SELECT sum(events) FROM analytics.hourly),
           (SELECT sum(events) FROM analytics.places),
           (SELECT count(*) FROM analytics.clicks) + (SELECT events FROM analytics.others)
"""
"""The records below progress, counted in five ways."""

OTHERS = "CREATE VIEW others AS SELECT count(*) AS events FROM events WHERE kind IS DISTINCT FROM 'click';"


@dataclass
class Reader:
    """One snapshot after the other, as the owner (who may see progress)."""

    url: str
    snapshots: int = 0
    away: int = 0
    wrong: list[Sequence[Any]] = field(default_factory=list)

    def read(self, stopping: threading.Event) -> None:
        """Reads until it is stopped."""
        connection = None
        while not stopping.wait(0.005):
            try:
                connection = connection or psycopg2.connect(self.url)
                connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
                with connection, connection.cursor() as cursor:
                    cursor.execute(SAME)
                    [found] = cursor.fetchall()
            except psycopg2.Error:
                self.away += 1
                connection = None
                continue
            self.snapshots += 1
            if len({int(each or 0) for each in found}) != 1:
                self.wrong.append(found)


@contextmanager
def _meanwhile(run: Any, *arguments: Any) -> Iterator[None]:
    stopping = threading.Event()
    thread = threading.Thread(target=run, args=(*arguments, stopping), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _send(opened: Deployment, stopping: threading.Event) -> None:
    number = 0
    with opened.brokers.producer() as producer:
        while not stopping.wait(0.1):
            for _ in range(RATE // 10):
                producer.send(TOPIC, json.dumps(event(number)).encode())
                number += 1


def _lamina(opened: Deployment, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "LAMINA_HOME": str(opened.settings.home)}
    command = [sys.executable, "-m", "lamina", *arguments]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def _until_killed(opened: Deployment, dice: random.Random, said: Counter[str], stopping: threading.Event) -> None:
    """Speed layers, one after the other."""
    while not stopping.is_set():
        process = _lamina(opened, "speed", "--max-records", "400")
        stopping.wait(dice.uniform(8, 25))
        _end(process, "speed", said, after=0)


def _rebuilds(opened: Deployment, dice: random.Random, said: Counter[str], stopping: threading.Event) -> None:
    """Rebuilds, leaps and roll-backs, one after the other."""
    while not stopping.is_set():
        match dice.randrange(6):
            case 0:
                process = _lamina(opened, "rollback", dice.choice(["totals", "hourly", "others"]))
                _end(process, "rollback", said)
            case 1:
                process = _lamina(opened, "rebuild", "--leap")
                _end(process, "leap", said, after=dice.uniform(5, 25) if dice.random() < 0.5 else None)
            case _:
                process = _lamina(opened, "rebuild", *dice.choice([(), ("totals",), ("hourly", "others")]))
                _end(process, "rebuild", said, after=dice.uniform(5, 25) if dice.random() < 0.6 else None)


def _end(process: subprocess.Popen[str], what: str, said: Counter[str], *, after: float | None = None) -> None:
    """Kills it after so many seconds, if asked; notes how it ended: killed, done, or with its error's first line."""
    if after is not None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
        if process.poll() is None:
            process.kill()
    try:
        _, err = process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        process.kill()
        said[f"{what}: hung for 240 s"] += 1
        return
    errors = [line for line in err.splitlines() if line.startswith(("error: ", "Traceback"))]
    told = {0: "done", -9: "killed"}.get(process.returncode, errors[0] if errors else f"exit {process.returncode}")
    said[f"{what}: {told}"] += 1


@click.command()
@click.option("--minutes", default=5, show_default=True)
@click.option("--seed", default=1, show_default=True)
@benchmark
def main(output: Output, minutes: int, seed: int) -> list[Figure]:
    """Processes killed at random moments, while a reader compares several views in one snapshot."""
    said: Counter[str] = Counter()
    with deployment(output) as opened:
        files = {f"{name}.sql": sql.replace("{topics}_events", TOPIC) for name, sql in CATALOG.items()}
        opened.apply({**files, "others.sql": OTHERS})
        reader = Reader(opened.settings.postgres)
        with (
            _meanwhile(reader.read),
            _meanwhile(_send, opened),
            _meanwhile(_until_killed, opened, random.Random(seed), said),
            _meanwhile(_rebuilds, opened, random.Random(seed + 1), said),
        ):
            for minute in range(minutes):
                time.sleep(60)
                output.tell(
                    f"{minute + 1} min: {reader.snapshots:,} snapshots, {len(reader.wrong)} wrong, {dict(said)}"
                )
                if reader.wrong:
                    break
        opened.speed(threading.Event(), max_records=100_000).run(until_caught_up=True)
        proofs = opened.batch.rebuild()
        checked = check(opened.database, opened.spark, opened.log, opened.brokers)
        for found in reader.wrong[:5]:
            output.tell(f"below progress, totals, hourly, places, clicks and others: {[str(each) for each in found]}")
        if not reader.snapshots:
            raise LaminaError("Nothing was read", evidence=f"{reader.away} attempts failed")
    return [
        Figure("snapshots of five views", reader.snapshots, ""),
        Figure("of them wrong", len(reader.wrong), "", at_most=0),
        Figure("records", sum(checked[0].below.values()), ""),
        Figure("cells that differ in the last proof", sum(proof.differing for proof in proofs), "", at_most=0),
        Figure("views that differ from their SELECT", sum(not each.equal for each in checked), "", at_most=0),
        *(Figure(what, count, "") for what, count in sorted(said.items())),
    ]


if __name__ == "__main__":
    main()
