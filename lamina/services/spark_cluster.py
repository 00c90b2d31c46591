"""A Spark standalone master and a worker from pyspark's own jars: a real cluster on one machine, for the tests.

What runs on it proves that nothing depends on the driver's files: the jars are shipped, and the Python workers are
started by another process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from lamina.services.java import QUICK_COMPILER, java_home
from lamina.services.processes import Running, free_port, listening, spawn, tail
from view_algebra.errors import LaminaError

START_SECONDS = 180.0


@contextlib.contextmanager
def spark_cluster(home: Path, *, cores: int = 2, memory: str = "1g") -> Iterator[str]:
    """The URL of a master with one registered worker of so many cores; both end with the block."""
    folder = home / "spark-cluster"
    logs = home / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    logs.mkdir(parents=True, exist_ok=True)
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    started: list[Running] = []
    try:
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port())]
        started.append(_start(home, logs, folder, "master", arguments))
        _wait(lambda: listening(port), started[-1], logs / "spark-master.log")
        arguments = ["--host", "127.0.0.1", "--cores", str(cores), "--memory", memory, "--work-dir", str(folder)]
        started.append(_start(home, logs, folder, "worker", [*arguments, "--webui-port", str(free_port()), url]))
        registered = logs / "spark-worker.log"
        _wait(lambda: "Successfully registered" in tail(registered, 50), started[-1], registered)
        yield url
    finally:
        for process in reversed(started):
            process.stop((signal.SIGTERM, 10.0))


def _start(home: Path, logs: Path, folder: Path, role: str, arguments: list[str]) -> Running:
    package = find_spec("pyspark")
    assert package is not None
    assert package.origin is not None
    spark = Path(package.origin).parent
    log = logs / f"spark-{role}.log"
    log.unlink(missing_ok=True)
    log4j2 = Path(__file__).with_name("log4j2.properties").as_uri()
    main = f"org.apache.spark.deploy.{role}.{role.capitalize()}"
    marker = f"-Dlamina.log={log}"
    command = [str(java_home(home) / "bin" / "java"), "-Xmx512m", QUICK_COMPILER]
    command += [f"-Dlog4j2.configurationFile={log4j2}", marker, "-Dlamina.level=INFO"]
    command += ["-cp", str(spark / "jars" / "*"), main, *arguments]
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home(home)),
        "SPARK_HOME": str(spark),
        "SPARK_CONF_DIR": str(folder / "conf"),  # not there
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_SCALA_VERSION": "2.13",  # what the start scripts set; without it executors look for a build of Spark
    }
    process, _ = spawn(command, log=logs / f"spark-{role}.out", marker=marker, cwd=folder, environment=environment)
    return process


def _wait(ready: Callable[[], bool], process: Running, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if not process.alive() or time.monotonic() > deadline:
            raise LaminaError(
                "the Spark cluster did not start", evidence=tail(log, 5), way_out=f"The whole log is {log}."
            )
        time.sleep(0.05)
