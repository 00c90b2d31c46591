"""Typed expressions and queries: what the author's SQL is once every name is found and every type is known.

Two expressions are equal when they mean the same over the same columns; where they stand in the file does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as Choice
from typing import assert_never

from sqlglot import exp

from view_algebra.compiled import Merge
from view_algebra.language.types import BIGINT, BOOLEAN, VOID, Type
from view_algebra.refusals import Span

Place = Span | None


@dataclass(frozen=True)
class Constant:
    """A literal; `value` is its text, None is NULL. `suffixed`: does the author say its type, as in `2L`?"""

    value: str | None
    type: Type
    place: Place = field(default=None, compare=False)
    suffixed: bool = False


@dataclass(frozen=True)
class Field:
    """A column of a relation in FROM, or a field inside a nested column of it.

    bound: the greatest absolute value it can take, where known; a count of records stays far below 2^63.
    outer: is it a column of the block around the subquery that it stands in? of: the type that has it as a field.
    """

    relation: str
    path: tuple[str, ...]
    type: Type
    bound: int | None = field(default=None, compare=False)
    place: Place = field(default=None, compare=False)
    outer: bool = False
    of: Type | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Call:
    """A scalar function or operator over typed arguments; `cast` has its target as type.

    implicit: Spark inserts this cast itself, so that the Spark text need not show it.
    """

    function: str
    arguments: tuple[Expr, ...]
    type: Type
    implicit: bool = False
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Case:
    """CASE WHEN condition THEN value … ELSE otherwise END."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None
    type: Type
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over the rows of a group; `condition` is its FILTER. `count(*)` has no arguments."""

    function: str
    arguments: tuple[Expr, ...]
    condition: Expr | None
    distinct: bool
    type: Type
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Order:
    """A key of ORDER BY, its default spelled out; `tie`: it breaks the ties that its author's keys leave."""

    expression: Expr
    descending: bool
    nulls_first: bool
    tie: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Windowed:
    """A function over a window of rows; `ignore_nulls`: as IGNORE NULLS says."""

    function: str
    arguments: tuple[Expr, ...]
    partition: tuple[Expr, ...]
    order: tuple[Order, ...]
    frame: str
    type: Type
    place: Place = field(default=None, compare=False)
    ignore_nulls: bool = False


@dataclass(frozen=True)
class Subquery:
    """A query used as a value, or in EXISTS or IN.

    correlated: does it name columns of the block around it? To that block they are parts of the expression.
    """

    kind: Choice["scalar", "exists", "in"]
    query: Query
    operand: Expr | None
    type: Type
    place: Place = field(default=None, compare=False)
    correlated: bool = False


@dataclass(frozen=True)
class OverValues:
    """An aggregate over the values of a group that are kept one by one; `times` says how often each came.

    order: what they are put in order by, where that is not the value itself. literals: the further arguments.
    """

    function: str
    value: Expr
    times: Expr
    order: tuple[Expr, ...]
    literals: tuple[Constant, ...]
    type: Type
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Merged:
    """The partials of several cells as one, of the columns that they are merged by and, last, their own."""

    merge: Merge
    columns: tuple[Expr, ...]
    type: Type
    place: Place = field(default=None, compare=False)


Expr = Constant | Field | Call | Case | Aggregate | Windowed | Subquery | OverValues | Merged


@dataclass(frozen=True)
class Output:
    """A column that a query gives."""

    name: str
    expression: Expr


@dataclass(frozen=True)
class Generator:
    """LATERAL VIEW [OUTER] explode(…): a row for each element of an array or entry of a map.

    columns: what it gives: the position, if `positions`, then the element, or key and value.
    fields: does it give the fields of its elements, as inline() does?
    """

    argument: Expr
    columns: tuple[tuple[str, Type], ...]
    positions: bool
    outer: bool
    alias: str
    place: Place = field(default=None, compare=False)
    fields: bool = False


@dataclass(frozen=True)
class Stream:
    """The records of a source, each as often as the generators say."""

    source: str
    alias: str
    place: Place = field(default=None, compare=False)
    generators: tuple[Generator, ...] = ()


@dataclass(frozen=True)
class Read:
    """The rows of another view."""

    view: str
    alias: str
    columns: tuple[tuple[str, Type], ...]
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Constants:
    """VALUES: rows of as many values as there are columns, each of its column's type."""

    rows: tuple[tuple[Expr, ...], ...]
    alias: str
    columns: tuple[tuple[str, Type], ...]
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Nested:
    """A subquery or a CTE in FROM. `lateral`: it may name columns of what stands before it."""

    query: Query
    alias: str
    place: Place = field(default=None, compare=False)
    lateral: bool = False


