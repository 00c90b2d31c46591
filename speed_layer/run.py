"""One streaming query of Spark, and the sources that share it: its micro-batches, each split by source.

Spark's checkpoint only carries one run: every start begins a new one where its members are, so a checkpoint that is
lost, or ahead of progress, or behind it, does not matter. A member that fails ends the run; the others lose nothing,
and go on in the next one.
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

from master_log.fetching import LeaderChanged
from master_log.offsets import Offsets
from master_log.reading import stream
from speed_layer.jobs import Jobs
from speed_layer.member import Committer, Member, Part, Records, StartAgain, alone
from speed_layer.prepared import FEW, few_of, of_topic
from speed_layer.resources import Resources

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER, TRIGGER_SHARED = "50 milliseconds", "200 milliseconds"
"""How often an idle query asks the brokers for records, of one topic and of many; a busy one goes on at once."""

AT_ONCE = 4
"""Members whose parts of a micro-batch are computed, and committed, at the same time."""

SETTLES_WITHIN = 1.0
"""Seconds a stopping run waits for its current micro-batch. Unfinished work is cancelled and recomputed later."""


class Run:
    """One run of a streaming query, until it is stopped, fails, or a member does.

    max_records: bound of its micro-batches, per partition at least one.
    """

    def __init__(self, resources: Resources, members: Sequence[Member], *, max_records: int) -> None:
        self._resources, self.members, self.max_records = resources, tuple(members), max_records
        self._checkpoint = resources.checkpoints / self.name / uuid.uuid4().hex
        threads = min(AT_ONCE, len(self.members))
        self._computing = ThreadPoolExecutor(threads, thread_name_prefix=f"compute-{self.name}")
        commits = ThreadPoolExecutor(threads, thread_name_prefix=f"commit-{self.name}")
        self._committer = Committer(commits)
        for member in self.members:
            member.shares = self.shared
        self._committed_before = self._commits()
        self._in_micro_batch = threading.Lock()
        self._reading = Jobs(resources.spark)
        self._raised: BaseException | None = None
        self._epochs = resources.brokers.leader_epochs(*(member.source.topic for member in self.members))
        self._query = self._start()

    @property
    def shared(self) -> bool:
        """Has it several members?"""
        return len(self.members) > 1

    @property
    def name(self) -> str:
        """The name of its member, or of its first."""
        return self.members[0].source.name + (f"-and-{len(self.members) - 1}-more" if self.shared else "")

    @property
    def commits(self) -> int:
        """How many micro-batches of its members it has committed."""
        return self._commits() - self._committed_before

    def _commits(self) -> int:
        return sum(member.commits for member in self.members)

    def ended(self) -> bool:
        """Has it ended, or must it, since a member has failed?"""
        return not self._query.isActive or any(member.failure() is not None for member in self.members)

    def failure(self) -> BaseException:
        """Why the query ended where it was none of its members."""
        return self._raised or self._query.exception() or StartAgain("the query was stopped")

    def stop(self) -> None:
        """Ends the run after what is being committed (unless Postgres is away), and leaves nothing behind.

        Only a member that has failed may still be committing afterwards.
        """
        self._committer.stopped.set()
        if self._in_micro_batch.acquire(timeout=SETTLES_WITHIN):
            self._in_micro_batch.release()  # to one that begins now, and ends at once: Spark waits for it
        else:
            self._reading.cancel()
            for member in self.members:
                member.cancel()
        with suppress(Py4JError, ConnectionError):  # Spark's process is gone, and the query with it
            self._query.stop()
        for member in self.members:
            if member.failure() is None or not self.shared:
                member.settle()
        self._computing.shutdown(wait=False)
        self._committer.threads.shutdown(wait=False)
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def _start(self) -> StreamingQuery:
        raw = stream(
            self._resources.spark,
            self._resources.brokers,
            [member.source.topic for member in self.members],
            Offsets({at: offset for member in self.members for at, offset in member.position.items()}),
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
                if not self._committer.stopped.is_set():
                    self._take(raw, self._planned(batch_id))
                    return
            except BaseException as error:  # noqa: BLE001 (its member gives it, or `failure`, to whoever judges it)
                self._raised = error
            # In what is raised here, Spark searches with a pattern that recurses per character: a stack trace in it
            # would overflow the stack of the thread that runs the query.
            raise StartAgain("its micro-batch failed") from None

    def _planned(self, batch_id: int) -> Offsets:
        """The end of a micro-batch, as Spark planned it: the last line of `offsets/<batch id>` in its checkpoint."""
        return Offsets.parse((self._checkpoint / "offsets" / str(batch_id)).read_text().splitlines()[-1])

    def _take(self, raw: DataFrame, end: Offsets) -> None:
        """Gives every member its part; raises once all have had it where one failed."""
        moved = [(member, range) for member in self.members if (range := member.moved_by(end)) is not None]
        if not self.shared:
            for member, range in moved:
                part = member.follow(range, self._epochs)
                self._computing.submit(member.take, alone(raw), part, self._committer, raw).result()
            return
        # All are followed before any is read, since they are read together.
        followed = [(member, self._computing.submit(member.follow, range, self._epochs)) for member, range in moved]
        wait([part for _, part in followed])
        if changed := next((e for _, part in followed if isinstance(e := part.exception(), LeaderChanged)), None):
            raise changed
        parts = [(member, part.result()) for member, part in followed if part.exception() is None]
        with self._read_once(raw, [part for _, part in parts]) as read:
            taken = [
                self._computing.submit(member.take, read(member), part, self._committer, _of(raw, member))
                for member, part in parts
            ]
            wait(taken)
        if any(member.failure() is not None for member, _ in moved):
            raise StartAgain("a member has failed")

    @contextmanager
    def _read_once(self, raw: DataFrame, parts: Sequence[Part]) -> Iterator[Callable[[Member], Records]]:
        """Gives each member its records of a micro-batch that is read once: into one table, where they may be few.

        Larger ones are kept by Spark, in few partitions, and read from there in two tasks per member: more of them
        would cost more than the records.
        """
        if len(parts) == 1:
            yield lambda member: alone(_of(raw, member))
            return
        conf = raw.sparkSession.conf  # of this streaming query alone
        conf.set("spark.sql.adaptive.enabled", "false")
        conf.set("spark.sql.shuffle.partitions", "1")
        all_of_them = raw.coalesce(raw.sparkSession.sparkContext.defaultParallelism)
        small = all(part.range.size <= FEW for part in parts)
        few = self._computing.submit(self._few_of, all_of_them) if small else None
        try:
            yield lambda member: Records(
                lambda: _of(all_of_them.persist(), member).coalesce(1),
                None if few is None else lambda: of_topic(few.result(), member.source.topic),
            )
        finally:
            all_of_them.unpersist()

    def _few_of(self, records: DataFrame) -> pa.Table | None:
        with self._reading.counted():
            return few_of(records)


def _of(records: DataFrame, member: Member) -> DataFrame:
    return records.where(records.topic == member.source.topic)


def spark_is_gone(error: BaseException) -> bool:
    """Is there no answer of Spark's process? Where one was awaited, Py4J raises an error that tells nothing of Java.

    >>> spark_is_gone(Py4JError("An error occurred while calling o1.isActive")), spark_is_gone(ConnectionResetError())
    (True, True)
    >>> spark_is_gone(Py4JError("An error occurred while calling o1.stop. Trace: ...")), spark_is_gone(OSError())
    (False, False)
    """
    unanswered = type(error) is Py4JError and "Trace:" not in str(error)
    return unanswered or isinstance(error, Py4JNetworkError | ConnectionError)
