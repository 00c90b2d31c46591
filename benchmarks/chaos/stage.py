"""The stage of a run: the services, and Lamina's processes over them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psutil
import psycopg2
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from benchmarks import running
from benchmarks.chaos.chaos_oracle import ChaosOracle
from benchmarks.chaos.parcels import RegistryServer
from benchmarks.chaos.producer import Producer, patiently
from benchmarks.chaos.world import World
from lamina.configuration.settings import Settings
from lamina.services.embedded import EmbeddedServices
from lamina.services.java import QUICK_COMPILER
from master_log.kafka.brokers import Brokers
from master_log.offsets import Offsets
from view_algebra.errors import LaminaError

PATIENCE = 600.0
"""Seconds after which views that do not move are a failure. They may wait for a leap, which has a low priority."""

LONGEST = 900.0
"""Seconds after which a command counts as hanging. A rebuild has the lowest priority of all."""

NAME = "chaos"
"""Application name of our own connections, which no fault ends."""

ERROR = re.compile(r"^(?:error: (.*)|(\w+(?:\.\w+)*(?:Error|Exception)\b.*))$")


@dataclass(frozen=True)
class Process:
    """A running command of Lamina, and the file of its output."""

    what: str
    child: subprocess.Popen[bytes]
    log: Path

    def jvm(self) -> psutil.Process | None:
        """The JVM of its Spark, or None until it has one."""
        with suppress(psutil.Error):
            for child in psutil.Process(self.child.pid).children(recursive=True):
                with suppress(psutil.Error):
                    if "org.apache.spark.deploy.SparkSubmit" in child.cmdline():
                        return child
        return None

    @property
    def running(self) -> bool:
        """True until it has ended."""
        return self.child.poll() is None

    def with_jvm(self) -> list[psutil.Process]:
        """The process and its JVM."""
        processes = [psutil.Process(self.child.pid)] if self.running else []
        jvm = self.jvm()
        return [*processes, jvm] if jvm else processes

    def kill(self) -> None:
        """Ends the process and its JVM (kill -9), like a machine that goes down."""
        for process in self.with_jvm():
            with suppress(psutil.Error):
                process.kill()
        self.child.wait(30)

    def outcome(self) -> str:
        """The way it ended: `done`, `killed`, or its error's first line."""
        code = self.child.wait()
        if code in (0, -signal.SIGKILL):
            return "done" if code == 0 else "killed"
        errors = [match for line in self.output() if (match := ERROR.match(line))]
        return next((first or other for first, other in (f.groups() for f in errors)), f"exit code {code}")[:160]

    def output(self) -> list[str]:
        """The lines of its output."""
        return self.log.read_text(errors="replace").splitlines()

    def careless(self) -> bool:
        """True if it ended with a traceback, which no operator should see."""
        return self.child.poll() not in (0, -signal.SIGKILL) and any(
            line.startswith("Traceback (most recent") for line in self.output()
        )


