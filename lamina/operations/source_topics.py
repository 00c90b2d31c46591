"""Topics and schemas of a catalog's sources: creates missing topics, and warns of lost records and of other types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from master_log.offsets import Offsets, brief
from serving_layer.narration import age, amount, size
from serving_layer.promise.source_queries import Topic
from view_algebra.compiled import Catalog, Source
from view_algebra.errors import LaminaError
from view_algebra.language.starts import EARLIEST, start_of

if TYPE_CHECKING:
    from master_log.kafka.brokers import Brokers
    from master_log.reading.schema_registry import Registry
    from view_algebra.language.types import Type

DEFAULT_PARTITIONS = 4
"""Partitions of a topic that `apply` creates, unless a source's property `partitions` says otherwise."""

KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Settings of a topic that `apply` creates. Kafka counts a record's age from the record's own timestamp, so any limit
of time could remove old events before they are counted or archived.
"""


_WIDER = {
    "INT": ("BIGINT", "DECIMAL", "DOUBLE", "FLOAT"),
    "BIGINT": ("INT", "DECIMAL", "DOUBLE"),
    "DOUBLE": ("FLOAT", "DECIMAL"),
    "DECIMAL": ("DOUBLE",),
    "DATE": ("TIMESTAMP", "TIMESTAMP_NTZ"),
    "TIMESTAMP": ("TIMESTAMP_NTZ", "DATE"),
    "TIMESTAMP_NTZ": ("TIMESTAMP", "DATE"),
    "STRING": ("TIMESTAMP", "DECIMAL"),
}
"""Types of columns that can read values of another type."""


def ensure_topic(brokers: Brokers, source: Source, catalog: Catalog, tell: Callable[[str], None]) -> Topic:
    """The topic of a new source, created if it is missing. `tell` takes warnings for the author."""
    id = brokers.topic_id(source.topic)
    if id is None:
        partitions = declared_partitions(catalog, source.topic) or DEFAULT_PARTITIONS
        brokers.create(source.topic, partitions, KEPT)
        tell(f"{source.name}: topic {source.topic} created with {amount(partitions, 'partition')}")
        id = brokers.topic_id(source.topic)
    else:
        for warning in warnings(brokers, source):
            tell(warning)
    if id is None:
        raise LaminaError(f"The topic {source.topic} was deleted while it was deployed", way_out="Apply again.")
    if source.kind == "stream" and brokers.retention(source.topic).compacted:
        raise LaminaError(
            f"{source.name}: topic {source.topic} is compacted",
            evidence="Kafka drops a record of it when a newer one has its key, also before it is archived:"
            " views would count what a rebuild cannot.",
            way_out="Set its cleanup.policy to delete, or copy it to a topic that keeps every record.",
        )
    return Topic(id, brokers.earliest(source.topic), begin_offsets(brokers, source, tell))


def notes_on_new(brokers: Brokers, sources: Collection[Source]) -> list[str]:
    """The lines of `plan` about the offsets at which new sources begin, and about the topics that `apply` would create.

    Empty if the brokers do not answer. Raises LaminaError if a source cannot begin where it is declared to.
    """
    lines: list[str] = []
    existing: Mapping[str, str] | None = None
    with suppress(LaminaError):  # not everybody may describe a topic
        if sources and brokers.listening():
            existing = brokers.topic_ids(*(source.topic for source in sources))
    for source in sources if existing is not None else ():
        if existing and source.topic in existing:
            begin_offsets(brokers, source, lines.append)
        else:
            lines.append(f"{source.name}: there is no topic {source.topic}; `lamina apply` creates it")
    return lines


def begin_offsets(brokers: Brokers, source: Source, tell: Callable[[str], None]) -> Offsets:
    """The offsets at which a new source begins. A partition without an offset begins with its first record."""
    start = start_of(source.start)
    if start == EARLIEST:
        return Offsets({})
    match start:
        case datetime():
            offsets = _at_time(brokers, source, start)
        case Mapping():
            offsets = _checked_offsets(brokers, source, Offsets.of(source.topic, start))
        case _:
            offsets = brokers.latest(source.topic)
    earliest = brokers.earliest(source.topic)
    gone = Offsets({at: first for at, first in earliest.items() if offsets.get(at, first) < first})
    below = f"; Kafka no longer holds the records below {brief(str(gone))}" if gone else ""
    tell(f"{source.name} begins at {brief(str(earliest.updated(offsets)))} (start {source.start!r}){below}")
    return offsets


def _at_time(brokers: Brokers, source: Source, time: datetime) -> Offsets:
    if time > datetime.now(UTC):
        raise LaminaError(
            f"{source.name} cannot begin at {source.start}, which is in the future",
            way_out="Write start 'latest' to count the records from now on.",
        )
    microseconds = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return brokers.at_time(source.topic, max(0, -(-microseconds // 1000)))


def _checked_offsets(brokers: Brokers, source: Source, offsets: Offsets) -> Offsets:
    """The offsets. Raises LaminaError if one of them is not in the topic."""
    latest = brokers.latest(source.topic)
    for at, offset in offsets.items():
        if offset > latest.get(at, -1):
            raise LaminaError(
                f"{source.name} cannot begin at offset {offset} of partition {at.partition} of topic {source.topic}",
                evidence=f"its partitions end at {brief(str(latest))}",
                way_out="Write the next offset to read, of existing partitions only, or start 'latest'.",
            )
    return offsets


def declared_partitions(catalog: Catalog, topic: str) -> int | None:
    """The property `partitions` of the sources that read a topic. Raises LaminaError if two sources differ."""
    declared = {
        name: int(source.properties["partitions"])
        for name, source in sorted(catalog.sources.items())
        if source.topic == topic and "partitions" in source.properties
    }
    if len(set(declared.values())) > 1:
        raise LaminaError(
            f"The sources of topic {topic} do not agree on its partitions",
            evidence=", ".join(f"{name} declares {number}" for name, number in declared.items()),
            way_out="Declare the same 'partitions' in all of them, or in one alone.",
        )
    return next(iter(declared.values()), None)


def notes_on_existing(brokers: Brokers, sources: Collection[Source]) -> Iterator[str]:
    """The warnings of `plan` about existing topics of these sources. Empty if the brokers do not answer."""
    with suppress(LaminaError):
        for source in sources if sources and brokers.listening() else ():
            if brokers.topic_id(source.topic) is not None:
                yield from warnings(brokers, source)


def warnings(brokers: Brokers, source: Source) -> Iterator[str]:
    """Differences between an existing topic and the expectations that a source's declaration raises."""
    wanted, partitions = source.properties.get("partitions"), brokers.partitions(source.topic)
    if wanted is not None and int(wanted) != len(partitions):
        yield (
            f"{source.name}: topic {source.topic} exists with {amount(len(partitions), 'partition')} and keeps them:"
            f" 'partitions' = '{wanted}' only counts if `lamina apply` creates the topic"
        )
    with suppress(LaminaError):  # not everybody may describe a topic's settings
        kept = brokers.retention(source.topic)
        if kept.milliseconds is not None and not kept.from_arrival:
            yield (
                f"{source.name}: Kafka removes records from topic {source.topic} once their own timestamp is"
                f" {age(kept.milliseconds / 1000)} old: records that are sent with older timestamps may be gone before"
                " they are counted or archived (set the topic's retention.ms to -1, or its message.timestamp.type to"
                " LogAppendTime)"
            )
        if kept.bytes is not None:
            yield (
                f"{source.name}: Kafka keeps {size(kept.bytes)} of a partition of topic {source.topic} and removes"
                " the oldest records beyond that, counted and archived or not (set the topic's retention.bytes to -1)"
            )


