"""Spark SQL that reads records.

In: a source's declaration. Out: texts that read records into the declared columns, count one copy of each event, and
give bad records a reason. The promise: no value of a record makes a text fail.
"""
