"""The runs of a speed layer: a shared run for small sources, and runs of their own for the others.

Small sources that keep up share one run. A query that fails, is refused, waits for a lock or becomes busy leaves it.
Then the run ends, and the others continue at once in the next run, from their positions. The query that left continues
alone until it is small and well again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from master_log.kafka.fetching import LeaderChanged
from master_log.offsets import OffsetRange
from serving_layer.postgres.database import is_unavailable
from speed_layer.judge import Judge, doubled, summary
from speed_layer.query import Query
from speed_layer.resources import Resources
from speed_layer.run import Run, spark_is_gone
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.speed")

JOIN_EVERY = 30.0
"""Seconds between two restarts of a shared run for queries that join it. The other queries pause meanwhile."""

SHARED_FAILURES = 2
"""Consecutive failures of shared runs, without the failure of a member, after which their members run alone."""

SHARED_RECORDS = 50_000
"""Bound of a micro-batch that several sources share, in offsets."""


@dataclass
class Runs:
    """The runs of a speed layer.

    queries: all of its queries, by name
    """

    resources: Resources
    judge: Judge
    clock: Callable[[], float]
    queries: Mapping[str, Query]
    _joined_at: float = float("-inf")
    _not_before: float = float("-inf")
    _failures: int = 0
    _delay: float = 0.0

    def look(self) -> None:
        """Handles the runs that ended, the commits, and the queries that leave a shared run or join it."""
        for run in self._active():
            queries = self._queries_in(run)
            if run.has_ended():
                self._handle_end(run, queries)
            else:
                self._note_commits(run, queries)
                self._give_up(run, queries)
        self._end_runs_to_merge()

    def begin(self) -> None:
        """Begins runs for the members that are in none."""
        together: dict[str, Query] = {}
        for query in self.queries.values():
            if query.member is None or query.run is not None or self.clock() < query.not_before:
                continue
            if query.may_share(self.clock()) and query.source.topic not in together:
                together[query.source.topic] = query
            else:
                self._begin([query])
        if together and self.clock() >= self._not_before:
            self._begin(list(together.values()))

    def end(self, queries: Iterable[Query]) -> None:
        """Ends these queries' members and their runs. The other members of a shared run continue in the next one."""
        for query in queries:
            if query.run is not None:
                self._stop(query.run, [query, *self._queries_in(query.run)])
            query.member = None

    def _active(self) -> list[Run]:
        return list(dict.fromkeys(query.run for query in self.queries.values() if query.run is not None))

    def _queries_in(self, run: Run) -> list[Query]:
        return [query for query in self.queries.values() if query.run is run]

    def _stop(self, run: Run, queries: Iterable[Query]) -> None:
        """Stops a run. A member that failed, as in the middle of a micro-batch, begins again from progress."""
        run.stop()
        for query in queries:
            query.run = None
            if query.member is not None and query.member.failure() is not None:
                query.member = None

    def _begin(self, queries: list[Query]) -> None:
        shared = len(queries) > 1
        most = min(SHARED_RECORDS, self.resources.max_records) if shared else self.judge.max_offsets(queries[0])
        members = [query.member for query in queries if query.member is not None]
        try:
            run = Run(self.resources, members, max_records=most)
        except Exception as error:
            if spark_is_gone(error):
                raise  # no other run can begin
            self._judge_run(queries, error)
            return
        for query in queries:
            query.run, query.began = run, self.clock()
            if shared:
                query.bound.restore()
        if shared:
            log.info("%d sources share a run", len(queries))
        elif queries[0].bound.grew or queries[0].bound.halvings:
            log.info("%s: micro-batches of up to %d records", queries[0].source.name, most)

    def _handle_end(self, run: Run, queries: list[Query]) -> None:
        """Judges the queries whose members failed, or the run itself if none did. The others have lost nothing."""
        failed = [
            (query, query.member, failure)
            for query in queries
            if query.member is not None and (failure := query.member.failure()) is not None
        ]
        self._stop(run, queries)
        if not failed:
            self._judge_run(queries, run.failure())
        elif run.shared:
            for query, _, _ in failed:
                query.separation.extend(self.clock())
            self.begin()  # the others, before the judge asks questions and waits for the answers
        for query, member, failure in failed:
            self.judge.decide(query, failure, member)

    def _give_up(self, run: Run, queries: list[Query]) -> None:
        """Gives up micro-batches that take too long, or in which a record was skipped meanwhile.

        The next look finds that their members have failed. If the brokers do not answer, the records may not be the
        cause, and the wait continues.
        """
        shortest = self.resources.limits.shared
        longest = shortest if run.shared else self.resources.limits.alone
        for query in queries:
            if (member := query.member) is None:
                continue
            member.preparation.give_up(shortest)
            if (range := member.running.overdue(shortest)) is None:
                continue
            skipped_before = range.holds(member.assumptions.skipped)
            late = member.running.overdue(longest) is not None or self.judge.skipped_since(range, skipped_before)
            if late and self._is_readable(range):
                member.give_up(range, shared=run.shared)

    def _is_readable(self, range: OffsetRange) -> bool:
        try:
            self.resources.brokers.tails(range.moved)
        except LaminaError:
            return False
        return True

    def _judge_run(self, queries: list[Query], failure: BaseException) -> None:
        """Judges a run that failed without a member: its only query, the queries whose topics are lost, or all."""
        if isinstance(failure, LeaderChanged):  # the records that were read ahead are read again
            self.judge.read_again(queries, failure)
            return
        if len(queries) == 1:
            [query] = queries
            member, query.member = query.member, None
            self.judge.decide(query, failure, member)
            return
        answers = self.resources.brokers.listening()
        if answers and (lost := [query for query in queries if self._is_lost(query)]):
            for query in lost:
                query.member = None
            self.begin()
            for query in lost:
                self.judge.decide(query, failure)
            return
        self._delay = doubled(self._delay, 0.5)
        self._not_before = self.clock() + self._delay
        first, others = queries[0].source.name, len(queries) - 1
        log.warning("%s and %d more: %s; starting again in %.1f s", first, others, summary(failure), self._delay)
        if answers and not is_unavailable(failure):  # the brokers answer, so one topic makes a question about all fail
            self._failures += 1
            if self._failures >= SHARED_FAILURES:
                for query in queries:
                    query.separation.extend(self.clock())

    def _is_lost(self, query: Query) -> bool:
        """True if its topic is gone, which the judge waits for, or no longer holds the records that come next."""
        try:
            gone = self.resources.brokers.topic_id(query.source.topic) is None
        except LaminaError:
            return False
        return gone or self.judge.lost_records(query) is not None

    def _note_commits(self, run: Run, queries: list[Query]) -> None:
        for query in queries:
            member = query.member if run.committed else None  # commits before this run say nothing about it
            if member is not None and member.committed and self.judge.note_commits(query, member.committed):
                self.end([query])
        if not run.shared:
            return
        if run.committed:
            self._failures, self._delay = 0, 0.0
        if busy := [query for query in queries if query.backlog.busy]:
            for query in busy:
                query.separation.extend(self.clock())
            self._stop(run, queries)

    def _end_runs_to_merge(self) -> None:
        """Ends the runs of queries that may share one, so that they begin together."""
        if self.clock() < self._joined_at + JOIN_EVERY:
            return
        self._joined_at = self.clock()
        topics: dict[str, Run] = {}
        for query in self.queries.values():
            if query.run is not None and query.may_share(self.clock()):
                topics.setdefault(query.source.topic, query.run)
        runs = list(dict.fromkeys(topics.values()))
        if len(runs) > 1:
            for run in runs:
                self._stop(run, self._queries_in(run))
