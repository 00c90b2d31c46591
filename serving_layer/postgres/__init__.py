"""Postgres itself: connections and transactions, COPY, and the tables that every other room reads and writes.

In: a URL, Arrow batches. Out: sessions, rows, and tables of cells into which partials are merged. The promise: a
transaction that lost its session has committed as a whole or not at all, and each fact of schema `lamina` has one place
(`bookkeeping.py`).
"""
