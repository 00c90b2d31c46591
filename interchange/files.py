"""Reads JSON lines, CSV or Parquet, compressed or not, line by line in bounded memory."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, cast, get_args

from interchange.column_types.arrow_types import always_fits, type_of
from interchange.compression import is_unpacking, without_ending
from interchange.csv_forms import CsvForms
from interchange.json_text import to_json
from interchange.judgements import Judgement, Rules
from interchange.opening import MOST_OF_A_LINE, endless, readable, refuse_device
from view_algebra.errors import LaminaError
from view_algebra.language.types import STRING, Type

Format = Literal["jsonl", "csv", "tsv", "parquet"]

ENDINGS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}

LONGEST_LINE = 64 * 1024 * 1024
"""Most bytes of a line that is read: by default, no broker takes a longer record."""

ISO = CsvForms()
"""The default form: an empty field is NULL, and times are in ISO 8601."""

MARK = b"\xef\xbb\xbf"
"""The byte order mark at the beginning of some editors' files."""

_ROWS = 4096
"""Rows of Parquet in memory at a time."""


@dataclass(frozen=True)
class Line:
    """A line of a file: `number` from 1 (CSV counts its header, Parquet counts rows).

    raw: its unchanged bytes
    record: its JSON for Kafka, or a bad line of JSON as it is
    judgement: its fields, or the reason that it is not a record of the source
    unread: fields that should be times but fit no format of the file
    """

    number: int
    raw: bytes
    record: bytes
    judgement: Judgement
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class BadLine:
    """A bad line, or a line with a bad field, with the reason."""

    number: int
    problem: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.problem}"


def format_of(name: str, stated: str | None) -> Format:
    """The stated format, or else the format of the file's ending. Raises LaminaError if neither is known."""
    if stated is None:
        ending = Path(without_ending(name)).suffix.lower()
        if ending in ENDINGS:
            return ENDINGS[ending]
    elif stated in get_args(Format):
        return cast("Format", stated)
    if stated is None and name != "-":
        with readable(name):
            refuse_device(Path(name).stat(), name)
    raise LaminaError(
        f"{name}: the format is not known",
        evidence=f"Found: {stated or Path(name).suffix or 'no ending'}.\nWanted: {', '.join(get_args(Format))}.",
        way_out="Name it with --format.",
    )


def lines(
    file: IO[bytes], name: str, file_format: Format, rules: Rules, largest: int, forms: CsvForms = ISO
) -> Iterator[Line]:
    """The file's lines from its start, each judged by the source's rules.

    largest: most bytes of a record
    forms: the forms of NULL and times in a CSV file
    """
    with readable(name):
        file.seek(0)
        match file_format:
            case "jsonl":
                judged = _json_lines(file, name, rules)
            case "csv" | "tsv":
                judged = _csv(file, name, file_format, rules, forms)
            case "parquet":
                judged = _parquet(file, name, rules)
        for line in judged:
            size = len(line.record if line.judgement.problem is None else line.raw)
            if size > largest:
                too_large = Judgement({}, f"{size:,} bytes, and the topic takes {largest:,}")
                yield Line(line.number, line.raw, line.record, too_large)
            else:
                yield line


def _json_lines(file: IO[bytes], name: str, rules: Rules) -> Iterator[Line]:
    for number, raw in _split(file, name):
        line = raw.rstrip(b"\r\n")
        if not line.strip():
            continue
        yield Line(number, line, line, rules.judged(line))


def header_of(file: IO[bytes], name: str, file_format: Format) -> Sequence[str]:
    """The unchanged names in the first line of a CSV file."""
    with readable(name):
        file.seek(0)
        return _csv_reader(file, name, file_format, [])[1]


def _csv_reader(file: IO[bytes], name: str, file_format: Format, taken: list[bytes]) -> tuple[Any, Sequence[str]]:
    """A reader positioned after the header, and the header. The reader adds every line that it reads to `taken`."""
    csv.field_size_limit(LONGEST_LINE)

    def texts() -> Iterator[str]:
        for _, raw in _split(file, name):
            taken.append(raw)
            # Bytes that are not UTF-8 become surrogates, so that only their own line is bad.
            yield raw.decode(errors="surrogateescape")

    several = texts()
    begins = next(several, "")
    separator = "\t" if file_format == "tsv" else _separator(begins)
    reader = csv.reader(itertools.chain([begins] if begins else [], several), delimiter=separator, strict=True)
    first, problem = _fields(reader)
    if problem is not None or not _is_utf8(first or ()):
        raise LaminaError(
            f"{name}: the first line is not a header",
            evidence=problem or "it is not UTF-8",
            way_out="Save the file as CSV in UTF-8.",
        )
    return reader, first or ()


SEPARATORS = (",", ";", "\t", "|")
"""Separators that a CSV file may use."""


def _separator(line: str) -> str:
    """The most frequent of `SEPARATORS` outside of quotes, or the first of them in a tie.

    >>> _separator("id,name;s"), _separator("id;in EUR, net;city"), _separator('"a,b";c'), _separator("id")
    (',', ';', ';', ',')
    """
    return max(SEPARATORS, key="".join(line.split('"')[::2]).count)


