"""Typed expressions as SQL of the two engines, with one meaning: Spark below the aggregation, Postgres above it."""
