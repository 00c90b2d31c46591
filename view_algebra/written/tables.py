"""A table as the view that it is of its changes: of every key the newest record, where that does not delete it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from view_algebra.compiled import (
    DELETED,
    MOVED_FROM,
    ROWS_OF_CHANGE,
    SNAPSHOT,
    SOURCE_TIME,
    TOMBSTONE,
    TRUNCATES,
    changes_of,
)
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import BOOLEAN, TIMESTAMP, Type
from view_algebra.written.declarations import SourceDeclaration, ViewDeclaration
from view_algebra.written.dialect import parsed, text_of
from view_algebra.written.placeholders import is_there

_NTH, _LEFT = "kafka_nth", "kafka_left"
"""Of the changes that a record tells: which it is, and is it about the key that the row left? No declared names."""

IN_THE_LOG = "kafka_last"
"""The aggregate `kafka_last(x)`: the value of the last record in the log, whatever is the newest otherwise."""


@dataclass(frozen=True)
class Changes:
    """The changes of a table, as SQL says them: what they are selected from, and whether one takes its row away.

    An update that moves a row to another key is two changes of one time: the row of the old key goes, that of the new
    one comes. deleted: the condition that a change takes its row away. place: what puts changes of one time in order.
    moved: the columns of the key, where a row may leave it. where: the WHERE that leaves out what is not about one row.
    order, valid_from: the columns whose first known time says which change is newest, and from when it holds.
    """

    from_: str
    deleted: str
    place: Sequence[str]
    moved: frozenset[str]
    where: str
    order: tuple[str, ...]
    valid_from: tuple[str, ...]

    def column(self, name: str) -> str:
        """A column of the row, or of the one that goes."""
        own = spark_name(name)
        return f"CASE WHEN {_LEFT} THEN {MOVED_FROM}.{own} ELSE {own} END" if name in self.moved else own


def changes(table: SourceDeclaration) -> Changes:
    """The changes of a table."""
    records, place = spark_name(changes_of(table.name)), ("kafka_partition", "kafka_offset")
    if not table.of_changes:
        return Changes(f"{records} AS changes", DELETED, place, frozenset(), "", table.order, table.valid_from)
    return Changes(
        from_=f"{records} AS changes LATERAL VIEW {ROWS_OF_CHANGE} moved AS {_NTH}, {_LEFT}",
        deleted=f"({DELETED} OR {_LEFT})",
        place=(*place, _NTH),
        moved=frozenset(table.unique),
        where=f" WHERE NOT {TRUNCATES}",
        order=table.order,
        valid_from=table.valid_from,
    )


def first_known(columns: Sequence[str]) -> str:
    """The first of some times that is known, as Spark SQL.

    >>> first_known(["updated_at", "kafka_timestamp"]), first_known(["kafka_log_time"])
    ('coalesce(updated_at, kafka_timestamp)', 'kafka_log_time')
    """
    names = [spark_name(column) for column in columns]
    return names[0] if len(names) == 1 else f"coalesce({', '.join(names)})"


def changing(table: SourceDeclaration) -> list[tuple[str, Type]]:
    """The columns of a table's records that `parse` reads beside those that are declared, and their types."""
    if not table.of_changes:
        return [(DELETED, BOOLEAN)]
    keys = tuple(each for each in table.columns if each[0] in table.unique)
    return [
        (DELETED, BOOLEAN),
        (MOVED_FROM, Type("STRUCT", fields=keys)),
        (SOURCE_TIME, TIMESTAMP),
        (TOMBSTONE, BOOLEAN),
        (TRUNCATES, BOOLEAN),
        (SNAPSHOT, BOOLEAN),
    ]


