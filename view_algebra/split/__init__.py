"""Splits a view: its innermost blocks over sources become leaves, the cell tables in the making.

A typed query becomes the same query over cell tables, and the leaves. Versions of a table and joins as of a time are
SQL over records, so every leaf reads the records of one stream.
"""
