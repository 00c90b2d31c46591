"""What the author wrote: syntax with its places in the file, declarations, and the SELECT that `lamina check` runs.

In come the texts of a catalog, out go syntax trees. The oracle's edits (`oracle.py`) are notes on these trees.
"""
