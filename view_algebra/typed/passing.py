"""A subquery of records passes on when each was and where it is in the log, though its author did not select that.

Only so is there an order of events above it, for `last(x)` and for ties. Spark is told the same where it runs the
author's SELECT; `*` means what the author has selected all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeGuard

from view_algebra.compiled import changes_of, source_of
from view_algebra.language.aggregates import EVENT_ORDER
from view_algebra.language.expressions import (
    Combined,
    Constant,
    Expr,
    Field,
    Joined,
    Nested,
    Output,
    Query,
    Relation,
    Select,
    Stream,
    Windowed,
)
from view_algebra.language.relations import has_joins, over_nested, relations_in
from view_algebra.language.types import INT
from view_algebra.language.walks import above_group, walk
from view_algebra.written.oracle import append_output, appended
from view_algebra.written.tables import first_known

PASSED = ("kafka_time", "kafka_partition", "kafka_offset")
"""What is passed on. No name of a declared column begins like these, and `*` leaves them out."""

_MORE = "kafka_order_"
"""Begins the names of what the rows of a join pass on beside these."""

Order = tuple[tuple[str, ...], tuple[Expr, ...]]
"""Keys, as Spark SQL and as expressions."""

EventOrder = Callable[[Relation], tuple[Relation, Order] | None]
"""What puts the rows of a stream, or of a join, in one order, and the same relation, passing on what that names."""


def passed_by(query: Query) -> tuple[str, ...]:
    """The names of what a subquery passes on, in the order in which they put its rows."""
    names = {name.lower(): name for name, _ in query.columns}
    more = (name for name, _ in query.columns if name.startswith(_MORE))
    return (*(names[name] for name in PASSED if name in names), *more)


def passed_by_table(order: Sequence[str]) -> dict[str, str]:
    """What a row of a table passes on: the time by which its newest record is that, and where it is in the log."""
    return dict(zip(PASSED, (first_known(order), *EVENT_ORDER[1:]), strict=True))


def passes_on(query: Query) -> bool:
    """Is it a table that passes on where its records are?"""
    named = set(PASSED) <= {name for name, _ in query.columns}
    return named and isinstance(query, Select) and any(map(_is_of_changes, relations_in(query.relation)))


def _is_of_changes(relation: Relation) -> bool:
    return isinstance(relation, Stream) and changes_of(source_of(relation.source)) == relation.source


def is_of_records(query: Query, windows: bool = True) -> bool:
    """Is a row of it a record, whatever window functions, where they may be, have computed beside it?"""
    if not is_of_rows(query, windows):
        return False
    below = query.relation
    return isinstance(below, Stream) or (isinstance(below, Nested) and is_of_records(below.query, windows))


def is_of_rows(query: Query, windows: bool = True) -> TypeGuard[Select]:
    """Is a row of it a row of what it reads?"""
    if not isinstance(query, Select) or query.group is not None or query.distinct:
        return False
    return query.limit is None and query.offset is None and (windows or not has_windows(query))


def is_in_order(query: Query, windows: bool = True) -> bool:
    """Is a row of it a record, or the newest one of a table's key? Or of a join, or a UNION ALL, of these?"""
    if passes_on(query):
        return True
    if isinstance(query, Combined):
        plain = query.operator == "UNION ALL" and query.limit is None and query.offset is None
        return plain and is_in_order(query.left, windows) and is_in_order(query.right, windows)
    below = query.relation if is_of_rows(query, windows) else None
    return isinstance(below, (Stream, Joined)) or (isinstance(below, Nested) and is_in_order(below.query, windows))


def is_projection(query: Query) -> bool:
    """A SELECT … WHERE over records, or over such a SELECT, and nothing else: a row is a record."""
    return is_of_records(query, windows=False)


def has_windows(query: Select) -> bool:
    """Does a block compute window functions?"""
    return any(isinstance(part, Windowed) for each in above_group(query) for part in walk(each))


def passing_on(query: Query, order: EventOrder) -> Query | None:
    """A query of rows that are in order, which gives that order as well, in its syntax, too; None where it cannot."""
    if isinstance(query, Combined):
        return _united(query, order, count())
    if passes_on(query):
        return query
    names = {output.name.lower() for output in query.outputs}
    if query.syntax is None:
        return None
    if appended(query.syntax) and set(PASSED) <= names:
        return query
    relation = query.relation
    if isinstance(relation, Nested):
        below = passing_on(relation.query, order)
        if below is None:
            return None
        relation, given = replace(relation, query=below), passed_by(below)
        kinds = dict(below.columns)
        texts, passed = given, tuple[Expr, ...](Field(relation.alias, (name,), kinds[name]) for name in given)
    else:
        assert isinstance(relation, (Stream, Joined))
        found = order(relation)
        if found is None:
            return None
        relation, (texts, passed) = found
    given = (*PASSED, *(f"{_MORE}{number}" for number in range(len(texts) - len(PASSED))))
    own = {output.name.lower(): output.expression for output in query.outputs}
    if any(name in own and own[name] != e for name, e in zip(given, passed, strict=True)):
        return None  # something else that its author calls so
    more = [each for each in zip(given, texts, passed, strict=True) if each[0] not in own]
    for name, text, _ in more:
        append_output(query.syntax, text, name)
    return replace(query, relation=relation, outputs=(*query.outputs, *(Output(name, e) for name, _, e in more)))


def _united(query: Query, order: EventOrder, sides: Iterator[int]) -> Query | None:
    """A side of a UNION ALL says which one it is, too: records of several streams may be of one time and offset."""
    if isinstance(query, Combined):
        left, right = _united(query.left, order, sides), _united(query.right, order, sides)
        if left is None or right is None or [kind for _, kind in left.columns] != [kind for _, kind in right.columns]:
            return None
        if _places(left) != _places(right):  # an author has put one of these among other columns
            return None
        return replace(query, left=left, right=right, columns=left.columns)
    given, side = passing_on(query, order), str(next(sides))
    if not isinstance(given, Select) or given.syntax is None or len(passed_by(given)) != len(PASSED):
        return None
    append_output(given.syntax, side, f"{_MORE}0")
    return replace(given, outputs=(*given.outputs, Output(f"{_MORE}0", Constant(side, INT))))


def _places(query: Query) -> list[int]:
    names = [name for name, _ in query.columns]
    return [names.index(name) for name in passed_by(query)]


def reading_passed(relation: Relation, passed: Mapping[str, Query]) -> Relation:
    """What a block reads, with the subqueries that pass on, by alias, in their places."""
    return over_nested(relation, lambda each: replace(each, query=passed[each.alias]) if each.alias in passed else each)


def reads_records(relation: Relation | None) -> bool:
    """Are rows of a relation records, or made of some without an aggregation or a join between?"""
    return not has_joins(relation) and any(
        isinstance(each, Stream) or (isinstance(each, Nested) and _gives_records(each.query))
        for each in relations_in(relation)
    )


def _gives_records(query: Query) -> bool:
    if not isinstance(query, Select) or query.group is not None or query.distinct:
        return False
    every = query.limit is None and query.offset is None
    return every and not has_windows(query) and reads_records(query.relation)
