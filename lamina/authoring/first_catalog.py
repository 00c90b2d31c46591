"""A first source and a first view for sampled records, as the text of two files of a catalog."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from interchange.compression import without_ending
from interchange.guessing import ID_NAME, Statistics
from interchange.sampling import GuessedField, Sample
from view_algebra.errors import LaminaError
from view_algebra.language.quoting import postgres_name, spark_name, spark_text
from view_algebra.language.types import DATE, STRING, TIMESTAMP, Type
from view_algebra.written.declarations import ICEBERG_COLUMNS, LONGEST_SOURCE
from view_algebra.written.properties import OF_FIELD

LONGEST_COLUMN = 60
"""Characters of a column name that we make up. Postgres allows 63."""

LONGEST_EXAMPLE = 20
"""Characters of a value in a comment."""

EXAMPLES = 3
"""Values of a category in its comment."""

ROWS = 50
"""Columns of a view of rows."""

KINDS = {
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
class Column:
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


@dataclass(frozen=True)
class Proposal:
    """A source and a view over it: their names, their files in the catalog, and the SQL of both."""

    source: str
    view: str
    topic: str
    files: dict[str, str]
    columns: tuple[Column, ...]
    event_time: str | None
    key: tuple[str, ...]
    order: str


def name_of(location: str, *, is_file: bool) -> str:
    """The name of a source for a file or a topic.

    >>> name_of("data/My Orders-2024.csv.gz", is_file=True), name_of("shop.orders.v1", is_file=False)
    ('my_orders_2024', 'shop_orders_v1')
    """
    text = Path(without_ending(location)).stem if is_file else location
    name = re.sub(r"[^a-z0-9]+", "_", _ascii(text).lower()).strip("_") or "records"
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
    as_table = as_table or sample.is_changes
    columns = _columns(sample.fields)
    of_topic = sample.key.fields if sample.key else ()
    proposed = tuple(_named(columns, column_name).name for column_name in key or of_topic) or _key(columns)
    columns = tuple(_with_digits(column) if column.name in key else column for column in columns)
    if as_table and not proposed:
        raise LaminaError(
            f"{name}: no column is a key of its own",
            evidence=f"No column with an id's name has a different value in each of {sample.good:,} records.",
            way_out=f"Name the columns that identify a row with --key COLUMN. Columns:"
            f" {', '.join(column.name for column in columns)}.",
        )
    if as_table:
        _refuse_nulls(columns, proposed, sample)
    elif sample.is_compacted:
        raise LaminaError(
            f"Topic {topic} is compacted: Kafka drops a record when a newer one has its key",
            evidence="A stream would count what a rebuild cannot, so `lamina apply` refuses one.",
            way_out="Make it a table: lamina init --table.",
        )
    event_time = None if sample.is_changes else _event_time(columns)  # a time of the row stays as it changes
    source = _source(
        sample,
        columns,
        name,
        topic,
        seen_in,
        event_time,
        proposed,
        key_format=_key_format(columns, proposed, sample, as_table=as_table, is_file=is_file),
    )
    row_key = proposed if as_table else ()
    # A view grouped by the table's key would count every row alone.
    shown = [column for column in columns if (column.name,) != row_key]
    view, select, order = _view(shown or columns, name, sample, event_time, as_table=as_table)
    files = {f"sources/{name}.sql": source, f"views/{view}.sql": select}
    return Proposal(name, view, topic, files, columns, event_time.name if event_time else None, proposed, order)


def _columns(fields: Sequence[GuessedField]) -> tuple[Column, ...]:
    """A column for each field. It has the field's name if SQL can use that without quotes."""
    own = {seen_field.name.lower() for seen_field in fields if _is_plain(seen_field.name)}
    taken: set[str] = set()
    columns = []
    for seen_field in fields:
        name = seen_field.name
        if not _is_plain(name) or name.lower() in taken:
            name = _free(_made_up(name), taken | own)
        taken.add(name.lower())
        columns.append(Column(name, seen_field))
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
    plain = re.sub(r"[^a-z0-9]+", "_", _ascii(name).lower()).strip("_").removeprefix("kafka_") or "field"
    plain = f"field_{plain}" if plain[0].isdigit() else plain
    return plain[:LONGEST_COLUMN].rstrip("_")


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _free(name: str, taken: Collection[str]) -> str:
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(candidate for candidate in itertools.chain([name], numbered) if candidate not in taken)


def _named(columns: Sequence[Column], name: str) -> Column:
    for column in columns:
        if name in (column.name, column.field.name):
            return column
    raise LaminaError(
        f"There is no column {name}",
        evidence=f"Found: {', '.join(column.name for column in columns)}.",
        way_out="Name one of these with --key.",
    )


def _key(columns: Sequence[Column]) -> tuple[str, ...]:
    """The column that told all records apart, if it is called an id."""
    unique = [
        column for column in columns if column.seen.is_unique and not column.seen.nulls and _can_be_key(column.kind)
    ]
    return (unique[0].name,) if unique and unique[0].seen.values > 1 else ()


