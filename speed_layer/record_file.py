"""The file of a small micro-batch's records, which kept plans read.

Spark's source `binaryFile` opens the file for each action. A digest proves that the file is what was written.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from master_log.reading.log_times import RAW_LOG_TIME
from master_log.reading.record_decoding import decoded_fields
from view_algebra.formats import Decoding
from view_algebra.language.quoting import spark_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DIGEST = 64
"""Letters of a SHA-256."""

_RECORD = (
    "partition INT, offset BIGINT, timestamp BIGINT, log_time BIGINT, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key STRING, value BINARY>>"
)


def records_in(session: SparkSession, file: Path, topic: str, columns: Sequence[Decoding]) -> DataFrame:
    """The raw records in the file at the time of each action, with the decoded columns.

    The file begins with the digest of the rest. Without it, records that a disk has lost would look like records that
    never came, and progress would pass them.
    """
    from pyspark.sql.functions import lit

    digest = f"string(substring(content, 1, {DIGEST}))"
    written = f"substring(content, {DIGEST + 1})"
    lost = f"raise_error({spark_text(f'{file} is not what was written to it')})"
    content = session.read.format("binaryFile").load(str(file))
    whole = content.selectExpr(f"IF(sha2({written}, 256) = {digest}, string({written}), {lost}) AS records")
    fields = ", ".join([_RECORD, *(f"{by.column} STRUCT<{decoded_fields(by)}>" for by in columns)])
    records = whole.selectExpr(f"inline(from_json(records, 'ARRAY<STRUCT<{fields}>>', map('mode', 'FAILFAST')))")
    micros = [f"timestamp_micros({name}) AS {name}" for name in ("timestamp", RAW_LOG_TIME)]
    times = records.selectExpr(
        "partition", "offset", *micros, "key", "value", "headers", *(by.column for by in columns)
    )
    return times.select(lit(topic).alias("topic"), "*").coalesce(1)


def file_of(records: Iterable[dict[str, Any]]) -> bytes:
    """The file of raw records: a digest, then the records as JSON that Spark reads."""
    written = json.dumps(list(records), default=_plain).encode()
    return hashlib.sha256(written).hexdigest().encode() + written


def _plain(value: Any) -> str:
    """The text of a time, day or decimal in a decoded column."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value.isoformat())


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of fetched records, for `file_of`."""
    if table.num_rows == 0:
        return
    columns = {name: table[name] for name in table.column_names if name != "topic"}
    for name in {"timestamp", RAW_LOG_TIME} & columns.keys():
        columns[name] = columns[name].cast(pa.timestamp("us")).cast(pa.int64())
    for record in pa.table(columns).to_pylist():
        headers = record["headers"]
        yield record | {
            "key": _text(record["key"]),
            "value": _text(record["value"]),
            "headers": headers and [header | {"value": _text(header["value"])} for header in headers],
        }


def _text(value: bytes | None) -> str | None:
    """Bytes in the form that Spark reads from JSON."""
    return None if value is None else base64.b64encode(value).decode("ascii")
