"""The run: faults one after the other, and beside them those of the batch layer, while readers read and compare."""

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

from benchmarks.chaos.oracle import follow
from benchmarks.chaos.readers import Readers, read
from benchmarks.chaos.stage import Stage
from benchmarks.chaos.table import Fault, deck
from lamina.deployment import Deployment
from lamina.statuses import read_alarms
from view_algebra.errors import LaminaError

RATE = 60
"""Good records a second, all the while."""

FRESH = 10
"""Records that follow a fault at once, so that something has to move."""

IN_A_ROW = (1, 1, 2, 3)
"""How many faults strike, by the dice, before the views have to move again."""

ALARMED = 3.0
"""Seconds between two looks at the alarms."""

BREATH = 1.0
"""Seconds between two faults: another may want to happen alone."""

ENOUGH = 3
"""Faults without recovery, or snapshots that differ, after which the run ends: it has found what there is to find."""


TROUBLE = (LaminaError, psycopg2.Error, KafkaError, OSError, AssertionError)
"""What a fault, or the views that do not recover from it, may raise."""


@dataclass(frozen=True)
class Struck:
    """A fault that happened. seconds: until every record that Kafka held was counted; alarms: raised meanwhile."""

    kind: str
    seconds: float
    alarms: frozenset[str]
    failure: str | None = None


@dataclass
class Storm:
    """What happened so far."""

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
        return [each for each in self.struck if each.failure]

    @property
    def over(self) -> bool:
        """True when there is no use in going on."""
        return bool(self.broken) or len(self.failures) >= ENOUGH or len(self.readers.wrong) >= ENOUGH

    @contextmanager
    def weather(self) -> Iterator[None]:
        """Everything that goes on all the while: the speed layer, the producer, the readers."""
        stage = self.stage
        stage.lamina("apply", "--catalog", str(stage.write_catalog()))
        with self.meanwhile(follow, stage.oracle, stage.settings.kafka), self.meanwhile(_watch, stage):
            stage.go()
            with self.meanwhile(stage.supervise), self.meanwhile(self.readers.run):
                with self.meanwhile(stage.produce, RATE):
                    stage.moved()
                    yield
                self.settle()

    @contextmanager
    def meanwhile(self, run: Callable[..., Any], *arguments: Any) -> Iterator[None]:
        """Runs something beside the block, to its end; where it fails, the run is over, and raises at its end."""
        stopping = threading.Event()

        def body() -> None:
            try:
                run(*arguments, stopping)
            except Exception as error:  # noqa: BLE001 (raised by whoever started it)
                self.broken.append(error)
                self.stage.tell(traceback.format_exc())

        thread = threading.Thread(target=body, name=getattr(run, "__name__", "beside"), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()
        if self.broken:
            raise self.broken[0]

    def strike(self, kinds: Iterator[Fault], until: Callable[[], bool]) -> None:
        """Faults, one after the other; some strike while nothing has recovered yet from those before."""
        dice = random.Random(self.seed)
        while not until() and not self.over and (some := list(islice(kinds, dice.choice(IN_A_ROW)))):
            self._strike(some, dice)
            self.stage.wait(BREATH)

    def beside(self, kinds: Iterator[Fault], stopping: threading.Event) -> None:
        """Faults of the batch layer, one after the other, until they are to stop."""
        self.strike(kinds, stopping.is_set)

    def _strike(self, kinds: Sequence[Fault], dice: random.Random) -> None:
        stage, failure, began = self.stage, None, list[float]()
        with ExitStack() as alone:
            if any(kind.alone or kind.beside for kind in kinds):
                alone.enter_context(stage.batch)
            stage.alarms.clear()
            try:
                for kind in kinds:
                    began.append(time.monotonic())  # first, so that what fails here is told of this fault
                    stage.answers()
                    kind.inflict(stage, dice)
                stage.burst(stage.good(FRESH, dice), dice)
                stage.moved()
            except TROUBLE as error:
                failure = f"{type(error).__name__}: {error}"
            ended = time.monotonic()
        for kind, at in zip(kinds, began, strict=False):
            self.struck.append(Struck(kind.name, ended - at, frozenset(stage.alarms)))
            told = f"{kind.name} {ended - at:.0f} s, {self.readers.snapshots:,} snapshots"
            stage.tell(f"{len(self.struck)}: {told}")
        if failure is not None:
            self.struck[-1] = replace(self.struck[-1], failure=failure)
            stage.tell(f"not recovered: {failure}")

    def settle(self) -> None:
        """Returns when nothing is behind, and a last snapshot was compared."""
        self.stage.moved()
        connection = self.stage.connect()
        try:
            self.readers.compare(read(connection))
        finally:
            connection.close()


def shuffled(stage: Stage, seed: int, only: Sequence[str], *, beside: bool) -> Iterator[Fault]:
    """The kinds again and again, each time in another order: each strikes as often as it weighs."""
    dice = random.Random(seed)
    while cards := deck(stage, dice, only, beside=beside):
        yield from cards


def storm(stage: Stage, seed: int, minutes: float, only: Sequence[str] = (), *, faults: int = 0) -> Storm:
    """Everything at once, or the kinds named, for so many minutes; on a slow machine until so many faults have struck,
    for twice the minutes at most. What ends it early is among what it found.
    """
    found = Storm(stage, seed)
    try:
        _blow(found, minutes, only, faults)
    except TROUBLE as error:
        if error not in found.broken:
            found.broken.append(error)
            stage.tell(traceback.format_exc())
    return found


def _blow(found: Storm, minutes: float, only: Sequence[str], faults: int) -> None:
    stage, seed = found.stage, found.seed

    def enough() -> bool:
        found.minutes = (time.monotonic() - began) / 60
        return found.minutes > minutes * (1 if len(found.struck) >= faults else 2)

    with found.weather():
        began = time.monotonic()
        with found.meanwhile(found.beside, shuffled(stage, seed + 1, only, beside=True)):
            found.strike(shuffled(stage, seed, only, beside=False), enough)
            while not (enough() or found.over):
                time.sleep(BREATH)


def _watch(stage: Stage, stopping: threading.Event) -> None:
    """Notes every alarm that an operator would see."""
    opened = Deployment(stage.settings)
    while not stopping.wait(ALARMED):
        with suppress(Exception):  # services are away, or going
            stage.alarms.update(re.sub(r"[\d.,:-]*\d", "#", alarm) for alarm in read_alarms(opened))
    opened.close()


def by_kind(struck: Sequence[Struck]) -> dict[str, list[Struck]]:
    """The faults of each kind, in the order of their names."""
    return {kind: [each for each in struck if each.kind == kind] for kind in sorted({each.kind for each in struck})}
