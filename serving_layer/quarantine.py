"""Records that could not be parsed, kept as they came: what a view does not count is here, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from serving_layer.bookkeeping import quarantine


@dataclass(frozen=True)
class BadRecord:
    """A record that could not be parsed, as it came."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime | None
    error: str
    key: bytes | None
    value: bytes | None


def bad_records(topic: str, rows: Iterable[Mapping[str, Any]]) -> list[BadRecord]:
    """The rows that `Source.quarantined` gives, as records of the topic."""
    return [
        BadRecord(
            topic=topic,
            partition=row["kafka_partition"],
            offset=row["kafka_offset"],
            timestamp=row["kafka_timestamp"],
            error=row["kafka_error"],
            key=_bytes(row["kafka_key"]),
            value=_bytes(row["kafka_value"]),
        )
        for row in rows
    ]


def write(connection: Connection, bad: Sequence[BadRecord]) -> None:
    """Keeps the records; one that is kept already stays as it is."""
    if bad:
        rows = [vars(record) for record in bad]
        connection.execute(insert(quarantine).on_conflict_do_nothing(), rows)


def _bytes(hexadecimal: str | None) -> bytes | None:
    return None if hexadecimal is None else bytes.fromhex(hexadecimal)
