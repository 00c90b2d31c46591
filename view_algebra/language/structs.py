"""Splits structs in aggregates into the scalars that cells keep, and rebuilds the structs from these.

`max(struct(ts, kind))` is `struct(max_by(ts, …), max_by(kind, …))`, both in Spark's order of structs: by one field
after the other, NULLs first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from view_algebra.language.aggregates import only
from view_algebra.language.expressions import TRUE, Aggregate, Call, Case, Constant, Expr, Place, both, member
from view_algebra.language.types import BIGINT, BOOLEAN, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type, of_scalars


def is_struct(value: Expr) -> bool:
    """True if the value is a struct, which an aggregate splits."""
    return value.type.name == "STRUCT"


def scalars(value: Expr) -> Iterator[Expr]:
    """The scalars of a value, in order. For a nullable struct, first the condition that it is present."""
    if not is_struct(value):
        yield value
        return
    if (there := _is_there(value)) is not None:
        yield there
    for _, field in _fields(value):
        yield from scalars(field)


def rebuilt(value: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """A value with all its `scalars` changed."""
    if not is_struct(value):
        return change(value)
    pairs = [part for name, field in _fields(value) for part in (Constant(name, STRING), rebuilt(field, change))]
    struct = Call("named_struct", tuple(pairs), value.type, place=value.place)
    there = _is_there(value)
    return struct if there is None else only(change(there), struct)


def _fields(value: Expr) -> list[tuple[str, Expr]]:
    return [(name, member(value, name, value.place)) for name, _ in value.type.fields]


def _is_there(value: Expr) -> Expr | None:
    """The condition that a struct is not NULL, or None if it never is."""
    if isinstance(value, Call) and value.function == "named_struct":
        return None
    if isinstance(value, Case) and len(value.branches) == 1 and value.otherwise is None:
        ((when, then),) = value.branches
        inner = _is_there(then)
        return only(when, TRUE if inner is None else inner)
    return Call("is not null", (value,), BOOLEAN)


def has_order(kind: Type) -> bool:
    """True if both engines order values of a type alike, which excludes lists, maps, and structs with such fields."""
    return not kind.nested or of_scalars(kind)


def order_of(value: Expr) -> tuple[Expr, ...]:
    """The sort keys of a struct, which are never NULL. A scalar is its own key."""
    return keys_of(value) if is_struct(value) else (value,)


def keys_of(value: Expr) -> tuple[Expr, ...]:
    """The sort keys of a value with NULLs first, which are never NULL themselves."""
    return tuple(key for part in scalars(value) for key in _keys(part))


def _keys(part: Expr) -> tuple[Expr, ...]:
    there = Call("is not null", (part,), BOOLEAN)
    if isinstance(part, Call) and part.function == "is not null":
        return (part,)
    return there, Call("coalesce", (part, _any(part.type)), part.type)


def _any(kind: Type) -> Constant:
    """An arbitrary value of a type."""
    defaults = {STRING: "", BOOLEAN: "false", DATE: "1970-01-01"}
    defaults |= dict.fromkeys((TIMESTAMP, TIMESTAMP_NTZ), "1970-01-01 00:00:00")
    return Constant(defaults.get(kind, "0"), kind)


def by(function: str, value: Expr, order: Sequence[Expr], when: Expr | None, place: Place) -> Expr:
    """The value of the row with the first or the last order. A struct is rebuilt from its scalars."""

    def kept(part: Expr) -> Expr:
        return Aggregate(function, (part, *order), when, False, part.type, place)

    if not is_struct(value):
        return kept(value)
    counted = Call(">", (Aggregate("count", (), when, False, BIGINT, place), Constant("0", BIGINT)), BOOLEAN)
    return only(counted, rebuilt(value, kept))


def extreme(aggregate: Aggregate) -> Expr:
    """The greatest or the least of structs."""
    (value,) = aggregate.arguments
    return by(
        f"{aggregate.function}_by", value, order_of(value), both(aggregate.condition, _is_there(value)), aggregate.place
    )
