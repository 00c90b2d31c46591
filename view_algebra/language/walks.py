"""Walks over expressions, relations and blocks, and rewrites of them.

If a subquery names columns of the enclosing block, these columns are parts of the subquery's expression, like arguments
of a call, so an operation on all of a block's columns includes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeGuard, assert_never

from view_algebra.language.expressions import (
    NOW,
    PLAINLY,
    VARIABLE,
    AboveCells,
    Aggregate,
    Call,
    Case,
    CellJoin,
    Cells,
    Combined,
    Constant,
    Constants,
    Exploded,
    Expr,
    Field,
    Hopped,
    Joined,
    Keeping,
    Merged,
    Named,
    NeedsRecords,
    Nested,
    OverValues,
    Query,
    Read,
    Relation,
    Select,
    Sessions,
    Stream,
    Subquery,
    Windowed,
)


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """The relations directly inside one, or none for a subquery, which is a separate query."""
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
    """A relation with the relations directly inside it replaced. Cells stay unchanged."""
    match relation:
        case Stream() | Read() | Constants() | Nested() | Cells() | Hopped() | Sessions():
            return relation
        case Exploded():
            return replace(relation, relation=change(relation.relation))
        case Joined():
            return replace(relation, left=change(relation.left), right=change(relation.right))
        case _:
            assert_never(relation)


def above_cells(relation: Relation) -> AboveCells:
    """The relation of a query that is split, which has no stream."""
    assert not isinstance(relation, Stream), f"the split left the stream {relation.source}"
    return relation


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
    if (join := block.keeping.join) is not None:
        joined = replace(join, relation=over_nested(join.relation, change))
        block = replace(block, keeping=replace(block.keeping, join=joined))
    return block if block.relation is None else replace(block, relation=over_nested(block.relation, change))


def _present(*expressions: Expr | None) -> tuple[Expr, ...]:
    """The expressions that are not None."""
    return tuple(expression for expression in expressions if expression is not None)


def children(expression: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside one, for a subquery those of the enclosing scope."""
    match expression:
        case Constant() | Field() | NeedsRecords():
            return ()
        case Call():
            return expression.arguments
        case Case():
            return tuple(e for branch in expression.branches for e in branch) + _present(expression.otherwise)
        case Aggregate():
            return expression.arguments + _present(expression.condition)
        case Windowed():
            order = tuple(o.expression for o in expression.order)
            return expression.arguments + expression.partition + order
        case Subquery():
            return _present(expression.operand) + (
                tuple(outer_fields(expression.query)) if expression.correlated else ()
            )
        case OverValues():
            return (expression.value, expression.times, *expression.order)
        case Merged():
            return expression.columns


def walk(expression: Expr) -> Iterator[Expr]:
    """An expression and every expression inside it, outermost first."""
    left = [expression]
    while left:
        part = left.pop()
        yield part
        left.extend(reversed(children(part)))


def decided(expression: Expr) -> Iterator[Expr]:
    """The largest parts of an expression that one row decides, without constants and implicit casts."""
    if isinstance(expression, Constant) or (isinstance(expression, Field) and expression.relation == VARIABLE):
        return
    several = isinstance(expression, Call) and (expression.function == "row" or expression.implicit)
    several = several or is_of_elements(expression)
    if several or any(isinstance(e, Windowed) or asks(e) for e in walk(expression)):
        for child in children(expression):
            yield from decided(child)
    else:
        yield expression


def is_of_elements(part: Expr) -> bool:
    """True if it is a lambda, or a part of one with its variable, so that elements and not the row decide it."""
    if isinstance(part, Call) and part.function == "lambda":
        return True
    inside = list(walk(part))
    lambdas = (e for e in inside if isinstance(e, Call) and e.function == "lambda")
    bound = {variable.path[0] for e in lambdas for variable in e.arguments[:-1] if isinstance(variable, Field)}
    return any(isinstance(e, Field) and e.relation == VARIABLE and e.path[0] not in bound for e in inside)


