"""Reads Debezium's change events: the row of a change, and the change's effect on it.

An event is `{"op": "u", "before": {…}, "after": {…}, …}`, by itself or as the `payload` next to a `schema`. `c`
(created), `u` (updated) and `r` (read by a snapshot) carry the row's new state, `d` the deleted row. An update that
changes the primary key also deletes the row of the previous key.
"""

from __future__ import annotations

from view_algebra.language.quoting import spark_text
from view_algebra.language.types import CALENDAR
from view_algebra.records.decoding import FIELDS
from view_algebra.records.fields import MARK, marked

ROW, OP, BEFORE, SOURCE_MS = "kafka_row", "kafka_op", "kafka_before", "kafka_source_ms"
EVENT = "kafka_event"

_FIELD = "STRUCT<field: STRING, type: STRING, name: STRING, parameters: STRUCT<scale: INT>>"
_ROW_FIELDS = f"""get(filter(
            try_variant_get(whole, '$.schema.fields', 'ARRAY<STRUCT<field: STRING, fields: ARRAY<{_FIELD}>>>'),
            part -> part.field = 'after'
          ), 0).fields"""
_KEY_FIELDS = f"""try_variant_get(
            try_parse_json(CASE WHEN whole IS NULL THEN make_valid_utf8(CAST(key AS STRING)) END),
            '$.schema.fields', 'ARRAY<{_FIELD}>'
          )"""


def _by_name(fields: str) -> str:
    return f"""map_from_entries(transform(
          filter({fields}, part -> part.field IS NOT NULL),
          part -> struct(part.field, struct(part.type, part.name, part.parameters.scale))
        ))"""


_FIELDS = _by_name(f"coalesce({_ROW_FIELDS}, {_KEY_FIELDS})")
"""The type of each field of the row, from the schema next to a change or to a deletion's key."""

_LISTED = "try_parse_json(concat('[', {}, ']'))"
_ONLY = "CASE WHEN variant_get({0}, '$[1]', 'variant') IS NULL THEN variant_get({0}, '$[0]', 'variant') END"
"""The only value of a list. `try_parse_json` ignores text after a value, but not after a value in a list."""

_EVENT = "coalesce(variant_get(whole, '$.payload', 'variant'), whole)"
_PARTS = {
    BEFORE: "try_variant_get(event, '$.before', 'string')",
    ROW: """CASE
        WHEN try_variant_get(event, '$.op', 'string') = 'd' THEN try_variant_get(event, '$.before', 'string')
        ELSE try_variant_get(event, '$.after', 'string')
      END""",
    EVENT: "to_json(event)",
}


def unwrapped(value: str) -> str:
    """The raw records with the operation, and the JSON of the previous row and of the row. `value`: the event's JSON.

    An object becomes its JSON. MongoDB's connector writes a document as a text that is JSON already. A variant turns
    `0.10` into 0.1, and a number with an exponent or more than 38 digits into a double. `marked_part` keeps all digits.
    """
    return f"""(
    SELECT
      *,
      try_variant_get(event, '$.op', 'string') AS {OP},
      try_variant_get(event, '$.source.ts_ms', 'bigint') AS {SOURCE_MS},
      {_PARTS[BEFORE]} AS {BEFORE},
      {_PARTS[ROW]} AS {ROW},
      {_PARTS[EVENT]} AS {EVENT}
    FROM (
      SELECT *,
        {_EVENT} AS event,
        {_FIELDS} AS {FIELDS}
      FROM (
        SELECT *, {_ONLY.format("listed")} AS whole
        FROM (
          SELECT *, {_LISTED.format(value)} AS listed
          FROM raw_records
        )
      )
    )
  )"""


_IS_CONNECT = "try_variant_get(whole, '$.schema.type', 'string') = 'struct'"
_PAYLOAD = "coalesce(try_variant_get(whole, '$.payload', 'string'), 'null')"
PAYLOADS = f"""(
    SELECT
      *,
      CASE WHEN {_IS_CONNECT} THEN {_PAYLOAD} ELSE text END AS {EVENT},
      {_by_name(f"try_variant_get(whole, '$.schema.fields', 'ARRAY<{_FIELD}>')")} AS {FIELDS}
    FROM (
      SELECT *, {_ONLY.format("listed")} AS whole
      FROM (
        SELECT *, {_LISTED.format("text")} AS listed
        FROM (SELECT *, CAST(value AS STRING) AS text FROM raw_records)
      )
    )
  )"""
"""The raw records of a source whose records may be next to their schemas, Kafka Connect's default."""

PAYLOAD_COLUMNS = f"""
    {EVENT},
    {FIELDS},"""


def marked_part(part: str, value: str) -> str:
    """Spark SQL of a change event's part (BEFORE, ROW or EVENT) with marked numbers that keep every digit.

    A document that is a text has all its digits in the column of the part.
    """
    return f"""element_at(transform(
        array(try_parse_json({marked(value)})),
        whole -> element_at(transform(
          array({_EVENT}),
          event -> element_at(transform(
            array({_PARTS[part]}),
            part -> CASE WHEN startswith(part, {spark_text(MARK)}) THEN {marked(part)} ELSE part END
          ), 1)
        ), 1)
      ), 1)"""


def marked_payload(value: str) -> str:
    """`marked_part` for a record that may be next to its schema."""
    return f"""element_at(transform(
        array({marked(value)}),
        text -> element_at(transform(
          array(try_parse_json(text)),
          whole -> CASE WHEN {_IS_CONNECT} THEN {_PAYLOAD} ELSE text END
        ), 1)
      ), 1)"""


COLUMNS = f"""
    {OP},
    {SOURCE_MS},
    {BEFORE},
    {ROW},
    {EVENT},
    {FIELDS},"""

SOURCE_MS_AS_TIME = f"""CASE
    WHEN kafka_value IS NULL THEN {CALENDAR["TIMESTAMP"][0]}
    WHEN {SOURCE_MS} IS NOT NULL THEN timestamp_millis(greatest(-62135596800000L, least({SOURCE_MS}, 253402300799999L)))
  END"""
"""The time of the source's commit, within the years 1 to 9999. A record without a value, which repeats a deletion,
counts as older than every change, so its position in the log decides.
"""

IS_TRUNCATION = f"coalesce({OP} = 't', false)"
"""True if a record removes all rows before it."""

IS_SNAPSHOT = f"coalesce({OP} = 'r', false)"
"""True if a record is a row that a snapshot read."""

DELETES = f"(kafka_value IS NULL OR {OP} = 'd')"
"""True if a record deletes its row. After a deletion, Debezium also sends a record without a value."""


def is_not_one_value(text: str) -> str:
    """The condition that a text is not JSON, or that text follows the JSON."""
    return f"{_ONLY.format(_LISTED.format(text))} IS NULL"


_NO_OP = (f"{OP} IS NULL", "'no change event of Debezium: it has no op'")

STREAM_ERRORS = [_NO_OP]
"""Conditions and reasons for records of a stream that are not change events."""


def errors(deletion: str) -> list[tuple[str, str]]:
    """Conditions and reasons for records that do not change a row. `deletion`: the reason for a bare deletion."""
    return [
        _NO_OP,
        (IS_TRUNCATION, "CAST(NULL AS STRING)"),  # has no row
        (f"{OP} NOT IN ('c', 'u', 'r', 'd')", f"concat('no change of a row: op ', left({OP}, 20))"),
        (f"{OP} = 'd' AND coalesce({ROW}, 'null') = 'null'", deletion),
        (f"coalesce({ROW}, 'null') = 'null'", "'the change has no row: after is missing'"),
    ]
