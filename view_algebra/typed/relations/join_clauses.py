"""The clauses of a join: USING and NATURAL, FOR SYSTEM_TIME AS OF, and texts that meet numbers.

USING and NATURAL JOIN compare columns by name, and each pair becomes one column.

`JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON …` joins all versions of a table, each with two times: a version holds
from its time until that of the next version of its key. If both have the same time, the first never holds. A deletion
ends the version before it, and is not a version.

Joins of a text with a number are refused. Spark would read the text as a number, and a text that is not a number
matches nothing: a key declared with the wrong type would silently give a view without rows. The author writes the cast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from view_algebra.compiled import changes_name
from view_algebra.language.expressions import (
    Call,
    Expr,
    Field,
    Joined,
    Nested,
    Place,
    Read,
    Select,
    Stream,
    both,
    conjuncts,
)
from view_algebra.language.meeting import compare
from view_algebra.language.overloads import call
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import STRING
from view_algebra.language.walks import relations_in, walk
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import find, merged_column
from view_algebra.typed.scopes import Columns, Scope, is_kafkas
from view_algebra.written.dialect import parsed
from view_algebra.written.tables import FROM, UNTIL, versions

A_TIME = "Name the time of an event: FOR SYSTEM_TIME AS OF o.ts."

_TIME = "kafka_time"
"""The placeholder of the author's time."""


def common_columns(left: Mapping[str, Columns], right: str, join: exp.Join, scope: Scope) -> list[exp.Identifier]:
    """The columns of a NATURAL JOIN, without Kafka's. Spark gets them as USING."""
    own = {
        alias: [name for name, _ in columns if not is_kafkas(alias, name, scope)]
        for alias, columns in {**left, right: scope.relations[right]}.items()
    }
    names = {name.lower() for name in own[right]}
    every = dict.fromkeys(name for alias in left for name in own[alias])
    common = [exp.to_identifier(name) for name in every if name.lower() in names]
    if common:
        with_using = scope.edits.copy(join)
        with_using.set("method", None)
        with_using.set("using", [column.copy() for column in common])
        scope.edits.put(join, with_using)
    return common


def using_condition(
    kind: str, names: Sequence[exp.Expr], left: Scope, right: str, scope: Scope
) -> tuple[Expr | None, Scope]:
    """The condition of a join USING columns, and the scope with the merged columns."""
    on: Expr | None = None
    once: dict[str, Expr] = {}
    merged = set(scope.merged)
    for column in names:
        place, key = span(column), column.name.lower()
        a = merged_column(column.name, left, place) or find([column.name], left.relations, place)
        b = find([right, column.name], scope.relations, place)
        once[key] = _column_of_both(kind, a, b, place)
        merged |= {(e.relation, key) for e in (*walk(a), b) if isinstance(e, Field)}
        on = both(on, compare("=", a, b, place))
    using = {**once, **{name: e for name, e in scope.using.items() if name not in once}}
    return on, replace(scope, using=using, merged=frozenset(merged))


def _column_of_both(kind: str, left: Expr, right: Expr, place: Place) -> Expr:
    """The merged column of a join USING it."""
    match kind:
        case "RIGHT":
            return right
        case "FULL":
            return call("coalesce", [left, right], place)
    return left


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
    if str(table.args["version"].args.get("kind")) != "AS OF" or table.args["version"].name == "VERSION":
        raise Wrong(place, "FOR SYSTEM_TIME AS OF takes a time", A_TIME)


def refuse_texts_that_meet_numbers(block: Select) -> None:
    """Refuses `text = number` between two relations in ON, USING or WHERE."""
    relations = list(relations_in(block.relation))
    named = {relation.alias for relation in relations if isinstance(relation, (Stream, Read, Nested))}
    for clause in (*(relation.condition for relation in relations if isinstance(relation, Joined)), block.where):
        for part in () if clause is None else conjuncts(clause):
            if isinstance(part, Call) and part.function in ("=", "<=>"):
                left, right = part.arguments
                _refuse_reading(part, left, right, named)
                _refuse_reading(part, right, left, named)


def _refuse_reading(equality: Call, text: Expr, number: Expr, named: set[str]) -> None:
    """Refuses an equality that reads the text of one relation as a number to compare it with another relation's."""
    if _without_cast(text).type != STRING or not text.type.numeric:
        return
    of_text, of_number = (_relations(side) & named for side in (text, number))
    if of_text and of_number and of_text.isdisjoint(of_number):
        kind = _without_cast(number).type
        raise Wrong(
            equality.place,
            f"a join does not compare STRING with {kind}",
            f"Write CAST(… AS {kind}) around the text. A text that is not a number then matches nothing."
            f" Or declare its column as {kind}.",
        )


def _without_cast(side: Expr) -> Expr:
    """One side of an equality as its author wrote it."""
    return side.arguments[0] if isinstance(side, Call) and side.function == "cast" and side.implicit else side


def _relations(expression: Expr) -> set[str]:
    """The relations of the block whose columns an expression names."""
    return {part.relation for part in walk(expression) if isinstance(part, Field) and not part.outer}
