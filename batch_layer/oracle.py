"""The author's SELECT at past states: as it was deployed then, over every record below the offsets of the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from batch_layer.check import Row, rows_of, select_all
from batch_layer.compute import counting
from master_log.kafka import Brokers
from master_log.kafka_reader import within
from master_log.offsets import OffsetRange, Offsets
from serving_layer.catalog import definitions
from serving_layer.catalog.deployed import deployed
from serving_layer.postgres.database import Database
from serving_layer.promise import progress
from serving_layer.readers.row_keys import Key
from view_algebra.compiled import Source, View
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from master_log.log import MasterLog

MANY = 100
"""Rows that one key may have; with more rows, the words do not name a key."""


@dataclass(frozen=True)
class State:
    """Progress by source, and the view as it was then.

    shown: False before it was first read. definition: of its SELECT; None if that is not known. since: by view, the
    time from which it kept groups.
    """

    below: Mapping[str, Offsets]
    shown: bool
    definition: str | None
    since: Mapping[str, datetime | None]


class Oracle:
    """Gives the rows of one key of a view at any of these states; the last one is the newest.

    clock: the value of `now()` at all states, so that only records change rows.
    """

    def __init__(
        self,
        database: Database,
        spark: SparkSession,
        log: MasterLog,
        brokers: Brokers,
        name: str,
        key: Key,
        states: Sequence[State],
        clock: datetime,
    ) -> None:
        self._clock = clock
        self._spark, self._log, self._brokers, self._name, self._key = spark, log, brokers, name, key
        self._states = states
        self._records: dict[tuple[str, str], tuple[DataFrame, DataFrame]] = {}
        with database.begin() as connection:
            catalog = deployed(connection)
            sources = catalog.views[name].sources
            self._starts = {source: progress.starts(connection, [source]) for source in sources}
            begins = {source: progress.begins(connection, catalog.sources[source].topic) for source in sources}
            topic_ids = {name: query.topic_id for name, query in progress.queries(connection).items()}
            ids = {state.definition for state in states if state.definition is not None}
            self._definitions = {id: definitions.get(connection, id, name) for id in ids}
        self._compiled = catalog.views[name]
        for source in sources:
            log.create(catalog.sources[source], topic_ids[source], begins[source])

    def close(self) -> None:
        """Releases the memory of Spark that it holds."""
        for _, recent in self._records.values():
            recent.unpersist()

    def view_at(self, number: int) -> View | None:
        """The view as it was at a state; None if that is not known."""
        id = self._states[number].definition
        return None if id is None else self._definitions[id].views[self._name]

    def rows(self, numbers: Sequence[int]) -> list[list[Row] | None]:
        """The rows of the key at each of these states; None if the SELECT is not known, or lacks the key's columns."""
        asked = [number for number in numbers if self._answers(number)]
        rows_at: dict[int, list[Row]] = {number: [] for number in asked}
        frames = {number: self._selected(self._states[number]).limit(MANY + 1) for number in asked}
        for number, row in self._collected(frames):
            rows_at[number].append(row)
        if any(len(rows) > MANY for rows in rows_at.values()):
            raise LaminaError(
                f"More than {MANY} rows of {self._name} have this key",
                evidence=f"asked for {self._key.spark(self._compiled)}",
                way_out="Name more columns, in the form column=value.",
            )
        return [rows_at.get(number) if self._states[number].shown else [] for number in numbers]

    def hold(self, spans: Sequence[tuple[int, int]]) -> list[bool]:
        """True, for each span, if the records between its two states alone give a row of the key."""
        frames = {
            number: self._selected(self._states[end], after=self._states[start].below).limit(1)
            for number, (start, end) in enumerate(spans)
            if self._answers(end)
        }
        holding = {number for number, _ in self._collected(frames)}
        return [number in holding for number in range(len(spans))]

    def _answers(self, number: int) -> bool:
        state = self._states[number]
        if state.definition is None:
            return False
        definition = self._definitions[state.definition]
        retaining = {view.name for view in definition.views.values() if view.retained}
        if not (definition.sources.keys() <= state.below.keys() and retaining <= state.since.keys()):
            return False  # nothing is known of what the view no longer reads
        return self._key.values.keys() <= {column.name for column in definition.views[self._name].columns}

    def _collected(self, frames: Mapping[int, DataFrame]) -> list[tuple[int, Row]]:
        """The rows of several frames, each with its frame's number, by one job of Spark per schema."""
        from pyspark.sql.functions import lit

        alike: dict[str, list[DataFrame]] = {}
        for number, frame in frames.items():
            alike.setdefault(str(frame.schema), []).append(frame.select(lit(number), "*"))
        collected = [rows_of(reduce(lambda whole, part: whole.unionAll(part), some)) for some in alike.values()]
        return [(number, tuple(row)) for rows in collected for number, *row in rows]

    def _selected(self, state: State, after: Mapping[str, Offsets] | None = None) -> DataFrame:
        """The rows of the key by a state's SELECT, from all records below its offsets or those `after` others."""
        assert state.definition is not None
        definition = self._definitions[state.definition]
        for name, source in definition.sources.items():
            older, recent = self._of(state.definition, source)
            begins = self._states[0].below if after is None else after
            newer = recent.where(within(OffsetRange(_on(state.below[name], begins[name]), state.below[name])))
            records = newer if after is not None else older.unionByName(newer)
            counting(records, source).createOrReplaceTempView(spark_name(source.records))
        select_all(self._spark, definition.views.values(), state.since, self._clock)
        return self._spark.table(self._name).where(self._key.spark(definition.views[self._name]))

    def _of(self, definition: str, source: Source) -> tuple[DataFrame, DataFrame]:
        """The records of a source below the first state, and those since then, read as a definition declares them."""
        if (definition, source.name) not in self._records:
            first, newest = (self._states[at].below[source.name] for at in (0, -1))
            whole = self._log.records(source, newest, self._brokers, since=self._starts[source.name])
            since_then = within(OffsetRange(_on(newest, first), newest))
            older, recent = whole.where(f"NOT ({since_then})"), whole.where(since_then).persist()
            self._records[definition, source.name] = (older, recent)
        return self._records[definition, source.name]


def _on(below: Offsets, begins: Offsets) -> Offsets:
    """The beginnings of these partitions; a partition that is new then begins at its first record."""
    return Offsets({at: begins.get(at, 0) for at in below})