def _key_format(
    columns: Sequence[Column], key: Sequence[str], sample: Sample, *, as_table: bool, is_file: bool
) -> str | None:
    """The `key_format` of a table, as `lamina ingest` writes it or as the topic has it. None for a stream."""
    if not as_table:
        return None
    if is_file or sample.is_changes:
        return "json"
    fields = tuple(column.field.name for column in columns if column.name in key)
    return sample.key.format if sample.key and set(sample.key.fields) == set(fields) else "none"


def _refuse_nulls(columns: Sequence[Column], key: Sequence[str], sample: Sample) -> None:
    for column in columns:
        missing = sample.good - column.seen.values + column.seen.kinds["empty"]
        if column.name in key and missing:
            raise LaminaError(
                f"{column.name} cannot be a PRIMARY KEY: it has no value in {missing:,} of {sample.good:,} records",
                way_out="Name other columns with --key, or leave --table out.",
            )


def _with_digits(column: Column) -> Column:
    """A key with fractions keeps its digits as they are written: 1.1 and 1.10 are two keys."""
    is_fraction = column.kind.numeric and not column.kind.integral and column.kind.scale != 0
    return replace(column, field=replace(column.field, kind=STRING)) if is_fraction else column


def _can_be_key(kind: Type) -> bool:
    return kind.integral or kind.name == "STRING"


def _event_time(columns: Sequence[Column]) -> Column | None:
    """The only column that is a timestamp, or the only date if there are no timestamps."""
    times = [column for column in columns if column.kind == TIMESTAMP and not _DUE.search(column.field.name)]
    dates = [column for column in columns if column.kind == DATE and not _DUE.search(column.field.name)]
    alone = times or dates
    return alone[0] if len(alone) == 1 else None


