"""One micro-batch of a source, from Kafka to Postgres. Each phase takes one value to the next.

    phase     from        to          by
    follow    Position    Span        `Member.follow`, once Spark has planned the range
    read      Span        Records     `Flow.read`, or `Run`, which reads several sources together
    compute   Records     MicroBatch  `Flow.compute`, by an `Effect` of the statements
    commit    MicroBatch  Outcome     `Commit.run`, which stages and merges in `serving_layer/promise/micro_batch.py`

`Span.end` is the position at which the next micro-batch begins. Only `Assumptions` and the `Planner` remember anything
of earlier micro-batches.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

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
from speed_layer.jobs import Running
from speed_layer.plans import FEW, FEW_BYTES, Planner, few_of
from speed_layer.resources import Resources
from speed_layer.statements import Effect, LookUp, Statements, names_maintained
from view_algebra.compiled import Source
from view_algebra.formats import Answers, Decoding, frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")

log = logging.getLogger("lamina.speed")

LOST_AT_MOST = 4
"""After losing this many sessions during one commit, we blame the commit, not the network: it probably crashes
Postgres."""

COMPUTED_AGAIN = 5
"""Times a micro-batch is computed because other tables of cells are maintained by its commit. Then its query starts
again from progress."""


MOST_DECODED = 2 * FEW_BYTES
"""Bytes of the records of a small micro-batch with their decoded columns. Spark plans a larger one for itself."""


class StartAgain(Exception):
    """Raised if a member cannot continue from its position. It loses nothing by starting again from progress."""


@dataclass(frozen=True)
class Position:
    """A member's position in its topic.

    offsets: the next records to read
    tails: Kafka's last batches below them
    log_times: those that the records below have reached, or None if no maintained text reads log times
    """

    offsets: Offsets
    tails: Tails
    log_times: LogTimes | None


@dataclass(frozen=True)
class Span:
    """The offset range of a micro-batch, and the position at which it starts.

    tails: Kafka's last batches below the end of the range, fetched before its records are read
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
    """The raw records of a span, fetched on demand.

    raw: returns them as Spark reads them
    few: fetches them, or returns None if there are too many or none. Without it, there are too many
    """

    raw: Callable[[], DataFrame]
    few: Callable[[], pa.Table | None] | None = None

    @classmethod
    def of(cls, raw: DataFrame) -> Records:
        """The records that Spark reads for one source."""
        return cls(lambda: raw, partial(few_of, raw))

    def with_log_times(self, topic: str, reached: LogTimes) -> Records:
        """These records with their log times, which continue from those `reached` below them."""
        of_raw = partial(log_times.of_raw, topic=topic, reached=reached)
        return self._mapped(of_raw, partial(log_times.of_few, reached=reached))

    def decoded(self, sources: Sequence[Source], answers: Answers) -> Records:
        """These records, their values decoded for every declaration of their source."""

        def few(table: pa.Table) -> pa.Table | None:
            table = decoded_few(table, sources, answers)
            return None if table.nbytes > MOST_DECODED else table

        return self._mapped(partial(decoded, sources=sources, answers=answers), few)

    def _mapped(self, raw: Callable[[DataFrame], DataFrame], few: Callable[[pa.Table], pa.Table | None]) -> Records:
        def mapped_few() -> pa.Table | None:
            table = None if self.few is None else self.few()
            return None if table is None else few(table)

        return Records(lambda: raw(self.raw()), None if self.few is None else mapped_few)


@dataclass(frozen=True)
class Membership:
    """A member's part in a run.

    shared: the run has other members, which must not wait for this one
    commits: the threads in which micro-batches are committed
    stopped: set once the run is stopping
    """

    shared: bool
    commits: Executor
    stopped: threading.Event = field(default_factory=threading.Event)


@dataclass
class Assumptions:
    """The assumptions under which a source's micro-batches are computed.

    The thread that computes writes them and, in `_compute_again`, the one that commits. Each field is replaced as a
    whole, and the commit detects stale statements.

    statements: those of the tables of cells that are maintained. The commit finds out if others are
    skipped: the skipped offsets of the topic
    answers: the schemas that the registry has answered
    ids_are_new: no id of the last large micro-batch was counted before
    """

    statements: Statements
    skipped: Skipped
    answers: Answers
    ids_are_new: bool = True


