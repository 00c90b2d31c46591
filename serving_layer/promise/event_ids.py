"""The ids of counted events, for streams with UNIQUE: a copy of a counted event is not counted again.

Most aggregates cannot take a record back, so copies are left out before cells are computed (`look_up`). The new ids are
written in the transaction that moves progress (`write`). So the stored ids always belong to the good records below
progress, whichever views exist. A crash, a replay or a lost checkpoint changes nothing.

Among copies in one micro-batch, the least by (Kafka's time, partition, offset) counts. Otherwise the first to arrive
counts. The batch layer counts the least of all copies. If that is another record with another value, the conflict is
counted, and the next rebuild corrects the views.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, Row, delete, func, insert, select, update

from serving_layer.postgres.bookkeeping import ids as ids_table
from serving_layer.postgres.bookkeeping import progress, query
from serving_layer.postgres.cells import copy, run
from serving_layer.postgres.copying import CopyRows, batches, raw_bytes
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOUR = 3_600_000_000
"""Microseconds. The shortest period of a table of ids: every look-up searches every table."""

MANY_TABLES = 50
"""Each time this many tables exist, the period of a new one doubles."""

CENTURY = 100 * 365 * 24 * HOUR
"""Microseconds. The longest period of a table of ids."""

_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}

_BYTES = 16
"""Size of an id. `Source.ids` gives each byte as two hexadecimal digits."""

_NAMES = 'id, at, partition, "offset", content'
_COLUMNS = 'id uuid, at bigint, partition integer, "offset" bigint, content bigint'
"""Columns of a table of ids: 16 bytes that identify the event, then Kafka's time (microseconds since 1970), partition,
offset and a fingerprint of the value of the record that counts."""

_TEMPORARY = "CREATE TEMPORARY TABLE IF NOT EXISTS {name} ({columns}) ON COMMIT DELETE ROWS"

_LOOK_UP = """
SELECT number, counted.at, counted.partition, counted."offset", counted.content
FROM looked_up_ids JOIN ({counted}) AS counted USING (id)"""
"""The counted ids among those of a micro-batch, by number, with the record that counts."""

_NEWEST = "SELECT kafka_partition AS partition, max(at) AS at FROM (\n{ids}\n) GROUP BY kafka_partition"
_LEAST = """
SELECT id, least.at, least.kafka_partition, least.kafka_offset, least.content, more
FROM (
  SELECT id, min(struct(at, kafka_partition, kafka_offset, content)) AS least, count(*) - 1 AS more
  FROM (
{ids}
  )
  GROUP BY id
)"""
"""Spark SQL: the record that counts of each event, and the number of its other copies."""

_RECORD = ["partition", "offset"]
_ORDER_OF_COPIES = ["at", *_RECORD]
"""The copy with the least values in these columns counts."""

Period = tuple[int, int] | tuple[None, None]
"""Begin and end (microseconds since 1970) of Kafka's times of the ids in a table, or Nones for all times."""

_FOREVER: Period = (None, None)


@dataclass(frozen=True)
class IdLookup:
    """The result of looking up the ids of a micro-batch.

    copies: `partition` and `offset` of the records that do not count
    duplicates: the number of copies
    fresh: the new ids
    periods: the periods of the tables that take the new ids
    lesser: copies that come before the record that was counted
    conflicts: the number of lesser copies that differ from the counted record
    newest: the greatest Kafka time of each partition
    horizon: ids before this time are forgotten
    """

    copies: pa.Table
    duplicates: int
    fresh: CopyRows
    periods: Sequence[Period]
    lesser: CopyRows
    conflicts: int
    newest: Mapping[int, int]
    horizon: int | None


def in_order(ids: pa.Table) -> pa.Table:
    """The result of `Source.ids` in the order that `look_up` needs: by id, and by record within an id."""
    sorted_ids = _as_bytes(ids.rename_columns(["id", "at", "partition", "offset", "content"]))
    last, first = _halves(sorted_ids["id"])
    by_first = np.argsort(first)
    if len(first) < 2 or np.diff(first[by_first]).all():  # usually all ids differ
        return sorted_ids.take(by_first)
    columns = [sorted_ids[name].to_numpy() for name in ("offset", "partition", "at")]
    return sorted_ids.take(np.lexsort([*columns, last, first]))


