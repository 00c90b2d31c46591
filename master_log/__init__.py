"""The log: every record of every source, in Kafka's order, for as long as the operator wants it.

Records come in from Kafka. Offsets, ranges of records as Spark data frames, and the master log itself, one Iceberg
table per topic, go out.

The package promises four things. It reads only committed records. It identifies a topic by its Kafka id, not its name.
The offsets that a log holds are recorded in the log, so repeating an archive run changes nothing. It reports lost
records and never skips them silently.

Modules keep and change the log, and hold what the rooms share (offsets, errors). Rooms: `reading/` (records as data
frames), `kafka/` (topics, offsets, transactions) and `connections/` (clients, logins, certificates).
"""
