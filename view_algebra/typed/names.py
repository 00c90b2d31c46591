"""Names: the columns that a block of SQL can see, and the fields inside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast as typed

from sqlglot import exp

from view_algebra.language.expressions import (
    Expr,
    Field,
    Generator,
    Place,
    Query,
    Relation,
    Windowed,
)
from view_algebra.language.fields import member
from view_algebra.language.functions import COLUMNS
from view_algebra.language.types import Type
from view_algebra.refusals import Wrong, suggestion
from view_algebra.typed.rows import Keys, Sorting
from view_algebra.written.declarations import SourceDeclaration, ViewDeclaration

Columns = tuple[tuple[str, Type], ...]


@dataclass(frozen=True)
class Context:
    """What a view may read, by name, and the two functions that read its syntax, each of which needs the other.

    streams, views: the columns that they give; a table is a view. orders: of streams, the columns whose first known
    time leads the order of events. tables: the declarations of tables, by name.
    keys, sortings: of views, what tells their rows apart, and how they come. read_through: views of which the records
    are read that their rows are, where they are and no join needs the rows.
    """

    streams: Mapping[str, Columns]
    views: Mapping[str, Columns]
    keys: Mapping[str, Keys]
    sortings: Mapping[str, Sorting]
    orders: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, SourceDeclaration]
    read_through: Mapping[str, ViewDeclaration]
    expression: Callable[[exp.Expr, Scope], Expr]
    query: Callable[[exp.Expr, Outside], Query]


@dataclass(frozen=True)
class Outside:
    """What a query may name of where it stands.

    around: the block of which WHERE and HAVING may name columns. blocks: all that it stands in, from the outermost.
    """

    context: Context
    ctes: Mapping[str, Query] = field(default_factory=dict)
    around: Scope | None = None
    blocks: tuple[Scope, ...] = ()

    def but(self, ctes: Mapping[str, Query]) -> Outside:
        """The same with other CTEs."""
        return replace(self, ctes=ctes)

    def alone(self) -> Outside:
        """The same without a block around."""
        return replace(self, around=None)

    def of_a_part(self) -> Outside:
        """The same for a part of a query: what stands before it in FROM is nothing to it."""
        return self if self.around is None else replace(self, around=replace(self.around, lateral=False))


def is_kafkas(alias: str, name: str, scope: Scope) -> bool:
    """Is it a column that Kafka gives a stream, which `*` and NATURAL JOIN leave out?"""
    return alias in scope.streams and name.startswith("kafka_")


def resolved(node: exp.Expr, scope: Scope) -> Expr:
    """A scalar expression of the author's, its names found and its type known."""
    return scope.context.expression(node, scope)


