"""The first records of a file, or the newest of a topic, as the fields of a source that can read all of them.

The fields are guessed (`guessing.py`) and then put before the judge that a source has for its records (`judging.py`).
A field of which it refuses a value becomes a STRING, until none is refused: what was looked at goes into no quarantine.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import IO, Any, Literal

from interchange.avro_types import row_of
from interchange.change_events import are_of_change, is_change, payload, row
from interchange.files import ISO, Format, Line, format_of, header_of, lines, schema_of, seekable
from interchange.framed import plain, unframed
from interchange.guessing import ID_NAME, SECOND, Seen, guess, has_empty, since_1970, typed, unit_of
from interchange.ingest import BadLine
from interchange.judgements import Rules, with_written_numbers
from interchange.written import Written
from master_log.kafka import Brokers
from master_log.registry import Registry
from view_algebra.errors import LaminaError
from view_algebra.language.types import BIGINT, INT, STRING, TIMESTAMP, Type

RECORDS = 10_000
"""Records that are looked at, by default."""

BYTES = 64 * 1024 * 1024
"""Bytes of records after which a sample of `RECORDS` ends, however few they are. A larger sample may have more."""

VALUES = 2_000_000
"""Values after which such a sample ends: some ten seconds of looking, for records of a thousand fields."""

LARGEST = 1_048_588 - 512
"""Bytes of a record that a topic takes by default (`max.message.bytes`)."""

MOST_FIELDS = 1_500
"""Fields of a source; a table in Postgres, which a row view is, has at most 1,600 columns."""

SHOWN = 3
"""Bad records that are named."""

Read = Callable[[Rules], Iterator[Line]]
"""Gives the records from the first, judged by rules."""


@dataclass(frozen=True)
class Field:
    """A field of the records: its type as it was guessed, what was seen of it, and why it is not what it seems.

    was: the type that most of its values have, if the judge or another type among them made it a STRING.
    """

    name: str
    kind: Type
    seen: Seen
    was: Type | None = None


@dataclass(frozen=True)
class Key:
    """The fields that Kafka's key repeats, as an object of them or as the text of one."""

    fields: tuple[str, ...]
    format: Literal["json", "string", "avro", "protobuf"]


@dataclass(frozen=True)
class Sample:
    """A sample of records: their fields in the order in which they came.

    records: how many; is_all: there were no more; is_newest: they are the last of a topic.
    epoch: the unit of numbers that are times. empty_as_null: an empty text stands for no value.
    has_unnamed: a field's name is empty, so that no column can come from it.
    bad: records that no declaration reads; first_bad names some.
    key: what Kafka's keys repeat, in a topic. deletions: its records without a value.
    is_compacted: Kafka drops a record of it when a newer one has its key.
    is_changes: they are rows of Debezium's change events; has_schemas: whose schemas say the types.
    format: what its records are written in; is_framed: in the frame of a schema registry.
    """

    fields: tuple[Field, ...]
    records: int
    is_all: bool
    epoch: str | None = None
    empty_as_null: bool = False
    has_unnamed: bool = False
    bad: int = 0
    first_bad: tuple[BadLine, ...] = ()
    key: Key | None = None
    deletions: int = 0
    is_newest: bool = False
    is_compacted: bool = False
    is_changes: bool = False
    has_schemas: bool = False
    format: str = "json"
    is_framed: bool = False

    @property
    def part(self) -> str:
        """The records that were looked at, in words."""
        if self.is_all:
            return "the only record" if self.records == 1 else f"all {self.records:,} records"
        return f"the {'newest' if self.is_newest else 'first'} {_records(self.records)}"

    @property
    def good(self) -> int:
        """The records that the fields were seen in."""
        return self.records - self.bad

    def rules(self) -> Rules:
        """The rules by which a source of these fields judges a record."""
        return Rules({field.name: field.kind for field in self.fields}, empty=self.empty_as_null)


