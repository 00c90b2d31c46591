"""A table as SQL over its changes: its rows, and the versions of its rows.

A row is a key's newest record, unless that record deletes it. Debezium writes a placeholder for a long value that a
change in Postgres left unchanged, because the log does not repeat it. A placeholder is a text. A column of another type
has the bytes of the text, numbers made of these bytes, or a fixed value.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import md5
from types import MappingProxyType

from view_algebra.compiled import changes_name
from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.types import BOOLEAN, TIMESTAMP, Type
from view_algebra.record_columns import (
    CHANGED_ROWS,
    DELETED,
    LOG_TIME,
    MOVED_FROM,
    SNAPSHOT,
    SOURCE_TIME,
    TOMBSTONE,
    TRUNCATES,
)
from view_algebra.written.declarations.sources_and_views import SourceDeclaration, ViewDeclaration
from view_algebra.written.dialect import parsed, text_of

HOLDS = FROM, UNTIL = "kafka_from", "kafka_until"
"""The columns for the start of a version and of the next one. No author sees them, or may declare their names."""

_GEOMETRIES = ("AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "AQEAACDmEAAADCHn/f9/ZkAYQs77/39WQA==")
"""`wkb` of the placeholders of a geometry and a geography, in base64."""


def is_there(column: str, kind: Type, placeholder: str | None) -> str | None:
    """The condition that a change has a column's value, not a placeholder, or None if it always does.

    >>> from view_algebra.language.types import BINARY, INT
    >>> is_there("photo", BINARY, "unavailable"), is_there("n", INT, "unavailable")
    ("hex(photo) IS DISTINCT FROM hex('unavailable')", None)
    """
    if placeholder is None:
        return None
    own, text = spark_name(column), spark_text(placeholder)
    fields = dict(kind.fields)
    if kind.name == "STRING":
        return f"NOT coalesce({own} IN ({text}, {spark_text(_as_json(placeholder))}), false)"
    if kind.name == "BINARY":
        return f"hex({own}) IS DISTINCT FROM hex({text})"
    if kind.name == "MAP" and kind.key is not None and kind.key.name == "STRING":
        return f"{own}[{text}] IS NULL"
    if kind.name == "STRUCT" and "wkb" in fields and fields["wkb"].name == "STRING":
        return f"NOT coalesce({own}.wkb IN ({', '.join(map(spark_text, _GEOMETRIES))}), false)"
    if kind.name != "ARRAY" or kind.element is None:
        return None
    if kind.element.name == "STRING":
        return f"NOT coalesce({own}[0] IN ({text}, {spark_text(_as_uuid(placeholder))}), false)"
    if kind.element.numeric:
        numbers = ", ".join(f"CAST({byte} AS {kind.element.spark})" for byte in placeholder.encode())
        return f"NOT ({own} <=> array({numbers}))"
    return None


def _as_json(placeholder: str) -> str:
    """The placeholder of an hstore, which is JSON in a text."""
    return json.dumps({placeholder: placeholder}, separators=(",", ":"))


def _as_uuid(placeholder: str) -> str:
    """The UUID of the placeholder's bytes, as in Java's `nameUUIDFromBytes`."""
    return str(uuid.UUID(bytes=md5(placeholder.encode(), usedforsecurity=False).digest(), version=3))


_NTH, _LEFT = "kafka_nth", "kafka_left"
"""Columns of a record's changes: the number, and true for the key that the row left. Authors cannot use these names."""

IN_THE_LOG = "kafka_last"
"""The aggregate `kafka_last(x)`: the value of the last record in the log, whichever record is otherwise the newest."""


