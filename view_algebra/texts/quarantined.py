"""The bad records of a source, in the columns in which quarantine keeps them."""

from __future__ import annotations

from view_algebra.compiled import BAD_FIELDS, LEFT_OUT, Source

PROBLEM_HEADER = "lamina-problem"
"""The Kafka header in which whoever sends a record that is bad may say why: it knows more than the record shows."""

_TOLD = f"element_at(filter(kafka_headers, header -> header.key = '{PROBLEM_HEADER}'), 1).value"

LONGEST_KEPT = 64 * 1024
"""Bytes of a bad record's key, and of its value, that quarantine keeps."""


def quarantined(source: Source) -> str:
    """Spark SQL over `records`: the bad ones as COPY takes them, with those that count though a field is bad.

    The reason is the sender's own, if it gives one, but where a schema is to be asked for; of a long value the first
    bytes are kept, and its length.
    """
    from view_algebra.formats import frames  # which takes the compiler's types along

    own = f"nullif(left(replace(make_valid_utf8(CAST({_TOLD} AS STRING)), '\\u0000', ''), 200), '')"
    told = f"CASE WHEN NOT {frames.IS_UNKNOWN % 'kafka_error'} AND NOT {frames.IS_UNKNOWN % own} THEN {own} END"
    reason, condition = f"coalesce({told}, kafka_error)", f"kafka_error <> '{LEFT_OUT}'"
    if source.counts_bad_fields:
        reason = f"CASE WHEN kafka_error IS NULL THEN {BAD_FIELDS} ELSE {reason} END"
        condition = f"{condition} OR {BAD_FIELDS} IS NOT NULL"
    return f"""SELECT
  kafka_partition,
  kafka_offset,
  CAST(kafka_timestamp AS STRING) AS kafka_timestamp,
  {reason} AS kafka_error,
  concat('\\\\x', hex(substring(kafka_key, 1, {LONGEST_KEPT}))) AS kafka_key,
  concat('\\\\x', hex(substring(kafka_value, 1, {LONGEST_KEPT}))) AS kafka_value,
  length(kafka_value) AS kafka_value_bytes
FROM records
WHERE {condition}"""
