"""The interface of formats: a declared source, the reading of its values, and the schemas of its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from view_algebra.language.types import Type

TEXT = "kafka_text"
"""The raw record's column with the JSON text of its value, or NULL if it has none."""

NO_TEXT = "kafka_no_text"
"""The decoded record's column with the reason its value has no JSON text, or NULL if it has one."""


KEY_TEXT, NO_KEY_TEXT = "kafka_key_text", "kafka_no_key_text"
"""The same two columns for Kafka's key."""

DIRECT = "kafka_direct"
"""The raw record's column with the declared columns, if they were read without JSON, or NULL."""


@dataclass(frozen=True)
class DeclaredColumns:
    """The declared columns of a source, and the options of its format.

    columns: the JSON field of each column, its type, and True if it is in the PRIMARY KEY
    numbers_are_times: a number in a column of times is a time since 1970
    options: the values in OPTIONS
    """

    columns: Sequence[tuple[str, Type, bool]]
    numbers_are_times: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ValueSql:
    """Spark SQL that reads values.

    records: the view `raw_records` with the additional `columns`
    bad: pairs of a condition and the reason for quarantine, over `kafka_value` and `columns`
    """

    records: str
    bad: Sequence[tuple[str, str]]
    columns: Sequence[str] = (TEXT,)


DECODED = ValueSql("raw_records", [(f"{NO_TEXT} IS NOT NULL", NO_TEXT)], (TEXT, NO_TEXT))
"""The SQL for values that a `Decoder` has converted to JSON."""


@dataclass(frozen=True)
class Schema:
    """A schema of records in a registry.

    kind: `AVRO`, `PROTOBUF` or `JSON`
    references: pairs of a name and the text of the schema that it refers to, each after the schemas that it refers to
        itself
    """

    kind: str
    text: str
    references: Sequence[tuple[str, str]] = ()


Schemas = Mapping[str, Schema | None]
"""The schemas of a topic's records by id, or None for an id that the registry lacked."""

NO_SCHEMAS: Schemas = {}
"""The schemas of a topic before any is known."""

Answers = Mapping[int, Schemas]
"""The schemas of a topic by ASK_AGAIN: an id that the registry lacked for one number may have one for another."""

NO_ANSWERS: Answers = {}
"""The answers for a topic before any request to the registry."""


class DirectColumn(NamedTuple):
    """A column that may be read without JSON: its name, its field, and its type in Spark SQL."""

    name: str
    field: str
    type: str


Decoder = Callable[[bytes, bytes | None], str]
"""Decodes a value or a key to JSON text. Raises `NoText` if it has none.

The second argument is the header that names the schema, or None.
"""


class NoText(Exception):
    """The reason a value has no JSON text."""


def refusing(mistake: str) -> Callable[[bytes], str]:
    """Returns a decoder that always raises `NoText`, for a mistake in the schema."""

    def decode(_: bytes) -> str:
        raise NoText(mistake)

    return decode


class FormatMistake(Exception):
    """A declaration that does not fit the format: the mistake, the way out, and the option at fault."""

    def __init__(self, what: str, way_out: str, option: str = "format") -> None:
        super().__init__(what)
        self.what, self.way_out, self.option = what, way_out, option


NOT_UTF8 = ("NOT is_valid_utf8(CAST(kafka_value AS STRING))", "'the value is not UTF-8'")
"""The condition and the reason for a value that is not text."""

HAS_ZERO = (
    r"contains(CAST(kafka_value AS STRING), '\0')",
    "'a text holds the character U+0000, which Postgres cannot store'",
)
"""The condition and the reason for a text that Postgres cannot store."""
