"""Guesses a source's fields from a sample of its records: the first of a file, or the newest of a topic.

The guessed fields (`guessing.py`) are tested by the rules by which a source judges its records (`judgements.py`). A
field with a refused value becomes a STRING, until no value is refused, so none of the sampled records will be
quarantined.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from interchange.csv_forms import CsvForms
from interchange.files import ISO, BadLine, Line, format_of, header_of, lines, schema_of
from interchange.guessing import ID_NAME, PER_SECOND, Statistics, TextForm, guess, has_empty, since_1970, typed, unit_of
from interchange.judgements import Rules, with_written_numbers
from interchange.opening import seekable
from view_algebra.errors import LaminaError
from view_algebra.language.types import BIGINT, INT, STRING, TIMESTAMP, Type

RECORDS = 10_000
"""Records of a sample, by default."""

BYTES = 64 * 1024 * 1024
"""Bytes after which a sample of `RECORDS` ends, however few records it has. A larger sample may have more bytes."""

VALUES = 2_000_000
"""Values after which such a sample ends: about ten seconds of work for records with a thousand fields."""

LARGEST = 1_048_588 - 512
"""Most bytes of a record that a topic takes by default (`max.message.bytes`)."""

MOST_FIELDS = 1_500
"""Most fields of a source: a row view is a table in Postgres, which has at most 1,600 columns."""

SHOWN = 3
"""Most bad records that are named."""

ReadLines = Callable[[Rules], Iterator[Line]]
"""Reads the records from the first on, judged by rules."""


@dataclass(frozen=True)
class GuessedField:
    """A field of the records, with its guessed type and its statistics.

    was: the type of most of its values, if a refused value or a value of another type made it a STRING
    """

    name: str
    kind: Type
    seen: Statistics
    was: Type | None = None


@dataclass(frozen=True)
class KafkaKey:
    """Fields that Kafka's key repeats, as an object of them or as the text of one."""

    fields: tuple[str, ...]
    format: Literal["json", "string", "avro", "protobuf"]


@dataclass(frozen=True)
class TopicFacts:
    """The topic whose newest records were sampled. The records of a file have no key.

    key: the fields that Kafka's keys repeat
    deletions: the number of records without a value
    is_newest: the sample is of a topic
    is_compacted: Kafka drops a record of the topic when a newer one has its key
    """

    key: KafkaKey | None = None
    deletions: int = 0
    is_newest: bool = False
    is_compacted: bool = False


@dataclass(frozen=True)
class Encoding:
    """The form of the records.

    is_framed: they are in a schema registry's frame
    is_changes: they are rows of Debezium's change events
    has_schemas: the events' schemas give the types
    """

    format: str = "json"
    is_framed: bool = False
    is_changes: bool = False
    has_schemas: bool = False


@dataclass(frozen=True)
class Sample:
    """The fields of a sample of records, in the order of their first occurrence.

    records: the number sampled
    is_all: the file or topic has no more
    epoch: the unit of numbers that are times
    empty_as_null: an empty text means NULL
    has_unnamed: a field has an empty name, which cannot become a column
    bad: the number of records that no declaration can read. first_bad names some
    """

    fields: tuple[GuessedField, ...]
    records: int
    is_all: bool
    epoch: str | None = None
    empty_as_null: bool = False
    has_unnamed: bool = False
    bad: int = 0
    first_bad: tuple[BadLine, ...] = ()
    topic: TopicFacts = TopicFacts()
    encoding: Encoding = Encoding()

    @property
    def part(self) -> str:
        """The sampled records, in words."""
        which = "newest" if self.topic.is_newest else "first"
        if self.records == 1:
            return "the only record" if self.is_all else f"the {which} record"
        return f"all {self.records:,} records" if self.is_all else f"the {which} {self.records:,} records"

    @property
    def good(self) -> int:
        """The number of records with readable fields."""
        return self.records - self.bad

    def rules(self) -> Rules:
        """The rules by which a source of these fields judges a record."""
        return Rules({field.name: field.kind for field in self.fields}, empty_as_null=self.empty_as_null)