def asks(part: Expr) -> bool:
    """True if rows of another block, or the clock, answer it."""
    is_clock = isinstance(part, Call) and part.function == NOW
    return is_clock or isinstance(part, Subquery) or (isinstance(part, Field) and part.outer)


def is_asked(expression: Expr) -> bool:
    """True if a part of it needs rows of another block, or the clock."""
    return any(map(asks, walk(expression)))


def rewrite(expression: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """An expression with parts replaced, outermost first. A replacement is not rewritten again."""
    changed = change(expression)
    if changed is not None:
        return changed
    if isinstance(expression, Subquery) and expression.correlated:
        expression = replace(expression, query=_with_outer(expression.query, change))
    return mapped(expression, lambda part: rewrite(part, change))


def _maybe(change: Callable[[Expr], Expr], expression: Expr | None) -> Expr | None:
    return None if expression is None else change(expression)


def mapped(expression: Expr, inner: Callable[[Expr], Expr]) -> Expr:
    """An expression with its direct parts replaced."""
    match expression:
        case Constant() | Field() | NeedsRecords():
            return expression
        case Call():
            return replace(expression, arguments=tuple(map(inner, expression.arguments)))
        case Case():
            branches = tuple((inner(when), inner(then)) for when, then in expression.branches)
            return replace(expression, branches=branches, otherwise=_maybe(inner, expression.otherwise))
        case Aggregate():
            arguments = tuple(map(inner, expression.arguments))
            return replace(expression, arguments=arguments, condition=_maybe(inner, expression.condition))
        case Windowed():
            return replace(
                expression,
                arguments=tuple(map(inner, expression.arguments)),
                partition=tuple(map(inner, expression.partition)),
                order=tuple(replace(o, expression=inner(o.expression)) for o in expression.order),
            )
        case Subquery():
            return replace(expression, operand=_maybe(inner, expression.operand))
        case OverValues():
            order = tuple(map(inner, expression.order))
            return replace(expression, value=inner(expression.value), times=inner(expression.times), order=order)
        case Merged():
            return replace(expression, columns=tuple(map(inner, expression.columns)))


def rewritten(query: Select, change: Callable[[Expr], Expr | None]) -> Select:
    """A block with all of its expressions rewritten."""
    over = partial(rewrite, change=change)
    return replace(
        query,
        outputs=tuple(replace(o, expression=over(o.expression)) for o in query.outputs),
        relation=None if query.relation is None else rewritten_in(query.relation, change),
        where=_maybe(over, query.where),
        group=None if query.group is None else tuple(map(over, query.group)),
        keeping=PLAINLY if query.keeping is PLAINLY else _rewritten_keeping(query.keeping, change),
        having=_maybe(over, query.having),
        order=tuple(replace(o, expression=over(o.expression)) for o in query.order),
    )


def _rewritten_keeping(keeping: Keeping, change: Callable[[Expr], Expr | None]) -> Keeping:
    over, join = partial(rewrite, change=change), keeping.join
    return Keeping(
        finest=None if keeping.finest is None else tuple(map(over, keeping.finest)),
        sessions_of=None if keeping.sessions_of is None else tuple(map(over, keeping.sessions_of)),
        sub_keys=tuple(map(over, keeping.sub_keys)),
        undecided=_maybe(over, keeping.undecided),
        join=None if join is None else CellJoin(rewritten_in(join.relation, change), _maybe(over, join.where)),
    )


def outer_fields(query: Query) -> Iterator[Field]:
    """The enclosing block's columns that a subquery names, in that block's form."""
    if isinstance(query, Combined):
        yield from outer_fields(query.left)
        yield from outer_fields(query.right)
        return
    for part in (part for expression in expressions_of(query) for part in walk(expression)):
        if isinstance(part, Field) and part.outer:
            yield replace(part, outer=False)
    for relation in _read_by(query):
        for below in nested_in(relation):
            if not below.lateral:  # LATERAL reads the rows of the relations before it
                yield from outer_fields(below.query)


def every_relation(query: Query) -> Iterator[Relation]:
    """Every relation that a query reads: in FROM, in a subquery there, or in an expression."""
    if isinstance(query, Combined):
        yield from every_relation(query.left)
        yield from every_relation(query.right)
        return
    for relation in relations_in(query.relation):
        yield relation
        if isinstance(relation, Nested):
            yield from every_relation(relation.query)
    for part in (part for expression in expressions_of(query) for part in walk(expression)):
        if isinstance(part, Subquery):
            yield from every_relation(part.query)


def every_expression(query: Query) -> Iterator[Expr]:
    """Every expression of a query and of the queries inside it. Their parts are not listed separately."""
    if isinstance(query, Combined):
        yield from every_expression(query.left)
        yield from every_expression(query.right)
        yield from (key.expression for key in query.order)
        return
    for nested in nested_in(query.relation):
        yield from every_expression(nested.query)
    for expression in expressions_of(query):
        yield expression
        for part in walk(expression):
            if isinstance(part, Subquery):
                yield from every_expression(part.query)


def expressions_of(block: Select) -> Iterator[Expr]:
    """Every expression of a block, including those in FROM."""
    yield from above_group(block)
    join = block.keeping.join
    yield from _present(*(block.group or ()), block.where, block.undecided, None if join is None else join.where)
    for read in _read_by(block):
        yield from expressions_in(read)


def expressions_in(relation: Relation | None) -> Iterator[Expr]:
    """The expressions of a FROM: conditions of joins, and arguments of generators."""
    for inner in relations_in(relation):
        if isinstance(inner, Joined) and inner.condition is not None:
            yield inner.condition
        if isinstance(inner, (Stream, Exploded)):
            yield from (generator.argument for generator in inner.generators)


def _read_by(block: Select) -> Iterator[Relation]:
    """The relations that a block reads: its FROM and, if its cells are joined when read, the join."""
    if block.relation is not None:
        yield block.relation
    if block.keeping.join is not None:
        yield block.keeping.join.relation


def _with_outer(query: Query, change: Callable[[Expr], Expr | None]) -> Query:
    """A subquery with the enclosing block's columns rewritten."""

    def inner(part: Expr) -> Expr | None:
        if isinstance(part, Field) and part.outer:
            return as_outer(rewrite(replace(part, outer=False), change))
        return None

    def below(nested: Nested) -> Nested:
        return nested if nested.lateral else replace(nested, query=_with_outer(nested.query, change))

    if isinstance(query, Combined):
        return replace(query, left=_with_outer(query.left, change), right=_with_outer(query.right, change))
    return with_nested(rewritten(query, inner), below)


def as_outer(expression: Expr) -> Expr:
    """An expression in the form that a subquery of its block has."""
    return rewrite(expression, lambda part: replace(part, outer=True) if isinstance(part, Field) else None)


def rewritten_in(relation: Relation, change: Callable[[Expr], Expr | None]) -> Relation:
    """A relation with its expressions rewritten: conditions of joins, and arguments of generators."""
    relation = over_inputs(relation, lambda inner: rewritten_in(inner, change))
    if isinstance(relation, Joined) and relation.condition is not None:
        return replace(relation, condition=rewrite(relation.condition, change))
    if isinstance(relation, Exploded):
        generators = (
            replace(generator, argument=rewrite(generator.argument, change)) for generator in relation.generators
        )
        return replace(relation, generators=tuple(generators))
    return relation


def walk_all(expressions: Sequence[Expr], more: Expr | None) -> list[Expr]:
    """Every expression inside several expressions."""
    return [e for x in (*expressions, *_present(more)) for e in walk(x)]


def above_group(block: Select) -> list[Expr]:
    """The expressions over a block's groups (or rows): its columns, HAVING, ORDER BY."""
    return [o.expression for o in block.outputs] + [*_present(block.having)] + [o.expression for o in block.order]


def relations_named(expression: Expr) -> set[str]:
    """The aliases of the relations whose columns an expression names."""
    return {part.relation for part in walk(expression) if isinstance(part, Field)} - {VARIABLE}


def equates(condition: Expr, left: set[str], right: set[str]) -> bool:
    """True if the condition is an equality between columns of the two sides of a join, which are sets of aliases."""
    if not isinstance(condition, Call) or condition.function not in ("=", "<=>"):
        return False
    named = [relations_named(side) for side in condition.arguments]
    return all(named) and any(one <= left and other <= right for one, other in (named, named[::-1]))


def parts(block: Select) -> Iterator[Expr]:
    """Every expression over a block's rows or groups, its conditions included, and every expression inside."""
    for expression in (*above_group(block), *_present(block.where, block.undecided)):
        yield from walk(expression)


def kept_by(block: Select) -> tuple[Expr, ...]:
    """The keys of a block's cells: its groups, or finer ones, and the columns of undecided conditions."""
    finest, undecided = block.keeping.finest, block.keeping.undecided
    keys = (block.group or ()) if finest is None else finest
    of_rows = (part for key in keys for part in (decided(key) if is_asked(key) else (key,)))
    return tuple(dict.fromkeys((*of_rows, *(() if undecided is None else decided(undecided)))))


def has_windows(query: Select) -> bool:
    """True if a block computes window functions."""
    return any(windowed(query))


def windowed(block: Select) -> Iterator[Windowed]:
    """The window functions of a block."""
    return (part for column in above_group(block) for part in walk(column) if isinstance(part, Windowed))


def renamed(query: Query, names: Sequence[str]) -> Query:
    """The rows of a query, with its columns renamed."""
    if isinstance(query, Select):
        outputs = tuple(replace(o, name=name) for o, name in zip(query.outputs, names, strict=True))
        return replace(query, outputs=outputs, syntax=None)  # the syntax has the old names
    to = {old: new for (old, _), new in zip(query.columns, names, strict=True)}

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Field) or part.relation == VARIABLE:
            return None
        return replace(part, path=(to[part.path[0]], *part.path[1:]))

    order = tuple(replace(key, expression=rewrite(key.expression, change)) for key in query.order)
    columns = tuple((name, kind) for name, (_, kind) in zip(names, query.columns, strict=True))
    return replace(query, left=renamed(query.left, names), columns=columns, order=order)


