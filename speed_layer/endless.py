"""Records that Spark would compute for minutes or forever: the time limits, and the search for these records.

A task that spins, as in a regular expression that tries every way through a text, never checks for an interrupt. Only
the end of its process ends it. So the source first leaves its run, and the other sources continue. Then Spark's process
is renewed, and another process, which may be killed any number of times, searches for the record.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from master_log.offsets import OffsetRange, Offsets, Skipped, TopicPartition
from master_log.reading.kafka_reader import UnpassableRecord
from speed_layer.jobs import SETTLES_WITHIN, Jobs
from view_algebra.compiled import Source

log = logging.getLogger("lamina.speed")


@dataclass(frozen=True)
class TimeLimits:
    """Seconds for which the tasks of a micro-batch may run.

    shared: for a member of a shared run, before it leaves the run. The other members wait for it meanwhile, and their
        records are to be counted within half a minute
    alone: for a query with its own run, and for a single record. Micro-batches that take longer are halved
    probed: for a range that is searched for an endless record. It equals `shared`, so that the search meets the record
        that made its source leave the run
    per_record: added to `probed` for each record, since a range of the master log is long
    """

    shared: float = 10.0
    alone: float = 60.0
    probed: float = 10.0
    per_record: float = 0.0

    def of(self, range: OffsetRange) -> float:
        """Seconds within which a range without an endless record is computed."""
        return self.probed + self.per_record * range.size


class TooLong(Exception):
    """Raised for a micro-batch that was given up because Spark had been computing it for too long.

    skipped: the records of its range that were skipped when it was read
    shared: it was computed in a shared run
    """

    def __init__(self, range: OffsetRange, jobs: Jobs, skipped: Skipped, *, shared: bool) -> None:
        moved = "; ".join(f"{range.start[at]} to {end} of partition {at.partition}" for at, end in range.moved.items())
        super().__init__(f"Spark had been computing the offsets {moved} for {jobs.seconds:.0f} s")
        self.range, self.jobs, self.skipped, self.shared = range, jobs, skipped, shared


class EndlessRecord(UnpassableRecord):
    """A record that is not computed within `TimeLimits.alone`.

    maintained: the tables of cells that it was computed for
    """

    def __init__(
        self, source: Source, at: TopicPartition, offset: int, seconds: float, maintained: frozenset[str]
    ) -> None:
        evidence = (
            f"Spark computed it alone for {seconds:.0f} s, and was stopped. A regular expression or a function"
            " in a view of this source takes too long on its text."
        )
        then = "If the expression can take long on other records, too, change the view."
        super().__init__(f"is not computed within {seconds:.0f} s", source, at, offset, evidence, then)
        self.maintained = maintained


class Probe(Protocol):
    """A process of its own that computes ranges of one source, writing nothing, until one takes too long."""

    def longest(self, range: OffsetRange) -> tuple[TopicPartition, int] | None:
        """The record with the longest value."""

    def computes(self, range: OffsetRange, seconds: float) -> bool:
        """False if the range's tasks ran for that many seconds and were killed. An earlier failure is True."""

    def close(self) -> None:
        """Kills the process, whatever it computes. A pending call of `computes` returns at once."""


@dataclass
class Hang:
    """A micro-batch that was given up, until the reason for its slowness is established.

    spins: its tasks run although they were cancelled, or None until that is established
    ended: Spark's process has ended since
    at: when the micro-batch was given up, on the monotonic clock
    """

    given_up: TooLong
    spins: bool | None = None
    ended: bool = False
    at: float = field(default_factory=time.monotonic)
    search: Search | None = None

    def look(self) -> None:
        """Establishes whether the tasks spin, once tasks that can end have had the time to do so."""
        if self.spins is None and time.monotonic() >= self.at + SETTLES_WITHIN:
            self.spins = self.given_up.jobs.run_longer_than(SETTLES_WITHIN)


class Search:
    """Searches a range for its endless record, in a thread, until it is closed.

    It is a `Probe` itself: each time a process had to be killed, it starts another for the next range.

    record: its partition and offset, or None while it is unknown and if every record is computed in time
    """

    def __init__(self, begin: Callable[[], Probe], range: OffsetRange, limits: TimeLimits) -> None:
        self.record: tuple[TopicPartition, int] | None = None
        self._begin, self._range, self._limits = begin, range, limits
        self._closed = threading.Event()
        self._probe: Probe | None = None
        self._thread = threading.Thread(target=self._run, name="search", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """True if the search has ended."""
        return not self._thread.is_alive()

    def await_end(self, seconds: float) -> None:
        """Returns when the search has ended, or after this many seconds."""
        self._thread.join(max(0.0, seconds))

    def close(self) -> None:
        """Ends the search and its process."""
        self._closed.set()
        if (probe := self._probe) is not None:
            probe.close()
        self._thread.join(1.0)

    def _run(self) -> None:
        try:
            record = find_endless(self._range, self, self._limits)
            self.record = None if self._closed.is_set() else record
        except Exception as error:  # noqa: BLE001 (the query tries again, and is given up again)
            if not self._closed.is_set():
                log.warning("the search for a record that takes too long failed: %s", error)
        finally:
            if self._probe is not None:
                self._probe.close()

    def longest(self, range: OffsetRange) -> tuple[TopicPartition, int] | None:
        """As `Probe.longest`, of the current probe or a new one."""
        return self._running_probe().longest(range)

    def computes(self, range: OffsetRange, seconds: float) -> bool:
        """As `Probe.computes`, of the current probe or a new one."""
        if self._running_probe().computes(range, seconds):
            return True
        self._probe = None
        return False

    def _running_probe(self) -> Probe:
        if self._probe is None:
            self._probe = self._begin()
        if self._closed.is_set():  # the probe may have been started after `close`
            self._probe.close()
        return self._probe


def find_endless(range: OffsetRange, probe: Probe, limits: TimeLimits) -> tuple[TopicPartition, int] | None:
    """A record of a range that is not computed within `limits.alone`, or None if every record is.

    The longest record is the most likely one, and is tried first. Then a part of the range that takes longer than
    `limits.probed` is halved repeatedly. It may consist of many records that take a little each, so the record that
    remains is allowed `limits.alone`.
    """
    suspect = probe.longest(range)
    if suspect is not None and not probe.computes(_range_of(*suspect), limits.alone):
        return suspect
    for at, end in range.moved.items():
        low, high = range.start[at], end
        if _computes(probe, _range_of(at, low, high), limits):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _computes(probe, _range_of(at, low, middle), limits) else (low, middle)
        if (at, low) != suspect and not probe.computes(_range_of(at, low), limits.alone):
            return at, low
    return None


def _computes(probe: Probe, range: OffsetRange, limits: TimeLimits) -> bool:
    return probe.computes(range, limits.of(range))


def _range_of(at: TopicPartition, low: int, high: int | None = None) -> OffsetRange:
    return OffsetRange(Offsets({at: low}), Offsets({at: low + 1 if high is None else high}))
