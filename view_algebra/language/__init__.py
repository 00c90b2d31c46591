"""The language: types, typed expressions and queries, functions, aggregates and merges.

It knows no catalog. Of the engines it knows templates of SQL, in its tables.

Add a function as a row of `functions.py`, an aggregate in `aggregates.py`, and a merge in `merges.py`.
"""
