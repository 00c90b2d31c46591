"""Expressions over several rows.

Syntax comes in. Typed calls go out, and edits for `lamina check`. A call that depends on the order of its rows gets the
order of events, or says that it needs the records.

aggregates      aggregates, WITHIN GROUP
calls           the rules for the arguments of aggregates and time windows
lists           lists in an order of their own, listagg
estimates       approximate aggregates
over            window functions and aggregates OVER rows, and their frames
spelling        Spark SQL of aggregates, for `lamina check`
"""
