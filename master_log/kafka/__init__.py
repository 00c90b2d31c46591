"""Requests to Kafka's brokers: topics, offsets, tails of logs, transactions, and sending records."""
