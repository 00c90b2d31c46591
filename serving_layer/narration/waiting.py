"""Messages about waiting, for a person who has waited longer than a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_SECONDS = 1.0
"""Seconds of silence before a person wonders."""

AGAIN_SECONDS = 30.0
"""Seconds between repetitions, which name the time waited so far."""


@contextmanager
def waiting(
    tell: Callable[[str], None], what: str, *, said: bool = False, so_far: Callable[[], str] | None = None
) -> Iterator[None]:
    """Prints `what` if the block takes longer than a second, and again every half minute.

    said: `what` was printed before the block. so_far: the progress to print with the seconds.
    """
    done, began = threading.Event(), time.monotonic()

    def speak() -> None:
        if not said and not done.wait(PATIENCE_SECONDS):
            tell(f"{what} …")
        while not done.wait(AGAIN_SECONDS):
            done_so_far = f", {so_far()}" if so_far is not None else ""
            tell(f"{what} … ({time.monotonic() - began:.0f} s by now{done_so_far})")

    speaker = threading.Thread(target=speak, name="waiting", daemon=True)
    speaker.start()
    try:
        yield
    finally:
        done.set()
        speaker.join()


class Narrator(Protocol):
    """An object that can print narration."""

    @property
    def tell(self) -> Callable[[str], None]:
        """Prints a line of narration."""


N = TypeVar("N", bound=Narrator)


def waited_for(what: str) -> Callable[[Callable[Concatenate[N, P], T]], Callable[Concatenate[N, P], T]]:
    """Wraps a method to print `what` if it takes longer than a second."""

    def of(method: Callable[Concatenate[N, P], T]) -> Callable[Concatenate[N, P], T]:
        @wraps(method)
        def narrated(self: N, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with waiting(self.tell, what):
                return method(self, *args, **kwargs)

        return narrated

    return of
