"""Deduplicates streams with `UNIQUE (id)`: one record of all copies of an event counts.

An aggregate cannot take a record back, so copies are left out before a commit. The speed layer looks up the ids that
were counted already. The batch layer takes the least copy of each event among all records below its cut.
"""

from __future__ import annotations

from view_algebra.language.quoting import spark_name
from view_algebra.language.types import DOUBLE, FLOAT, Type
from view_algebra.records.decoding import Columns

DIGITS = 32
"""Hexadecimal digits kept of an id's SHA-256 (16 bytes): two of 10^12 events collide once in 10^15 cases."""


def ids_text(columns: Columns) -> str:
    """Spark SQL over the view `records` (the output of `Source.parse`): every good record's id and position.

    id: the SHA-256 of its values in the columns of UNIQUE, each after its length, cut to 16 bytes, in hexadecimal
    at: Kafka's timestamp in microseconds since 1970
    content: a fingerprint of the record's value

    A record with a NULL among the values has no copies, and is not listed.
    """
    values = ", ".join(f"length({text}), ':', {text}" for text in (_text(name, kind) for name, kind in columns))
    return f"""SELECT
  left(sha2(concat({values}), 256), {DIGITS}) AS id,
  unix_micros(kafka_timestamp) AS at,
  kafka_partition,
  kafka_offset,
  xxhash64(kafka_value) AS content
FROM records
WHERE kafka_error IS NULL AND {_has_id(columns)}"""


def counted_text(columns: Columns) -> str:
    """Spark SQL over the view `good_records`: the records that count.

    Among the copies of an event, the least by (Kafka's time, partition, offset) counts.
    """
    whole = _has_id(columns)
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


def _has_id(columns: Columns) -> str:
    """The condition that no value of a record's id is NULL."""
    return " AND ".join(f"{spark_name(name)} IS NOT NULL" for name, _ in columns)


def _text(name: str, kind: Type) -> str:
    """The text of a value, the same for equal values: doubles have two zeros."""
    zero = " + 0" if kind in (FLOAT, DOUBLE) else ""
    return f"CAST({spark_name(name)}{zero} AS STRING)"
