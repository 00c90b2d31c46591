"""The commit of a micro-batch: the last of its phases (see `speed_layer/flow.py`)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from serving_layer.postgres.database import Connection, session_of
from serving_layer.promise.micro_batch import MicroBatch, Outcome, commit
from speed_layer.continuity import check_id, check_tails
from speed_layer.flow import Flow
from speed_layer.position import Span, StartAgain
from speed_layer.records import Records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("lamina.speed")

MOST_TRIES = 5
"""Tries to commit a micro-batch. It is computed again before each further one, because other tables of cells are
maintained. Then its query starts again from progress."""


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
        for left in reversed(range(MOST_TRIES)):
            # After the records were read: if they came from a recreated topic, its id differs from now on.
            check_id(resources.brokers, source, self.flow.topic_id)
            # The tails were fetched before this check, so the records below the start and below the end are in one log.
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
            if outcome is not Outcome.OTHER_TABLES:
                break
            if left:
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
