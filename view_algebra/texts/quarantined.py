"""The bad records of a source, in the columns in which quarantine keeps them."""

from __future__ import annotations

from view_algebra.compiled import LEFT_OUT

PROBLEM_HEADER = "lamina-problem"
"""The Kafka header in which whoever sends a record that is bad may say why: it knows more than the record shows."""

_TOLD = f"element_at(filter(kafka_headers, header -> header.key = '{PROBLEM_HEADER}'), 1).value"

LONGEST_KEPT = 64 * 1024
"""Bytes of a bad record's key, and of its value, that quarantine keeps."""

QUARANTINED = f"""SELECT
  kafka_partition,
  kafka_offset,
  CAST(kafka_timestamp AS STRING) AS kafka_timestamp,
  coalesce(
    nullif(left(replace(make_valid_utf8(CAST({_TOLD} AS STRING)), '\\u0000', ''), 200), ''), kafka_error
  ) AS kafka_error,
  concat('\\\\x', hex(substring(kafka_key, 1, {LONGEST_KEPT}))) AS kafka_key,
  concat('\\\\x', hex(substring(kafka_value, 1, {LONGEST_KEPT}))) AS kafka_value,
  length(kafka_value) AS kafka_value_bytes
FROM records
WHERE kafka_error <> '{LEFT_OUT}'"""
"""The bad records as COPY takes them. The reason is the sender's own, where it has told one; of a long value the first
bytes are kept, and how long it is."""
