"""The master log: Kafka's committed records, kept in Iceberg, one table per topic.

A table holds a record per row: where it stood in Kafka, its key, headers and raw value, and the declared columns
parsed, so that a rebuild reads columns and nothing else. Where a stream and a table are declared over one topic, its
log is theirs together, and each parses the raw values. How it is laid out, and why:

- Partitioned by `kafka_partition`. An archive run writes each Kafka partition in the order of its offsets, so a file
  spans a range of offsets, and Iceberg's minimum and maximum of `kafka_offset` per file prune whatever lies beyond a
  cut or outside a range. Days or hours would prune nothing here: cuts are offsets.
- `kafka_value` and `kafka_key` carry no such statistics: nobody searches by them, and they would swell the manifests.

**What is held** of a topic is the vector `lamina.held` that each archive run writes into the summary of its own
commit: the commit that adds the records says how far they reach. It is found by walking from the newest snapshot to
its parents. The greatest offset in the table would not do: it stays below the end for ever where a transaction's marker
is the last thing in a partition.

**Of two runs at once one is refused**, although Iceberg itself lets any number of appends succeed: a run writes to a
branch that starts at the snapshot whose `held` it read, and then fast-forwards the table to it, which Iceberg refuses
when the table has moved.

**An operator may run** `rewrite_data_files`, `rewrite_manifests`, `expire_snapshots` and `remove_orphan_files` at any
time beside `maintain`, and `rollback_to_snapshot` to an older archive run (what came after is then archived again).
The snapshot of the last run has a branch of its own (`archive_…`), and so never expires, until `maintain` has said in
a later one what is held. An archive run that meets one of these in its own time gives up with nothing changed.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.functions import col, lit

from master_log import durable
from master_log.iceberg import Snapshot, Table, quoted, telling
from master_log.kafka import Brokers
from master_log.offsets import Cut, OffsetRange, Offsets, Skipped, TopicPartition
from master_log.reading import below, kafka_range, parsed, unreadable
from master_log.tails import Differs, Tails, from_json, to_json
from view_algebra.compiled import Source
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import spark_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HELD = "lamina.held"
"""Snapshot summary: the vector below which every record is in the log, in Spark's JSON form."""

LOST = "lamina.lost"
"""Snapshot summary: ranges whose records Kafka removed before they were archived, as `{"orders": {"0": [5, 9]}}`."""

TAILS = "lamina.tails"
"""Snapshot summary: what stood last below `held` in Kafka, per partition: see `master_log/tails.py`."""

REPLACED = "lamina.replaced"
"""Snapshot summary: ranges of which Kafka lost the records that the log held, as `{"orders": {"0": [90, 100]}}`."""

START = "lamina.start"
"""Table property: where the log begins, the earliest offsets when the first of its sources was applied."""

TOPIC_ID = "lamina.topic-id"
"""Table property: Kafka's id of the topic."""

PARSED_BY = "lamina.parsed-by"
"""Table property: fingerprint of the one `Source.parse` by which all rows were parsed, or `several`."""

_BRANCH = "archive_"
"""Begins the name of the branch that an archive run writes to."""

_RECORD = (
    "kafka_partition INT, kafka_offset BIGINT, kafka_timestamp TIMESTAMP, kafka_key BINARY,"
    " kafka_headers ARRAY<STRUCT<key: STRING, value: BINARY>>, kafka_value BINARY, kafka_error STRING"
)
_RECORD_COLUMNS = (
    "kafka_partition",
    "kafka_offset",
    "kafka_timestamp",
    "kafka_key",
    "kafka_headers",
    "kafka_value",
    "kafka_error",
)
_KEPT = {
    "format-version": "2",
    "write.distribution-mode": "none",
    "write.metadata.metrics.column.kafka_value": "none",
    "write.metadata.metrics.column.kafka_key": "none",
    # A backup of the catalog names the metadata file of its moment: `maintain` removes them by age, and not a commit,
    # which goes by their number.
    "write.metadata.delete-after-commit.enabled": "false",
    "write.metadata.previous-versions-max": "20",
    "write.metadata.compression-codec": "gzip",
}


@dataclass(frozen=True)
class Maintained:
    """What maintenance did to one log: small files made into few large ones, snapshots and files that are gone."""

    compacted: int
    expired: int
    removed: int


