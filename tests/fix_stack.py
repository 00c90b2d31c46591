"""The services of docker-compose.yml as processes of this machine: the same commands, environment and health checks.

What differs is what a container is: where a service listens and where its folders are. `Stack` translates these, and
nothing else, so what compose would run is run as it stands there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import pyspark
import pytest
import yaml

from lamina.services import postgres
from lamina.services.java import QUICK_COMPILER, java_home
from lamina.services.own_processes import free_port, tail
from tests.fix_catalogs import CATALOG, event
from tests.fix_lamina import Result
from tests.fix_services import REPOSITORY, RUNS, Services, new_home, remove_home

COMPOSE = REPOSITORY / "docker-compose.yml"
PROGRAMS = Path(sys.executable).parent
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")
"""`${NAME}`, `${NAME:-default}` and `${NAME:?what to do}`: all that docker-compose.yml uses."""

HELD = """
    CREATE VIEW totals TBLPROPERTIES ('on_difference' = 'hold') AS
    SELECT count(*) AS events, sum(n) AS n, sum(price) AS price FROM events;
"""
"""A view that is not handed over when its proof finds a difference."""


PATIENCE = 900.0
"""Seconds: two cores run Kafka, two Postgres, Airflow and up to eight JVMs of Spark, whatever else they do."""


class NotSet(Exception):
    """A variable without a default is not set. Compose ends with this message."""


def interpolated(text: str, variables: Mapping[str, str]) -> str:
    """The text as compose reads it."""

    def value(variable: re.Match[str]) -> str:
        name, how, rest = variable.groups()
        if variables.get(name):
            return variables[name]
        if how == "?":
            raise NotSet(f"{name}: {rest}")
        return rest or ""

    return VARIABLE.sub(value, text).replace("$$", "$")


def services_of(variables: Mapping[str, str]) -> dict[str, Any]:
    """The services of docker-compose.yml. As in compose, variables are replaced after YAML is parsed."""

    def replaced(value: Any) -> Any:
        match value:
            case str():
                return interpolated(value, variables)
            case list():
                return [replaced(item) for item in value]
            case dict():
                return {key: replaced(item) for key, item in value.items()}
        return value

    services: dict[str, Any] = replaced(yaml.safe_load(COMPOSE.read_text())["services"])
    return services


def broker_properties(environment: Mapping[str, str]) -> dict[str, str]:
    """The broker's settings, as the image makes them of its environment: KAFKA_LOG_DIRS is log.dirs, ___ a dash."""
    words = {name.removeprefix("KAFKA_").lower().replace("___", "-"): value for name, value in environment.items()}
    return {name.replace("_", "."): value for name, value in words.items()}


def image_environment() -> dict[str, str]:
    """The environment that the Dockerfile sets for every container."""
    lines = [line.removeprefix("ENV ") for line in (REPOSITORY / "Dockerfile").read_text().splitlines()]
    pairs = [pair for line in lines if re.match(r"[A-Z_]+=", line) for pair in line.split()]
    return dict(pair.split("=", 1) for pair in pairs)


