"""Reports about a deployment: its state is read here, and put into lines, JSON and metrics.

The promise: a report only reads, and its lines and its JSON hold the same facts.
"""
