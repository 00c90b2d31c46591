"""A source's bad records in quarantine's columns."""

from __future__ import annotations

from view_algebra.compiled import Source
from view_algebra.record_columns import BAD_FIELDS, LEFT_OUT

PROBLEM_HEADER = "lamina-problem"
"""The Kafka header in which a sender, which knows more than the record shows, may state why a record is bad."""

_HEADER = f"element_at(filter(kafka_headers, header -> header.key = '{PROBLEM_HEADER}'), 1).value"

LONGEST_KEPT = 64 * 1024
"""Most bytes of a bad record's key or value that quarantine keeps."""


def quarantined(source: Source) -> str:
    """Spark SQL over `records`: the bad records, and those that count without a bad field, in the form for COPY.

    The sender's reason, if any, replaces ours, unless a schema is missing. A long value keeps its first bytes and its
    length.
    """
    from view_algebra.formats import frames  # late, because the layers import this module and few need `formats`

    own = f"nullif(left(replace(make_valid_utf8(CAST({_HEADER} AS STRING)), '\\u0000', ''), 200), '')"
    own_reason = f"CASE WHEN NOT {frames.IS_UNKNOWN % 'kafka_error'} AND NOT {frames.IS_UNKNOWN % own} THEN {own} END"
    reason, condition = f"coalesce({own_reason}, kafka_error)", f"kafka_error <> '{LEFT_OUT}'"
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
