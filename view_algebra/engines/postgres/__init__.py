"""Typed queries as Postgres SQL: what runs above the aggregation, with Spark's meaning.

`queries` writes a query, `expressions` what stands in it, each by its kind: `numbers`, `times`, `nested`, `aggregates`,
and by their `templates` the functions of the table. They call each other through a `writing.Reading`.
"""
