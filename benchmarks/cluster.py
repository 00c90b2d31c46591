"""Every step on a Spark cluster of two workers with the master log in object storage, and while a worker is killed.

The cluster is a standalone master and two workers of one core each, from pyspark's own jars. The store is the embedded
one, and drivers and workers get its keys from their environment. Each step is the command that an operator runs. It
runs twice: once undisturbed, and once while a worker is killed halfway, together with its executors, as if its machine
failed. The worker is restarted after the step. No command may fail, and every view must equal its SELECT in the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import psutil
import pyspark

from benchmarks import events
from benchmarks.figures import Figure, benchmark
from benchmarks.running import analyst, deployment, environment_for, folder_of
from lamina.operations import applying
from lamina.operations.deployment import Deployment
from lamina.services.embedded import EmbeddedServices
from lamina.services.java import java_home
from lamina.services.own_processes import free_port, tail
from lamina.terminal.render import Output
from view_algebra.errors import LaminaError

WORKERS = 2

PATIENCE = 300.0
"""Seconds until a worker is known to the master, on a busy machine."""

LOOK_EVERY = 0.2


def with_one_more(aggregate: str) -> dict[str, str]:
    """The catalog with one more aggregate in all views, each of which is then computed from every record."""
    views = {
        name: sql.replace("count(*) AS events", f"count(*) AS events, {aggregate}")
        for name, sql in events.VIEWS.items()
    }
    return events.catalog(**views)


@dataclass
class Cluster:
    """Spark's master and workers as processes. `environment` is that of drivers and workers, including the store's
    keys.
    """

    home: Path
    environment: Mapping[str, str]
    port: int = field(default_factory=free_port)
    page: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def master(self) -> str:
        """Its address for LAMINA_SPARK_MASTER."""
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the master and all workers, and returns when they know each other."""
        addresses = ("--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(self.page))
        self._spawn("master", "org.apache.spark.deploy.master.Master", *addresses)
        for number in range(WORKERS):
            self.start_worker(number)
        self.wait_for(lambda: len(self.workers()) == WORKERS, "all workers are known to the master")

    def start_worker(self, number: int) -> None:
        """Starts a worker of one core."""
        folder = self.home / f"worker-{number}"
        room = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder), "--host", "127.0.0.1")
        self._spawn(f"worker {number}", "org.apache.spark.deploy.worker.Worker", *room, self.master)

    def kill_worker(self, number: int) -> None:
        """Kills a worker and its executors at once."""
        worker = self.processes.pop(f"worker {number}")
        executors = psutil.Process(worker.pid).children(recursive=True)
        for process in (worker, *executors):
            process.kill()
        worker.wait()

    def workers(self) -> list[dict[str, Any]]:
        """The workers that the master believes to live."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.page}/json/", timeout=10) as answer:
            listed: list[dict[str, Any]] = json.load(answer)["workers"]
        return [worker for worker in listed if worker["state"] == "ALIVE"]

    def tasks(self) -> int:
        """The number of tasks that executors have finished since the cluster's start, by their logs."""
        return sum(log.read_text().count(": Finished task ") for log in self.home.glob("worker-*/app-*/*/stderr"))

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Returns when the condition holds. Raises LaminaError with the master's log if it does not in time."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if condition():
                    return
            except OSError:
                pass  # the master does not listen yet
            if time.monotonic() > deadline:
                raise LaminaError(f"Waited in vain until {what}", evidence=tail(self.home / "logs" / "master.out", 20))
            time.sleep(LOOK_EVERY)

    def stop(self) -> None:
        """Ends all processes."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(30)

    def _spawn(self, name: str, *words: str) -> None:
        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        with (self.home / "logs" / f"{name.replace(' ', '-')}.out").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [str(program), *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(self.environment),
            )


@contextmanager
def cluster(opened: Deployment) -> Iterator[Cluster]:
    """A cluster whose drivers and workers reach the deployment's object storage as those of a company do."""
    store = EmbeddedServices(opened.settings.home).addresses().store
    assert store is not None
    java = java_home(opened.settings.home)
    environment = environment_for(opened) | {
        "AWS_ACCESS_KEY_ID": store.options["s3.access-key-id"],
        "AWS_SECRET_ACCESS_KEY": store.options["s3.secret-access-key"],
        "AWS_REGION": store.options["client.region"],
        "AWS_ENDPOINT_URL_S3": store.options["s3.endpoint"],
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    running = Cluster(opened.settings.home, environment)
    running.environment = environment | {
        "LAMINA_SPARK_MASTER": running.master,
        "LAMINA_WAREHOUSE": store.warehouse,
        "LAMINA_WAREHOUSE_OPTIONS": "s3.path-style-access=true",
    }
    try:
        running.start()
        yield running
    finally:
        running.stop()


@dataclass(frozen=True)
class ClusterStep:
    """A command over a number of records, and the seconds that it took.

    `tasks` is the number of finished tasks. `killed` is the second in which a worker was killed, or None.
    """

    name: str
    records: int
    seconds: float
    tasks: int
    killed: float | None = None

    @property
    def rate(self) -> float:
        """Records a second, from the start of the command to its end."""
        return self.records / self.seconds


@dataclass
class ClusterSteps:
    """Runs each step undisturbed, and then with a worker that is killed halfway."""

    opened: Deployment
    cluster: Cluster
    output: Output
    done: list[ClusterStep] = field(default_factory=list)

    def run(self, name: str, records: int, *words: str) -> ClusterStep:
        """Runs a command."""
        return self._run(name, records, words, None)

    def run_and_kill_worker(self, name: str, records: int, *words: str) -> ClusterStep:
        """Runs a command, and kills a worker after half as many tasks as the command took undisturbed."""
        before = next(step for step in self.done if step.name == name)
        return self._run(name, records, words, before.tasks // 2)

    def _run(self, name: str, records: int, words: tuple[str, ...], halfway: int | None) -> ClusterStep:
        log, before, killed = self.cluster.home / "logs" / "step.out", self.cluster.tasks(), None
        began = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "lamina", *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(self.cluster.environment),
            )
        try:
            while halfway is not None and killed is None and process.poll() is None:
                if self.cluster.tasks() - before > halfway:
                    self.cluster.kill_worker(victim := len(self.done) % WORKERS)
                    killed = time.monotonic() - began
                else:
                    time.sleep(LOOK_EVERY)
            code = process.wait()
            ended = time.monotonic()
        finally:
            process.kill()  # if we are interrupted
            process.wait()
        if code != 0:
            raise LaminaError(f"`lamina {' '.join(words)}` ended with {code}", evidence=tail(log, 40))
        if killed is not None:
            self.cluster.start_worker(victim)
        self.cluster.wait_for(lambda: len(self.cluster.workers()) == WORKERS, "all workers are back")
        step = ClusterStep(name, records, ended - began, self.cluster.tasks() - before, killed)
        how = f", a worker killed after {killed:.1f} s" if killed else ""
        self.output.tell(f"{name}: {records:,} records, {step.tasks} tasks in {step.seconds:.1f} s{how}")
        self.done.append(step)
        return step

    def counted(self) -> int:
        """The records that readers see in a view."""
        with analyst(self.opened) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT coalesce(sum(events), 0) FROM analytics.places")
            (count,) = cursor.fetchone() or (0,)
            return int(count)


@click.command()
@click.option("--records", default=2_000_000, show_default=True)
@benchmark
def main(output: Output, records: int) -> list[Figure]:
    """Every step on a cluster with object storage, and while a worker is killed."""
    half = records // 2 // events.PARTITIONS * events.PARTITIONS
    with deployment(output, store=True) as opened, cluster(opened) as running:
        steps = ClusterSteps(opened, running, output)
        applying.apply(opened, events.catalog(**events.VIEWS))
        missing = []
        for run, held in ((steps.run, half), (steps.run_and_kill_worker, 2 * half)):
            events.send_a_day(opened, half)
            run("stream", half, "speed", "--until-caught-up")
            missing.append(held - steps.counted())
            run("archive", half, "archive")
        for run in (steps.run, steps.run_and_kill_worker):
            run("rebuild", 2 * half, "rebuild")
        for run, aggregate in ((steps.run, "max(seq) AS newest"), (steps.run_and_kill_worker, "min(seq) AS oldest")):
            with folder_of(with_one_more(aggregate)) as folder:
                run("apply", 2 * half, "apply", "--catalog", str(folder), "--allow-break")
        for run in (steps.run, steps.run_and_kill_worker):
            run("check", 2 * half, "check")
        missing.append(2 * half - steps.counted())
    return [
        *(
            Figure(f"{step.name}, {'a worker killed' if step.killed else 'undisturbed'}", step.rate, "records/s")
            for step in steps.done
        ),
        Figure(
            "steps in which a worker was killed", sum(step.killed is not None for step in steps.done), "", at_least=5
        ),
        Figure("records that were missing or too many", sum(map(abs, missing)), "", at_most=0),
        Figure("load average at the end", os.getloadavg()[0], ""),
    ]


if __name__ == "__main__":
    main()
