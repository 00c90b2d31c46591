"""A headless Chromium for tests of pages, driven over pipes by its DevTools protocol."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")

PATIENCE = 30.0
"""Seconds within which a page shows what a test waits for."""


@dataclass
class Chromium:
    """One page.

    complaints: errors that scripts and the browser reported while it was open
    """

    ask: IO[bytes]
    answer: IO[bytes]
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    _asked: int = 0

    def open(self, url: str) -> None:
        """Opens an address."""
        self.call("Page.navigate", url=url)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol. Returns its result."""
        self._asked += 1
        session = {"sessionId": self.session} if self.session else {}
        self.ask.write(
            json.dumps({"id": self._asked, "method": method, "params": parameters, **session}).encode() + b"\0"
        )
        self.ask.flush()
        while True:
            message = self._read()
            if message.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.complaints.append(json.dumps(message["params"]))
            if message.get("id") == self._asked:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    def _read(self) -> dict[str, Any]:
        read = bytearray()
        while (byte := self.answer.read(1)) != b"\0":
            assert byte, "Chromium has ended"
            read += byte
        message: dict[str, Any] = json.loads(read)
        return message

    def value(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def until(self, condition: str) -> None:
        """Waits until a JavaScript expression is true in the page."""
        deadline = time.monotonic() + PATIENCE
        while not self.value(condition):
            assert time.monotonic() < deadline, f"{condition} in {self.value('document.body.innerText')}"
            time.sleep(0.1)


@contextmanager
def chromium(profile: Path) -> Iterator[Chromium]:
    """Starts Chromium with an empty profile in this folder, and ends it with the block."""
    assert PROGRAM is not None
    (commands, ask), (answer, results) = os.pipe(), os.pipe()
    words = [
        PROGRAM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
    ]
    silent = [(os.POSIX_SPAWN_OPEN, of, os.devnull, os.O_RDWR, 0) for of in (1, 2)]
    pipes = [(os.POSIX_SPAWN_DUP2, commands, 3), (os.POSIX_SPAWN_DUP2, results, 4)]
    process = os.posix_spawn(PROGRAM, words, os.environ, file_actions=[*silent, *pipes], setsid=True)
    os.close(commands)
    os.close(results)
    with os.fdopen(ask, "wb") as asking, os.fdopen(answer, "rb") as answering:
        page = Chromium(asking, answering)
        try:
            target = page.call("Target.createTarget", url="about:blank")["targetId"]
            page.session = page.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log"):
                page.call(f"{domain}.enable")
            yield page
        finally:
            os.killpg(process, signal.SIGTERM)
            os.waitpid(process, 0)
