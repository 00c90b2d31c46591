"""The columns of a first source: their names, types and comments, and those that are its key, time and category."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from interchange.guessing import ID_NAME, Statistics, TextForm, ValueKind
from interchange.sampling import GuessedField, Sample
from serving_layer.narration import amount
from view_algebra.errors import LaminaError
from view_algebra.language.types import DATE, STRING, TIMESTAMP, Type
from view_algebra.written.declarations.sources_and_views import ICEBERG_COLUMNS

LONGEST_COLUMN = 60
"""Characters of a column name that we make up. Postgres allows 63."""

LONGEST_EXAMPLE = 20
"""Characters of a value in a comment."""

EXAMPLES = 3
"""Values of a category in its comment."""

KINDS: dict[ValueKind, str] = {
    "boolean": "true or false",
    "whole": "a whole number",
    "fraction": "a fraction",
    "text": "a text",
    "empty": "an empty text",
    "object": "an object",
    "list": "a list",
}
"""Kinds of values, in the words of a comment."""

_CATEGORY_NAME = re.compile(r"(?i)country|region|city|status|state|type|kind|category|channel|method|segment|group")
_DUE = re.compile(r"(?i)birth|expir|due|until|valid|deadline")
"""Names of times at which nothing has happened yet, such as a due date."""

_PERSONAL = re.compile(r"(?i)phone|mobile|fax|e.?mail|name$|birth|account|iban|card|ssn|passport|tax|address|street")
"""Names of fields whose values are left out of comments because they are about a person."""


@dataclass(frozen=True)
class GuessedColumn:
    """A column of the source, and its field in the records."""

    name: str
    field: GuessedField

    @property
    def kind(self) -> Type:
        """Its type."""
        return self.field.kind

    @property
    def seen(self) -> Statistics:
        """The values seen in the sample."""
        return self.field.seen

    @property
    def looks_like_a_time(self) -> bool:
        """True if it is a text and most of its values are written as some country writes times."""
        return self.kind.name == "STRING" and 2 * self.seen.texts["like a time"] > self.seen.values


def columns_of(fields: Sequence[GuessedField]) -> tuple[GuessedColumn, ...]:
    """A column for each field. It has the field's name if SQL can use that without quotes."""
    own = {seen_field.name.lower() for seen_field in fields if _is_plain(seen_field.name)}
    taken: set[str] = set()
    columns = []
    for seen_field in fields:
        name = seen_field.name
        if not _is_plain(name) or name.lower() in taken:
            name = free_name(_made_up(name), taken | own)
        taken.add(name.lower())
        columns.append(GuessedColumn(name, seen_field))
    return tuple(columns)


def _is_plain(name: str) -> bool:
    return (
        re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name) is not None
        and not name.lower().startswith("kafka_")
        and name not in ICEBERG_COLUMNS
    )


def _made_up(name: str) -> str:
    r"""A name that SQL can have.

    >>> _made_up("Unit Price (€)"), _made_up("kafka_key"), _made_up("2nd"), _made_up("_pos"), _made_up("日")
    ('unit_price', 'key', 'field_2nd', 'pos', 'field')
    """
    plain = re.sub(r"[^a-z0-9]+", "_", plain_letters(name).lower()).strip("_").removeprefix("kafka_") or "field"
    plain = f"field_{plain}" if plain[0].isdigit() else plain
    return plain[:LONGEST_COLUMN].rstrip("_")


