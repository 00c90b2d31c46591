"""A first source and a first view for sampled records, as the text of two files of a catalog."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from interchange.compression import without_ending
from interchange.sampling import Sample
from lamina.authoring.guessed_columns import (
    LONGEST_COLUMN,
    GuessedColumn,
    column_named,
    columns_of,
    comment,
    free_name,
    guessed_category,
    guessed_event_time,
    guessed_key,
    plain_letters,
    with_digits,
)
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import postgres_name, spark_name, spark_text
from view_algebra.language.types import DATE, TIMESTAMP
from view_algebra.written.declarations.properties import OF_FIELD
from view_algebra.written.declarations.sources_and_views import LONGEST_SOURCE

ROWS = 50
"""Columns of a view of rows."""


@dataclass(frozen=True)
class Proposal:
    """A source and a view over it: their names, their files in the catalog, and the SQL of both."""

    source: str
    view: str
    topic: str
    files: dict[str, str]
    columns: tuple[GuessedColumn, ...]
    event_time: str | None
    key: tuple[str, ...]
    order: str


@dataclass(frozen=True)
class _Draft:
    """The decisions about a source, before its SQL is written. `key_format` is None for a stream."""

    sample: Sample
    name: str
    topic: str
    seen_in: str
    columns: tuple[GuessedColumn, ...]
    event_time: GuessedColumn | None
    key: tuple[str, ...]
    key_format: str | None

    @property
    def as_table(self) -> bool:
        """True if the source is a table, False if it is a stream."""
        return self.key_format is not None


def name_of_file(path: str) -> str:
    """The name of a source for a file.

    >>> name_of_file("data/My Orders-2024.csv.gz")
    'my_orders_2024'
    """
    return name_of(Path(without_ending(path)).stem)


def name_of(text: str) -> str:
    """The name of a source for a topic.

    >>> name_of("shop.orders.v1")
    'shop_orders_v1'
    """
    name = re.sub(r"[^a-z0-9]+", "_", plain_letters(text).lower()).strip("_") or "records"
    is_taken = name in ("raw_records", "good_records") or spark_name(name) != name
    name = f"t_{name}" if name[0].isdigit() or is_taken else name
    return name[:LONGEST_SOURCE].rstrip("_")


def proposal(
    sample: Sample,
    name: str,
    seen_in: str,
    *,
    topic: str | None = None,
    key: Sequence[str] = (),
    as_table: bool = False,
) -> Proposal:
    """The source and the view. `key` lists the columns of a table's PRIMARY KEY, by default a guess.

    `topic` is the topic that the records were read from, or None for a file.
    """
    is_file, topic = topic is None, topic or name
    as_table = as_table or sample.encoding.is_changes
    columns = columns_of(sample.fields)
    of_topic = sample.topic.key.fields if sample.topic.key else ()
    proposed = tuple(column_named(columns, column_name).name for column_name in key or of_topic) or guessed_key(columns)
    named = {column_named(columns, column_name).name for column_name in key}
    columns = tuple(with_digits(column) if column.name in named else column for column in columns)
    if as_table and not proposed:
        raise LaminaError(
            f"{name}: no column identifies a row",
            evidence=f"No column with an id's name has a different value in each of {sample.good:,} records.",
            way_out=f"Name the columns that identify a row with --key COLUMN. Columns:"
            f" {', '.join(column.name for column in columns)}.",
        )
    if as_table:
        _refuse_nulls(columns, proposed, sample)
    elif sample.topic.is_compacted:
        raise LaminaError(
            f"Topic {topic} is compacted: Kafka drops a record when a newer one has its key",
            evidence="A stream would count what a rebuild cannot, so `lamina apply` refuses one.",
            way_out="Make it a table: lamina init --table.",
        )
    # A time of the row stays as the row changes.
    event_time = None if sample.encoding.is_changes else guessed_event_time(columns)
    key_format = None
    if as_table:  # `lamina ingest` and connectors of changes write JSON
        key_format = "json" if is_file or sample.encoding.is_changes else _key_format(columns, proposed, sample)
    draft = _Draft(sample, name, topic, seen_in, columns, event_time, proposed, key_format)
    view, select, order = _view(draft)
    files = {f"sources/{name}.sql": _source(draft), f"views/{view}.sql": select}
    return Proposal(name, view, topic, files, columns, event_time.name if event_time else None, proposed, order)


def _key_format(columns: Sequence[GuessedColumn], key: Sequence[str], sample: Sample) -> str:
    """The `key_format` of a table over a topic."""
    fields = tuple(column.field.name for column in columns if column.name in key)
    return sample.topic.key.format if sample.topic.key and set(sample.topic.key.fields) == set(fields) else "none"


def _refuse_nulls(columns: Sequence[GuessedColumn], key: Sequence[str], sample: Sample) -> None:
    for column in columns:
        missing = sample.good - column.seen.values + column.seen.kinds["empty"]
        if column.name in key and missing:
            raise LaminaError(
                f"{column.name} cannot be a PRIMARY KEY: it has no value in {missing:,} of {sample.good:,} records",
                way_out="Name other columns with --key, or leave --table out.",
            )


def _source(draft: _Draft) -> str:
    sample, columns, event_time = draft.sample, draft.columns, draft.event_time
    encoding = sample.encoding
    lines = [
        f"  {spark_name(column.name)} {column.kind.spark} COMMENT {spark_text(comment(column))}" for column in columns
    ]
    keys = ", ".join(map(spark_name, draft.key))
    if draft.as_table:
        lines.append(f"  PRIMARY KEY ({keys})")
    properties = {
        "event_time": "source.ts_ms" if encoding.is_changes else event_time and event_time.name,
        "epoch": sample.epoch,
        "empty_as_null": sample.empty_as_null and "true",
        **{f"{OF_FIELD}{column.name}": column.field.name for column in columns if column.name != column.field.name},
    }
    options = {
        "topic": draft.topic,
        "format": f"debezium-{encoding.format}" if encoding.is_changes else encoding.format,
        "key_format": None if encoding.is_changes else draft.key_format,
        "frame": "registry" if encoding.is_framed and encoding.format == "json" else None,
    }
    options_text = ", ".join(f"{name} {spark_text(value)}" for name, value in options.items() if value)
    properties_text = ",\n  ".join(
        f"{spark_text(name)} = {spark_text(value)}" for name, value in properties.items() if value
    )
    ends = f"\nTBLPROPERTIES (\n  {properties_text}\n);\n" if properties_text else ";\n"
    body = ",\n".join(lines)
    notes = "".join(f"-- {note}\n" for note in _notes(draft, keys))
    return f"{notes}CREATE TABLE {draft.name} (\n{body}\n)\nUSING kafka OPTIONS ({options_text}){ends}"


def _notes(draft: _Draft, keys: str) -> list[str]:
    """Comments for the author, above the declaration."""
    sample, columns = draft.sample, draft.columns
    seen = re.sub(r"[^ -~]", "?", draft.seen_in)  # a name may hold a line break
    notes = [f"Types were guessed from {sample.part} of {seen}. Correct them where you know better."]
    if sample.encoding.is_changes and not sample.encoding.has_schemas:
        notes.append(
            "The events have no schemas: dates are numbers of days, decimals may be base64, and bytes are texts."
        )
        notes.append("Declare such columns DATE, DECIMAL(p, s) and BINARY: docs/sql.md describes their other options.")
    times = [column.name for column in columns if column.kind in (TIMESTAMP, DATE)]
    if draft.event_time is None and times and not sample.encoding.is_changes:
        ways = f"'event_time' = '{times[0]}'"
        notes.append(
            f"Several columns are times ({', '.join(times)}): TBLPROPERTIES ({ways}) says when a record happened."
        )
    if keys and not draft.as_table:
        if any(column.seen.is_unique for column in columns if spark_name(column.name) == keys):
            notes.append(f"No two records had the same {keys}: UNIQUE ({keys}) counts an event once if sent twice.")
        notes.append(f"PRIMARY KEY ({keys}) makes this a table of the newest record of each: lamina init --table.")
    return notes


def _view(draft: _Draft) -> tuple[str, str, str]:
    """The first view's name, its statement, and the ORDER BY for showing it."""
    name, row_key = draft.name, draft.key if draft.as_table else ()
    # A view grouped by the table's key would count every row alone.
    columns = [column for column in draft.columns if (column.name,) != row_key] or draft.columns
    times = (
        [draft.event_time] if draft.event_time else [column for column in columns if column.kind in (TIMESTAMP, DATE)]
    )
    time = None if draft.as_table else min(times, key=lambda column: column.kind == DATE, default=None)
    category = guessed_category(columns, draft.sample)
    keys: list[tuple[str, str]] = []
    if time is not None:
        column = spark_name(time.name)
        keys.append(("day", column) if time.kind == DATE else ("hour", f"window({column}, '1 hour').start"))
    if category is not None:
        output = category.name.lower()
        output = output if spark_name(output) == postgres_name(output) == output else f"by_{output}"
        keys.append((free_name(output, {key for key, _ in keys} | {"records"}), spark_name(category.name)))
    if not keys:
        return _row_count(name) if draft.as_table else _rows(columns, name)
    names = [key for key, _ in keys]
    view = "_".join([name, "per", *names])[:LONGEST_COLUMN].rstrip("_")
    selected = ", ".join([*(value for _, value in keys), "count(*)"])
    grouped = ", ".join(value.removesuffix(".start") for _, value in keys)
    outputs = ", ".join([*names, "records"])
    text = f"CREATE VIEW {view} ({outputs}) AS\nSELECT {selected}\nFROM {name}\nGROUP BY {grouped};\n"
    return view, text, "records DESC" if time is None else ", ".join([f"{names[0]} DESC", *names[1:]])


def _row_count(table: str) -> tuple[str, str, str]:
    view = f"{table}_count"
    return view, f"CREATE VIEW {view} AS\nSELECT count(*) AS records\nFROM {table};\n", "records DESC"


def _rows(columns: Sequence[GuessedColumn], name: str) -> tuple[str, str, str]:
    """A view of the records themselves."""
    shown = ", ".join(spark_name(column.name) for column in columns[:ROWS])
    return f"{name}_rows", f"CREATE VIEW {name}_rows AS\nSELECT {shown}\nFROM {name};\n", ""
