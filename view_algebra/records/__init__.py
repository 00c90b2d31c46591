"""Spark SQL that reads records: parsed into the declared columns, without copies of an event, or quarantined."""
