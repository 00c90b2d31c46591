"""How a source's JSON writes times, decimals and bytes, as far as its declaration says: JSON has types for none."""

from __future__ import annotations

from dataclasses import dataclass, replace

from view_algebra.language.types import CALENDAR, Type

UNITS = {"s": "1000000", "ms": "1000", "us": "1", "ns": "0.001"}
"""Units of numbers that are times since 1970, in microseconds."""

DAY = "86400000000"
"""A day in microseconds: the unit of Debezium's dates."""

_MILLISECONDS = ("io.debezium.time.Timestamp", "org.apache.kafka.connect.data.Timestamp")
DAYS = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")
SEMANTIC = {
    **dict.fromkeys(_MILLISECONDS, UNITS["ms"]),
    "io.debezium.time.MicroTimestamp": UNITS["us"],
    "io.debezium.time.NanoTimestamp": UNITS["ns"],
    **dict.fromkeys(DAYS, DAY),
}
"""Microseconds for which 1 stands, by the names of the schemas of Debezium and Kafka Connect; `DAYS` are dates."""

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
"""Values of `schemas.enable` of Kafka Connect's JSON converter: is a record beside its schema?"""

FRAMES = ("registry",)
"""What may stand before the JSON of a value: the five bytes with the id that a schema registry has for its schema."""

BINARY_MODES = ("bytes", "base64", "base64-url-safe", "hex")
"""Values of Debezium's `binary.handling.mode`; `bytes` are base64 in JSON."""

PLACEHOLDER = "__debezium_unavailable_value"
"""Debezium's default for `unavailable.value.placeholder`: a long value that a change left as it was."""


@dataclass(frozen=True)
class Encodings:
    """How the JSON of a source writes what JSON has no type for. None: the declaration does not say.

    changes: a record is a change event of Debezium, whose schema, if it has one, goes before what is said here.
    envelope: its columns are those of the envelope (`op`, `after`, …), not of the row.
    epoch: the unit of numbers. times, decimals, binaries: the modes of the connector. placeholder: what a table's
    records have for a value that a change left as it was. schemas: a record may be the `payload` beside its `schema`,
    as Kafka Connect writes it by default; the schema goes before what is said here. framed: before each value stands
    the frame of a schema registry.
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
        """Microseconds for which 1 stands in a column of this type; None if nothing says so."""
        if kind.name == "DATE" and self.of_connector:
            return DAY
        return UNITS[self.unit] if self.unit else None

    def decodes(self, kind: Type) -> bool:
        """True if values of this scalar type are read as JSON first, and then made what they stand for."""
        match kind.name:
            case "DECIMAL":
                return self.has_schema or self.decimals is not None
            case "BINARY":
                return self.has_schema or self.binaries is not None
        return kind.name in CALENDAR and (self.of_connector or self.epoch is not None)

    def decodes_in(self, kind: Type) -> bool:
        """True if it decodes the type, or one inside it."""
        inner = (*(field for _, field in kind.fields), kind.key, kind.element)
        return self.decodes(kind) or any(self.decodes_in(each) for each in inner if each is not None)


PLAIN = Encodings()
"""Times and decimals are texts, decimals also numbers, and bytes are base64."""


def as_json(kind: Type) -> Type:
    """The type as which a value is read that is decoded afterwards.

    >>> from view_algebra.language.types import DATE
    >>> as_json(DATE).spark
    'VARIANT'
    """
    return replace(kind, name="VARIANT", precision=0, scale=0)
