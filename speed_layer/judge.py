"""The verdict on a query that failed: it starts again from progress, waits, or is refused with its reason."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from master_log.causes import SPARK_ERRORS, cause
from master_log.connections.unavailable import KafkaUnavailable
from master_log.kafka.fetching import LeaderChanged
from master_log.offsets import OffsetRange, Skipped, TopicPartition
from master_log.reading.kafka_reader import UnpassableRecord
from master_log.reading.schema_registry import RegistryUnavailable
from serving_layer.postgres.database import PostgresError, first_line, is_unavailable
from serving_layer.postgres.states import WriterKind
from serving_layer.promise import progress, skipping
from serving_layer.promise.progress import Fenced
from speed_layer.continuity import MISSING_SECONDS, CannotContinue, check_topic, in_doubt
from speed_layer.endless import EndlessRecord, Hang, Search, TooLong
from speed_layer.member import Member
from speed_layer.position import StartAgain
from speed_layer.query import Query
from speed_layer.resources import Resources
from speed_layer.statements import names_maintained
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.speed")

MANY_FAILURES = 3
"""Consecutive failures of a query after which `lamina status` reports them."""

REFUSED_EVERY = 10.0
"""Seconds until a refused query is examined again: its reason may be gone, as after a leap."""

SEARCHED_EVERY = 1.0
"""Seconds between two looks at the search for an endless record."""

MANY_DEATHS = 7
"""Consecutive deaths of processes after which micro-batches hold one record."""

FULL = re.compile("No space left on device|Disk quota exceeded")
"""Messages of the operating system in errors of Postgres and Spark."""

OLDER_COMMAND = re.compile(r"rebuild [0-9]+ [(]leap[)]$|skip of ")
"""Names of leaps and skips. Those of an older Lamina take a query over without recording their kind."""

LONGEST_WAIT = 10.0
"""Seconds: the greatest delay before a query that failed is started again."""


@dataclass(frozen=True)
class Judge:
    """Judges one query at a time, by its failure and by the answers of the brokers and Postgres."""

    resources: Resources
    clock: Callable[[], float]

    def max_offsets(self, query: Query) -> int:
        """The bound of its micro-batches, in offsets."""
        return query.bound.of(self.resources.max_records)

    def may_run(self, query: Query) -> bool:
        """True if the query may run: it was never refused, or the reason is gone.

        For example, a leap passed the lost records, or a right was granted.
        """
        trouble = query.trouble
        if trouble.refused is None:
            return trouble.hang is None or self._is_explained(query, trouble.hang)
        if isinstance(trouble.refused, Fenced):
            return False
        if (lost := self.lost_records(query, absent_for=0.0)) is not None and isinstance(
            trouble.refused, UnpassableRecord
        ):
            self.refuse(query, lost)  # the record at which it stops is gone, with others
        if lost is not None or self._stops_at_unskipped(query):
            query.not_before = self.clock() + REFUSED_EVERY
            return False
        trouble.refused = query.fence = None
        return True

    def note_deaths(self, query: Query, deaths: int) -> None:
        """Lowers the bound after consecutive deaths of the processes that ran the query."""
        query.bound.halvings = max(query.bound.halvings, halvings_after(deaths))

    def note_well(self, query: Query) -> None:
        """Notes that a query has left its failures behind: it commits, or has caught up."""
        with suppress(Fenced):  # its next commit raises it
            if query.trouble.failures >= MANY_FAILURES and not self._report(query, None):
                return  # the next look notes it
        query.trouble.failures, query.trouble.delay = 0, 0.0

    def note_commits(self, query: Query, commits: int) -> bool:
        """Notes that a query commits. True if this doubles the bound of its micro-batches."""
        self.note_well(query)
        return query.bound.grow(commits)

    def decide(self, query: Query, failure: BaseException, member: Member | None = None) -> None:
        """Decides if a query whose member failed starts again from progress, waits, or is refused."""
        if isinstance(failure, TooLong):
            log.warning("%s: %s, so the micro-batch was given up", query.source.name, failure)
            query.trouble.hang = Hang(failure)
            return
        reason = _refusal(failure)
        if isinstance(reason, Fenced) and self._may_take_over_again(query):
            query.fence = None
            log.info("%s: another command took it over for a moment; taking it over again", query.source.name)
            return
        if reason is None and not isinstance(failure, StartAgain):
            reason = self.lost_records(query) or self._unreadable(query, failure, member)
        if reason is not None:
            self.refuse(query, reason)
        elif isinstance(failure, StartAgain):
            log.info("%s", failure)
        else:
            self._try_again(query, failure, member)

    def read_again(self, queries: Sequence[Query], changed: LeaderChanged) -> None:
        """Lets the queries of a run read again from their positions after a change of leaders."""
        delay = doubled(max(query.trouble.delay for query in queries), 0.1)
        for query in queries:
            query.trouble.delay, query.not_before = delay, self.clock() + delay
        log.info("%s; reading again from the same position in %.1f s", changed, delay)

    def refuse(self, query: Query, reason: LaminaError) -> None:
        """Stops a query, and shows the reason in `lamina status`."""
        if not isinstance(reason, Fenced):  # first: if Postgres is away, the next look establishes the reason again
            try:
                with self.resources.database.begin() as connection:
                    progress.record_stop(connection, query.source.name, _alarm(reason), query.fence)
            except Fenced as taken:
                self.decide(query, taken)  # the writer that has taken the query over may be well
                return
        query.trouble.refused = reason
        query.not_before = self.clock() + REFUSED_EVERY
        log.error("%s stopped: %s", query.source.name, reason)

    def lost_records(self, query: Query, *, absent_for: float = MISSING_SECONDS) -> LaminaError | None:
        """The reason why a query cannot continue in its topic, or None if it can or the servers are away.

        absent_for: seconds for which a topic may be absent. A query that is refused already need not wait again
        """
        try:
            with self.resources.database.begin() as connection:
                recorded = progress.queries(connection)[query.source.name]
                reached, tails = progress.read_with_tails(connection, query.source.name)
            check_topic(self.resources.brokers, query.source, recorded.topic_id, reached, tails, absent_for=absent_for)
        except CannotContinue as error:
            return error
        except LaminaError:
            return None
        return None

    def in_doubt(self, queries: Sequence[Query]) -> list[Query]:
        """The queries whose topics may have lost records. A few questions to the brokers cover all of them."""
        expected = {}
        with self.resources.database.begin() as connection:
            recorded = progress.queries(connection)
            for query in queries:
                topic_id = recorded[query.source.name].topic_id
                expected[query.source.topic] = (topic_id, *progress.read_with_tails(connection, query.source.name))
        try:
            doubtful = in_doubt(self.resources.brokers, expected)
        except LaminaError:
            return list(queries)
        topics = Counter(query.source.topic for query in queries)  # a topic of two sources is checked for both
        return [query for query in queries if query.source.topic in doubtful or topics[query.source.topic] > 1]

    def skipped_since(self, range: OffsetRange, before: Skipped) -> bool:
        """True if a record of a range is skipped that is not among those skipped `before`."""
        with self.resources.database.begin() as connection:
            return bool(range.holds(skipping.read(connection)) - before)

    def _try_again(self, query: Query, failure: BaseException, member: Member | None) -> None:
        trouble = query.trouble
        trouble.failures += 1
        trouble.delay = doubled(trouble.delay, 0.5)
        report = None
        if isinstance(failure, RegistryUnavailable) and trouble.failures == MANY_FAILURES:
            report = f"it waits for the schema registry: {failure.evidence}"
        elif not is_server_away(failure):
            one = self.max_offsets(query) == 1
            if not one:
                query.bound.halve()
                trouble.delay = 0.5  # the next attempt is another one
            query.bound.grew = False
            if trouble.failures >= MANY_FAILURES:
                ways = _ways_past(query, member.failed_range) if one and member and member.failed_range else ""
                report = f"it fails again and again: {summary(failure)}{_disk_hint(failure)}{ways}"
        if report is not None:
            try:
                self._report(query, report)
            except Fenced as taken:
                self.decide(query, taken)
                return
        query.not_before = self.clock() + trouble.delay
        log.warning(
            "%s: %s; starting again from progress in %.1f s", query.source.name, summary(failure), trouble.delay
        )

    def _may_take_over_again(self, query: Query) -> bool:
        """True if it was recreated, or if a skip or a leap took it over, which may have ended since."""
        with self.resources.database.begin() as connection:
            now = progress.queries(connection)[query.source.name]
        recreated = now.writer is None and now.committed_at is None
        by_older_command = OLDER_COMMAND.match(now.writer or "") is not None
        return recreated or by_older_command or now.writer_kind in (WriterKind.LEAP, WriterKind.SKIP)

    def _unreadable(self, query: Query, failure: BaseException, member: Member | None) -> LaminaError | None:
        """The record that Spark cannot read, if the query failed twice because of one."""
        if member is None or not query.trouble.failures or is_server_away(failure):
            return None
        try:
            return member.unreadable()
        except KafkaUnavailable:
            return None

    def _stops_at_unskipped(self, query: Query) -> bool:
        """True if it stops at a record that nobody has skipped yet."""
        reason = query.trouble.refused
        if not isinstance(reason, UnpassableRecord):
            return False
        with self.resources.database.begin() as connection:
            if isinstance(reason, EndlessRecord) and reason.maintained != names_maintained(connection, query.source):
                return False  # other expressions may compute it
            passed = progress.read(connection, [query.source.name]).get(reason.at, 0) > reason.offset
            return not passed and (reason.at, reason.offset) not in skipping.read(connection)

    def _is_explained(self, query: Query, hang: Hang) -> bool:
        """True once the reason for a slow micro-batch is established and the query may run."""
        hang.look()
        if hang.spins is None or (hang.spins and not hang.ended and self.resources.renew is not None):
            return False
        if self._is_passed(query, hang):
            query.trouble.forget_hang()
            query.fence = None
            return True
        if hang.search is None:
            if hang.spins or self.max_offsets(query) == 1:
                self._search(query, hang)
                return False
            self._halve(query, hang)
            return True
        query.not_before = self.clock() + SEARCHED_EVERY
        if not hang.search.over:
            return False
        if hang.search.record is None:
            self._halve(query, hang)
            return True
        query.trouble.hang = None
        self.refuse(query, self._endless(query, *hang.search.record))
        return False

    def _is_passed(self, query: Query, hang: Hang) -> bool:
        """True if a leap passed its records, or one was skipped, perhaps by a person who knows it."""
        range = hang.given_up.range
        with self.resources.database.begin() as connection:
            reached = progress.read(connection, [query.source.name]).reaches(range.moved)
        return reached or self.skipped_since(range, hang.given_up.skipped)

    def _endless(self, query: Query, at: TopicPartition, offset: int) -> EndlessRecord:
        with self.resources.database.begin() as connection:
            maintained = names_maintained(connection, query.source)
        return EndlessRecord(query.source, at, offset, self.resources.limits.alone, maintained)

    def _search(self, query: Query, hang: Hang) -> None:
        """Starts the search for the endless record of a micro-batch."""
        range = hang.given_up.range
        hang.search = Search(partial(self.resources.probe, query.source), range, self.resources.limits)
        what = f"{hang.given_up}, and was stopped: searching for the slow record"
        log.error("%s: %s", query.source.name, what)
        with suppress(Fenced):  # as by a skip; the next look establishes that
            self._report(query, what + (_ways_past(query, range) if range.size == len(range.moved) else ""))

    def _halve(self, query: Query, hang: Hang) -> None:
        """Halves its bound. A micro-batch of a shared run was small already, so its query only leaves the run."""
        query.trouble.hang = None
        if not hang.given_up.shared or hang.search is not None:
            query.bound.halve()
        log.info(
            "%s: it continues alone, in micro-batches of up to %d records", query.source.name, self.max_offsets(query)
        )

    def _report(self, query: Query, what: str | None) -> bool:
        """Shows in `lamina status` what is wrong with a query that continues. False if Postgres is away.

        Raises `Fenced` if another writer has taken the query over.
        """
        try:
            with self.resources.database.begin() as connection:
                progress.record_stop(connection, query.source.name, what, query.fence)
        except Fenced:
            raise
        except (PostgresError, LaminaError):
            return False
        return True


def halvings_after(deaths: int) -> int:
    """The number of halvings with which a query begins after consecutive deaths of its processes.

    A process that dies of its first micro-batch would meet it again, so the next one begins with an eighth. A single
    death says nothing (the machine may have been switched off), and a thousand say no more than that one record is too
    much.

    >>> [halvings_after(deaths) for deaths in (0, 1, 2, 3, 1_000)]
    [0, 0, 3, 6, 21]
    """
    return 3 * min(max(0, deaths - 1), MANY_DEATHS)


def doubled(delay: float, least: float) -> float:
    """Twice the delay, at least `least` and at most `LONGEST_WAIT`."""
    return min(max(least, 2 * delay), LONGEST_WAIT)


def is_server_away(failure: BaseException) -> bool:
    """True if the failure is a server that is down, so that waiting helps."""
    return isinstance(failure, KafkaUnavailable | RegistryUnavailable) or is_unavailable(failure)


def summary(failure: BaseException) -> str:
    """A failure in one line."""
    if isinstance(failure, LaminaError):
        return failure.what
    return cause(str(failure)) if isinstance(failure, SPARK_ERRORS) else first_line(failure)


def _disk_hint(failure: BaseException) -> str:
    """The way out of a full disk, on Postgres' machine or on ours.

    >>> _disk_hint(OSError("No space left on device"))
    ' (make room on that disk, and it continues)'
    """
    return " (make room on that disk, and it continues)" if FULL.search(str(failure)) else ""


def _ways_past(query: Query, range: OffsetRange) -> str:
    """The commands that skip the first record of each partition of a range."""
    records = [f"{at.partition} {range.start[at]}" for at in range.moved]
    ways = " or ".join(f"`lamina skip {query.source.name} {record} --reason TEXT`" for record in records)
    return f"; if the record is at fault, {ways} passes over it"


def _refusal(failure: BaseException) -> LaminaError | None:
    """The failure itself, if waiting does not help."""
    return failure if isinstance(failure, LaminaError) and not is_server_away(failure) else None


def _alarm(reason: LaminaError) -> str:
    """The text in `lamina status` for a query that was refused, with the way out if that is a command."""
    return f"{reason.what}: {reason.way_out}" if isinstance(reason, CannotContinue | UnpassableRecord) else reason.what
