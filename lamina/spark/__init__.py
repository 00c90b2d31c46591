"""The only package that configures and starts Spark.

In: settings. Out: a session. The promise: every session reads and computes alike, in the speed layer, rebuilds and
checks.
"""
