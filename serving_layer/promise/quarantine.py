"""Quarantine: records of declared sources that could not be parsed, with reasons. Counts are exact, storage is bounded.

The stored part of a record is bounded (`quarantined()`), and so are the stored records of a source: the oldest are
removed first. Two sources may read one topic, and a record may be bad for only one of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from master_log.offsets import TopicPartition
from serving_layer.catalog.deployed import sources
from serving_layer.postgres import cells
from serving_layer.postgres.bookkeeping import bad_count, progress, quarantine
from serving_layer.postgres.copying import CopyRows, batches
from serving_layer.postgres.database import Database
from view_algebra.compiled import Source
from view_algebra.record_columns import NULLED
from view_algebra.records.quarantined import LONGEST_KEPT, quarantined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_REASONS = 1_000
"""Reasons of a source that are counted separately. A producer could otherwise create a reason per record."""

OTHER_REASONS = "other reasons"

LONGEST_REASON = 500
"""Characters of a reason that are compared. Reasons are keys, and an index holds no long ones."""

AT_A_TIME = 100
"""Bad records in one batch from Spark. A record may have megabytes."""

TRIM_AT_A_TIME = 1_000
"""Records that one transaction removes."""

TRIM_AFTER = 16 * 1024 * 1024
"""Bytes of bad records between two checks of the bounds."""

MOST_BYTES, OLDEST = "1 GB", "90 days"
"""Bounds of a source without `quarantine_bytes` or `quarantine_age`."""

HEXADECIMAL = 2
"""Bytes of a row per byte of a record."""

BAD_LATELY = """
SELECT count(*) FROM (
  SELECT FROM lamina.quarantine AS r
  WHERE r.source = q.name AND r.quarantined_at > clock_timestamp() - interval '1 hour'
  LIMIT :most
) AS lately"""
"""SQL of the number of records of a query `q` that went to quarantine within an hour. It counts at most `:most`."""

_UNITS = {"kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_TRIM = text(
    """
    DELETE FROM lamina.quarantine WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM (
        SELECT ctid, quarantined_at, :left - sum(size) OVER (ORDER BY quarantined_at, ctid) + size AS kept
        FROM (
          SELECT ctid, quarantined_at, size FROM lamina.quarantine
          WHERE source = :source ORDER BY quarantined_at LIMIT :some
        ) AS oldest
      ) AS oldest
      WHERE kept > :most OR quarantined_at < clock_timestamp() - CAST(:age AS interval)
    )) RETURNING size
    """
)


@dataclass(frozen=True)
class BadRecord:
    """A record that could not be parsed."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime | None
    error: str
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class BadRecords:
    """Bad records of a source on their way into quarantine: rows in the order of `COLUMNS`, and numbers by reason."""

    source: str
    topic: str
    rows: CopyRows
    counts: Mapping[str, int]


COLUMNS = ("source", "topic", "partition", "offset", "timestamp", "error", "key", "value", "value_bytes")


_STAGED = """CREATE TEMPORARY TABLE IF NOT EXISTS staged_bad (
  source text, topic text, partition integer, "offset" bigint, "timestamp" timestamptz, error text, key bytea,
  value bytea, value_bytes integer
) ON COMMIT DELETE ROWS"""


def bad_among(records: DataFrame, source: Source) -> BadRecords:
    """The bad records among parsed ones, gathered as a stream. Those beyond the source's bound are only counted."""
    import pyarrow as pa

    from master_log.reading.kafka_reader import selected  # imports PySpark

    rows, counts, most = CopyRows(), Counter[str](), HEXADECIMAL * _bytes_kept(source)
    for batch in batches(selected(records, "records", quarantined(source)), at_most=AT_A_TIME):
        if rows.size < most:
            whose = [pa.array([name] * batch.num_rows, pa.string()) for name in (source.name, source.topic)]
            rows.add(pa.table([*whose, *batch.columns], list(COLUMNS)))
        counts.update(batch.column("kafka_error").to_pylist())
    return BadRecords(source.name, source.topic, rows, counts)


def stage(connection: Connection, bad: BadRecords | None) -> None:
    """Sends records to a temporary table. It takes no lock, so a process that freezes here blocks nobody."""
    if bad is not None and bad.counts:
        cells.run(connection, _STAGED)
        cells.copy(connection, "staged_bad", bad.rows)


def write(connection: Connection, bad: BadRecords | None) -> None:
    """Stores and counts staged records, in the transaction that moves progress past them."""
    if bad is not None and bad.counts:
        named = ", ".join(f'"{column}"' for column in COLUMNS)
        sql = text(f"INSERT INTO lamina.quarantine ({named}) SELECT {named} FROM staged_bad WHERE source = :source")
        connection.execute(sql, {"source": bad.source})
        _count(connection, bad.source, bad.topic, bad.counts)


def keep(connection: Connection, source: str, bad: BadRecord) -> None:
    """Stores and counts one record of a source."""
    values = vars(bad) | {
        "source": source,
        "key": bad.key and bad.key[:LONGEST_KEPT],
        "value": bad.value and bad.value[:LONGEST_KEPT],
        "value_bytes": None if bad.value is None else len(bad.value),
    }
    connection.execute(insert(quarantine).values(**values))
    _count(connection, source, bad.topic, {bad.error: 1})