def _csv(file: IO[bytes], name: str, file_format: Format, rules: Rules, forms: CsvForms) -> Iterator[Line]:
    taken: list[bytes] = []
    reader, first = _csv_reader(file, name, file_format, taken)
    header = _header(name, first, rules.columns)
    while True:
        taken.clear()
        number = reader.line_num + 1
        fields, problem = _fields(reader)
        raw = b"".join(taken).rstrip(b"\r\n")
        if fields is None and problem is None:
            return
        if fields == []:  # an empty line
            continue
        if fields is not None and len(fields) != len(header):
            problem = f"{len(fields)} fields, and the header names {len(header)}"
        elif fields is not None and not _is_utf8(fields):
            problem = "not UTF-8"
        if fields is None or problem is not None:
            yield Line(number, raw, b"", Judgement({}, problem))
        else:
            named = {key: text for key, text in zip(header, fields, strict=True) if key}  # pandas names no index
            yield _judged_row(number, raw, named, rules, forms)


def _judged_row(number: int, raw: bytes, fields: Mapping[str, str], rules: Rules, forms: CsvForms) -> Line:
    kinds = {key: rules.columns.get(key, STRING) for key in fields}
    if unread := tuple(key for key, text in fields.items() if not forms.reads(kinds[key], text)):
        problem = f"{unread[0]} is {fields[unread[0]]!r}, not written as {' or '.join(forms.times)}"
        return Line(number, raw, b"", Judgement({}, problem), unread)
    value = {key: forms.value(kinds[key], text) for key, text in fields.items()}
    return Line(number, raw, to_json(value).encode(errors="replace"), rules.judged_value(value))


def _is_utf8(fields: Sequence[str]) -> bool:
    return not any("\udc80" <= character <= "\udcff" for field in fields for character in field)


def _fields(reader: Any) -> tuple[Sequence[str] | None, str | None]:
    try:
        return next(reader, None), None
    except csv.Error as error:
        return None, f"not CSV: {error}"


def _header(name: str, header: Sequence[str], declared: Mapping[str, Type]) -> list[str]:
    """The header with the declared form of every name, whatever its case."""
    by_case = {column.lower(): column for column in declared}
    stripped = [field.strip() for field in header]
    names = [field if field in declared else by_case.get(field.lower(), field) for field in stripped]
    twice = sorted({field for field in names if field and names.count(field) > 1})
    if twice or not declared.keys() & set(names):
        raise LaminaError(
            f"{name}: the first line does not name the columns",
            evidence=f"Found: {', '.join(header) or 'nothing'}.\nWanted, in any order: {', '.join(declared)}.",
            way_out=f"Name {', '.join(twice)} once." if twice else "Add a header to the file, or use JSON lines.",
        )
    return names


def _parquet(file: IO[bytes], name: str, rules: Rules) -> Iterator[Line]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = itertools.count(1)
    try:
        with _unpacked(file) as content:
            parquet = pq.ParquetFile(content)
            schema = parquet.schema_arrow
            doubtful = {
                column: kind
                for column, kind in rules.columns.items()
                if column in schema.names and not always_fits(schema.field(column).type, kind)
            }
            of_doubtful = replace(rules, columns=doubtful)
            for batch in parquet.iter_batches(_ROWS):
                for value in _without_nanoseconds(pa.Table.from_batches([batch])).to_pylist(maps_as_pydicts="lossy"):
                    record = to_json(value).encode()
                    judgement = Judgement(value)
                    if doubtful or rules.primary:
                        judgement = replace(of_doubtful.judged_value(json.loads(record)), value=value)
                    yield Line(next(numbers), record, record, judgement)
    except OverflowError as error:
        raise LaminaError(
            f"{name}: a time is beyond the years 1 to 9999",
            evidence=f"{error}, in the {_ROWS:,} rows from row {next(numbers):,} on",
            way_out="Make the file again with this time as a text, or without it.",
        ) from error
    except pa.ArrowException as error:
        raise _not_parquet(name, error) from error


def schema_of(file: IO[bytes], name: str) -> dict[str, Type]:
    """The columns of a Parquet file, with types that fit all their values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with readable(name), _unpacked(file) as content:
            return {field.name: type_of(field.type) for field in pq.ParquetFile(content).schema_arrow}
    except pa.ArrowException as error:
        raise _not_parquet(name, error) from error


def _not_parquet(name: str, error: Exception) -> LaminaError:
    return LaminaError(
        f"{name}: this is not a Parquet file", evidence=str(error), way_out="Name its format with --format."
    )


@contextmanager
def _unpacked(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """The file with random access: seeking backwards in a compressed one would decompress it again each time."""
    if not is_unpacking(file):
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        yield copy


def _without_nanoseconds(table: Any) -> Any:
    """The table with times in microseconds, the finest unit of Python and Spark."""
    import pyarrow as pa

    kinds = [
        field.with_type(pa.timestamp("us", field.type.tz)) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(kinds), safe=False)


def _split(file: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers. A line that is too long is cut, which makes it bad."""
    for number in itertools.count(1):
        line = file.readline(LONGEST_LINE)
        if not line:
            return
        last, size = line, len(line)
        while len(last) == LONGEST_LINE and not last.endswith(b"\n"):
            last = file.readline(LONGEST_LINE)
            size += len(last)
            if size > MOST_OF_A_LINE:
                raise endless(name, f"line {number}")
        yield number, line.removeprefix(MARK) if number == 1 else line
