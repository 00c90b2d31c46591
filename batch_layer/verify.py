"""`lamina verify`: recomputes a receipt from the master log, whatever was rebuilt or changed since.

It runs the receipt's SELECT over the records below the receipt's offsets, and uses no cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from batch_layer.comparison import FLOAT, FLOAT_TOLERANCE
from batch_layer.compute import records_that_count
from batch_layer.selects import select_all
from batch_layer.stalls import Watching, Work, unwatched
from master_log.kafka.brokers import Brokers
from master_log.log import MasterLog
from master_log.offsets import OffsetRange
from serving_layer.catalog import definitions
from serving_layer.catalog.deployed import deployed
from serving_layer.postgres.copying import CopyRows, batches
from serving_layer.postgres.database import Database
from serving_layer.promise import progress
from serving_layer.promise.overwriting import DOUBLE_TOLERANCE, ROUNDING
from serving_layer.readers import receipts
from serving_layer.readers.receipts import Digest, Receipt
from view_algebra.compiled import JSON_TIMES, Catalog, CellTable, View
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import spark_name
from view_algebra.language.storable import ZERO

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LARGEST_WEIGHT = 2**16
"""The largest weight of a row's doubles in the sums of a digest (receipts.sql)."""


@dataclass(frozen=True)
class Verification:
    """A receipt, and the digest that was recomputed from the log.

    differing: the differences in words
    spark: the version of Spark that recomputed it
    """

    receipt: Receipt
    recomputed: Digest
    differing: list[str]
    spark: str

    @property
    def equal(self) -> bool:
        """True if the view showed the rows of its SELECT."""
        return not self.differing

    @property
    def other_sparks(self) -> list[str]:
        """The versions of Spark, other than this one, that computed the cells of the receipt."""
        return sorted(self.receipt.sparks - {self.spark})


def verify(
    database: Database,
    spark: SparkSession,
    log: MasterLog,
    brokers: Brokers,
    receipt: Receipt,
    watching: Watching = unwatched,
) -> Verification:
    """Recomputes the rows of a receipt, and compares their digest with its own."""
    with database.begin() as connection:
        definition = definitions.get(connection, receipt.definition, receipt.view)
    _read_records(database, log, brokers, receipt, definition)
    select_all(spark, definition.views.values(), receipt.since, receipt.clock)
    view, rows = definition.views[receipt.view], CopyRows()
    with database.begin() as connection:
        now = deployed(connection).views
    tables = [table for name in definition.views if name in now for table in now[name].cell_tables]
    with watching(_work(receipt, definition, tables)):
        for batch in batches(_rows_as_texts(spark.table(receipt.view))):
            rows.add(pa.table(batch.columns, [column.name for column in view.columns]))
    with database.begin() as connection:
        recomputed = receipts.digest_of(connection, view, rows)
    differing = differences(view, receipt.digest, recomputed)
    if differing:
        _refuse_losses(log, receipt, definition)
    return Verification(receipt, recomputed, differing, str(spark.version))


def _work(receipt: Receipt, definition: Catalog, tables: Sequence[CellTable]) -> Work:
    """The computation of a receipt's SELECT, to be watched. A search for its slow record uses these tables."""
    counted = receipt.sources
    reads = {
        name: (source, OffsetRange(counted[name].begins, counted[name].below))
        for name, source in definition.sources.items()
    }
    return Work(receipt.view, reads, tables)


def _refuse_losses(log: MasterLog, receipt: Receipt, definition: Catalog) -> None:
    """Raises if the log may lack counted records, because Kafka lost them and a person accepted the loss.

    Nothing shows whether the view still counted these records when the receipt was issued.
    """
    for name, source in definition.sources.items():
        counted = receipt.sources[name]
        if lost := log.lost(source, OffsetRange(counted.begins, counted.below)):
            raise LaminaError(
                "The receipt cannot be verified: the log lacks records that it may count",
                evidence=f"Kafka lost or removed records of {name} from {lost[0].start} to {lost[0].end}, and an"
                " archive run continued without them (--accept-loss)",
                way_out="Restore a backup of Kafka or of the log from before the loss, and verify the receipt there.",
            )


