"""The language: types, typed expressions and queries, functions, aggregates and merges. It knows no views or engines.

Add a function as a row of `functions.py`, an aggregate in `aggregates.py`, and a merge in `merges.py`.
"""