@dataclass
class Scope:
    """What names mean inside one SELECT block.

    outside: what the block may name of where it stands. outer: the block around, while its columns may be named.
    relations: what FROM reads, by alias, with the columns that it gives; streams: those of them that are streams.
    using: the columns that a join USING gives once; merged: what they stand for, by relation and name.
    aliases: outputs by their names; unclear: names of several outputs. preferred: what names mean before they mean
    columns of FROM. variables: of the lambdas around an expression. windows: what `window` or `session_window` means,
    where GROUP BY names one. lateral: may what stands behind it in FROM name its columns?

    above: does the block read groups, and no records? records: the subquery of records that it reads, where it reads
    that alone; rows: the same, or one that computes window functions of records; passed: by alias, the subqueries that
    pass the order of events on. relation, where: what FROM reads, and the condition on its rows.

    generators, windowed, semi: what its expressions were found to hold: calls that make rows, window functions with
    their syntax, and the conditions of SEMI and ANTI joins.
    """

    outside: Outside
    relations: dict[str, Columns] = field(default_factory=dict)
    aliases: dict[str, Expr] = field(default_factory=dict)
    unclear: set[str] = field(default_factory=set)
    windows: Mapping[str, Expr] = field(default_factory=dict)
    generators: list[Generator] = field(default_factory=list)
    windowed: list[tuple[Windowed, exp.Window]] = field(default_factory=list)
    streams: dict[str, str] = field(default_factory=dict)
    using: dict[str, Expr] = field(default_factory=dict)
    merged: set[tuple[str, str]] = field(default_factory=set)
    above: bool = False
    records: Query | None = None
    rows: Query | None = None
    passed: dict[str, Query] = field(default_factory=dict)
    where: Expr | None = None
    relation: Relation | None = None
    outer: Scope | None = None
    lateral: bool = False
    semi: list[Expr] = field(default_factory=list)
    variables: Mapping[str, Field] = field(default_factory=dict)
    preferred: Mapping[str, Expr] = field(default_factory=dict)

    @property
    def context(self) -> Context:
        """What a view may read."""
        return self.outside.context

    @property
    def ctes(self) -> Mapping[str, Query]:
        """The CTEs that may be named."""
        return self.outside.ctes

    def subquery(self) -> Outside:
        """Where a query in an expression of the block stands."""
        return replace(self.outside, around=self, blocks=(*self.outside.blocks, self))

    def in_from(self) -> Outside:
        """Where a query in the block's FROM stands: it names what the block itself may."""
        return replace(self.outside.of_a_part(), blocks=(*self.outside.blocks, self))

    @contextmanager
    def preferring(self, names: Mapping[str, Expr]) -> Iterator[None]:
        """Outputs by their names go before columns, as in ORDER BY; not in the arguments of an aggregate."""
        before, self.preferred = self.preferred, names
        try:
            yield
        finally:
            self.preferred = before


def parts_of(node: exp.Expr) -> list[str]:
    """The parts of a dotted name."""
    if isinstance(node, exp.Dot):
        return [*parts_of(node.this), node.expression.name]
    if isinstance(node, exp.Identifier):  # a variable of a lambda, says sqlglot
        return [node.name]
    return [part.name for part in typed(exp.Column, node).parts]


def find(names: list[str], relations: Mapping[str, Columns], place: Place) -> Expr:
    """A column by its name, or by relation and name, and then by fields inside it."""
    if len(names) > 1 and names[0].lower() in relations:
        found = _column(names[0].lower(), names[1:], relations[names[0].lower()], place)
        if found is not None:
            return found[1]
        known = [name for name, _ in relations[names[0].lower()]]
        raise Wrong(place, f"no column {'.'.join(names)}", suggestion(names[1], known))
    hits = [
        found for alias, columns in relations.items() if (found := _column(alias, names, columns, place)) is not None
    ]
    if len(hits) > 1:
        either = " or ".join(f"{alias}.{names[0]}" for alias, _ in hits)
        raise Wrong(place, f"{names[0]} could be of several relations", f"Write {either}.")
    if not hits:
        known = [name for columns in relations.values() for name, _ in columns]
        other = COLUMNS.get(names[0].lower())
        if names[0].lower() in _OF_KAFKA and relations:
            way_out = (
                f"Select {names[0]} in the subquery, too. An order needs it for nothing: ties are broken without it."
            )
            raise Wrong(place, f"no column {names[0]}", way_out)
        other = other or _of_another_alias(names, relations)
        raise Wrong(place, f"no column {'.'.join(names)}", f"Write {other}." if other else suggestion(names[0], known))
    return hits[0][1]


def _of_another_alias(names: list[str], relations: Mapping[str, Columns]) -> str | None:
    """The column under the alias that its relation has here, if it has another one than its author wrote."""
    if len(names) == 1:
        return None
    of = [alias for alias, columns in relations.items() if names[1].lower() in {name.lower() for name, _ in columns}]
    return " or ".join(f"{alias}.{'.'.join(names[1:])}" for alias in of) or None


