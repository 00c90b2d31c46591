"""Streams whose events are told apart (`UNIQUE (id)`): of the copies of an event one record counts.

An aggregate cannot take a record back, so copies are left out before anything is committed. The speed layer asks which
ids were counted already; the batch layer takes, of all records below its cut, the least copy of each event.
"""

from __future__ import annotations

from collections.abc import Sequence

from view_algebra.language.quoting import spark_name
from view_algebra.language.types import DOUBLE, FLOAT, Type

Columns = Sequence[tuple[str, Type]]
"""Those that UNIQUE names, with their types."""

DIGITS = 32
"""Hexadecimal ones that are kept of an id's SHA-256: 16 bytes. Of 10^12 events two are alike once in 10^15 cases."""


def ids_text(columns: Columns) -> str:
    """Spark SQL over the view `records` (the output of `Source.parse`): of every good record its id and its place.

    `id`: the SHA-256 of its values, each behind its length, cut to 16 bytes, in hexadecimal digits. `at`: Kafka's
    timestamp in microseconds since 1970. `content`: a fingerprint of the record's value. A record with a NULL among the
    values is a copy of none, and is not listed.
    """
    values = ", ".join(f"length({text}), ':', {text}" for text in (_text(name, kind) for name, kind in columns))
    return f"""SELECT
  left(sha2(concat({values}), 256), {DIGITS}) AS id,
  unix_micros(kafka_timestamp) AS at,
  kafka_partition,
  kafka_offset,
  xxhash64(kafka_value) AS content
FROM records
WHERE kafka_error IS NULL AND {_told(columns)}"""


def counted_text(columns: Columns) -> str:
    """Spark SQL over the view `good_records`: those that count.

    Of the copies of an event it is the least by (Kafka's time, partition, offset).
    """
    whole = _told(columns)
    names = [spark_name(name) for name, _ in columns]
    apart = [f"CASE WHEN NOT ({whole}) THEN {place} END" for place in ("kafka_partition", "kafka_offset")]
    return f"""SELECT * EXCEPT (kafka_copy)
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY {", ".join([*names, *apart])}
    ORDER BY kafka_timestamp, kafka_partition, kafka_offset
  ) AS kafka_copy
  FROM good_records
)
WHERE kafka_copy = 1"""


def _told(columns: Columns) -> str:
    """Does a record tell which event it is?"""
    return " AND ".join(f"{spark_name(name)} IS NOT NULL" for name, _ in columns)


def _text(name: str, kind: Type) -> str:
    """The text of a value, one for all that are equal: there are two zeros among doubles."""
    zero = " + 0" if kind in (FLOAT, DOUBLE) else ""
    return f"CAST({spark_name(name)}{zero} AS STRING)"
