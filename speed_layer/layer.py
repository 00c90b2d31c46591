"""The speed layer as a process: one run per deployed source, begun anew whenever it can go on.

It takes each query over with a fence token of its own. What can be waited for (Postgres, Kafka) is waited for; what
cannot (a newer speed layer, a topic that is another one, records that are gone) ends the query with its reason.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from py4j.protocol import Py4JError

from master_log.kafka import KafkaAway
from master_log.offsets import Offsets
from master_log.reading import Unreadable, cause
from serving_layer import progress, rebuilds, skipping
from serving_layer.database import PostgresError, first_line, is_away
from serving_layer.deployed import applied, deployed
from serving_layer.progress import Fenced
from speed_layer.heartbeat import heartbeat
from speed_layer.query import CannotGoOn, Parts, Run, StartAgain, check_topic, spark_is_gone
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.speed")

_T = TypeVar("_T")

LOOK_EVERY = 0.2
"""Seconds between two looks at the runs."""

CHECK_EVERY = 5.0
"""Seconds between two looks at the ids of the topics."""

MANY_FAILURES = 3
"""Runs of a query that failed one after the other, after which a person is told (`lamina status`)."""

CAUGHT_UP_EVERY = 1.0
"""Seconds between two looks whether there is anything left to count: what an idle view's freshness is told by."""

LOOKS_KEPT = 600
"""Looks that are remembered until progress has reached the ends they saw: ten minutes of them."""

LEAP_EVERY = 1.0
"""Seconds between two looks whether a leap has landed."""

REFUSED_EVERY = 10.0
"""Seconds between two looks whether what refused a query has been mended from outside, as by a leap."""

GROW_AFTER = 2
"""Micro-batches that a query commits before its bound, which failures have halved, doubles again."""

MOST_PATIENCE = 64
"""Micro-batches that it commits, at the most, where the doubled bound failed again and again."""

LONGEST_WAIT = 10.0
"""Seconds: the greatest delay before a query that failed is started again."""


@dataclass
class _Query:
    """A deployed source, and its run if it has one.

    halvings: of its micro-batches, down to one record, while they fail. grow_after: commits until one is taken back;
    grew: the run is the first with the greater bound. ends: what its topic was seen to have, until progress is there.
    """

    source: Source
    fence: int | None = None
    run: Run | None = None
    refused: LaminaError | None = None
    failures: int = 0
    halvings: int = 0
    grow_after: int = GROW_AFTER
    grew: bool = False
    delay: float = 0.0
    not_before: float = 0.0
    ends: deque[tuple[float, Offsets]] = field(default_factory=lambda: deque(maxlen=LOOKS_KEPT))


