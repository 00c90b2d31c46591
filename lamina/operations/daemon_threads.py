"""Work in threads for which the end of the process does not wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_daemon_thread(name: str, work: Callable[[], T]) -> Future[T]:
    """The value of the work, which a thread computes, or its error."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from here on it cannot be cancelled: a thread always does its work

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (raised again by the future)
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
