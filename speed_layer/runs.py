"""Which queries share a run, and what becomes of the others when one of them leaves it.

Small sources that keep up share one run. A query that fails, is refused, waits for a lock or becomes busy leaves it:
the run ends, the others go on at once in the next from where they are, and the one that left goes on by itself until it
is small and well again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from master_log.fetching import LeaderChanged
from master_log.offsets import OffsetRange
from serving_layer.postgres.database import is_away
from speed_layer.judging import LONGEST_WAIT, Judge, said
from speed_layer.query import Query
from speed_layer.resources import Resources
from speed_layer.run import Run, spark_is_gone
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.speed")

JOIN_EVERY = 30.0
"""Seconds between two times that a shared run is begun anew because somebody joins it: the others pause meanwhile."""

TOGETHER = 2
"""Failures of shared runs, one after the other and of no member, after which their members go on apart."""

SHARED_RECORDS = 50_000
"""Bound of a micro-batch that several sources share, in offsets."""


@dataclass
class Runs:
    """The runs of a speed layer: those that its queries, by name, are in."""

    resources: Resources
    judge: Judge
    clock: Callable[[], float]
    queries: Mapping[str, Query]
    _joined_at: float = float("-inf")
    _not_before: float = float("-inf")
    _failures: int = 0
    _delay: float = 0.0

    def look(self) -> None:
        """Takes note of the runs that ended, of what was committed, and of who leaves a shared run or joins it."""
        for run in self._all():
            of_run = self._in(run)
            if run.ended():
                self._note_end(run, of_run)
            else:
                self._note_commits(run, of_run)
                self._give_up(run, of_run)
        self._join()

    def begin(self) -> None:
        """Begins runs for the members that are in none."""
        together: dict[str, Query] = {}
        for query in self.queries.values():
            if query.member is None or query.run is not None or self.clock() < query.not_before:
                continue
            if query.shares(self.clock()) and query.source.topic not in together:
                together[query.source.topic] = query
            else:
                self._begin([query])
        if together and self.clock() >= self._not_before:
            self._begin(list(together.values()))

    def end(self, queries: Iterable[Query]) -> None:
        """Ends these queries. Of those that share a run with them the run ends, and the next goes on."""
        for query in queries:
            if query.run is not None:
                self._stop(query.run, [query, *self._in(query.run)])
            query.member = None

    def _all(self) -> list[Run]:
        return list(dict.fromkeys(query.run for query in self.queries.values() if query.run is not None))

    def _in(self, run: Run) -> list[Query]:
        return [query for query in self.queries.values() if query.run is run]

    def _stop(self, run: Run, of_run: Iterable[Query]) -> None:
        """Ends a run; a member whose micro-batch was in the middle begins again from progress."""
        run.stop()
        for query in of_run:
            query.run = None
            if query.member is not None and query.member.failure() is not None:
                query.member = None

    def _begin(self, queries: list[Query]) -> None:
        shared = len(queries) > 1
        most = min(SHARED_RECORDS, self.resources.max_records) if shared else self.judge.bound(queries[0])
        members = [query.member for query in queries if query.member is not None]
        try:
            run = Run(self.resources, members, max_records=most)
        except Exception as error:
            if spark_is_gone(error):
                raise  # no other run can begin
            self._judge(queries, error)
            return
        for query in queries:
            query.run, query.began = run, self.clock()
            query.halvings = 0 if shared else query.halvings
        if shared:
            log.info("%d sources share a run", len(queries))
        elif queries[0].grew or queries[0].halvings:
            log.info("%s: micro-batches of up to %d records", queries[0].source.name, most)

    def _note_end(self, run: Run, of_run: list[Query]) -> None:
        """Judges those whose member failed; the others have lost nothing. Where none did, it was the run itself."""
        failed = [
            (query, query.member, failure)
            for query in of_run
            if query.member is not None and (failure := query.member.failure()) is not None
        ]
        self._stop(run, of_run)
        if not failed:
            self._judge(of_run, run.failure())
        elif run.shared:
            for query, _, _ in failed:
                query.keep_apart(self.clock())
            self.begin()  # the others, before the questions that the judge asks and waits for
        for query, member, failure in failed:
            self.judge.judge(query, failure, member)

    def _give_up(self, run: Run, of_run: list[Query]) -> None:
        """Gives up members whose micro-batch takes too long, or in which a record was skipped meanwhile.

        The next look finds that they have failed. If the brokers do not give what is read, the wait is no record's
        fault, and goes on.
        """
        shortest = self.resources.patience.shared
        longest = shortest if run.shared else self.resources.patience.alone
        for query in of_run:
            if query.member is None:
                continue
            flow = query.member.flow
            flow.planner.give_up(shortest)
            if (range := flow.overdue(shortest)) is None:
                continue
            late = flow.overdue(longest) is not None or self.judge.skipped_since(range, range.holds(flow.skipped))
            if late and self._is_readable(range):
                query.member.give_up(range)

    def _is_readable(self, range: OffsetRange) -> bool:
        try:
            self.resources.brokers.tails(range.moved)
        except LaminaError:
            return False
        return True

    def _judge(self, queries: list[Query], failure: BaseException) -> None:
        """Of a run that failed, and none of its members: a lone query, or those whose topic is lost, or all."""
        if isinstance(failure, LeaderChanged):  # what was read ahead is read again
            delay = min(max(0.1, 2 * max(query.delay for query in queries)), LONGEST_WAIT)
            for query in queries:
                query.delay, query.not_before = delay, self.clock() + delay
            log.info("%s; reading again from where it is in %.1f s", failure, delay)
            return
        if len(queries) == 1:
            [query] = queries
            member, query.member = query.member, None
            self.judge.judge(query, failure, member)
            return
        answers = self.resources.brokers.listening()
        if answers and (lost := [query for query in queries if self._lost(query)]):
            for query in lost:
                query.member = None
            self.begin()
            for query in lost:
                self.judge.judge(query, failure)
            return
        self._delay = min(max(0.5, 2 * self._delay), LONGEST_WAIT)
        self._not_before = self.clock() + self._delay
        told = (queries[0].source.name, len(queries) - 1, said(failure), self._delay)
        log.warning("%s and %d more: %s; starting again in %.1f s", *told)
        if answers and not is_away(failure):  # brokers that answer while one question of all fails: it is one topic's
            self._failures += 1
            if self._failures >= TOGETHER:
                for query in queries:
                    query.keep_apart(self.clock())

    def _lost(self, query: Query) -> bool:
        """Is its topic gone, or what it would read next? A topic that is gone is waited for by whoever judges it."""
        try:
            gone = self.resources.brokers.topic_id(query.source.topic) is None
        except LaminaError:
            return False
        return gone or self.judge.lost_records(query) is not None

    def _note_commits(self, run: Run, of_run: list[Query]) -> None:
        for query in of_run:
            member = query.member if run.commits else None  # those before this run say nothing of it
            if member is not None and member.commits and self.judge.commits(query, member.commits):
                self.end([query])
        if not run.shared:
            return
        if run.commits:
            self._failures, self._delay = 0, 0.0
        if busy := [query for query in of_run if query.busy]:
            for query in busy:
                query.keep_apart(self.clock())
            self._stop(run, of_run)

    def _join(self) -> None:
        """Ends the runs of those who may share one, so that they begin together."""
        if self.clock() < self._joined_at + JOIN_EVERY:
            return
        self._joined_at = self.clock()
        topics: dict[str, Run] = {}
        for query in self.queries.values():
            if query.run is not None and query.shares(self.clock()):
                topics.setdefault(query.source.topic, query.run)
        runs = list(dict.fromkeys(topics.values()))
        if len(runs) > 1:
            for run in runs:
                self._stop(run, self._in(run))
