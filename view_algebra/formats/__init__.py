"""Formats of records: how the bytes of a value become the JSON text that the declared columns are read from.

`texts/records.py` reads JSON, with every check of a field. So a format says only which JSON text a value stands for,
and why some value stands for none: in Spark SQL, or by a decoder in Python. Each format but JSON is a module of this
package, and a row of `FORMATS`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Literal, Protocol

from view_algebra.compiled import ASK_AGAIN
from view_algebra.formats import avro, avro_columns, csv, protobuf, raw
from view_algebra.formats.avro_columns import Reader
from view_algebra.formats.interface import (
    DECODED,
    NO_SCHEMAS,
    Answers,
    Declared,
    Decoder,
    DirectColumn,
    Mistake,
    Read,
    Schemas,
)

__all__ = ["FORMATS", "Answers", "Declared", "Decoder", "Format", "Mistake", "Read", "Schemas"]


@dataclass(frozen=True)
class Format:
    """A format of values.

    read: gives how a declared source's values are read; raises `Mistake` if its columns or options cannot be of the
    format. options: what OPTIONS may say of it, each with its meaning, as docs/sql.md lists them. decoder: gives what
    makes JSON of values, of the options and the schemas that are known; None if Spark SQL does it. directly: reads
    values into declared columns without JSON, where that gives the same.
    """

    read: Callable[[Declared], Read]
    options: Mapping[str, str] = field(default_factory=dict)
    decoder: Callable[[Mapping[str, str], Schemas], Decoder] | None = None
    directly: Reader | None = None


FORMATS: Mapping[str, Format] = {
    "avro": Format(avro.read, avro.OPTIONS, avro.decoder, avro_columns.directly),
    "csv": Format(csv.read, csv.OPTIONS),
    "debezium-avro": Format(lambda declared: DECODED, {}, avro.decoder),
    "protobuf": Format(protobuf.read, protobuf.OPTIONS, protobuf.decoder),
    "text": Format(raw.read_text),
    "bytes": Format(raw.read_bytes),
}
"""The formats besides `json`, which needs no reading before, and `debezium-json`, which is JSON in an envelope."""

DECODERS = 3
"""The version of all decoders: raised when the JSON that one of them gives of any bytes changes."""


DECODED_KEYS: tuple[Literal["avro", "protobuf"], ...] = ("avro", "protobuf")
"""The formats of keys that a decoder reads, by a registry's schemas."""

_COMMENT = "-- decoded by "
"""Begins the first line of a text that reads decoded records; how they are decoded follows, as JSON."""


class _Declared(Protocol):
    """A declared source, by what its records are written in."""

    @property
    def format(self) -> str: ...

    @property
    def key_format(self) -> str: ...

    @property
    def properties(self) -> Mapping[str, str]: ...


class _Compiled(Protocol):
    @property
    def parse(self) -> str: ...


@dataclass(frozen=True)
class Decoding:
    """How records are decoded: the formats of their values and of their keys, None where Spark SQL reads them.

    options: those of the format of values. columns: those that may be read without JSON: all of a source, or none.
    ask_again: the number of the answers of a registry that count. version: that of the decoders, as `DECODERS`.
    """

    values: str | None
    keys: str | None
    options: tuple[tuple[str, str], ...] = ()
    columns: tuple[DirectColumn, ...] = ()
    ask_again: int = 0
    version: int = DECODERS

    @classmethod
    def declared(cls, source: _Declared, columns: Sequence[DirectColumn] = ()) -> Decoding | None:
        """That of a declared source; None if Spark SQL reads its records as they are."""
        form = FORMATS.get(source.format)
        values = source.format if form is not None and form.decoder is not None else None
        keys = source.key_format if source.key_format in DECODED_KEYS else None
        if values is None and keys is None:
            return None
        known = form.options if values is not None and form is not None else ()
        options = tuple((name, source.properties[name]) for name in known if name in source.properties)
        reads_directly = form is not None and form.directly is not None
        direct = tuple(columns) if reads_directly and all(map(_is_direct, columns)) else ()
        return cls(values, keys, options, direct, int(source.properties.get(ASK_AGAIN, 0)))

    @classmethod
    def of(cls, source: _Compiled) -> Decoding | None:
        """That of a compiled source, as the text says that reads its records."""
        line, _, _ = source.parse.partition("\n")
        return _decoding(line.removeprefix(_COMMENT)) if line.startswith(_COMMENT) else None

    @property
    def column(self) -> str:
        """The name of the column of raw records that holds what is decoded: one for all that are decoded alike."""
        return f"kafka_decoded_{hashlib.sha256(self.comment.encode()).hexdigest()[:8]}"

    @property
    def comment(self) -> str:
        """The line before the text by which records are read: texts are then equal only if records are read alike.

        Of what it says, `$` is escaped, because Spark puts settings in for `${…}`, in comments, too.
        """
        return f"{_COMMENT}{json.dumps(asdict(self))}\n".replace("$", "\\u0024")

    @property
    def values_name_schemas(self) -> bool:
        """True if each value names a schema that only a registry can tell."""
        return self.values is not None and not self.options

    @property
    def needs_registry(self) -> bool:
        """True if values, or keys, name schemas that only a registry can tell."""
        return self.keys is not None or self.values_name_schemas

    def names_schemas_as(self, other: Decoding | None) -> bool:
        """True if the same records name the same schemas for both, whatever columns they read."""
        return other is not None and replace(self, columns=()) == replace(other, columns=())

    def schemas(self, answers: Answers) -> Schemas:
        """The schemas by which records are read."""
        return answers.get(self.ask_again, NO_SCHEMAS)


def _is_direct(column: DirectColumn) -> bool:
    return avro_columns.TYPES.fullmatch(column.type) is not None


@lru_cache(maxsize=1_000)
def _decoding(told: str) -> Decoding:
    """The decoding that a text's first line names."""
    found = json.loads(told)
    options = tuple((name, value) for name, value in found["options"])
    return Decoding(
        found["values"],
        found["keys"],
        options,
        tuple(DirectColumn(*each) for each in found["columns"]),
        found["ask_again"],
        found["version"],
    )


def decodings(sources: Iterable[_Compiled]) -> list[Decoding]:
    """How the records of these sources are decoded, each way once."""
    return list(dict.fromkeys(each for source in sources if (each := Decoding.of(source)) is not None))
