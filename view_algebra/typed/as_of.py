"""`JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON …`: the version of a row that held at a time.

A version holds from its time until that of the next one of its key, be it of the same time, which leaves it none. What
is joined are the versions, each with these two times; a deletion ends the one before it, and is none itself.
"""

from __future__ import annotations

from sqlglot import exp

from view_algebra.compiled import DELETED, MOVED_FROM, changes_of
from view_algebra.language.quoting import spark_name
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import Scope
from view_algebra.written.dialect import parsed
from view_algebra.written.tables import changes

_TIME = "kafka_time"
"""Stands for the time that the author names."""

HOLDS = FROM, UNTIL = "kafka_from", "kafka_until"
"""When a version begins to hold, and when the next one does: no names of declared columns, unknown to the author."""


def versions_of(join: exp.Join, kind: str, scope: Scope) -> tuple[exp.Subquery, exp.Expr] | None:
    """The versions of the table that a join names as of a time, and the condition on them; None for any other join."""
    table = join.this
    version = table.args.get("version") if isinstance(table, exp.Table) else None
    if version is None:
        return None
    name, alias = table.name.lower(), (table.alias or table.name).lower()
    _refuse(join, kind, name, scope)
    columns = [column for column, _ in scope.context.views[name]]
    key = sorted(next(iter(scope.context.keys[name])))
    moves = any(column == MOVED_FROM for column, _ in scope.context.streams[changes_of(name)])
    told = changes(name, key, moves=moves)
    keys = ", ".join(map(told.column, key))
    at = f"coalesce({spark_name(scope.context.times[changes_of(name)] or '')}, kafka_timestamp)"
    given = ", ".join(map(spark_name, columns))
    rows = ", ".join(f"{told.column(column)} AS {spark_name(column)}" for column in columns)
    next_one = f"lead({at}) OVER (PARTITION BY {keys} ORDER BY {at}, {told.place})"
    every = f"SELECT {rows}, {at} AS {FROM}, {next_one} AS {UNTIL}, {told.deleted} AS {DELETED} FROM {told.from_}"
    versions = f"SELECT {given}, {FROM}, {UNTIL} FROM ({every}) AS every_version WHERE NOT {DELETED}"
    of = spark_name(alias)
    holds = f"{_TIME} >= {of}.{FROM} AND ({of}.{UNTIL} IS NULL OR {_TIME} < {of}.{UNTIL})"
    subquery = parsed(f"SELECT 1 FROM ({versions}) AS {of}").args["from_"].this
    return subquery, _with_time(parsed(holds), version.expression)


def _with_time(holds: exp.Expr, time: exp.Expr) -> exp.Expr:
    """A condition on the author's time, which alone has a place in the author's file."""
    for node in holds.walk():
        node.meta.clear()
    for column in [each for each in holds.find_all(exp.Column) if each.name == _TIME]:
        column.replace(exp.paren(time.copy(), copy=False))
    return holds


A_TIME = "Name the time of an event: FOR SYSTEM_TIME AS OF o.ts."


def _refuse(join: exp.Join, kind: str, name: str, scope: Scope) -> None:
    table, context = join.this, scope.context
    place = span(table)
    if changes_of(name) not in context.streams:
        what = "a stream" if name in context.streams else "a view" if name in context.views else "not a table"
        raise Wrong(place, f"FOR SYSTEM_TIME AS OF: {name} is {what}", "Name a source with a PRIMARY KEY.")
    if context.times[changes_of(name)] is None:
        way_out = f"Declare {name} with TBLPROPERTIES ('event_time' = '…')."
        raise Wrong(place, f"FOR SYSTEM_TIME AS OF: {name} has no time", way_out)
    if kind not in ("INNER", "LEFT") or join.args.get("using") or join.args.get("on") is None:
        what = f"{kind} JOIN" if kind not in ("INNER", "LEFT") else "a join without ON"
        raise Wrong(place, f"FOR SYSTEM_TIME AS OF in {what}", "Write JOIN or LEFT JOIN … ON a.k = b.k.")
    if str(table.args["version"].args.get("kind")) != "AS OF" or table.args["version"].name == "VERSION":
        raise Wrong(place, "a version that is not a time", A_TIME)
