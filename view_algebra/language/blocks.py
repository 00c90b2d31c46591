"""Builds blocks from blocks: renamed, concatenated, or over the rows of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from view_algebra.language.expressions import PLAINLY, Combined, Expr, Field, Nested, Query, Select, Stream
from view_algebra.language.fields import VARIABLE
from view_algebra.language.walks import has_windows, rewrite, rewritten


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
    """A block over the rows of several others; `keys`: its keys in their columns; `read`: rewrites its expressions."""
    below = Nested(union_all(branches), alias, block.place)
    plain = replace(block, relation=below, where=None, group=None, keeping=PLAINLY)
    group = tuple(Field(alias, (name,), key.type, place=key.place) for key, name in keys.items())
    return replace(rewritten(plain, read), group=group)


def is_of_records(query: Query, windows: bool = True) -> bool:
    """True if each row is a record, with columns of window functions at most."""
    if not is_of_rows(query, windows):
        return False
    below = query.relation
    return isinstance(below, Stream) or (isinstance(below, Nested) and is_of_records(below.query, windows))


def is_of_rows(query: Query, windows: bool = True) -> TypeGuard[Select]:
    """True if each row comes from one row of the relation that the query reads."""
    if not isinstance(query, Select) or query.group is not None or query.distinct:
        return False
    return query.limit is None and query.offset is None and (windows or not has_windows(query))


def is_projection(query: Query) -> bool:
    """True for SELECT … WHERE over records, or over such a SELECT: each row is a record."""
    return is_of_records(query, windows=False)
