"""Walks over the relations in a FROM, and replacements of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from view_algebra.language.expressions import (
    Cells,
    Constants,
    Exploded,
    Hopped,
    Joined,
    Named,
    Nested,
    Read,
    Relation,
    Select,
    Sessions,
    Stream,
)


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """The relations directly inside one; none for a subquery, which is a separate query."""
    match relation:
        case Stream() | Read() | Constants() | Nested() | Cells():
            return ()
        case Exploded():
            return (relation.relation,)
        case Joined():
            return (relation.left, relation.right)
        case Hopped():
            return (relation.panes, relation.windows)
        case Sessions():
            return (relation.panes,)
        case _:
            assert_never(relation)


def over_inputs(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """A relation with the relations directly inside it replaced; cells stay unchanged."""
    match relation:
        case Stream() | Read() | Constants() | Nested() | Cells() | Hopped() | Sessions():
            return relation
        case Exploded():
            return replace(relation, relation=change(relation.relation))
        case Joined():
            return replace(relation, left=change(relation.left), right=change(relation.right))
        case _:
            assert_never(relation)


def relations_in(relation: Relation | None) -> Iterator[Relation]:
    """A relation and all relations inside it, outermost first, from left to right, but not those inside a subquery."""
    if relation is not None:
        yield relation
        for inner in inputs_of(relation):
            yield from relations_in(inner)


def aliases_in(relation: Relation) -> set[str]:
    """The aliases of the relations inside one."""
    return {inner.alias for inner in relations_in(relation) if isinstance(inner, Named)}


def has_joins(relation: Relation | None) -> bool:
    """True if a FROM joins relations, so that its rows are not records."""
    return any(isinstance(inner, Joined) for inner in relations_in(relation))


def nested_in(relation: Relation | None) -> Iterator[Nested]:
    """The subqueries in a FROM."""
    return (inner for inner in relations_in(relation) if isinstance(inner, Nested))


def over_nested(relation: Relation, change: Callable[[Nested], Nested]) -> Relation:
    """A relation with its subqueries replaced."""
    if isinstance(relation, Nested):
        return change(relation)
    return over_inputs(relation, lambda inner: over_nested(inner, change))


def with_nested(block: Select, change: Callable[[Nested], Nested]) -> Select:
    """A block with the subqueries in its FROM replaced."""
    if (beside := block.keeping.beside) is not None:
        joined = replace(beside, relation=over_nested(beside.relation, change))
        block = replace(block, keeping=replace(block.keeping, beside=joined))
    return block if block.relation is None else replace(block, relation=over_nested(block.relation, change))