@dataclass(frozen=True)
class Changes:
    """The changes of a table in SQL.

    An update that moves a row to another key is two simultaneous changes: the old key's row is deleted, and the new
    key's row appears.

    from_: the FROM that gives a row per change
    deleted: the condition that a change deletes its row
    place: the order of simultaneous changes
    moved: the columns of the key, if a row may leave it
    where: the WHERE that drops records that are not about one row
    order: the columns whose first known time decides the newest change
    valid_from: the columns whose first known time is the start of its validity
    """

    from_: str
    deleted: str
    place: Sequence[str]
    moved: frozenset[str]
    where: str
    order: tuple[str, ...]
    valid_from: tuple[str, ...]

    def column(self, name: str) -> str:
        """A column of the row, or of the deleted row of the old key."""
        own = spark_name(name)
        return f"CASE WHEN {_LEFT} THEN {MOVED_FROM}.{own} ELSE {own} END" if name in self.moved else own


def changes(table: SourceDeclaration) -> Changes:
    """The changes of a table."""
    records, place = spark_name(changes_name(table.name)), ("kafka_partition", "kafka_offset")
    if not table.of_changes:
        return Changes(f"{records} AS changes", DELETED, place, frozenset(), "", table.order, table.valid_from)
    return Changes(
        from_=f"{records} AS changes LATERAL VIEW {CHANGED_ROWS} moved AS {_NTH}, {_LEFT}",
        deleted=f"({DELETED} OR {_LEFT})",
        place=(*place, _NTH),
        moved=frozenset(table.unique),
        where=f" WHERE NOT {TRUNCATES}",
        order=table.order,
        valid_from=table.valid_from,
    )


def first_known(columns: Sequence[str]) -> str:
    """The first known time of several, in Spark SQL.

    >>> first_known(["updated_at", "kafka_timestamp"]), first_known(["kafka_log_time"])
    ('coalesce(updated_at, kafka_timestamp)', 'kafka_log_time')
    """
    names = [spark_name(column) for column in columns]
    return names[0] if len(names) == 1 else f"coalesce({', '.join(names)})"


def changing(table: SourceDeclaration) -> list[tuple[str, Type]]:
    """The further columns of a table's records that `parse` reads, with their types."""
    if not table.of_changes:
        return [(DELETED, BOOLEAN)]
    keys = tuple(column for column in table.columns if column[0] in table.unique)
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
    """The choice of the record that a table shows for a key, as SQL over the key's records.

    By the source's time, snapshot rows and changes are compared separately. The time of a snapshot's row is the time of
    reading it, and a snapshot takes long, so a later change in the log is newer, whatever its time is.
    """

    table: SourceDeclaration

    def value(self, value: str, there: str | None = None) -> str:
        """The value of the newest record. `there`: the condition that a change has the value."""
        if self.table.newest_by != "source":
            return _last(value, there)
        changed = _last(value, _and(f"NOT {SNAPSHOT}", there))
        return f"CASE WHEN {self._is_change(there)} THEN {changed} ELSE {_last(value, SNAPSHOT)} END"

    def is_since_truncation(self) -> str:
        """The condition that the newest record is newer than the newest truncation.

        A truncation is written to one partition. A simultaneous change in another partition is newer, because a
        transaction that truncates and reloads a table has one commit time.
        """
        records = spark_name(changes_name(self.table.name))

        def truncation(value: str) -> str:
            return f"(SELECT last_value({value}) FROM {records} AS truncations WHERE {TRUNCATES})"

        def newer(when: str | None) -> str:
            time, partition, offset = (
                _last(column, when) for column in (self._time, "kafka_partition", "kafka_offset")
            )
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
        """The condition that the newest record is a change, not a snapshot's row."""
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
    """A table's view. `passing`: further expressions of the records in its rows, by name.

    The order of events decides which record is newest (`SourceDeclaration.order`). A column that a change event lacks
    has the value of the newest event that has it.
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
        comments=table.comments,
        comment=table.comment,
        properties={"index": table.properties["index"]} if "index" in table.properties else {},
        select=select,
        select_text=text_of(select),
        sql=table.sql,
    )


def versions(table: SourceDeclaration) -> str:
    """The versions of a table's rows, each with the bounds of the time in which it holds."""
    of = _with_order(table, changes(table))
    keys = ", ".join(map(of.column, table.unique))
    declared = ", ".join(spark_name(name) for name, _ in table.columns)
    rows = ", ".join(
        f"{_as_of_change(name, kind, table, of, keys)} AS {spark_name(name)}" for name, kind in table.columns
    )
    at, until = first_known(of.valid_from), _until(of, keys)
    if table.of_changes:
        until = f"least({until}, {_truncated(table, of)})"
    every = f"SELECT {rows}, {at} AS {FROM}, {until} AS {UNTIL}, {of.deleted} AS {DELETED} FROM {of.from_}{of.where}"
    return f"SELECT {declared}, {FROM}, {UNTIL} FROM ({every}) AS every_version WHERE NOT {DELETED}"


