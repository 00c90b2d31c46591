"""How large a query is, before it is read: how deep it nests, and how many relations it reads."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from view_algebra.refusals import Wrong, span

DEEPEST = 2_000
"""Expressions within each other. A sum of so many terms compiles in a few seconds; Spark's parser takes fewer."""

MOST_RELATIONS = 256
"""Relations that a view reads once each CTE stands where it is named. So many compile in a few seconds."""


def refuse_large(select: exp.Expr) -> None:
    """Raises for a query that would take minutes to compile."""
    level, depth = [select], 0
    while level:
        level, depth = [child for node in level for child in node.iter_expressions()], depth + 1
        if depth > DEEPEST:
            way_out = "Compute parts of it in subqueries, and write many comparisons with OR as IN (…)."
            raise Wrong(
                span(level[0]) if level else None, f"more than {DEEPEST:,} expressions within each other", way_out
            )
    _bounded(_relations(select, {}), select)


def _relations(node: exp.Expr, known: Mapping[str, int]) -> int:
    """How many relations a query reads; `known`: how many each CTE does that it may name."""
    with_ = node.args.get("with_")
    if with_ is not None:
        known = dict(known)
        for cte in with_.expressions:
            known[cte.alias.lower()] = _bounded(_relations(cte.this, known), cte)
    total, left = 0, [child for child in node.iter_expressions() if child is not with_]
    while left:
        part = left.pop()
        if part.args.get("with_") is not None:
            total += _relations(part, known)
            continue
        if isinstance(part, exp.Table):
            total += known.get(part.name.lower(), 1) if not part.args.get("db") else 1
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
