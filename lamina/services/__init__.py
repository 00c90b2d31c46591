"""Real Kafka, real Postgres and a Java to run them and Spark, in one folder, with nothing installed on the machine.

What comes in is a folder (`LAMINA_HOME`); what goes out are addresses and passwords, in that folder's own files. The
promise: a second start finds the first one's processes, a stop from any process leaves none behind, and a start after
`kill -9` of everything recovers what was written.
"""
