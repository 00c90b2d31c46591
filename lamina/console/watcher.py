"""One reader for all open pages. It asks Postgres and Kafka every second while a page listens.

Postgres, Kafka and the alarms are asked in separate threads, so that a service that hangs delays no answer of another.
After `PATIENCE` seconds it counts as missing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Generic, TypeVar

from interchange.undeclared import UndeclaredField
from lamina.console.readings import MissingService, Reading, missing_server, missing_speed_layer
from lamina.console.threads import in_thread
from lamina.operations.deployment import Deployment
from lamina.reports import statuses
from lamina.terminal.failures import in_our_words
from master_log.connections.unavailable import KafkaUnavailable
from master_log.offsets import Offsets
from serving_layer.monitoring.overview import Overview, overview
from serving_layer.postgres.database import PostgresError, is_unavailable
from view_algebra.errors import LaminaError

log = logging.getLogger("lamina.console")

T = TypeVar("T")

EVERY = 1.0
"""Seconds between two readings."""

ALARMS_EVERY = 5.0
"""Seconds between two looks at the alarms, which ask several questions per source."""

FIELDS_EVERY = 30.0
"""Seconds between two looks at the newest records of all sources for undeclared fields."""

PATIENCE = 3.5
"""Seconds without an answer after which a service is missing. With a reading every second, a page says so within 5."""

LINGERS = 5.0
"""Seconds for which readings continue while nobody listens. A page listens soon after it is loaded."""

RATE_OVER = 10
"""Readings over which records per second are averaged."""


@dataclass
class Question(Generic[T]):
    """A question that is asked again and again, in a thread.

    every: seconds between two questions
    answer: the newest answer
    answered: the monotonic time of that answer
    refusal: the error of the last question, or None if it was answered
    asked: set after the first answer or refusal
    """

    ask: Callable[[], T]
    every: float
    answer: T | None = None
    answered: float = 0.0
    refusal: LaminaError | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def repeat(self) -> None:
        """Asks until it is cancelled."""
        self.answer, self.refusal, self.answered = None, None, time.monotonic()
        while True:
            began = time.monotonic()
            try:
                self.answer, self.refusal = await in_thread(self.ask), None
                self.answered = time.monotonic()
            except Exception as error:  # noqa: BLE001 (the page continues, and reports it)
                self.refusal = in_our_words(error) or unforeseen_error(error, self.refusal)
            self.asked.set()
            await asyncio.sleep(max(0.0, began + self.every - time.monotonic()))

    @property
    def silent(self) -> float | None:
        """Seconds since its last answer if it is missing, or None."""
        seconds = time.monotonic() - self.answered
        return seconds if self.refusal is not None or seconds > PATIENCE + self.every - EVERY else None


class Watch:
    """Reads while somebody listens, and gives every listener the newest reading.

    `listeners` is the number of pages that listen now.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._postgres: Question[Overview] = Question(self._overview, EVERY)
        self._kafka: Question[Offsets] = Question(self._ends, EVERY)
        self._alarms = Question(partial(statuses.read_alarms, deployment), ALARMS_EVERY)
        self._fields = Question(self._read_fields, FIELDS_EVERY)
        self._questions = (self._postgres, self._kafka, self._alarms, self._fields)
        self._counted: deque[tuple[float, dict[str, int]]] = deque(maxlen=RATE_OVER + 1)
        self.listeners = 0
        self._running: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._newest: Reading | None = None
        self._logged: set[str] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[AsyncIterator[Reading]]:
        """Yields the newest reading at once, and then each further one."""
        self.listeners += 1
        if self._running is None or self._running.done():
            self._newest = None
            self._running = asyncio.create_task(self._run())
        try:
            yield self._readings()
        finally:
            self.listeners -= 1

    async def now(self) -> Reading:
        """One reading."""
        async with self.listening() as readings:
            return await anext(readings)

    async def _readings(self) -> AsyncIterator[Reading]:
        seen: Reading | None = None
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._newest is not seen)  # noqa: B023 (it is awaited here)
                seen = self._newest
            if seen is not None:
                yield seen

    async def _run(self) -> None:
        """Reads while somebody listens. Starts again for a listener that came while it ended."""
        while True:
            await self._read()
            if not self.listeners:
                return

    async def _read(self) -> None:
        """Reads until nobody has listened for some seconds."""
        self._counted.clear()
        async with asyncio.TaskGroup() as group:
            for question in self._questions:
                question.asked.clear()
            tasks = [group.create_task(question.repeat()) for question in self._questions]
            with suppress(TimeoutError):  # later answers follow in the next readings
                async with asyncio.timeout(PATIENCE):
                    for question in self._questions:
                        await question.asked.wait()
            heard = time.monotonic()
            while time.monotonic() < heard + LINGERS:
                if self.listeners:
                    heard = time.monotonic()
                async with self._changed:
                    self._newest = self._reading()
                    self._changed.notify_all()
                await asyncio.sleep(EVERY)
            for task in tasks:
                task.cancel()

    def _log(self, missing: list[MissingService]) -> None:
        """Logs a line per outage, and one at its end."""
        for service in missing:
            if service.headline not in self._logged:
                log.warning("%s %s", service.headline, service.what)
        if self._logged and not missing:
            log.warning("Every service is back.")
        self._logged = {service.headline for service in missing}

    def _reading(self) -> Reading:
        overview_now = self._postgres.answer if self._postgres.silent is None else None
        counted = {source.name: source.counted for source in overview_now.sources} if overview_now else {}
        missing = self._missing()
        self._log(missing)
        self._counted.append((self._postgres.answered, counted))
        return Reading(
            at=datetime.now(UTC),
            overview=overview_now,
            ends=self._kafka.answer if self._kafka.silent is None else None,
            rates=self._rates(counted),
            alarms=self._alarms.answer if self._alarms.silent is None else None,
            missing=missing,
            undeclared=self._fields.answer or {},
        )

    def _rates(self, counted: dict[str, int]) -> dict[str, float]:
        began, before = self._counted[0]
        seconds = self._postgres.answered - began
        if not seconds:
            return {}
        return {name: max(0, now - before.get(name, now)) / seconds for name, now in counted.items()}

    def _missing(self) -> list[MissingService]:
        missing = []
        if (seconds := self._postgres.silent) is not None:
            missing.append(missing_server("Postgres", seconds, self._postgres.refusal, "Start it"))
        if (seconds := self._kafka.silent) is not None:
            missing.append(missing_server("Kafka", seconds, self._kafka.refusal, "Start its brokers"))
        if self._postgres.silent is None and self._postgres.answer is not None:
            missing += missing_speed_layer(self._postgres.answer)
        return missing

    def _overview(self) -> Overview:
        try:
            with self._deployment.database.snapshot() as connection:
                return overview(connection)
        except PostgresError as error:
            if not is_unavailable(error):
                self._deployment.require_installed()
            raise

    def _ends(self) -> Offsets:
        brokers = self._deployment.brokers
        if not brokers.listening():
            raise KafkaUnavailable("Kafka does not answer", evidence=f"nobody listens at {brokers.bootstrap_servers}")
        topics = {source.topic for source in self._postgres.answer.sources} if self._postgres.answer else set()
        try:
            return brokers.latest(*topics)
        except KafkaUnavailable:
            raise
        except LaminaError:  # one of the topics is gone, which an alarm reports
            existing = brokers.topic_ids(*topics)
            return brokers.latest(*existing)

    def _read_fields(self) -> dict[str, list[UndeclaredField]]:
        return statuses.undeclared_fields(self._deployment) if self._deployment.brokers.listening() else {}


def unforeseen_error(error: Exception, before: LaminaError | None = None) -> LaminaError:
    """An unforeseen error. Its traceback goes to the log, unless it repeats the one before."""
    if isinstance(error, LaminaError):
        return error
    if before is None or before.evidence != repr(error):
        log.error("the console could not read", exc_info=error)
    way_out = "This is a mistake in Lamina: report it with the traceback in the console's log."
    return LaminaError("The console could not read", evidence=repr(error), way_out=way_out)
