"""The order of rows.

Typed relations come in. Keys and orders go out, and edits for `lamina check`. An order that decides a result leaves no
ties, or `incomplete_orders` reports it.

literal_rows    rows of literals, and the columns that tell them apart
keys            columns that no two rows share, the order of a relation, and orders that leave ties
events          the order of records in the log, and subqueries that pass it on
ties            ORDER BY and LIMIT, extended by a key
"""
