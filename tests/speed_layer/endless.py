"""A record whose computation takes hours, and a speed layer that soon gives up."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from tests.fix_lamina import CommandLine

HOSTILE = {"k": "a", "a": "foo" * 20_000}
"""Java tries every start, every `foo` and every end of it, which takes hours."""


@contextmanager
def impatient(lamina: CommandLine, *patience: float) -> Iterator[subprocess.Popen[str]]:
    """A speed layer with its own JVM."""
    process = lamina.start_program("-m", "tests.impatient", *map(str, patience))
    try:
        yield process
    finally:
        below = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        try:
            print(process.communicate(timeout=60)[1])
        finally:
            process.kill()
            for child in below:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
    assert process.returncode == 0


def idles(process: subprocess.Popen[str]) -> bool:
    """True if a process's children use less than half a core in at least one of five seconds."""

    def used() -> float:
        return sum(map(_processor_seconds, psutil.Process(process.pid).children(recursive=True)))

    def used_in_a_second() -> float:
        before = used()
        time.sleep(1.0)
        return used() - before

    return any(used_in_a_second() < 0.5 for _ in range(5))


def _processor_seconds(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):  # a search may end its process at any time
        return float(sum(process.cpu_times()[:2]))
    return 0.0
