"""One streaming query: its micro-batches, in order, each committed once.

Postgres' progress is the truth about where the query is. Spark's checkpoint only carries one run of it: every start
begins a new one at progress, so a checkpoint that is lost, or ahead of progress, or behind it, does not matter.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError

from master_log.kafka import Brokers
from master_log.offsets import OffsetRange, Offsets, Skipped
from master_log.reading import Unreadable, kafka_range, stream, unreadable
from master_log.tails import Tails
from serving_layer import duplicates, progress, skipping, versions
from serving_layer.database import Database, PostgresError
from serving_layer.duplicates import Found
from serving_layer.micro_batch import MicroBatch, Outcome, commit, maintained
from serving_layer.quarantine import TRIM_AFTER, trim
from speed_layer.computation import Computation
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("lamina.speed")

TRIGGER = "50 milliseconds"
"""How often an idle query asks the brokers for records; a busy one starts its next micro-batch at once."""


MISSING_SECONDS = 10.0
"""How long a topic may be unknown to the brokers before it counts as deleted."""


class StartAgain(Exception):
    """The run cannot go on from where Spark is, and loses nothing by starting again from progress."""


class CannotGoOn(LaminaError):
    """The topic no longer holds what comes next: reading on would skip records, or read others."""


@dataclass(frozen=True)
class Parts:
    """What every query of a speed layer shares.

    checkpoints: folder of the runs' checkpoints. max_records: bound of a micro-batch, in offsets.
    at: called at named places of a micro-batch; the tests stop there.
    """

    spark: SparkSession
    database: Database
    brokers: Brokers
    checkpoints: Path
    max_records: int
    at: Callable[[str], None] = lambda place: None


class Run:
    """One run of a streaming query, from progress until it is stopped or fails.

    max_records: bound of its micro-batches, per partition at least one. commits: how many of them it has committed.
    failed: the range of the one that it failed at.
    """

    def __init__(self, parts: Parts, source: Source, fence: int, *, max_records: int) -> None:
        self._parts, self._source, self._fence, self.max_records = parts, source, fence, max_records
        self._stopped = threading.Event()
        with parts.database.begin() as connection:
            self._topic_id = progress.queries(connection)[source.name].topic_id
            self._position, self._tails = progress.known(connection, source.name)
            # Of all versions that have cells: one that is computed beside the declared one is fed like it.
            names = {fed.cell_table for fed in maintained(connection, source.name)}
            readings = versions.readings(connection, source, names)
        check_topic(parts.brokers, source, self._topic_id, self._position, self._tails)
        self._skipped = self._still_skipped()
        self._computation = Computation.of_all(readings)
        self._checkpoint = parts.checkpoints / source.name / uuid.uuid4().hex
        self._committer = ThreadPoolExecutor(1, thread_name_prefix=f"commit-{source.name}")
        self._committing: Future[None] | None = None
        self.commits = self._untrimmed = 0
        self.failed: OffsetRange | None = None
        self._trim()
        self._query = self._start()

    def failure(self) -> BaseException | None:
        """Why the run has ended, or must, as it was raised; None while it goes on."""
        committing = self._committing
        if committing is not None and committing.done() and (raised := committing.exception()) is not None:
            return raised
        if self._query.isActive:
            return None
        return self._raised or self._query.exception() or StartAgain("the query was stopped")

    def unreadable(self) -> Unreadable | None:
        """The record that Spark cannot read, of those in the micro-batch that failed."""
        parts = self._parts
        if self.failed is None:
            return None
        return unreadable(parts.spark, parts.brokers, self._source, self.failed, self._skipped)

    def stop(self) -> None:
        """Ends the run after what is being committed (unless Postgres is away), and leaves nothing behind."""
        self._stopped.set()
        with suppress(Py4JError, ConnectionError):  # Spark's process is gone, and the query with it
            self._query.stop()
        self._committer.shutdown(wait=True)
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def _still_skipped(self) -> Skipped:
        """What an operator has skipped, but where Kafka has lost it: another record may have its offset now."""
        for at, offset in skipping.forget_lost(self._parts.database, self._parts.brokers, self._source.topic):
            log.warning("%s: the record skipped at %s %s:%s is lost", self._source.name, *at, offset)
        with self._parts.database.begin() as connection:
            return skipping.read(connection)

    def _start(self) -> StreamingQuery:
        parts = self._parts
        raw = stream(
            parts.spark, parts.brokers, self._source, self._position, max_records_per_micro_batch=self.max_records
        )
        self._raised: BaseException | None = None
        return (
            raw.writeStream.queryName(f"{self._source.name}-{self._checkpoint.name[:8]}")
            .foreachBatch(self._micro_batch)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=TRIGGER)
            .start()
        )

    def _micro_batch(self, raw: DataFrame, batch_id: int) -> None:
        """Computes a micro-batch while the one before it commits, then hands it to the committer."""
        range: OffsetRange | None = None
        try:
            range = self._range(batch_id)
            before, tails = self._tails, self._follow(range)
            self._parts.at("before computing")
            began = time.monotonic()
            if range.holds(self._skipped):
                self._skipped = self._still_skipped()
                raw = kafka_range(raw.sparkSession, self._parts.brokers, self._source, range, self._skipped)
            computed = self._computation.compute(raw, self._find)
            batch = MicroBatch(
                query=self._source.name,
                fence=self._fence,
                range=range,
                cell_tables=frozenset(table.name for table in self._computation.tables),
                staged=computed.staged,
                bad=computed.bad,
                newest=computed.newest,
                tails=tails,
                ids=computed.ids,
            )
            if self._committing is not None:
                self._committing.result()
            log.debug("%s: %s, computed in %.3f s", self._source.name, range.end, time.monotonic() - began)
            self._committing = self._committer.submit(self._commit, batch, before)
            self._position = range.end
        except BaseException as error:  # noqa: BLE001 (`failure` gives it to whoever judges it)
            self._raised = error
            self.failed = self.failed or range  # the one before it, where it was its commit that failed
            # In what is raised here, Spark searches with a pattern that recurses per character: a stack trace in it
            # would overflow the stack of the thread that runs the query.
            raise StartAgain("its micro-batch failed") from None

    def _find(self, ids: pa.Table) -> Found:
        """What Postgres knows of the ids of a micro-batch, when those of the one before it are there."""
        if self._committing is not None:
            self._committing.result()
        database = self._parts.database
        return database.waiting(
            lambda: database.retrying(lambda connection: duplicates.find(connection, self._source, ids)),
            give_up=self._stopped.is_set,
        )

    def _range(self, batch_id: int) -> OffsetRange:
        """The range of a micro-batch, as Spark planned it: the last line of `offsets/<batch id>` in its checkpoint."""
        planned = (self._checkpoint / "offsets" / str(batch_id)).read_text().splitlines()[-1]
        end = Offsets.parse(planned)
        return OffsetRange(Offsets({at: self._position.get(at, 0) for at in end}), end)

    def _follow(self, range: OffsetRange) -> Tails:
        """What stands last below the end of a range, of the partitions that it moves; asked before they are read.

        Should Kafka lose these records after that and give their offsets to others, then whoever compares the tail
        later finds another, whichever of them were read.
        """
        moved = Offsets({at: end for at, end in range.end.items() if end > range.start[at]})
        tails = self._parts.brokers.tails(moved)
        self._tails = {at: tail for at, tail in self._tails.items() if at not in moved} | tails
        return tails

    def _commit(self, batch: MicroBatch, before: Tails) -> None:
        try:
            self._try_to_commit(batch, before)
        except BaseException:
            self.failed = batch.range
            raise
        if batch.bad is not None:
            self._untrimmed += batch.bad.rows.size
            if self._untrimmed > TRIM_AFTER:
                self._trim()

    def _trim(self) -> None:
        """Quarantine within its bounds again; that it was not, or Postgres went away, stops nothing."""
        with suppress(PostgresError, LaminaError):
            trim(self._parts.database, self._source)
            self._untrimmed = 0

    def _try_to_commit(self, batch: MicroBatch, before: Tails) -> None:
        database = self._parts.database
        # Asked after the records were read: had they been another topic's, the id would be another for ever.
        check_id(self._parts.brokers, self._source, self._topic_id)
        # And after its tails were: so the records below its start and those below its end are of one log.
        check_tails(self._parts.brokers, self._source, batch.range.start, before)
        self._parts.at("before the commit")
        # Repeating a transaction whose end is unknown is safe: what it wrote moved progress, so it is skipped.
        outcome = database.waiting(
            lambda: database.retrying(lambda connection: self._write(connection, batch)), give_up=self._stopped.is_set
        )
        self._parts.at("after the commit")
        if outcome is Outcome.SKIPPED:
            log.info("%s: skipped up to %s, %s", batch.query, batch.range.end, outcome.value)
        elif outcome is not Outcome.APPLIED:
            raise StartAgain(f"{batch.query}: {outcome.value}")
        self.commits += outcome is Outcome.APPLIED

    def _write(self, connection, batch: MicroBatch) -> Outcome:  # type: ignore[no-untyped-def]
        outcome = commit(connection, batch)
        self._parts.at("inside the commit")
        return outcome


def spark_is_gone(error: BaseException) -> bool:
    """Is there no answer of Spark's process? Where one was awaited, Py4J raises an error that tells nothing of Java.

    >>> spark_is_gone(Py4JError("An error occurred while calling o1.isActive")), spark_is_gone(ConnectionResetError())
    (True, True)
    >>> spark_is_gone(Py4JError("An error occurred while calling o1.stop. Trace: ...")), spark_is_gone(OSError())
    (False, False)
    """
    unanswered = type(error) is Py4JError and "Trace:" not in str(error)
    return unanswered or isinstance(error, Py4JNetworkError | ConnectionError)


def check_topic(brokers: Brokers, source: Source, topic_id: str, reached: Offsets, tails: Tails) -> None:
    """Raises unless the topic is the one that was deployed and still holds every record from `reached` on.

    And below `reached` the records that were counted: `tails` stood there.
    """
    check_id(brokers, source, topic_id)
    check_tails(brokers, source, reached, tails)
    removed = brokers.removed(reached)
    if removed.end:
        raise CannotGoOn(
            f"Records of {source.topic} were removed by retention before they were read",
            evidence=f"progress is {removed.start}, the first records the brokers still hold are {removed.end}",
            way_out=(
                "If `lamina archive` took them into the master log in time, `lamina rebuild --leap` goes on from there;"
                " it says so if it did not."
            ),
        )


def check_tails(brokers: Brokers, source: Source, reached: Offsets, tails: Tails) -> None:
    """Raises when Kafka has lost records below `reached`, whether or not it gave their offsets to others since."""
    differing = brokers.differing(reached, tails)
    if differing:
        raise CannotGoOn(
            f"Kafka has lost records of {source.topic} that were counted",
            evidence="\n".join(map(str, differing)),
            way_out=(
                "A broker lost them before they were on disk, or a leader was elected that lacked them. `lamina rebuild"
                " --leap` makes the views what the master log and Kafka hold now, and goes on from there."
            ),
        )


def check_id(brokers: Brokers, source: Source, topic_id: str) -> None:
    """Raises unless the topic is the one that was deployed."""
    id_now = _id_of(brokers, source.topic)
    if id_now != topic_id:
        raise CannotGoOn(
            f"The topic {source.topic} was {'deleted' if id_now is None else 'deleted and created again'}",
            evidence=f"{source.name} was deployed on the topic with id {topic_id}, the brokers now hold {id_now}",
            way_out=(
                "Its offsets mean other records now, so nothing was read from it. Give the new topic another name, and"
                " declare it as a source of another name; what is served from the old one stays."
            ),
        )


def _id_of(brokers: Brokers, topic: str) -> str | None:
    """The topic's id; None only after a while, since a broker that has just started may not know its topics yet."""
    deadline = time.monotonic() + MISSING_SECONDS
    while (found := brokers.topic_id(topic)) is None and time.monotonic() < deadline:
        time.sleep(0.5)
    return found
