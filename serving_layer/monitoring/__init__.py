"""Monitoring: alarms, the status of views and queries, metrics, and the numbers on the console's pages.

In: the bookkeeping. Out: sentences, values and samples. The promise: alarms, metrics and the overview count no
rows of views, and of the quarantine at most those of the last hour, so they take milliseconds. `status` also counts
the rows of every view.
"""
