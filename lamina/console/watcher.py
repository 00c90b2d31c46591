"""One reader for all open pages. It asks Postgres and Kafka every second while a page listens.

Postgres, Kafka and the alarms are asked in separate threads, so that a service that hangs delays no answer of another.
After `PATIENCE` seconds it counts as missing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

from interchange.undeclared import Undeclared
from lamina.console.charts import sparkline
from lamina.console.threads import in_thread
from lamina.operations.deployment import Deployment
from lamina.reports import statuses
from lamina.terminal.failures import in_our_words
from master_log.client import KafkaAway
from master_log.offsets import Offsets
from serving_layer.monitoring.overview import Overview, Source, View, overview
from serving_layer.narration import age
from serving_layer.postgres.database import PostgresError, is_away
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

SILENCE = 4.0
"""Seconds without a sign of life after which the speed layer is missing. It writes one every second."""

LINGERS = 5.0
"""Seconds for which readings continue while nobody listens. A page listens soon after it is loaded."""

SPARK = (120, 22)
"""Width and height of the last hour's line, in pixels."""

RESTART_AFTER = 30.0
"""Seconds without a sign of the speed layer after which the page says to start it again."""

GONE = "The speed layer is gone."

SILENT = "The speed layer is silent."

SHOWN = 5
"""Names of sources in a sentence."""

RATE_OVER = 10
"""Readings over which records per second are averaged."""


@dataclass
class Question(Generic[T]):
    """A service that is asked again and again. `answer` is its newest one, and `answered` the clock's time of it."""

    ask: Callable[[], T]
    every: float
    clock: Callable[[], float]
    answer: T | None = None
    answered: float = 0.0
    refusal: LaminaError | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def repeat(self) -> None:
        """Asks until it is cancelled."""
        self.answer, self.refusal, self.answered = None, None, self.clock()
        while True:
            began = self.clock()
            try:
                self.answer, self.refusal = await in_thread(self.ask), None
                self.answered = self.clock()
            except Exception as error:  # noqa: BLE001 (the page continues, and reports it)
                self.refusal = in_our_words(error) or mistake(error, self.refusal)
            self.asked.set()
            await asyncio.sleep(max(0.0, began + self.every - self.clock()))

    @property
    def silent(self) -> float | None:
        """Seconds since its last answer if it is missing, or None."""
        seconds = self.clock() - self.answered
        return seconds if self.refusal is not None or seconds > PATIENCE + self.every - EVERY else None


@dataclass(frozen=True)
class Missing:
    """A service that does not answer, or refuses. The headline names it, and `way_out` says what to do."""

    headline: str
    what: str
    way_out: str


@dataclass(frozen=True, eq=False)
class Now:
    """One reading. `overview` is None while Postgres does not answer, `ends` is None while Kafka does not.

    `rates` are records counted per second by source, empty at first. `alarms` is None until the first look at them.
    `undeclared` are fields of the newest records by source, empty until the first look at them.
    """

    at: datetime
    overview: Overview | None
    ends: Offsets | None
    rates: dict[str, float]
    alarms: list[str] | None
    missing: list[Missing]
    undeclared: Mapping[str, list[Undeclared]] = field(default_factory=dict)

    @property
    def remarks(self) -> list[str]:
        """Sentences about matters that are not alarms but need a look: proofs that differ, and mistyped fields."""
        differ = [
            f"{view.name}: its newest proof found {view.proof.differing:,} of {view.proof.compared:,} cells that differ"
            f" (a rebuild has corrected them; `lamina check {view.name}` compares its rows with its SELECT)"
            for view in (self.overview.views if self.overview else ())
            if view.proof and view.proof.differing and not view.held
        ]
        mistyped = [
            f"{source}: {field} (correct the producer, or declare it)"
            for source, fields in self.undeclared.items()
            for field in fields
            if field.meant
        ]
        return differ + mistyped

    def lag(self, source: Source) -> int | None:
        """Offsets between a source's progress and the end of its topic, or None if Kafka does not answer."""
        if self.ends is None or not (ends := self.ends.on(source.topic)):
            return None
        return sum(max(0, end - source.next_offsets.get(at, 0)) for at, end in ends.items())

    def rate(self, view: View) -> float | None:
        """Records of its sources that are counted per second, or None until two readings can be compared."""
        return sum(self.rates.get(source, 0.0) for source in view.sources) if self.rates else None

    def bad_lately(self, view: View) -> int:
        """Records of its sources that went to quarantine within the last hour."""
        sources = self.overview.sources if self.overview else ()
        return sum(source.bad_lately for source in sources if source.name in view.sources)

    def sparkline(self, view: View) -> list[str]:
        """The freshness of a view in the last hour, as paths of an SVG of size `SPARK`."""
        minutes = self.overview.minutes if self.overview else ()
        points = [
            (ago, max(ages))
            for ago, behind in minutes
            if (ages := [behind[source] for source in view.sources if source in behind])
        ]
        if view.seconds_behind is not None:
            points.append((0.0, view.seconds_behind))
        return sparkline(points, *SPARK, span=3600)

    @property
    def unknown(self) -> int:
        """The number of views with a source that has no counted record yet."""
        return sum(view.seconds_behind is None for view in self.overview.views) if self.overview else 0

    @property
    def worst(self) -> View | None:
        """The view that is the most seconds behind, or None if no record was counted yet."""
        views = self.overview.views if self.overview else ()
        dated = [view for view in views if view.seconds_behind is not None]
        return max(dated, key=lambda view: view.seconds_behind or 0.0, default=None)


