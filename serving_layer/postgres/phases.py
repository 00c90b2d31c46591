"""Seconds that micro-batches spend in each phase: a row a minute per source, kept for a day.

The speed layer sums them in memory and inserts them once a minute, so a micro-batch makes no extra write.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, get_args

from sqlalchemy import Connection, text

Phase = Literal["read", "compute", "stage", "merge", "commit"]
"""
read: fetch the records if they are few (otherwise Spark reads them while it computes)
compute: Spark and, for a stream with UNIQUE, the look-up of its ids, which waits for the previous commit
stage: copy the cells into Postgres
merge: merge them, and write progress
commit: the rest of the transaction, which waits for the lock of the source and for the disk
"""

PHASES: tuple[Phase, ...] = get_args(Phase)

_SUMS = ("micro_batches", *PHASES)

_NOTE = text(f"""
INSERT INTO lamina.micro_batch_seconds AS m (query, minute, {", ".join(_SUMS)})
SELECT name, date_trunc('minute', clock_timestamp()), CAST(:micro_batches AS bigint), :{", :".join(PHASES)}
FROM lamina.query WHERE name = :query
ON CONFLICT (query, minute) DO UPDATE SET {", ".join(f"{name} = m.{name} + excluded.{name}" for name in _SUMS)}
""")

_TRIM = text("DELETE FROM lamina.micro_batch_seconds WHERE minute < clock_timestamp() - interval '1 day'")


@dataclass(frozen=True)
class Timer:
    """Seconds of one micro-batch by phase. A phase that runs twice counts twice."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Counts the seconds of the block, less those of the phases inside it."""
        began, before = time.monotonic(), sum(self.seconds.values())
        try:
            yield
        finally:
            self.seconds[name] += time.monotonic() - began - (sum(self.seconds.values()) - before)


@dataclass
class Phases:
    """Sums the micro-batches of all sources between two notes. Threads may share it."""

    _spent: dict[str, dict[str, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, query: str, timer: Timer) -> None:
        """Adds a micro-batch of a query."""
        with self._lock:
            sums = self._spent.setdefault(query, dict.fromkeys(_SUMS, 0.0))
            for name, seconds in {"micro_batches": 1.0, **timer.seconds}.items():
                sums[name] += seconds

    def take(self) -> Mapping[str, Mapping[str, float]]:
        """Returns the sums by query since the last call, and resets them."""
        with self._lock:
            spent = dict(self._spent)
            self._spent.clear()
        return spent


def note(connection: Connection, spent: Mapping[str, Mapping[str, float]]) -> None:
    """Adds these sums to this minute's rows, and deletes rows older than a day."""
    for query, sums in spent.items():
        connection.execute(_NOTE, {"query": query, **sums})
    connection.execute(_TRIM)
