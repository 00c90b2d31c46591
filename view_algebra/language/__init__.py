"""The language: types, typed expressions and queries, functions, aggregates and merges.

It knows no catalog. All that it knows about the engines is templates of SQL, in its tables. A module imports those of
lower lines, as a contract in pyproject.toml holds:

    above.py                    the rule for every expression above the cells
    times.py                    intervals, their arithmetic with times, and the clock
    overloads.py                resolves a call to its row in the table of functions
    structs.py time_windows.py  structs in aggregates, and windows as group keys
    functions.py aggregates.py  the tables, with merges.py
    literals.py                 arguments that must be literals
    calendar_bounds.py          keeps times within the years 1 to 9999
    storable.py                 Spark SQL of values that Postgres can store
    operators.py meeting.py     operators, and casts to a common type
    lengths.py walks.py         intervals as numbers, and walks over expressions and blocks
    expressions.py              typed expressions and queries
    long_numbers.py             guards against numbers too long for a DECIMAL
    like_patterns.py            patterns of LIKE as regular expressions
    types.py quoting.py         types, names and texts, with encodings.py and starts.py for sources
    regexes.py                  Java's regular expressions, with endless_regexes.py

Add a function as a row of `functions.py`, an aggregate in `aggregates.py`, and a merge in `merges.py`.
"""
