"""Log times that progress does not know: the log is asked in a thread, and other sources are counted meanwhile.

Progress lacks them after a leap, and where a Lamina without log times counted the records. The log of a table is then
read once, which takes as long as it is large.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from master_log.log_times import LogTimes
from master_log.offsets import Offsets
from serving_layer.postgres.database import Connection
from serving_layer.promise import progress
from speed_layer.flow import Position
from speed_layer.jobs import Jobs
from speed_layer.resources import Resources
from speed_layer.statements import Statements
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from master_log.archive import MasterLog

log = logging.getLogger("lamina.speed")

ASKED_EVERY = 0.5
"""Seconds between two looks whether the log has answered."""

ASKED_AT_ONCE = 2
"""Sources whose logs are read at the same time: the micro-batches of others need the cores, too."""


@dataclass(frozen=True)
class Question:
    """What the log is asked: the greatest timestamps of a topic's records below offsets, and not below `since`.

    begins: where the log begins, should it have to be created.
    """

    topic_id: str
    below: Offsets
    since: Offsets
    begins: Offsets


def reached(connection: Connection, source: Source) -> tuple[Position, Question | None]:
    """The log times that progress knows of a source, and what has to be asked for the others.

    Nothing has to be, unless an expression that is maintained goes by log times.
    """
    offsets, tails = progress.known(connection, source.name)
    if not Statements.maintained(connection, source).reads_log_times:
        return Position(offsets, tails, None), None
    known = progress.log_times(connection, source.name)
    since = progress.starts(connection, [source.name])
    below = Offsets({at: to for at, to in offsets.items() if at not in known and to > since[at]})
    if not below:
        return Position(offsets, tails, known), None
    topic_id = progress.queries(connection)[source.name].topic_id
    return Position(offsets, tails, known), Question(topic_id, below, since, progress.begins(connection, source.topic))


class Asking:
    """Asks the log one question, in a thread, until it is closed."""

    def __init__(self, resources: Resources, source: Source, question: Question) -> None:
        self.question = question
        self._resources, self._source = resources, source
        self._jobs = Jobs(resources.spark)
        self._answer: LogTimes | None = None
        self._raised: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="log times", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """True if the log has answered, or could not."""
        return not self._thread.is_alive()

    def answer(self) -> LogTimes:
        """The log times; raises what the log could not be asked for."""
        if self._answer is None:
            raise self._raised or AssertionError("it is not over")
        return self._answer

    def close(self) -> None:
        """Ends it."""
        self._jobs.cancel()
        self._thread.join(1.0)

    def _run(self) -> None:
        began = time.monotonic()
        try:
            self._resources.at("before the log is asked")
            with self._jobs.counted():
                self._answer = self._asked(self._resources.log())
        except BaseException as error:  # noqa: BLE001 (whoever waits for the answer raises it)
            self._raised = error
            return
        log.info("%s: its log times were found in %.1f s", self._source.name, time.monotonic() - began)

    def _asked(self, log_: MasterLog) -> LogTimes:
        log_.create(self._source, self.question.topic_id, self.question.begins)
        return log_.newest(self._source, self.question.below, self._resources.brokers, since=self.question.since)
