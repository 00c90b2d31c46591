"""Iceberg's own API: snapshots with their summaries, and commits that fail if another commit came between.

Only this module calls that API (through Spark's JVM). It knows nothing about Kafka or offsets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from master_log import durable, stores
from master_log.causes import CATALOG_ERROR, warehouse_errors
from view_algebra.language.quoting import spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAIN = "main"
"""The branch that is read if a query names none."""

_FILE_BYTES = 128 * 2**20
"""Bytes of a compacted file: large enough to read at full speed, small enough that a cut skips most files."""

_GROUP_BYTES = 2**31
"""Bytes that one job of a compaction sorts."""


@dataclass(frozen=True)
class Snapshot:
    """One state of a table. `summary` holds the properties of its commit."""

    id: int
    summary: Mapping[str, str]


class Table:
    """An Iceberg table in its current state: every read and every commit looks at the catalog again."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.name = name
        self._spark = spark

    def exists(self) -> bool:
        """True if the catalog has the table."""
        with warehouse_errors(f"{self.name} cannot be read"):
            return bool(self._spark.catalog.tableExists(self.name))

    def properties(self) -> dict[str, str]:
        """The table's own properties."""
        return self._texts(self._loaded().properties())

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Sets properties in one commit."""
        table = self._loaded()
        with self._durably(table):
            update = table.updateProperties()
            for key, value in properties.items():
                update.set(key, value)
            update.commit()

    def rename(self, name: str) -> None:
        """Gives the table another name in its catalog. Its files stay where they are."""
        self._spark.sql(f"ALTER TABLE {self.name} RENAME TO {name}")

    def columns(self) -> dict[str, str]:
        """The columns with their types in Spark's form."""
        return {field.name: field.dataType.simpleString() for field in self._spark.table(self.name).schema}

    def lineage(self) -> Iterator[Snapshot]:
        """The newest snapshot, its parent, and so on, up to the first expired one."""
        table = self._loaded()
        snapshot = table.currentSnapshot()
        while snapshot is not None:
            yield Snapshot(int(snapshot.snapshotId()), self._texts(snapshot.summary()))
            parent = snapshot.parentId()
            snapshot = None if parent is None else table.snapshot(parent)

    def snapshots(self) -> Iterator[Snapshot]:
        """All snapshots that have not expired, oldest first, including those that the newest does not descend from."""
        for snapshot in self._loaded().snapshots():
            yield Snapshot(int(snapshot.snapshotId()), self._texts(snapshot.summary()))

    def append_nothing(self, summary: Mapping[str, str], branch: str = _MAIN, onto: int | None = None) -> Snapshot:
        """Commits a snapshot with this summary and no new rows, on a branch, which may begin at `onto`."""
        if onto is not None:
            self._branch(branch, onto)
        table = self._loaded()
        with self._durably(table):
            append = table.newAppend().toBranch(branch)
            for key, value in summary.items():
                append.set(key, value)
            append.commit()
        return self._snapshot(branch)

    def append(self, rows: DataFrame, onto: int, branch: str, summary: Mapping[str, str]) -> Snapshot:
        """Writes `rows` as the snapshot after `onto`, on a branch that nobody reads. Its files are durable."""
        writer = rows.writeTo(self._branch(branch, onto))
        for key, value in summary.items():
            writer = writer.option(f"snapshot-property.{key}", value)
        # All rows of a Spark partition belong to one partition of the table, so each task needs one open writer,
        # and no sort or shuffle.
        with self._durably(self._loaded()):
            writer.option("fanout-enabled", "true").append()
        return self._snapshot(branch)

    def delete(self, condition: str, onto: int, branch: str, summary: Mapping[str, str]) -> None:
        """Deletes rows on a branch from `onto` that nobody reads. Its last snapshot has this summary."""
        target = self._branch(branch, onto)
        with self._durably(self._loaded()):
            self._spark.sql(f"DELETE FROM {target} WHERE {condition}")
        self.append_nothing(summary, branch)

    def tag(self, name: str, snapshot: int) -> None:
        """Names a snapshot, which then stays readable and never expires."""
        table = self._loaded()
        if name not in table.refs():
            with self._durably(table):
                table.manageSnapshots().createTag(name, snapshot).commit()

    def publish(self, branch: str) -> bool:
        """Fast-forwards the table to the branch. Returns False if the table has changed since the branch began.

        The same commit drops the branches published before. The branch itself stays until the next one is published,
        because a snapshot that a branch names never expires.
        """
        table = self._loaded()
        try:
            with self._durably(table):
                update = table.manageSnapshots().fastForwardBranch(_MAIN, branch)
                for other in table.refs().keySet().toArray():
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
        return self._spark.read.option("versionAsOf", str(snapshot)).table(self.name)

    def compact(self, by: str) -> int:
        """Rewrites small files as large ones that each span a range of the column `by`. Returns the number rewritten.

        It commits on top of any commit made meanwhile. The files of older snapshots stay until these expire.
        """
        table = self._loaded()
        with self._durably(table):
            order = self._jvm.org.apache.iceberg.SortOrder.builderFor(table.schema()).asc(by).build()
            action = self._actions.rewriteDataFiles(table).sort(order)
            action = action.option("target-file-size-bytes", str(_FILE_BYTES))
            action = action.option("max-file-group-size-bytes", str(_GROUP_BYTES))
            return int(action.execute().rewrittenDataFilesCount())

    def forget_branches(self, prefix: str) -> None:
        """Removes the branches with this prefix, so that their snapshots may expire."""
        table = self._loaded()
        branches = [name for name in table.refs().keySet().toArray() if name.startswith(prefix)]
        if branches:
            with self._durably(table):
                update = table.manageSnapshots()
                for name in branches:
                    update = update.removeBranch(name)
                update.commit()

    def expire(self, before: int, keeps: Callable[[Snapshot], bool]) -> int:
        """Expires the snapshots that were succeeded before `before` (ms), unless `keeps`. Returns their number.

        The age of a snapshot does not matter: an old one may have been the newest until now. The files stay until
        `remove_orphans`.
        """
        table = self._loaded()
        history = [(int(entry.timestampMillis()), int(entry.snapshotId())) for entry in table.history()]
        succeeded_at = {id: time for (_, id), (time, _) in pairwise(history)}
        in_use = {int(reference.snapshotId()) for reference in table.refs().values()}
        current = table.currentSnapshot()
        in_use |= {int(current.snapshotId())} if current is not None else set()
        expire = table.expireSnapshots().cleanExpiredFiles(False).expireOlderThan(0)
        expired = 0
        for entry in table.snapshots():
            snapshot = Snapshot(int(entry.snapshotId()), self._texts(entry.summary()))
            # A restored backup may name snapshots whose files were removed after the backup.
            is_gone = not table.io().newInputFile(entry.manifestListLocation()).exists()
            is_old = succeeded_at.get(snapshot.id, int(entry.timestampMillis())) < before
            if snapshot.id not in in_use and (is_gone or (is_old and not keeps(snapshot))):
                expire = expire.expireSnapshotId(snapshot.id)
                expired += 1
        if expired:
            with self._durably(table):
                expire.commit()
        return expired

    def remove_orphans(self, before: int) -> int:
        """Removes files that nothing has named since `before` (ms). Returns their number.

        It removes only files older than the snapshot that was the newest at that time: older metadata had already been
        superseded, and a snapshot names any other older file that is still in use.
        """
        table = self._loaded()
        times = [int(entry.timestampMillis()) for entry in table.history() if int(entry.timestampMillis()) <= before]
        if not times:
            return 0
        action, oldest_kept = self._actions.deleteOrphanFiles(table), max(times)
        if stores.is_in_object_storage(table.location()):
            action, oldest_kept = action.usePrefixListing(True), oldest_kept - stores.SKEW_MS
        orphans = action.olderThan(oldest_kept).execute()
        return len(list(orphans.orphanFileLocations()))

    def _branch(self, branch: str, onto: int) -> str:
        """Creates a branch at a snapshot. Returns the name by which Spark writes to it."""
        table = self._loaded()
        with self._durably(table):
            table.manageSnapshots().createBranch(branch, onto).commit()
        return f"{self.name}.{spark_path(f'branch_{branch}')}"

    def _snapshot(self, branch: str) -> Snapshot:
        """The newest snapshot of a branch."""
        snapshot = self._loaded().snapshot(branch)
        return Snapshot(int(snapshot.snapshotId()), self._texts(snapshot.summary()))

    @contextmanager
    def _durably(self, table: Any) -> Iterator[None]:
        """Flushes the metadata under a commit before it, and the commit's own files after it.

        Java closes a file without waiting for the disk, but Postgres, which holds the catalog, waits. So after a power
        cut the catalog may name torn metadata. The metadata before them are then whole (`durable.is_whole`).
        """
        began = durable.sync_start()
        folder = table.location()
        durable.sync_file(table.operations().current().metadataFileLocation())
        yield
        durable.sync_changed_since(folder, began)

    def _texts(self, java_map: Any) -> dict[str, str]:
        """A Java map as a dict, in one call: iterating over it takes PySpark tens of milliseconds."""
        mapper = self._jvm.com.fasterxml.jackson.databind.ObjectMapper()
        return dict(json.loads(mapper.writeValueAsString(java_map)))

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm  # noqa: SLF001 (pyspark has no public way into its JVM)

    @property
    def _actions(self) -> Any:
        session = self._spark._jsparkSession  # noqa: SLF001
        return self._jvm.org.apache.iceberg.spark.actions.SparkActions.get(session)

    def _loaded(self) -> Any:
        session: Any = self._spark._jsparkSession  # noqa: SLF001

        def load() -> Any:
            table = self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, self.name)
            table.refresh()  # the catalog's cache may be half a minute old
            return table

        with warehouse_errors(f"{self.name} cannot be read"):
            try:
                return load()
            except (Py4JError, PySparkException) as error:
                if not CATALOG_ERROR.search(str(error)):
                    raise
                return load()  # after a restart of Postgres, the first request uses a dead connection


