"""The speed layer as a process: one run per deployed source, begun anew whenever it can go on.

It takes each query over with a fence token of its own. What can be waited for (Postgres, Kafka) is waited for; what
cannot (a newer speed layer, a topic that is another one, records that are gone) ends the query with its reason.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from master_log.kafka import KafkaAway
from master_log.offsets import Offsets
from serving_layer import progress, rebuilds, registry
from serving_layer.bookkeeping import declaration
from serving_layer.database import first_line, is_away
from serving_layer.progress import Fenced
from speed_layer.query import CannotGoOn, Parts, Run, StartAgain, check_topic
from view_algebra.compiled import Catalog, Source
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.speed")

LOOK_EVERY = 0.2
"""Seconds between two looks at the runs."""

CHECK_EVERY = 5.0
"""Seconds between two looks at the ids of the topics."""

MANY_FAILURES = 3
"""Runs of a query that failed one after the other, after which a person is told (`lamina status`)."""

CAUGHT_UP_EVERY = 1.0
"""Seconds between two looks whether there is anything left to count: what an idle view's freshness is told by."""

LEAP_EVERY = 1.0
"""Seconds between two looks whether a leap has landed."""

REFUSED_EVERY = 10.0
"""Seconds between two looks whether what refused a query has been mended from outside, as by a leap."""

MOST_HALVINGS = 5
"""A micro-batch is halved so often, at the most, while it fails: it may be one that memory does not hold."""

LONGEST_WAIT = 10.0
"""Seconds: the greatest delay before a query that failed is started again."""


@dataclass
class _Query:
    """A deployed source, and its run if it has one. `halvings`: of its micro-batches, while they fail."""

    source: Source
    fence: int | None = None
    run: Run | None = None
    refused: LaminaError | None = None
    failures: int = 0
    halvings: int = 0
    delay: float = 0.0
    not_before: float = 0.0


