"""Refuses clauses that the compiler does not read: every part of the author's text is either served or refused.

A query that is too deep, or reads too many relations, is refused before its names are resolved.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from view_algebra.language.aggregates import aggregate_named
from view_algebra.language.quoting import words
from view_algebra.refusals import Wrong, span
from view_algebra.written.ways_out.replacements import replaced

DEEPEST = 2_000
"""Most nested expressions. A sum of as many terms compiles in a few seconds. Spark's parser accepts fewer."""

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
                span(level[0]) if level else None,
                f"the query has more than {DEEPEST:,} expressions within each other",
                way_out,
            )
    _bounded(_relations(select, {}), select)


def _relations(node: exp.Expr, counts: Mapping[str, int]) -> int:
    """The number of relations that a query reads. `counts`: the same number for the CTEs that it may name."""
    with_ = node.args.get("with_")
    if with_ is not None:
        counts = dict(counts)
        for cte in with_.expressions:
            counts[cte.alias.lower()] = _bounded(_relations(cte.this, counts), cte)
    total, pending = 0, [child for child in node.iter_expressions() if child is not with_]
    while pending:
        part = pending.pop()
        if part.args.get("with_") is not None:
            total += _relations(part, counts)
            continue
        if isinstance(part, exp.Table):
            total += counts.get(part.name.lower(), 1) if not part.args.get("db") else 1
        pending.extend(part.iter_expressions())
    return total


def _bounded(total: int, node: exp.Expr) -> int:
    if total > MOST_RELATIONS:
        name = node.alias if isinstance(node, exp.CTE) else "the view"
        what = f"{name} reads {total:,} relations once each CTE stands where it is named"
        way_out = f"Declare the CTE as a view. A view reads at most {MOST_RELATIONS} relations."
        raise Wrong(span(node), what, way_out)
    return total


_OF_A_QUERY = words("with_ order limit offset")

_READ: dict[type, frozenset[str]] = {
    exp.Select: words("expressions distinct from_ laterals joins where group having qualify windows") | _OF_A_QUERY,
    exp.SetOperation: words("this expression distinct by_name") | _OF_A_QUERY,
    exp.Subquery: words("this alias joins pivots") | _OF_A_QUERY,
    exp.Table: words("this alias db catalog joins version sample pivots"),
    exp.TableAlias: words("this columns"),
    exp.Pivot: words("expressions fields unpivot alias include_nulls columns pivot_column_naming"),
    exp.Values: words("expressions alias"),
    exp.With: words("expressions recursive"),
    exp.CTE: words("this alias"),
    exp.Join: words("this on side kind using method"),
    exp.Lateral: words("this view outer alias"),
    exp.Group: words("expressions grouping_sets cube rollup all"),
    exp.Order: words("expressions"),
    exp.Ordered: words("this desc nulls_first"),
    exp.Limit: words("expression"),
    exp.Offset: words("expression"),
    exp.Fetch: words(""),
    exp.Distinct: words("expressions on"),
    exp.Star: words("except_"),
    exp.Column: words("this table db catalog"),
    exp.Window: words("this partition_by order spec alias over"),
    exp.WindowSpec: words("kind start start_side end end_side"),
    exp.Filter: words("this expression"),
    exp.WithinGroup: words("this expression"),
    exp.Between: words("this low high"),
    exp.In: words("this expressions query"),
    exp.Like: words("this expression negate"),
    exp.ILike: words("this expression negate"),
    exp.Cast: words("this to safe"),
    exp.Trim: words("this expression position"),
    exp.Substring: words("this start length"),
    exp.Interval: words("this unit"),
    exp.Placeholder: words(""),
}
"""The parts of each kind of syntax that the resolution of a query reads, or refuses by name."""

_SYNTAX = {
    "locks": "FOR UPDATE",
    "totals": "WITH TOTALS",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY",
    "sample": "TABLESAMPLE",
    "hint": "a hint",
    "limit_options": "LIMIT with PERCENT or TIES",
    "expressions": "LIMIT … BY",
    "replace": "* REPLACE",
    "rename": "* RENAME",
    "symmetric": "BETWEEN SYMMETRIC",
    "field": "IN without parentheses",
    "kind": "CORRESPONDING",
    "this": "LIMIT among arguments",
}
"""The author's words for parts whose names in the syntax tree differ."""

_CLAUSES: dict[type, str] = {
    exp.Fetch: "FETCH",
    exp.Order: "ORDER BY among arguments",
    exp.Placeholder: "a field after a colon",
}
"""The author's words for kinds of syntax, whichever of their parts is not read."""

_INSTEAD: dict[type | str, str] = {
    exp.WindowSpec: "End the frame at another row.",
    exp.Fetch: "Write LIMIT 10.",
    exp.Order: "Write listagg(x, ',') WITHIN GROUP (ORDER BY y), or max_by(x, y).",
    exp.Between: "Write the lower one first.",
    exp.Star: "Name the columns.",
    exp.Cast: "Write CAST(x AS type).",
    exp.Placeholder: "Write get_json_object(x, '$.a') AS a, or x.a of a struct.",
    "field": "Write array_contains(list, x), or x IN (1, 2).",
    "kind": "Select the same columns, in the same order, on both sides.",
    "this": "Write slice(sort_array(collect_list(x)), 1, 3).",
}


def is_list_in_order(node: exp.Expr | None) -> bool:
    """True for array_agg(x ORDER BY y)."""
    arguments = node.expressions if isinstance(node, exp.Anonymous) and not isinstance(node.parent, exp.Window) else []
    ordered = len(arguments) == 1 and isinstance(arguments[0], exp.Order)
    row = aggregate_named(node.name.lower()) if isinstance(node, exp.Anonymous) and ordered else None
    return row is not None and row.collects and row.in_order


def refuse_unread(query: exp.Expr) -> None:
    """Raises `Wrong` for the first part of a query that would be ignored silently."""
    for node in query.walk():
        read = next((_READ[kind] for kind in type(node).__mro__ if kind in _READ), None)
        for name, value in node.args.items():
            if value and read is not None and name not in read and not is_list_in_order(node.parent):
                parts = value if isinstance(value, list) else [value]
                if name == "hint":  # its places count from its own beginning
                    parts = node.expressions
                place = next((at for part in parts if isinstance(part, exp.Expr) and (at := span(part))), None)
                clause = _CLAUSES.get(type(node)) or _SYNTAX.get(name, name.strip("_").upper())
                way_out = _INSTEAD.get(type(node)) or _INSTEAD.get(name, "Leave it out.")
                if isinstance(node, exp.Star) and name == "replace":
                    way_out = f"Write {replaced(node)}."
                around = span(node) or span(node.parent or node)
                raise Wrong(place or around, f"{clause} is not served", way_out)
