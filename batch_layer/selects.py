"""The author's SELECT, run by Spark: over given records, and at past states over every record below their offsets."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING

from batch_layer.comparison import Row
from batch_layer.compute import is_kept, records_that_count
from batch_layer.stalls import Work
from master_log.causes import interrupted_at_once
from master_log.kafka.brokers import Brokers
from master_log.offsets import OffsetRange, Offsets
from master_log.reading.kafka_reader import within
from serving_layer.catalog import definitions
from serving_layer.catalog.deployed import deployed
from serving_layer.postgres.database import Database
from serving_layer.promise import progress
from serving_layer.readers.row_keys import RowKey
from view_algebra.compiled import JSON_TIMES, Catalog, Source, View
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import spark_name
from view_algebra.language.times import NOW_IN_SPARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from master_log.log import MasterLog

MANY = 100
"""Rows that one key may have. With more rows, the words do not name a key."""


def set_clock(spark: SparkSession, views: Iterable[View], at: datetime) -> None:
    """Sets the value of `now()` in the SELECTs of views: the time of the snapshot that they were read in."""
    if any(NOW_IN_SPARK in view.spelled for view in views):
        text = f"TIMESTAMP '{at.astimezone(UTC).isoformat()}'"
        spark.sql(f"DECLARE OR REPLACE VARIABLE lamina_now TIMESTAMP DEFAULT {text}")


def select_all(
    spark: SparkSession, views: Collection[View], since: Mapping[str, datetime | None], clock: datetime
) -> None:
    """Makes the author's SELECT of each view a table of Spark, over tables of its records and of the views it reads.

    since: the time from which each view keeps groups
    clock: the value of `now()`
    """
    set_clock(spark, views, clock)
    for view in views:
        select(spark, view, since.get(view.name))


def select(spark: SparkSession, view: View, begins: datetime | None) -> None:
    """Makes the author's SELECT of one view a table of Spark, without the groups before `begins`."""
    selected = spark.sql(view.spelled).toDF(*[column.name for column in view.columns])
    rows = selected if begins is None else selected.where(is_kept(view.retained, begins))
    rows.createOrReplaceTempView(view.name)


