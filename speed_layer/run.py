"""One streaming query of Spark, and the sources that share it. Each of its micro-batches is split by source.

Spark's checkpoint serves one run only. Every run has a new one and begins at its members' positions, so a checkpoint
that is lost, ahead of progress or behind it does not matter. A member that fails ends the run. The others lose nothing
and continue in the next one.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JNetworkError

from master_log.kafka.fetching import LeaderChanged
from master_log.offsets import Offsets
from master_log.reading.kafka_reader import stream
from speed_layer.flow import Membership
from speed_layer.jobs import Jobs
from speed_layer.member import Member
from speed_layer.position import Span, StartAgain
from speed_layer.records import FEW, Records, fetch_few, records_of_topic
from speed_layer.resources import Resources

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER, TRIGGER_SHARED = "50 milliseconds", "200 milliseconds"
"""Intervals at which an idle query asks for records of one topic, and of many. A busy query never waits."""

AT_ONCE = 4
"""Members of a run that compute, and that commit, at the same time."""

STOPS_WITHIN = 1.0
"""Seconds a stopping run waits for its current micro-batch. Unfinished work is cancelled and recomputed later."""


class Run:
    """One run of a streaming query, until it is stopped or fails, or a member fails.

    max_records: bound of its micro-batches, in offsets. There is at least one per partition
    """

    def __init__(self, resources: Resources, members: Sequence[Member], *, max_records: int) -> None:
        self._resources, self.members, self.max_records = resources, tuple(members), max_records
        self._checkpoint = resources.checkpoints / self.name / uuid.uuid4().hex
        threads = min(AT_ONCE, len(self.members))
        self._computing = ThreadPoolExecutor(threads, thread_name_prefix=f"compute-{self.name}")
        committers = ThreadPoolExecutor(threads, thread_name_prefix=f"commit-{self.name}")
        self._membership = Membership(self.shared, committers)
        self._flows = {member: member.flow(self._membership) for member in self.members}
        self._committed_before = sum(member.committed for member in self.members)
        self._in_micro_batch = threading.Lock()
        self._reading = Jobs(resources.spark)
        self._raised: BaseException | None = None
        self._epochs = resources.brokers.leader_epochs(*(member.source.topic for member in self.members))
        self._streaming = self._start()

    @property
    def shared(self) -> bool:
        """True if it has several members."""
        return len(self.members) > 1

    @property
    def name(self) -> str:
        """The name of its member, or of the first one with the number of the others."""
        return self.members[0].source.name + (f"-and-{len(self.members) - 1}-more" if self.shared else "")

    @property
    def committed(self) -> int:
        """The number of micro-batches that its members have committed in it."""
        return sum(member.committed for member in self.members) - self._committed_before

    def has_ended(self) -> bool:
        """True if it has ended, or must end because a member has failed."""
        return not self._streaming.isActive or any(member.failure() is not None for member in self.members)

    def failure(self) -> BaseException:
        """The reason for its end, if no member has failed."""
        return self._raised or self._streaming.exception() or StartAgain("the query was stopped")

    def stop(self) -> None:
        """Ends the run after the commits in progress (unless Postgres is away), and leaves nothing behind.

        Afterwards, only a member that has failed may still be committing.
        """
        self._membership.stopped.set()
        if self._in_micro_batch.acquire(timeout=STOPS_WITHIN):
            self._in_micro_batch.release()  # a micro-batch that begins now ends at once, and Spark waits for it
        else:
            self._reading.cancel()
            for member in self.members:
                member.running.cancel()
            self._resources.at("after cancelling")
        with suppress(Py4JError, ConnectionError):  # Spark's process is gone, and the query with it
            self._streaming.stop()
        for member in self.members:
            if member.failure() is None or not self.shared:
                member.settle()
        self._computing.shutdown(wait=False)
        self._membership.committers.shutdown(wait=False)
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def _start(self) -> StreamingQuery:
        raw = stream(
            self._resources.spark,
            self._resources.brokers,
            [member.source.topic for member in self.members],
            Offsets({at: offset for member in self.members for at, offset in member.position.offsets.items()}),
            max_records_per_micro_batch=self.max_records,
        )
        return (
            raw.writeStream.queryName(f"{self.name}-{self._checkpoint.name[:8]}")
            .foreachBatch(self._micro_batch)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=TRIGGER_SHARED if self.shared else TRIGGER)
            .start()
        )

    def _micro_batch(self, raw: DataFrame, batch_id: int) -> None:
        with self._in_micro_batch:
            try:
                if not self._membership.stopped.is_set():
                    self._take(raw, self._planned_end(batch_id))
                    return
            except BaseException as error:  # noqa: BLE001 (the judge reads it from the member, or from `failure`)
                self._raised = error
            # Spark searches the text of what is raised here with a pattern that recurses per character: a stack trace
            # in it would overflow the stack of the thread that runs the query.
            raise StartAgain("its micro-batch failed") from None

    def _planned_end(self, batch_id: int) -> Offsets:
        """The end of a micro-batch, as Spark planned it: the last line of `offsets/<batch id>` in its checkpoint."""
        return Offsets.parse((self._checkpoint / "offsets" / str(batch_id)).read_text().splitlines()[-1])

    def _take(self, raw: DataFrame, end: Offsets) -> None:
        """Gives every member its span. Raises after all have finished if one failed."""
        moved = [(member, range) for member in self.members if (range := member.moved_by(end)) is not None]
        if not self.shared:
            for member, range in moved:
                span = member.follow(range, self._epochs)
                self._computing.submit(member.take, self._flows[member], span, Records.of(raw), raw).result()
            return
        # The tails of all are fetched before any records are read, since the records are read together.
        following = [(member, self._computing.submit(member.follow, range, self._epochs)) for member, range in moved]
        wait([future for _, future in following])
        if changed := next((e for _, future in following if isinstance(e := future.exception(), LeaderChanged)), None):
            raise changed
        spans = [(member, future.result()) for member, future in following if future.exception() is None]
        with self._read_once(raw, [span for _, span in spans]) as read:
            taking = [
                self._computing.submit(member.take, self._flows[member], span, read(member), _of(raw, member))
                for member, span in spans
            ]
            wait(taking)
        if any(member.failure() is not None for member, _ in moved):
            raise StartAgain("a member has failed")

    @contextmanager
    def _read_once(self, raw: DataFrame, spans: Sequence[Span]) -> Iterator[Callable[[Member], Records]]:
        """Yields a function that returns a member's records of a micro-batch that is read once for all.

        If the records may be few, they are fetched into one table. Otherwise Spark keeps them, in few partitions, and
        each member reads them in two tasks: more tasks would cost more than the records.
        """
        if len(spans) == 1:
            yield lambda member: Records.of(_of(raw, member))
            return
        conf = raw.sparkSession.conf  # of this streaming query alone
        conf.set("spark.sql.adaptive.enabled", "false")
        conf.set("spark.sql.shuffle.partitions", "1")
        together = raw.coalesce(raw.sparkSession.sparkContext.defaultParallelism)
        small = all(span.range.size <= FEW for span in spans)
        fetching = self._computing.submit(self._fetch, together) if small else None
        try:
            yield lambda member: Records(
                lambda: _of(together.persist(), member).coalesce(1),
                None if fetching is None else lambda: records_of_topic(fetching.result(), member.source.topic),
            )
        finally:
            together.unpersist()

    def _fetch(self, records: DataFrame) -> pa.Table | None:
        with self._reading.group():
            return fetch_few(records)


def _of(records: DataFrame, member: Member) -> DataFrame:
    return records.where(records.topic == member.source.topic)


def spark_is_gone(error: BaseException) -> bool:
    """True if Spark's process does not answer. Then Py4J raises an error that contains nothing from Java.

    >>> spark_is_gone(Py4JError("An error occurred while calling o1.isActive")), spark_is_gone(ConnectionResetError())
    (True, True)
    >>> spark_is_gone(Py4JError("An error occurred while calling o1.stop. Trace: ...")), spark_is_gone(OSError())
    (False, False)
    """
    unanswered = type(error) is Py4JError and "Trace:" not in str(error)
    return unanswered or isinstance(error, Py4JNetworkError | ConnectionError)
