"""Where a view is split: its innermost blocks over sources become leaves, which are tables of cells to be.

In comes a typed query, out come the same query over tables of cells, and the leaves. Versions of a
table and joins as of a time are SQL over records by then, so that every leaf reads the records of one stream.
"""