@dataclass(frozen=True)
class Flow:
    """The phases of a source's micro-batches, in one run.

    topic_id: of the deployed topic
    running: the ranges that are being computed
    """

    resources: Resources
    source: Source
    fence: int
    topic_id: str
    membership: Membership
    assumptions: Assumptions
    planner: Planner
    running: Running

    def look_ahead(self, span: Span, raw: DataFrame) -> None:
        """Updates the statements if other tables of cells are maintained now, and prepares the announced ones.

        The commit notices whatever this misses. So it waits for nothing, and its failures are ignored.
        """
        now = self.assumptions
        with suppress(PostgresError, PostgresAway), self.resources.database.snapshot() as connection:
            if names_maintained(connection, self.source) != now.statements.names:
                self.update_statements(connection, span)
            self.planner.prepare(connection, now.statements, raw, now.answers, interpreted=self.membership.shared)

    def update_statements(self, connection: Connection, span: Span) -> None:
        """Reads the maintained statements. Raises `StartAgain` if they need a new declaration or log times."""
        if versions.read(connection).get(self.source.name) != self.source:
            raise StartAgain(f"{self.source.name}: its declaration has changed")
        statements = Statements.maintained(connection, self.source)
        if statements.reads_log_times and span.start.log_times is None:
            raise StartAgain(f"{self.source.name}: its log times are needed now")
        self.assumptions.statements = self.planner.as_announced(statements)

    def compute(self, span: Span, records: Records | None, look_up: LookUp, *, may_wait: bool = True) -> MicroBatch:
        """Computes a span for the tables of cells that are assumed to be maintained.

        records: None if the span is to be read for this member alone
        may_wait: false in a commit, since the next micro-batch waits for it
        """
        if records is None or span.range.holds(self.assumptions.skipped):
            records = self.read(span)
        if self.source.kind == "table":
            records = records.with_log_times(self.source.topic, span.start.log_times or {})
        statements, timer = self.assumptions.statements, Timer()
        with self.running.track(self.resources.spark, span.range), timer.phase("compute"):
            for by in statements.older_decodings:  # bad records do not report the ids that these lack
                self._learn(by, named_schemas(records.raw(), by))
            effect = self._effect(statements, span, records, look_up, timer, may_wait=may_wait)
            while self._learn(Decoding.of(self.source), _unknown_schemas(effect)):
                effect = self._effect(statements, span, records, look_up, timer, may_wait=may_wait)
        return MicroBatch(
            query=self.source.name,
            fence=self.fence,
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

    def read(self, span: Span) -> Records:
        """Reads a span from Kafka without the skipped records."""
        resources, source = self.resources, self.source
        self.assumptions.skipped = skipped = read_skipped(resources, source)
        raw = kafka_range(resources.spark, resources.brokers, source, span.range, skipped)
        return Records(lambda: raw)

    def _effect(
        self, statements: Statements, span: Span, records: Records, look_up: LookUp, timer: Timer, *, may_wait: bool
    ) -> Effect:
        """Runs the statements over the records: by kept plans if the records are few, and decoded by known schemas."""
        records = records.decoded(statements.sources, self.assumptions.answers)
        if records.few is not None and span.range.size <= FEW:
            plans = (self.planner.plan if may_wait else self.planner.kept)(
                statements, interpreted=self.membership.shared
            )
            with timer.phase("read"):
                few = None if plans is None else records.few()
            if plans is not None and few is not None:
                effect = plans.compute(few, look_up, wait=may_wait)
                if effect is not None:
                    return effect
        effect = statements.compute(records.raw(), look_up, likely_new=self.assumptions.ids_are_new)
        self.assumptions.ids_are_new = effect.ids is None or effect.ids.copies.num_rows == 0
        return effect

    def _learn(self, by: Decoding | None, ids: set[str]) -> bool:
        """Learns the schemas that records name. Returns False if all are known. A shared run does not wait for them."""
        if by is None or not (unknown := frames.missing(ids, by.schemas(self.assumptions.answers))):
            return False
        learn, patient = self.resources.schemas.learn, not self.membership.shared
        self.assumptions.answers = learn(self.source.topic, by.ask_again, unknown, patient=patient)
        return True

    def _later(self, reached: LogTimes, effect: Effect) -> LogTimes:
        topic = self.source.topic
        since = {TopicPartition(topic, number): time for number, time in effect.by_partition.items()}
        return log_times.later(reached, since)

    def look_up(self, ids: pa.Table) -> IdLookup:
        """Looks up the ids of a micro-batch in Postgres."""
        return self.in_transaction(partial(event_ids.look_up, source=self.source, ids=ids))

    def in_transaction(self, step: Callable[[Connection], T]) -> T:
        """Runs a step in a transaction. It is repeated while Postgres is away, until the run is stopped."""
        database = self.resources.database
        transaction, stopped = partial(database.retrying, step), self.membership.stopped
        return database.waiting(transaction, give_up=stopped.is_set, lost_at_most=LOST_AT_MOST)


def read_skipped(resources: Resources, source: Source) -> Skipped:
    """Reads the skipped offsets, and forgets those that Kafka has lost: another record may have the offset now."""
    for at, offset in skipping.forget_lost(resources.database, resources.brokers, source.topic):
        log.warning("%s: the record skipped at %s %s:%s is lost", source.name, *at, offset)
    with resources.database.begin() as connection:
        return skipping.read(connection)


def _unknown_schemas(effect: Effect) -> set[str]:
    """The ids of schemas without which records cannot be read."""
    return set() if effect.bad is None else frames.unknown(effect.bad.counts)


@dataclass
class Commit:
    """A micro-batch on its way into Postgres.

    batch: computed again if other tables of cells are maintained now
    raw: reads its records again
    """

    flow: Flow
    span: Span
    raw: DataFrame
    batch: MicroBatch
    _session: int | None = None  # of the transaction that is open

    def run(self) -> Outcome:
        """Commits it. Raises `StartAgain` if it does not begin at progress, `Fenced` and `CannotContinue`."""
        resources, source = self.flow.resources, self.flow.source
        for _ in range(COMPUTED_AGAIN):
            # After the records were read: if they came from a recreated topic, its id differs from now on.
            check_id(resources.brokers, source, self.flow.topic_id)
            # After the tails were fetched: so the records below the start and those below the end are of one log.
            check_tails(resources.brokers, source, self.span.range.start, self.span.start.tails)
            resources.at("before the commit")
            # A transaction whose end is unknown may be repeated: if it was committed, progress has moved, and the
            # repetition is skipped.
            with self.batch.timer.phase("commit"):
                outcome = self.flow.in_transaction(self._write)
            resources.at("after the commit")
            if outcome is Outcome.ALREADY_COUNTED:
                log.info("%s: already counted up to %s", source.name, self.batch.range.end)
            if outcome in (Outcome.APPLIED, Outcome.ALREADY_COUNTED):
                return outcome
            if outcome is not Outcome.OTHER_VERSIONS:
                break
            self._compute_again()
        raise StartAgain(f"{source.name}: {outcome.value}")

    def _write(self, connection: Connection) -> Outcome:
        self._session = session_of(connection)
        try:
            outcome = commit(connection, self.batch)
        finally:
            self._session = None
        self.flow.resources.at("inside the commit")
        return outcome

    def _compute_again(self) -> None:
        """Computes the span for the tables of cells that are maintained now."""
        flow = self.flow
        with flow.resources.database.snapshot() as connection:
            flow.update_statements(connection, self.span)
        log.info("%s: other tables of cells are maintained now, so the micro-batch is computed again", flow.source.name)
        self.batch = flow.compute(self.span, Records.of(self.raw), flow.look_up, may_wait=False)

    def waits_for_a_lock(self) -> bool:
        """True if it waits for a lock in Postgres."""
        return self._session is not None and self.flow.resources.database.is_blocked(self._session)