@dataclass
class Stage:
    """Everything that a fault may touch.

    environment: variables of Lamina's commands
    services: None if they are somebody else's and must not be stopped
    registry: the registry of parcels
    disks: small disks, by folder
    programs: programs that replace a command
    pace: duration of a fault, as a multiple of its usual one
    """

    settings: Settings
    world: World
    folder: Path
    environment: Mapping[str, str]
    services: EmbeddedServices | None = None
    registry: RegistryServer | None = None
    disks: Mapping[str, Path] = field(default_factory=dict)
    programs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pace: float = 1.0
    tell: Callable[[str], None] = print
    oracle: ChaosOracle = field(default_factory=ChaosOracle)
    ends: Counter[str] = field(default_factory=Counter)
    careless: list[str] = field(default_factory=list)
    alarms: set[str] = field(default_factory=set)
    hostile: list[str] = field(default_factory=list)
    batch: threading.Lock = field(default_factory=threading.Lock)
    """Held during a rebuild, an archive run or an apply, and by faults that cannot happen during one."""
    reading: threading.Lock = field(default_factory=threading.Lock)
    """Held by a reader from its snapshot to the end of its comparison."""
    _speed: Process | None = None
    _holding: bool = True
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _started: list[Process] = field(default_factory=list)

    @cached_property
    def brokers(self) -> Brokers:
        """Kafka, as Lamina's own commands see it."""
        return Brokers(self.settings.kafka, self.settings.login)

    @cached_property
    def producer(self) -> Producer:
        """The sender of all records."""
        return Producer(self.settings.kafka, self.world, self.oracle)

    @property
    def log_is_in_s3(self) -> bool:
        """True if the master log is in an object storage."""
        return self.settings.warehouse.startswith("s3:")

    @property
    def warehouse(self) -> Path:
        """The folder of the master log, which may be inside that of the object storage."""
        path = self.settings.warehouse.removeprefix("s3://")
        return self.settings.home / "s3" / "data" / path if self.log_is_in_s3 else Path(path)

    @contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """Kafka, as its operator sees it."""
        client = patiently(lambda: KafkaAdminClient(bootstrap_servers=self.settings.kafka))
        try:
            yield client
        finally:
            client.close()

    def connect(self) -> psycopg2.extensions.connection:
        """A connection of ours, with a transaction per statement."""
        connection = psycopg2.connect(
            self.settings.postgres, application_name=NAME, options="-c timezone=UTC -c extra_float_digits=1"
        )
        connection.autocommit = True
        return connection

    def query(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """The rows of one statement."""
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement, values)
                return list(cursor.fetchall())
        finally:
            connection.close()

    # Commands of Lamina

    def start(self, *arguments: str) -> Process:
        """Starts a command."""
        with self._lock:
            number = len(self._started)
            log = self.folder / "output" / f"{number:04}-{'-'.join(arguments[:2]).replace('/', '')}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as out:
                program = self.programs.get(arguments[0], (sys.executable, "-m", "lamina", arguments[0]))
                child = subprocess.Popen(
                    [*program, *arguments[1:]],
                    env=dict(self.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            process = Process(arguments[0], child, log)
            self._started.append(process)
            return process

    def end(self, process: Process, timeout: float = LONGEST) -> int:
        """Waits until a command has ended, notes the way it ended, and returns its exit code. A hanging command is a
        failure.
        """
        try:
            code = process.child.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise LaminaError(
                f"lamina {process.what} hung for {timeout:.0f} s", evidence="\n".join(process.output()[-5:])
            ) from None
        self.ends[f"{process.what}: {process.outcome()}"] += 1
        if process.careless():
            self.careless.append(str(process.log))
        return code

    def lamina(self, *arguments: str) -> int:
        """Runs a command to its end, and returns its exit code."""
        return self.end(self.start(*arguments))

    def insist(self, *arguments: str) -> None:
        """Runs a command until it succeeds, since every obstacle goes away."""
        deadline = time.monotonic() + LONGEST
        while self.lamina(*arguments) != 0:
            if time.monotonic() > deadline:
                raise LaminaError(f"lamina {' '.join(arguments)} never succeeds", evidence=str(self._started[-1].log))
            time.sleep(1)

    def write_catalog(self) -> Path:
        """The current catalog, as files."""
        folder = self.folder / "catalog"
        folder.mkdir(exist_ok=True)
        files = self.world.files
        for old in folder.iterdir():
            if old.name not in files:
                old.unlink()
        for name, sql in files.items():
            (folder / name).write_text(sql)
        self.oracle.declare(self.world.sources.values())
        return folder

    # The speed layer

    def supervise(self, stopping: threading.Event) -> None:
        """Keeps a speed layer running, as a service manager does."""
        while not stopping.wait(0.1):
            with self._lock:
                if self._speed is not None and not self._speed.running:
                    self.end(self._speed)
                    self._speed = None
                if self._speed is None and not self._holding:
                    self._speed = self.start("speed", "--max-records", "5000")
        self.hold()

    @property
    def speed(self) -> Process:
        """The running speed layer."""
        self.until(lambda: self._speed is not None and self._speed.running, "a speed layer runs")
        assert self._speed is not None
        return self._speed

    def start_second_speed(self) -> Process:
        """Starts another speed layer, which is kept running from now on. Returns the one before, which still runs."""
        first = self.speed
        with self._lock:
            self._speed = self.start("speed", "--max-records", "3000")
        return first

    def hold(self) -> None:
        """Ends the speed layer in order. None is started until `go`."""
        with self._lock:
            self._holding = True
            process, self._speed = self._speed, None
        if process is not None:
            process.child.terminate()
            self.end(process)

    def go(self) -> None:
        """Lets a speed layer run."""
        self._holding = False

    # Waiting

    def wait(self, seconds: float) -> None:
        """Lets a fault last for this many seconds, at the usual pace."""
        time.sleep(seconds * self.pace)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Returns once a condition holds. Asks again while a service is down."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(psycopg2.Error, LaminaError, KafkaError, OSError):
                if condition():
                    return
            if time.monotonic() > deadline:
                raise LaminaError(f"Waited {PATIENCE:.0f} s in vain until {what}", evidence=self.report())
            time.sleep(0.25)

    def report(self) -> str:
        """The output that an operator would look at first."""
        done = subprocess.run(
            [sys.executable, "-m", "lamina", "status"],
            env=dict(self.environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        speed = self._speed.output()[-5:] if self._speed else ["no speed layer runs"]
        return "\n".join([done.stdout, done.stderr, *speed])

    def await_answers(self) -> None:
        """Returns once Kafka knows all topics and Postgres answers."""
        self.until(lambda: bool(self._ends() and self.query("SELECT 1")), "Kafka and Postgres answer")

    def _ends(self) -> dict[str, Offsets]:
        return {name: self.brokers.latest(source.topic) for name, source in self.world.sources.items()}

    def await_counted(self) -> None:
        """Returns once every record that Kafka holds now is counted, for every source that is declared now."""
        ends: dict[str, Offsets] = {}

        def ask() -> bool:
            ends.update(self._ends())
            return True

        self.until(ask, "Kafka says where its topics end")
        self.until(lambda: self._reached(ends), f"progress reaches {ends}")

    def _reached(self, ends: Mapping[str, Offsets]) -> bool:
        rows = self.query("SELECT query, partition, next_offset FROM lamina.progress")
        reached = {(name, partition): offset for name, partition, offset in rows}
        return all(
            int(str(reached.get((name, at.partition), 0))) >= end for name in ends for at, end in ends[name].items()
        )

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Stops sending within the block, after everything that was sent is counted, here and by Lamina."""
        self.producer.paused.set()
        try:
            time.sleep(1.0)  # records on their way arrive
            self.await_counted()
            for name, source in self.world.sources.items():
                ends = self.brokers.latest(source.topic)
                self.oracle.await_reached({(name, at.partition): (0, end) for at, end in ends.items()})
            yield
        finally:
            self.producer.paused.clear()

    def close(self) -> None:
        """Ends every process that was started here."""
        for process in self._started:
            process.kill()
        self.brokers.close()


def environment(settings: Settings) -> dict[str, str]:
    """The environment of Lamina's commands, without any variables of ours."""
    return running.environment(
        LAMINA_POSTGRES=settings.postgres,
        LAMINA_ANALYST=settings.analyst or "",
        LAMINA_KAFKA=settings.kafka,
        LAMINA_WAREHOUSE=settings.warehouse,
        LAMINA_WAREHOUSE_OPTIONS=",".join(f"{name}={value}" for name, value in settings.warehouse_options.items()),
        LAMINA_SCHEMA_REGISTRY=",".join(address.url for address in settings.schema_registry),
        LAMINA_HOME=str(settings.home),
        LAMINA_SPARK_MASTER=settings.spark_master,
        SPARK_SUBMIT_OPTS=f"{QUICK_COMPILER} -XX:+UseSerialGC",  # these JVMs are killed within minutes
        PYTHONPATH=str(Path(__file__).resolve().parents[2]),
    )


def written(value: object) -> str:
    """A value as JSON, with unknown types as texts."""
    return json.dumps(value, indent=1, default=str, ensure_ascii=False)
