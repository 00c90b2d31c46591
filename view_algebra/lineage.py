"""The lineage of a view's columns: columns of sources and other views, and the aggregates on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import assert_never

from view_algebra.compiled import Lineage, source_name
from view_algebra.engines.spark import spark
from view_algebra.language.aggregates import AGGREGATES, EVENT_ORDER
from view_algebra.language.expressions import (
    Aggregate,
    Call,
    Cells,
    Combined,
    Constants,
    Exploded,
    Expr,
    Field,
    Hopped,
    Joined,
    Nested,
    Query,
    Read,
    Relation,
    Sessions,
    Stream,
    Subquery,
    both,
    conjuncts,
)
from view_algebra.language.types import BOOLEAN
from view_algebra.language.walks import rewrite, walk
from view_algebra.refusals import Wrong

Below = Callable[[str, str], Lineage | None]
"""A function from a relation's alias and a column's name to the column's lineage."""


def lineage(query: Query) -> tuple[Lineage, ...]:
    """The lineage of each column of a query, in order."""
    if isinstance(query, Combined):
        sides = zip(lineage(query.left), lineage(query.right), strict=True)
        return tuple(_together(left.column, left, right) for left, right in sides)
    below = _below(query.relation)
    return tuple(_lineage(output.name, output.expression, below) for output in query.outputs)


def copied(query: Query, name: str) -> tuple[str, str] | None:
    """The source or view, and its column in lower case, that an output copies, or None if the output is computed."""
    if isinstance(query, Combined):
        return None
    expression = next(output.expression for output in query.outputs if output.name.lower() == name.lower())
    if not isinstance(expression, Field) or len(expression.path) > 1:
        return None
    return _copied(query.relation, expression.relation, expression.path[0].lower())


def _copied(relation: Relation | None, owner: str, name: str) -> tuple[str, str] | None:
    match relation:
        case Stream(source=source, alias=alias) if alias == owner:
            return source_name(source), name
        case Read(view=view, alias=alias) if alias == owner:
            return view, name
        case Nested(query=query, alias=alias) if alias == owner:
            return copied(query, name)
        case Joined(left=left, right=right):
            return _copied(left, owner, name) or _copied(right, owner, name)
        case Exploded(relation=inner):
            return _copied(inner, owner, name)
        case None | Stream() | Read() | Nested() | Constants() | Cells() | Hopped() | Sessions():
            return None
        case _:
            assert_never(relation)


def _lineage(column: str, expression: Expr, below: Below) -> Lineage:
    parts: list[Lineage] = []
    for part in walk(_without_event_order(expression)):
        if isinstance(part, Aggregate):
            parts.append(Lineage(column, (), (_author_text(part),)))
        elif isinstance(part, Subquery):
            parts += lineage(part.query)
        elif isinstance(part, Field) and (origin := below(part.relation, part.path[0].lower())) is not None:
            parts.append(origin)
    return _together(column, *parts)


def _together(column: str, *parts: Lineage) -> Lineage:
    columns = dict.fromkeys(name for part in parts for name in part.columns)
    return Lineage(column, tuple(columns), tuple(dict.fromkeys(a for part in parts for a in part.aggregates)))


def _below(relation: Relation | None) -> Below:
    match relation:
        case Stream(source=source, alias=alias):
            return lambda owner, name: Lineage(name, (f"{source_name(source)}.{name}",), ()) if owner == alias else None
        case Read(view=view, alias=alias):
            return lambda owner, name: Lineage(name, (f"{view}.{name}",), ()) if owner == alias else None
        case Nested(query=query, alias=alias):
            nested = {(alias, origin.column.lower()): origin for origin in lineage(query)}
            return lambda owner, name: nested.get((owner, name))
        case Joined(left=left, right=right):
            return _either(_below(left), _below(right))
        case Exploded(relation=inner, generators=generators):
            below = _below(inner)
            for rows in generators:
                columns = {(rows.alias, name.lower()): _lineage(name, rows.argument, below) for name, _ in rows.columns}
                below = _either(lambda owner, name, columns=columns: columns.get((owner, name)), below)  # type: ignore[misc]
            return below
        case None | Constants() | Cells() | Hopped() | Sessions():
            return lambda _, __: None
        case _:
            assert_never(relation)


def _either(first: Below, second: Below) -> Below:
    return lambda owner, name: first(owner, name) or second(owner, name)


def _without_event_order(expression: Expr) -> Expr:
    """An expression without the order of events, which the author need not write."""

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Aggregate):
            return None
        ends = [n for n, e in enumerate(part.arguments) if isinstance(e, Field) and e.path == (EVENT_ORDER[-1],)]
        row = AGGREGATES[part.function]
        if not row.in_order:
            return None
        arguments = part.arguments
        if ends:
            arguments = arguments[: ends[-1] + 1 - len(EVENT_ORDER)] + arguments[ends[-1] + 1 :]
        arguments = tuple(_ordered_by(arguments))
        alone = row.last is not None and len(arguments) == 1
        name = ("last" if row.last else "first") if alone else part.function
        not_null = [Call("is not null", (key,), BOOLEAN) for key in arguments[1:]]
        conditions = [asked for asked in conjuncts(part.condition) if row.last is None or asked not in not_null]
        return replace(part, function=name, arguments=arguments, condition=reduce(both, conditions, None))

    return rewrite(expression, change)


def _ordered_by(arguments: Sequence[Expr]) -> Iterator[Expr]:
    """The arguments. A nullable key, which takes two of them, becomes the key itself."""
    pairs = [*zip(arguments, [*arguments[1:], None], strict=True)]
    twice = {
        after: there.arguments[0]
        for there, after in pairs
        if isinstance(there, Call) and there.function == "is not null" and isinstance(after, Call)
        if after.function == "coalesce" and there.arguments[0] == after.arguments[0]
    }
    yield from (twice.get(e, e) for e, after in pairs if after not in twice or e in twice)  # type: ignore[arg-type]


def _author_text(aggregate: Aggregate) -> str:
    """An aggregate in the author's syntax."""
    arguments = [_text(a) for a in aggregate.arguments] or ["*"]
    condition = "" if aggregate.condition is None else f" FILTER (WHERE {_text(aggregate.condition)})"
    return f"{aggregate.function}({'DISTINCT ' if aggregate.distinct else ''}{', '.join(arguments)}){condition}"


def _text(expression: Expr) -> str:
    try:
        return spark(expression)
    except Wrong:  # it is computed above the aggregation
        return "…"
