"""The batch layer: recomputes every view from the master log, and lets the result overwrite the realtime one.

In: the records below a cut. Out: the cells of a new generation of each view. The promise: readers see the old
generation or the new one, whole, and both are true at the instant of the hand-over.
"""
