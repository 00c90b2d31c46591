"""Kafka, which only these modules speak to: topics, offsets, tails of logs, transactions, and sending records."""
