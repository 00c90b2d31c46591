"""The ids of the events that were counted, of streams that tell events apart: a copy of one is not counted again.

An aggregate cannot take a record back, so copies are left out of what is computed (`find`). The new ids are
written in the transaction that moves progress (`write`). So the ids are those of all good records below progress,
whatever views there are: a crash, a replay or a lost checkpoint changes nothing.

Of copies in one micro-batch the least by (Kafka's time, partition, offset) counts; of others the one that came first.
The batch layer takes the least of all. Where that is another record, and differs, it is a conflict: it is counted here,
and the next rebuild corrects it.
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
from serving_layer.postgres.copying import Rows, batches, raw_bytes
from view_algebra.compiled import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOUR = 3_600_000_000
"""Microseconds. No table of ids is for less time than that: each one more has to be looked into."""

MANY_TABLES = 50
"""With so many more tables, each new one is for twice the time."""

CENTURY = 100 * 365 * 24 * HOUR
"""Microseconds. No period grows beyond it."""

_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}

_BYTES = 16
"""Of an id; two hexadecimal digits each, as `Source.ids` gives them."""

_NAMES = 'id, at, partition, "offset", content'
_COLUMNS = 'id uuid, at bigint, partition integer, "offset" bigint, content bigint'
"""Of a table of ids: 16 bytes that tell an event; of the record that counts Kafka's time (microseconds since 1970), its
partition and its offset; a fingerprint of its value."""

_TEMPORARY = "CREATE TEMPORARY TABLE IF NOT EXISTS {name} ({columns}) ON COMMIT DELETE ROWS"

_LOOK_UP = """
SELECT number, counted.at, counted.partition, counted."offset", counted.content
FROM given_ids JOIN ({counted}) AS counted USING (id)"""
"""Of the ids of a micro-batch, by their numbers, those that were counted, and the record that was."""

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
"""Spark SQL: of each event the record that counts, and how many copies there are of it."""

_PLACE = ["partition", "offset"]
_PLACE_IN_TIME = ["at", *_PLACE]
"""Of copies the one whose columns are the least counts."""

Period = tuple[int, int] | tuple[None, None]
"""From when to when (microseconds since 1970) Kafka's times are of the ids in a table; None where it takes all."""

_FOREVER: Period = (None, None)


@dataclass(frozen=True)
class Found:
    """What the ids of a micro-batch say, beside those of the events that were counted.

    copies: `partition` and `offset` of the records that do not count, `duplicates` how many. fresh: the ids that are
    new, and `periods` those of the tables that take them. lesser: copies that come before the record that was counted.
    conflicts: how many of these differ from it. newest: per partition, the greatest of Kafka's times. horizon: ids of
    before it are forgotten.
    """

    copies: pa.Table
    duplicates: int
    fresh: Rows
    periods: Sequence[Period]
    lesser: Rows
    conflicts: int
    newest: Mapping[int, int]
    horizon: int | None


def in_order(ids: pa.Table) -> pa.Table:
    """What `Source.ids` gives of some records, as `find` takes it: by id, and of an id by the places of its records."""
    given = _as_bytes(ids.rename_columns(["id", "at", "partition", "offset", "content"]))
    last, first = _halves(given["id"])
    by_first = np.argsort(first)
    if len(first) < 2 or np.diff(first[by_first]).all():  # no two alike, as a rule
        return given.take(by_first)
    places = [given[name].to_numpy() for name in ("offset", "partition", "at")]
    return given.take(np.lexsort([*places, last, first]))


def come_twice(given: pa.Table) -> bool:
    """Are some of these, which are in order, of one event?"""
    return bool(_same_as_before(given["id"]).any())


def find(connection: Connection, source: Source, given: pa.Table) -> Found:
    """Looks up the ids of a micro-batch, which are `in_order`, and no others."""
    again = _same_as_before(given["id"])
    tables = _tables(connection, source.name)
    known = _look_up(connection, tables.values(), given["id"], np.flatnonzero(~again))
    copies = again.copy()
    copies[known["number"].to_numpy()] = True
    counting = given.take(known["number"])
    lesser = _before(counting, known)
    newest = dict(zip(*given.group_by("partition").aggregate([("at", "max")]).to_pydict().values(), strict=True))
    clock, within = now(connection), dedupe_within(source)
    horizon = None if within is None else _horizon(connection, source.name, newest, clock, within)
    fresh = given.filter(pa.array(~copies))
    fresh = fresh if horizon is None else fresh.filter(pc.greater_equal(fresh["at"], horizon))
    span = pc.min_max(fresh["at"]).as_py() if fresh.num_rows else {"min": 0, "max": 0}
    length = None if within is None else _length(within, len(tables), min(span["max"], clock) - span["min"])
    begins = _begins(fresh["at"], length, clock)
    return Found(
        copies=given.filter(pa.array(copies)).select(_PLACE),
        duplicates=int(copies.sum()),
        fresh=_rows(fresh.append_column("begins", begins)),
        periods=[_period(each, length) for each in begins.unique().to_pylist()],
        lesser=_rows(counting.filter(pa.array(lesser))),
        conflicts=int((lesser & (counting["content"].to_numpy() != known["content"].to_numpy())).sum()),
        newest=newest,
        horizon=horizon,
    )


