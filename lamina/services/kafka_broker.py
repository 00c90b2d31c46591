"""A whole Kafka in one process: broker and controller (KRaft), on loopback, with transactions and committed reads.

It is as strict as a production broker in everything that matters to a client: topics are never created by accident, and
records of 1 MB pass. Retention by time is off, because replayed records carry old timestamps.
"""

from __future__ import annotations

import base64
import signal
import socket
import struct
import subprocess
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lamina.services import own_processes
from lamina.services.jars import jars_of_pyspark
from lamina.services.java import LOG4J2, archive_options
from lamina.services.own_processes import RunningProcess, free_port, spawn, start_service
from view_algebra.errors import LaminaError

START_SECONDS = 180.0
"""Seconds for a start. It takes 3 s on two idle cores, and several times that while others use them."""

STOP_SECONDS = 60.0
"""Seconds for a stop. It takes a second, or more if it writes an archive of classes."""

_PROPERTIES: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "message.max.bytes": str(8 * 1024 * 1024),
    "replica.fetch.max.bytes": str(8 * 1024 * 1024),
    # One broker holds the only copy, so acknowledged records are on the disk (`python -m benchmarks.flush` measures the
    # price).
    "log.flush.interval.messages": "1",
    "log.retention.ms": "-1",
    # Spark cannot read a time beyond its microseconds, so the broker refuses times before the year 0. By default it
    # refuses times more than an hour ahead of the clock.
    "log.message.timestamp.before.max.ms": "64000000000000",
    "log.retention.check.interval.ms": "5000",
    "log.segment.delete.delay.ms": "1000",
    # After a kill -9, the controller waits this long before it admits the broker again. On a machine too busy for a
    # heartbeat in this time, partitions have no leader for a moment.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),
    "log.cleaner.threads": "1",
}


@dataclass(frozen=True)
class Broker:
    """A running broker."""

    process: RunningProcess
    port: int
    controller_port: int

    @property
    def address(self) -> str:
        """Bootstrap servers for clients."""
        return f"127.0.0.1:{self.port}"


def start(
    home: Path,
    *,
    java: Path,
    jars: tuple[Path, ...],
    settings: Mapping[str, str],
    jvm_options: tuple[str, ...],
    ports: tuple[int, int] | None,
) -> Broker:
    """Starts the broker over the data in `home`/kafka, on `ports` (clients', controller's) if they are free.

    `settings` are broker properties over our own. `jvm_options` replace the options that make the start quick. Raises
    LaminaError if the broker ends while it starts, or does not answer within START_SECONDS.
    """
    folder = home / "kafka"
    logs = home / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    logs.mkdir(parents=True, exist_ok=True)
    output = logs / "kafka.out"
    output.unlink(missing_ok=True)
    properties = folder / "server.properties"
    controller_port = 0

    def launch(port: int) -> tuple[RunningProcess, subprocess.Popen[bytes]]:
        nonlocal controller_port
        controller_port = free_port(ports[1] if ports and port == ports[0] else None)
        _write_properties(properties, port, controller_port, settings)
        command = _java(java, jars, logs)
        _format(folder, properties, command)
        command[1:1] = jvm_options or archive_options(home, "kafka")
        return spawn([*command, "kafka.Kafka", str(properties)], log=output, marker=str(properties), cwd=folder)

    process, port = start_service(
        "Kafka",
        launch,
        answers,
        stop,
        port=ports[0] if ports else None,
        within=START_SECONDS,
        logs=(output, logs / "kafka.log"),
        cause="A full disk or too little memory",
    )
    return Broker(process, port, controller_port)


def stop(process: RunningProcess) -> None:
    """Ends the broker. It writes its clean-shutdown mark if it has the time."""
    process.stop((signal.SIGTERM, STOP_SECONDS))


def find(home: Path) -> Broker | None:
    """The running broker of this home, or None. It is found by its command line, even if the state file is lost."""
    properties = home / "kafka" / "server.properties"
    process = own_processes.find(str(properties), name="java")
    if process is None or not properties.exists():
        return None
    values = dict(line.split("=", 1) for line in properties.read_text().splitlines() if "=" in line)
    port, controller_port = (part.rpartition(":")[2] for part in values["listeners"].split(","))
    return Broker(process, int(port), int(controller_port))


def answers(port: int) -> bool:
    """True if a broker there answers an ApiVersions request. It listens before it serves."""
    request = struct.pack(">hhih", 18, 0, 1, -1)
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        return len(connection.recv(8)) == 8
    return False


def _write_properties(path: Path, port: int, controller_port: int, settings: Mapping[str, str]) -> None:
    values = {
        **_PROPERTIES,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "log.dirs": "data",  # relative to the working folder, since a comma in the path would mean two folders
        **settings,
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))


def _java(java: Path, jars: tuple[Path, ...], logs: Path) -> list[str]:
    """The JVM's command line. Kafka's jars log through slf4j, and its binding to log4j comes from pyspark."""
    spark = jars_of_pyspark()
    binding = [*spark.glob("slf4j-api-2*.jar"), *spark.glob("log4j-slf4j2-impl-*.jar")]
    classpath = [*binding, *(jar for jar in jars if not jar.name.startswith("slf4j-api"))]
    return [
        str(java / "bin" / "java"),
        "-Xms128m",
        "-Xmx768m",
        "-XX:+UseSerialGC",  # a broker's heap is small and short-lived, and G1 would use more threads
        "-XX:-UsePerfData",
        f"-Dlog4j2.configurationFile={LOG4J2.as_uri()}",
        f"-Dlamina.log={logs / 'kafka.log'}",
        "-Dlamina.level=INFO",
        "-cp",
        ":".join(map(str, classpath)),
    ]


def _format(folder: Path, properties: Path, command: list[str]) -> None:
    """Gives an empty data folder its cluster id. A folder that has one is left unchanged."""
    if (folder / "data" / "meta.properties").exists():
        return
    cluster = (
        base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
    )  # '-' would be an option
    tool = [*command, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties), "--ignore-formatted"]
    answer = subprocess.run(tool, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if answer.returncode != 0:
        raise LaminaError(
            "Kafka's data folder could not be made",
            evidence=(answer.stderr or answer.stdout).strip()[-600:],
            way_out=f"{folder} must be writable and have 100 MB free.",
        )
