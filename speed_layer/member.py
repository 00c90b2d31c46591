"""One source in a run: its position, the micro-batch that is being committed, and its failure.

Progress in Postgres is the truth about a source. A member begins there, and continues from the end of the micro-batch
that it last handed to the committer. If that was not committed, the next commit finds that it does not begin at
progress.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from master_log.causes import SPARK_ERRORS
from master_log.kafka.fetching import Epochs, LeaderChanged
from master_log.offsets import OffsetRange, Offsets
from master_log.reading.kafka_reader import UnreadableRecord, unreadable
from serving_layer.postgres.database import PostgresError
from serving_layer.promise import progress
from serving_layer.promise.event_ids import IdLookup
from serving_layer.promise.micro_batch import Outcome
from serving_layer.promise.quarantine import TRIM_AFTER, trim
from speed_layer.commit import Commit
from speed_layer.continuity import check_topic
from speed_layer.endless import TooLong
from speed_layer.flow import Assumptions, Flow, Membership, read_skipped
from speed_layer.jobs import RunningRanges
from speed_layer.planner import KeptPlans, Planner, Preparation
from speed_layer.plans import COMPILED, INTERPRETED
from speed_layer.position import Position, Span, StartAgain
from speed_layer.records import Records
from speed_layer.resources import Resources
from speed_layer.statements import Statements
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("lamina.speed")

LOCK_CHECKED_EVERY = 1.0
"""Seconds to wait for a commit before each look whether it waits for a lock."""


class Member:
    """A source from progress on, in one run after another until it fails.

    `follow` and `take` run in the threads that compute, `_run_commit` in those that commit, and the others in the
    layer's. The first of them to fail sets `failed_range` and the reason.

    position: the start of its next micro-batch
    committed: the number of micro-batches it has committed
    failed_range: the range of the micro-batch that it failed at
    """

    def __init__(self, resources: Resources, source: Source, fence: int, start: Position) -> None:
        self._resources, self.source, self._fence = resources, source, fence
        with resources.database.begin() as connection:
            self._topic_id = progress.queries(connection)[source.name].topic_id
            offsets, tails = progress.read_with_tails(connection, source.name)
            statements = Statements.maintained(connection, source)
        if offsets != start.offsets or (start.log_times is None and statements.reads_log_times):
            raise StartAgain(f"{source.name}: progress has moved, or log times are needed")
        self.position = Position(offsets, tails, start.log_times)
        check_topic(resources.brokers, source, self._topic_id, offsets, tails)
        self.assumptions = Assumptions(statements, read_skipped(resources, source), resources.schemas.of(source.topic))
        self.running, self.preparation, self._plans = RunningRanges(), Preparation(source), KeptPlans()
        self._commit: Commit | None = None
        self._committing: Future[None] | None = None
        self._raised: BaseException | None = None
        self.committed = self._untrimmed = 0
        self.failed_range: OffsetRange | None = None
        self._trim()

    def flow(self, membership: Membership) -> Flow:
        """The phases of its micro-batches in one run."""
        settings = INTERPRETED if membership.shared else COMPILED
        planner = Planner(self._resources, self.source, settings, self._plans, self.preparation)
        fixed = (self._resources, self.source, self._fence, self._topic_id)
        return Flow(*fixed, membership, self.assumptions, planner, self.running)

    def behind(self, end: Offsets) -> int:
        """The number of offsets between its position and the ends of its topic."""
        return OffsetRange.since(self.position.offsets, end).size

    def moved_by(self, end: Offsets) -> OffsetRange | None:
        """The range up to the ends of its partitions among `end`, or None if it is empty."""
        topic_end = Offsets({at: offset for at, offset in end.items() if at.topic == self.source.topic})
        range = OffsetRange.since(self.position.offsets, topic_end)
        return None if range.empty else range

    def follow(self, range: OffsetRange, epochs: Epochs) -> Span:
        """Begins a micro-batch: fetches the tails below the end of its range, before its records are counted.

        If Kafka later loses these records and gives their offsets to others, a comparison finds another tail, whichever
        records were read. The run has read ahead from leaders with these `epochs`. Raises `LeaderChanged`, which is not
        this member's failure, if a partition has another leader by now.
        """
        with self._failing_at(range):
            self._resources.at("before a micro-batch")
            moved = range.moved
            if new := moved.keys() - epochs.keys():
                raise LeaderChanged(f"Partition {min(new).partition} of {self.source.topic} is new")
            return Span(self.position, range, self._resources.brokers.tails(moved, epochs))

    def take(self, flow: Flow, span: Span, records: Records, raw: DataFrame) -> None:
        """Computes a micro-batch while the one before it is committed, then submits it for its own commit.

        flow: its phases in the present run
        raw: reads the records again. After a failure in a shared run, they are read and computed once more for this
            member alone: Spark may have failed at another member's record. If the run is stopped before this begins,
            the micro-batch is left to the next run, because its jobs would be cancelled here
        """
        membership = flow.membership
        if membership.stopped.is_set():
            return
        with self._failing_at(span.range):
            self._resources.at("before computing")
            began = time.monotonic()
            flow.look_ahead(span, raw)

            def look_up(ids: pa.Table) -> IdLookup:
                self._await_commit(membership)  # its ids must be stored first
                return flow.look_up(ids)

            try:
                batch = flow.compute(span, records, look_up)
            except (*SPARK_ERRORS, OSError):
                if not membership.shared or self._raised is not None or membership.stopped.is_set():
                    raise
                self._plans.discard()
                batch = flow.compute(span, None, look_up)
            self._await_commit(membership)
            log.debug("%s: %s, computed in %.3f s", self.source.name, span.range.end, time.monotonic() - began)
            self._commit = Commit(flow, span, raw, batch)
            self._committing = membership.committers.submit(self._run_commit, self._commit)
            self.position = span.end(batch.log_times)

    @contextmanager
    def _failing_at(self, range: OffsetRange) -> Iterator[None]:
        try:
            yield
        except LeaderChanged:
            raise
        except BaseException as error:
            self._raised = self._raised or error  # if it was given up, that is the reason
            self.failed_range = self.failed_range or range  # if the commit before it failed, that is the range
            raise

    def _await_commit(self, membership: Membership) -> None:
        """Waits for the commit before. A run that is shared or stopping waits for no commit that waits for a lock."""
        self._resources.at("before waiting for the commit")
        while self._committing is not None:
            if wait([self._committing], LOCK_CHECKED_EVERY).done:
                self._committing.result()
                return
            if (membership.shared or membership.stopped.is_set()) and self._waits_for_a_lock():
                raise StartAgain(f"{self.source.name}: its commit waits for a lock, and the run ends without it")

    def _run_commit(self, commit: Commit) -> None:
        try:
            outcome = commit.run()
        except BaseException:
            self.failed_range = commit.span.range
            raise
        if outcome is Outcome.APPLIED:
            self.committed += 1
            self._resources.phases.add(self.source.name, commit.batch.timer)
        if commit.batch.bad is not None:
            self._untrimmed += commit.batch.bad.rows.size
            if self._untrimmed > TRIM_AFTER:
                self._trim()

    def _trim(self) -> None:
        """Trims quarantine to its bounds. A failure is ignored: the next bad records trim it again."""
        with suppress(PostgresError, LaminaError):
            trim(self._resources.database, self.source)
            self._untrimmed = 0

    def settle(self) -> None:
        """Returns when its last computed micro-batch is committed, or will not be.

        It does not wait for a commit that waits for a lock. Then this member fails. Its successor begins at progress,
        whether that commit succeeds or not.
        """
        while self._committing is not None and not wait([self._committing], LOCK_CHECKED_EVERY).done:
            if self._waits_for_a_lock():
                self._raised = StartAgain(f"{self.source.name}: its commit waits for a lock")
                return

    def _waits_for_a_lock(self) -> bool:
        return self._commit is not None and self._commit.waits_for_a_lock()

    def failure(self) -> BaseException | None:
        """The exception that keeps it from continuing, or None while it can continue."""
        if self._raised is None and self._committing is not None and self._committing.done():
            return self._committing.exception()
        return self._raised

    def give_up(self, range: OffsetRange, *, shared: bool) -> None:
        """Makes it fail, and cancels the micro-batch that is overdue, unless it has been computed meanwhile."""
        if (jobs := self.running.jobs_of(range)) is not None:
            skipped = range.holds(self.assumptions.skipped)
            self._raised, self.failed_range = TooLong(range, jobs, skipped, shared=shared), range
            jobs.cancel()

    def unreadable(self) -> UnreadableRecord | None:
        """The record of the failed micro-batch that Spark cannot read, if there is one."""
        resources = self._resources
        if self.failed_range is None:
            return None
        return unreadable(resources.spark, resources.brokers, self.source, self.failed_range, self.assumptions.skipped)
