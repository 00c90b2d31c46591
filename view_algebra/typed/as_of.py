"""`JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON …`: the version of a row that held at a time.

A version holds from its time until that of the next one of its key, be it of the same time, which leaves it none. What
is joined are the versions, each with these two times; a deletion ends the one before it, and is none itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from view_algebra.compiled import DELETED, LOG_TIME, SNAPSHOT, SOURCE_TIME, TRUNCATES, changes_of
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import Type
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import Scope
from view_algebra.written.declarations import SourceDeclaration
from view_algebra.written.dialect import parsed
from view_algebra.written.placeholders import is_there
from view_algebra.written.tables import Changes, changes, first_known

_TIME = "kafka_time"
"""Stands for the time that the author names."""

_ORDER = "kafka_newness"
"""The time that says which change of a key is newer."""

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
    of = spark_name(alias)
    holds = f"{_TIME} >= {of}.{FROM} AND ({of}.{UNTIL} IS NULL OR {_TIME} < {of}.{UNTIL})"
    subquery = parsed(f"SELECT 1 FROM ({_versions(scope.context.tables[name])}) AS {of}").args["from_"].this
    return subquery, _with_time(parsed(holds), version.expression)


def _versions(table: SourceDeclaration) -> str:
    """The versions of a table's rows, each with the time from which it holds and the one until which it does."""
    of = _with_order(table, changes(table))
    keys = ", ".join(map(of.column, table.unique))
    given = ", ".join(spark_name(name) for name, _ in table.columns)
    rows = ", ".join(
        f"{_as_of_change(name, kind, table, of, keys)} AS {spark_name(name)}" for name, kind in table.columns
    )
    at, until = first_known(of.valid_from), _until(of, keys)
    if table.of_changes:
        until = f"least({until}, {_truncated(table, of)})"
    every = f"SELECT {rows}, {at} AS {FROM}, {until} AS {UNTIL}, {of.deleted} AS {DELETED} FROM {of.from_}{of.where}"
    return f"SELECT {given}, {FROM}, {UNTIL} FROM ({every}) AS every_version WHERE NOT {DELETED}"


def _with_order(table: SourceDeclaration, of: Changes) -> Changes:
    """The changes with one time that orders them: a change that follows a snapshot's row in the log is newer than it.

    Versions that hold from the source's time follow each other in this order, too.
    """
    if table.newest_by != "source":
        return of
    keys = ", ".join(map(of.column, table.unique))
    read_at = f"CASE WHEN {SNAPSHOT} THEN {SOURCE_TIME} END"
    in_the_log = f"ORDER BY {', '.join((LOG_TIME, *of.place))} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    order = f"greatest({first_known(of.order)}, max({read_at}) OVER (PARTITION BY {keys} {in_the_log}))"
    columns = [f"{of.column(name)} AS {spark_name(name)}" for name, _ in table.columns]
    times = [name for name in of.valid_from if name not in dict(table.columns)]
    given = ", ".join((*columns, f"{of.deleted} AS {DELETED}", *times, *of.place, f"{order} AS {_ORDER}"))
    from_ = f"(SELECT {given} FROM {of.from_}{of.where}) AS changes"
    valid_from = (_ORDER,) if of.valid_from[0] == SOURCE_TIME else of.valid_from
    return replace(
        of, from_=from_, where="", deleted=DELETED, moved=frozenset(), order=(_ORDER,), valid_from=valid_from
    )


def _truncated(table: SourceDeclaration, of: Changes) -> str:
    """When a version was truncated; NULL if it was not."""
    time = first_known(table.order)
    truncations = f"FROM {spark_name(changes_of(table.name))} AS truncations WHERE {TRUNCATES}"
    own = ", ".join(f"changes.{spark_name(each)}" for each in of.order)
    return f"(SELECT min({first_known(table.valid_from)}) {truncations} AND {time} > coalesce({own}))"


def _until(of: Changes, keys: str) -> str:
    """Until when a version holds: until the next row's time, or until that of a deletion that is newer.

    Rows follow each other by the times from which they hold, be they delivered late. A deletion has another clock, so
    it ends only what is older by the order of the table: a row that comes back later keeps its own time.
    """
    at, order = first_known(of.valid_from), first_known(of.order)
    if at == order:
        return f"lead({at}) OVER (PARTITION BY {keys} ORDER BY {at}, {', '.join(of.place)})"

    def least_of_later(times: str, by: Sequence[str]) -> str:
        later = f"ORDER BY {', '.join(f'{each} DESC' for each in by)} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        return f"min({times}) OVER (PARTITION BY {keys} {later})"

    next_row = least_of_later(f"CASE WHEN NOT {of.deleted} THEN {at} END", (at, order, *of.place))
    deletion = least_of_later(f"CASE WHEN {of.deleted} THEN {at} END", (order, *of.place))
    return f"least({next_row}, {deletion})"


def _as_of_change(name: str, kind: Type, table: SourceDeclaration, of: Changes, keys: str) -> str:
    """A column as of a change: where the change does not tell it, as of the newest one before that does."""
    there = None if name in table.unique else is_there(name, kind, table.encodings.placeholder)
    if there is None:
        return of.column(name)
    order = ", ".join((first_known(of.order), *of.place))
    told = f"CASE WHEN {there} THEN struct({spark_name(name)} AS told) END"
    until_then = f"ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return f"(last_value({told}) IGNORE NULLS OVER (PARTITION BY {keys} {until_then})).told"


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
    if kind not in ("INNER", "LEFT") or join.args.get("using") or join.args.get("on") is None:
        what = f"{kind} JOIN" if kind not in ("INNER", "LEFT") else "a join without ON"
        raise Wrong(place, f"FOR SYSTEM_TIME AS OF in {what}", "Write JOIN or LEFT JOIN … ON a.k = b.k.")
    if str(table.args["version"].args.get("kind")) != "AS OF" or table.args["version"].name == "VERSION":
        raise Wrong(place, "a version that is not a time", A_TIME)