def below(source: Source, records: DataFrame, now: int) -> Found:
    """The ids of all records below a cut, for a leap: they take the place of those that were counted before."""
    records.createOrReplaceTempView("records")
    spark, within = records.sparkSession, dedupe_within(source)
    newest = {row.partition: row.at for row in spark.sql(_NEWEST.format(ids=source.ids)).collect()}
    horizon = None if within is None or not newest else min(now, *newest.values()) - within
    length = (
        None
        if within is None
        else _length(within, 0, 0 if horizon is None else min(now, max(newest.values())) - horizon)
    )
    fresh, duplicates, beginnings = Rows(format="binary"), 0, set[int]()
    for batch in batches(spark.sql(_LEAST.format(ids=source.ids))):
        given = _as_bytes(pa.Table.from_batches([batch]))
        duplicates += pc.sum(given["more"]).as_py() or 0
        kept = given if horizon is None else given.filter(pc.greater_equal(given["at"], horizon))
        begins = _begins(kept["at"], length, now)
        beginnings |= set(begins.unique().to_pylist())
        fresh.add(kept.drop_columns("more").append_column("begins", begins))
    periods = [_period(each, length) for each in beginnings]
    none = pa.table({"partition": pa.array([], pa.int32()), "offset": pa.array([], pa.int64())})
    return Found(none, duplicates, fresh, periods, Rows(format="binary"), 0, newest, horizon)


def stage(connection: Connection, found: Found | None) -> None:
    """Sends ids to Postgres, where nobody sees them yet: a process that freezes meanwhile holds no lock."""
    if found is not None:
        run(connection, _TEMPORARY.format(name="fresh_ids", columns=f"{_COLUMNS}, begins bigint"))
        run(connection, _TEMPORARY.format(name="lesser_ids", columns=_COLUMNS))
        run(connection, "TRUNCATE fresh_ids, lesser_ids")  # a leap writes those of several queries
        copy(connection, f"fresh_ids ({_NAMES}, begins)", found.fresh)
        copy(connection, f"lesser_ids ({_NAMES})", found.lesser)


def write(connection: Connection, name: str, found: Found | None) -> None:
    """Makes staged ids those of counted events, in the transaction that moves the progress of the query."""
    if found is None:
        return
    tables = _tables(connection, name)
    for period in found.periods:
        table = tables[period] if period in tables else create(connection, name, period)
        of_table = "" if period[0] is None else f" WHERE begins = {period[0]}"
        # In the order of the index: one page of it after the other.
        run(connection, f"INSERT INTO {table} ({_NAMES}) SELECT {_NAMES} FROM fresh_ids{of_table} ORDER BY id")
    for table in tables.values() if found.lesser.size else ():
        place = 'at = lesser.at, partition = lesser.partition, "offset" = lesser."offset", content = lesser.content'
        run(connection, f"UPDATE {table} AS counted SET {place} FROM lesser_ids AS lesser WHERE counted.id = lesser.id")
    counts = {"duplicates": query.c.duplicates + found.duplicates, "conflicts": query.c.conflicts + found.conflicts}
    connection.execute(update(query).where(query.c.name == name).values(counts))
    for partition, at in found.newest.items():
        row = (progress.c.query == name, progress.c.partition == partition)
        connection.execute(update(progress).where(*row).values(newest=func.greatest(progress.c.newest, at)))
    if found.horizon is not None:
        if _FOREVER in tables:  # of before `dedupe_within`: they are known until the last of them is old
            of_before = (ids_table.c.query == name, ids_table.c.begins.is_(None))
            connection.execute(update(ids_table).where(*of_before).values(begins=0, ends=now(connection)))
        forgotten = (ids_table.c.query == name, ids_table.c.ends <= found.horizon)
        connection.execute(delete(ids_table).where(*forgotten))


def forget(connection: Connection, name: str) -> None:
    """Begins anew for a query whose topic is read again from the first record, or whose ids are those of a leap."""
    connection.execute(delete(ids_table).where(ids_table.c.query == name))
    connection.execute(update(progress).where(progress.c.query == name).values(newest=None))
    connection.execute(update(query).where(query.c.name == name).values(duplicates=0, conflicts=0))


def create(connection: Connection, name: str, period: Period) -> str:
    """Makes a table for ids of a query; gives its name."""
    values = {"query": name, "begins": period[0], "ends": period[1]}
    id = connection.execute(insert(ids_table).values(values).returning(ids_table.c.id)).scalar_one()
    table = f"realtime.ids_{id}"
    run(connection, f"CREATE TABLE {table} ({_COLUMNS.replace('uuid', 'uuid NOT NULL')})")
    run(connection, f"CREATE INDEX ON {table} (id)")
    return table


