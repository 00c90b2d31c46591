"""Writes typed expressions as SQL with the same meaning in Spark, below the aggregation, and Postgres, above it."""
