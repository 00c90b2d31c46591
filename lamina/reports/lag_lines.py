"""Lines about queries whose records nobody is about to count, with the reasons."""

from __future__ import annotations

from lamina.operations.deployment import Deployment
from lamina.services.background import SpeedProcess
from serving_layer.monitoring import delays
from serving_layer.narration import amount
from serving_layer.promise import progress


def is_starting(deployment: Deployment) -> bool:
    """True if the process of an embedded speed layer runs. It may not have begun to read."""
    settings = deployment.settings
    return settings.embedded and SpeedProcess(settings.home).background.find() is not None


def lag_line(name: str, lag: int, waits_for: str) -> str:
    """The line about a query, by the number of its waiting records and the reason."""
    return f"{name} is {amount(lag, 'record')} behind: {waits_for}"


def lag_lines_of_select(deployment: Deployment, query: str) -> list[str]:
    """The lines about the sources of a SELECT. Asks the brokers only if one of these is not keeping up."""
    starting = is_starting(deployment)
    with deployment.database.begin() as connection:
        waiting = {
            name: reason
            for name in delays.sources_of(connection, tables_of(query))
            if (reason := delays.waits_for(connection, name, starting=starting))
        }
        queries = progress.queries(connection)
        reached = {name: progress.read(connection, [name]) for name in waiting}
    lines = []
    for name, reason in waiting.items() if waiting and deployment.brokers.listening() else ():
        if lag := delays.lag(deployment.brokers.latest(queries[name].topic), reached[name]):
            lines.append(lag_line(name, lag, reason))
    return lines


def tables_of(query: str) -> set[str]:
    """The views that a SELECT of Postgres may name: no CTEs, and no relations outside the schema `analytics`.

    Empty if the SELECT cannot be parsed.

    >>> sorted(tables_of('WITH a AS (SELECT * FROM Sales) SELECT * FROM a, analytics.visits, nextweek.carts'))
    ['sales', 'visits']
    >>> tables_of('SELECT * FROM generate_series(1, 3)')
    set()
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(query, read="postgres")
        own = {cte.alias for cte in parsed.find_all(sqlglot.exp.CTE)}
        tables = [table for table in parsed.find_all(sqlglot.exp.Table) if table.db in ("", "analytics")]
        names = [table.this for table in tables if isinstance(table.this, sqlglot.exp.Identifier)]  # not functions
        return {name.name if name.quoted else name.name.lower() for name in names} - own
    except (SqlglotError, RecursionError):  # Postgres may understand more
        return set()
