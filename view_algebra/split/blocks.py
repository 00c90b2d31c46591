"""Splits a query: its innermost blocks over sources become cell tables, and everything above reads these.

Before that, projections over a stream are folded into the block that reads them, so that aggregations read streams
directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from view_algebra.language.aggregates import TypedPartial
from view_algebra.language.expressions import (
    VARIABLE,
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
    member,
    ungrouped,
)
from view_algebra.language.time_windows import is_session, window_key
from view_algebra.language.walks import (
    above_group,
    decided,
    has_windows,
    is_asked,
    is_projection,
    rewrite,
    rewritten,
    with_nested,
)
from view_algebra.split.distinct import over_values
from view_algebra.split.filters import by_filters
from view_algebra.split.joins import over_rows
from view_algebra.split.leaves import Identity, Leaf, cell_identity, hopping_identity, kept_values, priced, shared_leaf
from view_algebra.split.newest import with_computed_columns
from view_algebra.split.reading import by_end, cell_relation, over_cells
from view_algebra.split.sequences import with_bounded_sequences


def folded(query: Query) -> Query:
    """The same rows, read from streams by as few blocks as possible. Each block names its stream's own columns."""
    if isinstance(query, Combined):
        sides = [query.left, query.right]
        if not query.operator.endswith("ALL"):
            sides = [_once(side) for side in sides]
        return replace(query, left=folded(sides[0]), right=folded(sides[1]))

    query = _with_asked(query, lambda asked: folded(asked.query if asked.kind == "scalar" else _once(asked.query)))
    query = over_rows(with_computed_columns(query))
    if query.keeping.join is not None:
        _refuse_ungrouped(query, query.group or ())
    query = _onto_stream(with_nested(query, lambda nested: replace(nested, query=folded(nested.query))))
    if isinstance(query.relation, Stream):
        return _over_stream(query, query.relation)
    if query.group is not None:
        _refuse_ungrouped(query, query.group)
    return query


def _onto_stream(query: Select) -> Select:
    """The block over a stream itself, if it reads a projection of the stream, or explodes the stream's records."""
    below: Relation | None = query.relation
    generators: tuple[Generator, ...] = ()
    if isinstance(below, Exploded):
        generators, below = below.generators, below.relation
    if isinstance(below, Nested) and isinstance(below.query, Select) and is_projection(below.query):
        return _inlined(query, below.alias, below.query, generators)
    if generators and isinstance(below, Stream):
        return replace(query, relation=replace(below, generators=(*below.generators, *generators)))
    return query


def _over_stream(query: Select, stream: Stream) -> Select:
    """The block with its conditions on other records, its values and its distinct rows as blocks of groups."""
    query = with_bounded_sequences(_own_columns(query, stream))
    query = by_filters(query, lambda block: over_values(by_end(_with_undecided(block))))
    if not query.distinct or query.group is not None or has_windows(query):
        return query
    keys = dict.fromkeys(_row_key(output.expression) for output in query.outputs)
    return replace(query, distinct=False, group=tuple(keys))


def _refuse_ungrouped(block: Select, group: Sequence[Expr]) -> None:
    """Raises `Wrong` for a column that the groups of a block above the aggregation do not decide."""
    grouped = {(key.relation, key.path) for key in group if isinstance(key, Field)}

    def grouped_part(part: Expr) -> Expr | None:
        if part in group or isinstance(part, Aggregate):
            return part
        if not isinstance(part, Field) or part.outer or part.relation == VARIABLE:
            return None
        if (part.relation, part.path[:1]) not in grouped:
            raise ungrouped(part)
        return None

    for expression in above_group(block):
        rewrite(expression, grouped_part)


def _row_key(output: Expr) -> Expr:
    """The key that distinguishes rows. For sessions it is the session itself, because only groups assemble them."""
    key = window_key(output)
    return output if is_session(key) else key


def _with_undecided(block: Select) -> Select:
    """Moves the conditions that no single record answers, such as `u IN (SELECT …)`, to the reading of cells."""
    answered: list[Expr] = []
    asked: list[Expr] = []
    for part in conjuncts(block.where):
        (asked if is_asked(part) else answered).append(part)
    keeping = replace(block.keeping, undecided=reduce(both, asked, None))
    return replace(block, where=reduce(both, answered, None), keeping=keeping)


def _once(query: Query) -> Query:
    """The query as distinct rows, if duplicates do not matter, so that it keeps groups and not records."""
    if not isinstance(query, Select) or query.limit is not None or query.offset is not None:
        return query
    asked = [part for condition in conjuncts(query.where) if is_asked(condition) for part in decided(condition)]
    if query.group is None and not query.distinct and any(part.type.nested for part in asked):
        return replace(query, order=())  # a list cannot be a key
    return replace(query, distinct=query.distinct or query.group is None, order=())


