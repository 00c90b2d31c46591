"""The author's text: syntax with its places in the file, declarations, and the SELECT that `lamina check` runs.

The texts of a catalog become syntax trees. The oracle's edits (`oracle.py`) are notes on these trees.
"""
