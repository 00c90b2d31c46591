"""The speed layer: keeps every view fresh within a second.

In: the records of Kafka topics, in micro-batches. Out: cells, merged into Postgres. The promise: each record's effect
and the progress that covers it are written in one transaction, so a crash, a replay or a lost checkpoint changes
nothing.
"""
