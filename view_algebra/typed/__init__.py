"""The meaning of a SELECT: every name is resolved, every type known, and every order that decides something total.

Syntax trees come in, and the typed queries of `language/expressions.py` go out. Read it by clause:

    queries         a query, and a block clause by clause
    relations       FROM: streams, views, subqueries, VALUES, joins, LATERAL
    using, as_of    JOIN … USING, joins with the versions of a table
    join_keys       joins of a text with a number, which are refused
    outputs         SELECT: its columns and their names
    set_operations  UNION, INTERSECT, EXCEPT
    grouping        GROUP BY: grouping sets, windows of time, sessions
    scalars         expressions: a reader for each kind of node
    casts, likes    CAST, LIKE
    guards          guards for values that Spark or Postgres lacks
    sugar           functions that rewrite to others
    aggregates      aggregates, WITHIN GROUP
    lists           lists in an order of their own, listagg
    estimates       approximate aggregates
    spelling        Spark SQL of aggregates, for `lamina check`
    over            window functions and aggregates OVER rows, and their frames
    calls           the rules for the arguments of aggregates and time windows
    generators      calls that turn one row into several
    subqueries      scalar subqueries, EXISTS, IN, SEMI and ANTI joins
    names           columns and the fields inside them
    aliases         the aliases of relations and columns in FROM
    natural_names   the names that Spark gives to columns without one
    nested          structs, maps and lambdas
    constants       rows without records
    keys, events, ties    the order of rows: unique keys, the order of events, ties broken by the rest of a key
    spark_refuses   SQL that Spark refuses
"""
