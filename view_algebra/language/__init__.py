"""The language: types, typed expressions and queries, functions, aggregates and merges.

It knows no catalog. All that it knows about the engines is templates of SQL, in its tables.

Add a function as a row of `functions.py`, an aggregate in `aggregates.py`, and a merge in `merges.py`.
"""
