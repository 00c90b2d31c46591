"""Rewrites QUALIFY, which Spark lacks, as WHERE around a subquery.

    SELECT k, n FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY n) = 1

becomes

    SELECT k, n
    FROM (SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n) = 1 AS qualified FROM s) AS qualified
    WHERE qualified
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

QUALIFIED = "qualified"
"""The name of the condition's column."""

_AROUND_QUALIFY = ("distinct", "order", "limit", "offset")
"""The clauses that come after QUALIFY."""


def without_qualify(block: exp.Select, names: Sequence[str]) -> exp.Select:
    """Rewrites QUALIFY, which Spark lacks, as WHERE around a subquery. `names`: the block's column names."""
    outer = exp.select(*(exp.column(exp.to_identifier(name, quoted=True)) for name in names))
    outer = outer.from_(qualifying(block).subquery(QUALIFIED)).where(exp.column(QUALIFIED))
    for clause in _AROUND_QUALIFY:
        if block.args.get(clause) is not None:
            outer.set(clause, block.args[clause].copy())
    return outer


def qualifying(block: exp.Select) -> exp.Select:
    """A block without QUALIFY and the clauses after it, with the condition as a further column."""
    inner = block.copy()
    condition = block.args["qualify"].this.copy().transform(unaliased(block))
    for clause in ("qualify", *_AROUND_QUALIFY):
        inner.set(clause, None)
    inner.append("expressions", exp.alias_(condition, QUALIFIED))
    return inner


def unaliased(block: exp.Select) -> Callable[[exp.Expr], exp.Expr]:
    """Returns the rewriting of an output's name to its expression."""
    named = {item.alias.lower(): item.this for item in block.expressions if isinstance(item, exp.Alias)}

    def unaliased(node: exp.Expr) -> exp.Expr:
        simple = isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier)
        if not simple or node.name.lower() not in named:
            return node
        meant = named[node.name.lower()].copy()
        return exp.Paren(this=meant) if isinstance(meant, (exp.Binary, exp.Unary, exp.Predicate)) else meant

    return unaliased
