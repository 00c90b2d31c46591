"""Infinities: times that are after every time, or before, and that a view shows as NULL.

Debezium writes Postgres' own as numbers. In Spark they are the first instant after the calendar, and the beginning of
the last day before it; in Postgres they are its own. `Type.endless` says where there may be one. What only passes times
on, or compares them, keeps them; a time that is made of an infinity is the same one; to all else they are NULL.
"""

from __future__ import annotations

from dataclasses import replace

from view_algebra.language.expressions import Call, Expr
from view_algebra.language.quoting import words
from view_algebra.language.types import Type

KEEPS = words(
    "coalesce nvl ifnull nullif nvl2 if iff greatest least isnull isnotnull equal_null decode to_timestamp to_date"
    " date timestamp count min max first last any_value first_value last_value nth_value lag lead max_by min_by"
)
"""Functions that pass times on, or compare them."""

MOVES = words(
    "date_trunc trunc date_add dateadd date_sub add_months last_day next_day from_utc_timestamp to_utc_timestamp"
    " timestampadd"
)
"""Functions that make a time of a time."""


def finite(time: Expr) -> Expr:
    """A time, NULL for an infinity."""
    return Call("finite", (time,), replace(time.type, endless=False), place=time.place)


def moved(made: Call, time: Expr) -> Call:
    """What a call makes of a time; of an infinity, the same infinity."""
    arguments = tuple(finite(each) if each == time else each for each in made.arguments)
    of_finite = replace(made, arguments=arguments, type=replace(made.type, endless=False))
    return Call("endless", (of_finite, time), replace(made.type, endless=True), place=made.place)


def without(kind: Type) -> Type:
    """A type as a view shows it, without infinities."""
    return replace(kind, endless=False)
