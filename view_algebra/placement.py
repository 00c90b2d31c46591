"""Placement: the parts of a query that must be computed from records, found before Postgres' texts are written.

The blocks over sources are computed by Spark, record by record. Everything above their cells is computed by Postgres. A
part above the cells that Postgres does not compute as Spark does is an obstacle. So is an order that leaves ties, or an
order of events that the rows of other views do not give. A view with an obstacle reads the records below those views
instead (`passes.placed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import assert_never

from view_algebra.language.above import ARITHMETIC, Obstacle, generator_obstacle, obstacle
from view_algebra.language.expressions import (
    AboveCells,
    Aggregate,
    Call,
    Cells,
    Combined,
    Constants,
    Exploded,
    Expr,
    Generator,
    Hopped,
    Joined,
    NeedsRecords,
    Nested,
    Query,
    Read,
    Select,
    Sessions,
    Subquery,
    Windowed,
)
from view_algebra.language.walks import above_cells, children, every_expression, walk
from view_algebra.typed.order.keys import incomplete_orders
from view_algebra.typed.scopes import Keys


def records_needed(query: Query) -> Iterator[Obstacle]:
    """The obstacles of a typed query that the rows of other views cannot remove, only records can."""
    for expression in every_expression(query):
        for part in walk(expression):
            if isinstance(part, NeedsRecords) and (needed := obstacle(part)) is not None:
                yield needed


def first_obstacle(above: Query, views: Mapping[str, Keys]) -> Obstacle | None:
    """The first order above the cells that leaves ties, or else the first obstacle to computing a value there."""
    return next(chain(incomplete_orders(above, views), obstacles(above)), None)


def obstacles(query: Query) -> Iterator[Obstacle]:
    """The obstacles to computing a query over cells and views in Postgres. Those in FROM come first."""
    if isinstance(query, Combined):
        yield from obstacles(query.left)
        yield from obstacles(query.right)
        for key in query.order:
            yield from _in_expression(key.expression)
    else:
        if query.relation is not None:
            yield from _in_relation(above_cells(query.relation))
        for expression in _clauses(query):
            yield from _in_expression(expression)


def _clauses(block: Select) -> Iterator[Expr]:
    yield from (output.expression for output in block.outputs)
    yield from (condition for condition in (block.where,) if condition is not None)
    yield from block.group or ()
    yield from (condition for condition in (block.having,) if condition is not None)
    yield from (key.expression for key in block.order)


def _in_relation(relation: AboveCells) -> Iterator[Obstacle]:
    match relation:
        case Read() | Cells() | Hopped() | Sessions():
            return
        case Nested():
            yield from obstacles(relation.query)
        case Constants():
            for row in relation.rows:
                for value in row:
                    yield from _in_expression(value)
        case Joined():
            yield from _in_relation(above_cells(relation.right))
            if relation.condition is not None:
                yield from _in_expression(relation.condition)
            yield from _in_relation(above_cells(relation.left))
        case Exploded():
            yield from _in_relation(above_cells(relation.relation))
            for generator in relation.generators:
                yield from _in_generator(generator)
        case _:
            assert_never(relation)


def _in_generator(generator: Generator) -> Iterator[Obstacle]:
    if (own := generator_obstacle(generator)) is not None:
        yield own
    argument = generator.argument
    if isinstance(argument, Call) and argument.function == "hops":
        yield from _in_expression(argument.arguments[0])
    else:
        yield from _in_expression(argument)


def _in_expression(part: Expr) -> Iterator[Obstacle]:
    """The obstacles in an expression: its own, then those of its arguments."""
    own = obstacle(part)
    before, after = _around(part)
    for inner in before:
        yield from _in_expression(inner)
    if own is not None:
        yield own
    if isinstance(part, Subquery):
        yield from obstacles(part.query)
    for inner in after:
        yield from _in_expression(inner)


def _around(part: Expr) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The parts of an expression whose obstacles come before its own, and those whose obstacles come after."""
    match part:
        case Call() if part.function in ARITHMETIC:
            return part.arguments, ()
        case Aggregate():
            return (() if part.condition is None else (part.condition,)), part.arguments
        case Windowed():
            return (*part.partition, *(key.expression for key in part.order)), part.arguments
        case Subquery():
            return (), (() if part.operand is None else (part.operand,))
    return (), children(part)
