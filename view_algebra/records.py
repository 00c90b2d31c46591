"""How the records of a source are read: JSON into the declared columns, or a reason for quarantine; nothing fails.

Spark's `from_json` in PERMISSIVE mode reads what it can and hands a record that it cannot read whole to a column of
its own. Which kind of mistake it was is found out for those records alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from view_algebra.expressions import Constant
from view_algebra.spark import constant
from view_algebra.types import BIGINT, BINARY, CALENDAR, INT, STRING, TIMESTAMP, Type, spark_name

PSEUDO_COLUMNS = (
    ("kafka_partition", INT),
    ("kafka_offset", BIGINT),
    ("kafka_timestamp", TIMESTAMP),
    ("kafka_key", BINARY),
)
"""What every record has beside its declared columns."""

_SPACE = "' \\t\\r\\n'"
_CORRUPT = "kafka_corrupt"


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
        (
            f"NOT endswith({text}, '}}') AND NOT endswith(rtrim({_SPACE}, {text}), '}}')",
            "'more text follows the object'",
        ),
    ]
    for path, kind in _times(columns):
        field = "parsed." + ".".join(spark_name(p) for p in path)
        first, last = CALENDAR[kind.name]
        outside = f"{field} NOT BETWEEN {first} AND {last}"
        reason = f"{'.'.join(path)} is outside the years 0001 to 9999"
        branches.append((outside, constant(Constant(reason, STRING))))
    return "\n".join(f"    WHEN {when} THEN {reason}" for when, reason in branches)


def _times(columns: Sequence[tuple[str, Type]], within: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Type]]:
    """Dates and times that Postgres' calendar must hold, inside structs too."""
    found = []
    for name, kind in columns:
        if kind.name in CALENDAR:
            found.append(((*within, name), kind))
        elif kind.name == "STRUCT":
            found += _times(kind.fields, (*within, name))
    return found


def _kind_of_mistake(columns: Sequence[tuple[str, Type]]) -> str:
    """Which mistake a record has that from_json could not read whole.

    Within `transform` Spark interprets the expression, and so keeps it out of the code that it generates for every
    record: with it there, the code of a record is too long for the JVM to compile.
    """
    wrong = []
    for name, kind in columns:
        key, reason = constant(Constant(name, STRING)), constant(Constant(f"{name} is no {kind.spark}", STRING))
        wrong.append(f"CASE WHEN parsed.{spark_name(name)} IS NULL AND fields[{key}] IS NOT NULL THEN {reason} END")
    listed = ",\n          ".join(wrong)
    return f"""element_at(transform(
        array(from_json(CAST(kafka_value AS STRING), 'MAP<STRING, STRING>')),
        fields -> CASE
          WHEN fields IS NOT NULL THEN concat('a field has the wrong type: ', coalesce(nullif(concat_ws(', ',
          {listed}), ''), 'it is inside a nested one'))
          WHEN startswith(ltrim({_SPACE}, CAST(kafka_value AS STRING)), '{{') THEN 'not JSON, or nested too deep'
          WHEN try_parse_json(CAST(kafka_value AS STRING)) IS NOT NULL THEN 'not a JSON object'
          ELSE 'not JSON'
        END
      ), 1)"""


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
