"""Spark SQL of aggregate calls, for the edits of the SELECT that `lamina check` runs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from view_algebra.language.types import DOUBLE, FLOAT, Type
from view_algebra.typed.scopes import Scope


def filter_of(call: exp.Expr) -> exp.Filter | None:
    """The FILTER around a call."""
    return call.parent if isinstance(call.parent, exp.Filter) else None


def with_filter(call: exp.Expr) -> exp.Expr:
    """The syntax that an edit of a call replaces: the call, or the FILTER around it."""
    return filter_of(call) or call


def operand(scope: Scope, node: exp.Expr) -> str:
    """The text of an expression in Spark SQL, in parentheses unless IS NOT NULL can follow it directly."""
    alone = isinstance(node, (exp.Column, exp.Literal, exp.Anonymous, exp.Cast, exp.Paren))
    return scope.edited_sql(node) if alone else f"({scope.edited_sql(node)})"


def and_filter(scope: Scope, call: exp.Expr) -> str:
    """The condition of a call's FILTER after another condition. Empty without a FILTER."""
    filter_ = filter_of(call)
    return "" if filter_ is None else f" AND ({scope.edited_sql(filter_.expression.this)})"


def filter_clause(scope: Scope, call: exp.Expr) -> str:
    """The FILTER after a call. Empty without one."""
    filter_ = filter_of(call)
    return "" if filter_ is None else f" FILTER (WHERE {scope.edited_sql(filter_.expression.this)})"


def one_zero(value: str, kind: Type) -> str:
    """A value in Spark SQL. The fractions 0.0 and -0.0 become one value."""
    return f"CASE WHEN {value} = 0 THEN CAST(0 AS {kind.spark}) ELSE {value} END" if kind in (DOUBLE, FLOAT) else value


def sorted_by(order: str, value: str, counts: str) -> str:
    """The values for which `counts` holds, in Spark SQL, each in a struct with its sort keys."""
    return f"array_sort(collect_list(CASE WHEN {counts} THEN struct({order}, {value} AS v) END))"


def in_turn(structs: str, value: str = "s.v") -> str:
    """The values in the list that `sorted_by` returns, in its order."""
    return f"transform({structs}, s -> {value})"


def joined_texts(scope: Scope, structs: str, texts: str, between: Sequence[exp.Expr]) -> str:
    """Texts joined into one, in Spark SQL, or NULL if there are none, as with listagg()."""
    separator = scope.edited_sql(between[0]) if between else "''"
    return f"CASE WHEN size({structs}) > 0 THEN array_join({texts}, {separator}) END"
