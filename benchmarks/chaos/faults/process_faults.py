"""Faults of processes: of the speed layer and, in parallel to all others, of the batch layer."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from benchmarks.chaos.stage import Process, Stage
from benchmarks.chaos.table import fault
from view_algebra.errors import LaminaError


@fault(8)
def speed_killed(stage: Stage, _: random.Random) -> None:
    """The speed layer and its JVM are killed."""
    stage.speed.kill()


@fault(4)
def speed_killed_alone(stage: Stage, _: random.Random) -> None:
    """The speed layer is killed, its JVM is not."""
    stage.speed.child.kill()


@fault(4)
def speed_jvm_killed(stage: Stage, _: random.Random) -> None:
    """The JVM of the speed layer is killed."""

    def kill_jvm() -> bool:
        jvm = stage.speed.jvm()
        with suppress(psutil.Error):
            if jvm is not None:
                jvm.kill()
        return jvm is not None

    stage.until(kill_jvm, "the speed layer has a JVM")


@fault(2)
def two_speed_layers(stage: Stage, _: random.Random) -> None:
    """A second speed layer takes over."""
    first = stage.start_second_speed()
    stage.until(lambda: not first.running, "the first of two speed layers ends")
    stage.end(first)


@fault(5)
def speed_stopped(stage: Stage, dice: random.Random) -> None:
    """The speed layer stands still (SIGSTOP) and resumes."""
    processes = stage.speed.with_jvm()
    with stopped(processes if dice.random() < 0.6 else processes[-1:]):
        stage.wait(dice.choice((5, 5, 10, 20, 60)))


def _jvm(stage: Stage, process: Process) -> psutil.Process:
    stage.until(lambda: process.jvm() is not None or not process.running, "Spark starts")
    jvm = process.jvm()
    if jvm is None:
        raise LaminaError(f"lamina {process.what} ended before its Spark started", evidence=process.outcome())
    return jvm


@contextmanager
def stopped(processes: list[psutil.Process]) -> Iterator[None]:
    """Suspends the processes within the block."""
    for process in processes:
        with suppress(psutil.Error):
            process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.Error):
                process.resume()


def _run_and_kill(stage: Stage, dice: random.Random, *arguments: str, longest: float, jvm: bool = False) -> bool:
    """Runs a command and kills it at a random moment. Returns False if it ended before."""
    process = stage.start(*arguments)
    if jvm:
        with suppress(LaminaError):
            _jvm(stage, process)
    deadline = time.monotonic() + dice.uniform(1, longest)
    while process.running and time.monotonic() < deadline:
        time.sleep(0.02)
    killed = process.running
    if killed and jvm and (spark := process.jvm()) is not None:
        spark.kill()
    elif killed:
        process.kill()
    stage.end(process)
    return killed


@fault(6, parallel=True)
def rebuild_killed(stage: Stage, dice: random.Random) -> None:
    """A rebuild is killed."""
    _run_and_kill(stage, dice, "rebuild", *dice.choice(((), ("totals",), ("hourly", "sessions"))), longest=40)


@fault(3, parallel=True)
def rebuild_jvm_killed(stage: Stage, dice: random.Random) -> None:
    """The JVM of a rebuild is killed."""
    _run_and_kill(stage, dice, "rebuild", longest=25, jvm=True)


@fault(2, parallel=True)
def rebuild_interrupted(stage: Stage, dice: random.Random) -> None:
    """A rebuild is interrupted (Ctrl-C)."""
    process = stage.start("rebuild")
    with suppress(subprocess.TimeoutExpired):
        process.child.wait(dice.uniform(5, 30))
    process.child.send_signal(signal.SIGINT)
    stage.end(process)


@fault(3, parallel=True)
def leap_killed(stage: Stage, dice: random.Random) -> None:
    """A leap is killed, and another takes its place."""
    if _run_and_kill(stage, dice, "rebuild", "--leap", longest=35):
        stage.insist("rebuild", "--leap")


@fault(1, parallel=True)
def leap_jvm_killed(stage: Stage, dice: random.Random) -> None:
    """The JVM of a leap is killed, and another leap takes its place."""
    if _run_and_kill(stage, dice, "rebuild", "--leap", longest=25, jvm=True):
        stage.insist("rebuild", "--leap")


@fault(4, parallel=True)
def archive_killed(stage: Stage, dice: random.Random) -> None:
    """An archive run is killed."""
    _run_and_kill(stage, dice, "archive", longest=25)


@fault(2, parallel=True)
def archive_jvm_killed(stage: Stage, dice: random.Random) -> None:
    """The JVM of an archive run is killed."""
    _run_and_kill(stage, dice, "archive", longest=10, jvm=True)


@fault(4, parallel=True)
def apply_killed(stage: Stage, dice: random.Random) -> None:
    """An apply that adds, changes or drops a view is killed, and repeated."""
    _apply_killed(stage, dice, jvm=False)


@fault(2, parallel=True)
def apply_jvm_killed(stage: Stage, dice: random.Random) -> None:
    """The JVM of an apply is killed, and the apply repeated."""
    _apply_killed(stage, dice, jvm=True)


def _apply_killed(stage: Stage, dice: random.Random, *, jvm: bool) -> None:
    world, before = stage.world, stage.world.extra
    world.extra = dice.choice([version for version in (None, 0, 1, 1 - (before or 0)) if version != before])
    changes = None not in (before, world.extra)
    apply = ("apply", "--prune", "--allow-break", "--catalog", str(stage.write_catalog()))
    _run_and_kill(stage, dice, *apply, longest=30 if changes else 4, jvm=jvm)
    stage.insist(*apply)


@fault(2, parallel=True)
def version_rolled_back(stage: Stage, _: random.Random) -> None:
    """A view that has an older version goes back to it."""
    stage.lamina("rollback", "extra")


@fault(2, parallel=True)
def rolled_back_under_a_rebuild(stage: Stage, dice: random.Random) -> None:
    """Views are rebuilt, and one is rolled back in the middle."""
    rebuild = stage.start("rebuild")
    stage.wait(dice.uniform(5, 25))
    stage.lamina("rollback", dice.choice(("totals", "hourly", "waits")))
    stage.end(rebuild)
