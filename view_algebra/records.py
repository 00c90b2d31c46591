"""How the records of a source are read: JSON into the declared columns, or a reason for quarantine; nothing fails.

Spark's `from_json` in PERMISSIVE mode reads what it can and hands a record that it cannot read whole to a column of
its own. Which kind of mistake it was is found out for those records alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from view_algebra.expressions import Constant
from view_algebra.spark import constant
from view_algebra.types import BIGINT, BINARY, INT, STRING, TIMESTAMP, Type, spark_name

PSEUDO_COLUMNS = (
    ("kafka_partition", INT),
    ("kafka_offset", BIGINT),
    ("kafka_timestamp", TIMESTAMP),
    ("kafka_key", BINARY),
)
"""What every record has beside its declared columns."""

_CORRUPT = "kafka_corrupt"
_FIRST = {
    "TIMESTAMP": "TIMESTAMP '0001-01-01 00:00:00'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ '0001-01-01 00:00:00'",
    "DATE": "DATE '0001-01-01'",
}
_LAST = {
    "TIMESTAMP": "TIMESTAMP '9999-12-31 23:59:59.999999'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'",
    "DATE": "DATE '9999-12-31'",
}


def parse_text(columns: Sequence[tuple[str, Type]]) -> str:
    """Spark SQL from `raw_records` to records: the Kafka columns, the error, the declared columns."""
    schema = constant(
        Constant(", ".join(f"{spark_name(n)} {t.spark}" for n, t in columns) + f", {_CORRUPT} STRING", STRING)
    )
    declared = "".join(f",\n  parsed.{spark_name(name)} AS {spark_name(name)}" for name, _ in columns)
    return f"""SELECT
  kafka_partition,
  kafka_offset,
  kafka_timestamp,
  kafka_key,
  kafka_headers,
  kafka_value,
  CASE
{_errors(columns)}
  END AS kafka_error{declared}
FROM (
  SELECT
    partition AS kafka_partition,
    offset AS kafka_offset,
    timestamp AS kafka_timestamp,
    key AS kafka_key,
    headers AS kafka_headers,
    value AS kafka_value,
    from_json(
      CAST(value AS STRING),
      {schema},
      map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{_CORRUPT}')
    ) AS parsed
  FROM raw_records
)"""


def _errors(columns: Sequence[tuple[str, Type]]) -> str:
    text = "CAST(kafka_value AS STRING)"
    branches = [
        ("kafka_value IS NULL", "'the value is null'"),
        ("parsed IS NULL", "'the value is empty'"),
        (f"parsed.{_CORRUPT} IS NOT NULL", _kind_of_mistake(columns)),
        # JSON can only say U+0000 as an escape, so the costly look into every text is for those records alone
        (
            f"contains({text}, '\\\\u0000') AND contains(CAST(parsed AS STRING), '\\u0000')",
            "'a text holds the character U+0000, which Postgres cannot store'",
        ),
        (f"NOT endswith(rtrim(' \\t\\r\\n', {text}), '}}')", "'not JSON: more text follows the object'"),
    ]
    for path, kind in _times(columns):
        field = "parsed." + ".".join(spark_name(p) for p in path)
        outside = f"{field} NOT BETWEEN {_FIRST[kind.name]} AND {_LAST[kind.name]}"
        reason = f"{'.'.join(path)} is outside the years 0001 to 9999"
        branches.append((outside, constant(Constant(reason, STRING))))
    return "\n".join(f"    WHEN {when} THEN {reason}" for when, reason in branches)


def _times(columns: Sequence[tuple[str, Type]], within: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Type]]:
    """Dates and times that Postgres' calendar must hold, inside structs too."""
    found = []
    for name, kind in columns:
        if kind.name in _FIRST:
            found.append(((*within, name), kind))
        elif kind.name == "STRUCT":
            found += _times(kind.fields, (*within, name))
    return found


def _kind_of_mistake(columns: Sequence[tuple[str, Type]]) -> str:
    """Which mistake a record has that from_json could not read whole."""
    text = "CAST(kafka_value AS STRING)"
    tests = []
    for name, kind in columns:
        schema = constant(Constant(f"{spark_name(name)} {kind.spark}, {_CORRUPT} STRING", STRING))
        options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{_CORRUPT}')"
        wanted = constant(Constant(f"{name} is no {kind.spark}", STRING))
        tests.append(f"CASE WHEN from_json({text}, {schema}, {options}).{_CORRUPT} IS NOT NULL THEN {wanted} END")
    listed = ",\n        ".join(tests)
    return f"""CASE
      WHEN NOT startswith(ltrim(' \\t\\r\\n', {text}), '{{') AND try_parse_json({text}) IS NOT NULL THEN 'not a JSON object'
      WHEN from_json({text}, 'MAP<STRING, STRING>') IS NULL THEN 'not JSON, or nested too deep'
      ELSE concat('a field has the wrong type: ', concat_ws(', ',
        {listed}))
    END"""


QUARANTINED = """SELECT
  kafka_partition,
  kafka_offset,
  kafka_timestamp,
  kafka_error,
  hex(kafka_key) AS kafka_key,
  hex(kafka_value) AS kafka_value
FROM records
WHERE kafka_error IS NOT NULL"""
"""The bad records, each with its raw bytes."""