def file_sample(file: str, stated: str | None, most: int = RECORDS, forms: CsvForms = ISO) -> Sample:
    """A sample of a file's first records (`-`: standard input). Raises LaminaError if it has none.

    forms: the forms of NULL and times in a CSV file
    """
    kind = format_of(file, stated)
    forms.check(file, kind)
    with seekable(file, sys.stdin.buffer) as content:

        def read(rules: Rules) -> Iterator[Line]:
            return lines(content, file, kind, rules, LARGEST, forms)

        if kind in ("csv", "tsv"):
            declared = dict.fromkeys(_names(file, header_of(content, file, kind)), STRING)
            return sample_of(file, read, most, declared, lambda text: forms.time(text) or typed(text))
        if kind == "parquet":
            return sample_of(file, read, most, schema_of(content, file))
        try:
            return sample_of(file, read, most, {})
        except _NotJson as error:
            content.seek(0)
            beginning = content.read(1024).lstrip()
            if beginning.startswith(b"["):
                error.way_out = "It is a list of records. To write one per line: jq -c '.[]' FILE > FILE.jsonl"
            elif beginning.startswith(b"{"):
                error.way_out = "Every record needs its own line. To write it like this: jq -c . FILE > FILE.jsonl"
            raise


def sample_of(
    what: str,
    read: ReadLines,
    most: int,
    declared: Mapping[str, Type],
    typed: Callable[[str], Any] | None = None,
) -> Sample:
    """The sample of at most `most` records of `read`.

    declared: fields known beforehand, with the types of their values: Parquet's types, or the types of CSV texts before
        `typed` converts them
    """
    values = (lambda line: line.judgement.value) if declared else _with_all_digits
    pass_over = _Pass(what, {name: _unseen(name) for name in declared}, values, typed)
    pass_over.note(read(Rules(declared)), most)
    epoch, units = _epoch(pass_over.seen)
    stated = {} if typed else declared
    fields = [
        _guessed(name, statistics, stated.get(name), epoch if name in units else None)
        for name, statistics in pass_over.seen.items()
    ]
    sample = Sample(
        tuple(field for field in fields if field.name),
        pass_over.records,
        is_all=pass_over.is_all,
        epoch=epoch,
        empty_as_null=not typed and any(has_empty(field.seen, field.kind) for field in fields),
        has_unnamed="" in pass_over.seen,
        bad=len(pass_over.bad),
        first_bad=tuple(pass_over.bad[:SHOWN]),
    )
    return accepted(sample, read)


