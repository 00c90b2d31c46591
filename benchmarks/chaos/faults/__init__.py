"""The faults, a function per kind. Importing this package fills the table (table.py)."""

from benchmarks.chaos.faults import process_faults, reader_faults, schema_faults, service_faults, topic_faults

__all__ = ["process_faults", "reader_faults", "schema_faults", "service_faults", "topic_faults"]