def dedupe_within(source: Source) -> int | None:
    """For how many microseconds the copies of an event are known; None for ever."""
    declared = source.properties.get("dedupe_within")
    if declared is None:
        return None
    number, unit = declared.split(" ")
    return int(number) * _SECONDS[unit.removesuffix("s")] * 1_000_000


def now(connection: Connection) -> int:
    """Postgres' clock, in microseconds since 1970."""
    return round(connection.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one() * 1_000_000)


def _tables(connection: Connection, name: str) -> dict[Period, str]:
    rows = connection.execute(select(ids_table).where(ids_table.c.query == name).order_by(ids_table.c.id))
    return {(row.begins, row.ends): f"realtime.ids_{row.id}" for row in rows}


def _horizon(connection: Connection, name: str, newest: Mapping[int, int], now: int, within: int) -> int | None:
    """Ids of before are forgotten; None while none is.

    Partitions are read at a pace of their own, so the one that is farthest behind decides: the copy may be in it. One
    that holds nothing decides nothing, once the query has caught up.
    """
    rows = connection.execute(select(progress.c.partition, progress.c.newest).where(progress.c.query == name))
    reached = {row.partition: row.newest for row in rows}
    known = [_greatest(reached.get(at), newest.get(at)) for at in {*reached, *newest}]
    caught_up = connection.execute(select(query.c.caught_up_at).where(query.c.name == name)).scalar_one()
    times = [each for each in known if each is not None]
    if not times or (len(times) < len(known) and caught_up is None):
        return None
    return min(now, *times) - within


def _greatest(*times: int | None) -> int | None:
    return max((each for each in times if each is not None), default=None)


def _length(within: int, tables: int, span: int) -> int:
    """How long the periods are of which a table holds the ids, where those that are added span so much time.

    All tables are looked into, so where an idle partition keeps them from going, those that are added are of ever
    longer periods; and never more of them at once than there may be before they grow.

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
    """When the periods begin that ids are of, 0 where there are none; one that is ahead of the clock is of now."""
    if length is None:
        return pa.array(np.zeros(len(at), np.int64))
    return pa.array(np.minimum(at.to_numpy(), now) // length * length, pa.int64())


def _period(begins: int, length: int | None) -> Period:
    return _FOREVER if length is None else (begins, begins + length)


def _as_bytes(table: pa.Table) -> pa.Table:
    """With the digits of `id`, its first column, as the bytes that they say."""
    told = bytes.fromhex(b"".join(map(_characters, table["id"].chunks)).decode("ascii"))
    ids = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_BYTES), table.num_rows, [None, pa.py_buffer(told)])
    return table.set_column(0, "id", ids)


def _characters(texts: pa.Array) -> bytes:
    """One behind the other, of texts that are all of ids."""
    begins, ends = texts.offset, texts.offset + len(texts)
    return texts.buffers()[2][2 * _BYTES * begins : 2 * _BYTES * ends].to_pybytes() if len(texts) else b""


def _same_as_before(ids: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Of ids in their order, which are the same as the one before."""
    same = np.zeros(len(ids), bool)
    same[1:] = np.logical_and(*(half[1:] == half[:-1] for half in _halves(ids)))
    return same


def _halves(ids: pa.ChunkedArray) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], ...]:
    """The last 8 bytes of each, and the first, as numbers."""
    halves = raw_bytes(ids).view(">u8").reshape(-1, 2)
    return halves[:, 1].astype(np.uint64), halves[:, 0].astype(np.uint64)


def _look_up(connection: Connection, tables: Iterable[str], ids: pa.ChunkedArray, numbers: np.ndarray) -> pa.Table:
    """Of the ids with these numbers those that were counted: the number, and the record that counts."""
    counted = " UNION ALL ".join(f"SELECT {_NAMES} FROM {table}" for table in tables)
    found: Sequence[Row[Any]] = []
    if counted:
        run(connection, _TEMPORARY.format(name="given_ids", columns="id uuid, number bigint"))
        copy(connection, "given_ids (id, number)", _rows(pa.table({"id": ids.take(numbers), "number": numbers})))
        found = run(connection, _LOOK_UP.format(counted=counted)).all()
    columns = zip(*found, strict=True) if found else ((),) * 5
    return pa.table([pa.array(column, pa.int64()) for column in columns], ["number", *_PLACE_IN_TIME, "content"])


def _before(some: pa.Table, others: pa.Table) -> np.ndarray:
    """Which of some records come before the others."""
    before = np.zeros(some.num_rows, bool)
    for name in reversed(_PLACE_IN_TIME):
        mine, theirs = some[name].to_numpy(), others[name].to_numpy()
        before = (mine < theirs) | ((mine == theirs) & before)
    return before


def _rows(table: pa.Table) -> Rows:
    rows = Rows(format="binary")
    rows.add(table)
    return rows
