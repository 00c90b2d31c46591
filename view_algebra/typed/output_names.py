"""Names and numbers of outputs, elsewhere in the same block: what each stands for, and where Spark has to be told."""

from __future__ import annotations

from sqlglot import exp

from view_algebra.language.aggregates import is_aggregate
from view_algebra.written.oracle import spell, written

_OUTPUT = "lamina_output"
"""The entry of a node's `meta` with what its name stands for, where it is that of another output."""


def spell_in_window(node: exp.Expr) -> None:
    """Notes what an output's name stands for in OVER (…) and in aggregates, where Spark knows no such names."""
    block = node.parent_select
    for item in block.expressions if block is not None else ():
        if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
            node.meta[_OUTPUT] = item.this
            within = node.find_ancestor(exp.Window, exp.Anonymous)
            while isinstance(within, exp.Anonymous) and not is_aggregate(within.name.lower()):
                within = within.find_ancestor(exp.Window, exp.Anonymous)
            if within is not None:
                spell(node, written(_without_names(node)))


def names_an_output(node: exp.Expr) -> bool:
    """Does an output name another one, outside of OVER (…)?"""
    return any(_OUTPUT in part.meta and part.find_ancestor(exp.Window) is None for part in node.walk())


def _without_names(node: exp.Expr) -> exp.Expr:
    """An expression that names no other outputs."""
    if _OUTPUT in node.meta:
        return exp.Paren(this=_without_names(node.meta[_OUTPUT]))
    return node.transform(lambda part: _without_names(part) if _OUTPUT in part.meta else part)


def meant_by(item: exp.Expr, node: exp.Select) -> exp.Expr | None:
    """What a column of GROUP BY is, where a number or an alias stands for it; None where `*` hides that."""
    named = {each.alias.lower(): each.this for each in node.expressions if isinstance(each, exp.Alias)}
    if isinstance(item, exp.Literal):
        columns = [] if any(each.is_star for each in node.expressions) else node.expressions
        return next((each.unalias() for n, each in enumerate(columns, 1) if item.name == str(n)), None)
    simple = isinstance(item, exp.Column) and not item.table
    return named.get(item.name.lower(), item) if simple else item
