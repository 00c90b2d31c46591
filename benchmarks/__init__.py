"""The figures that Lamina answers for: each module measures one, says its target, and ends non-zero when it is missed.

In: nothing but this repository after `make setup`. Out: a table (or JSON lines) on stdout. Every run has a Kafka, a
Postgres and a Spark of its own in a temporary folder; both sides of a ratio run in turns in one process.
"""