def union_all(queries: Sequence[Query]) -> Query:
    """The concatenated rows of several queries with the same columns."""
    union = queries[0]
    for query in queries[1:]:
        union = Combined("UNION ALL", union, query, union.columns)
    return union


def over_branches(
    block: Select, branches: Sequence[Query], alias: str, keys: Mapping[Expr, str], read: Callable[[Expr], Expr | None]
) -> Select:
    """A block over the rows of several others. `keys`: its keys in their columns. `read`: rewrites its expressions."""
    below = Nested(union_all(branches), alias, block.place)
    plain = replace(block, relation=below, where=None, group=None, keeping=PLAINLY)
    group = tuple(Field(alias, (name,), key.type, place=key.place) for key, name in keys.items())
    return replace(rewritten(plain, read), group=group)


def columns_under(names: Mapping[Expr, str], alias: str) -> Callable[[Expr], Expr | None]:
    """A lookup of the columns, under these names, of the relation with this alias."""

    def column(part: Expr) -> Expr | None:
        name = names.get(part)
        return None if name is None else Field(alias, (name,), part.type, place=part.place)

    return column


def is_of_records(query: Query) -> bool:
    """True if each row is a record, with columns of window functions at most."""
    below = query.relation if is_of_rows(query) else None
    return isinstance(below, Stream) or (isinstance(below, Nested) and is_of_records(below.query))


def is_of_rows(query: Query) -> TypeGuard[Select]:
    """True if each row comes from one row of the relation that the query reads."""
    if not isinstance(query, Select) or query.group is not None or query.distinct:
        return False
    return query.limit is None and query.offset is None


def is_of_plain_rows(query: Query) -> TypeGuard[Select]:
    """True if each row comes from one row of the relation, without columns of window functions."""
    return is_of_rows(query) and not has_windows(query)


def is_projection(query: Query) -> bool:
    """True for SELECT … WHERE over records, or over such a SELECT: each row is a record."""
    below = query.relation if is_of_plain_rows(query) else None
    return isinstance(below, Stream) or (isinstance(below, Nested) and is_projection(below.query))