class Warehouse:
    """The files of a catalog, opened by Iceberg without a table."""

    def __init__(self, spark: SparkSession, catalog: str) -> None:
        self._spark = spark
        self._prefix = f"spark.sql.catalog.{catalog}."

    @property
    def location(self) -> str:
        """The path or URI of the warehouse."""
        return str(self._spark.conf.get(f"{self._prefix}warehouse")).rstrip("/")

    def reach(self) -> None:
        """Raises LaminaError if object storage refuses to list the warehouse.

        Iceberg itself retries for a minute and a half to read a table, whatever the error is.
        """
        if stores.is_in_object_storage(self.location):
            with warehouse_errors("the master log cannot be reached"):
                self._io.listPrefix(f"{self.location}/nothing/").iterator().hasNext()

    def read(self, file: str) -> bytes:
        """All bytes of a file. Raises FileNotFoundError if it does not exist."""
        with warehouse_errors(f"{file} cannot be read"):
            opened = self._io.newInputFile(file)
            if not opened.exists():
                raise FileNotFoundError(file)
            with closing(opened.newStream()) as stream:
                return bytes(stream.readAllBytes())

    @cached_property
    def _io(self) -> Any:
        jvm: Any = self._spark._jvm  # noqa: SLF001
        properties = jvm.java.util.HashMap()
        for name, value in self._spark.conf.getAll.items():
            if name.startswith(self._prefix):
                properties.put(name.removeprefix(self._prefix), value)
        configuration = self._spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
        return jvm.org.apache.iceberg.CatalogUtil.loadFileIO(stores.FILES_BY_SCHEME, properties, configuration)
