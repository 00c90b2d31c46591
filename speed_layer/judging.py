"""What becomes of a query that failed: it starts again from progress, waits, or is refused with its reason."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from master_log.causes import SPARK_ERRORS, cause
from master_log.client import KafkaAway
from master_log.offsets import OffsetRange, Skipped, TopicPartition
from master_log.reading import StopsAt
from master_log.registry import RegistryAway
from serving_layer.postgres.database import PostgresError, first_line, is_away
from serving_layer.postgres.states import WriterKind
from serving_layer.promise import progress, skipping
from serving_layer.promise.progress import Fenced
from speed_layer.continuity import MISSING_SECONDS, CannotGoOn, check_topic, in_doubt
from speed_layer.endless import Endless, Hang, Search, TooLong
from speed_layer.flow import StartAgain
from speed_layer.member import Member
from speed_layer.query import GROW_AFTER, Query
from speed_layer.resources import Resources
from speed_layer.statements import names_maintained
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.speed")

MANY_FAILURES = 3
"""Members of a query that failed one after the other, after which a person is told (`lamina status`)."""

REFUSED_EVERY = 10.0
"""Seconds between two looks whether what refused a query has been mended from outside, as by a leap."""

SEARCHED_EVERY = 1.0
"""Seconds between two looks whether the record that takes too long was found, or skipped."""

MANY_DEATHS = 7
"""Processes that died, one after the other, after which micro-batches are of one record."""

FULL = re.compile("No space left on device|Disk quota exceeded")
"""Words of the system, which Postgres and Spark pass on."""

LONGEST_WAIT = 10.0
"""Seconds: the greatest delay before a query that failed is started again."""


@dataclass(frozen=True)
class Judge:
    """Judges one query at a time, by what it failed with and what the brokers and Postgres say of it."""

    resources: Resources
    clock: Callable[[], float]

    def bound(self, query: Query) -> int:
        """The bound of its micro-batches, in offsets."""
        return max(1, self.resources.max_records >> query.halvings)

    def may_go_on(self, query: Query) -> bool:
        """Whether nothing refuses a query, or no longer: a leap goes past lost records, a right is given."""
        if query.refused is None:
            return query.hang is None or self._is_explained(query, query.hang)
        if isinstance(query.refused, Fenced):
            return False
        if (lost := self.lost_records(query, patience=0.0)) is not None and isinstance(query.refused, StopsAt):
            self.refuse(query, lost)  # the record that it stands at is gone, with others
        if lost is not None or self._unskipped(query):
            query.not_before = self.clock() + REFUSED_EVERY
            return False
        query.refused = query.fence = None
        return True

    def well(self, query: Query) -> None:
        """Notes that a query has left its failures behind: it commits, or goes on with nothing left to read."""
        with suppress(Fenced):  # which its next commit finds
            if query.failures >= MANY_FAILURES and not self._tell(query, None):
                return  # it is noted again at the next look
        query.failures, query.delay = 0, 0.0

    def commits(self, query: Query, commits: int) -> bool:
        """Notes that a query commits; its micro-batches grow to what they were, by doubling.

        Gives whether they grow now.
        """
        self.well(query)
        if query.halvings and commits >= query.grow_after:
            query.halvings, query.grew = query.halvings - 1, True
            return True
        if not query.halvings:
            query.grow_after, query.grew = GROW_AFTER, False
        return False

    def judge(self, query: Query, failure: BaseException, member: Member | None = None) -> None:
        """Decides whether a query whose member failed starts again from progress, waits, or is refused."""
        if isinstance(failure, TooLong):
            log.warning("%s: %s, and gave it up", query.source.name, failure)
            query.hang = Hang(failure, shared=member is not None and member.flow.shared)
            return
        reason = _refusal(failure)
        if isinstance(reason, Fenced) and self._given_back(query):
            query.fence = None
            log.info("%s: it is taken over again when nobody has it", query.source.name)
            return
        if reason is None and not isinstance(failure, StartAgain):
            reason = self.lost_records(query) or self._unreadable(query, failure, member)
        if reason is not None:
            self.refuse(query, reason)
        elif isinstance(failure, StartAgain):
            log.info("%s", failure)
        else:
            self._try_again(query, failure, member)

    def refuse(self, query: Query, reason: LaminaError) -> None:
        """Stops a query with its reason, and tells whoever asks for the status."""
        if not isinstance(reason, Fenced):  # first: should Postgres go away, the next look finds the reason again
            try:
                with self.resources.database.begin() as connection:
                    progress.stop(connection, query.source.name, _alarm(reason), query.fence)
            except Fenced as taken:
                self.judge(query, taken)  # whoever has taken the query over may be well
                return
        query.refused = reason
        query.not_before = self.clock() + REFUSED_EVERY
        log.error("%s stopped: %s", query.source.name, reason)

    def lost_records(self, query: Query, *, patience: float = MISSING_SECONDS) -> LaminaError | None:
        """Asks the brokers whether a failed query can go on at all; None while they, or Postgres, are away.

        patience: seconds for which a topic may be missing. One that is refused already is not waited for again.
        """
        try:
            with self.resources.database.begin() as connection:
                recorded = progress.queries(connection)[query.source.name]
                reached, tails = progress.known(connection, query.source.name)
            check_topic(self.resources.brokers, query.source, recorded.topic_id, reached, tails, patience=patience)
        except CannotGoOn as error:
            return error
        except LaminaError:
            return None
        return None

    def in_doubt(self, queries: Sequence[Query]) -> list[Query]:
        """Those whose topics may have lost what they need: found by few questions for all of them."""
        expected = {}
        with self.resources.database.begin() as connection:
            recorded = progress.queries(connection)
            for query in queries:
                topic_id = recorded[query.source.name].topic_id
                expected[query.source.topic] = (topic_id, *progress.known(connection, query.source.name))
        try:
            doubtful = in_doubt(self.resources.brokers, expected)
        except LaminaError:
            return list(queries)
        topics = Counter(query.source.topic for query in queries)  # one that two sources read is asked of each
        return [query for query in queries if query.source.topic in doubtful or topics[query.source.topic] > 1]

    def _try_again(self, query: Query, failure: BaseException, member: Member | None) -> None:
        query.failures += 1
        query.delay = min(max(0.5, 2 * query.delay), LONGEST_WAIT)
        if isinstance(failure, RegistryAway) and query.failures == MANY_FAILURES:
            try:
                self._tell(query, f"it waits for the schema registry: {failure.evidence}")
            except Fenced as taken:
                self.judge(query, taken)
                return
        if not away(failure):
            one = self.bound(query) == 1
            if not one:
                query.halve()
                query.delay = 0.5  # what is tried next is another thing
            query.grew = False
            if query.failures >= MANY_FAILURES:
                named = _named(query, member) if one else ""
                try:
                    self._tell(query, f"it fails again and again: {said(failure)}{_room(failure)}{named}")
                except Fenced as taken:
                    self.judge(query, taken)
                    return
        query.not_before = self.clock() + query.delay
        log.warning("%s: %s; starting again from progress in %.1f s", query.source.name, said(failure), query.delay)

    def _given_back(self, query: Query) -> bool:
        """True if it was recreated, or a skip or a leap, which may have landed since, took it over for a while."""
        with self.resources.database.begin() as connection:
            now = progress.queries(connection)[query.source.name]
        recreated = now.writer is None and now.committed_at is None
        return recreated or now.writer_kind in (WriterKind.LEAP, WriterKind.SKIP)

    def _unreadable(self, query: Query, failure: BaseException, member: Member | None) -> LaminaError | None:
        """The record that Spark cannot read, if it is one by which the query failed for a second time."""
        if member is None or not query.failures or away(failure):
            return None
        try:
            return member.unreadable()
        except KafkaAway:
            return None

    def _unskipped(self, query: Query) -> bool:
        """Is it at a record that it cannot go past, and that nobody has skipped yet?"""
        reason = query.refused
        if not isinstance(reason, StopsAt):
            return False
        with self.resources.database.begin() as connection:
            if isinstance(reason, Endless) and reason.maintained != names_maintained(connection, query.source):
                return False  # other expressions may compute it
            passed = progress.read(connection, [query.source.name]).get(reason.at, 0) > reason.offset
            return not passed and (reason.at, reason.offset) not in skipping.read(connection)

    def skipped_since(self, range: OffsetRange, known: Skipped) -> bool:
        """True if a record of a range was skipped that was not skipped when the range was read."""
        with self.resources.database.begin() as connection:
            return bool(range.holds(skipping.read(connection)) - known)

    def _is_explained(self, query: Query, hang: Hang) -> bool:
        """True once it is known why a micro-batch took too long, and the query may go on."""
        hang.look()
        if hang.spins is None or (hang.spins and not hang.ended and self.resources.renew is not None):
            return False
        if self._is_passed(query, hang):
            query.forget_hang()
            query.fence = None
            return True
        if hang.search is None:
            if hang.spins or self.bound(query) == 1:
                self._look_for_the_record(query, hang)
                return False
            self._halve(query, hang)
            return True
        query.not_before = self.clock() + SEARCHED_EVERY
        if not hang.search.over:
            return False
        if hang.search.record is None:
            self._halve(query, hang)
            return True
        query.hang = None
        self.refuse(query, self._endless(query, *hang.search.record))
        return False

    def _is_passed(self, query: Query, hang: Hang) -> bool:
        """Was a record of it skipped, or did a leap go past all of them? Whoever skips one may know which it is."""
        range = hang.given_up.range
        with self.resources.database.begin() as connection:
            reached = progress.read(connection, [query.source.name]).reaches(range.moved)
        return reached or self.skipped_since(range, hang.given_up.skipped)

    def _endless(self, query: Query, at: TopicPartition, offset: int) -> Endless:
        with self.resources.database.begin() as connection:
            maintained = names_maintained(connection, query.source)
        return Endless(query.source, at, offset, self.resources.patience.alone, maintained)

    def _look_for_the_record(self, query: Query, hang: Hang) -> None:
        range = hang.given_up.range
        hang.search = Search(partial(self.resources.probe, query.source), range, self.resources.patience)
        what = f"{hang.given_up}, and was stopped: the record that takes so long is looked for"
        log.error("%s: %s", query.source.name, what)
        with suppress(Fenced):  # as by a skip, which the next look finds
            self._tell(query, what + (_ways_past(query, range) if range.size == len(range.moved) else ""))

    def _halve(self, query: Query, hang: Hang) -> None:
        """Its next micro-batches are smaller. One of a shared run was that already, and only leaves the run."""
        query.hang = None
        if not hang.shared or hang.search is not None:
            query.halve()
        log.info("%s: it continues alone, in micro-batches of up to %d records", query.source.name, self.bound(query))

    def _tell(self, query: Query, what: str | None) -> bool:
        """Tells whoever asks for the status what is wrong with a query that goes on; False where Postgres is away.

        Raises `Fenced` where another has taken the query over.
        """
        try:
            with self.resources.database.begin() as connection:
                progress.stop(connection, query.source.name, what, query.fence)
        except Fenced:
            raise
        except (PostgresError, LaminaError):
            return False
        return True


def halvings_after(deaths: int) -> int:
    """How often the bound of micro-batches is halved from the start, where the processes before this one have died.

    One that dies of its first micro-batch would meet it again: the next begins with an eighth. A single death says
    nothing, as of a machine that was switched off, and a thousand say no more than that one record is too much.

    >>> [halvings_after(deaths) for deaths in (0, 1, 2, 3, 1_000)]
    [0, 0, 3, 6, 21]
    """
    return 3 * min(max(0, deaths - 1), MANY_DEATHS)


def away(failure: BaseException) -> bool:
    """Whether waiting mends it."""
    return isinstance(failure, KafkaAway | RegistryAway) or is_away(failure)


def said(failure: BaseException) -> str:
    """A failure in one line."""
    if isinstance(failure, LaminaError):
        return failure.what
    return cause(str(failure)) if isinstance(failure, SPARK_ERRORS) else first_line(failure)


def _room(failure: BaseException) -> str:
    """The way out of a full disk: of Postgres' machine or of ours.

    >>> _room(OSError("No space left on device"))
    ' (make room on that disk, and it continues)'
    """
    return " (make room on that disk, and it continues)" if FULL.search(str(failure)) else ""


def _named(query: Query, member: Member | None) -> str:
    """The way past the record that the query fails at, where its micro-batches are down to one (a partition)."""
    if member is None or (failed := member.failed) is None:
        return ""
    return _ways_past(query, failed)


def _ways_past(query: Query, range: OffsetRange) -> str:
    """The way past the first record of each partition of a range."""
    records = [f"{at.partition} {range.start[at]}" for at in range.moved]
    ways = " or ".join(f"`lamina skip {query.source.name} {record} --reason TEXT`" for record in records)
    return f"; if that is the record's fault, {ways} goes past it"


def _refusal(failure: BaseException) -> LaminaError | None:
    """The failure itself, if waiting would not mend it."""
    return failure if isinstance(failure, LaminaError) and not away(failure) else None


def _alarm(reason: LaminaError) -> str:
    """What `lamina status` says of a query that was refused: the way out, too, where it is a command."""
    return f"{reason.what}: {reason.way_out}" if isinstance(reason, CannotGoOn | StopsAt) else reason.what