def of_file(
    file: str, stated: str | None, most: int = RECORDS, stdin: IO[bytes] | None = None, written: Written = ISO
) -> tuple[Format, Sample]:
    """The format of a file (`-`: standard input) and its first records. Raises LaminaError if it has none.

    written: NULL and times of a CSV file.
    """
    kind = format_of(file, stated)
    written.check(file, kind)
    with seekable(file, stdin or sys.stdin.buffer) as content:

        def read(rules: Rules) -> Iterator[Line]:
            return lines(content, file, kind, rules, LARGEST, written)

        if kind in ("csv", "tsv"):
            names = _names(file, header_of(content, file, kind))
            sample = _sampled(
                file, read, most, dict.fromkeys(names, STRING), lambda text: written.time(text) or typed(text)
            )
        elif kind == "parquet":
            sample = _sampled(file, read, most, schema_of(content, file))
        else:
            with _hinted(content):
                sample = _sampled(file, read, most, {})
    return kind, sample


def of_topic(topic: str, brokers: Brokers, most: int = RECORDS, registry: Registry | None = None) -> Sample:
    """The newest records of a topic. Raises LaminaError if there is no such topic, or nothing in it.

    registry: where the schemas are of records that are in its frame.
    """
    if brokers.topic_id(topic) is None:
        raise LaminaError(
            f"There is no topic {topic} at {brokers.bootstrap_servers}",
            way_out="Give the topic's name as Kafka has it; its case counts.",
        )
    pairs = brokers.newest_records([topic], most)[topic]
    if (framed := unframed(topic, pairs, registry)) is None:
        return _of_pairs(topic, pairs, brokers, most, {})
    sample = _of_pairs(topic, framed.pairs, brokers, most, framed.types)
    key = sample.key
    if key is not None and framed.key_format is not None:
        key = Key(key.fields, framed.key_format)
    return replace(sample, format=framed.format, is_framed=True, key=key)


def _of_pairs(
    topic: str,
    pairs: Sequence[tuple[bytes | None, bytes | None]],
    brokers: Brokers,
    most: int,
    types: Mapping[str, Type],
) -> Sample:
    """A sample of these records of a topic. types: those of fields that are known beforehand."""
    values = [value for _, value in pairs if value is not None]
    if (changes := _of_changes(topic, pairs, row_of(types))) is not None:
        return changes

    def read(rules: Rules) -> Iterator[Line]:
        for number, value in enumerate(values, 1):
            judgement = rules.judged(value)
            yield Line(number, value, value, judgement.value, judgement.problem, judgement.with_null, judgement.is_utf8)

    held = sum(brokers.latest(topic).values()) - sum(brokers.earliest(topic).values())
    sample = _sampled(f"topic {topic}", read, most, types)
    _refuse_schemas(topic, sample)
    lines = zip((k for k, v in pairs if v is not None), read(sample.rules()), strict=True)
    keys = [(plain(key) if types else key, line.value) for key, line in lines if line.problem is None]
    return replace(
        sample,
        is_all=sample.is_all and held <= len(pairs),
        key=_key(keys, [field.name for field in sample.fields]),
        deletions=len(pairs) - len(values),
        is_newest=True,
        is_compacted=brokers.retention(topic).compacted,
    )


def _of_changes(
    topic: str, pairs: Sequence[tuple[bytes | None, bytes | None]], stated: Mapping[str, Type]
) -> Sample | None:
    """The rows of a topic of change events; None if it holds other records. known: the types of fields, if any are."""
    events: list[Any] = []
    keys: list[bytes | None] = []
    for key, value in pairs:
        with suppress(ValueError, RecursionError):
            record = with_written_numbers((value or b"").decode())
            if is_change(record):
                events.append(record)
                keys.append(key)
    rows = [(key, set_row) for key, event in zip(keys, events, strict=True) if (set_row := row(event)) is not None]
    if not rows:
        return None
    types = {**stated, **{name: kind for _, change in rows for name, kind in change.types.items()}}

    def read(rules: Rules) -> Iterator[Line]:
        for number, (_, change) in enumerate(rows, 1):
            judgement = rules.judged_value(change.values)
            yield Line(number, b"", b"", change.values, judgement.problem, judgement.with_null)

    sample = _sampled(f"topic {topic}", read, len(rows), types)
    return replace(
        sample,
        key=_key([(_bare(key), change.values) for key, change in rows], [field.name for field in sample.fields]),
        is_all=False,
        is_newest=True,
        empty_as_null=False,
        is_changes=True,
        has_schemas=bool(stated) or all(change.has_schema for _, change in rows),
    )


def _bare(key: bytes | None) -> bytes | None:
    """Kafka's key without its schema."""
    try:
        return None if key is None else json.dumps(payload(json.loads(key))).encode()
    except (ValueError, RecursionError):
        return key