def plain_letters(text: str) -> str:
    """The text without accents and without letters beyond ASCII."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with a number appended if it is taken."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(candidate for candidate in itertools.chain([name], numbered) if candidate not in taken)


def column_named(columns: Sequence[GuessedColumn], name: str) -> GuessedColumn:
    """The column with this name, or whose field has it. Raises LaminaError if there is none."""
    for column in columns:
        if name in (column.name, column.field.name):
            return column
    raise LaminaError(
        f"There is no column {name}",
        evidence=f"Found: {', '.join(column.name for column in columns)}.",
        way_out="Name one of these with --key.",
    )


def guessed_key(columns: Sequence[GuessedColumn]) -> tuple[str, ...]:
    """The column that told all records apart, if it is called an id."""
    unique = [
        column for column in columns if column.seen.is_unique and not column.seen.nulls and _can_be_key(column.kind)
    ]
    return (unique[0].name,) if unique and unique[0].seen.values > 1 else ()


def with_digits(column: GuessedColumn) -> GuessedColumn:
    """A key with fractions keeps its digits as they are written: 1.1 and 1.10 are two keys."""
    is_fraction = column.kind.numeric and not column.kind.integral and column.kind.scale != 0
    return replace(column, field=replace(column.field, kind=STRING)) if is_fraction else column


def _can_be_key(kind: Type) -> bool:
    return kind.integral or kind.name == "STRING"


def guessed_event_time(columns: Sequence[GuessedColumn]) -> GuessedColumn | None:
    """The only column that is a timestamp, or the only date if there are no timestamps."""
    times = [column for column in columns if column.kind == TIMESTAMP and not _DUE.search(column.field.name)]
    dates = [column for column in columns if column.kind == DATE and not _DUE.search(column.field.name)]
    alone = times or dates
    return alone[0] if len(alone) == 1 else None


def guessed_category(columns: Sequence[GuessedColumn], sample: Sample) -> GuessedColumn | None:
    """The most telling category: first by its name, then a text before a flag before a small number."""

    def is_one(column: GuessedColumn) -> bool:
        several = 2 <= len(column.seen.different) <= max(2, column.seen.values // 2)
        several = several and len(column.seen.different) < column.seen.values
        return several and not column.seen.many and column.kind.name in _RANKS and 2 * column.seen.nulls <= sample.good

    def worth(column: GuessedColumn) -> tuple[bool, int, bool, int]:
        texts = column.seen.different
        return (
            not _CATEGORY_NAME.search(column.field.name),
            _RANKS[column.kind.name],
            bool(ID_NAME.search(column.field.name)) or max(map(len, texts)) > LONGEST_EXAMPLE,
            len(texts),
        )

    return min(filter(is_one, columns), key=worth, default=None)


_RANKS = {"STRING": 0, "BOOLEAN": 1, "INT": 2}
"""Types of categories, the best first."""


def comment(column: GuessedColumn) -> str:
    """The values of a column, in one line."""
    seen = column.seen
    parts = [f"seen {amount(seen.values, 'time')}"]
    if seen.nulls:
        parts.append(amount(seen.nulls, "null"))
    parts += filter(None, [_values(column), _doubt(column)])
    return ", ".join(parts)


def _values(column: GuessedColumn) -> str | None:
    """A few values: a category's most frequent, or the lowest and the highest. Never a value of a text with many."""
    seen = column.seen
    if column.kind.nested or not seen.values or _PERSONAL.search(column.field.name):
        return None
    if seen.lowest is not None and column.kind.numeric and seen.lowest != seen.highest:
        return f"{seen.lowest:,} to {seen.highest:,}"
    if seen.earliest and column.kind in (DATE, TIMESTAMP) and seen.earliest != seen.latest:
        return f"{seen.earliest} to {seen.latest}"
    examples = [text for text, _ in seen.different.most_common(EXAMPLES) if 0 < len(text) <= LONGEST_EXAMPLE]
    examples = [text for text in examples if text.isprintable() and text.strip()]
    if seen.many or len(seen.different) == seen.values or not examples:
        return None
    return f"e.g. {', '.join(examples)}"


def _doubt(column: GuessedColumn) -> str | None:
    """A reason for a type that the author might not expect, or None."""
    seen = column.seen
    if column.kind == TIMESTAMP and column.kind.unit:
        return "numbers since 1970"
    if not seen.values:
        return "no value seen"
    if column.kind == TIMESTAMP and seen.zoneless:
        return "no time zone, read as UTC"
    if column.kind.name == "DECIMAL" and column.kind.scale:
        return f"rounded to {column.kind.scale} decimal places"
    if column.kind.name != "STRING":
        return "empty texts are NULL" if seen.kinds["empty"] else None
    kinds = {kind: times for kind, times in seen.kinds.most_common() if kind != "empty"}
    if kinds and kinds.keys() <= {"fraction", "whole"}:
        return "digits kept as written"
    if seen.texts.keys() == {"leading zero"}:
        return "leading zeros kept"
    if len(kinds) > 1:
        return " and ".join(f"{KINDS[kind]} {amount(times, 'time')}" for kind, times in kinds.items())
    if column.field.was is not None:
        return f"not always a {column.field.was.spark}"
    forms: dict[TextForm, str] = {
        "number": "numbers in texts, which DECIMAL also reads",
        "like a time": "times in a format that SQL does not read",
    }
    return forms.get(next(iter(seen.texts))) if len(seen.texts) == 1 else None
