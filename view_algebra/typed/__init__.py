"""The meaning of a SELECT: every name is resolved, every type known, and every order that decides something total.

Syntax trees come in, and the typed queries of `language/expressions.py` go out. Read it by clause:

    queries         a query, and a block clause by clause
    set_operations  UNION, INTERSECT, EXCEPT
    relations/      FROM, joins, LATERAL, subqueries, rows without records
    outputs         SELECT: its columns and their names
    natural_names   the names that Spark gives to columns without one
    grouping        GROUP BY: its keys and grouping sets
    windows_of_rows hopping windows and sessions without panes
    expressions/    expressions over one row, and their guards
    aggregation/    aggregates, and functions OVER rows
    nested_keys     GROUP BY structs and lists
    order/          unique keys, the order of events, and ties
    scopes, names   what a clause can name, and the columns and fields that names mean
    spark_refuses   SQL that Spark refuses
"""