_OF_KAFKA = ("kafka_partition", "kafka_offset", "kafka_timestamp", "kafka_key", "kafka_headers")
"""Columns that every source has, and that a subquery gives only if it selects them."""


def is_column(names: list[str], block: Scope) -> bool:
    """Is it a column, or one of several, of what a block reads?"""
    first, *inner = (name.lower() for name in names)
    if inner and first in block.relations:
        return inner[0] in {name.lower() for name, _ in block.relations[first]}
    return any(first == name.lower() for columns in block.relations.values() for name, _ in columns)


def refuse_far(names: list[str], scope: Scope, place: Place) -> None:
    """A column of a query around that cannot be named here."""
    if is_column(names, scope) or not any(is_column(names, block) for block in scope.outside.blocks):
        return
    way_out = (
        "It can be named in WHERE and HAVING of a subquery directly inside that query: write a condition of ON into "
        "WHERE there, join what is further inside with what that one reads, or compute with the column outside."
    )
    raise Wrong(place, f"{'.'.join(names)} is a column of a query around this one", way_out)


def given_once(name: str, scope: Scope, place: Place) -> Expr | None:
    """The column that a join USING it gives once."""
    key = name.lower()
    others = [
        alias
        for alias, columns in scope.relations.items()
        if (alias, key) not in scope.merged and any(column.lower() == key for column, _ in columns)
    ]
    if key in scope.using and others:
        either = " or ".join(
            f"{alias}.{name}" for alias in (*(a for a, k in sorted(scope.merged) if k == key), *others)
        )
        raise Wrong(place, f"{name} could be of several relations", f"Write {either}.")
    return scope.using.get(key)


def find_outside(names: list[str], scope: Scope, place: Place) -> Field:
    """A column of the block around a subquery."""
    assert scope.outer is not None
    found = find(names, scope.outer.relations, place)
    if not isinstance(found, Field):
        raise Wrong(place, f"{'.'.join(names)} is made of a column of the query around this one", "Compute it there.")
    taken = [alias for alias in (*scope.relations, found.relation) if alias.rstrip("_0123456789") in OWN_ALIASES]
    if taken or found.relation in scope.relations:
        way_out = f"Give one of them another alias than {(*taken, found.relation)[0]}."
        raise Wrong(place, f"{'.'.join(names)} is a column of the query around this one", way_out)
    return replace(found, outer=True)


CELL = "cell"
"""Alias of a table of cells in final."""

OWN_ALIASES = ("pane", "hop", "block", CELL, "finer", "apart", "grouped", "one")
"""Aliases in compiled queries, where a subquery's own are numbered."""


def _column(alias: str, names: list[str], columns: Columns, place: Place) -> tuple[str, Expr] | None:
    named = tuple((name, kind) for name, kind in columns if name.lower() == names[0].lower())
    if not named:
        return None
    refuse_alike(named, place)
    result: Expr = Field(alias, (named[0][0],), named[0][1], place=place)
    for part in names[1:]:
        result = member(result, part, place)
    return alias, result


def refuse_alike(columns: Columns, place: Place) -> None:
    """Columns of a subquery that have one name, or none."""
    lower = [name.lower() for name, _ in columns]
    for name in lower:
        if not name:
            raise Wrong(place, "a column without a name", "Write … AS name in the subquery.")
        if lower.count(name) > 1:
            raise Wrong(
                place, f"{name} could be each of several columns", "Give the subquery's columns different names."
            )


def refuse_unclear(name: str, scope: Scope, place: Place) -> None:
    """A name that several outputs have, which means none of them."""
    if name in scope.unclear:
        raise Wrong(place, f"{name} could be each of several columns of this SELECT", "Give them different names.")


def neither(column: Field) -> Wrong:
    """The refusal of a column that a group does not decide."""
    return Wrong(
        column.place,
        f"{'.'.join(column.path)} is neither grouped nor aggregated",
        f"Add it to GROUP BY, or aggregate it, for example max({column.path[-1]}).",
    )
