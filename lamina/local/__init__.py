"""A whole Lamina in one folder: its setup, its start and stop, and the demo.

The promise: a folder needs nothing outside itself but jars, and whatever was killed in it starts again.
"""
