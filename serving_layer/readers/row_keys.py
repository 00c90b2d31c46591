"""Keys of rows in a view: the values of group columns, as typed on a command line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from serving_layer.postgres.database import Database
from view_algebra.compiled import SHORTENED, Column, View
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import postgres_text, quoted, spark_name, spark_text

NULL = "NULL"
"""The word for NULL."""


@dataclass(frozen=True)
class RowKey:
    """The text of each column's value as Postgres writes it, None for NULL. A key without columns selects all rows."""

    values: Mapping[str, str | None]

    def postgres(self, view: View) -> str:
        """The condition on a row that the view shows. A long text of a group is shown as beginning and digest."""
        return _all(
            _postgres(column, self.values[column.name]) for column in view.columns if column.name in self.values
        )

    def spark(self, view: View) -> str:
        """The condition on a row of the author's SELECT."""
        return _all(_spark(column, self.values[column.name]) for column in view.columns if column.name in self.values)


def group_columns(view: View) -> list[str]:
    """The columns that identify the groups of a view: those without aggregates."""
    return [column.column for column in view.lineage if not column.aggregates]


def read(database: Database, view: View, words: Sequence[str]) -> RowKey:
    """The key in these words: the values of the group columns in order, or `column=value` for some of them."""
    columns = {column.name: column for column in view.columns}
    groups = group_columns(view)
    pairs = [word.partition("=") for word in words]
    named = {name: value for name, equals, value in pairs if equals and name in columns}
    in_order = [word for word, (name, equals, _) in zip(words, pairs, strict=True) if not (equals and name in columns)]
    others = [name for name in groups if name not in named]
    aggregated = [name for name in named if name not in groups]
    if aggregated or (len(in_order) != len(others) and (in_order or (groups and not named))):
        raise LaminaError(
            f"{aggregated[0]} is not a group column of {view.name}"
            if aggregated
            else f"{view.name} needs a value for each of its group columns: {', '.join(others)}"
            if others
            else f"{view.name} has no other group column to give a value for",
            evidence=f"its group columns: {', '.join(groups) or 'none, it has one row'}; values given: {len(words)}",
            way_out="Give their values in this order, or some as column=value. Write NULL for a missing value.",
        )
    values = named | dict(zip(others, in_order, strict=False))
    return RowKey(
        {name: None if word == NULL else _as_postgres(database, columns[name], word) for name, word in values.items()}
    )


def in_utc(connection: Connection) -> None:
    """Makes this transaction read and write times in UTC."""
    connection.execute(text("SET LOCAL timezone = 'UTC'"))


def time(database: Database, words: str) -> datetime:
    """A time given as a timestamp or as an interval before now."""
    for expression in ("CAST(:said AS timestamptz)", "now() - CAST(:said AS interval)"):
        try:
            with database.begin() as connection:
                in_utc(connection)
                instant: datetime = connection.execute(text(f"SELECT {expression}"), {"said": words}).scalar_one()
                return instant
        except (DBAPIError, ValueError):  # ValueError: a year that Python lacks
            continue
    raise LaminaError(
        f"{words!r} is not a time",
        evidence="wanted: a timestamp, or an interval before now",
        way_out="For example '2 hours' or '2026-11-24 10:00' (UTC, unless it names a zone).",
    )


def _as_postgres(database: Database, column: Column, word: str) -> str:
    if column.postgres in ("jsonb", "bytea", "interval"):
        raise LaminaError(
            f"{column.name} is of type {column.spark}, whose values cannot be named",
            way_out="Name other columns, in the form column=value.",
        )
    try:
        with database.begin() as connection:
            in_utc(connection)
            query = text(f"SELECT CAST(CAST(:said AS {column.postgres}) AS text)")
            return str(connection.execute(query, {"said": word}).scalar_one())
    except DBAPIError as error:
        raise LaminaError(
            f"{word!r} is not a value of {column.name}",
            evidence=f"it is of type {column.spark}; {str(error.orig).splitlines()[0]}",
            way_out="Write it as a text that SQL can cast to that type. Write NULL for a missing value.",
        ) from error


def _postgres(column: Column, value: str | None) -> str:
    name = quoted(column.name)
    if value is None:
        return f"{name} IS NULL"
    if column.postgres != "text":
        return f"{name} = CAST({postgres_text(value)} AS {column.postgres})"
    ends = SHORTENED + (_digest(value) or hashlib.sha256(value.encode()).hexdigest())
    return f"({name} = {postgres_text(value)} OR right({name}, {len(ends)}) = {postgres_text(ends)})"


def _spark(column: Column, value: str | None) -> str:
    name = spark_name(column.name)
    if value is None:
        return f"{name} IS NULL"
    if column.postgres != "text":
        return f"{name} = CAST({spark_text(value)} AS {column.spark})"
    same, digest = f"{name} = {spark_text(value)}", _digest(value)
    return same if digest is None else f"({same} OR sha2(CAST({name} AS BINARY), 256) = {spark_text(digest)})"


def _digest(value: str) -> str | None:
    """The digest at the end of a text that the view shows shortened."""
    shortened = re.search(rf"{SHORTENED}([0-9a-f]{{64}})$", value)
    return None if shortened is None else shortened[1]


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(conditions) or "true"