@dataclass
class SpeedLayer:
    """Runs the queries of the deployed catalog until `stopping` is set or none of them can go on."""

    parts: Parts
    stopping: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic
    _queries: dict[str, _Query] = field(default_factory=dict)
    _deployed_at: object = None
    _checked_at: float = 0.0
    _caught_up_at: float = 0.0

    def run(self, *, until_caught_up: bool = False) -> None:
        """Returns when it was stopped or, if asked, when progress has reached the ends the topics have now.

        Raises the reason of the first query that was refused, once no other can go on; at once when it was fenced.
        """
        try:
            with heartbeat(self._say_it_lives):
                self._go_on(until_caught_up=until_caught_up)
            self._end_all()
            self._let_go()
        except (Py4JError, ConnectionError) as error:
            if not spark_is_gone(error):
                raise
            raise LaminaError(
                "Spark's process has ended",
                evidence=first_line(error),
                way_out="Start the speed layer again: it goes on from progress. Too little memory is the usual cause.",
            ) from error
        except (PostgresError, LaminaError) as error:
            if not (self.stopping.is_set() and is_away(error)):  # what is away need not be waited for by who stops
                raise
        finally:
            self._end_all()

    def _go_on(self, *, until_caught_up: bool) -> None:
        self._look_at_catalog()
        goal = self._when_kafka_answers(self._ends) if until_caught_up else None
        while not self.stopping.is_set():
            self.parts.database.waiting(self._look, give_up=self.stopping.is_set)
            refused = [query.refused for query in self._queries.values() if query.refused]
            fenced = [reason for reason in refused if isinstance(reason, Fenced)]
            if fenced or (refused and len(refused) == len(self._queries)):
                raise (fenced or refused)[0]
            if goal is not None and self._reached(goal):
                if refused:
                    raise refused[0]
                break
            self.stopping.wait(LOOK_EVERY)

    def _end_all(self) -> None:
        for query in self._queries.values():
            self._end(query)

    def _look(self) -> None:
        """One look at everything; it can be repeated from the start where Postgres goes away in the middle."""
        self._look_at_catalog()
        for query in self._queries.values():
            self._look_at(query)
        self._check_topics()
        self._note_caught_up()

    def _look_at_catalog(self) -> None:
        """Follows what was applied: new sources are begun, dropped ones ended.

        A view that is new, changed or dropped needs no look: the next commit finds other versions registered.
        """
        with self.parts.database.begin() as connection:
            now = applied(connection)
            if now == self._deployed_at:
                return
            sources = deployed(connection).sources
        self._deployed_at = now
        for name in [name for name, query in self._queries.items() if sources.get(name) != query.source]:
            self._end(self._queries.pop(name))
            log.info("%s: %s", name, "declared anew" if name in sources else "dropped")
        for name, source in sources.items():
            self._queries.setdefault(name, _Query(source))

    def _look_at(self, query: _Query) -> None:
        """Begins a run where there is none; takes note of why one ended."""
        if self.clock() < query.not_before or not self._may_go_on(query):
            return
        if query.run is None:
            self._begin(query)
        elif (failure := query.run.failure()) is not None:
            run = query.run
            self._end(query)
            self._judge(query, failure, run)
        elif query.run.commits:
            self._note_success(query, query.run)

    def _note_success(self, query: _Query, run: Run) -> None:
        """A query that commits has left its failures behind; its micro-batches grow to what they were, by doubling."""
        if query.failures >= MANY_FAILURES:
            self._tell(query, None)
        query.failures, query.delay = 0, 0.0
        if query.halvings and run.commits >= query.grow_after:
            query.halvings, query.grew = query.halvings - 1, True
            self._end(query)
        elif not query.halvings:
            query.grow_after, query.grew = GROW_AFTER, False

    def _may_go_on(self, query: _Query) -> bool:
        """Whether nothing refuses a query, or no longer: a leap goes past lost records, a right is given."""
        if query.refused is None:
            return True
        if isinstance(query.refused, Fenced):
            return False
        if self._unskipped(query.refused) or self._lost_records(query) is not None:
            query.not_before = self.clock() + REFUSED_EVERY
            return False
        query.refused = query.fence = None
        return True

    def _begin(self, query: _Query) -> None:
        try:
            if query.fence is None:
                with self.parts.database.begin() as connection:
                    progress.lock(connection, [query.source.name])
                    if rebuilds.leaping(connection):
                        query.not_before = self.clock() + LEAP_EVERY
                        return
                    query.fence = progress.take_over(connection, query.source.name, writer())
                    query.halvings = max(query.halvings, halvings_after(progress.deaths(connection, query.source.name)))
            most = max(1, self.parts.max_records >> query.halvings)
            query.run = Run(self.parts, query.source, query.fence, max_records=most)
            if query.grew or query.halvings:
                log.info("%s: micro-batches of up to %d records", query.source.name, most)
        except Exception as error:
            if spark_is_gone(error):
                raise  # no other run can begin
            self._judge(query, error)  # which tells what can be waited for from what cannot

    def _judge(self, query: _Query, failure: BaseException, run: Run | None = None) -> None:
        """Decides whether a query that ended starts again from progress, waits, or is refused."""
        reason = _refusal(failure)
        if isinstance(reason, Fenced) and (taken_by := self._given_back(query)) is not None:
            query.fence = None
            log.info("%s: taken over by %s, which gives it back", query.source.name, taken_by)
            return
        if reason is None and not isinstance(failure, StartAgain):
            reason = self._lost_records(query) or self._unreadable(query, failure, run)
        if reason is not None:
            query.refused = reason
            query.not_before = self.clock() + REFUSED_EVERY
            log.error("%s stopped: %s", query.source.name, reason)
            if not isinstance(reason, Fenced):
                with self.parts.database.begin() as connection:
                    progress.stop(connection, query.source.name, _alarm(reason))
            return
        if isinstance(failure, StartAgain):
            log.info("%s", failure)
            return
        query.failures += 1
        query.delay = min(max(0.5, 2 * query.delay), LONGEST_WAIT)
        if not _away(failure):
            if self.parts.max_records >> query.halvings > 1:
                query.halvings, query.delay = query.halvings + 1, 0.5  # what is tried next is another thing
                query.grow_after = min(2 * query.grow_after, MOST_PATIENCE) if query.grew else query.grow_after
            query.grew = False
            if query.failures >= MANY_FAILURES:
                self._tell(query, f"it fails again and again: {_said(failure)}{self._named(query, run)}")
        query.not_before = self.clock() + query.delay
        log.warning("%s: %s; starting again from progress in %.1f s", query.source.name, _said(failure), query.delay)

    def _given_back(self, query: _Query) -> str | None:
        """Who took the query over only for a moment: a leap, which may have landed by now, or a skip."""
        with self.parts.database.begin() as connection:
            writer = progress.queries(connection)[query.source.name].writer
        return writer if rebuilds.is_leap(writer) or skipping.is_skip(writer) else None

    def _unreadable(self, query: _Query, failure: BaseException, run: Run | None) -> LaminaError | None:
        """The record that Spark cannot read, if it is one by which the query failed for a second time."""
        if run is None or not query.failures or _away(failure):
            return None
        try:
            return run.unreadable()
        except KafkaAway:
            return None

    def _unskipped(self, reason: LaminaError) -> bool:
        """Is it a record that cannot be read and that nobody has skipped yet?"""
        if not isinstance(reason, Unreadable):
            return False
        with self.parts.database.begin() as connection:
            return (reason.at, reason.offset) not in skipping.read(connection)

    def _named(self, query: _Query, run: Run | None) -> str:
        """The way past the record that the query fails at, where its micro-batches are down to one (a partition)."""
        if run is None or run.max_records > 1 or (failed := run.failed) is None:
            return ""
        records = [f"{at.partition} {failed.start[at]}" for at in failed.end if failed.start[at] < failed.end[at]]
        ways = " or ".join(f"`lamina skip {query.source.name} {record} --reason TEXT`" for record in records)
        return f"; {ways} goes past the record"

    def _tell(self, query: _Query, what: str | None) -> None:
        """Tells whoever asks for the status what is wrong with a query that goes on all the same."""
        with suppress(PostgresError, LaminaError), self.parts.database.begin() as connection:
            progress.stop(connection, query.source.name, what)

    def _lost_records(self, query: _Query) -> LaminaError | None:
        """Asks the brokers whether a failed run can go on at all; None while they, or Postgres, are away."""
        try:
            with self.parts.database.begin() as connection:
                recorded = progress.queries(connection)[query.source.name]
                reached, tails = progress.known(connection, query.source.name)
            check_topic(self.parts.brokers, query.source, recorded.topic_id, reached, tails)
        except CannotGoOn as error:
            return error
        except LaminaError:
            return None
        return None

    def _check_topics(self) -> None:
        """A topic that is deleted and created again while a query reads it would be read on at other records."""
        if self.clock() < self._checked_at + CHECK_EVERY:
            return
        self._checked_at = self.clock()
        for query in self._queries.values():
            if query.refused is None and (reason := self._lost_records(query)) is not None:
                self._end(query)
                self._judge(query, reason)

    def _note_caught_up(self) -> None:
        if self.clock() < self._caught_up_at + CAUGHT_UP_EVERY:
            return
        self._caught_up_at = self.clock()
        for name, query in self._queries.items():
            if query.run is not None:
                with suppress(PostgresError, LaminaError):
                    began = self.clock()
                    query.ends.append((began, self.parts.brokers.latest(query.source.topic)))
                    with self.parts.database.begin() as connection:
                        now = self.clock()
                        done = progress.seen(connection, name, [(now - at, end) for at, end in query.ends])
                    for _ in range(done):
                        query.ends.popleft()

    def _say_it_lives(self) -> None:
        if fences := self._fences():
            with self.parts.database.begin() as connection:
                progress.heard(connection, fences)

    def _let_go(self) -> None:
        """Ends in order: whoever reads the status need not look for this process."""
        with suppress(PostgresError, LaminaError), self.parts.database.begin() as connection:
            progress.let_go(connection, self._fences())

    def _fences(self) -> dict[str, int]:
        # A copy: the heartbeat asks from another thread.
        return {name: query.fence for name, query in list(self._queries.items()) if query.fence is not None}

    def _when_kafka_answers(self, question: Callable[[], _T]) -> _T | None:
        """The answer, waited for; None when it was stopped meanwhile."""
        told = False
        while not self.stopping.is_set():
            try:
                return question()
            except KafkaAway as error:
                if not told:
                    log.warning("%s; waiting for it", error.what)
                told = True
                self.stopping.wait(LOOK_EVERY)
        return None

    def _ends(self) -> dict[str, Offsets]:
        return {name: self.parts.brokers.latest(query.source.topic) for name, query in self._queries.items()}

    def _reached(self, goal: dict[str, Offsets]) -> bool:
        def read() -> bool:
            with self.parts.database.begin() as connection:
                return all(
                    progress.read(connection, [name]).reaches(end)
                    for name, end in goal.items()
                    if name in self._queries and self._queries[name].refused is None
                )

        return self.parts.database.waiting(read, give_up=self.stopping.is_set)

    def _end(self, query: _Query) -> None:
        if query.run is not None:
            query.run.stop()
            query.run = None


