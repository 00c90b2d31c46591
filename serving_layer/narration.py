"""Words for the person at the terminal or the console: amounts, and what a command waits for.

In: numbers, and blocks that may take long. Out: text and lines of narration. Nothing here knows Postgres.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SILENT_SECONDS = 1.0
"""Seconds of silence before a person wonders."""

REPEATED_EVERY = 30.0
"""Seconds between repetitions, which name the time waited so far."""


@contextmanager
def waiting(
    tell: Callable[[str], None], what: str, *, shown: bool = False, so_far: Callable[[], str] | None = None
) -> Iterator[None]:
    """Prints `what` if the block takes longer than a second, and again every half minute.

    shown: `what` was printed before the block
    so_far: the progress to print with the seconds
    """
    done, began = threading.Event(), time.monotonic()

    def speak() -> None:
        if not shown and not done.wait(SILENT_SECONDS):
            tell(f"{what} …")
        while not done.wait(REPEATED_EVERY):
            done_so_far = f", {so_far()}" if so_far is not None else ""
            tell(f"{what} … ({time.monotonic() - began:.0f} s so far{done_so_far})")

    speaker = threading.Thread(target=speak, name="waiting", daemon=True)
    speaker.start()
    try:
        yield
    finally:
        done.set()
        speaker.join()


def amount(number: int, noun: str) -> str:
    """A number of things.

    >>> amount(1, "record"), amount(1_500, "record")
    ('1 record', '1,500 records')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def size(number: float) -> str:
    """A number of bytes, rounded.

    >>> size(8_192), size(1_048_575), size(600_000_000), size(34_000_000_000_000)
    ('8 kB', '1.0 MB', '600 MB', '34,000 GB')
    """
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if number < 999.5 or unit == "GB":
            break
    return f"{number:,.{0 if number >= 9.95 or unit == 'kB' else 1}f} {unit}"


def age(seconds: float) -> str:
    """A span of time, in the largest unit that it has at least two of.

    >>> age(75), age(7_300), age(9 * 86_400), age(7_000)
    ('75 s', '2 h', '9 d', '116 min')
    """
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
