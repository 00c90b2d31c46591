"""Events at a steady rate from another process, and the times at which the analyst could read them."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from benchmarks import events
from benchmarks.running import analyst, threads
from lamina.operations.deployment import Deployment
from master_log.kafka.brokers import Brokers

SPAWN = multiprocessing.get_context("spawn")
"""The context of the sender's process and its shared values."""

POLL_EVERY = 0.02
"""Seconds between two looks of the watcher."""

TICK = 0.005
"""Seconds between two looks of the sender at due events."""


@dataclass(frozen=True)
class Schedule:
    """Events `first`, `first` + 1, … in turn to the partitions, each due at its own instant.

    started: due time of `first`, in seconds of the machine's monotonic clock
    sent: number of sent events, shared with the sender's process
    latest: greatest delay of an event in seconds, shared as well
    """

    first: int
    rate: int
    started: float
    sent: Synchronized[int]
    latest: Synchronized[float]

    def due(self, seq: int) -> float:
        """The due time of an event. Measurements begin there, so a sender that falls behind hides nothing."""
        return self.started + (seq - self.first) / self.rate


@contextmanager
def traffic(
    opened: Deployment, *, rate: int, first: int, event: Callable[[int], bytes] = events.one_live
) -> Iterator[Schedule]:
    """Sends as long as the block lasts, beginning in two seconds."""
    schedule = Schedule(first, rate, time.monotonic() + 2.0, SPAWN.Value("q", 0), SPAWN.Value("d", 0.0))
    with sender(_send, opened.settings.kafka, schedule, event):
        yield schedule


@contextmanager
def sender(send: Callable[..., None], *arguments: object) -> Iterator[None]:
    """Runs `send(stopping, *arguments)` in another process as long as the block lasts. It must not end before."""
    stopping = SPAWN.Event()
    process = SPAWN.Process(target=send, args=(stopping, *arguments), daemon=True)
    process.start()
    try:
        yield
        assert process.is_alive(), "the sender of the traffic has ended"
    finally:
        stopping.set()
        process.join(30)


def _send(stopping: Any, bootstrap_servers: str, schedule: Schedule, event: Callable[[int], bytes]) -> None:
    seq = schedule.first
    with Brokers(bootstrap_servers) as brokers, brokers.producer() as producer:
        while not stopping.is_set():
            now = time.monotonic()
            while (due := schedule.due(seq)) <= now:
                producer.send("events", event(seq), partition=seq % events.PARTITIONS)
                schedule.latest.value = max(schedule.latest.value, time.monotonic() - due)
                seq += 1
            schedule.sent.value = seq - schedule.first
            time.sleep(TICK)


@dataclass
class Watcher:
    """Reads `analytics.lanes` every 20 ms over its own connection, and notes the time of each new state."""

    opened: Deployment
    seen: list[tuple[float, dict[int, int]]] = field(default_factory=list)
    failed: BaseException | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watches as long as the block lasts."""
        with threads(self._stopping, self._watch):
            yield

    def wait_for(self, schedule: Schedule) -> None:
        """Returns when the first events of the traffic can be read, so the speed layer runs."""
        while self.failed is None and not (self.seen and all(at >= schedule.first for at in self.seen[-1][1].values())):
            time.sleep(POLL_EVERY)

    def gaps(self, begin: float, end: float) -> list[float]:
        """Seconds between two new states, for all gaps that touch the span. Each is a time without a commit."""
        times = [at for at, _ in self.seen]
        return [b - a for a, b in pairwise(times) if b > begin and a < end]

    def freshness(self, schedule: Schedule, begin: float, end: float) -> list[float]:
        """Seconds from due to seen, sorted, for every event that was due in the span and was seen."""
        ages: list[float] = []
        before: dict[int, int] = {}
        for at, state in self.seen:
            for lane, newest in state.items():
                last = before.get(
                    lane, schedule.first + (lane - schedule.first) % events.PARTITIONS - events.PARTITIONS
                )
                due = (schedule.due(seq) for seq in range(last + events.PARTITIONS, newest + 1, events.PARTITIONS))
                ages += [at - instant for instant in due if begin <= instant < end]
                before[lane] = max(last, newest)
        return sorted(ages)

    def _watch(self) -> None:
        try:
            connection = analyst(self.opened)
            with connection.cursor() as cursor:
                while not self._stopping.wait(POLL_EVERY):
                    cursor.execute("SELECT lane, newest FROM analytics.lanes")
                    state = dict(cursor.fetchall())
                    if not self.seen or state != self.seen[-1][1]:
                        self.seen.append((time.monotonic(), state))
            connection.close()
        except BaseException as error:
            self.failed = error
            raise
