"""A source as a format sees it, and how its values are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from view_algebra.language.types import Type

TEXT = "kafka_text"
"""The column of a raw record with the JSON text that its value stands for; NULL if it stands for none."""

NO_TEXT = "kafka_no_text"
"""The column of a raw record that a `Decoder` has read: why its value stands for no JSON text; NULL if it has one."""


KEY_TEXT, NO_KEY_TEXT = "kafka_key_text", "kafka_no_key_text"
"""The same of Kafka's key."""

DIRECT = "kafka_direct"
"""The column of a raw record with the declared columns, if they were read without JSON; NULL if they were not."""


@dataclass(frozen=True)
class Declared:
    """A source as it is declared: `columns` in order, each with its field in JSON, its type, and True if it is of the
    PRIMARY KEY.

    numbers_are_times: a number in a column of times is a time since 1970. options: those of OPTIONS.
    """

    columns: Sequence[tuple[str, Type, bool]]
    numbers_are_times: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Read:
    """How values are read.

    records: Spark SQL: the view `raw_records` with the columns `given`. bad: reasons for quarantine, each behind its
    condition, in Spark SQL over `kafka_value` and `given`.
    """

    records: str
    bad: Sequence[tuple[str, str]]
    given: Sequence[str] = (TEXT,)


DECODED = Read("raw_records", [(f"{NO_TEXT} IS NOT NULL", NO_TEXT)], (TEXT, NO_TEXT))
"""How values are read that a `Decoder` has made JSON of before Spark SQL sees them."""


@dataclass(frozen=True)
class Schema:
    """A schema that records are written with, as a registry gives it.

    kind: `AVRO`, `PROTOBUF` or `JSON`. references: the texts of the schemas that it names, each behind the name, and
    each after those that it names itself.
    """

    kind: str
    text: str
    references: Sequence[tuple[str, str]] = ()


Schemas = Mapping[str, Schema | None]
"""The schemas that the records of a topic are written with, by their id; None if the registry had none with the id."""

NO_SCHEMAS: Schemas = {}
"""Those of a topic whose records name none, or of which none is known yet."""

Answers = Mapping[int, Schemas]
"""The schemas of a topic by ASK_AGAIN: an id that the registry lacked for one number may have one for another."""

NO_ANSWERS: Answers = {}
"""Those of a topic for which the registry was not asked."""


class DirectColumn(NamedTuple):
    """A column that may be read without JSON: its name, its field, and its type in Spark SQL."""

    name: str
    field: str
    type: str


Decoder = Callable[[bytes, bytes | None], str]
"""Gives the JSON text that a value, or a key, stands for; raises `NoText` if it stands for none.

It also takes the header that names the schema, if the record has one.
"""


class NoText(Exception):
    """The reason why a value stands for no JSON text."""


class Mistake(Exception):
    """A declaration that is not of the format: what is wrong, the way out, and the option it is about, if it is one."""

    def __init__(self, what: str, way_out: str, option: str = "format") -> None:
        super().__init__(what)
        self.what, self.way_out, self.option = what, way_out, option


NOT_UTF8 = ("NOT is_valid_utf8(CAST(kafka_value AS STRING))", "'the value is not UTF-8'")
"""Why a value is no text: the condition and the reason."""

HAS_ZERO = (
    r"contains(CAST(kafka_value AS STRING), '\0')",
    "'a text holds the character U+0000, which Postgres cannot store'",
)
"""Why a text cannot be served, whatever it is of."""
