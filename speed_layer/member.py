"""One source in a run: where it is, what is computed of it, and what of that is being committed.

Postgres' progress is the truth about where a source is. A member begins there, and goes on from what it handed to the
committer last: where that was not committed, the next commit finds that it does not begin at progress.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from master_log import log_times
from master_log.causes import SPARK_ERRORS
from master_log.decoding import decoded, decoded_few, named_schemas
from master_log.fetching import Epochs, LeaderChanged
from master_log.log_times import LogTimes
from master_log.offsets import OffsetRange, Offsets, Skipped, TopicPartition
from master_log.reading import Unreadable, kafka_range, unreadable
from master_log.tails import Tails
from serving_layer.catalog import versions
from serving_layer.postgres.database import Connection, PostgresAway, PostgresError, session_of
from serving_layer.postgres.phases import Timer
from serving_layer.promise import duplicates, progress, skipping
from serving_layer.promise.duplicates import Found
from serving_layer.promise.micro_batch import MicroBatch, Outcome, commit, maintained
from serving_layer.promise.quarantine import TRIM_AFTER, trim
from speed_layer.computation import Computation, Computed
from speed_layer.continuity import check_id, check_tails, check_topic
from speed_layer.endless import TooLong
from speed_layer.jobs import Jobs
from speed_layer.preparation import Preparation, Ready
from speed_layer.prepared import FEW, FEW_BYTES, few_of, prepared, today
from speed_layer.resources import Resources
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError
from view_algebra.formats import Answers, Decoding, frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("lamina.speed")

PATIENCE = 1.0
"""Seconds for which the members of a run wait for the commit of one of them that waits for a lock."""

LOST_AT_MOST = 4
"""So often a session may be lost in the middle of one commit: more is no outage, but a commit that Postgres dies of."""

MOST_DECODED = 2 * FEW_BYTES
"""Bytes of the records of a small micro-batch with what is decoded of them: Spark computes it otherwise."""

COMPUTED_AGAIN = 5
"""How often a micro-batch is computed for what is maintained by then, before its query starts again from progress."""


class StartAgain(Exception):
    """The member cannot go on from where it is, and loses nothing by starting again from progress."""


@dataclass(frozen=True)
class Records:
    """The raw records of a part: `raw` as Spark reads them; `few`, if they may be few, fetches them or gives None."""

    raw: Callable[[], DataFrame]
    few: Callable[[], pa.Table | None] | None = None

    def with_log_times(self, topic: str, reached: LogTimes) -> Records:
        """The same records with their log times, after those that are `reached` below them."""

        def few() -> pa.Table | None:
            found = None if self.few is None else self.few()
            return None if found is None else log_times.of_few(found, reached)

        return Records(lambda: log_times.of_raw(self.raw(), topic, reached), None if self.few is None else few)

    def decoded(self, sources: Sequence[Source], answers: Answers) -> Records:
        """The same records with their values decoded as each of the sources needs it."""

        def few() -> pa.Table | None:
            found = None if self.few is None else self.few()
            if found is not None:
                found = decoded_few(found, sources, answers)
            return None if found is None or found.nbytes > MOST_DECODED else found

        return Records(lambda: decoded(self.raw(), sources, answers), None if self.few is None else few)


def alone(records: DataFrame) -> Records:
    """Raw records of one source."""
    return Records(lambda: records, partial(few_of, records))


@dataclass(frozen=True)
class Part:
    """What one micro-batch has for a member: a range, and what stood last in Kafka below its start and its end.

    log_times: those that a table's records have reached below its start; None if no text goes by them.
    """

    range: OffsetRange
    before: Tails
    tails: Tails
    log_times: LogTimes | None

    @property
    def after(self) -> Tails:
        """What stood last when it is over, of all partitions of which that is known."""
        moved = self.range.moved
        return {at: tail for at, tail in self.before.items() if at not in moved} | dict(self.tails)


@dataclass(frozen=True)
class Reached:
    """The log times that a source's records have reached below a position; None if no text goes by them."""

    position: Offsets
    log_times: LogTimes | None


@dataclass(frozen=True)
class Committer:
    """Commits what a run computes, until it is stopped."""

    threads: Executor
    stopped: threading.Event = field(default_factory=threading.Event)


