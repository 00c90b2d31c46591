"""The author's text: syntax with its places in the file, and declarations.

The texts of a catalog become syntax trees, which nothing writes to once they are declared. `view_algebra/oracle.py`
edits a copy of them for the SELECT that `lamina check` runs.
"""
