"""The scope of a block of SQL: the relations, outputs and variables that its names can mean, and the rows around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from view_algebra.language.expressions import (
    Expr,
    Field,
    Generator,
    Query,
    Relation,
)
from view_algebra.language.types import Type
from view_algebra.oracle import Edits
from view_algebra.written.declarations.sources_and_views import SourceDeclaration, ViewDeclaration

Columns = tuple[tuple[str, Type], ...]


@dataclass(frozen=True)
class Context:
    """The sources and views that a view may read, by name, and the two readers of its syntax, which call each other.

    streams: the columns of each stream
    views: the columns of each view and table
    keys: the unique keys of each view
    sortings: the order of each view's rows
    orders: per stream, the columns whose first known time leads the order of events
    tables: the declarations of the tables
    read_through: views whose records are read instead of their rows, if their rows are records and no join needs rows
    expression: the reader of an expression
    query: the reader of a query
    edits: the edits for the SELECT of `lamina check`, as they are made
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
    edits: Edits = field(default_factory=Edits)


@dataclass(frozen=True)
class Outside:
    """The surroundings of a query, with the names that it may use.

    ctes: the CTEs in reach
    around: the outer block whose columns WHERE and HAVING may name
    blocks: all enclosing blocks, the outermost first
    """

    context: Context
    ctes: Mapping[str, Query] = field(default_factory=dict)
    around: Scope | None = None
    blocks: tuple[Scope, ...] = ()

    def without_outer(self) -> Outside:
        """The same surroundings without an outer block."""
        return replace(self, around=None)

    def of_a_part(self) -> Outside:
        """The surroundings of a part of the query: it cannot name the relations before the query in FROM."""
        return self if self.around is None else replace(self, around=replace(self.around, lateral=False))


def is_kafkas(alias: str, name: str, scope: Scope) -> bool:
    """True for a stream's column from Kafka, which `*` and NATURAL JOIN leave out."""
    return alias in scope.streams and name.startswith("kafka_")


def resolved(node: exp.Expr, scope: Scope) -> Expr:
    """A scalar expression of the author, with its names resolved and its type known."""
    return scope.context.expression(node, scope)


@dataclass(frozen=True)
class Rows:
    """The rows that a block reads: those of FROM that meet WHERE.

    relation: the relation in FROM
    where: the condition on its rows
    above: true unless each row comes from one record, as for groups, joined rows and rows of views
    records: the subquery of records, if the block reads it alone
    in_order: the same, or a subquery that also computes window functions of records
    """

    relation: Relation | None = None
    where: Expr | None = None
    above: bool = False
    records: Query | None = None
    in_order: Query | None = None


@dataclass(frozen=True)
class Scope:
    """The meaning of names inside one SELECT block. Each clause gives the next one a scope that knows more.

    outside: the block's surroundings
    relations: the columns of each relation in FROM, by alias
    streams: the source of each relation that is a stream, by alias
    using: the merged columns of joins USING
    merged: the columns behind `using`, by relation and name
    filters: the conditions that SEMI and ANTI joins and LATERAL add to WHERE
    rows: the rows that FROM and WHERE leave
    windows: the call that `window` or `session_window` means, if GROUP BY names one
    aliases: outputs by name
    unclear: names that several outputs share
    generators: the calls in SELECT that make rows
    outer: the outer block, while its columns may be named
    lateral: true while a relation may name the columns of those before it in FROM
    variables: the variables of the lambdas around an expression
    preferred: meanings that precede the columns of FROM
    """

    outside: Outside
    relations: Mapping[str, Columns] = field(default_factory=dict)
    streams: Mapping[str, str] = field(default_factory=dict)
    using: Mapping[str, Expr] = field(default_factory=dict)
    merged: frozenset[tuple[str, str]] = frozenset()
    filters: tuple[Expr, ...] = ()
    rows: Rows = Rows()
    windows: Mapping[str, Expr] = field(default_factory=dict)
    aliases: Mapping[str, Expr] = field(default_factory=dict)
    unclear: frozenset[str] = frozenset()
    generators: tuple[Generator, ...] = ()
    outer: Scope | None = None
    lateral: bool = False
    variables: Mapping[str, Field] = field(default_factory=dict)
    preferred: Mapping[str, Expr] = field(default_factory=dict)

    @property
    def context(self) -> Context:
        """The sources and views that the view may read."""
        return self.outside.context

    @property
    def edits(self) -> Edits:
        """The edits for the SELECT of `lamina check`."""
        return self.context.edits

    def edited_sql(self, node: exp.Expr) -> str:
        """A node as Spark SQL, with the edits inside it, as a part of a larger edit."""
        return self.edits.text(node)

    @property
    def ctes(self) -> Mapping[str, Query]:
        """The CTEs that may be named."""
        return self.outside.ctes

    def subquery(self) -> Outside:
        """The surroundings of a query in an expression of the block."""
        return replace(self.outside, around=self, blocks=(*self.outside.blocks, self))

    def in_from(self) -> Outside:
        """The surroundings of a query in the block's FROM: it may name what the block may name."""
        return replace(self.outside.of_a_part(), blocks=(*self.outside.blocks, self))

    @property
    def above(self) -> bool:
        """True unless each row that the block reads comes from one record."""
        return self.rows.above

    def with_relation(self, alias: str, columns: Columns) -> Scope:
        """The scope after one more relation of FROM."""
        return replace(self, relations={**self.relations, alias: columns})

    def with_outer(self, outer: Scope | None) -> Scope:
        """The same scope, in which the columns of an outer block may be named."""
        return replace(self, outer=outer)

    def preferring(self, names: Mapping[str, Expr]) -> Scope:
        """The same scope. These outputs precede columns, as in ORDER BY, but not in arguments of aggregates."""
        return replace(self, preferred=names)


Keys = frozenset[frozenset[str]]
"""Unique keys as sets of output names. The empty set is the key of a relation of one row."""


@dataclass(frozen=True)
class SortKey:
    """A key by which rows are sorted. `column` names the output that shows it, if there is one."""

    column: str | None
    descending: bool
    nulls_first: bool


Sorting = tuple[SortKey, ...]

Sets = tuple[tuple[Expr, ...], ...]
"""The groupings of ROLLUP, CUBE or GROUPING SETS: the keys of each."""