def _inlined(query: Select, alias: str, below: Select, generators: tuple[Generator, ...]) -> Select:
    values = {o.name.lower(): o.expression for o in below.outputs}

    def substitute(expression: Expr) -> Expr | None:
        if isinstance(expression, Field) and expression.relation == alias:
            first, *inner = expression.path
            return reduce(lambda of, name: member(of, name, expression.place), inner, values[first.lower()])
        return None

    query = rewritten(query, substitute)
    assert isinstance(below.relation, Stream)
    more = tuple(replace(generator, argument=rewrite(generator.argument, substitute)) for generator in generators)
    stream = replace(below.relation, generators=(*below.relation.generators, *more))
    return replace(query, relation=stream, where=both(both(below.where, below.undecided), query.where))


def _own_columns(query: Select, stream: Stream) -> Select:
    """Removes the author's aliases from the columns of stream and generators, so that equal blocks compare equal."""
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
    for number, generator in enumerate(stream.generators, 1):
        argument, element = rewrite(generator.argument, strip), generator.argument.type.element
        elements = ("key", "value") if argument.type.name == "MAP" else ("element",)
        names = [f"position {number}"] * generator.positions + [f"{name} {number}" for name in elements]
        columns = tuple((name, kind) for name, (_, kind) in zip(names, generator.columns, strict=False))
        if generator.fields and element is not None:
            pairs = zip(generator.columns, element.fields, strict=True)
            own |= {(generator.alias, name): (names[0], field) for (name, _), (field, _) in pairs}
            columns = ((names[0], element),)
        elif generator.alias:
            own |= {(generator.alias, old): (new,) for (old, _), new in zip(generator.columns, names, strict=True)}
        generators.append(replace(generator, argument=argument, columns=columns, alias="", fields=False))
    kept = stream.retained and replace(stream.retained, time=rewrite(stream.retained.time, strip))
    own_stream = replace(stream, alias=stream.source, generators=tuple(generators), retained=kept)
    return replace(rewritten(query, strip), relation=own_stream)


_Block = Callable[[Select], Select]


def split(query: Query) -> tuple[Query, tuple[Leaf, ...]]:
    """The query with cell tables in place of its innermost blocks, and the leaves of these tables."""
    query = folded(query)
    wanted: dict[Identity, list[Expr | TypedPartial]] = {}
    readers: dict[Identity, list[Select]] = {}
    for block in _blocks(query):
        readers.setdefault(cell_identity(block), []).append(block)
        kept = wanted.setdefault(cell_identity(block), [])
        kept += dict.fromkeys(k for k in kept_values(block) if k not in kept)
        if (hopping := hopping_identity(block)) is not None:
            wanted.setdefault(hopping, [])
    leaves = {identity: shared_leaf(identity, kept) for identity, kept in wanted.items()}
    leaves |= {identity: priced(leaves[identity], blocks) for identity, blocks in readers.items()}
    order = {identity: number for number, identity in enumerate(leaves)}

    def above(block: Select) -> Select:
        identity, hopping = cell_identity(block), hopping_identity(block)
        leaf = leaves[identity]
        windows = None if hopping is None else cell_relation(leaves[hopping], order[hopping])
        return over_cells(block, leaf, cell_relation(leaf, order[identity]), windows)

    return _with_blocks(query, above), tuple(leaves.values())


def _with_blocks(query: Query, block: _Block) -> Query:
    """Applies `block` to every block over a stream, at any depth of the query."""
    if isinstance(query, Combined):
        return replace(query, left=_with_blocks(query.left, block), right=_with_blocks(query.right, block))

    query = _with_asked(query, lambda asked: _with_blocks(asked.query, block))
    query = with_nested(query, lambda nested: replace(nested, query=_with_blocks(nested.query, block)))
    return block(query) if isinstance(query.relation, Stream) else query


def _with_asked(block: Select, change: Callable[[Subquery], Query]) -> Select:
    """A block with the queries of the subqueries in its expressions changed."""

    def inner(expression: Expr) -> Expr | None:
        if not isinstance(expression, Subquery):
            return None
        operand = None if expression.operand is None else rewrite(expression.operand, inner)
        return replace(expression, query=change(expression), operand=operand)

    return rewritten(block, inner)


def _blocks(query: Query) -> Iterator[Select]:
    blocks: list[Select] = []

    def note(block: Select) -> Select:
        blocks.append(block)
        return block

    _with_blocks(query, note)
    yield from blocks
