"""The background console of one LAMINA_HOME: `lamina up` and the demo start it, `lamina down` ends it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from lamina.services import processes
from lamina.services.processes import Running

PORT = 8765
"""The port, where it is free; else any other."""

STOP_SECONDS = 5.0
"""How long it may take to end after it was asked."""


@dataclass(frozen=True)
class ConsoleProcess:
    """The background console of one LAMINA_HOME, found by its command line."""

    home: Path

    @property
    def mark(self) -> str:
        """The argument that no other process has."""
        return f"--mark={self.home.resolve() / 'console'}"

    @property
    def log(self) -> Path:
        """The file of its output."""
        return self.home / "logs" / "console.log"

    def find(self) -> Running | None:
        """The process, if it runs."""
        return processes.find(self.mark, name="python")

    def address(self) -> str | None:
        """The address of its first page, if it runs."""
        running = self.find()
        with suppress(psutil.Error, ValueError):
            words = psutil.Process(running.pid).cmdline() if running else []
            return f"http://{words[words.index('--listen') + 1]}/"
        return None

    def start(self, *, alone: bool = False) -> str:
        """Starts it, unless it runs, and gives its address; it answers a second later.

        alone: with the embedded services of its home, whatever the environment and the working folder's file name.
        """
        if address := self.address():
            return address
        self.log.parent.mkdir(parents=True, exist_ok=True)
        listen = f"127.0.0.1:{processes.free_port(PORT)}"
        command = [sys.executable, "-m", "lamina", "console", "--listen", listen, self.mark]
        given = {name: value for name, value in os.environ.items() if not (alone and name.startswith("LAMINA_"))}
        environment, cwd = {**given, "LAMINA_HOME": str(self.home)}, self.home if alone else None
        processes.spawn(command, log=self.log, marker=self.mark, environment=environment, cwd=cwd)
        return f"http://{listen}/"

    def stop(self) -> bool:
        """Ends it; False if it did not run."""
        running = self.find()
        if running is None:
            return False
        running.stop((signal.SIGTERM, STOP_SECONDS))
        return True
