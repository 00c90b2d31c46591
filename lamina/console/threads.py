"""Threads for a page's slow work. They end with the process, and their SELECTs end with the reader."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from starlette.requests import Request

from lamina.operations.daemon_threads import in_daemon_thread
from serving_layer.readers.analyst import PageSelect

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """The value of `work`, computed in a thread. An ending process does not wait for it, unlike for asyncio's own
    threads.
    """
    return await asyncio.wrap_future(in_daemon_thread("page", work))


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