@dataclass(frozen=True)
class Archived:
    """What one archive run did: `records` added, over `range`; `lost` of it Kafka had removed before."""

    records: int
    range: OffsetRange
    lost: OffsetRange

    @property
    def held(self) -> Offsets:
        """What is held since."""
        return self.range.end


class MasterLog:
    """The logs of all topics, in one Iceberg catalog of the Spark session."""

    def __init__(
        self, spark: SparkSession, catalog: str = "lamina", skipped: Callable[[], Skipped] = frozenset
    ) -> None:
        """`skipped` tells which records were skipped by name: they are not taken, and not given where they were."""
        self._spark = spark
        self._catalog = catalog
        self._skipped = skipped

    def create(self, source: Source, topic_id: str, start: Offsets) -> None:
        """Opens the log of the source's topic at `start`.

        One that is open already begins at `start` from now on: a source that was dropped and declared again answers
        for the records since then, and the log may hold older ones. Where the topic was created anew before it was
        declared again, the log of the old one is set aside under its topic's id.
        """
        table = self._table(source)
        if table.exists() and table.properties()[TOPIC_ID] != topic_id:
            with telling(f"{source.name}: the log of the topic before was not set aside"):
                table.rename(quoted("log", f"{source.topic}-{table.properties()[TOPIC_ID]}"))
        if table.exists():
            if self._start(table) != (begin := Offsets.of(source.topic, start.on(source.topic))):
                table.set_properties({START: begin.json()})
            return
        declared = "".join(f", {quoted(column.name)} {column.spark}" for column in source.read)
        properties = _KEPT | {
            START: Offsets.of(source.topic, start.on(source.topic)).json(),
            TOPIC_ID: topic_id,
            PARSED_BY: _fingerprint(source),
        }
        listed = ", ".join(f"{spark_text(key)} = {spark_text(value)}" for key, value in properties.items())
        # A folder per topic id, not per name: a topic deleted and created again never shares a folder with the old one.
        warehouse = self._spark.conf.get(f"spark.sql.catalog.{self._catalog}.warehouse")
        folder = f"{str(warehouse).rstrip('/')}/log/{source.topic}-{topic_id}"
        with telling(f"{source.name}: its log was not created"):
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(self._catalog, 'log')}")
            began = durable.now()
            self._spark.sql(
                f"CREATE TABLE IF NOT EXISTS {table.name} ({_RECORD}{declared}) USING iceberg "
                f"PARTITIONED BY (kafka_partition) LOCATION {spark_text(folder)} TBLPROPERTIES ({listed})"
            )
            durable.newer(folder, began)

    def opened(self, source: Source) -> bool:
        """True when there is a log of the source's topic."""
        return self._table(source).exists()

    def topic_id(self, source: Source) -> str:
        """Kafka's id of the topic whose records the log holds."""
        return self._opened(source).properties()[TOPIC_ID]

    def start(self, source: Source) -> Offsets:
        """Where the log begins: below it there is nothing, and nothing is missed."""
        return self._start(self._opened(source))

    def held(self, source: Source) -> Offsets:
        """The vector below which every record since `start` is in the log; a partition it does not name begins at 0."""
        return self._held(self._opened(source), source)[1]

    def tails(self, source: Source, held: Offsets) -> Tails:
        """What stood last below `held` in Kafka when it was archived; nothing where `held` is another by now."""
        table = self._opened(source)
        now = self._held(table, source)[1]
        return {at: tail for at, tail in self._tails(table, now).items() if now.get(at) == held.get(at)}

    def archive(
        self,
        source: Source,
        to: Cut,
        brokers: Brokers,
        *,
        accept_loss: bool = False,
        tails: Tails | None = None,
    ) -> Archived:
        """Adds the records of `[held, to)` in one commit that says `to`; a run that died before it changed nothing.

        Where `to` is not above what is held, nothing is added, per partition. Where a range holds only transaction
        markers, `held` moves all the same. Records that Kafka removed before they were archived are refused, or with
        `accept_loss` written down as lost. Refused too: a topic created anew, a `to` above what is committed in
        Kafka, and a second run at the same time (which the caller's lock prevents).

        Where Kafka has lost records that the log holds, and gave their offsets to others, nothing is added; with
        `accept_loss` the log is first cut back to where it agrees with Kafka. What was cut off stays readable under a
        tag. `tails` are those that whoever wants the records up to `to` has seen below it: others are refused.
        """
        table = self._opened(source)
        onto, held = self._held(table, source)
        reached = {at: max(end, held.get(at, 0)) for at, end in to.items() if at.topic == source.topic}
        whole = below(held.updated(reached), held)
        nothing = OffsetRange(Offsets({}), Offsets({}))
        self._same_topic(table, source, brokers.topic_id(source.topic))
        if differing := brokers.differing(to, tails or {}):
            raise _counted_others(source, differing)
        known = self._tails(table, held)
        if differing := brokers.differing(held, known) or _beyond(held, brokers.latest(source.topic)):
            if not accept_loss:
                raise _holds_others(source, differing)
            self._cut_back(table, source, held, differing, brokers)
            again = {at: end for at, end in to.items() if at.topic == source.topic}
            return self.archive(source, Offsets(again), brokers, accept_loss=True)
        if whole.end == held:
            return Archived(0, whole, nothing)
        self._reaches(source, whole, brokers)
        ends = {at: tail for at, tail in known.items() if whole.end[at] == held[at]} | brokers.tails(whole.end)
        lost = self._lost(whole, brokers)
        if lost.end and not accept_loss:
            raise _gone(source, lost)
        self._one_parse(table, source)
        summary = {HELD: whole.end.json(), TAILS: to_json(ends)} | ({LOST: _ranges(lost)} if lost.end else {})
        branch = f"{_BRANCH}{uuid.uuid4().hex}"
        with telling(f"{source.name}: its records were not archived"):
            onto = onto or table.append_nothing({HELD: held.json()})  # nothing is held, so there is no tail
            present = OffsetRange(whole.start.updated(lost.end), whole.end)
            written = self._append(table, source, brokers, present, onto, branch, summary)
            # Asked once more after the last record was read: it could have been another topic of that name.
            self._same_topic(table, source, brokers.topic_id(source.topic))
            # And the tails: that they are what they were before means that what was read is of one log.
            if differing := brokers.differing(whole.end, ends) or brokers.differing(held, known):
                raise _holds_others(source, differing)
            if not table.publish(branch):
                raise _changed_meanwhile(source, f"Found another commit on top of {held or 'an empty log'}.")
        return Archived(int(written.summary.get("added-records", "0")), whole, lost)

    def _append(
        self,
        table: Table,
        source: Source,
        brokers: Brokers,
        rng: OffsetRange,
        onto: Snapshot,
        branch: str,
        summary: Mapping[str, str],
    ) -> Snapshot:
        """Writes the records of a range to a branch that nobody reads yet; one that Spark cannot read is named."""
        skipped = self._skipped()
        rows = parsed(kafka_range(self._spark, brokers, source, rng, skipped), source)
        try:
            return table.append(self._columns_of(table, source, rows), onto.id, branch, summary)
        except (Py4JError, PySparkException) as error:
            raise unreadable(self._spark, brokers, source, rng, skipped) or error from error

    def maintain(self, source: Source, before: datetime) -> Maintained:
        """Keeps the log from growing but by its records; the caller's lock keeps archive runs away meanwhile.

        What a backup since `before` names stays: files that were replaced, snapshots that were followed by others, and
        metadata go when that happened before it. What is held is said by the commits of maintenance as well, so it
        does not depend on the snapshots of archive runs; those that tell of lost records stay for ever.
        """
        table = self._opened(source)
        newest, held = self._held(table, source)
        until = int(before.timestamp() * 1000)
        with telling(f"{source.name}: its log was not maintained"):
            found = table.properties()
            if lacking := {key: value for key, value in _KEPT.items() if found.get(key) != value}:
                table.set_properties(lacking)
            if newest is None:
                return Maintained(0, 0, table.remove_orphans(until))
            says = {HELD: held.json(), TAILS: to_json(self._tails(table, held))}
            compacted = table.compact("kafka_offset", says)
            if HELD not in next(table.lineage()).summary:
                table.append_nothing(says)
            table.forget_branches(_BRANCH)
            expired = table.expire(until, lambda snapshot: bool({LOST, REPLACED} & set(snapshot.summary)))
            return Maintained(compacted, expired, table.remove_orphans(until))

    def records_below(self, source: Source, cut: Cut, *, since: Offsets | None = None) -> DataFrame:
        """All records of the log below the cut (and not below `since`), good and bad: the columns of `Source.parse`.

        They come straight from the columns as they were parsed; rows archived under another declaration are
        parsed anew from the raw values.
        """
        table = self._opened(source)
        snapshot, held = self._held(table, source)
        wanted = Offsets.of(source.topic, cut.on(source.topic))
        if not held.reaches({at: end for at, end in wanted.items() if end > 0}):
            raise LaminaError(
                f"{source.name}: its log does not reach the cut",
                evidence=f"Held: {held or 'nothing'}.\nWanted: {wanted}.",
                way_out="Archive up to the cut first (`lamina archive`).",
            )
        if snapshot is None:
            return self._nothing(source)
        range = below(wanted, since or self._start(table))
        rows = table.read(snapshot.id).where(within(range))
        rows = _without(rows, range.holds(self._skipped()))
        if table.properties()[PARSED_BY] == _fingerprint(source):
            return rows.select(
                *_RECORD_COLUMNS,
                # Iceberg has no TINYINT or SMALLINT: what it widened is made what was declared.
                *(col(quoted(column.name)).cast(column.spark).alias(column.name) for column in source.read),
            )
        return parsed(_raw(rows, source), source)

    def records(self, source: Source, end: Offsets, brokers: Brokers, *, since: Offsets | None = None) -> DataFrame:
        """All records since `start` and below `end`, good and bad: the log's, and from where it ends Kafka's.

        `since` is the source's own start, where that of the log is another's.
        """
        table = self._opened(source)
        held = self._held(table, source)[1]
        wanted = Offsets.of(source.topic, end.on(source.topic))
        start = self._start(table)
        reached = Offsets({at: min(to, held.get(at, 0)) for at, to in wanted.items()})
        kept = self.records_below(source, reached, since=since)
        begin = {at: max(held.get(at, 0), (since or start).get(at, 0)) for at in wanted}
        rest = below(Offsets({at: to for at, to in wanted.items() if to > begin[at]}), Offsets(begin))
        if rest.empty:
            return kept
        self._in_kafka(table, source, rest, brokers)
        lost = self._lost(rest, brokers)
        if lost.end:
            raise _gone(source, lost)
        raw = kafka_range(self._spark, brokers, source, rest, self._skipped())
        return kept.unionByName(parsed(raw, source))

    def _table(self, source: Source) -> Table:
        return Table(self._spark, quoted(self._catalog, "log", source.topic))

    def _opened(self, source: Source) -> Table:
        table = self._table(source)
        if not table.exists():
            raise LaminaError(
                f"{source.name}: there is no log of topic {source.topic}",
                way_out="Run `lamina archive`, which opens it.",
            )
        return table

    def _start(self, table: Table) -> Offsets:
        return Offsets.parse(table.properties()[START])

    def _held(self, table: Table, source: Source) -> tuple[Snapshot | None, Offsets]:
        """The newest snapshot and what is held in it; the one is None and the other `start` before the first run."""
        newest: Snapshot | None = None
        start = self._start(table)
        for snapshot in table.lineage():
            newest = newest or snapshot
            if HELD in snapshot.summary:
                held = Offsets.parse(snapshot.summary[HELD])
                return newest, held.updated({at: max(begin, held.get(at, 0)) for at, begin in start.items()})
        if newest is None:
            return None, start
        raise LaminaError(
            f"{source.name}: its log does not tell what it holds",
            evidence=f"No snapshot since the oldest that is kept of {table.name} carries {HELD}.",
            way_out="Make one by `lamina archive` current again (CALL … set_current_snapshot): docs/operations.md.",
        )

    def _tails(self, table: Table, held: Offsets) -> Tails:
        """The tails of what is held, as the run that said so wrote them."""
        for snapshot in table.lineage():
            if HELD in snapshot.summary:
                said = Offsets.parse(snapshot.summary[HELD])
                return {at: tail for at, tail in _tails(snapshot).items() if said.get(at) == held.get(at)}
        return {}

    def _in_kafka(self, table: Table, source: Source, rng: OffsetRange, brokers: Brokers) -> None:
        """Refuses a topic that is not the log's, and ends that Kafka has not reached."""
        self._same_topic(table, source, brokers.topic_id(source.topic))
        self._reaches(source, rng, brokers)

    def _reaches(self, source: Source, rng: OffsetRange, brokers: Brokers) -> None:
        latest = brokers.latest(source.topic)
        if not latest.reaches(rng.end):
            raise LaminaError(
                f"{source.name}: topic {source.topic} ends before the records that are wanted",
                evidence=f"Found: {latest}.\nWanted: {rng.end}.",
                way_out="The brokers lost records, or are not the ones that were read before: correct LAMINA_KAFKA.",
            )

    def _cut_back(
        self, table: Table, source: Source, held: Offsets, differing: Sequence[Differs], brokers: Brokers
    ) -> None:
        """Makes the log end where it agrees with Kafka, in one commit; a tag keeps what it held until now."""
        ends = held.updated(self._agreed(table, source, held, differing, brokers))
        cut = OffsetRange(
            Offsets({each.at: ends[each.at] for each in differing}),
            Offsets({each.at: held[each.at] for each in differing}),
        )
        branch, now = f"{_BRANCH}{uuid.uuid4().hex}", next(table.lineage())
        summary = {HELD: ends.json(), TAILS: to_json(brokers.tails(ends)), REPLACED: _ranges(cut)}
        with telling(f"{source.name}: its log was not cut back"):
            table.tag(f"replaced_{now.id}", now.id)
            table.delete(within(cut), now.id, branch, summary)
            if not table.publish(branch):
                raise _changed_meanwhile(source, "Found another commit on top of the one that was cut back.")

    def _agreed(
        self, table: Table, source: Source, held: Offsets, differing: Sequence[Differs], brokers: Brokers
    ) -> dict[TopicPartition, int]:
        """For each partition that differs, the first offset from which the log's records are not Kafka's."""
        first, last = brokers.earliest(source.topic), brokers.latest(source.topic)
        floor = self._floor(table, differing, brokers)
        start = {each.at: min(held[each.at], max(floor.get(each.at, 0), first.get(each.at, 0))) for each in differing}
        ends = {at: max(begin, min(held[at], last.get(at, 0))) for at, begin in start.items()}
        common = OffsetRange(Offsets(start), Offsets(ends))
        columns, skipped = (*_RECORD_COLUMNS[:4], "kafka_value"), self._skipped()
        held_now = table.read(next(table.lineage()).id).where(within(common))
        mine = _without(held_now, common.holds(skipped)).select(*columns)
        theirs = parsed(kafka_range(self._spark, brokers, source, common, skipped), source).select(*columns)
        both = mine.exceptAll(theirs).unionAll(theirs.exceptAll(mine))
        rows = both.groupBy("kafka_partition").agg({"kafka_offset": "min"}).collect()
        return ends | {TopicPartition(source.topic, int(partition)): int(offset) for partition, offset in rows}

    def _floor(self, table: Table, differing: Sequence[Differs], brokers: Brokers) -> dict[TopicPartition, int]:
        """What the newest run had archived that agrees with Kafka, of each partition: below it nothing differs."""
        found: dict[TopicPartition, int] = {}
        for snapshot in table.lineage():
            left = [each.at for each in differing if each.at not in found]
            held, tails = Offsets.parse(snapshot.summary.get(HELD, "{}")), _tails(snapshot)
            asked = Offsets({at: held[at] for at in left if at in held and at in tails})
            other = {each.at for each in brokers.differing(asked, tails)}
            found |= {at: offset for at, offset in asked.items() if at not in other}
            if not left:
                break
        return found

    def _same_topic(self, table: Table, source: Source, topic_id: str | None) -> None:
        known = table.properties()[TOPIC_ID]
        if topic_id != known:
            found = f"topic id {topic_id}" if topic_id else "no such topic"
            raise LaminaError(
                f"{source.name}: topic {source.topic} is not the one whose records its log holds",
                evidence=f"Found: {found}.\nWanted: topic id {known}.",
                way_out="The topic was deleted and created again, or LAMINA_KAFKA names other brokers. Its offsets "
                "start anew, so it cannot continue this log: declare the source with a topic of another name, or drop"
                " it and its views and declare them again, which begins a new log.",
            )

    def _lost(self, rng: OffsetRange, brokers: Brokers) -> OffsetRange:
        gone = brokers.removed(rng.start)
        ends = {at: min(end, rng.end[at]) for at, end in gone.end.items() if at in rng.end}
        found = {at: end for at, end in ends.items() if end > rng.start[at]}
        return OffsetRange(Offsets({at: rng.start[at] for at in found}), Offsets(found))

    def _one_parse(self, table: Table, source: Source) -> None:
        """Notes, before any row says otherwise, that the log's rows were not all parsed by one text."""
        if table.properties()[PARSED_BY] not in (_fingerprint(source), "several"):
            table.set_properties({PARSED_BY: "several"})

    def _columns_of(self, table: Table, source: Source, rows: DataFrame) -> DataFrame:
        """The rows with the table's columns: one that is declared no more, or otherwise, is NULL."""
        found = table.columns()
        if table.properties()[PARSED_BY] == _fingerprint(source):
            return rows.select(*(col(quoted(name)) for name in found))
        given = {field.name: field.dataType.simpleString() for field in rows.schema}
        return rows.select(
            *(
                col(quoted(name)) if given.get(name) == kind else lit(None).cast(kind).alias(name)
                for name, kind in found.items()
            )
        )

    def _nothing(self, source: Source) -> DataFrame:
        raw = "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY"
        headers = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
        return parsed(self._spark.createDataFrame([], f"{raw}, {headers}"), source)


