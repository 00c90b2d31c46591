"""Limits on a query's size before it is resolved: its depth, and the number of relations that it reads."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from view_algebra.refusals import Wrong, span

DEEPEST = 2_000
"""Most nested expressions. A sum of as many terms compiles in a few seconds; Spark's parser accepts fewer."""

MOST_RELATIONS = 256
"""Most relations that a view reads once all CTEs are inlined. As many compile in a few seconds."""


def refuse_large(select: exp.Expr) -> None:
    """Raises `Wrong` for a query that would take minutes to compile."""
    level, depth = [select], 0
    while level:
        level, depth = [child for node in level for child in node.iter_expressions()], depth + 1
        if depth > DEEPEST:
            way_out = "Compute parts of it in subqueries, and write many comparisons with OR as IN (…)."
            raise Wrong(
                span(level[0]) if level else None, f"more than {DEEPEST:,} expressions within each other", way_out
            )
    _bounded(_relations(select, {}), select)


def _relations(node: exp.Expr, counts: Mapping[str, int]) -> int:
    """The number of relations that a query reads; `counts`: the same number for the CTEs that it may name."""
    with_ = node.args.get("with_")
    if with_ is not None:
        counts = dict(counts)
        for cte in with_.expressions:
            counts[cte.alias.lower()] = _bounded(_relations(cte.this, counts), cte)
    total, left = 0, [child for child in node.iter_expressions() if child is not with_]
    while left:
        part = left.pop()
        if part.args.get("with_") is not None:
            total += _relations(part, counts)
            continue
        if isinstance(part, exp.Table):
            total += counts.get(part.name.lower(), 1) if not part.args.get("db") else 1
        left.extend(part.iter_expressions())
    return total


def _bounded(total: int, node: exp.Expr) -> int:
    if total > MOST_RELATIONS:
        name = node.alias if isinstance(node, exp.CTE) else "the view"
        what = f"{name} reads {total:,} relations once each CTE stands where it is named"
        way_out = (
            f"Declare a CTE that is named several times as a view of its own; {MOST_RELATIONS} relations are the most."
        )
        raise Wrong(span(node), what, way_out)
    return total
