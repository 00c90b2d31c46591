"""Declared encodings of times, decimals and bytes in a source's JSON, which has no types for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from view_algebra.language.types import CALENDAR, Type, inside

UNITS = {"s": "1000000", "ms": "1000", "us": "1", "ns": "0.001"}
"""Units of numbers that are times since 1970, in microseconds."""

DAY = "86400000000"
"""A day in microseconds: the unit of Debezium's dates."""

_MILLISECONDS = ("io.debezium.time.Timestamp", "org.apache.kafka.connect.data.Timestamp")
DATE_SCHEMAS = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")
SEMANTIC = {
    **dict.fromkeys(_MILLISECONDS, UNITS["ms"]),
    "io.debezium.time.MicroTimestamp": UNITS["us"],
    "io.debezium.time.NanoTimestamp": UNITS["ns"],
    **dict.fromkeys(DATE_SCHEMAS, DAY),
}
"""Microseconds of a unit, by the schema names of Debezium and Kafka Connect. `DATE_SCHEMAS` are dates."""

DECIMAL = "org.apache.kafka.connect.data.Decimal"
"""The name of the schema of a decimal, whose bytes are its unscaled number."""

TIME_MODES = {
    "adaptive": None,
    "adaptive_time_microseconds": None,
    "connect": "ms",
    "microseconds": "us",
    "nanoseconds": "ns",
    "isostring": None,
}
"""Values of Debezium's `time.precision.mode`, and the unit of a TIMESTAMP, if all have one."""

DECIMAL_MODES = ("precise", "string", "double")
"""Values of Debezium's `decimal.handling.mode`: base64 of the unscaled number, a text, a number."""

SCHEMAS = ("true", "false")
"""Values of `schemas.enable` of Kafka Connect's JSON converter. True if a record is next to its schema."""

FRAMES = ("registry",)
"""Frames before the JSON of a value: five bytes with the schema's id in a registry."""

BINARY_MODES = ("bytes", "base64", "base64-url-safe", "hex")
"""Values of Debezium's `binary.handling.mode`. `bytes` are base64 in JSON."""

PLACEHOLDER = "__debezium_unavailable_value"
"""Debezium's default for `unavailable.value.placeholder`, which replaces a long value that a change left unchanged."""


@dataclass(frozen=True)
class Encodings:
    """The encodings of a source's values for which JSON has no type. None: the declaration does not say.

    changes: a record is a Debezium change event, whose schema, if it has one, takes precedence
    envelope: its columns are those of the envelope (`op`, `after`, …), not of the row
    epoch: the unit of numbers that are times
    times, decimals, binaries: the connector's modes
    placeholder: the text in place of a value that a change left unchanged
    schemas: a record may be the `payload` next to its `schema`, Kafka Connect's default. The schema takes precedence
    framed: each value follows the frame of a schema registry
    """

    changes: bool = False
    envelope: bool = False
    epoch: str | None = None
    times: str | None = None
    decimals: str | None = None
    binaries: str | None = None
    placeholder: str | None = None
    schemas: bool = False
    framed: bool = False

    @property
    def of_connector(self) -> bool:
        """True if a connector wrote the values, such as Debezium's, in envelopes or flattened."""
        return self.has_schema or any((self.times, self.decimals, self.binaries))

    @property
    def has_schema(self) -> bool:
        """True if a record may come with its schema."""
        return self.changes or self.schemas

    @property
    def unit(self) -> str | None:
        """The unit of a number in a TIMESTAMP, unless the record's schema has another."""
        return self.epoch or TIME_MODES.get(self.times or "adaptive")

    def microseconds(self, kind: Type) -> str | None:
        """Microseconds of a unit in a column of this type, or None if it is not declared."""
        if kind.name == "DATE" and self.of_connector:
            return DAY
        return UNITS[self.unit] if self.unit else None

    def decodes(self, kind: Type) -> bool:
        """True if values of this scalar type are first read as JSON and then decoded."""
        match kind.name:
            case "DECIMAL":
                return self.has_schema or self.decimals is not None
            case "BINARY":
                return self.has_schema or self.binaries is not None
        return kind.name in CALENDAR and (self.of_connector or self.epoch is not None)

    def decodes_in(self, kind: Type) -> bool:
        """True if the type or a type inside it is decoded."""
        return any(map(self.decodes, inside(kind)))


PLAIN = Encodings()
"""Times and decimals are texts, decimals also numbers, and bytes are base64."""


def as_json(kind: Type) -> Type:
    """The type that a value is read as before it is decoded.

    >>> from view_algebra.language.types import DATE
    >>> as_json(DATE).spark
    'VARIANT'
    """
    return replace(kind, name="VARIANT", precision=0, scale=0)
