"""Log times that progress lacks: a thread asks the log for them, and other sources are counted meanwhile.

Progress lacks them after a leap, and if a Lamina without log times counted the records. The log of a table is then read
once, which takes time in proportion to its size.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from master_log.offsets import Offsets
from master_log.reading.log_times import LogTimes
from serving_layer.postgres.database import Connection
from serving_layer.promise import progress
from speed_layer.jobs import Jobs
from speed_layer.position import Position
from speed_layer.resources import Resources
from speed_layer.statements import Statements
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from master_log.log import MasterLog

log = logging.getLogger("lamina.speed")

ASKED_EVERY = 0.5
"""Seconds between two looks whether the log has answered."""

ASKED_AT_ONCE = 2
"""Logs that are read at the same time: the micro-batches of other sources need the cores, too."""


@dataclass(frozen=True)
class LogQuestion:
    """A question to the log: the greatest timestamps of a topic's records in `[since, below)`.

    begins: the first offsets of the log, in case it has to be created
    """

    topic_id: str
    below: Offsets
    since: Offsets
    begins: Offsets


def at_progress(connection: Connection, source: Source) -> tuple[Position, LogQuestion | None]:
    """The position at a source's progress, and the question for the log times it lacks.

    There is no question if no maintained expression reads log times.
    """
    offsets, tails = progress.read_with_tails(connection, source.name)
    if not Statements.maintained(connection, source).reads_log_times:
        return Position(offsets, tails, None), None
    log_times = progress.log_times(connection, source.name)
    since = progress.starts(connection, [source.name])
    below = Offsets({at: to for at, to in offsets.items() if at not in log_times and to > since[at]})
    position = Position(offsets, tails, log_times)
    if not below:
        return position, None
    topic_id = progress.queries(connection)[source.name].topic_id
    return position, LogQuestion(topic_id, below, since, progress.begins(connection, source.topic))


class Inquiry:
    """Asks the log one question, in a thread, until it is closed."""

    def __init__(self, resources: Resources, source: Source, question: LogQuestion) -> None:
        self.question = question
        self._resources, self._source = resources, source
        self._jobs = Jobs(resources.spark)
        self._answer: LogTimes | None = None
        self._raised: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="log times", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """True if the log has answered or failed."""
        return not self._thread.is_alive()

    def answer(self) -> LogTimes:
        """The log times. Raises the log's failure."""
        if self._answer is None:
            raise self._raised or AssertionError("the log has not answered")
        return self._answer

    def close(self) -> None:
        """Cancels the reading of the log."""
        self._jobs.cancel()
        self._thread.join(1.0)

    def _run(self) -> None:
        began = time.monotonic()
        try:
            self._resources.at("before the log is asked")
            with self._jobs.group():
                self._answer = self._ask(self._resources.log())
        except BaseException as error:  # noqa: BLE001 (`answer` raises it)
            self._raised = error
            return
        log.info("%s: its log times were found in %.1f s", self._source.name, time.monotonic() - began)

    def _ask(self, master_log: MasterLog) -> LogTimes:
        question = self.question
        master_log.create(self._source, question.topic_id, question.begins)
        return master_log.log_times_below(self._source, question.below, self._resources.brokers, since=question.since)
