"""The configuration of Spark, so that both layers mean the same by the same SQL.

ANSI mode is off and the session's time zone is UTC. The master log is the Iceberg catalog `lamina`, kept in Postgres in
its own schema, `iceberg`: Iceberg's JDBC catalog creates its two tables in the first schema of the search path, which
the URL's `currentSchema` names. Spark logs to a file. An operator may add settings: sizes and those of a cluster or a
file system, but not of SQL.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

from lamina.configuration.postgres_urls import Jdbc
from lamina.configuration.settings import Settings
from lamina.services import folders
from lamina.services.access import keep_private
from lamina.services.jars import jar_files
from lamina.services.java import LOG4J2
from master_log import stores
from serving_layer.postgres import log_catalog
from view_algebra.errors import LaminaError

CATALOG = "lamina"
"""The Iceberg catalog that holds the master log. Its tables are `lamina.<namespace>.<table>`."""

THREAD_STACK = "-Xss16m"
"""Stack of each thread of a JVM. Memory is taken only as it is used.

Java's regular expressions recurse over a text if they repeat a group, and so does Spark over a deep value. The default
of 1 MB ends at some 2,500 characters of `(a|b)*`, this one at some 30,000 (benchmarks/worst_texts.py).
"""

REAPED_AFTER = "10s"
"""Time that an executor waits for a cancelled task. Every task checks for cancellation between two records."""

NAME = "LAMINA_SPARK_CONF"

HIDDEN = r"(?i)secret|password|token|access[.]?key|credential|jaas|[.-]key(?:$|[.])|[.]sas"
"""Names of settings that are never shown and never on a command line."""

OVERRIDABLE = (
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.driver.memory",
    "spark.local.dir",
    "spark.pyspark.python",
    "spark.sql.shuffle.partitions",
    "spark.ui.enabled",
)
"""Lamina's own settings that an operator may override: places and sizes."""

JOINED = {
    "spark.driver.extraClassPath": ":",
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
    "spark.jars": ",",
}
"""List settings, to which the operator's values are appended."""

SQL = ("spark.sql.adaptive.", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.catalog.", "spark.sql.files.")
"""Settings of Spark's SQL that change neither the meaning of a SELECT nor the running of micro-batches."""

ALWAYS = {
    # A stack that overflows, or a heap that a task fills, fails only the task. By default Spark would halt the JVM,
    # and with it every query of every source.
    "spark.executor.killOnFatalError.depth": "0",
    "spark.redaction.regex": HIDDEN,
    "spark.python.daemon.module": "batch_layer.python_workers",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.liveUpdate.period": "0",  # otherwise `speed_layer/jobs.py` sees a task ten seconds after its start
    # Fetched rows reach Python as a stream, part by part, so the heap holds one part of any result.
    "spark.driver.maxResultSize": "0",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",  # by default Spark fails on two entries of one name
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
"""Lamina's settings that are the same for every deployment."""

_INSTEAD = {
    "spark.master": "Set LAMINA_SPARK_MASTER.",
    "spark.sql.catalog.lamina.warehouse": "Set LAMINA_WAREHOUSE.",
}


def combined(defaults: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session. Raises LaminaError if one of the operator's contradicts ours."""
    settings = dict(defaults)
    for name, value in overrides.items():
        if not name.startswith("spark."):
            raise LaminaError(
                f"{NAME} sets {name}, which is not a setting of Spark",
                evidence="Spark heeds only names that begin with spark.",
                way_out=f"Write spark.hadoop.{name} for a setting of Hadoop, or take the line out.",
            )
        if name in JOINED:
            settings[name] = JOINED[name].join(part for part in (defaults.get(name), value) if part)
        elif name in OVERRIDABLE or defaults.get(name) == value:
            settings[name] = value
        elif name in defaults:
            raise LaminaError(
                f"{NAME} sets {name} to {value!r}, which contradicts Lamina",
                evidence="" if "password" in name else f"Lamina sets it to {defaults[name]!r}.",
                way_out=_INSTEAD.get(name, "Take the line out."),
            )
        elif name == "spark.submit.deployMode" or (name.startswith("spark.sql.") and not name.startswith(SQL)):
            raise LaminaError(
                f"{NAME} sets {name}, which Lamina leaves as it is",
                evidence="It may change what a SELECT means or how micro-batches run: views would lose their promise.",
                way_out="Take the line out.",
            )
        else:
            settings[name] = value
    return settings


def iceberg_catalog(settings: Settings) -> dict[str, str]:
    """Configuration that makes the Iceberg catalog `lamina` out of a Postgres database and a warehouse.

    It may also be set on a running session, before the catalog's first use.
    """
    jdbc = Jdbc.of(settings.postgres, currentSchema=log_catalog.SCHEMA)
    prefix = f"spark.sql.catalog.{CATALOG}"
    files = {"io-impl": stores.FILES_BY_SCHEME} if stores.is_in_object_storage(settings.warehouse) else {}
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


def configuration(settings: Settings, master: str, heap: str, java_options: tuple[str, ...]) -> dict[str, str]:
    """Lamina's own settings of Spark. `heap` is the driver's memory. `java_options` go to the driver's JVM."""
    home = settings.home
    keep_private(home)
    groups = ("spark", "s3") if settings.warehouse.startswith("s3:") else ("spark",)
    files = [*(str(jar) for group in groups for jar in jar_files(home, group)), *settings.spark_jars]
    logs = home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    scratch = folders.own_folder(home / "spark")
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
        **({} if master == "yarn" else {"spark.driver.host": "127.0.0.1" if local else _own_address(master)}),
        "spark.driver.bindAddress": "127.0.0.1" if local else "0.0.0.0",  # noqa: S104 - executors connect to the driver
        "spark.driver.extraJavaOptions": " ".join(options),
        # Both are plain files: a local session has them on its class path and copies nothing, a cluster receives them.
        **({"spark.driver.extraClassPath": ":".join(files)} if local else {"spark.jars": ",".join(files)}),
        "spark.executor.extraJavaOptions": " ".join(("-Duser.timezone=UTC", THREAD_STACK, *login)),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.pyspark.python": sys.executable,
        "spark.sql.shuffle.partitions": str(2 * _cores(master)),
        # Hadoop's class for local files starts a `chmod` for each file, which takes longer than the file.
        **({"spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"} if local else {}),
        **ALWAYS,
    }


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
