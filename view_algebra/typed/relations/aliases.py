"""The aliases of relations in FROM, and the names that they give to columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from sqlglot import exp

from view_algebra.language.expressions import (
    Cells,
    Constant,
    Constants,
    Exploded,
    Field,
    Hopped,
    Joined,
    Named,
    Nested,
    Output,
    Place,
    Query,
    Read,
    Relation,
    Select,
    Sessions,
    Stream,
)
from view_algebra.language.quoting import words
from view_algebra.language.types import VOID
from view_algebra.language.walks import renamed
from view_algebra.oracle import Edits
from view_algebra.refusals import Wrong
from view_algebra.typed.scopes import Columns, Scope

T = TypeVar("T", bound=exp.Expr)


def columns_of(relation: Relation, streams: Mapping[str, Columns]) -> Columns:
    """The columns of a relation in FROM."""
    match relation:
        case Stream():
            return streams[relation.source]
        case Nested():
            return relation.query.columns
        case Joined():
            return columns_of(relation.left, streams) + columns_of(relation.right, streams)
        case Read() | Cells() | Constants():
            return relation.columns
        case Exploded():
            generated = (column for generator in relation.generators for column in generator.columns)
            return (*columns_of(relation.relation, streams), *generated)
        case Hopped() | Sessions():
            raise AssertionError("panes are put together after names are resolved")


def right_alias(relation: Relation) -> str:
    """The alias of a relation that is not a join."""
    assert isinstance(relation, Named)
    return relation.alias


def alias_of(
    node: exp.Subquery | exp.Values | exp.Lateral | exp.Pivot | exp.Table, scope: Scope
) -> tuple[str, list[str]]:
    """The alias of a relation in FROM, its own or a new one, and the names that it gives to the columns."""
    number = len(scope.relations) + 1
    around = scope.outside.around
    while around is not None:
        number, around = number + len(around.relations), around.outside.around
    alias = (node.alias or f"q{number}").lower()
    if not node.alias:  # edits for Spark must be able to name its columns
        scope.edits.name(node, alias)
    return alias, column_names(node)


def column_names(node: exp.Expr) -> list[str]:
    """The names that an alias gives to the columns."""
    alias = node.args.get("alias")
    return [column.name for column in (alias.args.get("columns") or [])] if alias is not None else []


def naming(node: T, edits: Edits) -> T:
    """A CTE or a subquery whose SELECT over rows names its columns itself, not in a list after it.

    So it may pass on further columns, such as the order of events. If its meaning could change, the node stays as it
    is.

    >>> from view_algebra.written.dialect import parsed, text_of
    >>> subquery = parsed("SELECT * FROM (SELECT a, b + 1 FROM t) AS s(x, y)").find(exp.Subquery)
    >>> print(text_of(naming(subquery, Edits())))
    (SELECT a AS `x`, b + 1 AS `y` FROM t) AS s
    """
    names, select = column_names(node), node.this
    items = select.expressions if isinstance(select, exp.Select) else []
    others = node.args.get("joins") or any(value for name, value in select.args.items() if name not in _OF_ROWS)
    if not names or others or len(items) != len(names) or any(map(_names_several, items)):
        return node
    aliases = {item.alias.lower() for item in items if item.alias}
    for number, item in enumerate(items):  # its name may mean an earlier item
        before = aliases.union(name.lower() for name in names[:number])
        if any(column.parts[0].name.lower() in before for column in item.find_all(exp.Column)):
            return node
    renaming = edits.copy_without_own_edit(node)
    outputs = zip(renaming.this.expressions, names, strict=True)
    renaming.this.set("expressions", [named_item(item, name) for item, name in outputs])
    renaming.args["alias"].set("columns", None)
    edits.put(node, renaming)
    return renaming


def named_item(item: exp.Expr, name: str) -> exp.Alias:
    """An item of a SELECT under another name."""
    return exp.Alias(this=item.unalias(), alias=exp.to_identifier(name, quoted=True))


def _names_several(item: exp.Expr) -> bool:
    return bool(item.is_star) or isinstance(item, exp.Aliases)


_OF_ROWS = words("expressions from_ joins laterals where")
"""The clauses of a SELECT over rows that cannot name its outputs."""


def all_of(read: Read) -> Select:
    """A SELECT of all columns of a view."""
    outputs = (Output(name, Field(read.alias, (name,), kind)) for name, kind in read.columns)
    return Select(tuple(outputs), read, place=read.place)


def with_column_names(query: Query, names: Sequence[str], place: Place) -> Query:
    """A query whose columns have other names."""
    refuse_other_number(names, len(query.columns), place)
    return renamed(query, names)


def refuse_other_number(names: Sequence[str], columns: int, place: Place) -> None:
    """Refuses a list of names that is longer or shorter than the list of columns."""
    if len(names) != columns:
        named = f"{len(names)} name" if len(names) == 1 else f"{len(names)} names"
        raise Wrong(place, f"there are {columns} columns, but {named}", "Name every column.")


def untyped(relation: Relation, columns: Columns) -> Columns:
    """The columns of a relation. A NULL column of a subquery has no type yet, as in Spark."""
    if not isinstance(relation, Nested) or not isinstance(relation.query, Select):
        return columns
    nulls = [isinstance(o.expression, Constant) and o.expression.value is None for o in relation.query.outputs]
    return tuple((name, VOID if null else kind) for (name, kind), null in zip(columns, nulls, strict=True))
