"""FOR SYSTEM_TIME AS OF: a join with the version of a table's row that held at a time.

`JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON …` joins all versions of a table, each with two times: a version holds
from its time until that of the next version of its key. If both have the same time, the first never holds. A deletion
ends the version before it, and is not a version.
"""

from __future__ import annotations

from sqlglot import exp

from view_algebra.compiled import changes_name
from view_algebra.language.quoting import spark_name
from view_algebra.refusals import Wrong, span
from view_algebra.typed.scopes import Scope
from view_algebra.written.dialect import parsed
from view_algebra.written.tables import FROM, UNTIL, versions

A_TIME = "Name the time of an event: FOR SYSTEM_TIME AS OF o.ts."

_TIME = "kafka_time"
"""The placeholder of the author's time."""


def versions_of(join: exp.Join, kind: str, scope: Scope) -> tuple[exp.Subquery, exp.Expr] | None:
    """The versions of the table in a join FOR SYSTEM_TIME AS OF, and the condition on them, or None for other joins."""
    table = join.this
    version = table.args.get("version") if isinstance(table, exp.Table) else None
    if version is None:
        return None
    name, alias = table.name.lower(), (table.alias or table.name).lower()
    _refuse_versions(join, kind, name, scope)
    of = spark_name(alias)
    holds = f"{_TIME} >= {of}.{FROM} AND ({of}.{UNTIL} IS NULL OR {_TIME} < {of}.{UNTIL})"
    subquery = parsed(f"SELECT 1 FROM ({versions(scope.context.tables[name])}) AS {of}").args["from_"].this
    return subquery, _with_time(parsed(holds), version.expression)


def _with_time(holds: exp.Expr, time: exp.Expr) -> exp.Expr:
    """A condition on the author's time, the only part with a place in the author's file."""
    for node in holds.walk():
        node.meta.clear()
    for column in [column for column in holds.find_all(exp.Column) if column.name == _TIME]:
        column.replace(exp.paren(time.copy(), copy=False))
    return holds


def _refuse_versions(join: exp.Join, kind: str, name: str, scope: Scope) -> None:
    """Refuses FOR SYSTEM_TIME AS OF unless a table is joined by ON, as INNER or LEFT JOIN."""
    table, context = join.this, scope.context
    place = span(table)
    if changes_name(name) not in context.streams:
        what = "a stream" if name in context.streams else "a view" if name in context.views else "not a table"
        raise Wrong(place, f"FOR SYSTEM_TIME AS OF: {name} is {what}", "Name a source with a PRIMARY KEY.")
    if kind not in ("INNER", "LEFT") or join.args.get("using") or join.args.get("on") is None:
        what = f"{kind} JOIN" if kind not in ("INNER", "LEFT") else "a join without ON"
        raise Wrong(place, f"FOR SYSTEM_TIME AS OF does not go with {what}", "Write JOIN or LEFT JOIN … ON a.k = b.k.")
    version = table.args["version"]
    if str(version.args.get("kind")) != "AS OF" or version.name == "VERSION" or version.expression is None:
        raise Wrong(place, "FOR SYSTEM_TIME AS OF takes a time", A_TIME)
