"""Analysts: the views that they read, their rights and limits, their receipts.

In: the SELECTs that the compiler wrote over cells (`final`), and logins. Out: plain SQL views in schema `analytics`,
and receipts of what they showed. The promise: a reader sees one snapshot, changes nothing, and delays no micro-batch.
"""