def _with_order(table: SourceDeclaration, of: Changes) -> Changes:
    """The changes with one time that orders them: a change after a snapshot's row in the log is newer than it.

    Versions that hold from the source's time follow this order too.
    """
    if table.newest_by != "source":
        return of
    keys = ", ".join(map(of.column, table.unique))
    read_at = f"CASE WHEN {SNAPSHOT} THEN {SOURCE_TIME} END"
    in_the_log = f"ORDER BY {', '.join((LOG_TIME, *of.place))} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    order = f"greatest({first_known(of.order)}, max({read_at}) OVER (PARTITION BY {keys} {in_the_log}))"
    columns = [f"{of.column(name)} AS {spark_name(name)}" for name, _ in table.columns]
    times = [name for name in of.valid_from if name not in dict(table.columns)]
    outputs = ", ".join((*columns, f"{of.deleted} AS {DELETED}", *times, *of.place, f"{order} AS {_ORDER}"))
    from_ = f"(SELECT {outputs} FROM {of.from_}{of.where}) AS changes"
    valid_from = (_ORDER,) if of.valid_from[0] == SOURCE_TIME else of.valid_from
    return replace(
        of, from_=from_, where="", deleted=DELETED, moved=frozenset(), order=(_ORDER,), valid_from=valid_from
    )


def _truncated(table: SourceDeclaration, of: Changes) -> str:
    """The time at which a version was truncated, or NULL."""
    time = first_known(table.order)
    truncations = f"FROM {spark_name(changes_name(table.name))} AS truncations WHERE {TRUNCATES}"
    own = ", ".join(f"changes.{spark_name(column)}" for column in of.order)
    return f"(SELECT min({first_known(table.valid_from)}) {truncations} AND {time} > coalesce({own}))"


def _until(of: Changes, keys: str) -> str:
    """The end of a version: the next row's time, or the time of a newer deletion, whichever comes first.

    Rows follow each other by the times from which they hold, even if they arrive late. A deletion has another clock, so
    it ends only versions that are older by the table's order: a row that comes back later keeps its own time.
    """
    at, order = first_known(of.valid_from), first_known(of.order)
    if at == order:
        return f"lead({at}) OVER (PARTITION BY {keys} ORDER BY {at}, {', '.join(of.place)})"

    def least_of_later(times: str, by: Sequence[str]) -> str:
        later = f"ORDER BY {', '.join(f'{key} DESC' for key in by)} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        return f"min({times}) OVER (PARTITION BY {keys} {later})"

    next_row = least_of_later(f"CASE WHEN NOT {of.deleted} THEN {at} END", (at, order, *of.place))
    deletion = least_of_later(f"CASE WHEN {of.deleted} THEN {at} END", (order, *of.place))
    return f"least({next_row}, {deletion})"


def _as_of_change(name: str, kind: Type, table: SourceDeclaration, of: Changes, keys: str) -> str:
    """A column as of a change. If the change leaves it out: its value in the newest earlier change that has it."""
    there = None if name in table.unique else is_there(name, kind, table.encodings.placeholder)
    if there is None:
        return of.column(name)
    order = ", ".join((first_known(of.order), *of.place))
    own = f"CASE WHEN {there} THEN struct({spark_name(name)} AS told) END"
    until_then = f"ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return f"(last_value({own}) IGNORE NULLS OVER (PARTITION BY {keys} {until_then})).told"


_ORDER = "kafka_newness"
"""The time that orders the changes of a key."""
