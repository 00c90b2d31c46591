"""A change of the catalog: what it would do (`plan`), the preview of it, doing it (`apply`), and the way back.

In: a compiled catalog and the deployed one. Out: a sentence for each declaration that changes, and the new catalog,
deployed in one transaction. The promise: until that transaction commits, nothing that is deployed or read has changed.
Checks of views run here, over generations and catalogs that no reader sees yet.
"""
