"""FROM, read by clause.

Syntax comes in, and typed relations go out:

from_clause     streams, views, subqueries, joins, LATERAL
aliases         the aliases of relations and columns
join_clauses    USING and NATURAL, FOR SYSTEM_TIME AS OF, texts that meet numbers
subqueries      scalar subqueries, EXISTS, IN, SEMI and ANTI joins
generators      calls that turn one row into several
constants       rows without records
"""