@dataclass
class Stack:
    """The services, placed on this machine. `places` translates addresses and folders, `words` whole words."""

    home: Path
    services: Mapping[str, Any]
    places: Mapping[str, str]
    words: Mapping[str, Mapping[str, str]]
    extra: Mapping[str, str]
    topics: str
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def environment(self, service: str) -> dict[str, str]:
        """The environment of a service's container, over the one that a process of this machine needs."""
        here = {name: value for name, value in os.environ.items() if not name.startswith(("LAMINA_", "AIRFLOW_"))}
        image = image_environment() if self.services[service]["image"] == "lamina" else {}
        declared = {**image, **self.services[service].get("environment", {})}
        return {
            **here,
            "PATH": f"{PROGRAMS}:{here['PATH']}",
            "SPARK_HOME": str(Path(pyspark.__file__).parent),  # Spark's own search for it stumbles over a space
            **{name: self._placed(service, str(value)) for name, value in declared.items()},
            **self.extra,
        }

    def command(self, service: str) -> list[str]:
        """The command of its container."""
        return [self._placed(service, str(word)) for word in self.services[service]["command"]]

    def health(self, service: str) -> list[str]:
        """The command of its health check."""
        kind, *words = self.services[service]["healthcheck"]["test"]
        assert kind == "CMD"
        return [self._placed(service, str(word)) for word in words]

    def _placed(self, service: str, text: str) -> str:
        if text in self.words.get(service, {}):
            return self.words[service][text]
        for place, here in self.places.items():
            text = text.replace(place, here)
        return text

    def run(self, service: str, *words: str, code: int | None = 0, stdin: str | None = None, **over: str) -> Result:
        """Runs words to their end, as in the container. Without words, runs the service's own command."""
        done = subprocess.run(
            words or self.command(service),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            cwd=self.home,
            env={**self.environment(service), **over},
            check=False,
        )
        assert code is None or done.returncode == code, (
            f"{words or service} ended with {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def log(self, service: str) -> Path:
        """The file that holds a service's output."""
        return self.home / "logs" / f"{service}.out"

    def start(self, service: str, *words: str, **over: str) -> None:
        """Starts a service, which goes on."""
        with self.log(service).open("wb") as output:
            self.processes[service] = subprocess.Popen(
                words or self.command(service),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self.home,
                env={**self.environment(service), **over},
            )

    def healthy(self, service: str) -> None:
        """Returns when a started service is healthy."""
        self.until(
            lambda: self.run(service, *self.health(service), code=None).code == 0, f"{service} is healthy", service
        )

    def until(self, condition: Callable[[], bool], what: str, service: str) -> None:
        """Returns when the condition holds. Fails with the end of the service's log if the service has ended."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.processes[service].poll() is None, f"{service} ended\n{tail(self.log(service), 60)}"
            assert time.monotonic() < deadline, f"waited in vain until {what}\n{tail(self.log(service), 60)}"
            time.sleep(0.1)

    def descendants(self, service: str) -> list[psutil.Process]:
        """The processes that a started service has started."""
        try:
            return list(psutil.Process(self.processes[service].pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return []

    def stop(self, service: str, *, parts: bool = False) -> list[psutil.Process]:
        """Ends a started service as compose does. Ends and returns the processes that it leaves behind.

        With `parts`, every process that it started is a service of its own, and is signalled first.
        """
        below = self.descendants(service)
        process = self.processes.pop(service)
        for part in psutil.Process(process.pid).children() if parts else ():
            part.terminate()
        if parts:
            _gone(below)
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        left = _gone(below)
        _end(left)
        return left

    def stop_all(self) -> None:
        """Ends every started service."""
        for service in list(self.processes):
            self.stop(service)

    def left(self) -> list[psutil.Process]:
        """The processes of this stack that run: all carry its LAMINA_HOME, Postgres (another user's) excepted."""
        return _processes(lambda home: home == str(self.home))

    def send(self, numbers: range) -> None:
        """Records of the catalog's source, as a file that is ingested."""
        lines = "\n".join(json.dumps(event(number)) for number in numbers)
        self.run("catalog", "lamina", "ingest", "events", "-", "--format", "jsonl", stdin=lines)

    def progress(self) -> int:
        """The offsets, added up, below which every record is in Postgres."""
        ((reached,),) = self.query("lamina", "SELECT coalesce(sum(next_offset), 0) FROM lamina.progress")
        return int(reached)

    def query(self, database: str, query: str) -> list[tuple[Any, ...]]:
        """The rows of a statement that a database's owner runs."""
        role = "AIRFLOW_DATABASE_PASSWORD" if database == "airflow" else "LAMINA_PASSWORD"
        password = self.services["postgres"]["environment"][role]
        address = self.places["postgres:5432"]
        connection = psycopg2.connect(f"postgresql://{database}:{password}@{address}/{database}")
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(query)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()


def _processes(of: Callable[[str], bool]) -> list[psutil.Process]:
    processes = []
    for process in psutil.process_iter():
        try:
            if of(process.environ().get("LAMINA_HOME", "")) and process.pid != os.getpid():
                processes.append(process)
        except psutil.Error:
            continue
    return processes


def _gone(processes: list[psutil.Process], patience: float = 30.0) -> list[psutil.Process]:
    """Waits until the processes have ended. Returns those that have not. A zombie has ended."""
    deadline = time.monotonic() + patience
    while left := [process for process in processes if process.is_running() and not _ended(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return left


def _ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(processes, timeout=15)


@pytest.fixture(scope="session")
def variables() -> dict[str, str]:
    """The variables of a `.env` that deploy/new_env.py writes."""
    written = subprocess.run(
        [sys.executable, REPOSITORY / "deploy" / "new_env.py"], capture_output=True, text=True, check=True
    )
    lines = [line for line in written.stdout.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture(scope="session")
def postgres_of_stack(variables: dict[str, str], run_home: Path) -> Iterator[tuple[Path, int]]:
    """The home and the port of a Postgres with the roles and databases of the container's first start."""
    home = new_home("stack")
    port = postgres.start(home, port=None).port
    superuser = postgres.url(home, port, role="postgres", database="postgres")
    connection = psycopg2.connect(superuser)
    connection.autocommit = True
    with connection.cursor() as cursor:  # ours are not the deployment's
        cursor.execute("DROP DATABASE lamina")
        cursor.execute("DROP OWNED BY lamina")
        cursor.execute("DROP ROLE analyst")
        cursor.execute("DROP ROLE lamina")
    connection.close()
    mounted = [text.split(":") for text in services_of(variables)["postgres"]["volumes"]]
    scripts = {
        inside: REPOSITORY / outside for outside, inside, *_ in mounted if "/docker-entrypoint-initdb.d/" in inside
    }
    for _, script in sorted(scripts.items()):
        subprocess.run(
            [postgres._programs() / "psql", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--file", script, superuser],
            env={**os.environ, **services_of(variables)["postgres"]["environment"]},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    yield home, port
    remove_home(home)


@pytest.fixture(scope="session")
def stack(postgres_of_stack: tuple[Path, int], services: Services, variables: dict[str, str]) -> Iterator[Stack]:
    """The stack with nothing started but Kafka and Postgres."""
    home, port = postgres_of_stack
    _end(_processes(lambda of: of.startswith(str(RUNS / "stack-")) and not Path(of).exists()))
    java_home(home)
    topics = f"stack_{os.getpid()}"
    for name, sql in {**CATALOG, "totals": HELD}.items():
        (home / "catalog").mkdir(exist_ok=True)
        (home / "catalog" / f"{name}.sql").write_text(sql.replace("{topics}", topics))
    (home / "warehouse").mkdir()
    (home / "airflow").mkdir()
    (home / "recovery").mkdir()
    ports = {name: str(free_port()) for name in ("master", "master-page", "worker-page", "api", "scheduler", "console")}
    places = {
        "/opt/kafka/bin/kafka-configs.sh": str(kafka_configs(home / "kafka-configs.sh", home)),
        "kafka:9092": services.addresses.kafka,
        "postgres:5432": f"127.0.0.1:{port}",
        "spark-master:7077": f"127.0.0.1:{ports['master']}",
        "spark-master:8080": f"127.0.0.1:{ports['master-page']}",
        "localhost:8082": f"127.0.0.1:{ports['worker-page']}",
        "localhost:8765": f"127.0.0.1:{ports['console']}",
        "airflow-api-server:8080": f"127.0.0.1:{ports['api']}",
        "localhost:8974": f"127.0.0.1:{ports['scheduler']}",
        "/var/lib/airflow": str(home / "airflow"),
        "/var/lib/lamina": str(home),
        "/var/lib/spark": str(home / "recovery"),
        "/warehouse": str(home / "warehouse"),
        "/catalog": str(home / "catalog"),
        "/dashboards": str(home / "dashboards"),
        "/opt/lamina": str(REPOSITORY),
    }
    airflow = {"8080": ports["api"], "8974": ports["scheduler"]}
    words = {
        "spark-master": {"spark-master": "127.0.0.1", "7077": ports["master"], "8080": ports["master-page"]},
        "spark-worker": {"8082": ports["worker-page"]},
        "console": {"0.0.0.0:8765": f"127.0.0.1:{ports['console']}"},
        "postgres": {"pg_isready": str(postgres._programs() / "pg_isready")},
        **{f"airflow-{part}": airflow for part in ("init", "api-server", "scheduler", "dag-processor")},
    }
    extra = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        # A dozen JVMs of short lives: the compiler that is quick, not the one whose code is.
        "JAVA_TOOL_OPTIONS": f"{QUICK_COMPILER} -XX:+UseSerialGC",
        "PGPORT": str(port),
        # Ports that containers do not share, but processes of one machine do.
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
        # On a busy machine, importing Airflow alone takes longer than it lets a file take.
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "200",
        "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "250",
    }
    stack = Stack(home, services_of(variables), places, words, extra, topics)
    yield stack
    stack.stop_all()  # what was started by a fixture that failed
    _end(stack.left())


def kafka_configs(script: Path, home: Path, *options: str) -> Path:
    """Writes Kafka's script of this name over the jars of a home. Every call passes the options."""
    java = [str(java_home(home) / "bin" / "java"), "-cp", f"{home / 'jars' / 'kafka'}/*", "kafka.admin.ConfigCommand"]
    script.write_text(f'#!/bin/sh\nexec {shlex.join([*java, *options])} "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture
def running(stack: Stack) -> Iterator[Stack]:
    """The stack with Spark's cluster, a catalog, the speed layer, some records and Airflow's database."""
    stack.start("airflow-init")
    stack.start("spark-master")
    stack.healthy("spark-master")
    stack.start("spark-worker")
    stack.run("catalog")
    stack.start("speed")
    stack.send(range(5_000))
    stack.healthy("spark-worker")
    stack.healthy("speed")
    stack.until(lambda: stack.progress() >= 5_000, "the speed layer has caught up", "speed")
    assert stack.processes["airflow-init"].wait(PATIENCE) == 0, tail(stack.log("airflow-init"), 60)
    del stack.processes["airflow-init"]
    yield stack
    stack.stop_all()  # other tests need the processors
