"""Names: the columns that a block of SQL can see, and the fields inside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast as typed

from sqlglot import exp

from view_algebra.expressions import (
    Call,
    Case,
    Constant,
    Expr,
    Field,
    Generator,
    Place,
    Query,
    Relation,
    Select,
    Windowed,
)
from view_algebra.functions import COLUMNS
from view_algebra.refusals import Wrong, suggestion
from view_algebra.types import STRING, Type

Columns = tuple[tuple[str, Type], ...]


@dataclass
class Scope:
    """What names mean inside one SELECT block.

    windows: what `window` or `session_window` means, where GROUP BY names one. unclear: names of several outputs.
    using: the columns that a join USING gives once; merged: what they stand for, by relation and name. above: does it
    read groups, and no records? records: the subquery of records that it reads, where it reads that alone; rows: the
    same, or one that computes window functions of records; passed: the one or the other, as it passes the order of
    events on.
    where: the condition on the rows of `relation`. around: the block around a subquery; outer: the same, where its
    columns may be named. lateral: are those of what stands before it in FROM? semi: the conditions of SEMI and ANTI
    joins.
    variables: of the lambdas around an expression. preferred: what names mean before they mean columns of FROM.
    """

    relations: dict[str, Columns] = field(default_factory=dict)
    aliases: dict[str, Expr] = field(default_factory=dict)
    unclear: set[str] = field(default_factory=set)
    windows: Mapping[str, Expr] = field(default_factory=dict)
    ctes: Mapping[str, Query] = field(default_factory=dict)
    generators: list[Generator] = field(default_factory=list)
    windowed: list[tuple[Windowed, exp.Window]] = field(default_factory=list)
    streams: dict[str, str] = field(default_factory=dict)
    using: dict[str, Expr] = field(default_factory=dict)
    merged: set[tuple[str, str]] = field(default_factory=set)
    above: bool = False
    records: Select | None = None
    rows: Select | None = None
    passed: Select | None = None
    where: Expr | None = None
    relation: Relation | None = None
    around: Scope | None = None
    outer: Scope | None = None
    lateral: bool = False
    semi: list[Expr] = field(default_factory=list)
    variables: Mapping[str, Field] = field(default_factory=dict)
    preferred: Mapping[str, Expr] = field(default_factory=dict)

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
        raise Wrong(place, f"no column {'.'.join(names)}", f"Write {other}." if other else suggestion(names[0], known))
    return hits[0][1]


def is_column(names: list[str], block: Scope) -> bool:
    """Is it a column, or one of several, of what a block reads?"""
    first, *inner = (name.lower() for name in names)
    if inner and first in block.relations:
        return inner[0] in {name.lower() for name, _ in block.relations[first]}
    return any(first == name.lower() for columns in block.relations.values() for name, _ in columns)


def refuse_far(names: list[str], scope: Scope, blocks: Iterable[Scope], place: Place) -> None:
    """A column of a query around that cannot be named here."""
    if is_column(names, scope) or not any(is_column(names, block) for block in blocks):
        return
    way_out = (
        "Spark knows it in WHERE and HAVING of a subquery directly inside that query: join what is further inside "
        "with what that one reads, or compute with the column outside."
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


VARIABLE = "->"
"""What stands for a relation in the variable of a lambda."""

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


def member(value: Expr, name: str, place: Place) -> Expr:
    """A field of a struct, or of each struct of an array, or an end of a window."""
    fields = dict(value.type.fields)
    if value.type.key == STRING and value.type.element is not None:
        fields = {name: value.type.element}
    exact = next((f for f in fields if f.lower() == name.lower()), None)
    if exact is None and value.type.name == "ARRAY" and value.type.element is not None and value.type.element.fields:
        each = Field(VARIABLE, ("each 0",), value.type.element, place=place)
        inner = member(each, name, place)
        made = Call("lambda", (each, inner), inner.type)
        return Call("transform", (value, made), Type("ARRAY", element=inner.type), place=place)
    if exact is None:
        raise Wrong(place, f"no field {name} in {value.type}", suggestion(name, fields))
    if isinstance(value, Call) and value.function in ("window", "named_struct"):
        values = value.arguments if value.function == "window" else value.arguments[1::2]
        return values[list(fields).index(exact)]
    if isinstance(value, Case) and len(value.branches) == 1 and value.otherwise is None:
        ((when, then),) = value.branches
        return Case(((when, member(then, name, place)),), None, fields[exact], place)
    if isinstance(value, Field):
        return Field(value.relation, (*value.path, exact), fields[exact], place=place, of=value.type)
    return Call(".", (value, Constant(exact, STRING)), fields[exact], place=place)


def window_key(key: Expr) -> Expr:
    """What a window is grouped by: its start, or the session itself, whose start no record knows; any other key as is.

    >>> from view_algebra.types import TIMESTAMP, WINDOW
    >>> start, end = (Field("", (name,), TIMESTAMP) for name in ("s", "e"))
    >>> window_key(Call("window", (start, end), WINDOW)) == start, window_key(end) == end
    (True, True)
    """
    if not (isinstance(key, Call) and key.function == "window"):
        return key
    start = key.arguments[0]
    of_session = isinstance(start, Call) and start.function == "session_start"
    return replace(start.arguments[0] if of_session else start, place=key.place)  # type: ignore[union-attr]
