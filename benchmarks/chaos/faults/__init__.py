"""The faults, a function per kind. Importing this package fills the table (table.py)."""

from benchmarks.chaos.faults import processes, readers, schemas, services, topics

__all__ = ["processes", "readers", "schemas", "services", "topics"]