def differences(view: View, receipt: Digest, log: Digest) -> list[str]:
    """The differences between two digests of a view, in words, within the tolerances of `lamina check` for doubles."""
    words = []
    if receipt.rows != log.rows:
        words.append(f"the number of rows: {receipt.rows:,} and {log.rows:,}")
    names = [column.name for column in view.columns]
    others = [name for name in names if receipt.columns.get(name) != log.columns.get(name)]
    others += [name for name in names if name not in others and not _near(name, view, receipt, log)]
    if others:
        words.append(f"the values of {', '.join(others)}")
    if not words and (receipt.digest, set(receipt.left_out)) != (log.digest, set(log.left_out)):
        words.append("the values that share a row: each column by itself has the same values")
    return words


def _near(name: str, view: View, receipt: Digest, log: Digest) -> bool:
    """True if the doubles of a column differ no more than those of equal rows."""
    if name not in receipt.doubles or name not in log.doubles:
        return receipt.doubles.keys() ^ log.doubles.keys() == set()
    [kind] = [column.postgres for column in view.columns if column.name == name]
    tolerance = FLOAT_TOLERANCE if kind == FLOAT else DOUBLE_TOLERANCE
    (total, size), (other, other_size) = receipt.doubles[name], log.doubles[name]
    rounding = Decimal(ROUNDING) * LARGEST_WEIGHT * log.rows if view.rounded else Decimal(0)
    within = Decimal(tolerance) * max(size, other_size) + rounding
    return abs(total - other) <= within and abs(size - other_size) <= within


def _read_records(database: Database, log: MasterLog, brokers: Brokers, receipt: Receipt, definition: Catalog) -> None:
    """Makes the records of each source of the receipt a table of Spark, by their declaration at the time."""
    with database.begin() as connection:
        catalog = deployed(connection)
        topic_ids = {name: query.topic_id for name, query in progress.queries(connection).items()}
        begins = {name: progress.begins(connection, source.topic) for name, source in catalog.sources.items()}
    for name, source in definition.sources.items():
        counted = receipt.sources.get(name)
        if counted is None or counted.topic != source.topic:
            raise LaminaError(
                "This is not a receipt",
                evidence=f"it has no offsets of {name}, which its SELECT reads from topic {source.topic}",
                way_out="`lamina receipt VIEW` prints one: a line of JSON. Pass it on unchanged.",
            )
        declared = catalog.sources.get(name)
        if declared is not None and declared.topic == counted.topic and topic_ids[name] == counted.topic_id:
            log.create(declared, counted.topic_id, begins[name])
        if (now := log.topic_id(source)) != counted.topic_id:
            raise LaminaError(
                f"The topic {counted.topic} was created again after the receipt was issued",
                evidence=f"the receipt belongs to the topic with id {counted.topic_id}, the log to {now}",
                way_out=f"The log of the earlier topic is set aside as `{counted.topic}-{counted.topic_id}`. Restore"
                " a backup from that time, and verify the receipt there.",
            )
        records = log.records(source, counted.below, brokers, since=counted.begins)
        records_that_count(records, source).createOrReplaceTempView(spark_name(source.records))


def _rows_as_texts(rows: DataFrame) -> DataFrame:
    """The rows as Postgres reads them, nested values as the JSON that the view shows."""
    from pyspark.sql.functions import col, expr, lit, regexp_replace, replace, to_json

    def text(name: str, kind: str) -> Column:
        column = spark_name(name)
        if kind == "binary":
            return expr(f"concat('\\\\x', hex({column}))")
        if kind.startswith(("struct", "array", "map")):
            return regexp_replace(to_json(col(column), JSON_TIMES), ZERO, "$1\ufffd")
        if kind.startswith("interval"):
            return expr(_INTERVAL.format(f"unix_micros(timestamp_micros(0) + {column})"))
        return replace(col(column).cast("string"), lit("\0"), lit("\ufffd"))

    return rows.select([text(field.name, field.dataType.simpleString()).alias(field.name) for field in rows.schema])


_INTERVAL = "concat({0} div 86400000000, ' days ', {0} % 86400000000, ' microseconds')"
"""Microseconds as an interval of days and microseconds, as Postgres reads it and the view shows it."""