@dataclass(frozen=True)
class Cells:
    """A table of cells, in the place of the block whose cells it holds. `one`: it gives one row even when empty."""

    table: int
    alias: str
    columns: tuple[tuple[str, Type], ...]
    keys: tuple[str, ...]
    one: bool = False


@dataclass(frozen=True)
class Exploded:
    """The rows of a relation, each as often as the generators say."""

    relation: Relation
    generators: tuple[Generator, ...]
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Joined:
    """Two relations joined; `kind` as SQL writes it."""

    left: Relation
    right: Relation
    kind: Choice["INNER", "LEFT", "RIGHT", "FULL", "CROSS"]
    condition: Expr | None
    place: Place = field(default=None, compare=False)


@dataclass(frozen=True)
class Hopped:
    """Panes, each once for every window that it lies in; `pane` is the column of their start.

    words: the columns that say in which panes of a block a group was seen, where the cells are of blocks.
    """

    panes: Cells
    windows: Cells
    pane: str
    window: Call
    words: tuple[str, ...]


@dataclass(frozen=True)
class Sessions:
    """Panes with the start of the session that each is in.

    within: the columns of the group. first, last: the columns with the times of a pane's first record and of its last,
    or of the end that this sets; `gap`: µs from `last` to the end.
    """

    panes: Cells
    within: tuple[str, ...]
    first: str
    last: str
    gap: int


Named = Stream | Read | Constants | Nested | Cells
Relation = Named | Exploded | Joined | Hopped | Sessions


@dataclass(frozen=True)
class Beside:
    """What the cells of a block over a source are joined with when they are read, before they are merged to its groups.

    relation: the join, with the source in its place. where: the condition on what is joined.
    """

    relation: Relation
    where: Expr | None


@dataclass(frozen=True)
class Keeping:
    """How cells of a block over a source are kept, beside what it groups by; the split decides it.

    finest: the keys of its cells, where they are finer than its groups. sessions_of: of a block by sessions, what these
    are sessions of, where it groups by more. sub_keys: of finer groups, the keys that tell those of one group apart.
    undecided: the conditions of its WHERE that a record alone does not decide. beside: what it joins.
    """

    finest: tuple[Expr, ...] | None = None
    sessions_of: tuple[Expr, ...] | None = None
    sub_keys: tuple[Expr, ...] = ()
    undecided: Expr | None = None
    beside: Beside | None = None


PLAINLY = Keeping()
"""A cell per group."""


@dataclass(frozen=True)
class Select:
    """One SELECT block. `group` is None where nothing is grouped, () for one group of everything.

    relation: what FROM reads; None where there is no FROM, which gives one row.
    keeping: how cells of it are kept, where it is a block over a source.
    syntax: what it was read from.
    """

    outputs: tuple[Output, ...]
    relation: Relation | None
    where: Expr | None = None
    group: tuple[Expr, ...] | None = None
    having: Expr | None = None
    distinct: bool = False
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int | None = None
    place: Place = field(default=None, compare=False)
    limit_place: Place = field(default=None, compare=False)
    keeping: Keeping = field(default_factory=lambda: PLAINLY)
    syntax: exp.Select | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> tuple[tuple[str, Type], ...]:
        """Names and types of what it gives."""
        return tuple((o.name, o.expression.type) for o in self.outputs)

    @property
    def undecided(self) -> Expr | None:
        """The conditions of its WHERE that a record alone does not decide; None until the split looks for them."""
        return self.keeping.undecided

    @property
    def kept_by(self) -> tuple[Expr, ...]:
        """The keys that cells are kept by: the block's groups, or finer ones, and what undecided conditions ask for."""
        finest, undecided = self.keeping.finest, self.keeping.undecided
        keys = (self.group or ()) if finest is None else finest
        known = (part for key in keys for part in (decided(key) if is_asked(key) else (key,)))
        return tuple(dict.fromkeys((*known, *(() if undecided is None else decided(undecided)))))


@dataclass(frozen=True)
class Combined:
    """UNION [ALL], INTERSECT or EXCEPT of two queries."""

    operator: str
    left: Query
    right: Query
    columns: tuple[tuple[str, Type], ...]
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int | None = None
    place: Place = field(default=None, compare=False)
    limit_place: Place = field(default=None, compare=False)


Query = Select | Combined

TRUE = Constant("true", BOOLEAN)
NULL = Constant(None, VOID)
ONE = Constant("1", BIGINT)


