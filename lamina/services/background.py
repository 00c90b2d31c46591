"""The background processes of one LAMINA_HOME: the speed layer and the console.

`lamina up` and the demo start them, `lamina down` ends them.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import psutil

from lamina.services import own_processes
from lamina.services.own_processes import RunningProcess
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
class Background:
    """A command of Lamina that runs in the background of one LAMINA_HOME, and is found by its command line."""

    home: Path
    command: Literal["speed", "console"]

    @property
    def mark(self) -> str:
        """The argument by which its process is found."""
        return f"--mark={self.home.resolve() / self.command}"

    @property
    def log(self) -> Path:
        """The file of its output."""
        return self.home / "logs" / f"{self.command}.log"

    def find(self) -> RunningProcess | None:
        """The process, or None if it does not run."""
        return own_processes.find(self.mark, name="python")

    def spawn(self, *options: str, alone: bool) -> RunningProcess:
        """Starts the process.

        With `alone`, it uses its home's embedded services, whatever the environment and the working folder's file set.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "lamina", self.command, *options, self.mark]
        inherited = {name: value for name, value in os.environ.items() if not (alone and name.startswith("LAMINA_"))}
        environment, cwd = {**inherited, "LAMINA_HOME": str(self.home)}, self.home if alone else None
        return own_processes.spawn(command, log=self.log, marker=self.mark, environment=environment, cwd=cwd)[0]

    def stop(self, within: float) -> bool:
        """Asks the process to end, and kills it after `within` seconds. Returns False if it did not run."""
        running = self.find()
        if running is None:
            return False
        running.stop((signal.SIGTERM, within))
        return True


class SpeedProcess:
    """The background speed layer of one LAMINA_HOME."""

    def __init__(self, home: Path) -> None:
        self.background = Background(home, "speed")

    def start(self, *, alone: bool = False) -> RunningProcess:
        """Starts it unless it runs (`alone`: see `Background.spawn`). The first micro-batch takes Spark some seconds
        more.
        """
        return self.background.find() or self.background.spawn(alone=alone)

    def stop(self, *, within: float = SPEED_STOP_SECONDS) -> bool:
        """Ends it after its current micro-batch, or at once after `within` seconds. Returns False if it did not run."""
        return self.background.stop(within)

    def expect(self, running: RunningProcess) -> None:
        """Raises LaminaError, with the end of the log, if the process has ended."""
        if not running.alive():
            raise LaminaError(
                "The speed layer ended",
                evidence=own_processes.tail(self.background.log),
                way_out=f"Its log is {self.background.log}; start it again with `lamina up`.",
            )


class ConsoleProcess:
    """The background console of one LAMINA_HOME."""

    def __init__(self, home: Path) -> None:
        self.background = Background(home, "console")
        self._port_file = home / "console.port"

    def address(self) -> str | None:
        """The address of its first page, or None if it does not run."""
        running = self.background.find()
        with suppress(psutil.Error, ValueError):
            words = psutil.Process(running.pid).cmdline() if running else []
            return f"http://{words[words.index('--listen') + 1]}/"
        return None

    def start(self, *, alone: bool = False) -> str:
        """Starts it unless it runs (`alone`: see `Background.spawn`), and returns its address. It answers about a
        second later.
        """
        with own_processes.locked(self._port_file.with_suffix(".lock"), patience=START_SECONDS):
            if address := self.address():
                return address
            port = own_processes.free_port(self._last_port())
            self._port_file.write_text(str(port))
            listen = f"127.0.0.1:{port}"
            running = self.background.spawn("--listen", listen, alone=alone)
            began = time.monotonic()
            while running.alive() and self.background.find() is None and time.monotonic() < began + START_SECONDS:
                time.sleep(0.02)  # until it has its command line
        return f"http://{listen}/"

    def _last_port(self) -> int:
        """The port of the last start."""
        with suppress(OSError, ValueError):
            return int(self._port_file.read_text())
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
        log = self.background.log
        raise LaminaError(
            "The console ended" if address is None else f"The console does not listen after {START_SECONDS:.0f} s",
            evidence=own_processes.tail(log),
            way_out=f"Its log is {log}. Everything else runs. `lamina console` starts it in the foreground.",
        )

    def stop(self) -> bool:
        """Ends it. Returns False if it did not run."""
        return self.background.stop(STOP_SECONDS)