def has_copies(ids: pa.Table) -> bool:
    """True if two of these records, which are `in_order`, belong to one event."""
    return bool(_same_as_before(ids["id"]).any())


def look_up(connection: Connection, source: Source, ids: pa.Table) -> IdLookup:
    """Looks up the ids of a micro-batch. They must be `in_order`."""
    repeats = _same_as_before(ids["id"])
    tables = _tables(connection, source.name)
    counted = _counted(connection, tables.values(), ids["id"], np.flatnonzero(~repeats))
    copies = repeats.copy()
    copies[counted["number"].to_numpy()] = True
    counting = ids.take(counted["number"])
    lesser = _before(counting, counted)
    newest = dict(zip(*ids.group_by("partition").aggregate([("at", "max")]).to_pydict().values(), strict=True))
    clock, within = clock_micros(connection), dedupe_within(source)
    horizon = None if within is None else _horizon(connection, source.name, newest, clock, within)
    fresh = ids.filter(pa.array(~copies))
    fresh = fresh if horizon is None else fresh.filter(pc.greater_equal(fresh["at"], horizon))
    span = pc.min_max(fresh["at"]).as_py() if fresh.num_rows else {"min": 0, "max": 0}
    length = None if within is None else _length(within, len(tables), min(span["max"], clock) - span["min"])
    begins = _begins(fresh["at"], length, clock)
    return IdLookup(
        copies=ids.filter(pa.array(copies)).select(_RECORD),
        duplicates=int(copies.sum()),
        fresh=_rows(fresh.append_column("begins", begins)),
        periods=[_period(begin, length) for begin in begins.unique().to_pylist()],
        lesser=_rows(counting.filter(pa.array(lesser))),
        conflicts=int((lesser & (counting["content"].to_numpy() != counted["content"].to_numpy())).sum()),
        newest=newest,
        horizon=horizon,
    )


def ids_below_cut(source: Source, records: DataFrame, now: int) -> IdLookup:
    """The ids of all records below a cut, for a leap. They replace all ids of the source."""
    records.createOrReplaceTempView("records")
    spark, within = records.sparkSession, dedupe_within(source)
    newest = {row.partition: row.at for row in spark.sql(_NEWEST.format(ids=source.ids)).collect()}
    horizon = None if within is None or not newest else min(now, *newest.values()) - within
    span = 0 if horizon is None else min(now, max(newest.values())) - horizon
    length = None if within is None else _length(within, 0, span)
    fresh, duplicates, beginnings = CopyRows(format="binary"), 0, set[int]()
    for batch in batches(spark.sql(_LEAST.format(ids=source.ids))):
        ids = _as_bytes(pa.Table.from_batches([batch]))
        duplicates += pc.sum(ids["more"]).as_py() or 0
        recent = ids if horizon is None else ids.filter(pc.greater_equal(ids["at"], horizon))
        begins = _begins(recent["at"], length, now)
        beginnings |= set(begins.unique().to_pylist())
        fresh.add(recent.drop_columns("more").append_column("begins", begins))
    return IdLookup(
        copies=pa.table({"partition": pa.array([], pa.int32()), "offset": pa.array([], pa.int64())}),
        duplicates=duplicates,
        fresh=fresh,
        periods=[_period(begin, length) for begin in beginnings],
        lesser=CopyRows(format="binary"),
        conflicts=0,
        newest=newest,
        horizon=horizon,
    )


def stage(connection: Connection, lookup: IdLookup | None) -> None:
    """Sends ids to temporary tables. It takes no lock, so a process that freezes here blocks nobody."""
    if lookup is not None:
        run(connection, _TEMPORARY.format(name="fresh_ids", columns=f"{_COLUMNS}, begins bigint"))
        run(connection, _TEMPORARY.format(name="lesser_ids", columns=_COLUMNS))
        run(connection, "TRUNCATE fresh_ids, lesser_ids")  # a leap stages ids query by query
        copy(connection, f"fresh_ids ({_NAMES}, begins)", lookup.fresh)
        copy(connection, f"lesser_ids ({_NAMES})", lookup.lesser)