@dataclass
class SpeedLayer:
    """Runs the queries of the deployed catalog until `stopping` is set or none of them can go on."""

    parts: Parts
    stopping: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic
    _queries: dict[str, _Query] = field(default_factory=dict)
    _catalog: Catalog | None = None
    _deployed_at: object = None
    _checked_at: float = 0.0
    _caught_up_at: float = 0.0

    def run(self, *, until_caught_up: bool = False) -> None:
        """Returns when it was stopped or, if asked, when progress has reached the ends the topics have now.

        Raises the reason of the first query that was refused, once no other can go on; at once when it was fenced.
        """
        try:
            self._look_at_catalog()
            goal = self._ends() if until_caught_up else None
            while not self.stopping.is_set():
                self.parts.database.waiting(self._look, give_up=self.stopping.is_set)
                refused = [query.refused for query in self._queries.values() if query.refused]
                fenced = [reason for reason in refused if isinstance(reason, Fenced)]
                if fenced or (refused and len(refused) == len(self._queries)):
                    raise (fenced or refused)[0]
                if goal is not None and self._reached(goal):
                    if refused:
                        raise refused[0]
                    return
                self.stopping.wait(LOOK_EVERY)
        except (DBAPIError, LaminaError) as error:
            if not (self.stopping.is_set() and is_away(error)):  # what is away need not be waited for by who stops
                raise
        finally:
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
            applied = connection.execute(select(func.max(declaration.c.applied_at), func.count())).one()
            if applied == self._deployed_at:
                return
            _, self._catalog = registry.deployed(connection)
            registry.check_versions(connection, self._catalog)
        self._deployed_at = applied
        sources = {name: source for name, source in self._catalog.sources.items() if source.kind == "stream"}
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
            self._end(query)
            self._judge(query, failure)
        elif self.clock() > query.not_before + 2 * LONGEST_WAIT:
            query.delay = 0.0
            if query.failures >= MANY_FAILURES:
                self._tell(query, None)
            query.failures = query.halvings = 0  # the run that goes on keeps its bound

    def _may_go_on(self, query: _Query) -> bool:
        """Whether nothing refuses a query, or no longer: a leap goes past lost records, a right is given."""
        if query.refused is None:
            return True
        if isinstance(query.refused, Fenced):
            return False
        if self._lost_records(query) is not None:
            query.not_before = self.clock() + REFUSED_EVERY
            return False
        query.refused = query.fence = None
        return True

    def _begin(self, query: _Query) -> None:
        assert self._catalog is not None
        try:
            if query.fence is None:
                with self.parts.database.begin() as connection:
                    progress.lock(connection, [query.source.name])
                    if rebuilds.leaping(connection):
                        query.not_before = self.clock() + LEAP_EVERY
                        return
                    query.fence = progress.take_over(connection, query.source.name, writer())
            most = max(1, self.parts.max_records >> query.halvings)
            query.run = Run(self.parts, query.source, self._catalog, query.fence, max_records=most)
        except Exception as error:  # noqa: BLE001 (`_judge` tells what can be waited for from what cannot)
            self._judge(query, error)

    def _judge(self, query: _Query, failure: BaseException) -> None:
        """Decides whether a query that ended starts again from progress, waits, or is refused."""
        reason = _refusal(failure)
        if isinstance(reason, Fenced) and self._leapt_over(query):
            query.fence = None
            log.info("%s: a leap has taken it over; waiting until it has landed", query.source.name)
            return
        if reason is None and not isinstance(failure, StartAgain):
            reason = self._lost_records(query)
        if reason is not None:
            query.refused = reason
            query.not_before = self.clock() + REFUSED_EVERY
            log.error("%s stopped: %s", query.source.name, reason)
            if not isinstance(reason, Fenced):
                with self.parts.database.begin() as connection:
                    progress.stop(connection, query.source.name, reason.what)
            return
        if isinstance(failure, StartAgain):
            log.info("%s", failure)
            return
        query.failures += 1
        if not isinstance(failure, KafkaAway) and not is_away(failure):
            query.halvings = min(query.halvings + 1, MOST_HALVINGS)
            if query.failures >= MANY_FAILURES:
                self._tell(query, f"it fails again and again: {_said(failure)}")
        query.delay = min(max(0.5, 2 * query.delay), LONGEST_WAIT)
        query.not_before = self.clock() + query.delay
        log.warning("%s: %s; starting again from progress in %.1f s", query.source.name, _said(failure), query.delay)

    def _leapt_over(self, query: _Query) -> bool:
        """Was it a leap that took the query over? It gives it back, and may have landed by now."""
        with self.parts.database.begin() as connection:
            return rebuilds.is_leap(progress.queries(connection)[query.source.name].writer)

    def _tell(self, query: _Query, what: str | None) -> None:
        """Tells whoever asks for the status what is wrong with a query that goes on all the same."""
        with suppress(DBAPIError, LaminaError), self.parts.database.begin() as connection:
            progress.stop(connection, query.source.name, what)

    def _lost_records(self, query: _Query) -> LaminaError | None:
        """Asks the brokers whether a failed run can go on at all; None while they, or Postgres, are away."""
        try:
            with self.parts.database.begin() as connection:
                recorded = progress.queries(connection)[query.source.name]
                reached = progress.read(connection, [query.source.name])
            check_topic(self.parts.brokers, query.source, recorded.topic_id, reached)
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
                with suppress(DBAPIError, LaminaError):
                    began = self.clock()
                    ends = self.parts.brokers.latest(query.source.topic)
                    with self.parts.database.begin() as connection:
                        progress.caught_up(connection, name, ends, self.clock() - began)

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


def writer() -> str:
    """Who this process is, for whoever finds that it was taken over."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def _refusal(failure: BaseException) -> LaminaError | None:
    """The failure itself, if waiting would not mend it."""
    away = isinstance(failure, KafkaAway) or is_away(failure)
    return failure if isinstance(failure, LaminaError) and not away else None


def _said(failure: BaseException) -> str:
    return failure.what if isinstance(failure, LaminaError) else first_line(failure)