def take_back(connection: Connection, at: TopicPartition, offset: int, error: str) -> None:
    """Removes a record from the quarantine and the counts of all sources of its topic, because Kafka has lost it."""
    is_record = (quarantine.c.topic == at.topic, quarantine.c.partition == at.partition, quarantine.c.offset == offset)
    connection.execute(delete(quarantine).where(*is_record, quarantine.c.error == error))
    counted = (bad_count.c.topic == at.topic, bad_count.c.error == error)
    connection.execute(update(bad_count).where(*counted).values(records=bad_count.c.records - 1))
    connection.execute(delete(bad_count).where(*counted, bad_count.c.records == 0))


def forget(connection: Connection, source: str, *, except_for: str | None = None) -> None:
    """Deletes the records of a source that is read again from its first record, except those with one error."""
    for table in (quarantine, bad_count):
        connection.execute(delete(table).where(table.c.source == source, table.c.error.is_distinct_from(except_for)))


def forget_undeclared(connection: Connection) -> None:
    """Deletes the records of dropped sources. The master log still holds them."""
    for table in (quarantine, bad_count):
        connection.execute(delete(table).where(table.c.source.not_in(select(progress.c.query))))


def count(connection: Connection, source: str) -> int:
    """Number of a source's records that have gone to quarantine, including removed ones."""
    total = select(func.coalesce(func.sum(bad_count.c.records), 0))
    return int(connection.execute(total.where(bad_count.c.source == source)).scalar_one())


def counts_by_source(connection: Connection) -> tuple[Counter[str], Counter[str]]:
    """By source, the number of quarantined records, and the number of those that count without a field."""
    sums = func.sum(bad_count.c.records), func.sum(bad_count.c.records).filter(bad_count.c.error.startswith(NULLED))
    rows = connection.execute(select(bad_count.c.source, *sums).group_by(bad_count.c.source)).all()
    return Counter({name: int(total) for name, total, _ in rows}), Counter(
        {name: int(nulled or 0) for name, _, nulled in rows}
    )


def bad_field_count(connection: Connection, source: str) -> int:
    """Number of a source's quarantined records that count, with NULL for an unreadable field."""
    total = select(func.coalesce(func.sum(bad_count.c.records), 0)).where(bad_count.c.error.startswith(NULLED))
    return int(connection.execute(total.where(bad_count.c.source == source)).scalar_one())


def has_overflowed_within_an_hour(connection: Connection, source: str) -> bool:
    """True if more bad records of a source came within an hour than its bound of bytes holds."""
    of_source = quarantine.c.source == source
    oldest = select(func.clock_timestamp() - func.min(quarantine.c.quarantined_at)).where(of_source)
    age = connection.execute(oldest).scalar_one()
    if age is None or age >= timedelta(hours=1):
        return False
    stored = select(func.count(), func.sum(quarantine.c.size)).where(of_source)
    records, size = connection.execute(stored).one()
    return bool(count(connection, source) > records and size >= _bytes_kept(sources(connection)[source]) / 2)


def trim(database: Database, source: Source) -> None:
    """Removes the oldest records of a source beyond its bounds, in small transactions. Counts stay."""
    size, age = select(func.coalesce(func.sum(quarantine.c.size), 0)), source.properties.get("quarantine_age", OLDEST)
    with database.begin() as connection:
        left = int(connection.execute(size.where(quarantine.c.source == source.name)).scalar_one())
    removed = TRIM_AT_A_TIME
    while removed == TRIM_AT_A_TIME:
        with database.begin() as connection:
            bounds = {"source": source.name, "left": left, "most": _bytes_kept(source), "age": age, "some": removed}
            sizes = connection.execute(_TRIM, bounds).scalars().all()
        removed, left = len(sizes), left - sum(sizes)


def in_bytes(size: str) -> int:
    """The bytes of a declared size.

    >>> in_bytes("1 GB"), in_bytes("64 kB")
    (1073741824, 65536)
    """
    parts = re.fullmatch(r"(\d+) (\w+)", size)
    assert parts is not None
    return int(parts[1]) * _UNITS[parts[2]]


def _bytes_kept(source: Source) -> int:
    return in_bytes(source.properties.get("quarantine_bytes", MOST_BYTES))


def _count(connection: Connection, source: str, topic: str, counts: Mapping[str, int]) -> None:
    counted_reasons = set(connection.execute(select(bad_count.c.error).where(bad_count.c.source == source)).scalars())
    by_reason = Counter[str]()
    for error, records in sorted((error[:LONGEST_REASON], records) for error, records in counts.items()):
        apart = error in counted_reasons or len(counted_reasons) < MOST_REASONS
        counted_reasons |= {error} if apart else set()
        by_reason[error if apart else OTHER_REASONS] += records
    new = insert(bad_count)
    connection.execute(
        new.on_conflict_do_update(
            index_elements=[bad_count.c.source, bad_count.c.error],
            set_={"records": bad_count.c.records + new.excluded.records, "last": func.now()},
        ),
        [
            {"source": source, "topic": topic, "error": error, "records": records}
            for error, records in by_reason.items()
        ],
    )
