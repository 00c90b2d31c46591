"""The SQL that a refusal offers, with the author's own names.

Refused syntax comes in. The text of a replacement goes out for the message, and no view is made of it.

replacements    for syntax of other systems, and functions that Postgres lacks
distinct_over   for aggregates of DISTINCT values OVER rows
"""
