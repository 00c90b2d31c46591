"""Monitoring: alarms, the status of views and queries, metrics, and the numbers on the console's pages.

In: the bookkeeping. Out: sentences, values and samples. The promise: a look counts no records one by one, so it takes
milliseconds and may be repeated every second.
"""
