"""Real Kafka, real Postgres and a Java for these and for Spark, in one folder, with nothing installed on the machine.

A folder (`LAMINA_HOME`) comes in. Addresses and passwords go out, in that folder's own files. The promise: a second
start finds the first one's processes, a stop from any process leaves none running, and a start after `kill -9` of
everything recovers all written data.
"""
