"""The run: faults one after another, and in parallel those of the batch layer, while readers read and compare."""

from __future__ import annotations

import random
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import psycopg2
from kafka.errors import KafkaError

from benchmarks.chaos.chaos_oracle import follow
from benchmarks.chaos.readers import Readers, read
from benchmarks.chaos.stage import Stage
from benchmarks.chaos.table import Fault, deck
from lamina.operations.deployment import Deployment
from lamina.reports.statuses import read_alarms
from view_algebra.errors import LaminaError

RATE = 60
"""Good records a second, all the time."""

FRESH = 10
"""Records sent right after a fault, so that views have to move."""

IN_A_ROW = (1, 1, 2, 3)
"""Numbers of faults, one of which is drawn, that strike before the views have to move again."""

ALARMED = 3.0
"""Seconds between two looks at the alarms."""

BREATH = 1.0
"""Seconds between two faults, in which a fault that must be alone may strike."""

ENOUGH = 3
"""Faults without recovery, or snapshots that differ, after which the run ends."""


TROUBLE = (LaminaError, psycopg2.Error, KafkaError, OSError, AssertionError)
"""Errors that a fault, or views that do not recover from it, may raise."""


@dataclass(frozen=True)
class Struck:
    """A fault that happened. `seconds` is the time until every record in Kafka was counted, with the alarms of that
    time.
    """

    kind: str
    seconds: float
    alarms: frozenset[str]
    failure: str | None = None


@dataclass
class Storm:
    """The run so far."""

    stage: Stage
    seed: int
    struck: list[Struck] = field(default_factory=list)
    broken: list[Exception] = field(default_factory=list)
    minutes: float = 0.0
    readers: Readers = field(init=False)

    def __post_init__(self) -> None:
        self.readers = Readers(self.stage)

    @property
    def failures(self) -> list[Struck]:
        """Faults from which the views did not recover."""
        return [fault for fault in self.struck if fault.failure]

    @property
    def over(self) -> bool:
        """True if the run should end early."""
        return bool(self.broken) or len(self.failures) >= ENOUGH or len(self.readers.wrong) >= ENOUGH

    @contextmanager
    def weather(self) -> Iterator[None]:
        """Runs everything that continues all the time: the speed layer, the producer, the readers."""
        stage = self.stage
        stage.lamina("apply", "--catalog", str(stage.write_catalog()))
        with self.meanwhile(follow, stage.oracle, stage.settings.kafka), self.meanwhile(_watch, stage):
            stage.go()
            with self.meanwhile(stage.supervise), self.meanwhile(self.readers.run):
                with self.meanwhile(stage.producer.run, RATE):
                    stage.await_counted()
                    yield
                self.settle()

    @contextmanager
    def meanwhile(self, run: Callable[..., Any], *arguments: Any) -> Iterator[None]:
        """Runs a function in parallel to the block. If it fails, the run is over, and the end of the block raises its
        error.
        """
        stopping = threading.Event()

        def body() -> None:
            try:
                run(*arguments, stopping)
            except Exception as error:  # noqa: BLE001 (raised at the end of the block)
                self.broken.append(error)
                self.stage.tell(traceback.format_exc())

        thread = threading.Thread(target=body, name=getattr(run, "__name__", "parallel"), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()
        if self.broken:
            raise self.broken[0]

    def strike(self, kinds: Iterator[Fault], until: Callable[[], bool]) -> None:
        """Lets faults strike, one after another. Some strike before the views have recovered from the last."""
        dice = random.Random(self.seed)
        while not until() and not self.over and (some := list(islice(kinds, dice.choice(IN_A_ROW)))):
            self._strike(some, dice)
            self.stage.wait(BREATH)

    def parallel(self, kinds: Iterator[Fault], stopping: threading.Event) -> None:
        """Lets faults of the batch layer strike, one after another, until `stopping` is set."""
        self.strike(kinds, stopping.is_set)

    def _strike(self, kinds: Sequence[Fault], dice: random.Random) -> None:
        stage, failure, began = self.stage, None, list[float]()
        with ExitStack() as alone:
            if any(kind.alone or kind.parallel for kind in kinds):
                alone.enter_context(stage.batch)
            stage.alarms.clear()
            try:
                for kind in kinds:
                    began.append(time.monotonic())  # first, so that an error here counts for this fault
                    stage.await_answers()
                    kind.inflict(stage, dice)
                stage.producer.burst(stage.producer.good(FRESH, dice), dice)
                stage.await_counted()
            except TROUBLE as error:
                failure = f"{type(error).__name__}: {error}"
            ended = time.monotonic()
        for kind, at in zip(kinds, began, strict=False):
            self.struck.append(Struck(kind.name, ended - at, frozenset(stage.alarms)))
            outcome = f"{kind.name} {ended - at:.0f} s, {self.readers.snapshots:,} snapshots"
            stage.tell(f"{len(self.struck)}: {outcome}")
        if failure is not None:
            self.struck[-1] = replace(self.struck[-1], failure=failure)
            stage.tell(f"not recovered: {failure}")

    def settle(self) -> None:
        """Returns once nothing is behind and a last snapshot was compared."""
        self.stage.await_counted()
        connection = self.stage.connect()
        try:
            self.readers.compare(read(connection))
        finally:
            connection.close()


def shuffled(stage: Stage, seed: int, only: Sequence[str], *, parallel: bool) -> Iterator[Fault]:
    """The kinds again and again, each time in another order, each as often as its weight."""
    dice = random.Random(seed)
    while cards := deck(stage, dice, only, parallel=parallel):
        yield from cards


def storm(stage: Stage, seed: int, minutes: float, only: Sequence[str] = (), *, faults: int = 0) -> Storm:
    """Runs everything at once, or only the kinds in `only`, for `minutes`.

    On a slow machine it continues until this many faults have struck, for at most twice the minutes. An error that ends
    it early is part of the result.
    """
    run = Storm(stage, seed)
    try:
        _blow(run, minutes, only, faults)
    except TROUBLE as error:
        if error not in run.broken:
            run.broken.append(error)
            stage.tell(traceback.format_exc())
    return run


def _blow(run: Storm, minutes: float, only: Sequence[str], faults: int) -> None:
    stage, seed = run.stage, run.seed

    def enough() -> bool:
        run.minutes = (time.monotonic() - began) / 60
        return run.minutes > minutes * (1 if len(run.struck) >= faults else 2)

    with run.weather():
        began = time.monotonic()
        with run.meanwhile(run.parallel, shuffled(stage, seed + 1, only, parallel=True)):
            run.strike(shuffled(stage, seed, only, parallel=False), enough)
            while not (enough() or run.over):
                time.sleep(BREATH)


def _watch(stage: Stage, stopping: threading.Event) -> None:
    """Notes every alarm that an operator would see."""
    opened = Deployment(stage.settings)
    while not stopping.wait(ALARMED):
        with suppress(Exception):  # services are down, or going down
            stage.alarms.update(re.sub(r"[\d.,:-]*\d", "#", alarm) for alarm in read_alarms(opened))
    opened.close()


def by_kind(struck: Sequence[Struck]) -> dict[str, list[Struck]]:
    """The faults of each kind, in the order of their names."""
    return {
        kind: [fault for fault in struck if fault.kind == kind] for kind in sorted({fault.kind for fault in struck})
    }
