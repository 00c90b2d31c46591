"""A process is identified by its id, its start time and its command line together, because ids are reused."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import ipaddress
import itertools
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from view_algebra.errors import LaminaError

LOCK_SECONDS = 240.0
"""Seconds that a start or stop waits for another one of the same home. A slow start of Kafka takes 180."""

ATTEMPTS = 3
"""Attempts at a start. Another process may take a port after we saw it free and before the service binds it."""

START_TIME_TOLERANCE = 2.0
"""Seconds by which two readings of one process' start time may differ. It is derived from the boot time, which clock
adjustments move.
"""

_PORTS = itertools.cycle(random.SystemRandom().sample(range(20_000, 30_000), 10_000))
"""Ports below the ephemeral range of Linux and macOS, so no other program gets one by chance before a server starts or
while it restarts.
"""

_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""Processes that this one started without waiting for them. A handle that is dropped warns about its living child."""


@atexit.register
def _release_children() -> None:
    for child in _CHILDREN.values():
        if child.poll() is None:
            child.returncode = 0  # it outlives us, and its handle must not warn


@dataclass(frozen=True)
class RunningProcess:
    """A process of ours. `marker` is an argument of its command line that no other process has."""

    pid: int
    started: float
    marker: str

    def alive(self) -> bool:
        """True while the very process that was started exists and is not a zombie."""
        try:
            process = psutil.Process(self.pid)
            arguments = process.cmdline()  # empty for an instant, while the script becomes Java
            return (
                process.status() != psutil.STATUS_ZOMBIE
                and abs(process.create_time() - self.started) < START_TIME_TOLERANCE
                and (self.marker in arguments or not arguments)
            )
        except psutil.Error:
            return False

    def stop(self, *steps: tuple[signal.Signals, float]) -> None:
        """Ends the process. Sends each signal in turn and waits that many seconds for it, with SIGKILL as the last one.

        Returns when the process is gone. Raises LaminaError if we may not end it, or if it survives.
        """
        for number, patience in (*steps, (signal.SIGKILL, 15.0)):
            if not self.alive():
                return
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return
            except PermissionError as error:
                raise LaminaError(
                    f"Process {self.pid} may not be ended by this user",
                    evidence=f"{self.marker}: {error}",
                    way_out="Stop it as the user who started it.",
                ) from error
            if _await_end(self, patience):
                return
        raise LaminaError(
            f"Process {self.pid} does not end",
            evidence=self.marker,
            way_out="It probably waits for a disk. See the machine's kernel log.",
        )


@dataclass(frozen=True)
class Owner:
    """The user that runs a process if we are root."""

    uid: int
    gid: int

    def arguments(self) -> dict[str, Any]:
        """Arguments of subprocess for starting a process as this user, without root's groups."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def _await_end(process: RunningProcess, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while process.alive():
        if process.pid in _CHILDREN:
            _CHILDREN[process.pid].poll()  # our own child would stay a zombie
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def find(marker: str, *, name: str) -> RunningProcess | None:
    """The process with the argument `marker` whose executable's name contains `name`, however it was started."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            arguments = process.cmdline()
            if arguments and name in Path(arguments[0]).name and marker in arguments:
                running = RunningProcess(process.pid, process.create_time(), marker)
                if running.alive():
                    return running
    return None


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    marker: str,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    owner: Owner | None = None,
) -> tuple[RunningProcess, subprocess.Popen[bytes]]:
    """Starts a process as `owner` that outlives us and our terminal, and appends its output to `log`.

    Raises LaminaError if the program or the log cannot be opened.
    """
    assert marker in command
    try:
        with log.open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=cwd,
                env=environment,
                **(owner.arguments() if owner else {}),
            )
    except OSError as error:
        raise LaminaError(
            f"{Path(command[0]).name} could not be started",
            evidence=str(error),
            way_out=f"Check that {command[0]} can be executed and {log.parent} written.",
        ) from error
    _CHILDREN[child.pid] = child
    try:
        started = psutil.Process(child.pid).create_time()
    except psutil.Error:
        started = time.time()
    return RunningProcess(child.pid, started, marker), child


def start_service(
    service: str,
    launch: Callable[[int], tuple[RunningProcess, subprocess.Popen[bytes]]],
    answers: Callable[[int], bool],
    stop: Callable[[RunningProcess], None],
    *,
    port: int | None,
    within: float,
    logs: Sequence[Path],
    cause: str,
) -> tuple[RunningProcess, int]:
    """Starts a service, on `port` if it is free. Returns its process and its port once it answers.

    launch: spawns it on a port
    logs: files that it writes. The error shows the end of the first that is not empty, and names the last
    cause: usual cause of a failure

    Raises LaminaError if it ends while it starts, or does not answer within `within` seconds.
    """
    for _ in range(ATTEMPTS):
        chosen = free_port(port)
        sizes = {log: log.stat().st_size if log.exists() else 0 for log in logs}
        process, child = launch(chosen)
        deadline = time.monotonic() + within
        while child.poll() is None and time.monotonic() < deadline:
            if answers(chosen):
                return process, chosen
            time.sleep(0.03)
        ended = child.poll() is not None
        stop(process)
        written = b"".join(_written_since(log, size) for log, size in sizes.items())
        if b"Address already in use" not in written:
            break
        port = None
    raise LaminaError(
        f"{service} ended while it started" if ended else f"{service} did not start within {within:.0f} seconds",
        evidence=next(filter(None, (tail(log, 5) for log in logs)), ""),
        way_out=f"The whole log is {logs[-1]}. {cause} is the usual cause.",
    )


def _written_since(log: Path, size: int) -> bytes:
    """The bytes of a log after its first `size`, or all of a shorter one, which has rolled over."""
    if not log.exists():
        return b""
    with log.open("rb") as file:
        file.seek(size if size <= log.stat().st_size else 0)
        return file.read()


@contextlib.contextmanager
def locked(path: Path, *, patience: float = LOCK_SECONDS) -> Iterator[None]:
    """Holds the lock file `path`. The kernel releases it when we die, so a stale file never blocks."""
    with path.open("a") as file:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LaminaError(
                        f"Another process has held a lock of Lamina for {patience:.0f} seconds",
                        evidence=f"It holds {path}.",
                        way_out="Wait for it or end it, then try again.",
                    ) from None
                time.sleep(0.05)
        yield


def free_port(preferred: int | None = None) -> int:
    """A free TCP port on 127.0.0.1: `preferred` if it is free, otherwise one that this process has not had before.

    With the preferred port, clients find a restarted service at its old address.
    """
    if preferred is not None and port_is_free(preferred):
        return preferred
    return next(port for port in _PORTS if port_is_free(port))


def port_is_free(port: int) -> bool:
    """True if a server could listen on the port now."""
    with socket.socket() as probe:
        # As servers do, since TIME_WAIT does not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the host.

    >>> is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("LocalHost"), is_loopback("db.example.org")
    (True, True, True, False)
    """
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"


def tail(log: Path, lines: int = 12) -> str:
    """The end of a log, as evidence."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
