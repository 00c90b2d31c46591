"""Exports rows of a view to a file, whole or not at all, or to a Kafka topic."""

from __future__ import annotations

import errno
import gzip
import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal
from pathlib import Path
from typing import IO, Any, cast

from interchange.files import ENDINGS
from interchange.json_text import as_text, to_json
from master_log.kafka.brokers import Brokers
from view_algebra.compiled import Column
from view_algebra.errors import LaminaError
from view_algebra.language.types import DURATION, STRING, Type, type_named

_ROWS = 10_000
"""Rows of a row group in a Parquet file."""

_EXACT = Context(prec=38)
"""Digits of the largest DECIMAL."""

Row = Sequence[Any]


def export(columns: Sequence[Column], rows: Iterable[Row], to: str, brokers: Brokers | None = None) -> int:
    """Writes the rows and returns their number.

    to: a file whose ending names the format (`.jsonl`, `.json`, `.csv`, `.tsv`, `.parquet`, all also with `.gz`), which
        appears when it is complete and replaces a file of that name. Or `kafka:TOPIC`, which gets a JSON value per row
    """
    if to.startswith("kafka:"):
        if brokers is None:
            raise TypeError("brokers are needed to export to Kafka")
        return _to_topic(columns, rows, to.removeprefix("kafka:"), brokers)
    path = Path(to)
    zipped = path.suffix.lower() == ".gz"
    ending = (path.with_suffix("") if zipped else path).suffix.lower()
    if ending not in ENDINGS:
        raise LaminaError(
            f"{to}: the format is not known",
            evidence=f"Found: {ending or 'no ending'}.\nWanted: {', '.join(ENDINGS)}, or kafka:TOPIC.",
            way_out="End the file's name with its format, for example `view.csv`.",
        )
    write = {"jsonl": _json_lines, "csv": _csv, "tsv": _tsv, "parquet": _parquet}[ENDINGS[ending]]
    try:
        with _replaced_when_complete(path) as file:
            if not zipped:
                return write(columns, rows, file)
            with gzip.open(file, "wb") as content:
                return write(columns, rows, cast("IO[bytes]", content))
    except OSError as error:
        raise LaminaError(
            f"{to}: the file cannot be written",
            evidence=error.strerror or str(error),
            way_out="Make room on that disk."
            if error.errno in (errno.ENOSPC, errno.EDQUOT)
            else "Name a folder that exists and that you may write to.",
        ) from error


def _to_topic(columns: Sequence[Column], rows: Iterable[Row], topic: str, brokers: Brokers) -> int:
    brokers.partitions(topic)  # raises for an unknown topic before the first row is read
    sent = 0
    with brokers.producer() as producer:
        for row in rows:
            producer.send(topic, to_json(_object(columns, row)).encode())
            sent += 1
    return sent


@contextmanager
def _replaced_when_complete(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file next to `path`, which replaces it at the end, or is removed after an error."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)  # mkstemp's own rights would hide the file from everybody else
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _lines(texts: Iterable[str], file: IO[bytes]) -> int:
    """Writes the lines and returns their number."""
    number = 0
    for text in texts:
        file.write(text.encode() + b"\n")
        number += 1
    return number


def _json_lines(columns: Sequence[Column], rows: Iterable[Row], file: IO[bytes]) -> int:
    return _lines((to_json(_object(columns, row)) for row in rows), file)


def _csv(columns: Sequence[Column], rows: Iterable[Row], file: IO[bytes], separator: str = ",") -> int:
    """Writes CSV as Postgres' COPY does: NULL is empty, and an empty text is `""`. Nested values are JSON."""
    header = [column.name for column in columns]
    return _lines((separator.join(map(_field, row)) for row in itertools.chain([header], rows)), file) - 1


def _tsv(columns: Sequence[Column], rows: Iterable[Row], file: IO[bytes]) -> int:
    return _csv(columns, rows, file, "\t")


def _field(value: Any) -> str:
    text = _csv_text(value)
    if value == "" or any(special in text for special in ',"\t\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _csv_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case dict() | list():
            return to_json(value)
        case bool():
            return "true" if value else "false"
    return as_text(value)


def _parquet(columns: Sequence[Column], rows: Iterable[Row], file: IO[bytes]) -> int:
    """Writes Parquet with the declared types. Nested values are JSON text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = [_kind(column) for column in columns]
    schema = pa.schema([(column.name, _arrow(kind)) for column, kind in zip(columns, kinds, strict=True)])
    written = 0
    remaining = iter(rows)
    with pq.ParquetWriter(file, schema) as writer:
        while group := list(itertools.islice(remaining, _ROWS)):
            values = zip(*group, strict=True)
            arrays = [
                pa.array([_exactly(kind, value) for value in column], type=field.type)
                for kind, field, column in zip(kinds, schema, values, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            written += len(group)
    return written


def _kind(column: Column) -> Type:
    if column.postgres == DURATION.postgres:
        return DURATION
    return type_named(column.spark) or STRING


def _arrow(kind: Type) -> Any:
    import pyarrow as pa

    match kind.name:
        case DURATION.name:
            return pa.duration("us")
        case "DECIMAL":
            return pa.decimal128(kind.precision, kind.scale)
        case "TIMESTAMP":
            return pa.timestamp("us", tz="UTC")
    plain = {
        "BOOLEAN": pa.bool_(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "DATE": pa.date32(),
        "TIMESTAMP_NTZ": pa.timestamp("us"),
        "BINARY": pa.binary(),
    }
    return plain.get(kind.name, pa.string())


def _exactly(kind: Type, value: Any) -> Any:
    """A value of Postgres in the form that Arrow needs: a numeric may have more zeros than its declared scale."""
    if value is None:
        return None
    match kind.name:
        case "DECIMAL":
            return Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return int(value)
        case "FLOAT" | "DOUBLE":
            return float(value)
        case "STRING" | "STRUCT" | "ARRAY" | "MAP":
            return value if isinstance(value, str) else to_json(value)
        case "BINARY":
            return bytes(value)
    return value


def _object(columns: Sequence[Column], row: Row) -> dict[str, Any]:
    return dict(zip((column.name for column in columns), row, strict=True))
