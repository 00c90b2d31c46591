"""Reads JSON records into the declared columns, or into a reason for quarantine, and never fails.

Spark's `from_json` in PERMISSIVE mode puts a record that it cannot read completely into a separate column. Only such
records are read a second time, field by field (`fields.py`), which also finds the mistake.
"""

from __future__ import annotations

from collections.abc import Sequence

from view_algebra.formats.interface import DIRECT, KEY_TEXT, NO_KEY_TEXT, TEXT
from view_algebra.language.long_numbers import bounded, has_decimals, may_be_long, permissive
from view_algebra.language.quoting import spark_name, spark_text
from view_algebra.language.storable import with_unique_keys
from view_algebra.language.types import BIGINT, BINARY, CALENDAR, INT, STRING, TIMESTAMP, Type
from view_algebra.record_columns import (
    BAD_FIELDS,
    DELETED,
    LOG_TIME,
    MOVED_FROM,
    NULLED,
    SNAPSHOT,
    SOURCE_TIME,
    TOMBSTONE,
    TRUNCATES,
)
from view_algebra.records import debezium
from view_algebra.records.decoding import CORRUPT, UNDECODED, Columns
from view_algebra.records.fields import json_read
from view_algebra.records.keys import moved_from, parsed_keys, value_or_key
from view_algebra.records.reasons import errors, field_mistakes, why_no_record
from view_algebra.records.record import FRAMED, Record, declared_column
from view_algebra.records.time_units import number_conditions

PSEUDO_COLUMNS = (
    ("kafka_partition", INT),
    ("kafka_offset", BIGINT),
    ("kafka_timestamp", TIMESTAMP),
    ("kafka_key", BINARY),
    ("kafka_headers", Type("ARRAY", element=Type("STRUCT", fields=(("key", STRING), ("value", BINARY))))),
)
"""Columns that every record has in addition to the declared ones."""

TABLE_COLUMNS = ((LOG_TIME, TIMESTAMP),)
"""Further columns of every record of a table, which depend on the records below it."""

_UNFRAMED = f"""WITH raw_records AS (
  SELECT
    * EXCEPT (value),
    value AS {FRAMED},
    CASE WHEN startswith(value, X'00') THEN substring(value, 6) ELSE value END AS value
  FROM raw_records
)
"""


def parse_text(columns: Columns, record: Record, *, direct: bool) -> str:
    """Spark SQL from `raw_records` to records: the Kafka columns, the error, the declared columns.

    direct: some values may be read without JSON
    """
    key = record.key
    key_columns = [] if key is None or key.format == "none" else key.within(columns)
    parsed = _parsed(columns, key_columns, record, direct=direct)
    if record.decoding.decodes_any(columns):
        others = {"key_parsed": key_columns} if key_columns else {}
        if record.changes_table and key is not None:
            others["before_parsed"] = key.within(columns)
        parsed = record.decoding.around(parsed, columns, others)
    declared = _values(columns, key_columns, record)
    return f"""{_UNFRAMED if record.encodings.framed else ""}SELECT
  kafka_partition,
  kafka_offset,
  kafka_timestamp,{"" if key is None else f"{chr(10)}  {LOG_TIME},"}
  kafka_key,
  kafka_headers,
  {f"{FRAMED} AS kafka_value" if record.encodings.framed else "kafka_value"},
  CASE
{errors(columns, record)}
  END AS kafka_error{_bad_fields(columns, record)}{_table_columns(columns, record)}{declared}
FROM ({parsed}
)"""


def _parsed(columns: Columns, key_columns: Columns, record: Record, *, direct: bool) -> str:
    """Spark SQL of the raw records with the struct `parsed`, and those of the key and of the previous row."""
    read_as = record.read_as(columns)
    text = bounded(record.raw, Type("STRUCT", fields=tuple(read_as)), CORRUPT)
    log_time = "" if record.key is None else f"\n    {_within_calendar('log_time')} AS {LOG_TIME},"
    raw_records, raw_columns = _raw_records(record, [DIRECT] if direct else [])
    again = record.second_reading("kafka_read", record.marked, columns)
    return f"""
  SELECT
    * EXCEPT (kafka_read),
    CASE{f"{chr(10)}      WHEN {DIRECT} IS NOT NULL THEN {DIRECT}" if direct else ""}
      WHEN {_is_read_again(columns, record)}
      THEN {again.record(why_no_record(record.text))}
      ELSE kafka_read
    END AS parsed{parsed_keys(columns, key_columns, record)}
  FROM (
    SELECT
      partition AS kafka_partition,
      offset AS kafka_offset,
      {_within_calendar("timestamp")} AS kafka_timestamp,{log_time}
      key AS kafka_key,
      headers AS kafka_headers,
      value AS kafka_value,{raw_columns}
      {json_read(text, [*read_as, (CORRUPT, STRING)], record.options, permissive(CORRUPT))} AS kafka_read
    FROM {raw_records}
  )"""


