"""Change events of Debezium: the row that a change has, and what it does to it.

`{"op": "u", "before": {…}, "after": {…}, …}`, by itself or as the `payload` beside a `schema`. `c` (created), `u`
(updated) and `r` (read by a snapshot) tell the row as it is from then on, `d` the row that is deleted. An update whose
row had another primary key before takes that row away, too.
"""

from __future__ import annotations

from view_algebra.language.quoting import spark_text
from view_algebra.language.types import CALENDAR
from view_algebra.texts.decoding import FIELDS
from view_algebra.texts.fields import MARK, marked

ROW, OP, BEFORE, SOURCE_MS = "kafka_row", "kafka_op", "kafka_before", "kafka_source_ms"
EVENT = "kafka_event"

_FIELD = "STRUCT<field: STRING, type: STRING, name: STRING, parameters: STRUCT<scale: INT>>"
_OF_ROW = f"""get(filter(
            try_variant_get(whole, '$.schema.fields', 'ARRAY<STRUCT<field: STRING, fields: ARRAY<{_FIELD}>>>'),
            part -> part.field = 'after'
          ), 0).fields"""
_OF_KEY = f"""try_variant_get(
            try_parse_json(CASE WHEN whole IS NULL THEN make_valid_utf8(CAST(key AS STRING)) END),
            '$.schema.fields', 'ARRAY<{_FIELD}>'
          )"""


def _by_name(fields: str) -> str:
    return f"""map_from_entries(transform(
          filter({fields}, part -> part.field IS NOT NULL),
          part -> struct(part.field, struct(part.type, part.name, part.parameters.scale))
        ))"""


_FIELDS = _by_name(f"coalesce({_OF_ROW}, {_OF_KEY})")
"""What the schema beside a change, or a deletion's key, says of each field of the row."""

_LISTED = "try_parse_json(concat('[', {}, ']'))"
_ONLY = "CASE WHEN variant_get({0}, '$[1]', 'variant') IS NULL THEN variant_get({0}, '$[0]', 'variant') END"
"""The only value of a list. `try_parse_json` ignores what follows a value, but not what follows it in a list."""

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
    """The raw records with the operation, the row before it, and the row, each as JSON; `value`: the event's JSON.

    An object becomes its JSON. MongoDB's connector writes a document as a text that is JSON already. A variant makes
    0.1 of `0.10`, and a double of a number with an exponent or with more than 38 digits; `marked_part` keeps all.
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


_IS_OF_CONNECT = "try_variant_get(whole, '$.schema.type', 'string') = 'struct'"
_PAYLOAD = "coalesce(try_variant_get(whole, '$.payload', 'string'), 'null')"
PAYLOADS = f"""(
    SELECT
      *,
      CASE WHEN {_IS_OF_CONNECT} THEN {_PAYLOAD} ELSE text END AS {EVENT},
      {_by_name(f"try_variant_get(whole, '$.schema.fields', 'ARRAY<{_FIELD}>')")} AS {FIELDS}
    FROM (
      SELECT *, {_ONLY.format("listed")} AS whole
      FROM (
        SELECT *, {_LISTED.format("text")} AS listed
        FROM (SELECT *, CAST(value AS STRING) AS text FROM raw_records)
      )
    )
  )"""
"""The raw records of a source whose records may be beside their schemas, as Kafka Connect writes them by default."""

COLUMNS_OF_PAYLOADS = f"""
    {EVENT},
    {FIELDS},"""


def marked_part(part: str, value: str) -> str:
    """Spark SQL of a part of a change event (BEFORE, ROW or EVENT) with every digit and with marked numbers.

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
    """The same of a record that may be beside its schema."""
    return f"""element_at(transform(
        array({marked(value)}),
        text -> element_at(transform(
          array(try_parse_json(text)),
          whole -> CASE WHEN {_IS_OF_CONNECT} THEN {_PAYLOAD} ELSE text END
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
"""When the source committed the change, between the years 1 and 9999. A record without a value follows the deletion
that it repeats, and is older than every change: which row it takes away, its place in the log says.
"""

IS_TRUNCATION = f"coalesce({OP} = 't', false)"
"""Does a record remove all rows before it?"""

IS_SNAPSHOT = f"coalesce({OP} = 'r', false)"
"""Is a record a row that a snapshot read?"""

DELETES = f"(kafka_value IS NULL OR {OP} = 'd')"
"""Does a record take the row away? After a deletion, Debezium sends a record without a value, too."""


def is_not_one_value(text: str) -> str:
    """The condition that a text is not JSON, or that more follows the JSON."""
    return f"{_ONLY.format(_LISTED.format(text))} IS NULL"


_NO_OP = (f"{OP} IS NULL", "'no change event of Debezium: it has no op'")

ERRORS_OF_STREAM = [_NO_OP]
"""Conditions and reasons for what is no change, whatever it changes."""


def errors(of_deletion: str) -> list[tuple[str, str]]:
    """Conditions and reasons for what is no change of a row; `of_deletion`: for one that has but Kafka's key."""
    return [
        _NO_OP,
        (IS_TRUNCATION, "CAST(NULL AS STRING)"),  # which has no row
        (f"{OP} NOT IN ('c', 'u', 'r', 'd')", f"concat('no change of a row: op ', left({OP}, 20))"),
        (f"{OP} = 'd' AND coalesce({ROW}, 'null') = 'null'", of_deletion),
        (f"coalesce({ROW}, 'null') = 'null'", "'the change has no row: after is missing'"),
    ]