def notes_on_schemas(sources: Iterable[Source], registry: Callable[[], Registry | None]) -> Iterator[str]:
    """The warnings for these sources. Empty if the registry does not answer."""
    from view_algebra.formats import Decoding

    named = [source for source in sources if (by := Decoding.of(source)) is not None and by.values_name_schemas]
    if not named:
        return
    asked = registry()
    if asked is None:
        names = ", ".join(source.name for source in named)
        yield f"{names}: records name schemas of a registry, but LAMINA_SCHEMA_REGISTRY is not set"
        return
    with suppress(LaminaError):
        for source in named:
            yield from _differing(source, asked)


def _differing(source: Source, registry: Registry) -> Iterator[str]:
    from interchange.column_types.avro_types import columns_of, row_of
    from interchange.column_types.protobuf_types import columns_like
    from interchange.json_values import columns
    from view_algebra.formats.interface import NoText

    newest = registry.newest_schema(f"{source.topic}-value")
    if newest is None:
        return
    id, schema = newest
    declared = columns(source)
    of_schema = f"{source.name}: the newest schema of topic {source.topic} (id {id})"
    try:
        fields = columns_like(declared, schema) if source.format == "protobuf" else columns_of(schema)
    except NoText as reason:
        yield f"{of_schema} cannot be read: {reason}"
        return
    if source.has_changes and source.kind == "table":
        fields = row_of(fields)
    for missing in sorted(declared.keys() - fields.keys()):
        yield f"{of_schema} has no field {missing}: the column is NULL for its records"
    yield from (f"{of_schema} {difference}" for difference in _other_types(declared, fields))


def _other_types(declared: Mapping[str, Type], fields: Mapping[str, Type]) -> Iterator[str]:
    """The fields whose values may not be of the declared type. Nested parts are not compared."""
    for name, kind in declared.items():
        has = fields.get(name, kind)
        if kind.name not in (has.name, "STRING", *_WIDER.get(has.name, ())):
            yield f"has {name} as {has.spark}, but it is declared {kind.spark}: such records may be bad"