class Watch:
    """Reads while somebody listens, and gives every listener the newest reading."""

    def __init__(self, deployment: Deployment, clock: Callable[[], float] = time.monotonic) -> None:
        self._deployment = deployment
        self._clock = clock
        self._postgres: Question[Overview] = Question(self._overview, EVERY, clock)
        self._kafka: Question[Offsets] = Question(self._ends, EVERY, clock)
        self._alarms: Question[list[str]] = Question(self._read_alarms, ALARMS_EVERY, clock)
        self._fields: Question[dict[str, list[Undeclared]]] = Question(self._read_fields, FIELDS_EVERY, clock)
        self._counted: deque[tuple[float, dict[str, int]]] = deque(maxlen=RATE_OVER + 1)
        self._listeners = 0
        self._running: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._newest: Now | None = None
        self._logged: set[str] = set()

    @property
    def listeners(self) -> int:
        """The number of pages that listen now."""
        return self._listeners

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[AsyncIterator[Now]]:
        """Yields the newest reading at once, and then each further one."""
        self._listeners += 1
        if self._running is None or self._running.done():
            self._newest = None
            self._running = asyncio.create_task(self._run())
        try:
            yield self._readings()
        finally:
            self._listeners -= 1

    async def now(self) -> Now:
        """One reading."""
        async with self.listening() as readings:
            return await anext(readings)

    async def _readings(self) -> AsyncIterator[Now]:
        seen: Now | None = None
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
            if not self._listeners:
                return

    async def _read(self) -> None:
        """Reads until nobody has listened for some seconds."""
        self._counted.clear()
        questions = (self._postgres, self._kafka, self._alarms, self._fields)
        async with asyncio.TaskGroup() as group:
            for question in questions:
                question.asked.clear()
            tasks = [group.create_task(question.repeat()) for question in questions]
            await self._first()
            heard = self._clock()
            while self._clock() < heard + LINGERS:
                if self._listeners:
                    heard = self._clock()
                async with self._changed:
                    self._newest = self._reading()
                    self._changed.notify_all()
                await asyncio.sleep(EVERY)
            for task in tasks:
                task.cancel()

    async def _first(self) -> None:
        """Waits for the first answers or refusals, for no longer than `PATIENCE`. Later ones follow in the next
        readings.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                await self._postgres.asked.wait()
                await self._kafka.asked.wait()
                await self._alarms.asked.wait()
                await self._fields.asked.wait()
        except TimeoutError:
            return

    def _log(self, missing: list[Missing]) -> None:
        """Logs a line per outage, and one at its end."""
        for service in missing:
            if service.headline not in self._logged:
                log.warning("%s %s", service.headline, service.what)
        if self._logged and not missing:
            log.warning("Every service is back.")
        self._logged = {service.headline for service in missing}

    def _reading(self) -> Now:
        overview_now = self._postgres.answer if self._postgres.silent is None else None
        counted = {source.name: source.counted for source in overview_now.sources} if overview_now else {}
        missing = self._missing()
        self._log(missing)
        self._counted.append((self._postgres.answered, counted))
        return Now(
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

    def _missing(self) -> list[Missing]:
        missing = []
        if (seconds := self._postgres.silent) is not None:
            missing.append(_of("Postgres", seconds, self._postgres.refusal, "Start it: `lamina up`, or your own."))
        if (seconds := self._kafka.silent) is not None:
            missing.append(_of("Kafka", seconds, self._kafka.refusal, "Start its brokers: `lamina up`, or your own."))
        if self._postgres.silent is None and self._postgres.answer is not None:
            missing += _of_speed_layer(self._postgres.answer)
        return missing

    def _overview(self) -> Overview:
        try:
            with self._deployment.database.snapshot() as connection:
                return overview(connection)
        except PostgresError as error:
            if not is_away(error):
                self._deployment.require_installed()
            raise

    def _ends(self) -> Offsets:
        brokers = self._deployment.brokers
        if not brokers.listening():
            raise KafkaAway("Kafka does not answer", evidence=f"nobody listens at {brokers.bootstrap_servers}")
        topics = {source.topic for source in self._postgres.answer.sources} if self._postgres.answer else set()
        try:
            return brokers.latest(*topics)
        except KafkaAway:
            raise
        except LaminaError:  # one of the topics is gone, which an alarm reports
            there = brokers.topic_ids(*topics)
            return brokers.latest(*there)

    def _read_alarms(self) -> list[str]:
        return statuses.read_alarms(self._deployment)

    def _read_fields(self) -> dict[str, list[Undeclared]]:
        return statuses.undeclared(self._deployment) if self._deployment.brokers.listening() else {}


def _of(name: str, seconds: float, refusal: LaminaError | None, way_out: str) -> Missing:
    """A missing server, or one that answers with a refusal, which has its own way out."""
    away = refusal is None or isinstance(refusal, KafkaAway) or is_away(refusal)
    if away or refusal is None:
        return Missing(f"{name} is gone.", f"It has not answered for {age(seconds)}.", f"{way_out} Nothing is lost.")
    return Missing(f"{refusal.what}.", refusal.evidence, refusal.way_out)


def mistake(error: Exception, before: LaminaError | None = None) -> LaminaError:
    """An unforeseen error. Its traceback goes to the log, unless it repeats the one before."""
    if isinstance(error, LaminaError):
        return error
    if before is None or before.evidence != repr(error):
        log.error("the console could not read", exc_info=error)
    way_out = "This is a mistake in Lamina: report it with the traceback in the console's log."
    return LaminaError("The console could not read", evidence=repr(error), way_out=way_out)


def _of_speed_layer(current: Overview) -> list[Missing]:
    """Lists the sources that no speed layer reads, and the ones whose speed layer has been silent for too long."""
    unread = [source.name for source in current.sources if source.writer is None and source.stopped is None]
    silent = {source.name: source.heard_age for source in current.sources if source.heard_age and _is_silent(source)}
    missing = []
    if unread:
        what = f"None runs for {_some(unread)}."
        missing.append(Missing(GONE, what, "Start it: `lamina up`, or `lamina speed`. Nothing is lost."))
    if silent:
        longest = max(silent.values())
        what = f"The one of {_some(list(silent))} was last heard of {age(longest)} ago."
        way_out = "Start it again: `lamina up`, or `lamina speed`. Nothing is lost."
        if longest < RESTART_AFTER:  # the process that pauses would lose its queries to the new one
            missing.append(
                Missing(SILENT, what, f"It may pause. Wait until it has been silent for {RESTART_AFTER:.0f} s.")
            )
        else:
            missing.append(Missing(GONE, what, way_out))
    return missing


def _some(names: list[str]) -> str:
    """The names, as many as a person reads.

    >>> _some(list("abcdefg"))
    'a, b, c, d, e and 2 more'
    """
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _is_silent(source: Source) -> bool:
    return source.is_read and source.stopped is None and (source.heard_age or 0) > SILENCE
