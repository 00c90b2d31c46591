"""Projections over a stream, folded into the block that reads them: below an aggregation stands a stream alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from view_algebra.language.blocks import is_projection
from view_algebra.language.expressions import (
    Aggregate,
    Combined,
    Exploded,
    Expr,
    Field,
    Generator,
    Nested,
    Query,
    Relation,
    Select,
    Stream,
    Subquery,
    both,
    conjuncts,
)
from view_algebra.language.fields import VARIABLE, member
from view_algebra.language.relations import with_nested
from view_algebra.language.time_windows import is_session, window_key
from view_algebra.language.walks import above_group, decided, has_windows, is_asked, rewrite, rewritten
from view_algebra.split.distinct import over_values
from view_algebra.split.filters import by_filters
from view_algebra.split.joins import of_rows
from view_algebra.split.newest import of_newest
from view_algebra.split.panes import by_end
from view_algebra.split.sequences import with_bounded_sequences
from view_algebra.typed.names import neither


def folded(query: Query) -> Query:
    """The same rows, read from streams by as few blocks as can be; each of these names the stream's own columns."""
    if isinstance(query, Combined):
        sides = [query.left, query.right]
        if not query.operator.endswith("ALL"):
            sides = [_once(side) for side in sides]
        return replace(query, left=folded(sides[0]), right=folded(sides[1]))

    def inner(expression: Expr) -> Expr | None:
        if isinstance(expression, Subquery):
            operand = None if expression.operand is None else rewrite(expression.operand, inner)
            wanted = expression.query if expression.kind == "scalar" else _once(expression.query)
            return replace(expression, query=folded(wanted), operand=operand)
        return None

    query = rewritten(query, inner)
    assert isinstance(query, Select)
    query = of_rows(of_newest(query))
    if query.keeping.beside is not None:
        _refuse_ungrouped(query, query.group or ())
    query = with_nested(query, lambda nested: replace(nested, query=folded(nested.query)))
    below: Relation | None = query.relation
    generators: tuple[Generator, ...] = ()
    if isinstance(below, Exploded):
        generators, below = below.generators, below.relation
    if isinstance(below, Nested) and isinstance(below.query, Select) and is_projection(below.query):
        query = _inlined(query, below.alias, below.query, generators)
    elif generators and isinstance(below, Stream):
        query = replace(query, relation=replace(below, generators=(*below.generators, *generators)))
    if isinstance(query.relation, Stream):
        query = by_filters(
            with_bounded_sequences(_own_columns(query, query.relation)),
            lambda block: over_values(by_end(_with_undecided(block))),
        )
        if query.distinct and query.group is None and not has_windows(query):
            keys = dict.fromkeys(_row_key(o.expression) for o in query.outputs)
            query = replace(query, distinct=False, group=tuple(keys))
    elif query.group is not None:
        _refuse_ungrouped(query, query.group)
    return query


def _refuse_ungrouped(block: Select, group: Sequence[Expr]) -> None:
    """A column that the groups of a block above the aggregation do not decide, as `neither` has it of a stream's."""
    grouped = {(key.relation, key.path) for key in group if isinstance(key, Field)}

    def known(part: Expr) -> Expr | None:
        if part in group or isinstance(part, Aggregate):
            return part
        if not isinstance(part, Field) or part.outer or part.relation == VARIABLE:
            return None
        if (part.relation, part.path[:1]) not in grouped:
            raise neither(part)
        return None

    for expression in above_group(block):
        rewrite(expression, known)


def _row_key(output: Expr) -> Expr:
    """What different rows are told apart by; sessions are put together of groups alone."""
    key = window_key(output)
    return output if is_session(key) else key


def _with_undecided(block: Select) -> Select:
    """A block that asks of its cells what no record alone can answer, as whether a user is one of those of a query."""
    known: list[Expr] = []
    asked: list[Expr] = []
    for part in conjuncts(block.where):
        (asked if is_asked(part) else known).append(part)
    keeping = replace(block.keeping, undecided=reduce(both, asked, None))
    return replace(block, where=reduce(both, known, None), keeping=keeping)


def _once(query: Query) -> Query:
    """A query for which it does not matter how often a row comes: of records it keeps the groups."""
    if not isinstance(query, Select) or query.limit is not None or query.offset is not None:
        return query
    asked = [part for condition in conjuncts(query.where) if is_asked(condition) for part in decided(condition)]
    if query.group is None and not query.distinct and any(part.type.nested for part in asked):
        return replace(query, order=())  # of a list there are no groups
    return replace(query, distinct=query.distinct or query.group is None, order=())


def _inlined(query: Select, alias: str, below: Select, generators: tuple[Generator, ...]) -> Select:
    values = {o.name.lower(): o.expression for o in below.outputs}

    def substitute(expression: Expr) -> Expr | None:
        if isinstance(expression, Field) and expression.relation == alias:
            value = values[expression.path[0].lower()]
            if len(expression.path) > 1:
                return reduce(lambda of, name: member(of, name, expression.place), expression.path[1:], value)
            return value
        return None

    query = rewritten(query, substitute)
    assert isinstance(below.relation, Stream)
    more = tuple(replace(each, argument=rewrite(each.argument, substitute)) for each in generators)
    stream = replace(below.relation, generators=(*below.relation.generators, *more))
    return replace(query, relation=stream, where=both(both(below.where, below.undecided), query.where))


def _own_columns(query: Select, stream: Stream) -> Select:
    """Columns of the block's stream and its generators lose the author's aliases, so that equal blocks are equal."""
    own: dict[tuple[str, str], tuple[str, ...]] = {}

    def strip(expression: Expr) -> Expr | None:
        if isinstance(expression, Field):
            path = own.get((expression.relation, expression.path[0]))
            if path is not None:
                return replace(expression, relation="", path=(*path, *expression.path[1:]))
            if expression.relation in (stream.alias, ""):
                return replace(expression, relation="")
        return None

    generators = []
    for number, each in enumerate(stream.generators, 1):
        argument, element = rewrite(each.argument, strip), each.argument.type.element
        given = ("key", "value") if argument.type.name == "MAP" else ("element",)
        names = [f"position {number}"] * each.positions + [f"{name} {number}" for name in given]
        columns = tuple((name, kind) for name, (_, kind) in zip(names, each.columns, strict=False))
        if each.fields and element is not None:
            pairs = zip(each.columns, element.fields, strict=True)
            own |= {(each.alias, name): (names[0], field) for (name, _), (field, _) in pairs}
            columns = ((names[0], element),)
        elif each.alias:
            own |= {(each.alias, old): (new,) for (old, _), new in zip(each.columns, names, strict=True)}
        generators.append(replace(each, argument=argument, columns=columns, alias="", fields=False))
    kept = stream.retained and replace(stream.retained, time=rewrite(stream.retained.time, strip))
    own_stream = replace(stream, alias=stream.source, generators=tuple(generators), retained=kept)
    return replace(rewritten(query, strip), relation=own_stream)