def _category(columns: Sequence[Column], sample: Sample) -> Column | None:
    """The column whose few values say most: a text before a flag, a flag before a small number, and a telling name
    before all.
    """

    def is_one(column: Column) -> bool:
        several = 2 <= len(column.seen.different) <= max(2, column.seen.values // 2)
        several = several and len(column.seen.different) < column.seen.values
        return several and not column.seen.many and column.kind.name in _RANKS and 2 * column.seen.nulls <= sample.good

    def worth(column: Column) -> tuple[bool, int, bool, int]:
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


def _source(
    sample: Sample,
    columns: Sequence[Column],
    name: str,
    topic: str,
    seen_in: str,
    event_time: Column | None,
    key: Sequence[str],
    *,
    key_format: str | None,
) -> str:
    as_table = key_format is not None
    lines = [
        f"  {spark_name(column.name)} {column.kind.spark} COMMENT {spark_text(_comment(column))}" for column in columns
    ]
    keys = ", ".join(map(spark_name, key))
    if as_table:
        lines.append(f"  PRIMARY KEY ({keys})")
    properties = {"event_time": event_time.name} if event_time else {}
    properties |= {"event_time": "source.ts_ms"} if sample.is_changes else {}
    properties |= {"epoch": sample.epoch} if sample.epoch else {}
    properties |= {"empty_as_null": "true"} if sample.empty_as_null else {}
    properties |= {
        f"{OF_FIELD}{column.name}": column.field.name for column in columns if column.name != column.field.name
    }
    properties_text = ",\n  ".join(f"{spark_text(name)} = {spark_text(value)}" for name, value in properties.items())
    options = f"topic '{topic}', format '{'debezium-' * sample.is_changes}{sample.format}'"
    options += f", key_format '{key_format}'" if as_table and not sample.is_changes else ""
    options += ", frame 'registry'" if sample.is_framed and sample.format == "json" else ""
    ends = f"\nTBLPROPERTIES (\n  {properties_text}\n);\n" if properties_text else ";\n"
    body = ",\n".join(lines)
    notes = "".join(f"-- {note}\n" for note in _notes(sample, columns, seen_in, event_time, keys, as_table=as_table))
    return f"{notes}CREATE TABLE {name} (\n{body}\n)\nUSING kafka OPTIONS ({options}){ends}"


def _notes(
    sample: Sample, columns: Sequence[Column], seen_in: str, event_time: Column | None, keys: str, *, as_table: bool
) -> list[str]:
    """Comments for the author, above the declaration."""
    seen = re.sub(r"[^ -~]", "?", seen_in)  # a name may hold a line break
    notes = [f"Types were guessed from {sample.part} of {seen}. Correct them where you know better."]
    if sample.is_changes and not sample.has_schemas:
        notes.append(
            "The events have no schemas: dates are numbers of days, decimals may be base64, and bytes are texts."
        )
        notes.append("Declare such columns DATE, DECIMAL(p, s) and BINARY: docs/sql.md describes their other options.")
    times = [column.name for column in columns if column.kind in (TIMESTAMP, DATE)]
    if event_time is None and times and not sample.is_changes:
        ways = f"'event_time' = '{times[0]}'"
        notes.append(
            f"Several columns are times ({', '.join(times)}): TBLPROPERTIES ({ways}) says when a record happened."
        )
    if keys and not as_table:
        if any(column.seen.is_unique for column in columns if spark_name(column.name) == keys):
            notes.append(f"No two records had the same {keys}: UNIQUE ({keys}) counts an event once if sent twice.")
        notes.append(f"PRIMARY KEY ({keys}) makes this a table of the newest record of each: lamina init --table.")
    return notes


def _comment(column: Column) -> str:
    """The values of a column, in one line."""
    seen = column.seen
    parts = [f"seen {seen.values:,} time{'s' * (seen.values != 1)}"]
    if seen.nulls:
        parts.append(f"{seen.nulls:,} null{'s' * (seen.nulls != 1)}")
    parts += filter(None, [_values(column), _doubt(column)])
    return ", ".join(parts)


def _values(column: Column) -> str | None:
    """A few values: a category's most frequent, or the lowest and the highest. Never a value of a text with many."""
    seen = column.seen
    if column.kind.nested or not seen.values or _PERSONAL.search(column.field.name):
        return None
    if seen.lowest is not None and column.kind.numeric and seen.lowest != seen.highest:
        return f"{_short(seen.lowest)} to {_short(seen.highest)}"
    if seen.earliest and column.kind in (DATE, TIMESTAMP) and seen.earliest != seen.latest:
        return f"{seen.earliest} to {seen.latest}"
    few = [text for text, _ in seen.different.most_common(EXAMPLES) if 0 < len(text) <= LONGEST_EXAMPLE]
    few = [text for text in few if text.isprintable() and text.strip()]
    if seen.many or len(seen.different) == seen.values or not few:
        return None
    return f"e.g. {', '.join(few)}"


def _short(number: Decimal | None) -> str:
    return f"{number:,}" if number is not None else ""


def _doubt(column: Column) -> str | None:
    """A reason for a type that the author might not expect, or None."""
    seen = column.seen
    if column.kind == TIMESTAMP and column.kind.unit:
        return "numbers since 1970"
    if not seen.values:
        return "no value seen"
    if column.kind == TIMESTAMP and seen.zoneless:
        return "no time zone, read as UTC"
    if column.kind.name == "DECIMAL" and column.kind.scale:
        return f"rounded to {column.kind.scale} digits behind the point"
    if column.kind.name != "STRING":
        return "empty texts are NULL" if seen.kinds["empty"] else None
    kinds = {kind: times for kind, times in seen.kinds.most_common() if kind != "empty"}
    if kinds and kinds.keys() <= {"fraction", "whole"}:
        return "digits kept as written"
    if seen.texts.keys() == {"leading zero"}:
        return "leading zeros kept"
    if len(kinds) > 1:
        return " and ".join(f"{KINDS[kind]} {times:,} time{'s' * (times != 1)}" for kind, times in kinds.items())
    if column.field.was is not None:
        return f"not always a {column.field.was.spark}"
    forms = {"number": "numbers in texts, which DECIMAL reads, too", "like a time": "not a time to SQL yet"}
    return forms.get(next(iter(seen.texts))) if len(seen.texts) == 1 else None


def _view(
    columns: Sequence[Column], name: str, sample: Sample, event_time: Column | None, *, as_table: bool
) -> tuple[str, str, str]:
    """The first view's name, its statement, and the ORDER BY for showing it."""
    times = [event_time] if event_time else [column for column in columns if column.kind in (TIMESTAMP, DATE)]
    time = None if as_table else min(times, key=lambda column: column.kind == DATE, default=None)
    category = _category(columns, sample)
    keys: list[tuple[str, str]] = []
    if time is not None:
        column = spark_name(time.name)
        keys.append(("day", column) if time.kind == DATE else ("hour", f"window({column}, '1 hour').start"))
    if category is not None:
        output = category.name.lower()
        output = output if spark_name(output) == postgres_name(output) == output else f"by_{output}"
        keys.append((_free(output, {key for key, _ in keys} | {"records"}), spark_name(category.name)))
    if not keys:
        return _rows(columns, name, as_table=as_table)
    names = [key for key, _ in keys]
    view = "_".join([name, "per", *names])[:LONGEST_COLUMN].rstrip("_")
    selected = ", ".join([*(value for _, value in keys), "count(*)"])
    grouped = ", ".join(value.removesuffix(".start") for _, value in keys)
    outputs = ", ".join([*names, "records"])
    text = f"CREATE VIEW {view} ({outputs}) AS\nSELECT {selected}\nFROM {name}\nGROUP BY {grouped};\n"
    return view, text, "records DESC" if time is None else ", ".join([f"{names[0]} DESC", *names[1:]])


def _rows(columns: Sequence[Column], name: str, *, as_table: bool) -> tuple[str, str, str]:
    """A view of the records themselves, or of a table's number of rows."""
    if as_table:
        return (
            f"{name}_count",
            f"CREATE VIEW {name}_count AS\nSELECT count(*) AS records\nFROM {name};\n",
            "records DESC",
        )
    shown = ", ".join(spark_name(column.name) for column in columns[:ROWS])
    return f"{name}_rows", f"CREATE VIEW {name}_rows AS\nSELECT {shown}\nFROM {name};\n", ""
