"""Formats of records: how the bytes of a value become the JSON text that the declared columns are read from.

`texts/records.py` reads JSON, with every check of a field. So a format says only which JSON text a value stands for,
and why some value stands for none: in Spark SQL, or by a decoder in Python. Each format but JSON is a module of this
package, and a row of `FORMATS`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

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


def decoded_as(format: str, key_format: str, options: Mapping[str, str]) -> str:
    """A comment before the text by which records are read that are decoded before: which decoders, by which options.

    So texts are equal only if records are read alike.
    """
    form = FORMATS.get(format)
    by_decoder = form is not None and form.decoder is not None
    if not by_decoder and key_format not in DECODED_KEYS:
        return ""
    of_format = {name: options[name] for name in (form.options if form else ()) if name in options}
    said = json.dumps([format if by_decoder else "", key_format, of_format], sort_keys=True)
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    return f"-- decoders {DECODERS}: {format}, key {key_format}, {digest}\n"


DEBEZIUM = ("debezium-json", "debezium-avro")
"""The formats of change events."""

DECODED_KEYS: tuple[Literal["avro", "protobuf"], ...] = ("avro", "protobuf")
"""The formats of keys that a decoder reads, by a registry's schemas."""
