"""The only module that configures Spark, so that both layers mean the same by the same SQL.

ANSI mode is off and the session's time zone is UTC. The master log is the Iceberg catalog `lamina`, kept in Postgres in
its own schema, `iceberg`: Iceberg's JDBC catalog creates its two tables in the first schema of the search path, which
the URL's `currentSchema` names. Spark logs to a file.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil

from lamina.configuration.postgres_urls import Jdbc
from lamina.configuration.settings import Settings
from lamina.services import folders
from lamina.services.access import keep_private
from lamina.services.jars import jars
from lamina.services.java import QUICK_COLLECTOR, QUICK_COMPILER, archive_options, java_home
from lamina.spark import spark_settings
from master_log import stores
from serving_layer.postgres import log_catalog
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "lamina"
"""The Iceberg catalog that holds the master log. Its tables are `lamina.<namespace>.<table>`."""

LEAVES_A_PROCESSOR = 5
"""Niceness from which on a JVM leaves one processor free."""

JVM_ENDS_SECONDS = 15
"""Seconds after which a JVM that was asked to end is killed."""

THREAD_STACK = "-Xss16m"
"""Stack of each thread of a JVM. Memory is taken only as it is used.

Java's regular expressions recurse over a text if they repeat a group, and so does Spark over a deep value. The default
of 1 MB ends at some 2,500 characters of `(a|b)*`, this one at some 30,000 (benchmarks/worst_texts.py).
"""

REAPED_AFTER = "10s"
"""Time that an executor waits for a cancelled task. Every task checks for cancellation between two records."""

LOG4J2 = Path(__file__).parents[1] / "services" / "log4j2.properties"


def session(
    settings: Settings,
    app_name: str,
    *,
    master: str | None = None,
    java_options: tuple[str, ...] = (),
    nice: int = 0,
    short_lived: bool = False,
    log: bool = True,
) -> SparkSession:
    """The Spark session of this process. A second call returns the same session, whatever its arguments.

    `java_options` replace those that make its start quick. `nice` is the JVM's niceness (0 to 19, on Linux). From 5 on
    it also leaves one of several processors to others. `short_lived` is for few records: the JVM would take longer to
    make its code fast than fast code saves. `log` includes the master log. Without it, Postgres is not needed.

    Raises LaminaError if Java, the jars or Postgres are missing, or if the JVM ends while it starts.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if log:
        log_catalog.ensure_schema(settings.postgres)
    master = master or settings.spark_master
    heap = heap_of(master, psutil.virtual_memory().total)
    try:
        options = java_options or tuple(archive_options(settings.home, "spark"))
        options += (*QUICK_COMPILER.split(), QUICK_COLLECTOR) if short_lived else ()
        configuration = _configuration(settings, master, heap, options)
        if log:
            configuration |= iceberg_catalog(settings)
        configuration = spark_settings.combined(configuration, settings.spark_conf)
        _environment(settings.home)
        _start_jvm(configuration, nice)
        with _own_interrupts():
            return SparkSession.builder.appName(app_name).config(map=dict(configuration)).getOrCreate()
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


def sibling(spark: SparkSession, settings: Settings) -> SparkSession:
    """Another session of the same Spark for other settings' master log. It shares the JVM but no names."""
    log_catalog.ensure_schema(settings.postgres)
    other = spark.newSession()
    for key, value in iceberg_catalog(settings).items():
        other.conf.set(key, value)
    jvm = other.sparkContext._jvm  # noqa: SLF001 - PySpark has no other way to say which session is the active one
    assert jvm is not None
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(other._jsparkSession)  # noqa: SLF001
    return other


