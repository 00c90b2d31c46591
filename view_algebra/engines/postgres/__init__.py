"""Writes typed queries as Postgres SQL with Spark's meaning, which runs above the aggregation.

`queries` writes queries, `expressions` the expressions in them, `values` their numbers, times and nested values. These
modules call each other through a `writing.Writer`.
"""
