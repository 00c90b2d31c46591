"""The author's text: syntax with its places in the file, and declarations.

The texts of a catalog become syntax trees, which nothing writes to once they are declared. The edits for the SELECT
that `lamina check` runs are values (`edits.py`), which are applied to a copy.
"""
