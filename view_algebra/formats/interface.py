"""A source as a format sees it, and how its values are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from view_algebra.language.types import Type

TEXT = "kafka_text"
"""The column of a raw record with the JSON text that its value stands for; NULL if it stands for none."""


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

    records: Spark SQL in parentheses: the view `raw_records` with the column `TEXT`. bad: reasons for quarantine, each
    behind its condition, in Spark SQL over `kafka_value` and `TEXT`.
    """

    records: str
    bad: Sequence[tuple[str, str]]


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
