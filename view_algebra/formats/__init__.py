"""Formats of records: how the bytes of a value become the JSON text that the declared columns are read from.

`texts/records.py` reads JSON, with every check of a field. So a format says only which JSON text a value stands for,
and why some value stands for none: in Spark SQL, or by a decoder in Python. Each format but JSON is a module of this
package, and a row of `FORMATS`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, Protocol

from view_algebra.formats import avro, csv, protobuf, raw
from view_algebra.formats.interface import DECODED, Declared, Decoder, Mistake, Read, Schemas

__all__ = ["FORMATS", "Declared", "Decoder", "Format", "Mistake", "Read", "Schemas"]


@dataclass(frozen=True)
class Format:
    """A format of values.

    read: gives how a declared source's values are read; raises `Mistake` if its columns or options cannot be of the
    format. options: what OPTIONS may say of it, each with its meaning, as docs/sql.md lists them. decoder: gives what
    makes JSON of values, of the options and the schemas that are known; None if Spark SQL does it.
    """

    read: Callable[[Declared], Read]
    options: Mapping[str, str] = field(default_factory=dict)
    decoder: Callable[[Mapping[str, str], Schemas], Decoder] | None = None


FORMATS: Mapping[str, Format] = {
    "avro": Format(avro.read, avro.OPTIONS, avro.decoder),
    "csv": Format(csv.read, csv.OPTIONS),
    "debezium-avro": Format(lambda declared: DECODED, {}, avro.decoder),
    "protobuf": Format(protobuf.read, protobuf.OPTIONS, protobuf.decoder),
    "text": Format(raw.read_text),
    "bytes": Format(raw.read_bytes),
}
"""The formats besides `json`, which needs no reading before, and `debezium-json`, which is JSON in an envelope."""

DECODERS = 1
"""The version of all decoders: raised when the JSON that one of them gives of any bytes changes."""


DECODED_KEYS: tuple[Literal["avro", "protobuf"], ...] = ("avro", "protobuf")
"""The formats of keys that a decoder reads, by a registry's schemas."""


class Written(Protocol):
    """A source, declared or compiled, by what its records are written in."""

    @property
    def format(self) -> str: ...

    @property
    def key_format(self) -> str: ...

    @property
    def properties(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Decoding:
    """How records are decoded: the formats of their values and of their keys, None where Spark SQL reads them.

    options: those of the format of values.
    """

    values: str | None
    keys: str | None
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, source: Written) -> Decoding | None:
        """That of a source; None if Spark SQL reads its records as they are."""
        form = FORMATS.get(source.format)
        values = source.format if form is not None and form.decoder is not None else None
        keys = source.key_format if source.key_format in DECODED_KEYS else None
        if values is None and keys is None:
            return None
        known = form.options if values is not None and form is not None else ()
        return cls(values, keys, tuple((name, source.properties[name]) for name in known if name in source.properties))

    @property
    def column(self) -> str:
        """The name of the column of raw records that holds what is decoded: one for all that are decoded alike."""
        return f"kafka_decoded_{self._digest[:8]}"

    @property
    def comment(self) -> str:
        """What stands before the text by which records are read, so that texts are equal only if records are read
        alike.
        """
        return f"-- decoders {DECODERS}: {self.values}, key {self.keys}, {self._digest[:16]}\n"

    @property
    def values_name_schemas(self) -> bool:
        """True if each value names a schema that only a registry can tell."""
        return self.values is not None and not self.options

    @property
    def needs_registry(self) -> bool:
        """True if values, or keys, name schemas that only a registry can tell."""
        return self.keys is not None or self.values_name_schemas

    @property
    def _digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()


def decodings(sources: Iterable[Written]) -> list[Decoding]:
    """How the records of these sources are decoded, each way once."""
    return list(dict.fromkeys(each for source in sources if (each := Decoding.of(source)) is not None))