def halvings_after(deaths: int) -> int:
    """How often the bound of micro-batches is halved from the start, where the processes before this one have died.

    One that dies of its first micro-batch would meet it again: the next begins with an eighth. A single death says
    nothing, as of a machine that was switched off.

    >>> [halvings_after(deaths) for deaths in (0, 1, 2, 3)]
    [0, 0, 3, 6]
    """
    return 3 * max(0, deaths - 1)


def writer() -> str:
    """Who this process is, for whoever finds that it was taken over."""
    return f"{progress.PROCESS}{os.getpid()} ({_TOKEN}) on {socket.gethostname()}"


_TOKEN = secrets.token_hex(2)
"""Tells this process from one of the same number, as in a container that was started again."""


def _away(failure: BaseException) -> bool:
    """Whether waiting mends it."""
    return isinstance(failure, KafkaAway) or is_away(failure)


def _refusal(failure: BaseException) -> LaminaError | None:
    """The failure itself, if waiting would not mend it."""
    return failure if isinstance(failure, LaminaError) and not _away(failure) else None


def _alarm(reason: LaminaError) -> str:
    """What `lamina status` says of a query that was refused: the way out, too, where it is a command."""
    return f"{reason.what}: {reason.way_out}" if isinstance(reason, CannotGoOn | Unreadable) else reason.what


def _said(failure: BaseException) -> str:
    if isinstance(failure, LaminaError):
        return failure.what
    return first_line(failure) if isinstance(failure, PostgresError) else cause(failure) or first_line(failure)
