"""Formats of records convert the bytes of a value to the JSON text that the declared columns are read from.

`records/parsing.py` reads JSON, with every check of a field. So a format only defines the JSON text of a value, and the
reasons that a value has none, either in Spark SQL or by a decoder in Python. Each format is a row of `FORMATS`. If it
is not JSON text already, it has a module here or shares one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Literal

from view_algebra.compiled import ASK_AGAIN, Source
from view_algebra.formats import avro, avro_columns, protobuf, without_schema
from view_algebra.formats.avro_columns import Reader
from view_algebra.formats.interface import (
    DECODED,
    NO_SCHEMAS,
    Answers,
    DeclaredColumns,
    Decoder,
    DirectColumn,
    FormatMistake,
    Schemas,
    ValueSql,
)

__all__ = ["FORMATS", "Answers", "DeclaredColumns", "Decoder", "Format", "FormatMistake", "Schemas", "ValueSql"]


@dataclass(frozen=True)
class Format:
    """A format of values.

    read: returns the SQL of a declared source's values, or None for values that are JSON. Raises `FormatMistake` if the
        columns or options do not fit
    options: the options of the format, with their descriptions in docs/sql.md
    decoder: returns the decoder for these options and known schemas, or None if Spark SQL converts the values
    directly: reads values into declared columns without JSON, if the result is the same
    """

    read: Callable[[DeclaredColumns], ValueSql] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    decoder: Callable[[Mapping[str, str], Schemas], Decoder] | None = None
    directly: Reader | None = None


FORMATS: Mapping[str, Format] = {
    "json": Format(),
    "debezium-json": Format(),
    "debezium-avro": Format(lambda declared: DECODED, decoder=avro.decoder),
    "avro": Format(avro.read, avro.OPTIONS, avro.decoder, avro_columns.directly),
    "csv": Format(without_schema.read_csv, without_schema.CSV_OPTIONS),
    "protobuf": Format(protobuf.read, protobuf.OPTIONS, protobuf.decoder),
    "text": Format(without_schema.read_text),
    "bytes": Format(without_schema.read_bytes),
}
"""The formats of values. Those of Debezium are JSON or Avro in an envelope."""

DECODERS = 3
"""The version of all decoders, raised when a decoder's JSON changes for any bytes."""


DECODED_KEYS: tuple[Literal["avro", "protobuf"], ...] = ("avro", "protobuf")
"""The key formats that a decoder reads, by a registry's schemas."""

_COMMENT = "-- decoded by "
"""Prefix of the first line of a text that reads decoded records. The decoding follows as JSON."""


@dataclass(frozen=True)
class Decoding:
    """The decoding of records.

    values, keys: their formats, or None if Spark SQL reads them
    options: the options of the values' format
    columns: the columns that may be read without JSON, either all or none
    ask_again: the number of the registry's answers that apply
    version: the decoders' version (`DECODERS`)
    """

    values: str | None
    keys: str | None
    options: tuple[tuple[str, str], ...] = ()
    columns: tuple[DirectColumn, ...] = ()
    ask_again: int = 0
    version: int = DECODERS

    @classmethod
    def declared(
        cls, values_format: str, key_format: str, properties: Mapping[str, str], columns: Sequence[DirectColumn]
    ) -> Decoding | None:
        """The decoding of a declared source, or None if Spark SQL reads its records."""
        format_ = FORMATS[values_format]
        values = values_format if format_.decoder is not None else None
        keys = key_format if key_format in DECODED_KEYS else None
        if values is None and keys is None:
            return None
        allowed = format_.options if values is not None else ()
        options = tuple((name, properties[name]) for name in allowed if name in properties)
        fit = all(avro_columns.TYPES.fullmatch(column.type) for column in columns)
        direct = tuple(columns) if format_.directly is not None and fit else ()
        return cls(values, keys, options, direct, int(properties.get(ASK_AGAIN, 0)))

    @classmethod
    def of(cls, source: Source) -> Decoding | None:
        """The decoding of a compiled source, from the text that reads its records."""
        line, _, _ = source.parse.partition("\n")
        return _decoding(line.removeprefix(_COMMENT)) if line.startswith(_COMMENT) else None

    @property
    def column(self) -> str:
        """The name of the raw records' decoded column, the same for all sources with this decoding."""
        return f"kafka_decoded_{hashlib.sha256(self.comment.encode()).hexdigest()[:8]}"

    @property
    def comment(self) -> str:
        """The line before the text that reads records, so that equal texts also decode alike.

        It escapes `$`, because Spark substitutes settings for `${…}`, even in comments.
        """
        return f"{_COMMENT}{json.dumps(asdict(self))}\n".replace("$", "\\u0024")

    @property
    def values_name_schemas(self) -> bool:
        """True if each value names a schema in a registry."""
        return self.values is not None and not self.options

    @property
    def needs_registry(self) -> bool:
        """True if values or keys name schemas in a registry."""
        return self.keys is not None or self.values_name_schemas

    def names_schemas_as(self, other: Decoding | None) -> bool:
        """True if the same records name the same schemas for both, whatever columns they read."""
        return other is not None and replace(self, columns=()) == replace(other, columns=())

    def schemas(self, answers: Answers) -> Schemas:
        """The schemas for reading the records."""
        return answers.get(self.ask_again, NO_SCHEMAS)


@lru_cache(maxsize=1_000)
def _decoding(text: str) -> Decoding:
    """The decoding that a text's first line names."""
    fields = json.loads(text)
    options = tuple((name, value) for name, value in fields["options"])
    return Decoding(
        fields["values"],
        fields["keys"],
        options,
        tuple(DirectColumn(*column) for column in fields["columns"]),
        fields["ask_again"],
        fields["version"],
    )


def decodings(sources: Iterable[Source]) -> list[Decoding]:
    """The distinct decodings of these sources."""
    return list(dict.fromkeys(decoding for source in sources if (decoding := Decoding.of(source)) is not None))
