"""Writes typed queries as Postgres SQL with Spark's meaning, which runs above the aggregation.

`queries` writes queries, and `expressions` the expressions in them: `numbers`, `times`, `nested` values, `aggregates`,
and functions by the `templates` of their table. These modules call each other through a `writing.Reading`.
"""
