"""USING and NATURAL: the columns that a join compares by name, each of which it gives once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from view_algebra.language.expressions import Expr, Field, Place, both
from view_algebra.language.meeting import compare
from view_algebra.language.overloads import call
from view_algebra.language.walks import walk
from view_algebra.refusals import span
from view_algebra.typed.names import Columns, Scope, find, given_once, is_kafkas
from view_algebra.written.oracle import put


def common_columns(left: Mapping[str, Columns], right: str, join: exp.Join, scope: Scope) -> list[exp.Identifier]:
    """The columns of a NATURAL JOIN; those that Kafka gives are not among them, which Spark is told."""
    own = {
        alias: [name for name, _ in columns if not is_kafkas(alias, name, scope)]
        for alias, columns in {**left, right: scope.relations[right]}.items()
    }
    names = {name.lower() for name in own[right]}
    every = dict.fromkeys(name for alias in left for name in own[alias])
    common = [exp.to_identifier(name) for name in every if name.lower() in names]
    if common:
        told = join.copy()
        told.set("method", None)
        told.set("using", [each.copy() for each in common])
        put(join, told)
    return common


def using_condition(kind: str, names: Sequence[exp.Expr], left: Scope, right: str, scope: Scope) -> Expr | None:
    """The condition of a join USING columns, each of which `scope` gives once from then on."""
    on: Expr | None = None
    once: dict[str, Expr] = {}
    for column in names:
        place, key = span(column), column.name.lower()
        a = given_once(column.name, left, place) or find([column.name], left.relations, place)
        b = find([right, column.name], scope.relations, place)
        once[key] = _of_both(kind, a, b, place)
        scope.merged |= {(e.relation, key) for e in (*walk(a), b) if isinstance(e, Field)}
        on = both(on, compare("=", a, b, place))
    scope.using = {**once, **{name: e for name, e in scope.using.items() if name not in once}}
    return on


def _of_both(kind: str, left: Expr, right: Expr, place: Place) -> Expr:
    """The column that a join USING it gives once."""
    match kind:
        case "RIGHT":
            return right
        case "FULL":
            return call("coalesce", [left, right], place)
    return left
