"""Shared parts of the Postgres writers: operator precedence, literals, and the names of cell tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from view_algebra.language.expressions import Constant, Expr, Field, Order, Query
from view_algebra.language.quoting import postgres_name, postgres_text
from view_algebra.language.time_windows import CELL
from view_algebra.language.types import COLLATED, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

OR, AND, NOT, IS, COMPARE, IN, OTHER, ADD, MULTIPLY, CAST, ATOM = range(1, 12)
"""Precedence of Postgres' operators, loosest first."""

_INTERVAL = {"quarter": "month"}


@dataclass(frozen=True)
class Writer:
    """Writes the expressions of one query.

    tables: the names of the cell tables
    query: writes a nested query
    expression: writes an expression. It takes the least precedence that needs no parentheses
    grouped: the GROUP BY keys of the current block, which its columns repeat
    depth: the number of enclosing subqueries, which distinguishes the aliases of their cells
    """

    tables: Sequence[str]
    query: Callable[[Query, Writer], str]
    expression: Callable[[Expr, Writer, int], str]
    grouped: Sequence[Expr] = ()
    depth: int = 0

    def text(self, value: Expr, least: int = 0) -> str:
        """An inner expression, in parentheses if it binds less tightly than `least`."""
        return self.expression(value, self, least)

    def alias(self, name: str, *, outer: bool = False) -> str:
        """The alias of a relation here. `outer`: of the enclosing query."""
        depth = self.depth - outer
        return postgres_name(f"{name}_{depth + 1}" if name == CELL and depth > 0 else name)


def constant(literal: Constant) -> str:
    """A literal in Postgres' syntax."""
    value, kind = literal.value, literal.type
    if value is None:
        return "NULL"
    if kind == STRING:
        return postgres_text(value)
    if kind == TIMESTAMP:
        return f"timestamptz '{value}+00'"
    if kind in (DATE, TIMESTAMP_NTZ):
        return f"{kind.postgres} '{value}'"
    if kind.name == "INTERVAL":
        count, unit = value.split(" ")
        return f"interval '{int(count) * 3 if unit == 'quarter' else count} {_INTERVAL.get(unit, unit)}'"
    if kind.name in ("DOUBLE", "FLOAT"):
        return f"'{value}'::{kind.postgres}"
    plain = f"({value})" if value.startswith("-") else value
    return f"{plain}::{kind.postgres}" if literal.suffixed else plain


def as_text(argument: Expr, writer: Writer) -> str:
    """An argument as text. A bare NULL, which has no type in Postgres, gets the type text."""
    text = writer.text(argument, ADD)
    return f"{text}::text" if argument.type.name == "VOID" else text


def is_column(value: Expr) -> bool:
    """True if the expression is a column, not a field of one."""
    return isinstance(value, Field) and len(value.path) == 1


def by_bytes(value: Expr, text: str) -> str:
    """Text that compares by its bytes, as every text column in Lamina's tables and views already does."""
    return text if is_column(value) else f"{text} {COLLATED}"


def typed_text(value: Expr, writer: Writer) -> str:
    """A value for a polymorphic aggregate. A bare text literal gets its type."""
    text = writer.text(value, CAST)
    return f"{text}::text" if isinstance(value, Constant) and value.type == STRING else text


def ordering(order: Order, writer: Writer, name: str | None = None) -> str:
    """A key of ORDER BY, with NULLs where Spark puts them."""
    text = name or writer.text(order.expression)
    if name is None and order.expression.type == STRING:
        text = by_bytes(order.expression, writer.text(order.expression, CAST))
    direction = " DESC" if order.descending else ""
    nulls = "" if order.nulls_first == order.descending else (" NULLS FIRST" if order.nulls_first else " NULLS LAST")
    return text + direction + nulls


def indented(text: str) -> str:
    """The text, indented for use inside another."""
    return "\n".join(f"  {line}" for line in text.split("\n"))
