"""USING and NATURAL JOIN: columns of one name are compared, and each pair becomes one column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from view_algebra.language.expressions import Expr, Field, Place, both
from view_algebra.language.meeting import compare
from view_algebra.language.overloads import call
from view_algebra.language.walks import walk
from view_algebra.refusals import span
from view_algebra.typed.names import find, merged_column
from view_algebra.typed.scopes import Columns, Scope, is_kafkas


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