def _raw_records(record: Record, direct: Sequence[str]) -> tuple[str, str]:
    """The raw records with the JSON of their values, and the columns that they have besides Kafka's."""
    values, encodings = record.values, record.encodings
    names = [*(() if values is None else values.columns), *((KEY_TEXT, NO_KEY_TEXT) if record.decodes_key else ())]
    names += [*direct, *([FRAMED] if encodings.framed else ())]
    listed = "".join(f"\n    {name}," for name in names)
    if encodings.changes:
        value = "CAST(value AS STRING)" if values is None else TEXT
        return debezium.unwrapped(value), debezium.COLUMNS + listed
    if encodings.schemas:
        return debezium.PAYLOADS, debezium.PAYLOAD_COLUMNS + listed
    return ("raw_records" if values is None else values.records), listed


def _is_read_again(columns: Columns, record: Record) -> str:
    """The condition that Spark's reader read a record incompletely, or changed its digits."""
    conditions = [f"kafka_read.{CORRUPT} IS NOT NULL"]
    conditions += record.loses(columns, "kafka_read", record.whole, from_variant=record.encodings.has_schema)
    if record.options.nulls:
        plain = record.plain(columns)
        conditions += [when for when, _ in number_conditions(plain, record.text, record.options, "kafka_read")]
        conditions += [when for when, _ in field_mistakes(columns, record, "kafka_read")]
        if any(has_decimals(kind) for _, kind in plain):
            conditions.append(f"kafka_read IS NULL AND {may_be_long(record.text)}")
    return "\n      OR ".join(conditions)


def _bad_fields(columns: Columns, record: Record) -> str:
    """The column with the fields that are NULL in a record that counts."""
    if not record.options.nulls:
        return ""
    null_fields = f"CASE WHEN startswith(parsed.{CORRUPT}, {spark_text(NULLED)}) THEN parsed.{CORRUPT} END"
    if record.decoding.decodes_any(columns):
        both = f"concat_ws(', ', substring({null_fields}, {len(NULLED) + 1}), {UNDECODED})"
        null_fields = f"{spark_text(NULLED)} || nullif({both}, '')"
    return f",\n  {null_fields} AS {BAD_FIELDS}"


def _within_calendar(time: str) -> str:
    """Kafka's time, which a producer may set to any value, limited to the calendar."""
    first, last = CALENDAR["TIMESTAMP"]
    return f"greatest({first}, least({time}, {last}))"


def _table_columns(columns: Columns, record: Record) -> str:
    """The columns that only a table's records have."""
    if record.key is None:
        return ""
    deleted = f",\n  {record.deletes(columns)} AS {DELETED}"
    if not record.changes_table:
        return deleted
    return (
        f"{deleted},\n  {moved_from(columns, record.key)} AS {MOVED_FROM}"
        f",\n  {debezium.SOURCE_MS_AS_TIME} AS {SOURCE_TIME}"
        f",\n  kafka_value IS NULL AS {TOMBSTONE},\n  {debezium.IS_TRUNCATION} AS {TRUNCATES}"
        f",\n  {debezium.IS_SNAPSHOT} AS {SNAPSHOT}"
    )


def _values(columns: Columns, key_columns: Columns, record: Record) -> str:
    """The declared columns."""
    values = [
        (n, value_or_key(n, kind) if (n, kind) in key_columns else with_unique_keys(declared_column(n, kind), kind))
        for n, kind in columns
    ]
    kept = None
    if record.changes_table:  # a deletion's `before` is neither the row nor its time
        kept = f"{debezium.OP} <> 'd'"
    elif record.key is not None and record.flattened(columns) is not None:
        kept = f"NOT {record.deletes(columns)}"
    if kept is not None and record.key is not None:
        metadata = {n for n, _ in columns if record.options.name(n).startswith("__")}
        stay = {*record.key.columns, *(() if record.changes_table else metadata)}
        values = [(n, v if n in stay else f"CASE WHEN {kept} THEN {v} END") for n, v in values]
    return "".join(f",\n  {value} AS {spark_name(name)}" for name, value in values)