def rows_of(result: DataFrame) -> list[Row]:
    """The rows of the author's SELECT, nested values as the JSON that the view shows, and bytes in base64."""
    from pyspark.sql.functions import base64, col, to_json, translate

    kinds = [field.dataType.typeName() for field in result.schema]
    nested = [kind in ("struct", "array", "map") for kind in kinds]
    as_shown = {"binary": lambda name: translate(base64(name), "\r\n", "")}
    as_shown |= dict.fromkeys(("struct", "array", "map"), lambda name: to_json(name, JSON_TIMES))
    names = [f"`{column}`" for column in result.columns]
    selected = result.select([as_shown.get(kind, col)(name) for name, kind in zip(names, kinds, strict=True)])
    table = interrupted_at_once(selected.toArrow)
    columns = [
        [None if value is None else json.loads(value) for value in column.to_pylist()] if json_ else column.to_pylist()
        for column, json_ in zip(table.columns, nested, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else []


def work_of(catalog: Catalog, name: str, starts: Mapping[str, Offsets], below: Mapping[str, Offsets]) -> Work:
    """The computation of a view's SELECT over its sources' records from `starts` up to `below`, to be watched."""
    sources = {source: catalog.sources[source] for source in catalog.views[name].sources}
    reads = {source: (read, OffsetRange.since(starts[source], below[source])) for source, read in sources.items()}
    under = definitions.of(catalog, name).views
    return Work(name, reads, [table for view in under for table in catalog.views[view].cell_tables])


def not_served(name: str, evidence: str) -> LaminaError:
    """The error for a view that shows no rows yet."""
    return LaminaError(f"{name} is not served", evidence=evidence, way_out=f"`lamina rebuild {name}` computes it.")


@dataclass(frozen=True)
class PastState:
    """Progress by source, and the view as it was then.

    shown: False before the view was first read
    definition: the id of its SELECT, or None if that is unknown
    since: the time from which each view kept groups
    """

    below: Mapping[str, Offsets]
    shown: bool
    definition: str | None
    since: Mapping[str, datetime | None]


@dataclass(frozen=True)
class Services:
    """The services that hold a view and the records of its SELECT.

    spark, log: return the session and the master log, and start Spark if necessary
    """

    database: Database
    spark: Callable[[], SparkSession]
    log: Callable[[], MasterLog]
    brokers: Brokers


class PastRows:
    """Computes the rows of one key of a view at any of these states, in the order of time.

    clock: the value of `now()` at all states, so that only records change rows
    """

    def __init__(
        self, services: Services, name: str, key: RowKey, states: Sequence[PastState], clock: datetime
    ) -> None:
        self._spark, self._log, self._brokers = services.spark(), services.log(), services.brokers
        self._name, self._key, self._states, self._clock = name, key, states, clock
        self._records: dict[tuple[str, str], tuple[DataFrame, DataFrame]] = {}
        with services.database.begin() as connection:
            catalog = deployed(connection)
            sources = catalog.views[name].sources
            self._starts = {source: progress.starts(connection, [source]) for source in sources}
            begins = {source: progress.begins(connection, catalog.sources[source].topic) for source in sources}
            topic_ids = {name: query.topic_id for name, query in progress.queries(connection).items()}
            ids = {state.definition for state in states if state.definition is not None}
            self._definitions = {id: definitions.get(connection, id, name) for id in ids}
        self._compiled = catalog.views[name]
        for source in sources:
            self._log.create(catalog.sources[source], topic_ids[source], begins[source])

    def close(self) -> None:
        """Releases the memory of Spark that it holds."""
        for _, recent in self._records.values():
            recent.unpersist()

    def view_at(self, number: int) -> View | None:
        """The view as it was at a state, or None if that is unknown."""
        id = self._states[number].definition
        return None if id is None else self._definitions[id].views[self._name]

    def rows(self, numbers: Sequence[int]) -> list[list[Row] | None]:
        """The rows of the key at each of these states. None if the SELECT is unknown or lacks the key's columns."""
        asked = [number for number in numbers if self._can_answer(number)]
        rows_at: dict[int, list[Row]] = {number: [] for number in asked}
        frames = {number: self._selected(self._states[number]).limit(MANY + 1) for number in asked}
        for number, row in self._collect(frames):
            rows_at[number].append(row)
        if any(len(rows) > MANY for rows in rows_at.values()):
            raise LaminaError(
                f"More than {MANY} rows of {self._name} have this key",
                evidence=f"asked for {self._key.spark(self._compiled)}",
                way_out="Name more columns, in the form column=value.",
            )
        return [rows_at.get(number) if self._states[number].shown else [] for number in numbers]

    def records_touch_key(self, spans: Sequence[tuple[int, int]]) -> list[bool]:
        """True, for each span, if the records between its two states give a row of the key by themselves."""
        frames = {
            number: self._selected(self._states[end], after=self._states[start].below).limit(1)
            for number, (start, end) in enumerate(spans)
            if self._can_answer(end)
        }
        touching = {number for number, _ in self._collect(frames)}
        return [number in touching for number in range(len(spans))]

    def _can_answer(self, number: int) -> bool:
        state = self._states[number]
        if state.definition is None:
            return False
        definition = self._definitions[state.definition]
        retaining = {view.name for view in definition.views.values() if view.retained}
        if not (definition.sources.keys() <= state.below.keys() and retaining <= state.since.keys()):
            return False  # the history of a source that the view no longer reads is unknown
        return self._key.values.keys() <= {column.name for column in definition.views[self._name].columns}

    def _collect(self, frames: Mapping[int, DataFrame]) -> list[tuple[int, Row]]:
        """The rows of several frames, each with its frame's number, by one job of Spark per schema."""
        from pyspark.sql.functions import lit

        by_schema: dict[str, list[DataFrame]] = {}
        for number, frame in frames.items():
            by_schema.setdefault(str(frame.schema), []).append(frame.select(lit(number), "*"))
        collected = [rows_of(reduce(lambda whole, part: whole.unionAll(part), some)) for some in by_schema.values()]
        return [(number, tuple(row)) for rows in collected for number, *row in rows]

    def _selected(self, state: PastState, after: Mapping[str, Offsets] | None = None) -> DataFrame:
        """The rows of the key by a state's SELECT, from the records below its offsets and `after` others."""
        assert state.definition is not None
        definition = self._definitions[state.definition]
        for name, source in definition.sources.items():
            older, recent = self._records_of(state.definition, source)
            begins = self._states[0].below if after is None else after
            newer = recent.where(within(OffsetRange.since(begins[name], state.below[name])))
            records = newer if after is not None else older.unionByName(newer)
            records_that_count(records, source).createOrReplaceTempView(spark_name(source.records))
        select_all(self._spark, definition.views.values(), state.since, self._clock)
        return self._spark.table(self._name).where(self._key.spark(definition.views[self._name]))

    def _records_of(self, definition: str, source: Source) -> tuple[DataFrame, DataFrame]:
        """The records of a source below the first state, and those since then, as a definition declares them."""
        if (definition, source.name) not in self._records:
            first, newest = (self._states[at].below[source.name] for at in (0, -1))
            whole = self._log.records(source, newest, self._brokers, since=self._starts[source.name])
            since_then = within(OffsetRange.since(first, newest))
            older, recent = whole.where(f"NOT ({since_then})"), whole.where(since_then).persist()
            self._records[definition, source.name] = (older, recent)
        return self._records[definition, source.name]
