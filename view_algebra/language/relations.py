"""What stands in a FROM: the relations inside a relation, and a relation with those inside it replaced."""

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
    """The relations directly inside one; of a subquery none, which is a query of its own."""
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
    """A relation with what is directly inside it replaced; cells stay what they are."""
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
    """A relation and all inside it, outermost first, from left to right; of a subquery, the subquery alone."""
    if relation is not None:
        yield relation
        for inner in inputs_of(relation):
            yield from relations_in(inner)


def aliases_in(relation: Relation) -> set[str]:
    """What the relations inside one are called."""
    return {each.alias for each in relations_in(relation) if isinstance(each, Named)}


def has_joins(relation: Relation | None) -> bool:
    """Does a FROM join relations? Its rows are then no records."""
    return any(isinstance(each, Joined) for each in relations_in(relation))


def nested_in(relation: Relation | None) -> Iterator[Nested]:
    """The subqueries that stand in a FROM."""
    return (each for each in relations_in(relation) if isinstance(each, Nested))


def over_nested(relation: Relation, change: Callable[[Nested], Nested]) -> Relation:
    """A relation with the subqueries that stand in it replaced."""
    if isinstance(relation, Nested):
        return change(relation)
    return over_inputs(relation, lambda inner: over_nested(inner, change))


def with_nested(block: Select, change: Callable[[Nested], Nested]) -> Select:
    """A block with the subqueries in its FROM replaced."""
    if (beside := block.keeping.beside) is not None:
        joined = replace(beside, relation=over_nested(beside.relation, change))
        block = replace(block, keeping=replace(block.keeping, beside=joined))
    return block if block.relation is None else replace(block, relation=over_nested(block.relation, change))
