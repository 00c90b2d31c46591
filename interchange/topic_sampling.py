"""Samples the newest records of a topic, and decodes those in a schema registry's frame to JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from interchange.change_events import changed_row, has_event_fields, is_change, payload
from interchange.column_types import avro_types, protobuf_types
from interchange.files import Line
from interchange.judgements import Rules, with_written_numbers
from interchange.sampling import RECORDS, Encoding, KafkaKey, Sample, TopicFacts, sample_of
from master_log.kafka.brokers import Brokers
from master_log.kafka.consuming import Pair
from master_log.reading.schema_registry import Registry
from view_algebra.errors import LaminaError
from view_algebra.formats import DECODED_KEYS, FORMATS, avro, frames, protobuf
from view_algebra.formats.interface import NoText, Schema
from view_algebra.language.types import Type


def topic_sample(topic: str, brokers: Brokers, most: int = RECORDS, registry: Registry | None = None) -> Sample:
    """A sample of a topic's newest records. Raises LaminaError if the topic does not exist or is empty.

    registry: the registry with the schemas of framed records
    """
    if brokers.topic_id(topic) is None:
        raise LaminaError(
            f"There is no topic {topic} at {brokers.bootstrap_servers}",
            way_out="Use the topic's name as it is in Kafka; case matters.",
        )
    pairs = brokers.newest_records([topic], most)[topic]
    if (framed := unframed(topic, pairs, registry)) is None:
        return _records_sample(topic, pairs, brokers, most, {})
    sample = _records_sample(topic, framed.pairs, brokers, most, framed.types)
    key = sample.topic.key
    if key is not None and framed.key_format is not None:
        key = KafkaKey(key.fields, framed.key_format)
    encoding = replace(sample.encoding, format=framed.format, is_framed=True)
    return replace(sample, topic=replace(sample.topic, key=key), encoding=encoding)


def _records_sample(
    topic: str,
    pairs: Sequence[Pair],
    brokers: Brokers,
    most: int,
    types: Mapping[str, Type],
) -> Sample:
    """A sample of these records of a topic.

    types: the types of fields that a schema gives
    """
    values = [value for _, value in pairs if value is not None]
    if (changes := _changes_sample(topic, pairs, avro_types.row_of(types))) is not None:
        return changes

    def read(rules: Rules) -> Iterator[Line]:
        for number, value in enumerate(values, 1):
            yield Line(number, value, value, rules.judged(value))

    in_topic = sum(brokers.latest(topic).values()) - sum(brokers.earliest(topic).values())
    sample = sample_of(f"topic {topic}", read, most, types)
    _refuse_schemas(topic, sample)
    lines = zip((k for k, v in pairs if v is not None), read(sample.rules()), strict=True)
    good = [(key, line.judgement.value) for key, line in lines if line.judgement.problem is None]
    keys = [(key_text(key) if types else key, value) for key, value in good]
    return replace(
        sample,
        is_all=sample.is_all and in_topic <= len(pairs),
        topic=TopicFacts(
            _key(keys, [field.name for field in sample.fields]),
            deletions=len(pairs) - len(values),
            is_newest=True,
            is_compacted=brokers.retention(topic).compacted,
        ),
    )


def _changes_sample(topic: str, pairs: Sequence[Pair], stated: Mapping[str, Type]) -> Sample | None:
    """A sample of the rows in a topic of change events. None for other records.

    stated: types that a schema gives
    """
    events: list[Any] = []
    keys: list[bytes | None] = []
    for key, value in pairs:
        with suppress(ValueError, RecursionError):
            record = with_written_numbers((value or b"").decode())
            if is_change(record):
                events.append(record)
                keys.append(key)
    rows = [(key, after) for key, event in zip(keys, events, strict=True) if (after := changed_row(event)) is not None]
    if not rows:
        return None
    types = {**stated, **{name: kind for _, change in rows for name, kind in change.types.items()}}

    def read(rules: Rules) -> Iterator[Line]:
        for number, (_, change) in enumerate(rows, 1):
            yield Line(number, b"", b"", rules.judged_value(change.values))

    sample = sample_of(f"topic {topic}", read, len(rows), types)
    repeated = _key([(_bare(key), change.values) for key, change in rows], [field.name for field in sample.fields])
    has_schemas = bool(stated) or all(change.has_schema for _, change in rows)
    return replace(
        sample,
        is_all=False,
        empty_as_null=False,
        topic=TopicFacts(repeated, is_newest=True),
        encoding=Encoding(is_changes=True, has_schemas=has_schemas),
    )


def _bare(key: bytes | None) -> bytes | None:
    """Kafka's key without its schema."""
    try:
        return None if key is None else json.dumps(payload(json.loads(key))).encode()
    except (ValueError, RecursionError):
        return key


def _key(records: Sequence[tuple[bytes | None, Mapping[str, Any]]], names: Sequence[str]) -> KafkaKey | None:
    """The fields that every Kafka key repeats, and their format. None if a key repeats no field."""
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
            return KafkaKey(tuple(fields), "json")
    for name in names:
        if all(_is_text_of(value.get(name), text) for text, (_, value) in zip(texts, records, strict=True)):
            return KafkaKey((name,), "string")
    return None


def _is_text_of(value: Any, text: str) -> bool:
    """True if the text is the value's. A number may be written in several ways."""
    with suppress(ValueError, RecursionError):
        if json.loads(text) == value:
            return True
    return text == str(value)


def _refuse_schemas(topic: str, sample: Sample) -> None:
    """Raises LaminaError for change events without rows, and for records next to their schemas."""
    names = {field.name for field in sample.fields}
    if has_event_fields(names) or {"schema", "payload"} <= names:
        raise LaminaError(
            f"Topic {topic} holds change events without rows, or records with their schemas",
            evidence=f"Their fields: {', '.join(sorted(names))}.",
            way_out="Declare the row's columns by hand, with OPTIONS (…, format 'debezium-json') and PRIMARY KEY (…)"
            " for changes, or OPTIONS (…, format 'json', 'schemas.enable' 'true'): docs/sql.md shows how.",
        )


@dataclass(frozen=True)
class UnframedRecords:
    """Keys and values of records without their frames.

    format, key_format: the formats of values and keys, or None for keys without a frame
    types: the types of the fields, if the newest schema gives them
    """

    pairs: Sequence[Pair]
    format: str
    key_format: Literal["avro", "protobuf"] | None
    types: Mapping[str, Type]


def unframed(topic: str, pairs: Sequence[Pair], registry: Registry | None) -> UnframedRecords | None:
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
    framed = [*values, *(key for key in keys if with_keys and key is not None)]
    schemas = registry.schemas({id for value in framed if (id := _id(value)) is not None})
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
    return UnframedRecords(decoded, format, key_format, types)


def _types(schema: Schema, value: bytes) -> Mapping[str, Type]:
    """The field types of a value, if its schema gives them. Raises `NoText`."""
    match schema.kind:
        case avro.KIND:
            return avro_types.columns_of(schema)
        case protobuf.KIND:
            return protobuf_types.columns_of(schema, protobuf.unindexed(frames.unframed(value, None)[1])[0])
    return {}


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


def key_text(key: bytes | None) -> bytes | None:
    """The text of a key that is a JSON string. Any other key is returned unchanged."""
    with suppress(ValueError):
        text = json.loads(key or b"")
        return text.encode() if isinstance(text, str) else key
    return key
