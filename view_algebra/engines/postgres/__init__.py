"""Writes typed queries as Postgres SQL with Spark's meaning, which runs above the aggregation.

`query_texts` writes queries, `expression_texts` the expressions in them, `aggregate_texts` their aggregates, and
`value_texts` their numbers, times and nested values. These modules call each other through a `Writer`.
"""