@dataclass
class _Pass:
    """The first pass over the records of a sample, and the statistics of their fields.

    values: the values of a record
    typed: converts a text to the value that it stands for
    """

    what: str
    seen: dict[str, Statistics]
    values: Callable[[Line], Mapping[str, Any]]
    typed: Callable[[str], Any] | None
    records: int = 0
    bad: list[BadLine] = field(default_factory=list)
    is_all: bool = True

    def note(self, lines: Iterator[Line], most: int) -> None:
        """Adds records until the sample is large enough. Raises LaminaError if none of them can be read."""
        size, times = 0, max(1, most // RECORDS)
        for line in lines:
            if self.records == most or size > BYTES * times or self.records * len(self.seen) > VALUES * times:
                self.is_all = False
                break
            self.records += 1
            size += len(line.raw)
            if line.judgement.problem is not None:
                self.bad.append(BadLine(line.number, line.judgement.problem))
            else:
                self._add(self.values(line))
        if self.records == len(self.bad):
            raise _nothing(self.what, self.bad)

    def _add(self, values: Mapping[str, Any]) -> None:
        for name in self.seen.keys() - values.keys():
            self.seen[name].nulls += 1
        for name, value in values.items():
            if name not in self.seen:
                self.seen[name] = _unseen(name)
                self.seen[name].nulls = self.records - len(self.bad) - 1
            self.seen[name].note(self.typed(value) if self.typed and isinstance(value, str) else value)
        if len(self.seen) > MOST_FIELDS:
            raise _too_many(self.what, len(self.seen))


_MANY_DIGITS = re.compile(rb"\d[\d.]{15}")


def _with_all_digits(line: Line) -> Mapping[str, Any]:
    """The values of a JSON record, with all digits of its numbers."""
    if not _MANY_DIGITS.search(line.raw):
        return line.judgement.value
    written = with_written_numbers(line.raw.decode(errors="replace"))
    return written if isinstance(written, dict) else line.judgement.value


def _unseen(name: str) -> Statistics:
    return Statistics(hashes=set() if ID_NAME.search(name) else None)


def _guessed(name: str, seen: Statistics, declared: Type | None, unit: str | None) -> GuessedField:
    """The field with the type that its values or its file suggest."""
    if unit is not None:
        return GuessedField(name, since_1970(unit), seen)
    kind = declared or guess(seen)
    if kind == INT and not declared and ID_NAME.search(name):
        kind = BIGINT  # ids grow
    main = seen.kinds.most_common(1)
    several = declared is None and kind == STRING and len(seen.kinds.keys() - {"empty"}) > 1
    if not several and not (kind == STRING and main and main[0][0] == "text" and len(seen.texts) > 1):
        return GuessedField(name, kind, seen)
    return GuessedField(name, kind, seen, was=_mostly(seen))


def _mostly(seen: Statistics) -> Type | None:
    """The type of the most frequent values, if it is not STRING."""
    most = seen.kinds.most_common(1)[0][0]
    times: tuple[TextForm, ...] = ("date", "instant")
    forms = Counter({form: seen.texts[form] for form in times if 2 * seen.texts[form] > seen.texts.total()})
    alone = replace(seen, kinds=Counter({most: seen.kinds[most]}), texts=forms or seen.texts)
    kind = guess(alone)
    return None if kind == STRING else kind


def _epoch(seen: Mapping[str, Statistics]) -> tuple[str | None, frozenset[str]]:
    """The most frequent unit of fields whose numbers may be times, and these fields."""
    units = {name: unit for name, statistics in seen.items() if (unit := unit_of(name, statistics))}
    if not units:
        return None, frozenset()
    counted = Counter(units.values())
    epoch = max(counted, key=lambda unit: (counted[unit], -list(PER_SECOND).index(unit)))
    return epoch, frozenset(name for name, unit in units.items() if unit == epoch)


def accepted(sample: Sample, read: ReadLines) -> Sample:
    """The sample with STRING for every field that has a refused value."""
    while True:
        rules = sample.rules()
        alone = {name: replace(rules, columns={name: kind}) for name, kind in rules.columns.items() if kind != STRING}
        refused: set[str] = set()
        bad, first = 0, []
        for line in itertools.islice(read(rules), sample.records):
            value, problem = line.judgement.value, line.judgement.problem
            if problem is None:
                continue
            wrong = {name for name in alone if alone[name].judged_value({name: value.get(name)}).problem}
            wrong.update(line.unread)
            refused |= wrong
            if not wrong:
                bad += 1
                first.append(BadLine(line.number, problem))
        if not refused:
            if bad == sample.records:
                raise _nothing("the sample", first)
            return replace(sample, bad=bad, first_bad=tuple(first[:SHOWN]))
        fields = [
            replace(field, kind=STRING, was=field.kind) if field.name in refused else field for field in sample.fields
        ]
        has_unit = any(field.kind == TIMESTAMP and field.kind.unit for field in fields)
        sample = replace(sample, fields=tuple(fields), epoch=sample.epoch if has_unit else None)


def _names(file: str, header: Sequence[str]) -> list[str]:
    """The fields that a header names. Raises LaminaError if it holds values, or names a field twice."""
    names = [name.strip() for name in header]
    if not any(names):
        raise _nothing(file, [])
    if any(not name.isprintable() for name in names):
        raise LaminaError(
            f"{file}: the first line is not a header",
            evidence="It holds control characters.",
            way_out="Save the file as CSV in UTF-8, or name its format with --format.",
        )
    values = [name for name in names if name and not isinstance(typed(name), str)]
    twice = [name for name, times in Counter(names).items() if name and times > 1]
    if values or twice:
        raise LaminaError(
            f"{file}: the first line does not name the columns",
            evidence=f"Found: {values[0]}." if values else f"It names {', '.join(twice)} twice.",
            way_out="Name every column once in the first line.",
        )
    return [name for name in names if name]


class _NotJson(LaminaError):
    """No line of the file is a record."""


def _nothing(what: str, bad: Sequence[BadLine]) -> LaminaError:
    if bad:
        is_json = not all(line.problem.startswith(("not ", "a JSON ", "the JSON ")) for line in bad)
        return (LaminaError if is_json else _NotJson)(
            f"{what} holds no record that can be read",
            evidence="\n".join(map(str, bad[:SHOWN])),
            way_out="Records are JSON objects, one per line, or CSV in UTF-8: iconv -f latin1 -t utf-8 FILE, say."
            " Name another format with --format.",
        )
    return LaminaError(
        f"{what} holds no records",
        evidence="Types are guessed from values.",
        way_out="Use at least one record, or write the source by hand: docs/sql.md shows how.",
    )


def _too_many(what: str, number: int) -> LaminaError:
    return LaminaError(
        f"{what}: records have more than {MOST_FIELDS:,} fields",
        evidence=f"The sample has {number:,}; their names may be data.",
        way_out="Put the varying fields into an object of their own, which is read as a MAP.",
    )
