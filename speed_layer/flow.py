"""One micro-batch of a source, from Kafka to Postgres. Each phase takes one value to the next.

    phase     from        to          by
    follow    Position    Span        `Member.follow`, once Spark has planned the range
    read      Span        Records     `Flow.read`, or `Run`, which reads several sources together
    compute   Records     MicroBatch  `Flow.compute`, by an `Effect` of the statements
    commit    MicroBatch  Outcome     `Flow.commit`; it stages and merges in `serving_layer/promise/micro_batch.py`

`Span.end` is the position at which the next micro-batch begins.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from master_log import log_times
from master_log.kafka_reader import kafka_range
from master_log.log_times import LogTimes
from master_log.offsets import OffsetRange, Offsets, Skipped, TopicPartition
from master_log.record_decoding import decoded, decoded_few, named_schemas
from master_log.tails import Tails
from serving_layer.catalog import versions
from serving_layer.postgres.database import Connection, PostgresAway, PostgresError, session_of
from serving_layer.postgres.phases import Timer
from serving_layer.promise import event_ids, skipping
from serving_layer.promise.event_ids import IdLookup
from serving_layer.promise.micro_batch import MicroBatch, Outcome, commit
from speed_layer.continuity import check_id, check_tails
from speed_layer.jobs import Jobs
from speed_layer.plans import FEW, FEW_BYTES, Planner, few_of
from speed_layer.resources import Resources
from speed_layer.statements import Effect, LookUp, Statements, names_maintained
from view_algebra.compiled import Source
from view_algebra.formats import Answers, Decoding, frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("lamina.speed")

LOST_AT_MOST = 4
"""After losing this many sessions during one commit, we blame the commit, not the network: it probably crashes
Postgres."""

MOST_DECODED = 2 * FEW_BYTES
"""Bytes of the records of a small micro-batch with their decoded columns. Spark plans a larger one for itself."""

COMPUTED_AGAIN = 5
"""Times a micro-batch is computed because other tables of cells are maintained by its commit. Then its query starts
again from progress."""


class StartAgain(Exception):
    """Raised if a member cannot continue from its position. It loses nothing by starting again from progress."""


@dataclass(frozen=True)
class Position:
    """A member's position in its topic.

    offsets: the next records to read.
    tails: Kafka's last batches below them.
    log_times: those that the records below have reached; None if no maintained text reads log times.
    """

    offsets: Offsets
    tails: Tails
    log_times: LogTimes | None


@dataclass(frozen=True)
class Span:
    """The offset range of a micro-batch, and the position at which it starts.

    tails: Kafka's last batches below the end of the range, fetched before its records are read.
    """

    start: Position
    range: OffsetRange
    tails: Tails

    def end(self, reached: LogTimes) -> Position:
        """The position at the end, where the records have `reached` these log times."""
        moved = self.range.moved
        unmoved = {at: tail for at, tail in self.start.tails.items() if at not in moved}
        return Position(self.range.end, unmoved | dict(self.tails), None if self.start.log_times is None else reached)


@dataclass(frozen=True)
class Records:
    """The raw records of a span, fetched when they are called for.

    raw: returns them as Spark reads them.
    few: fetches them, or returns None if they are too many or none at all; None if they are known to be too many.
    """

    raw: Callable[[], DataFrame]
    few: Callable[[], pa.Table | None] | None = None

    def with_log_times(self, topic: str, reached: LogTimes) -> Records:
        """These records with their log times, which continue from those `reached` below them."""
        of_raw = partial(log_times.of_raw, topic=topic, reached=reached)
        return self._mapped(of_raw, partial(log_times.of_few, reached=reached))

    def decoded(self, sources: Sequence[Source], answers: Answers) -> Records:
        """These records, their values decoded for each of the declarations of their source."""

        def few(table: pa.Table) -> pa.Table | None:
            table = decoded_few(table, sources, answers)
            return None if table.nbytes > MOST_DECODED else table

        return self._mapped(partial(decoded, sources=sources, answers=answers), few)

    def _mapped(self, raw: Callable[[DataFrame], DataFrame], few: Callable[[pa.Table], pa.Table | None]) -> Records:
        def mapped_few() -> pa.Table | None:
            table = None if self.few is None else self.few()
            return None if table is None else few(table)

        return Records(lambda: raw(self.raw()), None if self.few is None else mapped_few)


def records_of(raw: DataFrame) -> Records:
    """The records that Spark reads for one source."""
    return Records(lambda: raw, partial(few_of, raw))


class Flow:
    """The phases of a source's micro-batches, and what one micro-batch leaves to the next.

    statements: for the tables of cells known to be maintained.
    skipped: the offsets of the topic known to be skipped.
    shared: the source shares its run, so it must not keep the other members waiting.
    running: the ranges being computed, with their Spark jobs.
    """

    def __init__(self, resources: Resources, source: Source, fence: int, topic_id: str, statements: Statements) -> None:
        self._resources, self.source, self._fence, self._topic_id = resources, source, fence, topic_id
        self.statements = statements
        self._answers = resources.schemas.of(source.topic)
        self.planner = Planner(resources, source, self._decoded, lambda: self.shared)
        self.skipped = Skipped()
        self.shared = False
        self.running: list[tuple[OffsetRange, Jobs]] = []
        self._session: int | None = None  # the Postgres session that is committing
        self._likely_new = True  # the ids of its last large micro-batch were all new

    def look_ahead(self, span: Span, raw: DataFrame) -> None:
        """Updates the statements if other tables of cells are maintained now, and prepares those that are announced.

        The commit notices whatever this misses. So it waits for nothing, and its failures are ignored.
        """
        with suppress(PostgresError, PostgresAway), self._resources.database.snapshot() as connection:
            if names_maintained(connection, self.source) != self.statements.names:
                self.statements = self._maintained(connection, span)
            self.planner.prepare(connection, self.statements, raw)

    def read(self, span: Span) -> Records:
        """Reads a span from Kafka without the skipped records."""
        self.update_skipped()
        raw = kafka_range(self._resources.spark, self._resources.brokers, self.source, span.range, self.skipped)
        return Records(lambda: raw)

    def compute(self, span: Span, records: Records | None, look_up: LookUp, *, again: bool = False) -> MicroBatch:
        """Computes a span for the tables of cells known to be maintained.

        records: None if the span is to be read for this member alone.
        again: for a commit. The micro-batch after it may be computing meanwhile, and waits for this commit.
        """
        if records is None or span.range.holds(self.skipped):
            records = self.read(span)
        if self.source.kind == "table":
            records = records.with_log_times(self.source.topic, span.start.log_times or {})
        statements, timer = self.statements, Timer()
        with self._noted(span.range), timer.phase("compute"):
            for by in statements.older_decodings:  # bad records do not report the ids that these lack
                self._learn(by, named_schemas(records.raw(), by))
            effect = self._effect(statements, span, records, look_up, timer, again=again)
            while self._learn(Decoding.of(self.source), _unknown_schemas(effect)):
                effect = self._effect(statements, span, records, look_up, timer, again=again)
        return MicroBatch(
            query=self.source.name,
            fence=self._fence,
            range=span.range,
            cell_tables=statements.names,
            staged=effect.staged,
            bad=effect.bad,
            newest=effect.newest,
            tails=span.tails,
            ids=effect.ids,
            log_times={} if span.start.log_times is None else self._later(span.start.log_times, effect),
            timer=timer,
        )

    def commit(
        self, batch: MicroBatch, span: Span, raw: DataFrame, stopped: threading.Event
    ) -> tuple[Outcome, MicroBatch]:
        """Commits a micro-batch in one transaction. Returns the outcome, and the micro-batch that was committed.

        If other tables of cells are maintained by now, it is computed again for them, from `raw`. Raises `StartAgain`
        if the micro-batch does not begin at progress, `Fenced` and `CannotGoOn`.
        """
        database, brokers = self._resources.database, self._resources.brokers
        for _ in range(COMPUTED_AGAIN):
            # After the records were read: if they came from a recreated topic, its id differs from now on.
            check_id(brokers, self.source, self._topic_id)
            # After the tails were fetched: so the records below the start and those below the end are of one log.
            check_tails(brokers, self.source, span.range.start, span.start.tails)
            self._resources.at("before the commit")
            # A transaction whose end is unknown may be repeated: if it was committed, progress has moved, and the
            # repetition is skipped.
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
            batch = self._compute_again(span, raw, stopped)
        raise StartAgain(f"{batch.query}: {outcome.value}")

    def look_up(self, ids: pa.Table, stopped: threading.Event) -> IdLookup:
        """Looks up the ids of a micro-batch in Postgres."""
        database = self._resources.database
        find = partial(database.retrying, partial(event_ids.look_up, source=self.source, ids=ids))
        return database.waiting(find, give_up=stopped.is_set, lost_at_most=LOST_AT_MOST)

    def waits_for_a_lock(self) -> bool:
        """True if its commit waits for a lock in Postgres."""
        return self._session is not None and self._resources.database.is_blocked(self._session)

    def overdue(self, seconds: float) -> OffsetRange | None:
        """The range of a micro-batch whose tasks have been running for so long."""
        return next((range for range, jobs in tuple(self.running) if jobs.run_longer_than(seconds)), None)

    def cancel(self) -> None:
        """Makes the micro-batches that are being computed fail: nobody waits for them any more."""
        for _, jobs in tuple(self.running):
            jobs.cancel()

    def update_skipped(self) -> None:
        """Reads the skipped offsets, and forgets those that Kafka has lost: another record may have the offset now."""
        for at, offset in skipping.forget_lost(self._resources.database, self._resources.brokers, self.source.topic):
            log.warning("%s: the record skipped at %s %s:%s is lost", self.source.name, *at, offset)
        with self._resources.database.begin() as connection:
            self.skipped = skipping.read(connection)

    def _effect(
        self, statements: Statements, span: Span, records: Records, look_up: LookUp, timer: Timer, *, again: bool
    ) -> Effect:
        """Runs the statements over the records, decoded by the schemas known now: by kept plans if they are few."""
        records = records.decoded(statements.sources, self._answers)
        if records.few is not None and span.range.size <= FEW:
            plans = self.planner.kept(statements) if again else self.planner.plan(statements)
            with timer.phase("read"):
                few = None if plans is None else records.few()
            if plans is not None and few is not None:
                effect = plans.compute(few, look_up, wait=not again)
                if effect is not None:
                    return effect
        effect = statements.compute(records.raw(), look_up, likely_new=self._likely_new)
        self._likely_new = effect.ids is None or effect.ids.copies.num_rows == 0
        return effect

    def _compute_again(self, span: Span, raw: DataFrame, stopped: threading.Event) -> MicroBatch:
        """Computes a span for the tables of cells that are maintained now."""
        with self._resources.database.snapshot() as connection:
            self.statements = self._maintained(connection, span)
        log.info("%s: other tables of cells are maintained now, so the micro-batch is computed again", self.source.name)
        return self.compute(span, records_of(raw), partial(self.look_up, stopped=stopped), again=True)

    def _maintained(self, connection: Connection, span: Span) -> Statements:
        """The statements maintained now. Raises `StartAgain` if the source has a new declaration or lacks log times."""
        if versions.read(connection).get(self.source.name) != self.source:
            raise StartAgain(f"{self.source.name}: its declaration has changed")
        statements = Statements.maintained(connection, self.source)
        if statements.reads_log_times and span.start.log_times is None:
            raise StartAgain(f"{self.source.name}: its log times are needed now")
        return self.planner.same(statements)

    def _write(self, connection: Connection, batch: MicroBatch) -> Outcome:
        self._session = session_of(connection)
        try:
            outcome = commit(connection, batch)
        finally:
            self._session = None
        self._resources.at("inside the commit")
        return outcome

    def _learn(self, by: Decoding | None, ids: set[str]) -> bool:
        """Learns the schemas that records name; False if all are known. In a shared run, it does not wait for them."""
        if by is None or not (unknown := frames.missing(ids, by.schemas(self._answers))):
            return False
        learn, patient = self._resources.schemas.learn, not self.shared
        self._answers = learn(self.source.topic, by.ask_again, unknown, patient=patient)
        return True

    def _decoded(self, raw: DataFrame, statements: Statements) -> DataFrame:
        return decoded(raw, statements.sources, self._answers)

    def _later(self, reached: LogTimes, effect: Effect) -> LogTimes:
        topic = self.source.topic
        since = {TopicPartition(topic, number): time for number, time in effect.by_partition.items()}
        return log_times.later(reached, since)

    @contextmanager
    def _noted(self, range: OffsetRange) -> Iterator[None]:
        """Notes the jobs of the block as those that compute a range."""
        jobs = Jobs(self._resources.spark)
        self.running.append((range, jobs))
        try:
            with jobs.counted():
                yield
        finally:
            self.running.remove((range, jobs))


def _unknown_schemas(effect: Effect) -> set[str]:
    """The ids of schemas without which records cannot be read."""
    return set() if effect.bad is None else frames.unknown(effect.bad.counts)