@dataclass(frozen=True)
class _Newest:
    """Which record of a key a table shows, as SQL over the records of the key.

    By the source's time, a snapshot's row and the changes are looked at apart. The time of a snapshot's row says when
    it was read, and a snapshot takes long: a change that follows it in the log is newer, whatever its time.
    """

    table: SourceDeclaration

    def value(self, value: str, there: str | None = None) -> str:
        """The value of the newest record; `there`: the condition that a change tells it."""
        if self.table.newest_by != "source":
            return _last(value, there)
        changed = _last(value, _and(f"NOT {SNAPSHOT}", there))
        return f"CASE WHEN {self._is_change(there)} THEN {changed} ELSE {_last(value, SNAPSHOT)} END"

    def is_since_truncation(self) -> str:
        """The condition that it is newer than the newest truncation.

        A truncation is written to one partition. A change of the same time in another one is newer: a transaction that
        truncates a table and loads it again has one commit time.
        """
        records = spark_name(changes_of(self.table.name))

        def truncation(value: str) -> str:
            return f"(SELECT last_value({value}) FROM {records} AS truncations WHERE {TRUNCATES})"

        def newer(when: str | None) -> str:
            time, partition, offset = (_last(each, when) for each in (self._time, "kafka_partition", "kafka_offset"))
            later = f"{partition} <> {truncation('kafka_partition')} OR {offset} > {truncation('kafka_offset')}"
            same_time = f"{time} = {truncation(self._time)} AND ({later})"
            return f"coalesce({time} > {truncation(self._time)} OR {same_time}, true)"

        if self.table.newest_by != "source":
            return newer(None)
        of_change = f"WHEN {self._is_change(None)} THEN {newer(f'NOT {SNAPSHOT}')}"
        return f"CASE {of_change} ELSE {newer(SNAPSHOT)} END"

    @property
    def _time(self) -> str:
        return first_known(self.table.order)

    def _is_change(self, there: str | None) -> str:
        """The condition that the newest record is a change, rather than a snapshot's row."""
        change = _and(f"NOT {SNAPSHOT}", there)

        def compared(value: str, operator: str) -> str:
            return f"{_last(value, change)} {operator} {_last(value, SNAPSHOT)}"

        in_the_log = f"{compared('kafka_partition', '=')} AND {compared('kafka_offset', '>')}"
        alone = f"{_last('kafka_offset', SNAPSHOT)} IS NULL"
        return f"coalesce({compared(self._time, '>')} OR {in_the_log}, {alone})"


def _last(value: str, when: str | None) -> str:
    return f"last_value({value})" + (f" FILTER (WHERE {when})" if when else "")


def _and(condition: str, other: str | None) -> str:
    return f"{condition} AND {other}" if other else condition


def as_view(table: SourceDeclaration, passing: Mapping[str, str] = MappingProxyType({})) -> ViewDeclaration:
    """The view that a table is; `passing`: what its rows pass on of the records that they are, by name.

    The order of events says which record is newest (`SourceDeclaration.order`). A column that a change event does not
    tell has the value of the newest one that does.
    """
    of, newest = changes(table), _Newest(table)
    outputs = []
    for name, kind in table.columns:
        there = is_there(name, kind, table.encodings.placeholder)
        value = of.column(name) if name in table.unique else newest.value(of.column(name), there)
        outputs.append(f"{value} AS {spark_name(name)}")
    outputs += [f"{newest.value(text)} AS {name}" for name, text in passing.items()]
    keys = ", ".join(of.column(name) for name in table.unique)
    having = f"NOT {newest.value(of.deleted)}"
    if table.newest_by == "source":
        having += f" AND NOT {IN_THE_LOG}({TOMBSTONE} AND NOT {_LEFT})"
    if table.of_changes:
        having += f" AND {newest.is_since_truncation()}"
    select = parsed(f"SELECT {', '.join(outputs)} FROM {of.from_}{of.where} GROUP BY {keys} HAVING {having}")
    return ViewDeclaration(
        name=table.name,
        file=table.file,
        place=table.place,
        columns=(),
        comments=table.comments,
        comment=table.comment,
        properties={"index": table.properties["index"]} if "index" in table.properties else {},
        select=select,
        select_text=text_of(select),
        sql=table.sql,
    )
