"""Lists and texts of them as Spark SQL spells them, for the SELECT that Spark runs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from view_algebra.written.oracle import written


def operand(node: exp.Expr) -> str:
    """What stands before IS NOT NULL, in Spark SQL."""
    alone = isinstance(node, (exp.Column, exp.Literal, exp.Anonymous, exp.Cast, exp.Paren))
    return written(node) if alone else f"({written(node)})"


def of_filter(filter_: exp.Filter | None, before: str = " AND (", after: str = ")") -> str:
    """The condition of a FILTER in Spark SQL, empty where there is none."""
    return "" if filter_ is None else f"{before}{written(filter_.expression.this)}{after}"


def sorted_by(order: str, value: str, counts: str) -> str:
    """The values for which `counts` holds, in Spark SQL, each with what it is ordered by."""
    return f"array_sort(collect_list(CASE WHEN {counts} THEN struct({order}, {value} AS v) END))"


def in_turn(found: str, value: str = "s.v") -> str:
    """The values of what `sorted_by` gives, one after the other."""
    return f"transform({found}, s -> {value})"


def joined_texts(found: str, texts: str, between: Sequence[exp.Expr]) -> str:
    """Texts as one, in Spark SQL; of none that were found it is NULL, as with listagg()."""
    separator = written(between[0]) if between else "''"
    return f"CASE WHEN size({found}) > 0 THEN array_join({texts}, {separator}) END"
