"""Benchmarks of Lamina's published figures. Each module measures one, prints its target, and fails if it is missed.

They need only this repository after `make setup`, and print a table (or JSON lines) on stdout. Every run has its own
Kafka, Postgres and Spark in a temporary folder. Both sides of a ratio run in turns in one process.
"""
