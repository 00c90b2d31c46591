"""FROM, read by clause.

Syntax comes in, and typed relations go out. Each alias of a block means one relation, whose columns have the types that
Spark gives them:

from_clause     streams, views, subqueries, joins, LATERAL
aliases         the aliases of relations and columns
using           JOIN USING, NATURAL JOIN
as_of           FOR SYSTEM_TIME AS OF
join_keys       joins of a text with a number, which are refused
subqueries      scalar subqueries, EXISTS, IN, SEMI and ANTI joins
generators      calls that turn one row into several
constants       rows without records
"""
