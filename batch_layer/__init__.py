"""The batch layer: recomputes every view from the master log, and overwrites the realtime result.

In: the records below a cut. Out: the cells of a new generation of each view. The promise: readers see the old
generation or the new one as a whole, and both are true at the moment of the hand-over.
"""
