"""Records as Spark data frames: read from Kafka, decoded, and with the time of the log instead of the producer's.

In: a source and a range of offsets. Out: its records, with a value in the declared types or a reason for its lack.
The promise: the speed layer, rebuilds and `lamina check` read a record alike.
"""