def write(connection: Connection, name: str, lookup: IdLookup | None) -> None:
    """Stores staged ids, in the transaction that moves the query's progress past their records."""
    if lookup is None:
        return
    tables = _tables(connection, name)
    for period in lookup.periods:
        table = tables[period] if period in tables else create(connection, name, period)
        period_condition = "" if period[0] is None else f" WHERE begins = {period[0]}"
        # In the order of the index, so its pages are touched one after the other.
        run(connection, f"INSERT INTO {table} ({_NAMES}) SELECT {_NAMES} FROM fresh_ids{period_condition} ORDER BY id")
    for table in tables.values() if lookup.lesser.size else ():
        columns = ", ".join(f"{column} = lesser.{column}" for column in ("at", "partition", '"offset"', "content"))
        condition = "FROM lesser_ids AS lesser WHERE counted.id = lesser.id"
        run(connection, f"UPDATE {table} AS counted SET {columns} {condition}")
    counts = {"duplicates": query.c.duplicates + lookup.duplicates, "conflicts": query.c.conflicts + lookup.conflicts}
    connection.execute(update(query).where(query.c.name == name).values(counts))
    for partition, at in lookup.newest.items():
        row = (progress.c.query == name, progress.c.partition == partition)
        connection.execute(update(progress).where(*row).values(newest=func.greatest(progress.c.newest, at)))
    if lookup.horizon is not None:
        if _FOREVER in tables:  # ids from before `dedupe_within` was declared: keep them until the last is old
            without_period = (ids_table.c.query == name, ids_table.c.begins.is_(None))
            connection.execute(update(ids_table).where(*without_period).values(begins=0, ends=clock_micros(connection)))
        forgotten = (ids_table.c.query == name, ids_table.c.ends <= lookup.horizon)
        connection.execute(delete(ids_table).where(*forgotten))


def forget(connection: Connection, name: str) -> None:
    """Deletes a query's ids, before its topic is read again from the first record or a leap writes its own."""
    connection.execute(delete(ids_table).where(ids_table.c.query == name))
    connection.execute(update(progress).where(progress.c.query == name).values(newest=None))
    connection.execute(update(query).where(query.c.name == name).values(duplicates=0, conflicts=0))


def create(connection: Connection, name: str, period: Period) -> str:
    """Creates a table for a query's ids of a period. Returns its name."""
    values = {"query": name, "begins": period[0], "ends": period[1]}
    id = connection.execute(insert(ids_table).values(values).returning(ids_table.c.id)).scalar_one()
    table = f"realtime.ids_{id}"
    run(connection, f"CREATE TABLE {table} ({_COLUMNS.replace('uuid', 'uuid NOT NULL')})")
    run(connection, f"CREATE INDEX ON {table} (id)")
    return table


def dedupe_within(source: Source) -> int | None:
    """Microseconds for which the copies of an event are recognized, or None if they always are."""
    declared = source.properties.get("dedupe_within")
    if declared is None:
        return None
    number, unit = declared.split(" ")
    return int(number) * _SECONDS[unit.removesuffix("s")] * 1_000_000


def clock_micros(connection: Connection) -> int:
    """Postgres' clock, in microseconds since 1970."""
    return round(connection.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one() * 1_000_000)


def _tables(connection: Connection, name: str) -> dict[Period, str]:
    rows = connection.execute(select(ids_table).where(ids_table.c.query == name).order_by(ids_table.c.id))
    return {(row.begins, row.ends): f"realtime.ids_{row.id}" for row in rows}


def _horizon(connection: Connection, name: str, newest: Mapping[int, int], now: int, within: int) -> int | None:
    """The time before which ids are forgotten, or None if no id is forgotten yet.

    Partitions are read at different speeds, so the one that is farthest behind decides: the next copy may come from it.
    An empty partition does not count once the query has caught up.
    """
    rows = connection.execute(select(progress.c.partition, progress.c.newest).where(progress.c.query == name))
    reached = {row.partition: row.newest for row in rows}
    latest = [_greatest(reached.get(at), newest.get(at)) for at in {*reached, *newest}]
    caught_up = connection.execute(select(query.c.caught_up_at).where(query.c.name == name)).scalar_one()
    times = [time for time in latest if time is not None]
    if not times or (len(times) < len(latest) and caught_up is None):
        return None
    return min(now, *times) - within


