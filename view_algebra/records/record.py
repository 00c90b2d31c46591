"""One source's record as Spark SQL reads it: where its JSON is, the types its columns are read as, its PRIMARY KEY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from view_algebra.compiled import KeyFormat
from view_algebra.formats import DECODED_KEYS, ValueSql
from view_algebra.formats.interface import TEXT
from view_algebra.language.encodings import Encodings
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import CALENDAR, SMALLINT, Type, rewritten_type
from view_algebra.records import debezium
from view_algebra.records.decoding import ColumnDecoding, Columns, FieldOptions
from view_algebra.records.fields import (
    SecondReading,
    any_scalar,
    decimals_lose_digits,
    loses_digits,
    loses_digits_in_variant,
    marked,
)

VALUE_TEXT = "CAST(kafka_value AS STRING)"
"""Spark SQL of the value's text."""

SPACE = "' \\t\\r\\n'"
"""The characters that JSON ignores, as Spark SQL for trim()."""

FRAMED = "kafka_framed"
"""The column with Kafka's unchanged value, if `kafka_value` is the part after a registry's frame."""

FLATTENED = "__deleted"
"""The field of a flattened change that is true if the row was deleted."""


@dataclass(frozen=True)
class PrimaryKey:
    """The PRIMARY KEY of a table: its columns, and the format of Kafka's key."""

    columns: tuple[str, ...]
    format: KeyFormat

    def within(self, columns: Columns) -> list[tuple[str, Type]]:
        """The key's columns among these, with their types."""
        return [(name, kind) for name, kind in columns if name in self.columns]


@dataclass(frozen=True)
class Record:
    """The record of a source, as Spark SQL reads it.

    key: a table's PRIMARY KEY
    options: the source's options for reading fields
    identifying: for a source with NULL for unreadable fields, the columns besides the key that make a record bad
        because they identify a stream's events or its newest record. Such a source has BAD_FIELDS after the error
    values: the SQL of values in another format
    """

    key: PrimaryKey | None
    options: FieldOptions
    identifying: Sequence[str]
    values: ValueSql | None

    @property
    def encodings(self) -> Encodings:
        """The encodings of its values."""
        return self.options.encodings

    @property
    def decoding(self) -> ColumnDecoding:
        """The decoding of its columns."""
        return ColumnDecoding(self.options)

    @property
    def needed(self) -> Sequence[str]:
        """The columns without which a record is bad."""
        return (*(() if self.key is None else self.key.columns), *self.identifying)

    @property
    def changes_table(self) -> bool:
        """True if a record is a change of a table's row in Debezium's envelope."""
        return self.encodings.changes and self.key is not None

    @property
    def decodes_key(self) -> bool:
        """True if Kafka's key is decoded before Spark SQL reads it."""
        return self.key is not None and self.key.format in DECODED_KEYS

    @property
    def raw(self) -> str:
        """The JSON with the fields, as Spark SQL over raw records."""
        return self.text if self.encodings.has_schema or self.values is not None else "CAST(value AS STRING)"

    @property
    def whole(self) -> str:
        """The JSON of the value."""
        return VALUE_TEXT if self.values is None else TEXT

    @property
    def text(self) -> str:
        """The JSON with the fields, as Spark SQL over what has been read."""
        if not self.encodings.changes:
            return debezium.EVENT if self.encodings.schemas else self.whole
        return debezium.ROW if self.key is not None else debezium.EVENT

    @property
    def marked(self) -> str:
        """The same JSON with marked numbers, which keep every digit."""
        if self.encodings.changes:
            return debezium.marked_part(self.text, self.whole)
        return debezium.marked_payload(VALUE_TEXT) if self.encodings.schemas else marked(self.text)

    def deletes(self, columns: Columns) -> str:
        """The condition that a record deletes its row."""
        if self.encodings.changes:
            return debezium.DELETES
        flattened = self.flattened(columns)
        if flattened is None:
            return "kafka_value IS NULL"
        return f"(kafka_value IS NULL OR lower(CAST(parsed.{spark_name(flattened)} AS STRING)) <=> 'true')"

    def flattened(self, columns: Columns) -> str | None:
        """The column that is true if a flattened change deleted its row, or None for other records."""
        return next((name for name, _ in columns if self.options.name(name) == FLATTENED), None)

    def as_read(self, kind: Type) -> Type:
        """The type that Spark's reader reads a column as."""
        return self.decoding.as_read(rewritten_type(kind, _without_tinyint))

    def read_as(self, columns: Columns) -> list[tuple[str, Type]]:
        """The columns with the types that Spark's reader reads them as."""
        return [(name, self.as_read(kind)) for name, kind in columns]

    def second_reading(self, first: str, text: str, columns: Columns) -> SecondReading:
        """The second reading of a text, with marked numbers, that Spark's reader has read as the struct `first`."""
        return SecondReading(first, text, columns, self.options, self.as_read, self.needed)

    def plain(self, columns: Columns) -> list[tuple[str, Type]]:
        """The columns, or parts of them, that Spark's reader reads with their declared types."""
        return [(name, part) for name, kind in columns if (part := self.decoding.plain_part(kind)) is not None]

    def loses(self, columns: Columns, read: str, text: str, *, from_variant: bool) -> list[str]:
        """Conditions that the struct `read` lacks digits of the text.

        from_variant: the text comes from a variant's JSON
        """
        texts_lose = (loses_digits_in_variant if from_variant else loses_digits)(columns, read, text)
        conditions = (texts_lose, decimals_lose_digits(columns, read, text, self.encodings))
        return [condition for condition in conditions if condition]


def declared_column(name: str, kind: Type, struct: str = "parsed") -> str:
    """A column with its declared type, from the result of `from_json`."""
    field = f"{struct}.{spark_name(name)}"
    return field if rewritten_type(kind, _without_tinyint) == kind else f"CAST({field} AS {kind.spark})"


def _without_tinyint(kind: Type) -> Type:
    """SMALLINT for TINYINT: Spark's reader would accept 128 to 255 as a TINYINT and wrap them."""
    return SMALLINT if kind.name == "TINYINT" else kind


def out_of_bounds(value: str, kind: Type, bounds: Mapping[str, tuple[str, str]] = CALENDAR) -> str:
    """The condition that a time, even a nested one, is outside the years that every client reads.

    Without times, it is an empty text.

    bounds: the first and the last value by type, to check other types than times.
    """

    def outside(scalar: str, of: Type) -> str:
        first, last = bounds.get(of.name, ("", ""))
        return f"{scalar} NOT BETWEEN {first} AND {last}" if first else ""

    return any_scalar(value, kind, outside, "v")
