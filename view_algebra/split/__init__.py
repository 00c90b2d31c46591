"""Where a view is split: its innermost blocks over sources become leaves, which are tables of cells to be.

In comes a typed query, out come the same query over tables of cells, and the leaves. A new kind of input, as versions
of a table, is a new relation that a leaf may read.
"""