def iceberg_catalog(settings: Settings) -> dict[str, str]:
    """Configuration that makes the Iceberg catalog `lamina` out of a Postgres database and a warehouse.

    It may also be set on a running session, before the catalog's first use.
    """
    jdbc = Jdbc.of(settings.postgres, currentSchema=log_catalog.SCHEMA)
    prefix = f"spark.sql.catalog.{CATALOG}"
    files = {"io-impl": stores.FILES_BY_SCHEME} if stores.holds(settings.warehouse) else {}
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": jdbc.url,
        f"{prefix}.jdbc.user": jdbc.user,
        f"{prefix}.jdbc.password": jdbc.password,
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.warehouse": settings.warehouse,
        # An archive run reads another process's latest commit, which a cached table would hide.
        f"{prefix}.cache-enabled": "false",
        **{f"{prefix}.{name}": value for name, value in (files | dict(settings.warehouse_options)).items()},
    }


def _configuration(settings: Settings, master: str, heap: str, java_options: tuple[str, ...]) -> dict[str, str]:
    home = settings.home
    keep_private(home)
    groups = ("spark", "s3") if settings.warehouse.startswith("s3:") else ("spark",)
    files = [*(str(jar) for group in groups for jar in jars(home, group)), *settings.spark_jars]
    logs = home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    scratch = folders.of_this_process(home / "spark")
    local = master.startswith("local")
    login = settings.login.java_options() if settings.login else ()
    options = [
        f'"-Dlog4j2.configurationFile={LOG4J2.as_uri()}"',
        f'"-Dlamina.log={logs / "spark.log"}"',
        "-XX:-UsePerfData",
        "-Duser.timezone=UTC",
        # Files that libraries unpack, and leftovers of a killed JVM, are removed with the folder.
        f'"-Djava.io.tmpdir={scratch}"',
        THREAD_STACK,
        *(f'"{option}"' for option in java_options),
        *login,
    ]
    return {
        "spark.master": master,
        "spark.driver.memory": heap,
        # Fetched rows reach Python as a stream, part by part, so the heap holds one part of any result.
        "spark.driver.maxResultSize": "0",
        **({} if master == "yarn" else {"spark.driver.host": "127.0.0.1" if local else _own_address(master)}),
        "spark.driver.bindAddress": "127.0.0.1" if local else "0.0.0.0",  # noqa: S104 - executors connect to the driver
        "spark.driver.extraJavaOptions": " ".join(options),
        # Both are plain files: a local session has them on its class path and copies nothing, a cluster receives them.
        **({"spark.driver.extraClassPath": ":".join(files)} if local else {"spark.jars": ",".join(files)}),
        "spark.executor.extraJavaOptions": " ".join(("-Duser.timezone=UTC", THREAD_STACK, *login)),
        "spark.redaction.regex": spark_settings.HIDDEN,
        # A stack that overflows, or a heap that a task fills, fails only the task. By default Spark would halt the JVM,
        # and with it every query of every source.
        "spark.executor.killOnFatalError.depth": "0",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.pyspark.python": sys.executable,
        "spark.python.daemon.module": "batch_layer.python_workers",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.liveUpdate.period": "0",  # otherwise `speed_layer/jobs.py` sees a task ten seconds after its start
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",  # by default Spark fails on two entries of one name
        "spark.sql.shuffle.partitions": str(2 * _cores(master)),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # A micro-batch without records would be an empty job. Stateful operators advance with the next records.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # This rule drops a GROUP BY that only groups, if it is below another. Sessions are put together by such a GROUP
        # BY.
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAggregates",
        # If EXISTS about a struct's field is in a FILTER, this rule loses the field that it pruned before.
        "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
        # A cached micro-batch is read a few times, between its ids and its cells, and dropped.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # The optimizer would take minutes to derive constraints from a condition over thirty parsed columns.
        "spark.sql.constraintPropagation.enabled": "false",
        # Spark's default starts eight programs (chmod, readlink) for each of a micro-batch's two files. Its rename
        # promises more, but only for checkpoints that are read again, and ours never are.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # Hadoop's class for local files starts a `chmod` for each file, which takes longer than the file.
        **({"spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"} if local else {}),
        "spark.sql.streaming.stopTimeout": "60000",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
        # Many sources share one Spark. The cached consumer of a partition and the compiled code of a statement serve
        # the next micro-batch. Spark's own bounds of 64 and 100 suit one job.
        "spark.kafka.consumer.cache.capacity": "1000",
        # A consumer may have fetched 16 MB. A failed query's consumers are never used again, because its next run has a
        # new group.
        "spark.kafka.consumer.cache.timeout": "60s",
        "spark.kafka.consumer.cache.evictorThreadRunInterval": "5s",
        "spark.kafka.consumer.fetchedData.cache.timeout": "20s",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "5s",
        "spark.sql.codegen.cache.maxEntries": "1000",
        # A cancelled task that does not end is killed with its executor's process, and the worker starts another. A
        # local session has no such process: the speed layer ends its whole JVM.
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": REAPED_AFTER,
        # A large micro-batch of one stream must not delay a small one of another.
        "spark.scheduler.mode": "FAIR",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.cleaner.referenceTracking.cleanCheckpoints": "true",
    }


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
    secret = re.compile(spark_settings.HIDDEN).search
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
            kill()
            raise
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - the session's builder takes no gateway


