"""Layout of a log's table, with the reasons for it.

- Partitioned by `kafka_partition`. An archive run writes each Kafka partition in the order of its offsets, so a file
  spans a range of offsets, and Iceberg's minimum and maximum of `kafka_offset` per file prune the files beyond a cut
  or outside a range. Days or hours would prune nothing here, because cuts are offsets.
- `kafka_value` and `kafka_key` carry no such statistics: nobody searches by them, and they would swell the manifests.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pyspark.sql.functions import col, lit

from master_log.iceberg import Table
from master_log.summaries import PARSED_BY
from view_algebra.compiled import Source
from view_algebra.language.quoting import spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD = (
    "kafka_partition INT, kafka_offset BIGINT, kafka_timestamp TIMESTAMP, kafka_key BINARY,"
    " kafka_headers ARRAY<STRUCT<key: STRING, value: BINARY>>, kafka_value BINARY, kafka_error STRING"
)
RECORD_COLUMNS = (
    "kafka_partition",
    "kafka_offset",
    "kafka_timestamp",
    "kafka_key",
    "kafka_headers",
    "kafka_value",
    "kafka_error",
)
PROPERTIES = {
    "format-version": "2",
    "write.distribution-mode": "none",
    "write.metadata.metrics.column.kafka_value": "none",
    "write.metadata.metrics.column.kafka_key": "none",
    # A backup of the catalog names the metadata file of its time. A commit would remove these files by their number,
    # so only `maintain` removes them, by age.
    "write.metadata.delete-after-commit.enabled": "false",
    "write.metadata.previous-versions-max": "20",
    "write.metadata.compression-codec": "gzip",
}


def fingerprint(source: Source) -> str:
    """The fingerprint of the text that parses the source's records."""
    return hashlib.sha256(source.parse.encode()).hexdigest()[:16]


def fitted(table: Table, source: Source, rows: DataFrame) -> DataFrame:
    """The rows with the table's columns; a column that is no longer declared with its type is NULL."""
    columns = table.columns()
    if table.properties()[PARSED_BY] == fingerprint(source):
        return rows.select(*(col(spark_path(name)) for name in columns))
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema}
    return rows.select(
        *(
            col(spark_path(name)) if kinds.get(name) == kind else lit(None).cast(kind).alias(name)
            for name, kind in columns.items()
        )
    )
