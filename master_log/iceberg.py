"""Iceberg, beneath Spark's SQL: snapshots with their summaries, and commits that hold only if nobody came between.

The only place that speaks to Iceberg's own API (through Spark's JVM). It knows nothing about Kafka or offsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAIN = "main"
"""The branch of an Iceberg table that is read when none is named."""

_STORAGE = re.compile(
    r"No space left on device|Disk quota exceeded|Permission denied|Read-only file system|Not a directory"
    r"|Mkdirs failed|Failed to create|File exists|Is a directory"
)
_CATALOG = re.compile(r"PSQLException|SQLNonTransientConnectionException|Failed to connect: jdbc|Connection .* refused")


@dataclass(frozen=True)
class Snapshot:
    """One state of a table; `summary` is what its commit said of itself."""

    id: int
    summary: Mapping[str, str]


class Table:
    """An Iceberg table, as it is now: every question and every commit looks at the catalog again."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.name = name
        self._spark = spark

    def exists(self) -> bool:
        """True when the catalog knows the table."""
        with telling(f"{self.name} cannot be read"):
            return bool(self._spark.catalog.tableExists(self.name))

    def properties(self) -> dict[str, str]:
        """The table's own properties."""
        return dict(self._now().properties())

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Sets properties in one commit."""
        update = self._now().updateProperties()
        for key, value in properties.items():
            update.set(key, value)
        update.commit()

    def columns(self) -> dict[str, str]:
        """Its columns, with their types as Spark writes them."""
        return {field.name: field.dataType.simpleString() for field in self._spark.table(self.name).schema}

    def lineage(self) -> Iterator[Snapshot]:
        """The newest snapshot, its parent, and so on, as far as they have not expired."""
        table = self._now()
        snapshot = table.currentSnapshot()
        while snapshot is not None:
            yield Snapshot(int(snapshot.snapshotId()), dict(snapshot.summary()))
            parent = snapshot.parentId()
            snapshot = None if parent is None else table.snapshot(parent)

    def append_nothing(self, summary: Mapping[str, str]) -> Snapshot:
        """Commits a snapshot that adds no row and says `summary` of itself."""
        append = self._now().newAppend()
        for key, value in summary.items():
            append.set(key, value)
        append.commit()
        return next(self.lineage())

    def append(self, rows: DataFrame, onto: int, branch: str, summary: Mapping[str, str]) -> Snapshot:
        """Writes `rows` as the snapshot after `onto`, seen by nobody: on a branch of its own."""
        self._now().manageSnapshots().createBranch(branch, onto).commit()
        writer = rows.writeTo(f"{self.name}.{quoted(f'branch_{branch}')}")
        for key, value in summary.items():
            writer = writer.option(f"snapshot-property.{key}", value)
        # Rows of one Spark partition are of one partition of the table, so a writer per partition is one writer,
        # and nothing has to be sorted or sent around first.
        writer.option("fanout-enabled", "true").append()
        written = self._now().snapshot(branch)
        return Snapshot(int(written.snapshotId()), dict(written.summary()))

    def publish(self, branch: str) -> bool:
        """Makes the table what the branch is; False, and nothing done, unless the branch was made from what it is now.

        One commit: it also drops the branches published before. The branch itself stays until the next one is
        published, since a snapshot that a branch names never expires.
        """
        table = self._now()
        try:
            update = table.manageSnapshots().fastForwardBranch(_MAIN, branch)
            for other in table.refs():
                if other not in (_MAIN, branch) and other.startswith(branch.rsplit("_", 1)[0] + "_"):
                    update = update.removeBranch(other)
            update.commit()
        except (Py4JError, PySparkException) as error:
            if re.search(r"is not an ancestor|Ref does not exist|CommitFailed", str(error)):
                return False
            raise
        return True

    def read(self, snapshot: int) -> DataFrame:
        """The rows of one snapshot."""
        return self._spark.read.option("snapshot-id", str(snapshot)).table(self.name)

    def _now(self) -> Any:
        jvm: Any = self._spark._jvm  # noqa: SLF001 (pyspark has no public way into its JVM)
        session: Any = self._spark._jsparkSession  # noqa: SLF001

        def load() -> Any:
            table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, self.name)
            table.refresh()  # the catalog's cache may be as old as half a minute
            return table

        with telling(f"{self.name} cannot be read"):
            try:
                return load()
            except (Py4JError, PySparkException) as error:
                if not _CATALOG.search(str(error)):
                    raise
                return load()  # the first question after Postgres was restarted meets a connection that is dead


def quoted(*parts: str) -> str:
    """A name in Spark SQL, whatever is in its parts.

    >>> quoted("lamina", "log", "clicks.v1")
    '`lamina`.`log`.`clicks.v1`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


@contextmanager
def telling(what: str) -> Iterator[None]:
    """An error inside gets a way out when the warehouse, the catalog or Kafka is its cause; any other is a bug."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        told = _translated(error, what)
        if told is None:
            raise
        raise told from error


def _translated(error: Exception, what: str) -> LaminaError | None:
    text = str(error)
    lines = [line.strip() for line in text.splitlines()]
    if _STORAGE.search(text):
        return LaminaError(
            f"{what}: the warehouse cannot be written",
            evidence=_shortest(lines, _STORAGE),
            way_out="Make room or give the user the right to write there (LAMINA_WAREHOUSE), and run it again: "
            "nothing was changed.",
        )
    if _CATALOG.search(text):
        return LaminaError(
            f"{what}: the log's catalog in Postgres does not answer",
            evidence=_shortest(lines, _CATALOG),
            way_out="Start Postgres, or correct LAMINA_POSTGRES, and run it again: nothing was changed.",
        )
    causes = [line for line in lines if "org.apache.kafka" in line and not line.startswith("at ")]
    if causes or "KAFKA_DATA_LOSS" in text:
        return LaminaError(
            f"{what}: Kafka stopped giving its records",
            evidence=causes[0] if causes else next(line for line in lines if "KAFKA_DATA_LOSS" in line),
            way_out="See that the brokers run and still hold these records, and run it again: nothing was changed.",
        )
    return None


def _shortest(lines: list[str], cause: re.Pattern[str]) -> str:
    """Java says the same thing once per layer; the innermost says it alone."""
    return min((line for line in lines if cause.search(line)), key=len).removeprefix("Caused by: ")
