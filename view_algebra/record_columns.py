"""The columns that a source's parsed records have next to the declared ones, and what their values mean."""

DELETED = "kafka_deleted"
"""The undeclared column of a table's records that is true if the record deletes its key's row."""

MOVED_FROM = "kafka_moved_from"
"""The column of a change event with the key that an update moved the row from, or NULL."""

CHANGED_ROWS = f"posexplode(CASE WHEN {MOVED_FROM} IS NULL THEN array(false) ELSE array(false, true) END)"
"""The rows that a change event changes: its own, and the row under the key that it moved from."""

NULLED = "counted, with NULL for a field: "
"""The prefix of the reason if a record counts with NULL for its unreadable fields."""

LOG_TIME = "kafka_log_time"
"""The column of a table's records that leads their order in the log: the greatest Kafka timestamp of the partition at
or below the record's offset. It never falls within a partition, so there the order is that of offsets."""

SOURCE_TIME = "kafka_source_time"
"""The column of a change event's commit time in its source, or NULL if it names none."""

TOMBSTONE, TRUNCATES, SNAPSHOT = "kafka_tombstone", "kafka_truncates", "kafka_snapshot"
"""The columns of a change event that are true if the record has no value, if it removes all rows before it, and if it
is a row that a snapshot read, not a change."""

LEFT_OUT = ""
"""The error of a record that is neither good nor bad: Debezium's tombstone after a deletion, in a stream of changes."""

BAD_FIELDS = "kafka_bad_fields"
"""The column with the unreadable fields of a record that still counts, and the reasons, or NULL if it has none."""
