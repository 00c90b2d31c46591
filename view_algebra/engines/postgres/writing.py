"""What all of Postgres' SQL is written with: how tightly operators bind, literals, and how tables of cells are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from view_algebra.language.expressions import Call, Constant, Expr, Field, Order, Query
from view_algebra.language.quoting import postgres_name, postgres_text
from view_algebra.language.types import COLLATED, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ
from view_algebra.typed.names import CELL

OR, AND, NOT, IS, COMPARE, IN, OTHER, ADD, MULTIPLY, CAST, ATOM = range(1, 12)
"""How tightly Postgres binds, loosest first."""

_INTERVAL = {"quarter": "month"}


@dataclass(frozen=True)
class Reading:
    """How a query reads its tables of cells: their names, and how expressions and queries inside it are written.

    expression: as text, in parentheses if it binds less than the number says. grouped: the keys of the block that is
    written, which stand in its columns as in GROUP BY. depth: the subqueries around it. Each has cells of its own,
    which those inside it and around it are told apart from.
    """

    tables: Sequence[str]
    query: Callable[[Query, Reading], str]
    expression: Callable[[Expr, Reading, int], str]
    grouped: Sequence[Expr] = ()
    depth: int = 0

    def text(self, value: Expr, least: int = 0) -> str:
        """An expression inside the one that is written; in parentheses if it binds less than `least`."""
        return self.expression(value, self, least)

    def alias(self, name: str, *, outer: bool = False) -> str:
        """What a relation is called here; `outer`: one of the query around this one."""
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


def as_text(argument: Expr, reading: Reading) -> str:
    """An argument; NULL alone has no type in Postgres, and is a text."""
    text = reading.text(argument, ADD)
    return f"{text}::text" if argument.type.name == "VOID" else text


def is_column(value: Expr) -> bool:
    """Is it a column, and no field of one?"""
    return isinstance(value, Field) and len(value.path) == 1


def by_bytes(value: Expr, text: str) -> str:
    """Text that compares by its bytes; every column of text in Lamina's tables and views does already."""
    return text if is_column(value) else f"{text} {COLLATED}"


def bare_value(value: Expr) -> Expr:
    """What is inside the casts that Postgres makes itself."""
    while isinstance(value, Call) and value.function == "cast" and value.implicit:
        value = value.arguments[0]
    return value


def typed_text(value: Expr, reading: Reading) -> str:
    """A value for an aggregate of any type, which a literal text alone does not have."""
    text = reading.text(value, CAST)
    return f"{text}::text" if isinstance(value, Constant) and value.type == STRING else text


def ordering(order: Order, reading: Reading, name: str | None = None) -> str:
    """A key of ORDER BY; NULLs stand where Spark puts them."""
    text = name or reading.text(order.expression)
    if name is None and order.expression.type == STRING:
        text = by_bytes(order.expression, reading.text(order.expression, CAST))
    direction = " DESC" if order.descending else ""
    nulls = "" if order.nulls_first == order.descending else (" NULLS FIRST" if order.nulls_first else " NULLS LAST")
    return text + direction + nulls


def indented(text: str) -> str:
    """A text inside another."""
    return "\n".join(f"  {line}" for line in text.split("\n"))
