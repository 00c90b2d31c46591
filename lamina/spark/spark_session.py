"""The Spark session of this process: its start, its priority and its end."""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from lamina.configuration.settings import Settings
from lamina.services.java import QUICK_COLLECTOR, QUICK_COMPILER, archive_options, java_home
from lamina.spark.spark_configuration import HIDDEN, combined, configuration, heap_of, iceberg_catalog
from serving_layer.postgres import log_catalog
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAVES_A_PROCESSOR = 5
"""Niceness from which on a JVM leaves one processor free."""

JVM_ENDS_SECONDS = 15
"""Seconds after which a JVM that was asked to end is killed."""


def session(
    settings: Settings,
    app_name: str,
    *,
    master: str | None = None,
    java_options: tuple[str, ...] = (),
    nice: int = 0,
    short_lived: bool = False,
) -> SparkSession:
    """The Spark session of this process. A second call returns the same session, whatever its arguments.

    `java_options` replace those that make its start quick. `nice` is the JVM's niceness (0 to 19, on Linux). From 5 on
    it also leaves one of several processors to others. `short_lived` is for few records: the JVM would take longer to
    make its code fast than fast code saves. Without a database in the settings, the session has no master log.

    Raises LaminaError if Java, the jars or Postgres are missing, or if the JVM ends while it starts.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if settings.postgres:
        log_catalog.ensure_schema(settings.postgres)
    master = master or settings.spark_master
    heap = heap_of(master, psutil.virtual_memory().total)
    try:
        options = java_options or tuple(archive_options(settings.home, "spark"))
        options += (*QUICK_COMPILER.split(), QUICK_COLLECTOR) if short_lived else ()
        defaults = configuration(settings, master, heap, options) | (
            iceberg_catalog(settings) if settings.postgres else {}
        )
        configured = combined(defaults, settings.spark_conf)
        _set_environment(settings.home)
        _start_jvm(configured, nice)
        with _own_interrupts():
            return SparkSession.builder.appName(app_name).config(map=dict(configured)).getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise LaminaError(
            f"Spark did not start with master {master} and {heap} of memory",
            evidence="\n".join(str(error).strip().splitlines()[:3]),
            way_out=f"Its log is {settings.home / 'logs' / 'spark.log'}.",
        ) from error


def cancel_jobs() -> None:
    """Cancels the jobs of this process's Spark, if it has one. Any thread may call it."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context  # noqa: SLF001 - getOrCreate() would start one
    if context is not None:
        context.cancelAllJobs()


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keeps PySpark from handling Ctrl-C. Its handler asks the JVM over the same connection on which an answer is
    awaited, and breaks that connection.
    """
    answer = signal.signal

    def but_for_interrupts(number: int, handler: Any) -> Any:
        return signal.getsignal(number) if number == signal.SIGINT else answer(number, handler)

    signal.signal = but_for_interrupts  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = answer


def _start_jvm(configuration: Mapping[str, str], nice: int) -> None:
    """Starts the JVM of this process, unless it has one.

    The JVM has its own session, because Linux shares processors between sessions first (`autogroup`, sched(7)), and
    only a whole session can have a lower priority. Passwords are not among its arguments, which anybody may list.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.accumulators import AccumulatorTCPServer
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:  # noqa: SLF001 - a stopped Spark has left its JVM
        return
    # PySpark and Py4J log a connection that Ctrl-C or our end has cut off, which helps nobody.
    setattr(AccumulatorTCPServer, "handle_error", lambda *_: None)  # noqa: B010 (it is a method to mypy)
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # the code that judges a failed micro-batch reports it
    secret = re.compile(HIDDEN).search
    shown = SparkConf().setAll([(key, value) for key, value in configuration.items() if not secret(key)])

    # On Linux, a process inherits the niceness and the allowed processors of the thread that starts it.
    def launch() -> Any:
        gateway = launch_gateway(shown, {"start_new_session": True})  # type: ignore[no-untyped-call]
        atexit.register(_end_jvm, gateway)
        with suppress(OSError):  # another system, or a Linux without autogroups
            Path(f"/proc/{gateway.proc.pid}/autogroup").write_text(str(nice))
        return gateway

    with ThreadPoolExecutor(1, initializer=_stand_back, initargs=(nice,)) as start:
        started = start.submit(launch)
        try:
            gateway = started.result()
        except KeyboardInterrupt:
            while not started.done():  # the JVM may not exist yet
                kill()
                wait([started], timeout=0.1)
            raise
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - the session's builder takes no gateway


def kill() -> None:
    """Ends this process's JVM and its Python workers at once, together with their computations.

    The JVM's exit code is left to PySpark, which otherwise never stops waiting for a JVM that is starting.
    """
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if "pyspark-shell" in child.cmdline():
                workers = child.children(recursive=True)
                for process in (child, *workers):
                    with suppress(psutil.Error):
                        process.kill()
                psutil.wait_procs(workers, timeout=1)


def forget() -> None:
    """Lets `session` start another JVM after this process's JVM was killed."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context, gateway = SparkContext._active_spark_context, SparkContext._gateway  # noqa: SLF001 (pyspark keeps one)
    if context is not None:
        context._jsc = None  # noqa: SLF001 (the JVM is gone)
        context.stop()
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001


def _stand_back(nice: int) -> None:
    """Lowers the priority of this thread. From 5 on it also leaves one processor to others."""
    if nice and sys.platform == "linux":
        os.nice(nice)
        allowed = sorted(os.sched_getaffinity(0))
        if nice >= LEAVES_A_PROCESSOR and len(allowed) > 1:
            os.sched_setaffinity(0, allowed[1:])


def _end_jvm(gateway: Any) -> None:
    """Waits for the JVM to end, so that nothing is left running. Kills it if it does not end in time."""
    try:
        end_in_order(gateway, JVM_ENDS_SECONDS)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()


def end_in_order(gateway: Any, within: float) -> None:
    """Waits for the JVM to end. Raises TimeoutExpired after `within` seconds."""
    with suppress(Exception):
        gateway.shutdown()
    with suppress(OSError):
        gateway.proc.stdin.close()  # the JVM ends when its stdin closes
    gateway.proc.wait(within)


def _set_environment(home: Path) -> None:
    """Sets the variables that Spark's start script and its Python workers read from the environment only."""
    from pyspark.logger import PySparkLogger

    for logger in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(logger).disabled = True  # they print every refused query, which we catch and explain
    os.environ["JAVA_HOME"] = str(java_home(home))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.pop("SPARK_HOME", None)  # otherwise another Spark's scripts would be started
    # Does not exist, so nobody else's file is read.
    os.environ["SPARK_CONF_DIR"] = str((home / "jars").resolve() / "conf")
