"""One micro-batch of a source, from Kafka to Postgres. Each phase takes one value to the next.

    phase     from        to          by
    follow    Position    Span        `Member.follow`, once Spark has planned the range
    read      Span        Records     `Flow.read`, or `Run`, which reads several sources together
    compute   Records     MicroBatch  `Flow.compute`, by an `Effect` of the statements
    commit    MicroBatch  Outcome     `Commit.run` of `speed_layer/commit.py`

`Span.end` is the position at which the next micro-batch begins. Only `Assumptions` and `KeptPlans` remember anything of
earlier micro-batches.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from master_log.offsets import Skipped, TopicPartition
from master_log.reading import log_times
from master_log.reading.kafka_reader import kafka_range
from master_log.reading.log_times import LogTimes
from master_log.reading.record_decoding import named_schemas
from serving_layer.catalog import versions
from serving_layer.postgres.database import Connection, PostgresError, PostgresUnavailable
from serving_layer.postgres.phases import Timer
from serving_layer.promise import event_ids, skipping
from serving_layer.promise.event_ids import IdLookup
from serving_layer.promise.micro_batch import MicroBatch
from speed_layer.jobs import RunningRanges
from speed_layer.planner import Planner
from speed_layer.position import Span, StartAgain
from speed_layer.records import FEW, Records
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


@dataclass(frozen=True)
class Membership:
    """A member's part in a run.

    shared: the run has other members, which must not wait for this one
    committers: the threads in which micro-batches are committed
    stopped: set once the run is stopping
    """

    shared: bool
    committers: Executor
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
    running: RunningRanges

    def look_ahead(self, span: Span, raw: DataFrame) -> None:
        """Updates the statements if other tables of cells are maintained now, and prepares the announced ones.

        The commit notices whatever this misses. So it waits for nothing, and its failures are ignored.
        """
        now = self.assumptions
        with suppress(PostgresError, PostgresUnavailable), self.resources.database.snapshot() as connection:
            if names_maintained(connection, self.source) != now.statements.names:
                self.update_statements(connection, span)
            self.planner.prepare(connection, now.statements, raw, now.answers)

    def update_statements(self, connection: Connection, span: Span) -> None:
        """Reads the maintained statements. Raises `StartAgain` if they need a new declaration or log times."""
        if versions.sources_to_read(connection).get(self.source.name) != self.source:
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
        if records.fetch is not None and span.range.size <= FEW:
            plans = (self.planner.plan if may_wait else self.planner.existing_plans)(statements)
            with timer.phase("read"):
                table = None if plans is None else records.fetch()
            if plans is not None and table is not None:
                effect = plans.compute(table, look_up, wait=may_wait)
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
