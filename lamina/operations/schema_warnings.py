"""Warnings of `lamina plan`: declared columns that a registry's newest schema lacks, or has with another type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from view_algebra.compiled import Source
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from master_log.schema_registry import Registry
    from view_algebra.language.types import Type

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


def warnings_about(sources: Iterable[Source], registry: Callable[[], Registry | None]) -> list[str]:
    """The warnings for these sources. Empty if the registry does not answer."""
    from view_algebra.formats import Decoding

    warnings: list[str] = []
    named = [source for source in sources if (by := Decoding.of(source)) is not None and by.values_name_schemas]
    if not named:
        return warnings
    asked = registry()
    if asked is None:
        names = ", ".join(source.name for source in named)
        return [f"{names}: records name schemas of a registry, but LAMINA_SCHEMA_REGISTRY is not set"]
    with suppress(LaminaError):
        for source in named:
            warnings += _differing(source, asked)
    return warnings


def _differing(source: Source, registry: Registry) -> Iterator[str]:
    from interchange.avro_types import columns_of, row_of
    from interchange.json_values import columns
    from interchange.protobuf_types import columns_like
    from view_algebra.formats.interface import NoText

    newest = registry.newest(f"{source.topic}-value")
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
