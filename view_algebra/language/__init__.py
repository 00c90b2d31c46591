"""The language: types, typed expressions and queries, functions, aggregates and merges. It knows no view and no engine.

A new function is a row of `functions.py`, a new aggregate one of `aggregates.py`, a new merge one of `merges.py`.
"""
