"""Upkeep: the installation and its migrations, and the removal of tables, indexes and dead rows that nobody needs.

In: a database, or a deployed catalog. Out: the same database, up to date. The promise: every call may be repeated, and
none makes a reader or a micro-batch wait for longer than it says.
"""
