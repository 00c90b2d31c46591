"""Records that Spark would compute for minutes or for ever: what their source does, and which record it is.

A task that spins, as in a regular expression that tries every way through a text, looks at no interrupt. Only the end
of its process ends it. So the source leaves its run first, and the others go on. Then Spark's process is renewed, and
the record is looked for in another process, which may be killed as often as it takes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from master_log.offsets import OffsetRange, Offsets, TopicPartition
from master_log.reading import StopsAt
from speed_layer.jobs import SETTLES_WITHIN
from speed_layer.parts import Patience, Probe, TooLong
from view_algebra.compiled import Source

log = logging.getLogger("lamina.speed")


class Endless(StopsAt):
    """A record that is not computed within `Patience.alone`.

    maintained: the tables of cells that it was computed for.
    """

    def __init__(
        self, source: Source, at: TopicPartition, offset: int, seconds: float, maintained: frozenset[str]
    ) -> None:
        evidence = (
            f"Spark computed it alone for {seconds:.0f} s, and was stopped. A regular expression or a function"
            " in a view of this source takes too long on its text."
        )
        then = "A view whose expression can take long on other records, too, is best changed."
        super().__init__(f"is not computed within {seconds:.0f} s", source, at, offset, evidence, then)
        self.maintained = maintained


@dataclass
class Hang:
    """A micro-batch that was given up, until it is known why it took so long.

    shared: it was in a run of several sources. at: when it was given up, on the monotonic clock. spins: tasks of
    it run in spite of being cancelled; None until that is known. ended: Spark's process was ended since.
    """

    given_up: TooLong
    shared: bool
    spins: bool | None = None
    ended: bool = False
    at: float = field(default_factory=time.monotonic)
    search: Search | None = None

    def look(self) -> None:
        """Finds out whether it spins: a task that can end has ended by then."""
        if self.spins is None and time.monotonic() >= self.at + SETTLES_WITHIN:
            self.spins = self.given_up.jobs.run_longer_than(SETTLES_WITHIN)


class Asked(Protocol):
    """What `find` asks of a `Probe`, or of one after the other."""

    def longest(self, range: OffsetRange) -> tuple[TopicPartition, int] | None:
        """As `Probe.longest`."""

    def computes(self, range: OffsetRange, seconds: float) -> bool:
        """As `Probe.computes`."""


class Search:
    """Looks for the endless record of a range, in a thread, until it is closed.

    found: where it is; None if it is not known yet, or if every record is computed in time.
    """

    def __init__(self, begin: Callable[[], Probe], range: OffsetRange, patience: Patience) -> None:
        self.found: tuple[TopicPartition, int] | None = None
        self._begin, self._range, self._patience = begin, range, patience
        self._closed = threading.Event()
        self._probe: Probe | None = None
        self._thread = threading.Thread(target=self._run, name="search", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """True if it has ended."""
        return not self._thread.is_alive()

    def await_end(self, seconds: float) -> None:
        """Returns when it has ended, or after so many seconds."""
        self._thread.join(max(0.0, seconds))

    def close(self) -> None:
        """Ends it, with the process that it uses."""
        self._closed.set()
        if (probe := self._probe) is not None:
            probe.close()
        self._thread.join(1.0)

    def _run(self) -> None:
        try:
            found = find(self._range, self, self._patience)
            self.found = None if self._closed.is_set() else found
        except Exception as error:  # noqa: BLE001 (the query tries again, and is given up again)
            if not self._closed.is_set():
                log.warning("the search for a record that takes too long failed: %s", error)
        finally:
            if self._probe is not None:
                self._probe.close()

    def longest(self, range: OffsetRange) -> tuple[TopicPartition, int] | None:
        """Asks the process that there is, or another."""
        return self._asked().longest(range)

    def computes(self, range: OffsetRange, seconds: float) -> bool:
        """Asks the process that there is, or another."""
        if self._asked().computes(range, seconds):
            return True
        self._probe = None
        return False

    def _asked(self) -> Probe:
        if self._probe is None:
            self._probe = self._begin()
        if self._closed.is_set():  # it may have been begun since
            self._probe.close()
        return self._probe


def find(range: OffsetRange, asked: Asked, patience: Patience) -> tuple[TopicPartition, int] | None:
    """A record of a range that is not computed within `patience.alone`; None if every record is.

    Most often it is the longest. If it is not, it is found by halving: a part of the range that takes longer than
    `patience.probed` is halved. It may consist of many records that take a little each, so the one that is left is
    given all the time that a record may take.
    """
    suspect = asked.longest(range)
    if suspect is not None and not asked.computes(_part(*suspect), patience.alone):
        return suspect
    for at, end in range.moved.items():
        low, high = range.start[at], end
        if _computes(asked, _part(at, low, high), patience):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _computes(asked, _part(at, low, middle), patience) else (low, middle)
        if (at, low) != suspect and not asked.computes(_part(at, low), patience.alone):
            return at, low
    return None


def _computes(asked: Asked, range: OffsetRange, patience: Patience) -> bool:
    return asked.computes(range, patience.of(range))


def _part(at: TopicPartition, low: int, high: int | None = None) -> OffsetRange:
    return OffsetRange(Offsets({at: low}), Offsets({at: low + 1 if high is None else high}))