def kill() -> None:
    """Ends this process's JVM and its Python workers at once, together with their computations."""
    doomed = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if "pyspark-shell" in child.cmdline():
                doomed += [child, *child.children(recursive=True)]
    for process in doomed:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(doomed, timeout=1)


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
    """Waits for the JVM to end, so that nothing is left running."""
    with suppress(Exception):
        gateway.shutdown()
    with suppress(OSError):
        gateway.proc.stdin.close()  # the JVM ends when its stdin closes
    try:
        gateway.proc.wait(JVM_ENDS_SECONDS)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()


def _environment(home: Path) -> None:
    """Sets the variables that Spark's start script and its Python workers read from the environment only."""
    from pyspark.logger import PySparkLogger

    for logger in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(logger).disabled = True  # they print every refused query, which we catch and explain
    os.environ["JAVA_HOME"] = str(java_home(home))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.pop("SPARK_HOME", None)  # otherwise another Spark's scripts would be started
    # Does not exist, so nobody else's file is read.
    os.environ["SPARK_CONF_DIR"] = str((home / "jars").resolve() / "conf")


def _cores(master: str) -> int:
    """Number of cores of a `local[n]` master. A cluster is assumed to have as many as this machine."""
    inside = master.partition("[")[2].rstrip("]").split(",")[0]
    return int(inside) if inside.isdigit() else (1 if master == "local" else os.cpu_count() or 2)


def heap_of(master: str, memory: int) -> str:
    """Heap of a driver in Spark's notation, for a machine with `memory` bytes: 2 GB, or more if its cores need it.

    Each core of a local master may write a file of the master log (128 MB in memory) and read Kafka at the same
    time.

    >>> heap_of("local[2]", 8 * 2**30), heap_of("local[32]", 64 * 2**30), heap_of("spark://a:7077", 64 * 2**30)
    ('2048m', '8192m', '2048m')
    """
    cores = _cores(master) if master.startswith("local") else 0
    return f"{max(2_048, min(256 * cores, memory // 4 // 2**20))}m"


def _own_address(master: str) -> str:
    """The address of this machine in the network in which it reaches the master. A cluster reaches it there."""
    address = master.removeprefix("k8s://").split(",")[0]
    url = urlsplit(address if "://" in address else f"//{address}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((url.hostname or "", url.port or 7077))
        except (OSError, ValueError) as error:
            raise LaminaError(
                f"Spark's master {master} cannot be resolved",
                evidence=str(error),
                way_out="LAMINA_SPARK_MASTER looks like spark://host:7077, k8s://https://host:6443, yarn or local[*].",
            ) from error
        own: str = probe.getsockname()[0]
        return own