def children(expression: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside one; of a subquery, what is of the scope around it."""
    match expression:
        case Constant() | Field():
            return ()
        case Call():
            return expression.arguments
        case Case():
            otherwise = () if expression.otherwise is None else (expression.otherwise,)
            return tuple(e for branch in expression.branches for e in branch) + otherwise
        case Aggregate():
            return expression.arguments + (() if expression.condition is None else (expression.condition,))
        case Windowed():
            order = tuple(o.expression for o in expression.order)
            return expression.arguments + expression.partition + order
        case Subquery():
            operand = () if expression.operand is None else (expression.operand,)
            return operand + (tuple(outer_fields(expression.query)) if expression.correlated else ())
        case OverValues():
            return (expression.value, expression.times, *expression.order)
        case Merged():
            return expression.columns


def walk(expression: Expr) -> Iterator[Expr]:
    """An expression and all inside it, outermost first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def decided(expression: Expr) -> Iterator[Expr]:
    """The largest parts of an expression that one row decides, constants and implicit casts left out."""
    if isinstance(expression, Constant):
        return
    several = isinstance(expression, Call) and (expression.function == "row" or expression.implicit)
    if several or any(isinstance(e, Windowed) or asks(e) for e in walk(expression)):
        for child in children(expression):
            yield from decided(child)
    else:
        yield expression


def asks(part: Expr) -> bool:
    """Is it answered by rows of another block?"""
    return isinstance(part, Subquery) or (isinstance(part, Field) and part.outer)


def is_asked(expression: Expr) -> bool:
    """Does it need an answer by rows of another block?"""
    return any(map(asks, walk(expression)))


def is_made_of_bytes(part: Expr) -> bool:
    """Is it a cast of bytes? What is no UTF-8 among them is one and the same character to Postgres."""
    return isinstance(part, Call) and part.function == "cast" and part.arguments[0].type.name == "BINARY"


def rewrite(expression: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """An expression with parts replaced, outermost first; what `change` gives is not looked into again."""
    changed = change(expression)
    if changed is not None:
        return changed
    if isinstance(expression, Subquery) and expression.correlated:
        expression = replace(expression, query=_with_outer(expression.query, change))
    return mapped(expression, lambda part: rewrite(part, change))


def mapped(expression: Expr, inner: Callable[[Expr], Expr]) -> Expr:
    """An expression with what is directly inside it replaced."""

    def maybe(part: Expr | None) -> Expr | None:
        return None if part is None else inner(part)

    match expression:
        case Constant() | Field():
            return expression
        case Call():
            return replace(expression, arguments=tuple(map(inner, expression.arguments)))
        case Case():
            branches = tuple((inner(when), inner(then)) for when, then in expression.branches)
            return replace(expression, branches=branches, otherwise=maybe(expression.otherwise))
        case Aggregate():
            return replace(
                expression,
                arguments=tuple(map(inner, expression.arguments)),
                condition=maybe(expression.condition),
            )
        case Windowed():
            return replace(
                expression,
                arguments=tuple(map(inner, expression.arguments)),
                partition=tuple(map(inner, expression.partition)),
                order=tuple(replace(o, expression=inner(o.expression)) for o in expression.order),
            )
        case Subquery():
            return replace(expression, operand=maybe(expression.operand))
        case OverValues():
            order = tuple(map(inner, expression.order))
            return replace(expression, value=inner(expression.value), times=inner(expression.times), order=order)
        case Merged():
            return replace(expression, columns=tuple(map(inner, expression.columns)))


def rewritten(query: Select, change: Callable[[Expr], Expr | None]) -> Select:
    """A block with all of its expressions rewritten."""

    def maybe(expression: Expr | None) -> Expr | None:
        return None if expression is None else rewrite(expression, change)

    return replace(
        query,
        outputs=tuple(replace(o, expression=rewrite(o.expression, change)) for o in query.outputs),
        relation=None if query.relation is None else _rewritten_in(query.relation, change),
        where=maybe(query.where),
        group=None if query.group is None else tuple(rewrite(e, change) for e in query.group),
        keeping=PLAINLY if query.keeping is PLAINLY else _rewritten_keeping(query.keeping, change),
        having=maybe(query.having),
        order=tuple(replace(o, expression=rewrite(o.expression, change)) for o in query.order),
    )


def _rewritten_keeping(keeping: Keeping, change: Callable[[Expr], Expr | None]) -> Keeping:
    def each(expressions: tuple[Expr, ...] | None) -> tuple[Expr, ...] | None:
        return None if expressions is None else tuple(rewrite(e, change) for e in expressions)

    return Keeping(
        finest=each(keeping.finest),
        sessions_of=each(keeping.sessions_of),
        sub_keys=each(keeping.sub_keys) or (),
        undecided=None if keeping.undecided is None else rewrite(keeping.undecided, change),
        beside=None if keeping.beside is None else _rewritten_beside(keeping.beside, change),
    )


def _rewritten_beside(beside: Beside, change: Callable[[Expr], Expr | None]) -> Beside:
    where = None if beside.where is None else rewrite(beside.where, change)
    return Beside(_rewritten_in(beside.relation, change), where)


def outer_fields(query: Query) -> Iterator[Field]:
    """The columns that a subquery names of the block around it, as that block has them."""
    if isinstance(query, Combined):
        yield from outer_fields(query.left)
        yield from outer_fields(query.right)
        return
    for part in parts(query):
        if isinstance(part, Field) and part.outer:
            yield replace(part, outer=False)
    for below in nested_in(query.relation):
        if not below.lateral:  # which asks about the rows of the relations before it
            yield from outer_fields(below.query)


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


def every_relation(query: Query) -> Iterator[Relation]:
    """Every relation that a query reads, wherever it stands: in FROM, in a subquery there, or in an expression."""
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


def expressions_of(block: Select) -> Iterator[Expr]:
    """Every expression that stands in a block, those of its FROM too."""
    yield from above_group(block)
    yield from (each for each in (*(block.group or ()), block.where, block.undecided) if each is not None)
    for relation in relations_in(block.relation):
        if isinstance(relation, Joined) and relation.condition is not None:
            yield relation.condition
        if isinstance(relation, (Stream, Exploded)):
            yield from (each.argument for each in relation.generators)


def _with_outer(query: Query, change: Callable[[Expr], Expr | None]) -> Query:
    """A subquery with the columns of the block around it rewritten."""

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
    """An expression as a subquery of its block has it."""
    return rewrite(expression, lambda part: replace(part, outer=True) if isinstance(part, Field) else None)


def _rewritten_in(relation: Relation, change: Callable[[Expr], Expr | None]) -> Relation:
    """A relation with the expressions in it rewritten: conditions of joins, and what is exploded."""
    relation = over_inputs(relation, lambda inner: _rewritten_in(inner, change))
    if isinstance(relation, Joined) and relation.condition is not None:
        return replace(relation, condition=rewrite(relation.condition, change))
    if isinstance(relation, Exploded):
        made = (replace(each, argument=rewrite(each.argument, change)) for each in relation.generators)
        return replace(relation, generators=tuple(made))
    return relation


def walk_all(expressions: Sequence[Expr], more: Expr | None) -> list[Expr]:
    """Every expression inside several."""
    return [e for x in (*expressions, *(() if more is None else (more,))) for e in walk(x)]


def above_group(block: Select) -> list[Expr]:
    """What a block computes of its groups (or rows): its columns, HAVING, ORDER BY."""
    having = [block.having] if block.having is not None else []
    return [o.expression for o in block.outputs] + having + [o.expression for o in block.order]


def parts(block: Select) -> Iterator[Expr]:
    """Every expression that a block computes of its rows or groups, or asks of them, and all inside it."""
    for expression in (*above_group(block), *(e for e in (block.where, block.undecided) if e is not None)):
        yield from walk(expression)


def renamed(query: Query, names: Sequence[str]) -> Query:
    """The rows of a query, its columns under other names."""
    if isinstance(query, Select):
        outputs = tuple(replace(o, name=name) for o, name in zip(query.outputs, names, strict=True))
        return replace(query, outputs=outputs, syntax=None)  # which would give other names
    to = {old: new for (old, _), new in zip(query.columns, names, strict=True)}

    def change(part: Expr) -> Expr | None:
        return replace(part, path=(to[part.path[0]], *part.path[1:])) if isinstance(part, Field) else None

    order = tuple(replace(key, expression=rewrite(key.expression, change)) for key in query.order)
    columns = tuple((name, kind) for name, (_, kind) in zip(names, query.columns, strict=True))
    return replace(query, left=renamed(query.left, names), columns=columns, order=order)


def union_all(queries: Sequence[Query]) -> Query:
    """The rows of several queries of the same columns, one after the other."""
    union = queries[0]
    for query in queries[1:]:
        union = Combined("UNION ALL", union, query, union.columns)
    return union


def over_branches(
    block: Select, branches: Sequence[Query], alias: str, keys: Mapping[Expr, str], read: Callable[[Expr], Expr | None]
) -> Select:
    """A block over the rows of several others: `keys` are its keys among their columns, `read` is what it reads."""
    below = Nested(union_all(branches), alias, block.place)
    plain = replace(block, relation=below, where=None, group=None, keeping=PLAINLY)
    group = tuple(Field(alias, (name,), key.type, place=key.place) for key, name in keys.items())
    return replace(rewritten(plain, read), group=group)


def conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """The conditions that must all hold."""
    if isinstance(condition, Call) and condition.function == "and":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    elif condition is not None:
        yield condition


def both(left: Expr | None, right: Expr | None) -> Expr | None:
    """The conjunction of two conditions, either of which may be missing."""
    if left is None or right is None:
        return left if right is None else right
    return Call("and", (left, right), BOOLEAN)
