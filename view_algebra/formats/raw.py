"""`text` and `bytes`: the unchanged value, in the one column outside of the key."""

from __future__ import annotations

from view_algebra.formats.interface import NOT_UTF8, TEXT, Declared, Mistake, Read
from view_algebra.language.quoting import spark_text
from view_algebra.language.types import BINARY, STRING, Type


def read_text(declared: Declared) -> Read:
    """The reading of a whole value as a STRING."""
    return Read(_object(_only(declared, "text", STRING), "CAST(value AS STRING)"), [NOT_UTF8])


def read_bytes(declared: Declared) -> Read:
    """The reading of a whole value as a BINARY, in base64 for JSON."""
    return Read(_object(_only(declared, "bytes", BINARY), "base64(value)"), [])


def _object(name: str, value: str) -> str:
    return f"(SELECT *, to_json(named_struct({spark_text(name)}, {value})) AS {TEXT} FROM raw_records)"


def _only(declared: Declared, format: str, kind: Type) -> str:
    columns = [(name, kind) for name, kind, of_key in declared.columns if not of_key]
    if [declared_kind for _, declared_kind in columns] != [kind]:
        raise Mistake(
            f"format '{format}' with other columns than one {kind}",
            f"Declare the value as one column of type {kind}, and besides only a PRIMARY KEY, which Kafka's key holds.",
        )
    return columns[0][0]
