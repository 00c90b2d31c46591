"""Expressions over several rows.

Syntax comes in. Typed calls go out, and edits for `lamina check`:

aggregates      aggregates, WITHIN GROUP
calls           the rules for the arguments of aggregates and time windows
lists           lists in an order of their own, listagg
estimates       approximate aggregates
over            window functions and aggregates OVER rows, and their frames
spelling        Spark SQL of aggregates, for `lamina check`
"""
