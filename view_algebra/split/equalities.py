"""Joins of records with records need an equality, because otherwise their cost is unbounded.

An author may list relations in any order, as in FROM a, b, c WHERE a.k = c.k AND b.n = c.n. If two neighbours have no
equality, the relations are reordered so that each has an equality with an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from view_algebra.compiled import source_name
from view_algebra.language.expressions import (
    Call,
    Expr,
    Joined,
    Named,
    Nested,
    Relation,
    Select,
    Stream,
    both,
    conjuncts,
)
from view_algebra.language.walks import (
    aliases_in,
    equates,
    every_relation,
    inputs_of,
    is_of_records,
    relations_in,
)
from view_algebra.refusals import Wrong


def bounded(block: Select) -> Select:
    """The block, reordered if necessary, with an equality in each join of records. Raises if no order has them."""
    joined = _unbounded(block)
    if joined is None:
        return block
    ordered = _reordered(block)
    if _unbounded(ordered) is None:
        return ordered
    way_out = "Add an equality, for example ON a.k = b.k AND …. Or aggregate one side in a subquery, and join that."
    if any(isinstance(part, Call) and part.function == "or" for part in conjuncts(joined.condition)):
        way_out = "Write a SELECT for each side of OR, and UNION between them. Or add an equality to both."
    raise Wrong(joined.place, "a join of records with records needs an equality", way_out)


def _unbounded(block: Select) -> Joined | None:
    return None if block.relation is None else _without_equality(block.relation, list(conjuncts(block.where)))


def _without_equality(relation: Relation, conditions: Sequence[Expr]) -> Joined | None:
    """The first join of records without an equality. `conditions`: those that its rows have to meet."""
    if not isinstance(relation, Joined):
        joins = (_without_equality(below, conditions) for below in inputs_of(relation))
        return next((joined for joined in joins if joined is not None), None)
    own = [*conjuncts(relation.condition), *(conditions if relation.kind in ("INNER", "CROSS") else ())]
    sides = (relation.left, relation.right)
    between_records = all(any(map(gives_records, relations_in(side))) for side in sides)
    if between_records and not _meet(own, *map(aliases_in, sides)):
        return relation
    below = own if relation.kind in ("INNER", "CROSS") else []
    return _without_equality(relation.left, below) or _without_equality(relation.right, below)


def _reordered(block: Select) -> Select:
    """The block with its inner joins ordered so that each relation has an equality with an earlier one, if possible."""
    conditions = list(conjuncts(block.where))
    relations = list(_inner(block.relation, conditions)) if block.relation is not None else []
    if any(not isinstance(side, Named) or (isinstance(side, Nested) and side.lateral) for side in relations):
        return block  # its rows depend on the order
    remaining, ordered = relations[1:], relations[:1]
    while remaining:
        before = set().union(*map(aliases_in, ordered))
        met = (n for n, other in enumerate(remaining) if _meet(conditions, before, aliases_in(other)))
        ordered.append(remaining.pop(next(met, 0)))
    joined = reduce(lambda one, other: Joined(one, other, "CROSS", None, place=block.place), ordered)
    return replace(block, relation=joined, where=reduce(both, conditions, None))


def _inner(relation: Relation, conditions: list[Expr]) -> Iterator[Relation]:
    """The relations of nested inner joins. Adds the conditions of the joins to `conditions`."""
    if isinstance(relation, Joined) and relation.kind in ("INNER", "CROSS"):
        yield from _inner(relation.left, conditions)
        yield from _inner(relation.right, conditions)
        conditions += conjuncts(relation.condition)
    else:
        yield relation


def gives_records(relation: Relation) -> bool:
    """True if the relation has a row per record of a stream. Tables, which may be small, do not count."""
    if isinstance(relation, Nested):
        below = every_relation(relation.query) if not relation.lateral and is_of_records(relation.query) else ()
        return any(map(gives_records, below))
    return isinstance(relation, Stream) and source_name(relation.source) == relation.source


def _meet(conditions: Sequence[Expr], left: set[str], right: set[str]) -> bool:
    """True if the conditions imply an equality between the left and the right side."""
    return any(equates(part, left, right) for condition in conditions for part in _implied(condition))


def _implied(condition: Expr) -> set[Expr]:
    """The conditions that a condition implies: (a AND b) OR (a AND c) implies a."""
    if isinstance(condition, Call) and condition.function == "or":
        branches = ({term for part in conjuncts(branch) for term in _implied(part)} for branch in condition.arguments)
        return set.intersection(*branches)
    return {condition}
