"""The signs of life of a process, from a thread of their own: they do not wait for what the process waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

HEARD_EVERY = 1.0
"""Seconds between two signs of life: the console misses a speed layer after 4 (`lamina/console/watch.py`)."""


@contextmanager
def heartbeat(say: Callable[[], None]) -> Iterator[None]:
    """Calls `say` at once and then every second while the block runs; one that fails is followed by the next."""
    ended = threading.Event()

    def beat() -> None:
        while True:
            with suppress(Exception):  # whatever it is, the next sign may be heard
                say()
            if ended.wait(HEARD_EVERY):
                return

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(HEARD_EVERY)
