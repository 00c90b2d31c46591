"""Says what is waited for, to whoever waits longer than a second."""

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
"""Without a word, a person waits that long before they wonder."""

AGAIN_SECONDS = 30.0
"""After these it is said again, and how long it has been."""


@contextmanager
def waiting(
    tell: Callable[[str], None], what: str, *, said: bool = False, so_far: Callable[[], str] | None = None
) -> Iterator[None]:
    """Tells `what` when the block takes longer than a second, and again every half minute.

    said: it was told. so_far: what is done, told with the seconds.
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
    """What has somebody to tell."""

    @property
    def tell(self) -> Callable[[str], None]:
        """Takes a line of narration."""


N = TypeVar("N", bound=Narrator)


def waited_for(what: str) -> Callable[[Callable[Concatenate[N, P], T]], Callable[Concatenate[N, P], T]]:
    """A method that tells `what` when it takes longer than a second."""

    def of(method: Callable[Concatenate[N, P], T]) -> Callable[Concatenate[N, P], T]:
        @wraps(method)
        def told(self: N, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with waiting(self.tell, what):
                return method(self, *args, **kwargs)

        return told

    return of