def _greatest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)


def _length(within: int, tables: int, span: int) -> int:
    """The length of the periods of new tables, for ids that span this much time.

    Every look-up searches all tables. While an idle partition keeps old tables from being dropped, new tables cover
    longer periods. One micro-batch never adds more than `MANY_TABLES` of them.

    >>> [_length(HOUR, tables, HOUR) // HOUR for tables in (0, 49, 50, 325)]
    [1, 1, 2, 64]
    >>> [_length(HOUR, 0, hours * HOUR) // HOUR for hours in (49, 50, 2160)], _length(HOUR, 5_000, HOUR) == CENTURY
    ([1, 2, 64], True)
    """
    shortest = max(within, HOUR)
    length = min(shortest << min(tables // MANY_TABLES, 30), max(shortest, CENTURY))
    while span // length >= MANY_TABLES:
        length *= 2
    return length


def _begins(at: pa.ChunkedArray, length: int | None, now: int) -> pa.Array:
    """The beginnings of the ids' periods, all 0 without periods. An id ahead of the clock counts as of now."""
    if length is None:
        return pa.array(np.zeros(len(at), np.int64))
    return pa.array(np.minimum(at.to_numpy(), now) // length * length, pa.int64())


def _period(begins: int, length: int | None) -> Period:
    return _FOREVER if length is None else (begins, begins + length)


def _as_bytes(table: pa.Table) -> pa.Table:
    """The table with the hexadecimal digits in `id`, its first column, turned into bytes."""
    digits = bytes.fromhex(b"".join(map(_characters, table["id"].chunks)).decode("ascii"))
    ids = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_BYTES), table.num_rows, [None, pa.py_buffer(digits)])
    return table.set_column(0, "id", ids)


def _characters(texts: pa.Array) -> bytes:
    """The characters of texts that are all ids, concatenated."""
    begins, ends = texts.offset, texts.offset + len(texts)
    return texts.buffers()[2][2 * _BYTES * begins : 2 * _BYTES * ends].to_pybytes() if len(texts) else b""


def _same_as_before(ids: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For sorted ids, True where an id equals the one before it."""
    same = np.zeros(len(ids), bool)
    same[1:] = np.logical_and(*(half[1:] == half[:-1] for half in _halves(ids)))
    return same


def _halves(ids: pa.ChunkedArray) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], ...]:
    """The last 8 bytes of each id, and the first 8, as numbers."""
    halves = raw_bytes(ids).view(">u8").reshape(-1, 2)
    return halves[:, 1].astype(np.uint64), halves[:, 0].astype(np.uint64)


def _counted(connection: Connection, tables: Iterable[str], ids: pa.ChunkedArray, numbers: np.ndarray) -> pa.Table:
    """Those of the numbered ids that are counted: the number, and the record that counts."""
    counted = " UNION ALL ".join(f"SELECT {_NAMES} FROM {table}" for table in tables)
    rows: Sequence[Row[Any]] = []
    if counted:
        run(connection, _TEMPORARY.format(name="looked_up_ids", columns="id uuid, number bigint"))
        copy(connection, "looked_up_ids (id, number)", _rows(pa.table({"id": ids.take(numbers), "number": numbers})))
        rows = run(connection, _LOOK_UP.format(counted=counted)).all()
    columns = zip(*rows, strict=True) if rows else ((),) * 5
    return pa.table([pa.array(column, pa.int64()) for column in columns], ["number", *_ORDER_OF_COPIES, "content"])


def _before(some: pa.Table, others: pa.Table) -> np.ndarray:
    """True where a record comes before the other one in the same row."""
    before = np.zeros(some.num_rows, bool)
    for name in reversed(_ORDER_OF_COPIES):
        left, right = some[name].to_numpy(), others[name].to_numpy()
        before = (left < right) | ((left == right) & before)
    return before


def _rows(table: pa.Table) -> CopyRows:
    rows = CopyRows(format="binary")
    rows.add(table)
    return rows
