"""Joins of records with records: of what is not bounded by an equality, the cost is without bound, too.

An author may list relations in any order, as FROM a, b, c WHERE a.k = c.k AND b.n = c.n. Where two neighbours have no
equality, they are put in an order in which each has one with a relation before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from view_algebra.compiled import source_of
from view_algebra.language.blocks import is_of_records
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
from view_algebra.language.relations import aliases_in, inputs_of, relations_in
from view_algebra.language.walks import every_relation, relations_named
from view_algebra.refusals import Wrong


def bounded(block: Select) -> Select:
    """A block, each of whose joins of records with records has an equality; raises where no order of them has."""
    found = _unbounded(block)
    if found is None:
        return block
    ordered = _in_order(block)
    if _unbounded(ordered) is None:
        return ordered
    way_out = "Add an equality, for example ON a.k = b.k AND …; or aggregate one side in a subquery, and join that."
    if any(isinstance(part, Call) and part.function == "or" for part in conjuncts(found.condition)):
        way_out = "Write a SELECT for each side of OR, and UNION between them; or add an equality to both."
    raise Wrong(found.place, "a join of records with records without an equality", way_out)


def _unbounded(block: Select) -> Joined | None:
    return None if block.relation is None else _without_equality(block.relation, list(conjuncts(block.where)))


def _without_equality(relation: Relation, known: Sequence[Expr]) -> Joined | None:
    """The first join for which no equality tells which records to look at; `known` conditions hold of its rows."""
    if not isinstance(relation, Joined):
        found = (_without_equality(below, known) for below in inputs_of(relation))
        return next((each for each in found if each is not None), None)
    own = [*conjuncts(relation.condition), *(known if relation.kind in ("INNER", "CROSS") else ())]
    sides = (relation.left, relation.right)
    of_records = all(any(map(gives_records, relations_in(side))) for side in sides)
    if of_records and not _meet(own, *map(aliases_in, sides)):
        return relation
    below = own if relation.kind in ("INNER", "CROSS") else []
    return _without_equality(relation.left, below) or _without_equality(relation.right, below)


def _in_order(block: Select) -> Select:
    """A block whose inner joins are in an order in which each relation has an equality with one before it, if any."""
    conditions = list(conjuncts(block.where))
    relations = list(_inner(block.relation, conditions)) if block.relation is not None else []
    if any(not isinstance(each, Named) or (isinstance(each, Nested) and each.lateral) for each in relations):
        return block  # which depends on the order
    left, ordered = relations[1:], relations[:1]
    while left:
        known = set().union(*map(aliases_in, ordered))
        number = next((n for n, each in enumerate(left) if _meet(conditions, known, aliases_in(each))), 0)
        ordered.append(left.pop(number))
    joined = reduce(lambda one, other: Joined(one, other, "CROSS", None, place=block.place), ordered)
    return replace(block, relation=joined, where=reduce(both, conditions, None))


def _inner(relation: Relation, conditions: list[Expr]) -> Iterator[Relation]:
    """The relations that inner joins put together; their conditions are added to those in WHERE."""
    if isinstance(relation, Joined) and relation.kind in ("INNER", "CROSS"):
        yield from _inner(relation.left, conditions)
        yield from _inner(relation.right, conditions)
        conditions += conjuncts(relation.condition)
    else:
        yield relation


def gives_records(relation: Relation) -> bool:
    """Does it give a row for each record of a stream? A table, and its versions, may be small."""
    if isinstance(relation, Nested):
        below = every_relation(relation.query) if not relation.lateral and is_of_records(relation.query) else ()
        return any(map(gives_records, below))
    return isinstance(relation, Stream) and source_of(relation.source) == relation.source


def _meet(conditions: Sequence[Expr], left: set[str], right: set[str]) -> bool:
    """Does an equality of something of the left side and something of the right follow from these conditions?"""
    return any(_is_equality(each, left, right) for condition in conditions for each in _implied(condition))


def _implied(condition: Expr) -> set[Expr]:
    """What must hold where a condition does: of (a AND b) OR (a AND c), it is a."""
    if isinstance(condition, Call) and condition.function == "or":
        branches = ({each for part in conjuncts(branch) for each in _implied(part)} for branch in condition.arguments)
        return set.intersection(*branches)
    return {condition}


def _is_equality(condition: Expr, left: set[str], right: set[str]) -> bool:
    if not isinstance(condition, Call) or condition.function not in ("=", "<=>"):
        return False
    named = [relations_named(side) for side in condition.arguments]
    return all(named) and any(one <= left and other <= right for one, other in (named, named[::-1]))
