"""Threads for a page's slow work. They end with the process, and their SELECTs end with the reader."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import Request

from serving_layer.readers.analyst import PageSelect

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """The value of `work`, computed in a thread. An ending process does not wait for it, unlike for asyncio's own
    threads.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(how: Callable[[Any], None], value: object) -> None:
        if not done.done():  # otherwise it was cancelled
            how(value)

    def tell(how: Callable[[Any], None], value: object) -> None:
        with suppress(RuntimeError):  # the server has stopped
            loop.call_soon_threadsafe(settle, how, value)

    def run() -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 (raised in the coroutine that awaits it)
            tell(done.set_exception, error)
        else:
            tell(done.set_result, value)

    threading.Thread(target=run, name="page", daemon=True).start()
    return await done


async def for_reader(request: Request, work: Callable[[PageSelect], T]) -> T:
    """The value of `work`, whose statement is cancelled if the browser goes away or the server stops."""
    statement = PageSelect()
    working = asyncio.ensure_future(in_thread(lambda: work(statement)))
    leaving = asyncio.ensure_future(_leaves(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await in_thread(statement.cancel)
        return await working
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
            threading.Thread(target=statement.cancel, name="cancel").start()


async def _leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
