"""Change events of Debezium: the row that a change has, and what it does to it.

`{"op": "u", "before": {…}, "after": {…}, …}`, by itself or as the `payload` beside a `schema`. `c` (created), `u`
(updated) and `r` (read by a snapshot) tell the row as it is from then on, `d` the row that is deleted. An update whose
row had another primary key before takes that row away, too.
"""

from __future__ import annotations

from view_algebra.language.quoting import spark_text

ROW, OP, BEFORE = "kafka_row", "kafka_op", "kafka_before"

UNWRAPPED = f"""(
    SELECT
      partition, offset, timestamp, key, headers, value,
      try_variant_get(event, '$.op', 'string') AS {OP},
      to_json(variant_get(event, '$.before', 'variant')) AS {BEFORE},
      to_json(CASE
        WHEN try_variant_get(event, '$.op', 'string') = 'd' THEN variant_get(event, '$.before', 'variant')
        ELSE variant_get(event, '$.after', 'variant')
      END) AS {ROW}
    FROM (
      SELECT partition, offset, timestamp, key, headers, value,
        coalesce(variant_get(whole, '$.payload', 'variant'), whole) AS event
      FROM (
        SELECT partition, offset, timestamp, key, headers, value, try_parse_json(CAST(value AS STRING)) AS whole
        FROM raw_records
      )
    )
  )"""
"""The raw records with the operation, the row before it, and the row, each as JSON; a variant keeps every digit."""

COLUMNS = f"""
    {OP},
    {BEFORE},
    {ROW},"""

DELETES = f"(kafka_value IS NULL OR {OP} = 'd')"
"""Does a record take the row away? After a deletion, Debezium sends a record without a value, too."""


def errors(of_deletion: str) -> list[tuple[str, str]]:
    """Conditions and reasons for what is no change of a row; `of_deletion`: for one that has but Kafka's key."""
    truncated = "a truncation (op t) is not served: delete the rows, or declare a table over a new topic"
    return [
        (f"{OP} IS NULL", "'no change event of Debezium: it has no op'"),
        (f"{OP} = 't'", spark_text(truncated)),
        (f"{OP} NOT IN ('c', 'u', 'r', 'd')", f"concat('no change of a row: op ', left({OP}, 20))"),
        (f"{OP} = 'd' AND coalesce({ROW}, 'null') = 'null'", of_deletion),
        (f"coalesce({ROW}, 'null') = 'null'", "'the change has no row: after is missing'"),
    ]