def _key(records: Sequence[tuple[bytes | None, Mapping[str, Any]]], names: Sequence[str]) -> Key | None:
    """The fields that Kafka's keys repeat, and how; None if they are others in any record."""
    if not records or any(key is None for key, _ in records):
        return None
    texts = [(key or b"").decode(errors="replace") for key, _ in records]
    with suppress(ValueError, RecursionError):
        objects = [json.loads(text) for text in texts]
        fields = list(objects[0]) if isinstance(objects[0], dict) else []
        pairs = zip(objects, (value for _, value in records), strict=True)
        same = all(
            isinstance(key, dict) and list(key) == fields and all(key[name] == value.get(name) for name in fields)
            for key, value in pairs
        )
        if fields and same and set(fields) <= set(names):
            return Key(tuple(fields), "json")
    alone = (
        name
        for name in names
        if all(text == str(value.get(name)) for text, (_, value) in zip(texts, records, strict=True))
    )
    name = next(alone, None)
    return None if name is None else Key((name,), "string")


def _sampled(
    what: str, read: Read, most: int, declared: Mapping[str, Type], typed: Callable[[str], Any] | None = None
) -> Sample:
    """The sample of what `read` gives.

    declared: the fields that are known beforehand, with the types that their values have (Parquet) or are read as
    before `typed` makes more of them (CSV).
    """
    seen = {name: _unseen(name) for name in declared}
    records, bad, first = 0, 0, []
    before = Rules(declared)
    size, is_all, times = 0, True, max(1, most // RECORDS)
    for line in read(before):
        if records == most or size > BYTES * times or records * len(seen) > VALUES * times:
            is_all = False
            break
        records += 1
        size += len(line.raw)
        if line.problem is not None:
            bad += 1
            first.append(BadLine(line.number, line.problem))
            continue
        for name, value in _values(line, is_json=not declared).items():
            if name not in seen:
                seen[name] = _unseen(name)
                seen[name].nulls = records - bad - 1
            seen[name].note(typed(value) if typed and isinstance(value, str) else value)
        for name in seen.keys() - line.value.keys():
            seen[name].nulls += 1
        if len(seen) > MOST_FIELDS:
            raise _too_many(what, len(seen))
    if records == bad:
        raise _nothing(what, first)
    epoch, units = _epoch(seen)
    stated = {} if typed else declared
    fields = [
        _guessed(name, statistics, stated.get(name), epoch if name in units else None)
        for name, statistics in seen.items()
    ]
    sample = Sample(
        tuple(field for field in fields if field.name),
        records,
        is_all=is_all,
        epoch=epoch,
        empty_as_null=not typed and any(has_empty(field.seen, field.kind) for field in fields),
        has_unnamed="" in seen,
        bad=bad,
        first_bad=tuple(first[:SHOWN]),
    )
    return accepted(sample, read)


_MANY_DIGITS = re.compile(rb"\d[\d.]{15}")


def _values(line: Line, *, is_json: bool) -> Mapping[str, Any]:
    """The values of a record, with the digits that its numbers are written with."""
    if not is_json or not _MANY_DIGITS.search(line.raw):
        return line.value
    written = with_written_numbers(line.raw.decode(errors="replace"))
    return written if isinstance(written, dict) else line.value


def _unseen(name: str) -> Seen:
    return Seen(hashes=set() if ID_NAME.search(name) else None)


def _guessed(name: str, seen: Seen, declared: Type | None, unit: str | None) -> Field:
    """A field by its values, or by the type that its file declares."""
    if unit is not None:
        return Field(name, since_1970(unit), seen)
    kind = declared or guess(seen)
    if kind == INT and not declared and ID_NAME.search(name):
        kind = BIGINT  # ids grow
    main = seen.kinds.most_common(1)
    several = declared is None and kind == STRING and len(seen.kinds.keys() - {"empty"}) > 1
    if not several and not (kind == STRING and main and main[0][0] == "text" and len(seen.texts) > 1):
        return Field(name, kind, seen)
    return Field(name, kind, seen, was=_mostly(seen))


def _mostly(seen: Seen) -> Type | None:
    """The type of the most frequent values, if it is not STRING."""
    most = seen.kinds.most_common(1)[0][0]
    forms = {form: seen.texts[form] for form in ("date", "instant") if 2 * seen.texts[form] > seen.texts.total()}
    alone = replace(seen, kinds=Counter({most: seen.kinds[most]}), texts=Counter(forms) or seen.texts)
    kind = guess(alone)
    return None if kind == STRING else kind


def _epoch(seen: Mapping[str, Seen]) -> tuple[str | None, frozenset[str]]:
    """The unit that the most fields with numbers have that may be times, and these fields."""
    units = {name: unit for name, statistics in seen.items() if (unit := unit_of(name, statistics))}
    if not units:
        return None, frozenset()
    counted = Counter(units.values())
    epoch = max(counted, key=lambda unit: (counted[unit], -list(SECOND).index(unit)))
    return epoch, frozenset(name for name, unit in units.items() if unit == epoch)


def accepted(sample: Sample, read: Read) -> Sample:
    """The sample with STRING for each field of which the judge refuses a value."""
    while True:
        rules = sample.rules()
        alone = {name: replace(rules, columns={name: kind}) for name, kind in rules.columns.items() if kind != STRING}
        refused: set[str] = set()
        bad, first = 0, []
        for line in itertools.islice(read(rules), sample.records):
            if line.problem is None:
                continue
            wrong = {name for name in alone if alone[name].judged_value({name: line.value.get(name)}).problem}
            wrong.update(line.unread)
            refused |= wrong
            if not wrong:
                bad += 1
                first.append(BadLine(line.number, line.problem))
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
    """The fields that a header names. Raises LaminaError if the line holds values, or names one twice."""
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
    if values or any(Counter(names)[name] > 1 for name in names if name):
        twice = [name for name, times in Counter(names).items() if name and times > 1]
        raise LaminaError(
            f"{file}: the first line does not name the columns",
            evidence=f"It names {', '.join(twice)} twice." if twice and not values else f"Found: {values[0]}.",
            way_out="Give each column a name of its own in the first line.",
        )
    return [name for name in names if name]


class _NotJson(LaminaError):
    """Nothing of a file is a record, one a line."""


@contextmanager
def _hinted(content: IO[bytes]) -> Iterator[None]:
    """Says what to do with a file of JSON that is not one record a line."""
    try:
        yield
    except _NotJson as error:
        content.seek(0)
        beginning = content.read(1024).lstrip()
        if beginning.startswith(b"["):
            error.way_out = "It is a list of records. To write one a line: jq -c '.[]' FILE > FILE.jsonl"
        elif beginning.startswith(b"{"):
            error.way_out = "A record has a line of its own. To write it so: jq -c . FILE > FILE.jsonl"
        raise


def _nothing(what: str, bad: Sequence[BadLine]) -> LaminaError:
    if bad:
        is_json = not all(line.problem.startswith(("not ", "a JSON ", "the JSON ")) for line in bad)
        return (LaminaError if is_json else _NotJson)(
            f"{what}: none of {_records(len(bad))} can be read",
            evidence="\n".join(map(str, bad[:SHOWN])),
            way_out="Records are JSON objects, one a line, or CSV in UTF-8: iconv -f latin1 -t utf-8 FILE, for example."
            " Another format is named with --format.",
        )
    return LaminaError(
        f"{what} holds no records",
        evidence="Types are guessed from values.",
        way_out="Give at least one record, or write the source by hand: docs/sql.md shows how.",
    )


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"


def _too_many(what: str, number: int) -> LaminaError:
    return LaminaError(
        f"{what}: records have more than {MOST_FIELDS:,} fields",
        evidence=f"{number:,} were seen; the names may be data.",
        way_out="Put what varies into an object of its own, which is read as a MAP.",
    )


def _refuse_schemas(topic: str, sample: Sample) -> None:
    """Raises for change events without a row, and for records beside their schemas."""
    names = {field.name for field in sample.fields}
    if are_of_change(names) or {"schema", "payload"} <= names:
        raise LaminaError(
            f"Topic {topic} holds change events without rows, or records with their schemas",
            evidence=f"Their fields: {', '.join(sorted(names))}.",
            way_out="Declare the row's columns by hand, with OPTIONS (…, format 'debezium-json') and PRIMARY KEY (…)"
            " for changes, or OPTIONS (…, format 'json', 'schemas.enable' 'true'): docs/sql.md shows how.",
        )