def _fingerprint(source: Source) -> str:
    return hashlib.sha256(source.parse.encode()).hexdigest()[:16]


def within(rng: OffsetRange) -> str:
    """The condition, in Spark SQL, on a record of a range: a term per partition, by which Iceberg prunes files."""
    terms = (
        f"(kafka_partition = {at.partition} AND kafka_offset >= {rng.start[at]} AND kafka_offset < {end})"
        for at, end in rng.end.items()
    )
    return " OR ".join(terms) or "false"


def _without(rows: DataFrame, skipped: Skipped) -> DataFrame:
    for at, offset in skipped:
        rows = rows.where((col("kafka_partition") != at.partition) | (col("kafka_offset") != offset))
    return rows


def _raw(rows: DataFrame, source: Source) -> DataFrame:
    """The rows as Kafka gave them."""
    return rows.select(
        lit(source.topic).alias("topic"),
        col("kafka_partition").alias("partition"),
        col("kafka_offset").alias("offset"),
        col("kafka_timestamp").alias("timestamp"),
        col("kafka_key").alias("key"),
        col("kafka_value").alias("value"),
        col("kafka_headers").alias("headers"),
    )


def _tails(snapshot: Snapshot) -> Tails:
    return from_json(snapshot.summary.get(TAILS, "{}"))


