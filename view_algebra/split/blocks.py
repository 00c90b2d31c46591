"""Splits a query: its innermost blocks over sources become cell tables, and everything above reads these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from view_algebra.language.aggregates import Part
from view_algebra.language.expressions import Combined, Expr, Query, Select, Stream, Subquery
from view_algebra.language.relations import with_nested
from view_algebra.language.walks import rewrite, rewritten
from view_algebra.split.folding import folded
from view_algebra.split.leaves import Identity, Leaf, hopping_of, identity_of, kept_of, leaf_of, priced
from view_algebra.split.reading import cells_of, over_cells

_Block = Callable[[Select], Select]


def split(query: Query) -> tuple[Query, tuple[Leaf, ...]]:
    """The query with cell tables in place of its innermost blocks, and the leaves of these tables."""
    query = folded(query)
    wanted: dict[Identity, list[Expr | Part]] = {}
    readers: dict[Identity, list[Select]] = {}
    for block in _blocks(query):
        readers.setdefault(identity_of(block), []).append(block)
        kept = wanted.setdefault(identity_of(block), [])
        kept += dict.fromkeys(k for k in kept_of(block) if k not in kept)
        if (hopping := hopping_of(block)) is not None:
            wanted.setdefault(hopping, [])
    leaves = {identity: leaf_of(identity, kept) for identity, kept in wanted.items()}
    leaves |= {identity: priced(leaves[identity], blocks) for identity, blocks in readers.items()}
    order = {identity: number for number, identity in enumerate(leaves)}

    def above(block: Select) -> Select:
        identity, hopping = identity_of(block), hopping_of(block)
        leaf = leaves[identity]
        windows = None if hopping is None else cells_of(leaves[hopping], order[hopping])
        return over_cells(block, leaf, cells_of(leaf, order[identity]), windows)

    return _with_blocks(query, above), tuple(leaves.values())


def _with_blocks(query: Query, block: _Block) -> Query:
    """Applies `block` to every block over a stream, at any depth of the query."""
    if isinstance(query, Combined):
        return replace(query, left=_with_blocks(query.left, block), right=_with_blocks(query.right, block))

    def inner(expression: Expr) -> Expr | None:
        if isinstance(expression, Subquery):
            operand = None if expression.operand is None else rewrite(expression.operand, inner)
            return replace(expression, query=_with_blocks(expression.query, block), operand=operand)
        return None

    query = with_nested(
        rewritten(query, inner), lambda nested: replace(nested, query=_with_blocks(nested.query, block))
    )
    return block(query) if isinstance(query.relation, Stream) else query


def _blocks(query: Query) -> Iterator[Select]:
    blocks: list[Select] = []

    def note(block: Select) -> Select:
        blocks.append(block)
        return block

    _with_blocks(query, note)
    yield from blocks
