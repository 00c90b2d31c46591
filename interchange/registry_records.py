"""Records in a schema registry's frame, decoded to JSON for `lamina init`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from interchange import avro_types, protobuf_types
from master_log.schema_registry import Registry
from view_algebra.errors import LaminaError
from view_algebra.formats import DECODED_KEYS, FORMATS, avro, frames, protobuf
from view_algebra.formats.interface import NoText, Schema
from view_algebra.language.types import Type

Pair = tuple[bytes | None, bytes | None]


@dataclass(frozen=True)
class Unframed:
    """Keys and values of records without their frames.

    format, key_format: the formats of values and keys, or None for keys without a frame. types: the types of the
    fields, if the newest schema gives them.
    """

    pairs: Sequence[Pair]
    format: str
    key_format: Literal["avro", "protobuf"] | None
    types: Mapping[str, Type]


def unframed(topic: str, pairs: Sequence[Pair], registry: Registry | None) -> Unframed | None:
    """Decodes records of a topic by the registry's schemas. Returns None if most of them have no frame."""
    values = [value for _, value in pairs if value is not None]
    if 2 * sum(value.startswith(b"\0") for value in values) <= len(values):  # some may be bad
        return None
    if registry is None:
        raise LaminaError(
            f"The records of topic {topic} are in the frame of a schema registry",
            evidence="each begins with a zero byte and the id of a schema",
            way_out="Set LAMINA_SCHEMA_REGISTRY to the registry's URL: http://host:8081",
        )
    keys = [key for key, value in pairs if value is not None]
    with_keys = all(key is not None and key.startswith(b"\0") for key in keys)
    schemas = _schemas(registry, [*values, *(key for key in keys if with_keys and key is not None)])
    of_values = [schema for value in reversed(values) if (schema := schemas.get(_id(value) or "")) is not None]
    if not of_values:
        raise LaminaError(
            f"The schema registry has no schema of topic {topic}",
            evidence=f"asked for {', '.join(sorted(schemas)) or 'none'}",
            way_out="Set LAMINA_SCHEMA_REGISTRY to the registry that the topic's producers use.",
        )
    [(kind, _)] = Counter(schema.kind for schema in of_values).most_common(1)  # some may be bad
    newest = next(schema for schema in of_values if schema.kind == kind)
    key_format = next((candidate for candidate in DECODED_KEYS if with_keys and _reads(candidate, keys, schemas)), None)
    format = newest.kind.lower()
    types: Mapping[str, Type] = {}
    with suppress(NoText):
        types = _types(newest, next(value for value in reversed(values) if schemas.get(_id(value) or "") == newest))
    decoded = [(_text(key_format or "bytes", key, schemas), _text(format, value, schemas)) for key, value in pairs]
    return Unframed(decoded, format, key_format, types)


def _types(schema: Schema, value: bytes) -> Mapping[str, Type]:
    """The field types of a value, if its schema gives them. Raises `NoText`."""
    match schema.kind:
        case avro.KIND:
            return avro_types.columns_of(schema)
        case protobuf.KIND:
            return protobuf_types.columns_of(schema, protobuf.unindexed(frames.unframed(value, None)[1])[0])
    return {}


def _schemas(registry: Registry, framed: Sequence[bytes]) -> dict[str, Schema | None]:
    ids = {id for value in framed if (id := _id(value)) is not None}
    return registry.schemas(ids)


def _id(framed: bytes) -> str | None:
    with suppress(NoText):
        return frames.unframed(framed, None)[0]
    return None


def _reads(format: str, keys: Sequence[bytes | None], schemas: Mapping[str, Schema | None]) -> bool:
    return all(_text(format, key, schemas) != key for key in keys)


def _text(format: str, framed: bytes | None, schemas: Mapping[str, Schema | None]) -> bytes | None:
    """The JSON of a value. A value that cannot be decoded is returned unchanged, and `judgements` then refuses it."""
    if framed is None:
        return None
    if format == "json":
        return framed[5:]
    decoder = FORMATS[format].decoder if format in FORMATS else None
    with suppress(NoText):
        return framed if decoder is None else decoder({}, schemas)(framed, None).encode()
    return framed


def plain(key: bytes | None) -> bytes | None:
    """The text of a key that is a JSON string. Any other key is returned unchanged."""
    with suppress(ValueError):
        text = json.loads(key or b"")
        return text.encode() if isinstance(text, str) else key
    return key
