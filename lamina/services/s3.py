"""A whole object storage in one process: S3Proxy over a folder, on loopback, with one bucket and its own keys."""

from __future__ import annotations

import secrets
import signal
import subprocess
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from lamina.services import own_processes
from lamina.services.own_processes import RunningProcess, spawn, start_service

WAREHOUSE = "s3://lamina/warehouse"
"""The warehouse. A bucket is a folder to S3Proxy, so creating the folder creates it."""

START_SECONDS = 60.0
"""Seconds for a start. It takes one on two idle cores."""

STOP_SECONDS = 10.0

_USER = "lamina"


@dataclass(frozen=True)
class Store:
    """A running object storage."""

    process: RunningProcess
    port: int
    key: str = field(repr=False)

    warehouse: str = WAREHOUSE

    @property
    def options(self) -> dict[str, str]:
        """Properties of Iceberg's access to files, with the keys."""
        return {
            "s3.endpoint": f"http://127.0.0.1:{self.port}",
            "s3.path-style-access": "true",
            "s3.access-key-id": _USER,
            "s3.secret-access-key": self.key,
            "client.region": "us-east-1",
        }


def start(home: Path, *, java: Path, jars: tuple[Path, ...]) -> Store:
    """Starts the store over `home`/s3, on its former port if that is free.

    Raises LaminaError if the store ends while it starts, or does not answer within START_SECONDS.
    """
    folder, output = home / "s3", home / "logs" / "s3.out"
    for needed in (folder / "data" / WAREHOUSE.split("/")[2], output.parent):
        needed.mkdir(parents=True, exist_ok=True)
    port, key = _last_start(home) or (None, secrets.token_hex(16))
    output.unlink(missing_ok=True)

    def launch(chosen: int) -> tuple[RunningProcess, subprocess.Popen[bytes]]:
        properties = str(_write_properties(folder, chosen, key))
        command = [str(java / "bin" / "java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-jar", str(jars[0])]
        return spawn([*command, "--properties", properties], log=output, marker=properties)

    process, port = start_service(
        "The object storage",
        launch,
        answers,
        stop,
        port=port,
        within=START_SECONDS,
        logs=[output],
        cause="A full disk or too little memory",
    )
    return Store(process, port, key)


def stop(process: RunningProcess) -> None:
    """Ends the store."""
    process.stop((signal.SIGTERM, STOP_SECONDS))


def find(home: Path) -> Store | None:
    """The running store of this home, or None."""
    written = _last_start(home)
    process = own_processes.find(str(_properties(home / "s3")), name="java") if written else None
    return Store(process, *written) if process and written else None


def wanted(home: Path) -> bool:
    """True if this home has a store, running or not."""
    return _last_start(home) is not None


def answers(port: int) -> bool:
    """True if a store answers there. To a request without keys, it answers that keys are needed."""
    with suppress(OSError, HTTPException), closing(HTTPConnection("127.0.0.1", port, timeout=1.0)) as connection:
        connection.request("GET", "/")
        return connection.getresponse().status in (200, 403)
    return False


def _properties(folder: Path) -> Path:
    return folder / "s3proxy.properties"


def _write_properties(folder: Path, port: int, key: str) -> Path:
    values = {
        "s3proxy.endpoint": f"http://127.0.0.1:{port}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": _USER,
        "s3proxy.credential": key,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.identity": _USER,
        "jclouds.credential": key,
        "jclouds.filesystem.basedir": str(folder / "data"),
    }
    path = _properties(folder)
    path.touch(mode=0o600)
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return path


def _last_start(home: Path) -> tuple[int, str] | None:
    """The port and the key of the last start."""
    path = _properties(home / "s3")
    if not path.exists():
        return None
    values = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    return int(values["s3proxy.endpoint"].rpartition(":")[2]), values["s3proxy.credential"]
