"""Benchmarks of Lamina's published figures.

Each module with a `main` measures some figures, prints their targets, and fails if one is missed. It needs only this
repository after `make setup`, and prints a table (or JSON lines) on stdout. Runs that need services start their own in
a temporary folder. Both sides of a ratio run in turns in one process.

    figures.py              a figure with its target, and the command that prints it
    running.py              a deployment in its own folder
    events.py, traffic.py   a shop's events, and their steady traffic
    changing_catalog.py     a shop's catalog, and its changes for `twenty_applies`
"""
