"""The deployed catalog, the versions of views that are kept, and the generations that have cells.

In: compiled sources and views. Out: the same values, as they were compiled when they were deployed. The promise: no
text changes after its deployment, so a newer Lamina continues with the texts of an older one.
"""
