"""A column's name in double quotes, which to Spark are those of a text."""

from __future__ import annotations

from sqlglot import exp

from view_algebra.language.aggregates import is_aggregate
from view_algebra.refusals import Wrong, span
from view_algebra.typed.names import Scope
from view_algebra.written.dialect import in_double_quotes


def refuse_quoted_column(node: exp.Literal, scope: Scope) -> None:
    """Raises where a text in double quotes has the name of a column, and stands where a text is of no use."""
    if not in_double_quotes(node) or not _in_the_place_of_a_column(node):
        return
    known = {name.lower(): name for columns in scope.relations.values() for name, _ in columns}
    if (name := known.get(node.name.lower())) is not None:
        what = f'"{node.name}", which to Spark is a text, where a column has this name'
        raise Wrong(span(node), what, f"Write `{name}` for the column, or '{node.name}' for the text.")


def _in_the_place_of_a_column(node: exp.Expr) -> bool:
    item = node.parent if isinstance(node.parent, (exp.Alias, exp.Paren)) else node
    around = item.parent
    if isinstance(around, (exp.Group, exp.Ordered, exp.Cast, *_ARITHMETIC)):
        return True
    if isinstance(around, exp.Select):
        return item.arg_key == "expressions"
    if isinstance(around, exp.Window):
        return item.arg_key == "partition_by"
    if isinstance(around, exp.Anonymous):
        return is_aggregate(around.name.lower()) and len(around.expressions) == 1
    return isinstance(around, _CONDITIONS) and item.arg_key == "this" and not _names_a_column(around)


def _names_a_column(condition: exp.Expr) -> bool:
    return condition.find(exp.Column, exp.Query) is not None


_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_CONDITIONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.In, exp.Between, exp.Is)
