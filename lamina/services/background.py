"""The background processes of one LAMINA_HOME: the speed layer and the console.

`lamina up` and the demo start them, `lamina down` ends them.
"""

from __future__ import annotations

import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from lamina.services import own_processes
from lamina.services.own_processes import Running
from view_algebra.errors import LaminaError

PORT = 8765
"""The port of the first start if it is free, otherwise any other. Later starts keep it, for bookmarks and scrapes."""

START_SECONDS = 30.0
"""Seconds that the console may take to listen."""

STOP_SECONDS = 5.0
"""Seconds that the console may take to end."""

SPEED_STOP_SECONDS = 60.0
"""Seconds that the speed layer may take to end: a micro-batch, and Spark's own end."""


@dataclass(frozen=True)
class SpeedProcess:
    """The background speed layer of one LAMINA_HOME, found by its command line."""

    home: Path

    @property
    def mark(self) -> str:
        """The argument by which the process is found."""
        return f"--mark={self.home.resolve() / 'speed'}"

    @property
    def log(self) -> Path:
        """The file of its log."""
        return self.home / "logs" / "speed.log"

    def find(self) -> Running | None:
        """The process, or None if it does not run."""
        return own_processes.find(self.mark, name="python")

    def start(self, *, alone: bool = False) -> Running:
        """Starts it unless it runs. Spark needs some seconds more until the first micro-batch.

        `alone`: see `own_processes.spawn_command`.
        """
        running = self.find()
        if running is not None:
            return running
        return own_processes.spawn_command(["speed"], home=self.home, log=self.log, marker=self.mark, alone=alone)

    def stop(self, *, within: float = SPEED_STOP_SECONDS) -> bool:
        """Ends it after its current micro-batch, or at once after `within` seconds. Returns False if it did not run."""
        running = self.find()
        if running is None:
            return False
        running.stop((signal.SIGTERM, within))
        return True

    def expect(self, running: Running) -> None:
        """Raises LaminaError, with the end of the log, if the process has ended."""
        if not running.alive():
            raise LaminaError(
                "The speed layer ended",
                evidence=own_processes.tail(self.log),
                way_out=f"Its log is {self.log}; start it again with `lamina up`.",
            )


@dataclass(frozen=True)
class ConsoleProcess:
    """The background console of one LAMINA_HOME, found by its command line."""

    home: Path

    @property
    def mark(self) -> str:
        """The argument by which the process is found."""
        return f"--mark={self.home.resolve() / 'console'}"

    @property
    def log(self) -> Path:
        """The file of its output."""
        return self.home / "logs" / "console.log"

    def find(self) -> Running | None:
        """The process, or None if it does not run."""
        return own_processes.find(self.mark, name="python")

    def address(self) -> str | None:
        """The address of its first page, or None if it does not run."""
        running = self.find()
        with suppress(psutil.Error, ValueError):
            words = psutil.Process(running.pid).cmdline() if running else []
            return f"http://{words[words.index('--listen') + 1]}/"
        return None

    def start(self, *, alone: bool = False) -> str:
        """Starts it unless it runs, and returns its address. It answers about a second later.

        `alone`: see `own_processes.spawn_command`.
        """
        with own_processes.locked(self.home / "console.lock", patience=START_SECONDS):
            if address := self.address():
                return address
            port = own_processes.free_port(self._port())
            (self.home / "console.port").write_text(str(port))
            listen = f"127.0.0.1:{port}"
            words = ["console", "--listen", listen]
            running = own_processes.spawn_command(words, home=self.home, log=self.log, marker=self.mark, alone=alone)
            began = time.monotonic()
            while running.alive() and self.find() is None and time.monotonic() < began + START_SECONDS:
                time.sleep(0.02)  # until it has its command line
        return f"http://{listen}/"

    def _port(self) -> int:
        """The port of the last start."""
        with suppress(OSError, ValueError):
            return int((self.home / "console.port").read_text())
        return PORT

    def expect(self) -> None:
        """Returns when it listens. Raises LaminaError, with the end of its log, if it ends or does not listen
        in time.
        """
        began = time.monotonic()
        while (address := self.address()) is not None:
            listens = urlsplit(address)
            with suppress(OSError), socket.create_connection((listens.hostname or "", listens.port or 0), 1.0):
                return
            if time.monotonic() > began + START_SECONDS:
                break
            time.sleep(0.1)
        raise LaminaError(
            "The console ended" if address is None else f"The console does not listen after {START_SECONDS:.0f} s",
            evidence=own_processes.tail(self.log),
            way_out=f"Its log is {self.log}. Everything else runs. `lamina console` starts it in the foreground.",
        )

    def stop(self) -> bool:
        """Ends it. Returns False if it did not run."""
        running = self.find()
        if running is None:
            return False
        running.stop((signal.SIGTERM, STOP_SECONDS))
        return True