class Member:
    """A source from progress on, in one run after the other until it fails.

    commits: micro-batches that it has committed. failed: the range of the one that it failed at. shares: is its run
    one of several members, so that none may keep the others waiting, nor fail at what is theirs?
    """

    def __init__(self, resources: Resources, source: Source, fence: int, reached: Reached) -> None:
        self._resources, self.source, self._fence = resources, source, fence
        with resources.database.begin() as connection:
            self._topic_id = progress.queries(connection)[source.name].topic_id
            self.position, self._tails = progress.known(connection, source.name)
            self._computation = computation_of(connection, source)
        if self.position != reached.position or not self._knows_enough(reached.log_times):
            raise StartAgain(f"{source.name}: it has moved, or other log times are needed")
        self._log_times = reached.log_times
        self._answers = resources.schemas.of(source.topic)
        self._preparation = Preparation(resources.database, source, self._prepare, self._decoded)
        self._ready: Ready | None = None
        check_topic(resources.brokers, source, self._topic_id, self.position, self._tails)
        self._skipped = self._still_skipped()
        self._committing: Future[None] | None = None
        self._session: int | None = None  # of Postgres, in which it is committing
        self._raised: BaseException | None = None
        self._computing: list[tuple[OffsetRange, Jobs]] = []
        self.commits = self._untrimmed = 0
        self.failed: OffsetRange | None = None
        self._likely_new = True  # as the events of its last large micro-batch were
        self.shares = False
        self._trim()

    def failure(self) -> BaseException | None:
        """Why it cannot go on, as it was raised; None while it can."""
        if self._raised is None and self._committing is not None and self._committing.done():
            return self._committing.exception()
        return self._raised

    def behind(self, end: Offsets) -> int:
        """How many records it has to read up to the ends of its topic."""
        return sum(max(0, offset - self.position.get(at, 0)) for at, offset in end.items())

    def overdue(self, seconds: float) -> OffsetRange | None:
        """The range of a micro-batch whose tasks have been running for so long."""
        return next((range for range, jobs in tuple(self._computing) if jobs.run_longer_than(seconds)), None)

    def skipped(self, range: OffsetRange) -> Skipped:
        """What of a range is skipped, as far as it knows."""
        return range.holds(self._skipped)

    def give_up_preparing(self, seconds: float) -> None:
        """Ends what runs beside micro-batches, for a version that is announced, if it takes so long."""
        self._preparation.give_up(seconds)

    def spins(self) -> bool:
        """True if a task of a preparation that was given up keeps a core."""
        return self._preparation.spins()

    def give_up(self, range: OffsetRange) -> None:
        """Fails, and cancels the micro-batch that is overdue."""
        for each, jobs in tuple(self._computing):
            if each == range:
                self._raised, self.failed = TooLong(range, jobs, self.skipped(range)), range
                jobs.cancel()

    def cancel(self) -> None:
        """Fails what it is computing: nobody waits for it any more."""
        for _, jobs in tuple(self._computing):
            jobs.cancel()

    def settle(self) -> None:
        """Returns when what it has computed is committed, or is not to be.

        A commit that waits for a lock is not waited for: this member fails, and the next begins from progress, which is
        contiguous with whatever becomes of it.
        """
        while self._committing is not None:
            try:
                self._committing.exception(PATIENCE)
                return
            except TimeoutError:
                if self._waits_for_a_lock():
                    self._raised = StartAgain(f"{self.source.name}: its commit waits for a lock")
                    return

    def moved_by(self, end: Offsets) -> OffsetRange | None:
        """The range up to the ends of its partitions among `end`; None where it holds nothing."""
        mine = Offsets({at: offset for at, offset in end.items() if at.topic == self.source.topic})
        range = OffsetRange.since(self.position, mine)
        return None if range.empty else range

    def follow(self, range: OffsetRange, epochs: Epochs) -> Part:
        """Asks what stands last below the end of a range, of the partitions that it moves, before they are counted.

        Should Kafka lose these records after that and give their offsets to others, then whoever compares the tail
        later finds another, whichever of them were read. What the run has read ahead is of leaders with these epochs:
        raises `LeaderChanged`, which is no fault of this member, where there is another by now.
        """
        with self._failing_at(range):
            self._resources.at("before a micro-batch")
            moved = range.moved
            if new := moved.keys() - epochs.keys():
                raise LeaderChanged(f"Partition {min(new).partition} of {self.source.topic} is new")
            return Part(range, self._tails, self._resources.brokers.tails(moved, epochs), self._log_times)

    def take(self, records: Records, part: Part, committer: Committer, later: DataFrame) -> None:
        """Computes its part while the part before is committed, then hands it to the committer.

        `later`: its records, to be read again when the micro-batch is over. Where it shares a run and fails, it reads
        them for itself and computes them once more: it may be another's record that could not be read. What its run has
        not begun when it is stopped is left to the next: it would fail there, by jobs that were cancelled here.
        """
        if committer.stopped.is_set():
            return
        with self._failing_at(part.range):
            self._resources.at("before computing")
            began = time.monotonic()
            self._look_ahead(later)

            def find(ids: pa.Table) -> Found:
                self._await_commit()  # whose ids are to be found, too
                return self._find(ids, committer.stopped)

            try:
                batch = self._computed(records, part, find)
            except (*SPARK_ERRORS, OSError):
                if not self.shares or self._raised is not None or committer.stopped.is_set():
                    raise
                self._ready = self._preparation.ready = None  # Spark may keep in a plan that it failed
                batch = self._computed(None, part, find)
            self._await_commit()
            log.debug("%s: %s, computed in %.3f s", self.source.name, part.range.end, time.monotonic() - began)
            self._committing = committer.threads.submit(self._commit, batch, part, later, committer.stopped)
            self.position, self._tails = part.range.end, part.after
            self._log_times = None if part.log_times is None else batch.log_times

    @contextmanager
    def _failing_at(self, range: OffsetRange) -> Iterator[None]:
        try:
            yield
        except LeaderChanged:
            raise
        except BaseException as error:
            self._raised = self._raised or error  # where it was given up, that is why
            self.failed = self.failed or range  # the one before it, where it was its commit that failed
            raise

    def unreadable(self) -> Unreadable | None:
        """The record that Spark cannot read, of those in the micro-batch that failed."""
        resources = self._resources
        if self.failed is None:
            return None
        return unreadable(resources.spark, resources.brokers, self.source, self.failed, self._skipped)

    def _still_skipped(self) -> Skipped:
        """What an operator has skipped, but where Kafka has lost it: another record may have its offset now."""
        for at, offset in skipping.forget_lost(self._resources.database, self._resources.brokers, self.source.topic):
            log.warning("%s: the record skipped at %s %s:%s is lost", self.source.name, *at, offset)
        with self._resources.database.begin() as connection:
            return skipping.read(connection)

    def _knows_enough(self, log_times: LogTimes | None) -> bool:
        return log_times is not None or not self._computation.reads_log_times

    def _look_ahead(self, later: DataFrame) -> None:
        """Knows what is maintained by now, and has Spark prepared for what is going to be, meanwhile.

        Whatever it misses, the commit finds. So it waits for nothing, and nothing that fails here matters.
        """
        with suppress(PostgresError, PostgresAway), self._resources.database.snapshot() as connection:
            if names_maintained(connection, self.source) != self._computation.names:
                self._computation = self._current(connection)
            self._preparation.begin(connection, self._computation, later)

    def _current(self, connection: Connection) -> Computation:
        """Of what is maintained now; only as long as its source is declared as it was."""
        if versions.read(connection).get(self.source.name) != self.source:
            raise StartAgain(f"{self.source.name}: declared anew")
        now, ready = computation_of(connection, self.source), self._preparation.ready
        if now.reads_log_times and self._log_times is None:
            raise StartAgain(f"{self.source.name}: its log times are needed now")
        return now if ready is None or ready.computation != now else ready.computation

    def _computed(
        self, records: Records | None, part: Part, find: Callable[[pa.Table], Found], *, again: bool = False
    ) -> MicroBatch:
        """Its part, computed for the tables of cells that it knows; where `records` is None, it reads them.

        again: while it is committed. The micro-batch after it may be computed meanwhile, and waits for this commit.
        """
        if records is None or part.range.holds(self._skipped):
            self._skipped = self._still_skipped()
            raw = kafka_range(self._resources.spark, self._resources.brokers, self.source, part.range, self._skipped)
            records = Records(lambda: raw)
        if self.source.kind == "table":
            records = records.with_log_times(self.source.topic, part.log_times or {})
        computation, timer = self._computation, Timer()
        with self._counted(part.range), timer.phase("compute"):
            for by in computation.decoded_otherwise:  # whose reasons why a record is bad nobody sees
                self._learn(by, named_schemas(records.raw(), by))
            computed = self._compute(computation, records, part, find, timer, again=again)
            while self._learn(Decoding.of(self.source), _unknown_schemas(computed)):
                computed = self._compute(computation, records, part, find, timer, again=again)
        return MicroBatch(
            query=self.source.name,
            fence=self._fence,
            range=part.range,
            cell_tables=computation.names,
            staged=computed.staged,
            bad=computed.bad,
            newest=computed.newest,
            tails=part.tails,
            ids=computed.ids,
            log_times={} if part.log_times is None else self._later(part.log_times, computed),
            timer=timer,
        )

    def _learn(self, by: Decoding | None, ids: set[str]) -> bool:
        """Learns schemas that records name; False if all of them are known. Others of its run are not kept waiting."""
        if by is None or not (unknown := frames.missing(ids, by.schemas(self._answers))):
            return False
        learn, patient = self._resources.schemas.learn, not self.shares
        self._answers = learn(self.source.topic, by.ask_again, unknown, patient=patient)
        return True

    def _later(self, reached: LogTimes, computed: Computed) -> LogTimes:
        topic = self.source.topic
        since = {TopicPartition(topic, number): time for number, time in computed.by_partition.items()}
        return log_times.later(reached, since)

    def _compute(
        self,
        computation: Computation,
        records: Records,
        part: Part,
        find: Callable[[pa.Table], Found],
        timer: Timer,
        *,
        again: bool,
    ) -> Computed:
        """As `_computed`, of the records that are given, by the schemas that are known."""
        records = records.decoded(computation.sources, self._answers)
        if records.few is not None and part.range.size <= FEW:
            ready = self._at_hand(computation) if again else self._prepared(computation)
            plans = None if ready is None else ready.prepared
            with timer.phase("read"):
                few = None if plans is None else records.few()
            if plans is not None and few is not None:
                computed = plans.compute_unless_running(few, find) if again else plans.compute(few, find)
                if computed is not None:
                    return computed
        computed = computation.compute(records.raw(), find, likely_new=self._likely_new)
        self._likely_new = computed.ids is None or computed.ids.copies.num_rows == 0
        return computed

    @contextmanager
    def _counted(self, range: OffsetRange) -> Iterator[None]:
        """What is computed inside is known to be computed, and since when."""
        jobs = Jobs(self._resources.spark)
        self._computing.append((range, jobs))
        try:
            with jobs.counted():
                yield
        finally:
            self._computing.remove((range, jobs))

    def _prepared(self, computation: Computation) -> Ready:
        """What small micro-batches run, prepared once a day."""
        self._ready = ready = self._at_hand(computation) or self._prepare(computation)
        return ready

    def _at_hand(self, computation: Computation) -> Ready | None:
        """What was prepared of a computation, for a micro-batch or beside one."""
        now = (today(), self.shares)
        made = [each for each in (self._ready, self._preparation.ready) if each is not None]
        return next((e for e in made if e.computation is computation and (e.day, e.shared) == now), None)

    def _prepare(self, computation: Computation) -> Ready:
        day, shared = today(), self.shares
        return Ready(computation, day, shared, prepared(self._resources, computation, interpreted=shared))

    def _decoded(self, raw: DataFrame, computation: Computation) -> DataFrame:
        return decoded(raw, computation.sources, self._answers)

    def _find(self, ids: pa.Table, stopped: threading.Event) -> Found:
        """What Postgres knows of the ids of a micro-batch."""
        database = self._resources.database
        find = partial(database.retrying, partial(duplicates.find, source=self.source, given=ids))
        return database.waiting(find, give_up=stopped.is_set, lost_at_most=LOST_AT_MOST)

    def _await_commit(self) -> None:
        """Waits for the micro-batch before; where others would have to wait along, not for long."""
        while self._committing is not None:
            try:
                self._committing.result(PATIENCE if self.shares else None)
                return
            except TimeoutError:
                if self._committing.done():
                    raise
                if self._waits_for_a_lock():
                    raise StartAgain(
                        f"{self.source.name}: its commit waits for a lock, and it continues alone"
                    ) from None

    def _waits_for_a_lock(self) -> bool:
        return self._session is not None and self._resources.database.is_blocked(self._session)

    def _commit(self, batch: MicroBatch, part: Part, later: DataFrame, stopped: threading.Event) -> None:
        try:
            outcome, batch = self._try_to_commit(batch, part, later, stopped)
        except BaseException:
            self.failed = part.range
            raise
        if outcome is Outcome.APPLIED:
            self.commits += 1
            self._resources.phases.add(self.source.name, batch.timer)
        if batch.bad is not None:
            self._untrimmed += batch.bad.rows.size
            if self._untrimmed > TRIM_AFTER:
                self._trim()

    def _trim(self) -> None:
        """Quarantine within its bounds again; that it was not, or Postgres went away, stops nothing."""
        with suppress(PostgresError, LaminaError):
            trim(self._resources.database, self.source)
            self._untrimmed = 0

    def _try_to_commit(
        self, batch: MicroBatch, part: Part, later: DataFrame, stopped: threading.Event
    ) -> tuple[Outcome, MicroBatch]:
        """What became of it, and what it was by then: it is computed again for what is maintained now."""
        database = self._resources.database
        for _ in range(COMPUTED_AGAIN):
            # Asked after the records were read: had they been another topic's, the id would be another for ever.
            check_id(self._resources.brokers, self.source, self._topic_id)
            # And after its tails were: so the records below its start and those below its end are of one log.
            check_tails(self._resources.brokers, self.source, part.range.start, part.before)
            self._resources.at("before the commit")
            # Repeating a transaction whose end is unknown is safe: what it wrote moved progress, so it is skipped.
            write = partial(database.retrying, partial(self._write, batch=batch))
            with batch.timer.phase("commit"):
                outcome = database.waiting(write, give_up=stopped.is_set, lost_at_most=LOST_AT_MOST)
            self._resources.at("after the commit")
            if outcome is Outcome.SKIPPED:
                log.info("%s: skipped up to %s, %s", batch.query, batch.range.end, outcome.value)
            if outcome in (Outcome.APPLIED, Outcome.SKIPPED):
                return outcome, batch
            if outcome is not Outcome.OTHER_VERSIONS:
                break
            batch = self._computed_again(part, later, partial(self._find, stopped=stopped))
        raise StartAgain(f"{batch.query}: {outcome.value}")

    def _write(self, connection: Connection, batch: MicroBatch) -> Outcome:
        self._session = session_of(connection)
        try:
            outcome = commit(connection, batch)
        finally:
            self._session = None
        self._resources.at("inside the commit")
        return outcome

    def _computed_again(self, part: Part, later: DataFrame, find: Callable[[pa.Table], Found]) -> MicroBatch:
        """The same range, computed for the tables of cells that are maintained now."""
        with self._resources.database.snapshot() as connection:
            self._computation = self._current(connection)
        log.info("%s: other tables of cells are maintained, and the micro-batch is computed for them", self.source.name)
        return self._computed(alone(later), part, find, again=True)


def _unknown_schemas(computed: Computed) -> set[str]:
    """The ids of schemas that are to be asked for before the records that name them can be read."""
    return set() if computed.bad is None else frames.unknown(computed.bad.counts)


def computation_of(connection: Connection, source: Source) -> Computation:
    """The computation of the tables of cells that the source's micro-batches merge into now.

    Of all versions that have cells: one that is computed beside the declared one is fed like it.
    """
    return Computation.of_all(versions.readings(connection, source, names_maintained(connection, source)))


def names_maintained(connection: Connection, source: Source) -> frozenset[str]:
    """The tables of cells that the source's micro-batches merge into now."""
    return frozenset(fed.cell_table for fed in maintained(connection, source.name))
