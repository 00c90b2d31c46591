"""The log: every record of every source, in Kafka's order, for as long as the operator wants it.

In come records, from Kafka. Out go offsets, ranges of records as Spark data frames, and the master log itself, one
Iceberg table per topic.

Promised: only committed records are read; a topic is its Kafka id, not its name; what is held of a topic is a recorded
vector of offsets, so an archive run that is repeated changes nothing; records that were lost are told, never skipped.
"""