def _changed_meanwhile(source: Source, evidence: str) -> LaminaError:
    return LaminaError(
        f"{source.name}: its log changed while records were archived",
        evidence=evidence,
        way_out="Run it again: nothing was changed.",
    )


def _beyond(held: Offsets, latest: Offsets) -> list[Differs]:
    """The partitions that end in Kafka before what is held of them, also where no tail is known."""
    ends = {at: (end, latest.get(at, 0)) for at, end in held.items()}
    return [
        Differs(at, end, "a record", f"the end of the topic at {now}") for at, (end, now) in ends.items() if now < end
    ]


def _holds_others(source: Source, differing: Sequence[Differs]) -> LaminaError:
    return LaminaError(
        f"{source.name}: Kafka has lost records of {source.topic} that the master log holds",
        evidence="\n".join(map(str, differing)),
        way_out="Other records may have their offsets now. `lamina archive --accept-loss` cuts the log back to where it"
        " agrees with Kafka and keeps what it cuts off under a tag; `lamina rebuild --leap` makes the views the same.",
    )


def _counted_others(source: Source, differing: Sequence[Differs]) -> LaminaError:
    return LaminaError(
        f"{source.name}: Kafka has lost records of {source.topic} that were counted",
        evidence="\n".join(map(str, differing)),
        way_out="`lamina rebuild --leap` makes the views what the master log and Kafka hold now.",
    )


def _ranges(lost: OffsetRange) -> str:
    told: dict[str, dict[str, list[int]]] = {}
    for at, end in lost.end.items():
        told.setdefault(at.topic, {})[str(at.partition)] = [lost.start[at], end]
    return json.dumps(told)


def _gone(source: Source, lost: OffsetRange) -> LaminaError:
    listed = "\n".join(
        f"Partition {at.partition}: the offsets from {lost.start[at]} up to {end} (not including it)."
        for at, end in lost.end.items()
    )
    return LaminaError(
        f"{source.name}: records of topic {source.topic} were removed by retention before they were archived",
        evidence=listed,
        way_out="Raise the topic's retention.ms and archive more often. To go on without these records, "
        "run `lamina archive --accept-loss`, which writes down what is lost.",
    )
