"""Requests to Kafka's brokers: topics, offsets, tails of logs, transactions, and sending records.

In: names of topics and offsets. Out: the brokers' answers as values, and records that they acknowledged. The promise: a
broker that does not answer becomes one error within a bounded time.
"""
